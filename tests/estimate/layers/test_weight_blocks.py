"""FP8 in blocks of 128 x 128: engines refuse tensor sizes that cut a matrix through a block, so no answer, default
or suggestion has one.
"""

import pytest

import tonnage
from tonnage.kernel.errors import InvalidPlan

QWEN = {"on": "8xH100-SXM-80GB", "weights": "fp8-block", "context": 8192}  # experts of 1,536: 192 on each of 8 ranks


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_experts_cut_through_a_block_are_refused_with_what_the_engine_takes(engine):
    with pytest.raises(
        InvalidPlan,
        match=(
            r"into 192 a rank, which is no multiple of its blocks of 128. Got 8. Nearest: 4, or "
            r"expert_parallel_size 8"
        ),
    ):
        tonnage.serve("qwen3-235b-a22b", engine=engine, tensor_parallel_size=8, **QWEN)


def test_expert_parallelism_keeps_experts_whole():
    answer = tonnage.serve("qwen3-235b-a22b", tensor_parallel_size=8, expert_parallel_size=8, **QWEN)
    assert answer.fits


def test_the_default_is_a_size_that_the_engine_loads():
    answer = tonnage.serve("qwen3-235b-a22b", **QWEN)
    assert answer.question["tensor_parallel_size"].value == 4
    checkpoint = tonnage.serve(
        "minimax-m2", on="8xH200-SXM-141GB", context=8192
    )  # FP8 blocks as published, experts of 1,536
    assert checkpoint.question["tensor_parallel_size"].value == 4


@pytest.mark.parametrize(("model", "ranks"), [("deepseek-v3", 16), ("kimi-k2-instruct", 16), ("minimax-m2", 4)])
def test_published_layouts_stay_valid(model, ranks):
    tonnage.serve(model, on="2x8xH200-SXM-141GB", tensor_parallel_size=ranks, context=4096)


def test_weights_without_blocks_of_rows_are_not_refused():
    for weights in (None, "fp8", "awq"):
        tonnage.serve("qwen3-235b-a22b", **{**QWEN, "weights": weights}, tensor_parallel_size=8)


def test_no_suggestion_cuts_a_block():
    answer = tonnage.serve("minimax-m2", on="4xH100-SXM-80GB", context=131072, concurrency=32)
    assert answer.advice
    for move in answer.advice:
        tensor = move.change.get("tensor_parallel_size", answer.question["tensor_parallel_size"].value)
        experts = move.change.get("expert_parallel_size", 1)
        assert 1536 * experts / tensor % 128 == 0, move.text


def test_plans_have_sizes_that_the_engine_loads():
    found = tonnage.plan_serving("minimax-m2", on="8xH200-SXM-141GB", concurrency=8, weights="fp8-block", top=20)
    plans = found.to_dict()["plans"]
    assert plans
    for plan in plans:
        ranks = plan["tensor_parallel_size"] * plan["attention_data_parallel_size"] / plan["expert_parallel_size"]
        assert 1536 / ranks % 128 == 0, plan
