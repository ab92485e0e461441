"""Companion options apply only beside the values that they belong to, in `plan`, `compare`, `sweep` and `max` alike."""

import pickle

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import tonnage
from tonnage.cli import main
from tonnage.estimate.answer.companions import ask_applicable
from tonnage.kernel.errors import InvalidInput, InvalidPlan, MissingDatum, NotApplicable, TonnageError

ON = "4xA100-SXM-80GB"
SIZES = {
    "runtime": "fsdp2",
    "global_batch_size": 32,
    "sequence_length": 2048,
    "tensor_parallel_size": 1,
    "context_parallel_size": 1,
    "pipeline_parallel_size": 1,
    "recompute": "full",
}
# A varied option, and for each of its values the companions that belong to it.
BELONGING = {
    "offload_optimizer": {"none": {}, "cpu": {"host_update_bandwidth": "20GB/s"}},
    "method": {"full": {}, "lora": {"lora_rank": 16}, "dora": {"lora_rank": 16}, "freeze": {"trainable_layers": 4}},
    "runtime": {
        "fsdp2": {"replicate_size": 2},
        "megatron": {"cuda_graph": "full"},
        "deepspeed": {"reduce_bucket_size": 100_000_000},
    },
    "float8": {"none": {}, "tensorwise": {"float8_all_gather": True}},
    "objective": {"sft": {}, "dpo": {}, "grpo": {"engine_memory_share": 0.2}},
}


def best_seconds(options):
    """Seconds of a step of the best plan; None where there is no plan."""
    try:
        found = tonnage.plan_training("llama-3.2-1b", ON, top=1, **options)
    except MissingDatum:  # no step of these objectives has a time
        return None
    return found.plans[0].answer.step_time.value if found.plans else None


def asked(owner, values):
    """What a user says who tries these values, with the companions of all of them."""
    companions = {name: value for each in values for name, value in BELONGING[owner][each].items()}
    fixed = {name: value for name, value in SIZES.items() if name != owner}
    if owner == "runtime":
        fixed["recompute"] = "none"
    if owner == "objective":
        fixed["runtime"] = "transformers"
    return fixed | companions | {"vary": {owner: list(values)}}


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_adding_a_value_to_a_variation_never_makes_the_best_plan_worse(data):
    owner = data.draw(st.sampled_from(sorted(BELONGING)))
    every = sorted(BELONGING[owner])
    values = data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=len(every) - 1, unique=True))
    more = data.draw(st.sampled_from([each for each in every if each not in values]))
    before = best_seconds(asked(owner, values))
    assume(before is not None)
    assert best_seconds(asked(owner, [*values, more])) <= before * (1 + 1e-9)


@pytest.mark.parametrize("owner", sorted(BELONGING))
def test_a_variation_finds_the_best_of_its_values_asked_alone(owner):
    alone = {value: best_seconds(asked(owner, [value])) for value in BELONGING[owner]}
    together = best_seconds(asked(owner, list(BELONGING[owner])))
    assert together == pytest.approx(min(each for each in alone.values() if each is not None), rel=1e-3)


def test_the_reported_plan_is_found_and_is_the_same_asked_alone(capsys):
    options = {"runtime": "fsdp2", "global_batch_size": 32, "host_update_bandwidth": "20GB/s"}
    found = tonnage.plan_training("llama-3.1-8b", ON, vary={"offload_optimizer": ["none", "cpu"]}, top=1, **options)
    best = found.plans[0]
    assert best.options["offload_optimizer"] == "none" and "host_update_bandwidth" not in best.options
    assert best.answer.step_time.value == pytest.approx(8.73, abs=0.01)
    words = found.to_dict()["plans"][0]["text"].split()[1:]
    assert main([*words, "--json"]) in (0, 2)
    assert "host_update_bandwidth" not in capsys.readouterr().out


def test_a_companion_that_is_varied_too_gives_each_plan_once():
    vary = {"offload_optimizer": ["none", "cpu"], "host_update_bandwidth": ["20GB/s", "40GB/s"]}
    found = tonnage.plan_training("llama-3.2-1b", ON, vary=vary, top=50, **SIZES)
    options = [tuple(sorted(each.options.items())) for each in found.plans]
    assert len(set(options)) == len(options)
    assert {
        each.options.get("host_update_bandwidth") for each in found.plans if each.options["offload_optimizer"] == "none"
    } == {None}


def test_a_companion_of_a_size_applies_where_the_size_is_above_one():
    fixed = {name: value for name, value in SIZES.items() if name != "tensor_parallel_size"} | {
        "recompute": "none",
        "runtime": "megatron",
    }
    vary = {"tensor_parallel_size": [1, 2]}
    found = tonnage.plan_training("llama-3.2-1b", ON, vary=vary, tp_comm_overlap=True, top=50, **fixed)
    assert {
        (each.options.get("tensor_parallel_size", 1), each.options.get("tp_comm_overlap")) for each in found.plans
    } == {(1, None), (2, True)}


@pytest.mark.parametrize(
    "ask",
    [
        lambda: tonnage.plan_training("llama-3.2-1b", ON, vary={"method": ["full", "freeze"]}, lora_rank=16, **SIZES),
        lambda: tonnage.compare("llama-3.2-1b", ON, train=True, method=["full", "freeze"], lora_rank=16),
    ],
)
def test_an_option_that_applies_to_no_value_is_refused(ask):
    with pytest.raises(InvalidPlan, match="lora_rank belongs to method lora"):
        ask()


def test_cells_of_a_comparison_have_their_own_companions_alone():
    made = tonnage.compare(
        "llama-3.2-1b",
        ON,
        train=True,
        offload_optimizer=["none", "cpu"],
        host_update_bandwidth="20GB/s",
        runtime="fsdp2",
    )
    assert [(row["verdict"], row["host_update_bandwidth"]) for row in made.rows()] == [
        ("fits", None),
        ("fits", "20GB/s"),
    ]
    made = tonnage.compare("llama-3.2-1b", "h100", engine=["vllm", "llama.cpp"], gpu_memory_utilization=[0.8, 0.9])
    assert [row["gpu_memory_utilization"] for row in made.rows()] == [0.8, 0.9, None, None]
    made = tonnage.compare("llama-3.1-8b,mixtral-8x7b-v0.1", "8xh100", expert_parallel_size=8, context=4096)
    assert [row["expert_parallel_size"] for row in made.rows()] == [1, 8] and {
        row["verdict"] for row in made.rows()
    } == {"fits"}


def test_adapters_are_what_users_ask_for_and_never_left_out():
    made = tonnage.compare("llama-3.2-1b", "h100", engine=["vllm", "transformers"], lora_adapters=4)
    assert [row["verdict"] for row in made.rows()] == ["fits", "cannot be"]


def test_the_largest_model_is_searched_with_the_options_of_each_model():
    with_experts = tonnage.maximum(
        "model", on="8xh100", expert_parallel_size=8, context=4096, weights="fp8", engine="vllm", advice=False
    )
    without = tonnage.maximum("model", on="8xh100", context=4096, weights="fp8", engine="vllm", advice=False)
    assert with_experts.value is not None and without.value is not None
    dense = tonnage.maximum(
        "model", on="h100", expert_parallel_size=1, context=4096, weights="fp8", engine="vllm", advice=False
    )
    assert (
        dense.value
        == tonnage.maximum("model", on="h100", context=4096, weights="fp8", engine="vllm", advice=False).value
    )


def test_what_is_left_out_is_told_with_its_reason():
    def ask(options):
        if options["a"] is not None:
            raise NotApplicable("a belongs to b 1.", "a", ("b",))
        return options

    answer, left_out = ask_applicable(ask, {"a": 5, "b": 2}, {"b"})
    assert answer == {"a": None, "b": 2} and str(left_out["a"]) == "a belongs to b 1."
    for varied, kept in ((set(), ()), ({"c"}, ()), ({"b"}, ("a",))):
        with pytest.raises(NotApplicable):
            ask_applicable(ask, {"a": 5, "b": 2}, varied, kept)


def test_the_error_is_one_of_input_and_of_plans_and_crosses_processes():
    error = pickle.loads(pickle.dumps(NotApplicable("text", "a", ("b",))))
    assert (str(error), error.option, error.owners) == ("text", "a", ("b",))
    assert isinstance(error, InvalidInput) and isinstance(error, InvalidPlan) and isinstance(error, TonnageError)


@pytest.mark.parametrize("chunks", [{"virtual_pipeline_size": 2}, {}])
def test_chunks_of_a_stage_belong_to_several_stages(chunks):
    fixed = {name: value for name, value in SIZES.items() if name != "pipeline_parallel_size"}
    fixed |= {"runtime": "megatron", "recompute": "none", **chunks}
    best = {
        stages: tonnage.plan_training("llama-3.2-1b", ON, top=1, vary={"pipeline_parallel_size": list(stages)}, **fixed)
        for stages in ((2,), (1, 2))
    }
    seconds = {stages: found.plans[0].answer.step_time.value for stages, found in best.items()}
    assert seconds[1, 2] <= seconds[(2,)] * (1 + 1e-9)
    one = tonnage.plan_training(
        "llama-3.2-1b", ON, top=1, **(fixed | {"pipeline_parallel_size": 1, "virtual_pipeline_size": 1})
    )
    assert seconds[1, 2] <= one.plans[0].answer.step_time.value * (1 + 1e-9)


def test_chunks_of_one_stage_alone_are_refused():
    found = tonnage.plan_training("llama-3.2-1b", ON, **(SIZES | {"runtime": "megatron", "virtual_pipeline_size": 2}))
    assert not found.plans and any(
        each["constraint"].startswith("virtual_pipeline_size") for each in found.to_dict()["refused"]
    )


def test_companions_of_a_zero_stage_bind_searched_stages_as_named_ones():
    fixed = {"runtime": "deepspeed", "global_batch_size": 32, "recompute": "none", "sub_group_size": "1e8"}
    searched = tonnage.plan_training("llama-3.2-1b", ON, top=3, **fixed)
    named = tonnage.plan_training("llama-3.2-1b", ON, top=3, vary={"zero_stage": [0, 1, 2, 3]}, **fixed)
    assert [each.options for each in searched.plans] == [each.options for each in named.plans]
    with pytest.raises(InvalidPlan, match="sub_group_size counts in ZeRO stage 3"):
        tonnage.plan_training("llama-3.2-1b", ON, zero_stage=1, **fixed)


@pytest.mark.parametrize(
    "options",
    [
        {"runtime": "fsdp2", "zero_stage": 2, "replicate_size": 2},
        {"runtime": "fsdp2", "vary": {"replicate_size": [1, 2, 4]}},
        {"runtime": "deepspeed", "zero_stage": 3, "zero_hpz_partition_size": 2},
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_layout_whose_groups_do_not_divide_is_ruled_out_and_ends_nothing(options):
    found = tonnage.plan_training("llama-3.2-1b", ON, global_batch_size=32, sequence_length=2048, **options)
    assert found.plans
    for each in found.plans:
        assert each.plan.data_parallel_size % each.plan.replicate_size == 0
    if options["runtime"] == "fsdp2":
        gone = {each["constraint"]: each["plans"] for each in found.to_dict()["removed"]}
        assert gone["replicate_size divides data_parallel_size"] > 0
