"""What the loop of reinforcement learning takes beyond kernels: sleep, tensors, states on the host; the band."""

import msgspec
import pytest
from test_rl_step import parts, step

import tonnage
from tonnage.estimate.post_training import measured
from tonnage.estimate.post_training.overheads import REFERENCE_PEAK, Overheads
from tonnage.estimate.post_training.rollout import SLEEP
from tonnage.formulas.post_training import loop_factor
from tonnage.kernel.errors import InvalidPlan, NotApplicable

SAID = {
    "on": "8xH100-SXM-80GB",
    "objective": "grpo",
    "global_batch_size": 256,
    "max_completion_length": 2048,
    "mean_completion_length": 700,
    "advice": False,
}


def test_an_engine_that_shares_the_accelerators_falls_asleep_once_a_step():
    shared = step().rollouts.term
    assert shared.child("engine falls asleep").value == SLEEP
    apart = step(rollout_accelerators=8).rollouts.term
    assert "engine falls asleep" not in [child.name for child in apart.children]


def test_an_engine_that_stays_awake_does_not():
    names = [child.name for child in step(engine_memory_share=0.4).rollouts.term.children]
    assert "engine falls asleep" not in names


def test_the_share_of_the_engine_is_what_was_said():
    assert step(rollout_memory_share=0.3).rollouts.taken == 0.3
    assert step().rollouts.taken == 0.5


@pytest.mark.parametrize("name", ["rollout_memory_share", "rollout_offload"])
def test_options_of_a_shared_engine_need_one(name):
    with pytest.raises(NotApplicable, match="on the accelerators that train"):
        step(rollout_accelerators=8, **{name: 0.5 if name.endswith("share") else True})


@pytest.mark.parametrize("share", [0, 1, 1.5, -0.1])
def test_a_share_lies_between_0_and_1(share):
    with pytest.raises(InvalidPlan, match="between 0 and 1"):
        step(rollout_memory_share=share)


def test_an_engine_sleeps_or_stays():
    with pytest.raises(InvalidPlan, match="an engine that sleeps"):
        step(rollout_memory_share=0.5, engine_memory_share=0.5)


def test_states_that_go_to_the_host_cost_time_and_leave_memory():
    here, moved = step(), step(rollout_offload=True)
    assert "training states to the host and back" not in here.parts
    assert moved.parts["training states to the host and back"].value > 0
    assert moved.rollout_memory.value < here.rollout_memory.value
    assert moved.seconds > here.seconds


def test_a_model_of_more_tensors_takes_longer_on_its_way_to_the_engine():
    few, many = step(), step("qwen2.5-14b", on="4x8xH100-SXM-80GB")
    seconds = [float(one.sync.child("tensor by tensor").value) for one in (few, many)]
    assert 0 < seconds[0] < seconds[1]


def test_what_was_fitted_says_on_which_rows():
    overheads = msgspec.structs.asdict(measured.OVERHEADS)
    assert set(measured.OVERHEADS.sources) <= set(overheads)
    assert all(measured.OVERHEADS.sources.values())


def test_a_runtime_without_rows_has_the_factor_of_all():
    one = Overheads(update_factors={"": 1.4, "megatron": 1.3})
    assert (one.update_factor("megatron"), one.update_factor("fsdp2")) == (1.3, 1.4)
    assert Overheads().update_factor("fsdp2") == 1.0


def test_what_a_loop_adds_is_as_long_on_a_slow_accelerator():
    """H20 has 148 of the H100's 989 TFLOP/s."""
    factors = [
        float(step(on=f"8x{name}").parts["update"].child("in the loop of a step").value)
        for name in ("H100-SXM-80GB", "H20-96GB")
    ]
    assert (factors[1] - 1) / (factors[0] - 1) == pytest.approx(148 / 989.4, rel=1e-2)
    assert loop_factor.evaluate(kappa_loop=1.5, P=2 * REFERENCE_PEAK, P_ref=REFERENCE_PEAK) == 2


def test_what_the_host_does_in_an_update_is_no_longer_inside_a_loop():
    said = {"runtime": "deepspeed", "zero_stage": 3, "offload_optimizer": "cpu"}
    one = step(**said)
    update = one.parts["update"].child("one update")
    alone = one.walk.update.value
    assert update.child("optimizer on the host").value == alone
    assert one.host_seconds == pytest.approx(float(one.updates.value * alone))
    assert float(update.child("on accelerators").value) > float(one.walk.on_accelerators.value)
    assert step().host_seconds == 0


def test_updates_of_preference_training_have_no_factor_of_the_loop():
    said = {"max_completion_length": None, "mean_completion_length": None, "prompt_length": None}
    names = [child.name for child in step(objective="dpo", sequence_length=1024, **said).parts["update"].children]
    assert "in the loop of a step" not in names


def test_a_reference_model_is_sharded_as_the_actor_is():
    """Held whole on each rank of a pipeline, it would take 14.9 GiB more of each accelerator of 8."""
    said = {"runtime": "megatron", "tensor_parallel_size": 4, "global_batch_size": 64, "micro_batch_size": 1}
    plain, held = (step("llama-3.1-8b", beta=beta, **said) for beta in (0.0, 0.04))
    assert held.held_bytes - plain.held_bytes == pytest.approx(16.06e9 / 4, rel=0.1)


def test_the_answer_has_a_band_around_the_step():
    answer = tonnage.train("qwen2.5-1.5b", **SAID)
    low, high = answer.to_dict()["run"]["step_time_band"]
    assert low < answer.step_time.value < high
    assert low / answer.step_time.value == pytest.approx(measured.BAND.low)
    assert not any("no error band" in note for note in answer.to_dict()["warnings"])


def test_the_answer_says_what_was_chosen_for_the_engine():
    question = tonnage.train("qwen2.5-1.5b", **SAID).question
    assert question["rollout_memory_share"].value == 0.5
    assert question["rollout_tensor_parallel_size"].value == 1


def test_the_parts_of_a_moved_step_are_the_step():
    assert sum(parts(rollout_offload=True).values()) <= step(rollout_offload=True).seconds
