"""Tools of reinforcement learning by name: what trains and generates, where, and whose values they are.

Sources: the arguments and configs that `runtimes/parts/rl_tools.py` names, read 2026-11-29.
"""

import pytest

import tonnage
from every_row import every_row
from tonnage.kernel.errors import InvalidInput, UnknownName
from tonnage.models import read
from tonnage.runtimes.parts.rl_tools import RL_TOOLS
from tonnage.runtimes.parts.tools import tool_named
from tonnage.search.compare import compare
from tonnage.search.compare.axes import axis

MODEL = "qwen2.5-1.5b"
SAID = {"objective": "grpo", "max_completion_length": 600, "prompt_length": 100, "mean_completion_length": 300}


def train(runtime, on="8xh100", **options):
    return tonnage.train(MODEL, on=on, runtime=runtime, as_is=True, advice=False, **{**SAID, **options})


def value(answer, name):
    return answer.question[name].value


@every_row(
    "name, runtime, engine, ranks, apart, late, recompute",
    [
        ("slime", "megatron", "sglang", 1, 4, 0, "full"),
        ("miles", "megatron", "sglang", 1, 4, 0, "full"),
        ("areal", "fsdp2", "sglang", 1, 4, 2, "full"),
        ("prime-rl", "fsdp2", "vllm", 1, 4, 1, "none"),
        ("skyrl", "fsdp2", "vllm", 1, 0, 0, "full"),
        ("roll", "megatron", "vllm", 1, 0, 0, "full"),
        ("open-instruct", "deepspeed", "vllm", 1, 4, 1, "full"),
        ("verl", "fsdp2", "vllm", 2, 0, 0, "full"),
        ("nemo-rl", "fsdp2", "vllm", 1, 0, 0, "none"),
        ("open-r1", "deepspeed", "vllm", 1, 0, 0, "full"),
        ("rllm", "fsdp2", "vllm", 2, 0, 0, "full"),
        ("agent-r1", "fsdp2", "vllm", 2, 0, 0, "full"),
        ("easyr1", "fsdp2", "vllm", 2, 0, 0, "full"),
        ("rlinf", "megatron", "sglang", 1, 0, 0, "full"),
        ("torchforge", "fsdp2", "vllm", 2, 4, 1, "selective-op"),
    ],
)
def test_a_tool_trains_and_generates_with_its_own_defaults(name, runtime, engine, ranks, apart, late, recompute):
    answer = train(name)
    names = ("runtime", "rollout_engine", "rollout_tensor_parallel_size", "rollout_accelerators", "async_steps")
    assert [value(answer, each) for each in names] == [runtime, engine, ranks, apart, late]
    assert value(answer, "recompute") == recompute
    assert answer.question["runtime"].why == tool_named(name).shown


@pytest.mark.parametrize("tool", RL_TOOLS, ids=lambda tool: tool.name)
def test_every_tool_says_where_its_values_stand(tool):
    assert tool.source and tool.rollout_source and tool.rollout_ranks


def test_a_tool_that_generates_apart_divides_the_machine_and_says_so():
    answer = train("slime", on="2x8xh100")
    assert (value(answer, "on"), value(answer, "rollout_accelerators")) == ("8xH100-SXM-80GB", 8)
    assert answer.warnings[0].startswith("of 2x8xH100-SXM-80GB, 8 train and 8 generate")
    assert "16 GPUs: 8 train, 8 generate" in " ".join(str(answer).split())


def test_the_parts_of_a_divided_machine_asked_by_themselves_are_the_same_answer():
    divided, said = train("areal"), train("areal", on="4xh100", rollout_accelerators=4)
    assert divided.needed_bytes == said.needed_bytes
    assert divided.step_time.value == said.step_time.value
    assert divided.bill.cost.value == said.bill.cost.value


def test_with_none_that_generate_apart_a_tool_takes_turns():
    answer = train("areal", rollout_accelerators=0)
    assert (value(answer, "on"), value(answer, "async_steps")) == ("8xH100-SXM-80GB", 0)


def test_sizes_that_need_the_whole_machine_keep_it():
    answer = train("slime", tensor_parallel_size=2, data_parallel_size=4)
    assert (value(answer, "on"), value(answer, "rollout_accelerators")) == ("8xH100-SXM-80GB", 0)


def test_a_comparison_counts_and_pays_a_divided_machine_once():
    asked = {"model": MODEL, "on": "8xH100-SXM-80GB", "runtime": "slime", **SAID, "price_per_accelerator_hour": 2.0}
    axes = [axis(name, [value]) for name, value in asked.items()]
    row = compare("train", axes, lambda name, _: read(name), of_model=set(), sort="", show=[]).cells[0].row
    assert (row["accelerators"], row["usd_per_hour"]) == (8, pytest.approx(16))


def test_steps_that_overlap_divide_the_machine_without_a_tool():
    answer = train("fsdp2", async_steps=1)
    assert (value(answer, "on"), value(answer, "rollout_accelerators")) == ("4xH100-SXM-80GB", 4)


def test_what_is_said_is_stronger_than_a_tools_engine():
    assert value(train("slime", rollout_engine="vllm"), "rollout_engine") == "vllm"


def test_a_reference_model_comes_with_tools_that_keep_one():
    """SkyRL, config.py: use_kl_loss True, kl_loss_coef 0.001; veRL: use_kl_loss False."""
    assert "reference model" in value(train("skyrl"), "models_beside")
    assert value(train("verl"), "models_beside") == "none"


def test_a_version_of_the_tool_is_the_one_that_it_is_estimated_as():
    assert train("verl", runtime_version="0.9").needed_bytes == train("verl").needed_bytes
    with pytest.raises(InvalidInput, match=r"veRL is estimated as of its version 0\.9\.1"):
        train("verl", runtime_version="0.7")
    with pytest.raises(InvalidInput, match="NeMo-RL is estimated as of one state of its source"):
        train("nemo-rl", runtime_version="0.4")


def test_a_version_of_the_runtime_is_still_taken_by_its_whole_name():
    assert value(train("verl", runtime_version="torchtitan 0.2.0"), "runtime_version") == "torchtitan 0.2.0"


def test_an_unknown_name_lists_the_tools_of_reinforcement_learning():
    with pytest.raises(UnknownName, match=r"Tools of reinforcement learning .*: agent-r1, areal.*slime"):
        train("zzzzz")
    with pytest.raises(UnknownName, match="Did you mean 'areal'"):
        train("areall")


def test_a_search_of_a_tool_whose_steps_overlap_tries_engines_of_their_own_alone():
    """AReaL, examples/math/gsm8k_grpo.yaml: max_head_offpolicyness 2."""
    asked = {**SAID, "global_batch_size": 64, "top": 3}
    plans = tonnage.plan_training(MODEL, "4xh100", runtime="areal", **asked).plans
    assert plans and all(plan.answer.question["rollout_accelerators"].value > 0 for plan in plans)
    assert {plan.answer.question["async_steps"].value for plan in plans} == {2}


def test_a_step_whose_prompts_nobody_says_has_about_1_024_completions_of_whole_prompts():
    for on, completions, prompts in (("8xh100", 8, 128), ("8xh100", 16, 64), ("3x8xh100", 7, 144), ("h100", 8, 128)):
        assert value(train(None, on=on, num_generations=completions), "prompts_per_step") == prompts
    assert value(train("ms-swift"), "prompts_per_step") == 2  # its own 16 sequences a step
    assert value(train(None, num_microbatches=2), "prompts_per_step") == 2
    assert value(train(None, global_batch_size=64), "prompts_per_step") == 8
    assert value(train(None, prompts_per_step=4), "prompts_per_step") == 4
