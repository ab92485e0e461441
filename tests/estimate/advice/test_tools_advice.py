"""Suggestions to a tool on the Trainer, and to runs that generate, keep the tool and run when they are pasted."""

import json

import pytest

from tonnage.cli import main
from tonnage.kernel.units import GIB

GRPO = "train qwen2.5-7b --on 8xH100-SXM-80GB --objective grpo"
UNSHARDED = [
    f"{GRPO} --runtime trl",
    f"{GRPO} --runtime llama-factory",
    "train internvl3-8b --on 8xH100-SXM-80GB --images 4 --runtime ms-swift --sequence-length 16384",
]
GENERATING = [*UNSHARDED[:1], f"{GRPO} --runtime ddp", f"{GRPO} --runtime ddp --num-microbatches 4"]


@pytest.fixture
def document(capsys):
    def ask(line):
        main([*line.split(), "--json"])
        return json.loads(capsys.readouterr().out)

    return ask


@pytest.mark.parametrize("line", UNSHARDED)
def test_a_tool_under_ddp_is_proposed_zero_by_its_one_option_before_another_runtime(document, line):
    moves = document(line)["advice"]
    assert moves[0]["change"] == {"zero_stage": 2}
    assert all("runtime" not in move["change"] for move in moves)


@pytest.mark.parametrize("line", GENERATING)
def test_each_move_of_a_run_that_generates_gives_its_figure_when_its_flags_are_pasted(document, line):
    moves = document(line)["advice"]
    assert moves
    for move in moves:
        followed = document(f"{line} {move['text']}")
        assert followed["verdict"]["needed_bytes"] == move["needed_bytes"], move["text"]


def test_zero_stage_3_alone_makes_the_run_of_trl_fit(document):
    assert document(f"{GRPO} --runtime trl --zero-stage 3")["verdict"]["needed_bytes"] < 30 * GIB


@pytest.mark.parametrize("tool", ["verl", "rllm", "skyrl", "easyr1"])
def test_a_tool_on_fsdp_that_cuts_no_matrices_is_refused_and_never_proposed_sizes_that_do(tool, document, capsys):
    line = f"train deepseek-v3 --on 64xH100-SXM-80GB --objective grpo --runtime {tool}"
    cut = ("tensor_parallel_size", "pipeline_parallel_size", "expert_parallel_size", "expert_tensor_parallel_size")
    assert not [move for move in document(line)["advice"] if not move["change"].keys().isdisjoint(cut)]
    for option in cut:
        assert main([*line.split(), f"--{option.replace('_', '-')}", "8"]) == 64
        assert "Nearest: --runtime megatron" in capsys.readouterr().err
    main(["plan", "mixtral-8x7b", "--train", *line.split()[2:], "--micro-batch-size", "4", "--json"])
    best = json.loads(capsys.readouterr().out)["plans"][0]["options"]
    assert all(best.get(option, 1) == 1 for option in cut)
