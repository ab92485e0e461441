"""Suggestions under a checked file stand in the words of its tool, and a model of dimensions is called by its file.

The words are those of the tools' own options: `interchange/diagnose/fixes/flags.py` names where each was read.
"""

import pytest
from msgspec import UNSET

from tonnage.cli import main
from tonnage.documents.advice import Advice
from tonnage.documents.interchange.read import KeyDocument, ReadDocument
from tonnage.interchange.advised import advised
from tonnage.interchange.check import answer
from tonnage.interchange.reading import Asker
from tonnage.interchange.source import command_source, text_source

AXOLOTL = """
base_model: meta-llama/Llama-3.1-8B
sequence_len: 8192
micro_batch_size: 2
gradient_accumulation_steps: 4
optimizer: adamw_torch_fused
bf16: true
flash_attention: true
gradient_checkpointing: false
fsdp_version: 2
fsdp_config: {reshard_after_forward: true, auto_wrap_policy: TRANSFORMER_BASED_WRAP}
"""
DEEPSPEED = """{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 4, "bf16": {"enabled": true},
 "optimizer": {"type": "AdamW"}, "zero_optimization": {"stage": 2}}"""
LLAMA_FACTORY = """
model_name_or_path: Qwen/Qwen2.5-7B
stage: sft
do_train: true
finetuning_type: full
deepspeed: examples/deepspeed/ds_z2_config.json
cutoff_len: 4096
per_device_train_batch_size: 4
gradient_accumulation_steps: 2
bf16: true
disable_gradient_checkpointing: true
"""
MEGATRON = """torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 \\
 --num-attention-heads 32 --group-query-attention --num-query-groups 8 --seq-length 8192 \\
 --max-position-embeddings 8192 --swiglu --disable-bias-linear --normalization RMSNorm \\
 --position-embedding-type rope --untie-embeddings-and-output-weights --vocab-size 128256 \\
 --tensor-model-parallel-size 2 --sequence-parallel --micro-batch-size 1 --global-batch-size 128 --bf16 \\
 --use-distributed-optimizer
"""


def in_tool(source, on, **more):
    return [move.in_tool for move in answer(source, Asker(on=on, **more)).advice if move.in_tool]


@pytest.mark.parametrize(
    "source, asker, written",
    [
        (text_source(AXOLOTL, "config.yml"), {"on": "8xh100"}, "gradient_checkpointing: true"),
        (
            text_source(DEEPSPEED, "ds.json"),
            {"on": "8xa100-80gb", "model": "qwen2.5-7b"},
            '"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 16',
        ),
        (text_source(LLAMA_FACTORY, "sft.yaml"), {"on": "8xa100-80gb"}, "disable_gradient_checkpointing: false"),
        (text_source(MEGATRON, "pretrain.sh"), {"on": "a100-40gb"}, "--tensor-model-parallel-size 4"),
        (command_source(["vllm serve llama-3.1-8b --max-model-len 131072"]), {"on": "rtx-4090"}, "--max-model-len"),
        (text_source("model: llama-3.1-8b\nmax-model-len: 131072\n", "v.yaml"), {"on": "rtx-4090"}, "max-model-len: "),
        (
            text_source("FROM llama3.1:8b-instruct-q8_0\nPARAMETER num_ctx 65536\n", "Modelfile"),
            {"on": "rtx-4070"},
            "PARAMETER num_ctx ",
        ),
        (
            command_source(["OLLAMA_CONTEXT_LENGTH=131072 ollama run llama3.1:8b"]),
            {"on": "rtx-4070"},
            "OLLAMA_CONTEXT_LENGTH=",
        ),
    ],
    ids=["axolotl", "deepspeed", "llama-factory", "megatron", "vllm", "vllm-file", "modelfile", "ollama"],
)
def test_a_suggestion_is_written_as_the_tool_has_it(source, asker, written):
    assert any(text.startswith(written) for text in in_tool(source, **asker))


def test_a_change_of_which_the_tool_has_no_words_for_a_part_stays_in_options_of_tonnage():
    moves = answer(text_source(AXOLOTL, "config.yml"), Asker(on="8xh100")).advice
    parallel = [move for move in moves if move.change.get("sequence_parallel")]
    assert parallel and not any(move.in_tool for move in parallel)


@pytest.mark.parametrize("sequences, written", [(2, "micro_batch_size: 1"), (4, UNSET)], ids=["same", "pairs"])
def test_a_number_that_the_tool_counts_in_another_unit_is_not_written_in_it(sequences, written):
    """Two pairs of DPO are four sequences of ours."""
    key = KeyDocument(key="micro_batch_size", value="2", status="used", options=("micro_batch_size",))
    asks = {"micro_batch_size": sequences}
    read = ReadDocument(file="config.yml", tool="axolotl", version="0.21", keys=(key,), asks=asks)
    move = Advice(
        change={"micro_batch_size": 1},
        text="--micro-batch-size 1",
        changes="workload",
        needed_bytes=1,
        freed_bytes=1,
        fits=True,
    )
    assert [move.in_tool for move in advised([move], read, "yaml")] == [written]


def test_the_words_of_the_tool_are_printed_and_the_command_to_try_is_tonnages(tmp_path, capsys):
    file = tmp_path / "config.yml"
    file.write_text(AXOLOTL)
    assert main(["check", str(file), "--on", "8xh100"]) == 3
    out = capsys.readouterr().out
    assert "context_parallel_size: 4" in out and "\ntry      tonnage train llama-3.1-8b" in out


def test_a_model_of_dimensions_is_called_by_its_file_and_tried_from_it(tmp_path, capsys):
    file = tmp_path / "pretrain.sh"
    file.write_text(MEGATRON)
    assert main(["check", str(file), "--on", "a100-40gb"]) == 3
    out = " ".join(capsys.readouterr().out.split())
    assert "the model of pretrain.sh (32 layers, hidden 4096) on 8xA100-SXM-40GB" in out
    assert "unnamed" not in out and f"tonnage train --config {file} --on 8xA100-SXM-40GB" in out.replace(" \\", "")


def test_a_model_of_dimensions_in_a_command_has_no_file_to_be_tried_from(capsys):
    assert main(["check", MEGATRON.replace("\\\n", ""), "--on", "a100-40gb"]) == 3
    out = capsys.readouterr().out
    assert "the model of the command (32 layers" in out and "\ntry " not in out and "\nnext " not in out


def test_a_command_of_a_tool_whose_keys_are_those_of_a_file_is_changed_by_flags():
    line = (
        "llamafactory-cli train --model_name_or_path Qwen/Qwen2.5-VL-7B-Instruct --stage sft --finetuning_type lora "
        "--cutoff_len 4096 --per_device_train_batch_size 4"
    )
    first = in_tool(command_source([line]), "rtx-4090")[0]
    assert first == ("--per_device_train_batch_size 2 --gradient_accumulation_steps 2 --enable_liger_kernel true")
