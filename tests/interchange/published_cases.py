"""Options of other tools as their packages define them, read as `tonnage check` reads them.

scripts/record_arguments.py writes the records in tests/interchange/published.
"""

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tonnage.interchange.check import Understood, answered, recognised
from tonnage.interchange.formats import format_of
from tonnage.interchange.parts.engines import trtllm_server
from tonnage.interchange.reading import Asker, Reading
from tonnage.interchange.source import Source, command_source, text_source

RECORDS = Path(__file__).parent / "published"


class Case(NamedTuple):
    """How the options of a section of a record are asked: the source that they are added to, the name of the key of an
    option, and values that the source itself does not have.
    """

    tool: str
    section: str
    source: Source
    key: Callable[[str], str]
    more: Mapping[str, Any] = {}
    on: str = "h100"


@cache
def record(tool: str) -> Mapping[str, Any]:
    """tool, version, source, as_of, options and computed."""
    found: dict[str, Any] = json.loads((RECORDS / f"{tool}.json").read_text())
    return found


def published(case: Case) -> Mapping[str, Any]:
    """Option -> default of a section."""
    options: Mapping[str, Any] = record(case.tool)["options"][case.section]
    return options


def reading(case: Case, values: Mapping[str, Any]) -> Reading:
    """The source with these values added, as a format reads it."""
    asker = Asker(on=case.on, model="llama-3.1-8b", tool=case.tool)
    form = recognised(case.source, asker)
    found = Reading(case.source, {**form.values(case.source), **case.more, **values}, asker)
    found.tool, found.version = form.tool, form.version
    found.says, found.known = form.says, form.known
    form.read(found)
    return found


def figures(found: Reading) -> tuple[float, float]:
    """Bytes that are needed, and seconds of a step or of a token, as the question is answered to the letter."""
    question = {**found.question, "on": found.on, **({"model": found.asker.model} if found.asker.model else {})}
    asked = Understood(verb=found.verb, question=question, origins={}, document=found.document(found.known()))
    answer = answered(asked, {"as_is": True})
    time = getattr(answer, "step_time", None)
    return answer.needed_bytes, float(time.value) if time is not None else 0.0


def statuses(found: Reading) -> dict[str, str]:
    return {key.key: key.status for key in found.document(found.known()).keys}


def known(tool: str) -> frozenset[str]:
    return frozenset(format_of(tool).known())


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _same(name: str) -> str:
    return name


def _trtllm(section: str) -> Callable[[str], str]:
    """Options of the command are read by the names of the file."""
    at = "kv_cache_config." if section == "kv_cache_config" else ""
    return lambda name: trtllm_server.SHORT.get(name, f"{at}{name}")


def _tree(values: Mapping[str, Any]) -> Source:
    return text_source(json.dumps(values), "config.json")


def _command(words: str) -> Source:
    return command_source([words])


_TRAINERS = ("SFT", "DPO", "GRPO", "KTO", "RLOO", "Reward", "Distillation", "GKD")
_HF = {"model_name_or_path": "Qwen/Qwen2.5-7B", "per_device_train_batch_size": 2, "dtype": "bfloat16"}
_TEACHER = {"teacher_model_name_or_path": "llama-3.1-8b"}
# TRL refuses a batch of GRPO that is no multiple of num_generations.
_MORE = {"Distillation": _TEACHER, "GKD": _TEACHER, "GRPO": {"per_device_train_batch_size": 8}}
_SWIFT = "swift sft --model llama-3.1-8b --dataset x"
_TITAN = "NGPU=8 ./run_train.sh --module llama3 --config llama3_8b"
_MEGATRON = (
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 "
    "--vocab-size 1000 --seq-length 128 --max-position-embeddings 128 --micro-batch-size 1"
)
_RLHF = "deepspeed --num_gpus 8 --module openrlhf.cli.{} --model.model_name_or_path meta-llama/Llama-3.1-8B"
_VERL = (
    "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=meta-llama/Llama-3.1-8B trainer.n_gpus_per_node=8 "
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1"
)

_VERL_SFT = "torchrun --nproc_per_node 8 -m verl.trainer.sft_trainer model.path=meta-llama/Llama-3.1-8B"

CASES: tuple[Case, ...] = (
    *(
        Case("trl", f"{name}Config", _tree(_HF), _same, {"trainer": name.lower(), **_MORE.get(name, {})})
        for name in _TRAINERS
    ),
    Case("transformers", "TrainingArguments", _tree(_HF), _same, {"per_device_train_batch_size": 8}),
    Case("trl", "ModelConfig", _tree(_HF), _same, {"trainer": "sft"}),
    Case("trl", "ScriptArguments", _tree(_HF), _same, {"trainer": "sft"}),
    Case("vllm", "EngineArgs", _command("vllm serve Qwen/Qwen3-8B"), _dashed),
    Case("vllm", "FrontendArgs", _command("vllm serve Qwen/Qwen3-8B"), _dashed),
    Case("sglang", "ServerArgs", _command("python -m sglang.launch_server --model-path Qwen/Qwen3-8B"), _dashed),
    Case("axolotl", "AxolotlInputConfig", _tree({"base_model": "llama-3.1-8b", "micro_batch_size": 1}), _same),
    *(
        Case("llama-factory", section, _tree({"model_name_or_path": "llama-3.1-8b", "stage": "sft"}), _same)
        for section in ("ModelArguments", "DataArguments", "FinetuningArguments", "TrainingArguments")
    ),
    Case("ms-swift", "SftArguments", _command(_SWIFT), _same),
    Case("ms-swift", "RLHFArguments", _command(_SWIFT.replace("sft", "rlhf --rlhf_type dpo")), _same),
    Case("verl", "ppo_trainer", _command(_VERL), _same, on="8xh100"),
    Case("verl", "sft_trainer_engine", _command(_VERL_SFT), _same, on="8xh100"),
    *(
        Case("openrlhf", name, _command(_RLHF.format(name)), _dashed, on="8xh100")
        for name in ("train_sft", "train_dpo", "train_rm", "train_ppo_ray")
    ),
    *(
        Case("torchtitan", section, _command(_TITAN), lambda name, section=section: f"{section}.{name}", on="8xh100")
        for section in ("training", "parallelism", "compile", "comm", "debug")
    ),
    *(
        Case("megatron", section, _command(_MEGATRON), _dashed, on="8xh100")
        for section in ("arguments", "TransformerConfig", "TrainingConfig")
    ),
    Case("deepspeed", "constants", _tree({"train_micro_batch_size_per_gpu": 1}), _same),
    Case(
        "deepspeed",
        "zero_optimization",
        _tree({"train_micro_batch_size_per_gpu": 1}),
        lambda name: f"zero_optimization.{name}",
    ),
    Case(
        "mlx",
        "server",
        _command("mlx_lm.server --model mlx-community/Qwen3-8B-4bit"),
        _dashed,
        on="apple-m2-ultra-128gb",
    ),
    *(
        Case("tensorrt-llm", section, _command("trtllm-serve Qwen/Qwen3-8B"), _trtllm(section))
        for section in ("TorchLlmArgs", "kv_cache_config", "serve")
    ),
    Case("ollama", "environment", _command("ollama run qwen3:8b"), _same, on="rtx-4090"),
    Case("llama-cpp", "arguments", _command("llama-server -m Qwen3-8B-Q4_K_M.gguf"), _same),
)
