"""Draw the questions of tests/golden anew from the catalogue and the options: `PYTHONPATH=tests python
scripts/golden_questions.py`.

Needed only where the set itself is to change: answers are recorded anew by `scripts/golden.py --write`, which keeps the
questions. What is drawn is
systematic: every runtime, engine, method, objective, precision, optimizer, option, family of models and generation of
accelerators, every verb and face.
"""

import json
from collections.abc import Iterable, Iterator
from functools import cache
from random import Random

from brute import cases, catalogue
from brute.values import Choice, choices_of
from golden import GOLDEN, read_group, write_group
from questions_of_faces import PASTED, QUESTIONS
from tonnage.catalogue import accelerator, accelerator_names, node_names
from tonnage.cli import VERBS
from tonnage.models import read
from tonnage.question.subjects.maximum import WHATS

TRAIN_MODELS, SERVE_MODELS = ("llama-3.1-8b", "mixtral-8x7b"), ("llama-3.1-8b", "deepseek-v3", "qwen3-8b")
BIG, SMALL = "8xH100-SXM-80GB", "rtx-4090"
PLAIN = "--json --no-advice"
OPENAPI = "http GET /v1/openapi.json"


def cross(head: str, *axes: Iterable[str], tail: str = PLAIN) -> Iterator[str]:
    """Every combination of words."""
    lines = [head]
    for axis in axes:
        words = list(axis)
        lines = [f"{line} {word}".rstrip() for line in lines for word in words]
    return (f"tonnage {line} {tail}".rstrip() for line in lines)


def flag(name: str, values: Iterable[str]) -> list[str]:
    return [f"--{name} {value}" for value in values]


def train_runtimes() -> Iterator[str]:
    runtimes = flag("runtime", catalogue.RUNTIMES)
    long = "--recompute full --micro-batch-size 2 --sequence-length 8192"
    yield from cross("train", TRAIN_MODELS, (f"--on {BIG}", "--on 2x8xA100-SXM-80GB"), runtimes)
    yield from cross("train", TRAIN_MODELS, (f"--on {BIG}",), runtimes, (long,))
    yield from cross("train qwen3-0.6b --on rtx-4090", flag("runtime", catalogue.RUNTIMES))
    for runtime, version in (
        ("fsdp2", "0.2"),
        ("fsdp2", "0.1"),
        ("fsdp2", "2024"),
        ("megatron", "'core 0.14, TE 2.11'"),
        ("megatron", "'core 0.8'"),
    ):
        yield f"tonnage train llama-3.1-8b --on {BIG} --runtime {runtime} --runtime-version {version} {PLAIN}"


def train_methods() -> Iterator[str]:
    from tonnage.runtimes.parts.base import METHODS

    yield from cross(f"train llama-3.1-8b --on {BIG}", flag("runtime", catalogue.RUNTIMES), flag("method", METHODS))
    yield from cross(
        "train qwen3-8b --on rtx-4090",
        flag("base-weights", ("nf4", "nf4-double", "fp4", "int8")),
        flag("method", ("qlora --lora-rank 32", "qlora --lora-targets q_proj,v_proj")),
    )
    yield from cross(
        "train llama-3.1-8b --on rtx-4090 --method qlora --runtime",
        ("transformers --liger --packing", "unsloth --packing", "transformers --no-upcast-base"),
    )


def train_objectives() -> Iterator[str]:
    from tonnage.estimate.step.objective import OBJECTIVES

    names = [f"{name} --teacher llama-3.1-70b" if name == "distillation" else name for name in OBJECTIVES]
    yield from cross(
        f"train llama-3.1-8b --on {BIG} --recompute full",
        flag("runtime", ("transformers", "ddp", "fsdp2", "deepspeed")),
        flag("objective", names),
    )
    yield from cross(f"train qwen3-8b --on {BIG} --method lora --runtime transformers", flag("objective", names))
    yield from cross(f"train qwen3-0.6b --on {BIG} --objective grpo --engine-memory-share", ("0.2", "0.4"))


def train_parallel() -> Iterator[str]:
    sizes = (
        "--tp 8",
        "--pp 4 --tp 2",
        "--cp 2",
        "--pp 2 --vpp 2 --tp 2",
        "--tp 4 --no-sequence-parallel",
        "--zero 0",
        "--zero 1",
        "--zero 2",
        "--zero 3",
        "--pp 4 --gbs 64",
        "--dp 4 --tp 2 --num-microbatches 8",
    )
    yield from cross(
        f"train llama-3.1-8b --on {BIG}", flag("runtime", ("megatron", "fsdp2", "nanotron", "deepspeed")), sizes
    )
    experts = (
        "--ep 8",
        "--ep 4 --tp 2",
        "--ep 8 --pp 2 --recompute full",
        "--ep 8 --etp 1 --pp 4",
        "--ep 2 --tp 4 --expert-imbalance 1.4",
    )
    yield from cross(
        "train", TRAIN_MODELS[1:], ("--on 4x8xH100-SXM-80GB",), flag("runtime", ("megatron", "fsdp2")), experts
    )
    yield from cross(
        "train deepseek-v3 --on 32x8xH800-SXM-80GB --runtime megatron --pp 16 --ep 16 --recompute",
        ("full", "selective --recompute-modules mla_up_proj,mlp"),
    )
    schedules = ("gpipe", "1f1b", "interleaved-1f1b --vpp 2", "interleaved-zero-bubble --vpp 2", "zbv", "dualpipev")
    yield from cross(
        f"train llama-3.1-8b --on {BIG} --pp 4 --gbs 32",
        flag("runtime", ("megatron", "fsdp2")),
        flag("pipeline-schedule", schedules),
    )


def train_offload() -> Iterator[str]:
    places = [" ".join(words) for words in cases.TRAINING_OFFLOADS if words]
    yield from cross(f"train llama-3.1-8b --on {BIG}", flag("runtime", catalogue.RUNTIMES), places)
    yield from cross("train mixtral-8x7b --on 2x8xA100-SXM-80GB --runtime deepspeed --zero-stage 3", places)


def train_precisions() -> Iterator[str]:
    yield from cross(
        f"train llama-3.1-8b --on {BIG}", flag("runtime", ("megatron", "fsdp2")), flag("precision", catalogue.RECIPES)
    )
    yield from cross(
        "train qwen3-0.6b --on rtx-4090",
        flag("runtime", ("transformers",)),
        flag("optimizer", catalogue.OPTIMIZER_NAMES),
    )
    yield from cross(
        f"train llama-3.1-8b --on {BIG}",
        flag("runtime", ("ddp", "deepspeed", "fsdp2")),
        flag("optimizer", ("adamw-8bit", "adafactor", "muon", "sgd-momentum")),
    )


def options(verb: str, head: str, skip: frozenset[str] = frozenset(), words: tuple[str, ...] = ()) -> Iterator[str]:
    """Each option of a verb, in a question of its own."""
    for choice in choices_of(verb, words):
        if choice.flag in skip:
            continue
        for value in _values(choice):
            yield f"tonnage {head} {' '.join((choice.flag, *value, *choice.companions))} {PLAIN}"


def _values(choice: Choice) -> list[tuple[str, ...]]:
    """A usual value: the second of those that are likely, as the first is often the least."""
    if not choice.values:
        return [()]
    random = Random(choice.flag)
    value = random.choice(choice.values[: max(3, len(choice.values) // 2)])
    return [(f"'{value}'" if " " in value or "|" in value else value,)]


def train_options() -> Iterator[str]:
    yield from options(
        "train", f"train llama-3.1-8b --on {BIG}", frozenset({"--runtime", "--precision", "--optimizer"})
    )
    yield (
        "tonnage train --hidden-size 4096 --num-layers 32 --num-attention-heads 32 --vocab-size 128256 --on 4090 "
        "--json --no-advice"
    )
    yield f"tonnage train gpt2 --on t4 --edge A100-SXM-80GB {PLAIN}"
    yield f"tonnage train config.json --on 8xh100 --seq 1024 {PLAIN}"
    yield f"tonnage train llama-3.1-8b --family qwen2 --on 8xh100 {PLAIN}"


def train_runs() -> Iterator[str]:
    runs = (
        "--tokens 1T",
        "--tokens 100B --deadline 30d",
        "--tokens 100B --deadline 1d",
        "--tokens 100B --budget 10000",
        "--epochs 3 --dataset-tokens 1B",
        "--max-steps 1000",
        "--tokens 1T --accelerator-mtbf 50000h --checkpoint-interval 30min --storage-bandwidth 20GB/s",
        "--tokens 1T --checkpoint-seconds 60 --restart-seconds 10min --accelerator-mtbf 5y",
        "--tokens 1T --keep-checkpoints 5 --text-bytes-per-token 4",
        (
            "--tokens 15B --machine-usd 250000 --electricity-usd-per-kwh 0.1 --network-share 0.1 "
            "--staff-usd-per-month 1000"
        ),
        "--tokens 100B --grid Norway --pue 1.1",
        "--tokens 100B --price-kind spot",
        "--tokens 100B --provider AWS --price-kind reserved",
        "--tokens 100B --budget-accelerator-hours 1000",
        "--tokens 100B --price-per-accelerator-hour 2 --straggler-slowdown 1.3 --straggler-share 0.1",
    )
    yield from cross("train llama-3.1-8b --on", (BIG, "16x8xH100-SXM-80GB"), runs)
    yield from cross(
        "train deepseek-v3 --on 256x8xH800-SXM-80GB --runtime megatron --pp 16 --ep 64 --recompute full", runs[:3]
    )


@cache
def families() -> dict[str, str]:
    """Family of models -> one of the catalogue."""
    found: dict[str, str] = {}
    for name in catalogue.models():
        found.setdefault(read(name).family, name)
    return found


@cache
def generations() -> dict[tuple[str, str], str]:
    """Vendor and generation -> an accelerator of it."""
    found: dict[tuple[str, str], str] = {}
    for name in sorted(accelerator_names()):
        made = accelerator(name)
        found.setdefault((made.vendor, made.generation), name)
    return found


def models() -> Iterator[str]:
    yield from cross("models", [*families().values()][::2], tail="--json")
    yield "tonnage models"
    yield "tonnage models --json"
    yield from cross("models", ("mixtral-8x7b", "config.json", "meta-llama/Llama-3.1-8B"), tail="")


def train_models() -> Iterator[str]:
    yield from cross("train", families().values(), ("--on 4x8xH100-SXM-80GB",))


def serve_models() -> Iterator[str]:
    yield from cross(
        "serve", families().values(), (f"--on {BIG} --concurrency 8 --input-tokens 1000 --output-tokens 200",)
    )


def _machines() -> list[str]:
    return [f"{catalogue.COUNTS[at % len(catalogue.COUNTS)]}{name}" for at, name in enumerate(generations().values())]


def train_machines() -> Iterator[str]:
    yield from cross("train llama-3.2-1b --on", [*_machines(), *sorted(node_names())[::9]])


def serve_machines() -> Iterator[str]:
    yield from cross(
        "serve llama-3.2-1b --on",
        [*_machines(), *sorted(node_names())[3::9]],
        ("--concurrency 4 --input-tokens 500 --output-tokens 100",),
    )


def accelerators() -> Iterator[str]:
    yield from cross(
        "accelerators", [*generations().values(), *sorted(node_names())[::8], "h100:1g.10gb"], tail="--json"
    )
    yield from cross("accelerators", ("", "h100", "dgx-h100", "--json"), tail="")


def serve_engines() -> Iterator[str]:
    forms = ("", "--concurrency 16 --input-tokens 1000 --output-tokens 200")
    yield from cross("serve", SERVE_MODELS, (f"--on {BIG}",), flag("engine", catalogue.ENGINES), forms)
    yield from cross("serve qwen3-8b --on rtx-4090 --context 8k", flag("engine", catalogue.ENGINES))
    versions = [f"vllm --engine-version {each}" for each in ("0.21", "0.17", "0.11", "0.8.5", "0.6.4")]
    versions += [f"sglang --engine-version {each}" for each in ("0.4", "0.5.0")]
    versions += [f"tensorrt-llm --engine-version {each}" for each in ("0.12", "1.0")]
    yield from cross(f"serve llama-3.1-8b --on {BIG} --concurrency 16 --tp 2", flag("engine", versions))


def serve_weights() -> Iterator[str]:
    engines = ("vllm", "sglang", "tensorrt-llm", "llama.cpp")
    quantized = ("awq", "fp8", "nvfp4", "q4_k_m")
    blocks = [name for name in catalogue.WEIGHTS if name.startswith(("q", "iq", "mxfp4", "f"))]
    yield from cross("serve llama-3.1-8b --on h100 --engine vllm", flag("weights", (*catalogue.WEIGHTS, "awq", "gptq")))
    yield from cross("serve llama-3.1-8b --on h100 --engine llama.cpp", flag("weights", blocks))
    yield from cross("serve deepseek-v3 --on 8xH200-SXM-141GB", flag("engine", engines), flag("weights", quantized))
    yield from cross(
        "serve llama-3.1-8b --on h100",
        flag("engine", engines),
        flag("kv-cache", ("auto", "bf16", "fp8", "fp8_e5m2", "nvfp4", "int8", "int4")),
    )


def serve_load() -> Iterator[str]:
    lengths = "--input-tokens 2000 --output-tokens 400"
    loads = (
        "--concurrency 64 --ttft 1s --tpot 25ms",
        "--request-rate 2.5",
        "--request-rate 50",
        "--concurrency 16 --cached-tokens 1000",
        "--concurrency 16 --draft-tokens 3 --acceptance 0.7",
        "--concurrency 16 --spread 0.3",
        "--concurrency 256",
        "--concurrency 16 --simulate --num-requests 100",
        "--request-rate 2 --simulate --num-requests 200 --seed 3",
        "--request-rate 4 --prefill-replicas 1 --tp 2",
        "--concurrency 16 --lora-adapters 4 --lora-rank 16",
    )
    yield from cross("serve", ("llama-3.1-8b", "qwen3-32b"), (f"--on {BIG} {lengths}",), loads)
    yield from cross(
        f"serve llama-3.1-70b --on {BIG} --weights fp8 {lengths}",
        flag("engine", ("vllm", "sglang", "tensorrt-llm")),
        loads[:4],
    )
    yield from cross(
        "serve qwen3-30b-a3b --on rtx-4090 --engine llama.cpp --weights q4_k_m",
        ("", "--layers-on-accelerator 20", "--expert-layers-on-host 20"),
    )
    yield (
        f"tonnage serve llama-3.1-8b --on {BIG} {lengths} --request-rate 0.5 --burstiness 0.5 --percentile p99 "
        f"--tpot 50ms {PLAIN}"
    )
    yield f"tonnage serve llama-3.1-8b --on h100 --simulate --trace requests.jsonl {PLAIN}"


def serve_options() -> Iterator[str]:
    yield from options("serve", f"serve llama-3.1-8b --on {BIG}", frozenset({"--engine", "--weights", "--kv-cache"}))


def serve_many() -> Iterator[str]:
    yield from cross(
        "serve llama-3.1-8b --on 2xh100 --frontier --points 4",
        ("", "--input-tokens 500 --output-tokens 200", "--weights fp8"),
        tail="--json",
    )
    yield "tonnage serve llama-3.1-8b --on 2xh100 --frontier --points 4"
    yield "tonnage serve --for-my-machine --on rtx-4060-ti --context 64k --json"


def maximum() -> Iterator[str]:
    heads = [(f"{what.name} --{what.verb}", "" if what.name == "model" else "llama-3.1-8b") for what in WHATS]
    for head, model in heads:
        extra = (
            "--engine llama.cpp --weights q4_k_m"
            if "layers --serve" in head
            else "--lora-rank 16"
            if "adapters" in head
            else "--method freeze"
            if head == "layers --train"
            else ""
        )
        name = "qwen3-30b-a3b" if head.startswith("expert-layers") else model
        for machine in (SMALL, "2xH100-SXM-80GB") if model else (SMALL,):
            yield f"tonnage max {head} {name} --on {machine} {extra} --json"
    yield from cross(
        "max users llama-3.1-8b --on h100",
        (
            "--ttft 1s --input-tokens 1000 --output-tokens 200",
            "--tpot 20ms --context 4k",
            "--engine sglang --context 8k",
        ),
        tail="--json",
    )
    yield from cross(
        "max",
        (
            "context llama-3.1-8b --on h100 --kv-cache fp8",
            "sequence llama-3.1-8b --on 8xh100 --runtime megatron --tp 8",
            "micro-batch qwen3-0.6b --on h100 --seq 2048",
            "context llama-3.1-70b --on rtx-4090",
        ),
        ("", "--json"),
        tail="",
    )


def compare() -> Iterator[str]:
    yield from cross(
        "compare",
        (
            "llama-3.1-8b --on h100,a100,rtx-4090 --context 8k,32k --weights own,fp8",
            "llama-3.1-8b,qwen3-8b --on h100,rtx-4090",
            "qwen3-32b --on h100,l40s,mi300x --count 2 --sort price",
            "llama-3.1-8b --on 8xh100 --concurrency 1,16,64 --input-tokens 1000 --output-tokens 200",
            "llama-3.1-8b --on h100 --engine vllm,sglang,tensorrt-llm",
            "llama-3.1-8b --on h100,b200 --kv-cache fp8,bf16",
            "llama-3.1-8b --train --on 8xh100 --sequence-parallel true,false --tokens 1T",
            "llama-3.1-8b --train --on 8xh100,8xa100 --runtime fsdp2,megatron",
            "qwen3-8b --train --on rtx-4090,h100 --method lora,qlora",
            "llama-3.1-8b --train --on 8xh100 --recompute none,selective,full --micro-batch-size 1,2",
            "llama-3.1-8b,mixtral-8x7b --train --on 4x8xh100 --zero-stage 1,3",
        ),
        ("", "--json"),
        tail="",
    )


def plan_training() -> Iterator[str]:
    yield from cross(
        "plan --train",
        (
            "llama-3.2-1b --on 2xH100-SXM-80GB --gbs 16",
            "qwen3-0.6b --on rtx-4090 --gbs 8 --runtime transformers",
            "llama-3.1-8b --on 8xH100-SXM-80GB --gbs 64 --runtime fsdp2 --top 2",
            "llama-3.2-1b --on 2xH100-SXM-80GB --gbs 16 --vary recompute=none,full --goal cheapest",
            "llama-3.1-8b --on 4xA100-SXM-80GB --gbs 16 --runtime fsdp2 --pareto",
            "llama-3.1-70b --on rtx-4090 --gbs 1 --runtime fsdp2",
            "llama-3.2-1b --on 2xH100-SXM-80GB --gbs 16 --tokens 10B --deadline 1d",
        ),
        ("--json",),
        tail="",
    )
    yield "tonnage plan --train llama-3.2-1b --on 2xH100-SXM-80GB --gbs 16 --runtime fsdp2 --top 2"


def plan_serving() -> Iterator[str]:
    yield from cross(
        "plan --serve",
        (
            "llama-3.1-8b --on h100,l4 --concurrency 8 --top 2",
            "llama-3.1-8b --on h100 --concurrency 64 --tpot 0.0001",
            "llama-3.1-8b --on H100-SXM-80GB,L40S --concurrency 64 --ttft 1s --tpot 50ms",
            "qwen3-8b --on rtx-4090 --users 1",
            "qwen3-8b --on rtx-4090,l40s --request-rate 2 --input-tokens 1000 --output-tokens 200",
            "llama-3.1-8b --on 4xMI300X --users 16 --pareto",
            "llama-3.1-8b --on h100 --users 16 --vary engine --goal latency",
            "mixtral-8x7b --on 2x2xH200 --users 200 --weights fp8",
            "llama-3.1-8b --on h100,l4 --concurrency 8 --budget 5",
        ),
        ("", "--json"),
        tail="",
    )


def plan_pool() -> Iterator[str]:
    yield from cross(
        "plan --inventory pool.yaml",
        (
            "",
            "llama-3.1-70b --split replicas",
            "llama-3.1-70b --split layers",
            "--join h100-new",
            "--leave l40s-1",
            "llama-3.1-8b --train --split layers",
        ),
        tail="--json",
    )
    yield "tonnage plan --inventory pool.yaml"


def sweep() -> Iterator[str]:
    yield from cross(
        "sweep", ("train_sweep.yaml", "serve_sweep.yaml", "missing.yaml"), tail="--out results --workers 1 --json"
    )


def rules() -> Iterator[str]:
    yield from cross("rules", [f"{letter}{number}" for letter in "ABCDE" for number in range(1, 9)], tail="--json")
    yield from cross(
        "rules",
        (
            "",
            "A6",
            "B --model mixtral-8x7b",
            "--like 'kv cache'",
            "A6 --formulas",
            "--model llama-3.1-8b --seq 8k --mbs 2 --tokens 1T --num-accelerators 64 --utilization 0.4",
        ),
        ("", "--json"),
        tail="",
    )


def explain() -> Iterator[str]:
    from tonnage.kernel.formula import FORMULAS
    from tonnage.kernel.glossary import SYMBOLS, WORDS
    from tonnage.kernel.references import references

    names = [
        *sorted(FORMULAS)[::9],
        *sorted(SYMBOLS)[::12],
        *sorted(WORDS)[::12],
        *sorted(references())[::25],
        "A6",
        "E5",
        "checkpoint",
        "power_share",
        "zero_stage",
        "gpu_memory_utilization",
    ]
    yield from cross("explain", names, tail="--json")
    yield from cross(
        "explain",
        ("", "--json", "kv_cache_bytes", "k", "checkpoint", "Pope2023", "kv_cache_bytes --formulas", "nothing_like_it"),
        tail="",
    )


def prices() -> Iterator[str]:
    yield from cross(
        "prices",
        (
            "",
            "h100",
            "a100",
            "mi300x",
            "rtx-4090",
            "h100 --kind spot",
            "h100 --provider AWS",
            "--kind reserved --term 12",
            "h100 --currency CNY --exchange-rate CNY=7.2",
            "h100 --as-of 2026-06-01",
            "--region us-east-1",
        ),
        tail="--json",
    )
    yield from cross("prices", ("", "h100", "--api"), tail="")


def validate() -> Iterator[str]:
    yield from cross("validate rows.yaml", ("", "--json", "--formulas", "--kind params"), tail="")


def errors() -> Iterator[str]:
    train, serve = f"train llama-3.1-8b --on {BIG}", f"serve llama-3.1-8b --on {BIG}"
    lines = [
        "",
        "nothing",
        "trian llama-3.1-8b",
        "train",
        "serve",
        "train llama-3.1-8b",
        "train no-such-model --on h100",
        "train llama-3.1-9b --on h100",
        "serve llama-3.1-8b --on h1000",
        "train llama-3.1-8b --on 0xh100",
        "serve llama-3.1-8b --on dgx-h200x",
        f"{train} --no-such-option",
        f"{train} --sequnce-length 4",
        f"{train} --zero-stage 4",
        f"{train} --micro-batch-size 0",
        f"{train} --micro-batch-size x",
        f"{train} --recompute some",
        f"{train} --runtime megatrn",
        f"{train} --optimizer adm",
        f"{train} --precision fp3",
        f"{train} --tp 3",
        f"{train} --tp 16",
        f"{train} --pp 5",
        f"{train} --ep 2",
        f"{train} --lora-rank 8",
        f"{train} --objective dpo --runtime megatron",
        f"{train} --teacher qwen3-8b",
        f"{train} --tokens -1",
        f"{train} --deadline 3",
        f"{train} --gbs 7 --mbs 2",
        f"{train} --runtime unsloth --tp 2",
        f"{train} --offload-parameters cpu",
        f"{train} --pipeline-schedule zbv",
        f"{train} --vpp 2",
        f"{train} --method freeze --trainable-layers 1000",
        f"{train} --runtime ddp --zero-stage 3",
        f"{train} --html",
        f"{train} --plot picture.doc",
        f"{train} --json --formulas",
        f"{train} --json --markdown",
        f"{train} --lang xx",
        f"{serve} --engine vlm",
        f"{serve} --engine-version 0.1",
        f"{serve} --weights q9",
        f"{serve} --kv-cache int3",
        f"{serve} --context 10M",
        f"{serve} --concurrency 0",
        f"{serve} --tp 3",
        f"{serve} --gpu-memory-utilization 2",
        f"{serve} --ttft 1",
        f"{serve} --ttft 1s --input-tokens 10",
        f"{serve} --layers-on-accelerator 3",
        f"{serve} --engine llama.cpp --tp 2 --ep 2",
        f"{serve} --draft-tokens 3",
        f"{serve} --simulate",
        f"{serve} --percentile p12",
        "serve bert-base-uncased --on h100",
        "serve llama-3.1-8b --on DCU-Z100 --concurrency 4 --input-tokens 5 --output-tokens 5",
        "train llama-3.1-8b --on BI-V100",
        "train t5-large --on 8xh100 --runtime megatron",
        "train mamba-2.8b-hf --on 8xh100 --tp 2 --runtime megatron",
        "max",
        "max nothing llama-3.1-8b --on h100",
        "max context --on h100",
        "max model --on h100 --hidden-size 3",
        "compare llama-3.1-8b",
        "compare llama-3.1-8b --on nothing",
        "plan",
        "plan --train --serve llama-3.1-8b --on h100",
        "plan --train llama-3.1-8b --on h100 --goal nothing",
        "plan --inventory missing.yaml",
        "plan --inventory rows.yaml",
        "sweep",
        "sweep rows.yaml --out results",
        "rules Z9",
        "explain zzz",
        "models zzz",
        "accelerators zzz",
        "prices zzz",
        "prices h100 --kind rent",
        "prices h100 --currency XXX",
        "validate",
        "validate missing.yaml",
        "validate pool.yaml",
        "train missing.json --on h100",
        "train rows.yaml --on h100",
        "serve broken.json --on h100",
        "train config.json --on 4xh100 --num-attention-heads 7",
    ]
    yield from (f"tonnage {line}".rstrip() for line in lines)
    yield from (f"tonnage {line} --json" for line in lines[3::4] if "--json" not in line)
    yield from (f"tonnage {line} --lang zh" for line in lines[5::3] if "--lang" not in line and line)


TEXTS = (
    "train llama-3.1-8b --on 8xH100-SXM-80GB --tokens 1T",
    "train llama-3.1-70b --on H100-SXM-80GB",
    "train mixtral-8x7b --on 2x8xA100-SXM-80GB --runtime deepspeed --zero-stage 3 --offload-optimizer cpu",
    "train qwen3-8b --on rtx-4090 --method qlora --sequence-length 2048",
    "train llama-3.1-8b --on 4xH100-SXM-80GB --runtime megatron --pp 4",
    "serve llama-3.1-8b --on 8xH100-SXM-80GB",
    "serve qwen3-32b --on rtx-4090 --weights Q4_K_M --context 8k",
    "serve qwen3-32b --on 2xH100-SXM-80GB --concurrency 16 --input-tokens 1000 --output-tokens 200 --ttft 1s",
    "serve llama-3.1-70b --on RTX-4090",
    "serve deepseek-v3 --on 8xH200-SXM-141GB --request-rate 2.5",
)


def texts() -> Iterator[str]:
    yield from cross("", TEXTS, ("", "--formulas --no-advice", "--markdown", "--html report.html", "--json"), tail="")
    yield from cross("", (TEXTS[0], TEXTS[6]), ("--markdown report.md", "--no-advice --formulas --markdown"), tail="")
    yield from cross(
        "",
        (
            "compare llama-3.1-8b --on h100,l4",
            "plan --serve llama-3.1-8b --on h100,l4 --concurrency 8",
            "max context llama-3.1-8b --on h100",
        ),
        ("--markdown", "--html report.html", "--csv rows.csv"),
        tail="",
    )


def chinese() -> Iterator[str]:
    yield from cross("", TEXTS, ("", "--markdown", "--formulas --no-advice"), tail="--lang zh")
    lines = (
        "",
        *(f"{verb} --help" for verb in VERBS if verb != "max"),
        "max context --help",
        "max sequence --help",
        "rules A6",
        "rules",
        "explain kv_cache_bytes",
        "explain",
        "models mixtral-8x7b",
        "accelerators h100",
        "prices h100",
        "compare llama-3.1-8b --on h100,l4",
        "max context llama-3.1-8b --on h100",
        "max users llama-3.1-8b --on rtx-4090",
        "plan --serve llama-3.1-8b --on h100,l4 --concurrency 8",
        "plan --train llama-3.2-1b --on 2xH100-SXM-80GB --gbs 16 --runtime fsdp2",
        "plan --inventory pool.yaml",
        "validate rows.yaml",
        f"{TEXTS[0]} --html report.html",
        "serve llama-3.1-8b --on 2xh100 --frontier --points 4",
    )
    yield from (f"tonnage {line} --lang zh".replace("  ", " ") for line in lines)


def descriptions() -> Iterator[str]:
    yield "tonnage --help"
    yield from cross("", VERBS, tail="--help")
    yield from cross("max", [f"{what.name} --{what.verb}" for what in WHATS], tail="--help")
    yield from cross(
        "",
        (
            "compare --serve",
            "compare --train",
            "plan --train",
            "plan --serve",
            "plan --inventory",
            "prices --api",
            "prices refresh",
        ),
        tail="--help",
    )
    yield from cross("", ("train", "serve", "plan --serve", "max users", "compare --train"), tail="--help-all")
    yield "tonnage --print-completion bash"
    yield "mcp tools/list"
    yield OPENAPI
    yield 'python __import__("tonnage.documents.schema").documents.schema.json_schema()["$defs"]'
    yield from (f"http GET /v1/options/{verb}" for verb in ("train", "serve", "plan", "max", "compare"))


def faces() -> dict[str, list[str]]:
    """The same questions to Python, HTTP and MCP."""
    asked = [*QUESTIONS, PASTED]
    body = [(each.verb, json.dumps(each.question, separators=(", ", ": "))) for each in asked]
    posted = {"train", "serve", "plan", "max", "compare", "rules", "explain"}
    http = [f"http POST /v1/{verb} {question}" for verb, question in body if verb in posted]
    http += [
        f"http GET {path}"
        for path in (
            "/v1/models",
            "/v1/models/mixtral-8x7b",
            "/v1/accelerators",
            "/v1/accelerators/h100:1g.10gb",
            "/v1/accelerators/dgx-h100",
            "/v1/prices/h100?kind=spot&as_of=2026-11-22",
            "/v1/formulas",
            "/v1/glossary",
            "/v1/server",
            "/v1/nothing",
            "/v1/models/nothing",
            "/health",
        )
    ]
    http += [
        'http POST /v1/train {"model": "llama-3.1-8b"}',
        'http POST /v1/train {"model": "llama-3.1-8b", "on": "h100", "zero_stge": 3}',
        'http POST /v1/train {"model": "llama-3.1-8b", "on": "h100", "zero_stage": "x"}',
        "http POST /v1/serve [1]",
        "http POST /v1/serve {",
        'http POST /v1/train {"model": 3, "on": "h100"}',
        'http POST /v1/launch {"model": "llama-3.1-8b", "on": "8xh100"}',
        'http POST /v1/timeline {"model": "llama-3.1-8b", "on": "8xh100"}',
        (
            'http POST /v1/batch {"verb": "train", "rows": [{"model": "llama-3.1-8b"}, {"model": "mixtral-8x7b", '
            '"mbs": 2}, {"tp": 3}], "options": {"on": "8xh100"}}'
        ),
        (
            'http POST /v1/batch {"verb": "serve", "columns": {"model": ["qwen3-8b", "qwen3-8b"], "users": [1, 64]}, '
            '"options": {"on": "h100"}}'
        ),
        'http POST /v1/serve {"model": "llama-3.1-8b", "on": "h100", "ttft": 1}',
        'http POST /v1/serve {"model": "nothing", "on": "h100"}',
    ]
    long = ("for_my_machine", '"what": "model"')  # HTTP is asked them
    tools = {"train", "serve", "plan", "max", "compare", "explain"}
    mcp = [
        f"mcp {verb} {question}"
        for verb, question in body
        if verb in tools and not any(words in question for words in long)
    ]
    mcp += [f'mcp {verb} {question[:-1]}, "detail": "full"}}' for verb, question in body[:3]]
    mcp += [
        'mcp train {"model": "llama-3.1-8b"}',
        'mcp train {"model": "x", "on": "h100"}',
        'mcp nothing {"model": "x"}',
        'mcp serve {"model": "llama-3.1-8b", "on": "h100", "detail": "some"}',
        'mcp serve {"model": "llama-3.1-8b", "on": "h100", "wieghts": "fp8"}',
    ]
    return {"face_http": http, "face_mcp": mcp, "face_python": list(python())}


def python() -> Iterator[str]:
    answers = (
        (
            'train("llama-3.1-8b", on="8xH100-SXM-80GB", tokens="15B", machine_usd=250_000, '
            "electricity_usd_per_kwh=0.1, network_share=0.1, staff_usd_per_month=1000)"
        ),
        'train("llama-3.1-8b", on="4xH100-SXM-80GB", pipeline_parallel_size=4, runtime="megatron")',
        'train("qwen3-8b", on="rtx-4090", method="qlora", advice=False)',
        'train("llama-3.1-70b", on="H100-SXM-80GB")',
        'serve("qwen3-32b", on="2xH100-SXM-80GB", concurrency=16, input_tokens=1000, output_tokens=200, ttft=1.0)',
        'serve("llama-3.1-70b", on="RTX-4090")',
        'plan_training("llama-3.1-8b", on="8xH100-SXM-80GB", runtime="fsdp2", tokens=1_000_000_000)',
        'plan_serving("llama-3.1-8b", on="H100-SXM-80GB,L40S", concurrency=64, ttft=1.0, tpot=0.05)',
        'compare(["qwen3-32b", "llama-3.1-8b"], ["H100-SXM-80GB", "L40S"], weights=[None, "fp8"])',
        'compare("llama-3.1-8b", ["8xH100-SXM-80GB", "8xL40S"], train=True)',
        'maximum("users", "qwen3-32b", on="2xH100-SXM-80GB", context=8192)',
        'maximum("context", "llama-3.1-70b", on="RTX-4090")',
        'frontier("qwen3-32b", on="2xH100-SXM-80GB", points=4)',
    )
    yield from (f"python tonnage.{answer}" for answer in answers)
    for form in (
        ".text()",
        ".text(formulas=True)",
        ".to_markdown()",
        ".to_html()",
        ".rows()",
        ".command",
        ".memory.to_rows()",
        ".fits",
        ".needed_bytes",
    ):
        yield from (f"python tonnage.{answers[at]}{form}" for at in (0, 4))
    yield from (f"python tonnage.{answers[at]}.text()" for at in (6, 7, 8, 10, 12))
    wrong = (
        'train("llama-3.1-8b", on="h100", sequnce_lenght=3)',
        'train("x", on="h100")',
        'train("llama-3.1-8b", on="8xh100", zero_stage=9)',
        'serve("llama-3.1-8b", on="h100", ttft=1.0)',
        'maximum("x", "llama-3.1-8b", on="h100")',
    )
    yield from (f"python tonnage.{call}" for call in wrong)
    yield 'python tonnage.read("llama-3.1-8b").family'
    yield 'python tonnage.train("config.json", on="8xh100", sequence_length=1024).needed_bytes'
    yield "python tonnage.__all__"
    yield (
        'python tonnage.train_many({"model": ["llama-3.1-8b"] * 4, "micro_batch_size": [1, 2, 4, 0]}, '
        'on="8xH100-SXM-80GB")'
    )
    yield (
        'python tonnage.serve_many([{"model": "qwen3-8b", "concurrency": n} for n in (1, 8, 64, 512, 4096)], on="h100")'
    )


def drawn() -> Iterator[str]:
    """Command lines as the brute force draws them."""
    count, number = 0, 0
    while count < 130:
        words = cases.random_command(Random(f"golden:{number}"))
        number += 1
        if words[0] == "api" or (words[0] == "plan" and "--json" not in words):
            continue
        count += 1
        import shlex

        yield f"tonnage {shlex.join(words)}"


def all_groups() -> dict[str, list[str]]:
    """Name -> its questions, each once."""
    makers = (
        train_runtimes,
        train_methods,
        train_objectives,
        train_parallel,
        train_offload,
        train_precisions,
        train_options,
        train_runs,
        train_models,
        train_machines,
        serve_engines,
        serve_weights,
        serve_load,
        serve_options,
        serve_models,
        serve_machines,
        serve_many,
        maximum,
        compare,
        plan_training,
        plan_serving,
        plan_pool,
        sweep,
        rules,
        explain,
        models,
        accelerators,
        prices,
        validate,
        errors,
        texts,
        chinese,
        descriptions,
        drawn,
    )
    found = {maker.__name__: [" ".join(line.split()) for line in maker()] for maker in makers}
    return {name: list(dict.fromkeys(lines)) for name, lines in {**found, **faces()}.items()}


def main() -> None:
    for name, questions in all_groups().items():
        path = GOLDEN / f"{name}.txt"
        recorded = read_group(path) if path.exists() else {}
        write_group(path, {question: recorded.get(question, []) for question in questions})
        print(f"{name}: {len(questions)} questions")


if __name__ == "__main__":
    main()
