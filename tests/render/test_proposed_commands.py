"""The commands that a short text proposes keep all that was asked, and run."""

import json
import shlex

import pytest

import tonnage.cli
from tonnage.interchange.formats import formats
from tonnage.runtimes import training_runtime, training_runtimes
from tonnage.runtimes.parts.tool import WRITTEN_OBJECTIVES
from tonnage.runtimes.parts.tools import TOOLS

ASKED = (
    ("train qwen3-8b --on 4xH100 --objective grpo", "next"),
    (
        "train qwen3-8b --on 8xH100 --objective grpo --tokens 1B --deadline 12h --micro-batch-size 1 --recompute full",
        "try",
    ),
    ("train qwen3-8b --on 4xH100 --objective dpo --micro-batch-size 2", "next"),
    ("train qwen3-8b --on RTX-4090 --objective grpo", "try"),
    ("train llama-3.1-8b --on 8xH100 --tokens 1T --deadline 30d --lora-rank 16 --method lora", "try"),
    ("train llama-3.1-8b --on 8xH100 --tokens 1T --deadline 30d --price-per-accelerator-hour 2", "next"),
    ("train llama-3.1-8b --on 8xH100 --tokens 1T --budget 100k --runtime fsdp2 --reserve 2GB", "try"),
    ("train llama-3.1-8b --on 8xH100 --budget 1000", "next"),
    ("train llama-3.1-8b --on 8xH100 --precision fp8-te --optimizer adamw-8bit", "next"),
    ("train llama-3.1-8b --on 8xH100 --float8 tensorwise --sequence-length 8k --zero-stage 2", "next"),
    ("train llama-3.1-8b --on 8xH100 --tensor-parallel-size 2 --sequence-length 16k --no-sequence-parallel", "next"),
    ("train llama-3.1-70b --on 2x4090 --method qlora --epochs 3 --dataset-tokens 10M", "try"),
    ("train llama-3.1-70b --on 8xH100 --max-steps 1000 --global-batch-size 64 --price-kind spot", "next"),
    ("train llama-3.1-8b --on 4090 --method lora --as-is", "try"),
    ("max lora-rank llama-3.1-8b --on 4090 --sequence-length 4096", "next"),
    ("max micro-batch qwen3-8b --on 4xH100 --objective grpo", "next"),
    ("plan llama-3.1-8b --train --on 8xH100 --tokens 1T --deadline 30d --runtime megatron", "try"),
    ("plan mixtral-8x7b --train --on 8xH100 --runtime megatron --precision bf16-mixed --tensor-parallel-size 4", "try"),
    ("plan llama-3.1-8b --on 8xH100 --tokens 1B --deadline 30d --runtime fsdp2 --top 1", "next"),
    ("train llama-3.1-8b --on 4xA100 --objective distillation --teacher llama-3.1-70b", "next"),
    ("train qwen3-8b --on 8xH100 --runtime axolotl --lora-rank 32 --method lora", "next"),
    ("serve gemma-3-12b --on rtx-4070-ti-super --engine koboldcpp --weights q4_k_m --context 8k", "next"),
    ("serve mixtral-8x7b --on 8xH100 --engine vllm --weights fp8 --kv-cache fp8 --tensor-parallel-size 4", "next"),
    ("serve qwen3-8b --on H100 --gpu-memory-utilization 0.8 --reserve 2GB --enforce-eager", "next"),
    ("serve llama-3.1-70b --on 8xH100 --users 64 --ttft 300ms --tpot 18ms --kv-cache fp8 --engine vllm", "try"),
    ("serve qwen3-32b --on rtx-4090 --users 4 --kv-cache fp8 --engine sglang --as-is", "next"),
    ("serve bge-m3 --on l4 --engine vllm --gpu-memory-utilization 0.8", "next"),
    ("plan qwen3-8b --serve --on H100 --engine sglang --kv-cache fp8 --users 8 --top 1", "next"),
)
# What is written by `tonnage export`, as its users name it.
WRITTEN = (
    "train qwen3-8b --on 8xH100 --runtime axolotl --method lora",
    "train qwen3-8b --on 8xH100 --runtime llama-factory --method qlora",
    "train llama-3.1-8b --on 8xH100 --runtime torchtitan --recompute full",
    "train llama-3.1-8b --on 8xH100 --runtime deepspeed --zero-stage 2",
    "train llama-3.1-70b --on 8x8xH100 --runtime megatron --tensor-parallel-size 8 --pipeline-parallel-size 4",
    "train llama-3.1-70b --on 8x8xH100 --runtime megatron-lm --tensor-parallel-size 8 --pipeline-parallel-size 4",
    "train qwen3-8b --on 64xH100 --runtime verl --objective grpo --prompts-per-step 512",
    "train qwen3-8b --on 8xH100 --runtime openrlhf --objective grpo",
)
# The verb's own, or what a change may move.
ASIDE = {"--on", "--as-is", "--train", "--serve", "--top", "--method", "--recompute", "--zero-stage"}


def run(words, capsys):
    status = tonnage.cli.main(list(words))
    return status, capsys.readouterr().out


def proposed(text, label):
    """The command behind a label of the short text, without `tonnage`."""
    lines = text.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith(f"{label} "))
    command = lines[at].removeprefix(label)
    while command.endswith("\\"):
        at += 1
        command = command[:-1] + lines[at]
    return shlex.split(command)[1:]


@pytest.mark.parametrize(("asked", "label"), ASKED, ids=[asked for asked, _ in ASKED])
def test_a_proposed_command_keeps_what_was_asked_and_runs(asked, label, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    words = shlex.split(asked)
    _, text = run(words, capsys)
    command = proposed(text, label)
    assert {word for word in words if word.startswith("--")} - ASIDE <= set(command)
    fewest = ("--top", "1") if command[0] == "plan" else ()
    status, document = run([*command, *fewest, "--json"], capsys)
    assert status in (0, 2, 3, 4)
    assert json.loads(document)["schema"] == "tonnage/2"


def test_sizes_that_miss_a_target_are_searched_in_the_proposed_plan(capsys):
    asked = "serve llama-3.1-70b --on 8xH100 --users 64 --ttft 300ms --tpot 20ms --tensor-parallel-size 4"
    command = proposed(run(shlex.split(asked), capsys)[1], "try")
    assert command[:2] == ["plan", "--serve"] and "--tensor-parallel-size" not in command


def test_the_model_that_fits_is_asked_about_with_its_own_weights_and_engine(capsys):
    words = shlex.split("serve gemma-3-12b --on rtx-4070-ti-super --engine koboldcpp --weights q4_k_m --context 8k")
    status, text = run(proposed(run(words, capsys)[1], "next"), capsys)
    assert status == 0 and text.startswith("1 user")


@pytest.mark.parametrize("asked", WRITTEN)
def test_a_run_whose_tool_is_written_says_how_it_starts(asked, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    words = shlex.split(asked)
    _, text = run(words, capsys)
    command = proposed(text, "start")
    assert command[0] == "export" and set(words) - set(command) <= {"8xH100", "64xH100", "8x8xH100"}
    status, text = run(command, capsys)
    assert status == 0 and text


def test_every_format_that_starts_training_is_named_by_its_tool_or_its_runtime():
    of_tools = {tool.export for tool in TOOLS.values()} | {
        training_runtime(name).export for name in training_runtimes()
    }
    starts = {form.name for form in formats() if form.write and "train" in form.verbs}
    assert of_tools - {""} == starts - {"accelerate", "kubernetes", "sbatch", "skypilot"}  # these carry another's


def test_what_is_proposed_for_a_missed_deadline_meets_it(capsys):
    _, text = run(shlex.split("train llama-3.1-8b --on 8xH100 --tokens 1T --deadline 30d"), capsys)
    status, text = run(proposed(text, "try"), capsys)
    assert status == 0 and "meets the deadline" in " ".join(text.split())


@pytest.mark.parametrize("tool", [*WRITTEN_OBJECTIVES, "deepspeed"])
def test_a_run_says_how_it_starts_where_its_objective_is_written_and_nowhere_else(tool, capsys):
    for objective in ("sft", "dpo", "online-dpo", "grpo", "dapo", "rloo", "ppo"):
        words = ["train", "qwen3-0.6b", "--on", "8xH100", "--runtime", tool, "--objective", objective]
        _, text = run(words, capsys)
        is_written = tonnage.cli.main(["export", tool, *words]) == 0
        capsys.readouterr()
        assert ("\nstart " in text) == is_written, objective
