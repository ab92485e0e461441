"""The global batch of a search where nobody gives one, wider variations, and what the counts say of them."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_spaces import MODELS

import tonnage
from tonnage.catalogue import cluster
from tonnage.cli import main
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.kernel.errors import InvalidPlan
from tonnage.search.training.search import count_valid, search
from tonnage.search.training.space import BATCH_SHIFT, Space, near_batch

QUICK = {
    "sequence_length": 2048,
    "recompute": "full",
    "zero_stage": 1,
    "runtime": "megatron",
    "tensor_parallel_size": 1,
    "context_parallel_size": 1,
}
FEW = {"deadline": None, "max_examples": 12, "suppress_health_check": [HealthCheck.too_slow]}


def best(model, machine, options, vary):
    """Seconds of a token of the best plan, infinite where none fits."""
    space = Space(MODELS[model], [cluster(machine)], TrainingOptions(**options), vary)
    found = search(space, space.largest.accelerator.memory.usable_bytes, most=40).best[0]
    return min((one.seconds / one.tokens for one in found), default=float("inf"))


@given(st.integers(1, 5000), st.integers(1, 4096))
def test_a_shifted_batch_is_near_the_usual_one_and_what_replicas_share_out_best(usual, world):
    made = near_batch(usual, world)
    odd = world // (world & -world)
    assert abs(made - usual) <= BATCH_SHIFT * usual
    assert made == usual or made % odd == 0
    if world & (world - 1) == 0 and usual & (usual - 1) == 0:
        assert made == usual


def test_a_machine_of_nine_nodes_is_not_hidden_by_a_batch_that_its_replicas_do_not_divide():
    """7B on 2T tokens in 30 days: 72 H100 do, which share out 1,008 sequences and not 1,024."""
    asked = {
        "tokens": "2T",
        "deadline": "30d",
        "recompute": "none",
        "zero_stage": 1,
        "runtime": "megatron",
        "context_parallel_size": 1,
    }
    found = tonnage.plan_training("llama-2-7b", ("9x8xH100-SXM-80GB",), top=1, **asked)
    assert found.status == 0
    assert found.plans[0].options["global_batch_size"] == 1008
    whole = tonnage.plan_training("llama-2-7b", ("8x8xH100-SXM-80GB",), top=1, **{**asked, "deadline": "60d"})
    assert whole.plans[0].options["global_batch_size"] == 1024


def test_a_run_of_so_many_steps_keeps_to_one_batch():
    options = {name: value for name, value in QUICK.items() if name != "sequence_length"}
    found = tonnage.plan_training("llama-3.2-1b", ("6xH100-SXM-80GB",), top=1, max_steps=10, **options)
    assert all(one.options["global_batch_size"] == 1024 for one in found.plans)


VARIED = {
    "recompute": ("none", "selective", "full"),
    "zero_stage": (0, 1),
    "micro_batch_size": (1, 2, 4, 8),
    "global_batch_size": (32, 48, 64),
    "virtual_pipeline_size": (1, 2, 4),
    "optimizer": ("adamw", "sgd"),
    "precision": ("bf16-mixed", "bf16"),
    "first_stage_layers": (3, 4, 5),
    "account_for_loss_in_pipeline_split": (False, True),
    "loss": ("full", "fused"),
    "pipeline_parallel_size": (1, 2, 4),
}


@settings(**FEW)
@given(st.data(), st.sampled_from(sorted(VARIED)), st.sampled_from(["llama-3.2-1b", "qwen3-30b-a3b"]))
def test_a_wider_variation_is_never_worse(data, name, model):
    values = data.draw(st.lists(st.sampled_from(VARIED[name]), min_size=1, unique=True))
    fewer = data.draw(st.lists(st.sampled_from(values), min_size=1, unique=True))
    options = {"global_batch_size": 48, "micro_batch_size": 1, **QUICK}
    options.pop(name, None)
    narrow, wide = (best(model, "8xH100-SXM-80GB", options, {name: each}) for each in (fewer, values))
    assert wide <= narrow * (1 + 1e-9)


@settings(**FEW)
@given(
    st.sampled_from(["recompute", "zero_stage", "micro_batch_size", "virtual_pipeline_size", "pipeline_parallel_size"]),
    st.data(),
)
def test_a_wider_space_is_never_worse(name, data):
    """What is given is one of the values that a search tries by itself."""
    options = {"global_batch_size": 48, "micro_batch_size": 1, **QUICK}
    options[name] = data.draw(st.sampled_from(VARIED[name]))
    free = {key: value for key, value in options.items() if key != name}
    assert best("llama-3.2-1b", "8xH100-SXM-80GB", free, {}) <= best("llama-3.2-1b", "8xH100-SXM-80GB", options, {}) * (
        1 + 1e-9
    )


def test_plans_with_uneven_stages_asked_again_have_the_same_figures():
    found = tonnage.plan_training(
        "llama-3.2-1b", ("8xH100-SXM-80GB",), top=12, global_batch_size=32, pipeline_parallel_size=4, **QUICK
    )
    layouts = 0
    for row in found.to_dict()["plans"]:
        again = tonnage.train("llama-3.2-1b", row["on"], **row["options"])
        assert (again.needed_bytes, again.step_time.value) == (row["needed_bytes"], pytest.approx(row["step_seconds"]))
        layouts += any("stage_layers" in name or "account_for" in name for name in row["options"])
    assert layouts


def test_constraints_rule_out_as_many_plans_with_and_without_bounds():
    options = {**QUICK, "global_batch_size": 48}
    quick, whole = (
        tonnage.plan_training(
            "llama-3.2-1b", ("2x8xH100-SXM-80GB", "8xA100-SXM-80GB"), exhaustive=exhaustive, top=1, **options
        ).to_dict()
        for exhaustive in (None, True)
    )
    assert quick["removed"] == whole["removed"] and quick["considered"] == whole["considered"]
    assert quick["beaten"] + quick["estimated"] == whole["beaten"] + whole["estimated"]
    assert quick["estimated"] < whole["estimated"]
    space = Space(MODELS["llama-3.2-1b"], [cluster("8xA100-SXM-80GB")], TrainingOptions(**options))
    assert count_valid(space).considered == search(space, 1).tally.considered


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--no-contiguous-gradients", "is a setting of deepspeed"),
        ("--lora-rank 16", "belongs to method"),
        ("--float8 rowwise --runtime megatron", "option of fsdp2"),
    ],
)
def test_what_no_sizes_would_make_valid_is_said_without_a_search(words, text, capsys, monkeypatch):
    def nothing(*_, **__):
        raise AssertionError("a search was begun")

    monkeypatch.setattr("tonnage.search.training.fleet.search", nothing)
    assert main(["plan", "--train", "gemma-3-4b-pt", "--on", "h100,a100", *words.split()]) == 64
    assert text in capsys.readouterr().err


def test_of_two_runtimes_the_one_that_has_no_such_option_is_asked_once():
    found = tonnage.plan_training(
        "llama-3.2-1b", ("8xH100-SXM-80GB",), top=3, global_batch_size=32, float8="rowwise", recompute="full"
    )
    assert {one.options["runtime"] for one in found.plans} == {"fsdp2"}
    assert any("float8" in each["constraint"] for each in found.to_dict()["refused"])


def test_a_choice_that_some_sizes_allow_is_searched():
    """tp_comm_overlap needs tensor ranks, packing one context rank: no single plan of ones or of twos shows that
    both can be.
    """
    options = {**QUICK, "global_batch_size": 32, "tp_comm_overlap": True}
    options.pop("tensor_parallel_size")
    assert best("llama-3.2-1b", "8xH100-SXM-80GB", options, {}) < float("inf")
    with pytest.raises(InvalidPlan):
        tonnage.plan_training("llama-3.2-1b", ("8xH100-SXM-80GB",), **{**options, "lora_rank": 8})
