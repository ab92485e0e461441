"""A step of reinforcement learning: its parts, what makes each longer, and what it is refused for."""

import numpy as np
import pytest

import tonnage
from tonnage.catalogue import cluster
from tonnage.estimate.inputs import Question
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.post_training.lengths import completions, packed
from tonnage.estimate.post_training.rollout import whole_cluster
from tonnage.estimate.post_training.step import PostTrainingStep
from tonnage.kernel.errors import InvalidPlan
from tonnage.models import read
from tonnage.spec import Rollout

BASE = {
    "objective": "grpo",
    "recompute": "full",
    "global_batch_size": 256,
    "max_completion_length": 2048,
    "mean_completion_length": 700,
    "prompt_length": 256,
}


def step(model="qwen2.5-1.5b", on="8xH100-SXM-80GB", **said):
    model, machine = read(model), cluster(on)
    plan = training_plan(model, machine, TrainingOptions(**{**BASE, **said}), Question())
    return PostTrainingStep(model, plan, machine)


def parts(**said):
    return {name: float(part.value) for name, part in step(**said).parts.items()}


def test_the_parts_of_a_step_are_the_step():
    one = step()
    gaps = one.term.child("between the phases")
    assert sum(float(part.value) for part in one.parts.values()) + gaps.value == pytest.approx(one.seconds)
    assert sum(float(child.value) for child in one.term.children) == pytest.approx(one.seconds)


def test_a_step_without_overlap_has_each_phase_once():
    assert list(parts()) == [
        "rollout",
        "weights to the engine",
        "log-probabilities of the policy",
        "update",
    ]


def test_a_reference_model_adds_a_forward_pass_and_its_weights():
    with_reference = step(beta=0.04)
    assert "forward pass, reference model" in with_reference.parts
    assert with_reference.seconds > step().seconds
    assert with_reference.held_bytes > step().held_bytes


def test_ppo_runs_four_models_and_trains_two():
    names = list(parts(objective="ppo", num_generations=1))
    assert names[2:] == [
        "log-probabilities of the policy",
        "forward pass, reference model",
        "forward pass, reward model",
        "forward pass, critic",
        "update",
        "update of the critic",
    ]


def test_preference_training_generates_nothing():
    one = step(
        objective="dpo",
        max_completion_length=None,
        mean_completion_length=None,
        prompt_length=None,
        sequence_length=1024,
    )
    assert list(one.parts) == ["forward pass, reference model", "update"]
    assert one.seconds == pytest.approx(sum(float(part.value) for part in one.parts.values()))


def test_adapters_that_are_the_reference_still_run_without_gradients():
    one = step(
        objective="dpo",
        method="lora",
        max_completion_length=None,
        mean_completion_length=None,
        prompt_length=None,
        sequence_length=1024,
    )
    assert "forward pass, reference model" in one.parts


@pytest.mark.parametrize("late", [0, 1])
def test_more_accelerators_that_generate_never_slow_the_rollout(late):
    seconds = [
        float(step(rollout_accelerators=count, async_steps=late).rollouts.term.value) for count in (1, 2, 4, 8, 16, 32)
    ]
    assert seconds == sorted(seconds, reverse=True)


@pytest.mark.parametrize("apart", [2, 8])
def test_a_step_whose_rollouts_overlap_with_training_is_never_slower(apart):
    waits, overlaps = step(rollout_accelerators=apart), step(rollout_accelerators=apart, async_steps=1)
    assert overlaps.seconds <= waits.seconds
    both = overlaps.term.child("rollout and training, side by side")
    assert both.value == max(float(child.value) for child in both.children)


def test_longer_completions_and_more_of_them_take_longer():
    plain = step()
    assert step(mean_completion_length=1400).seconds > plain.seconds
    assert step(max_completion_length=4096).seconds > plain.seconds
    assert step(num_generations=8, prompts_per_step=64).seconds > plain.seconds


def test_two_global_batches_of_rollouts_are_two_updates():
    assert step(prompts_per_step=64, num_generations=8).updates.value == 2
    assert step(prompts_per_step=64, num_generations=8, ppo_epochs=3).updates.value == 6


@pytest.mark.parametrize(
    ("said", "batch"),
    [
        ({"num_generations": 8}, 512),
        ({"objective": "dapo"}, 512),
        ({"objective": "ppo"}, 64),
        ({"objective": "online-dpo"}, 64),
        ({"num_generations": 8, "num_microbatches": 2}, 16),
    ],
)
def test_all_completions_of_the_prompts_that_are_said_are_one_update(said, batch):
    one = step(prompts_per_step=64, global_batch_size=None, **said)
    assert one.plan.global_batch_size == batch
    assert one.updates.value == (1 if "num_microbatches" not in said else 32)


def test_the_spread_of_lengths_makes_the_tail():
    alike, spread = step(completion_spread=0), step()
    assert alike.rollouts.alone.output_tokens.max() == 700
    assert spread.rollouts.alone.output_tokens.max() > 1400
    assert float(spread.rollouts.term.value) > float(alike.rollouts.term.value)


def test_tools_are_waited_for_between_turns():
    plain, tools = step(), step(rollout_turns=4, tool_seconds=2.5)
    assert tools.rollouts.term.value == pytest.approx(plain.rollouts.term.value + 3 * 2.5)


def test_the_models_own_generate_runs_until_its_longest_completion_ends():
    own = step(rollout_engine="hf", rollout_max_num_seqs=16)
    assert set(own.rollouts.alone.output_tokens.tolist()) == {2048}
    assert float(own.rollouts.term.value) > float(step().rollouts.term.value)


def test_a_rank_generates_all_its_completions_at_once():
    # TRL 1.16, trl/trainer/grpo_trainer.py: generate is called once for the prompts of a rank
    assert step(rollout_engine="hf").rollouts.policy.max_num_seqs == 256 // 8
    assert step(rollout_engine="hf", rollout_max_num_seqs=4).rollouts.policy.max_num_seqs == 4


def gkd(**said):
    base = {name: BASE[name] for name in ("recompute", "max_completion_length", "mean_completion_length")}
    model, machine = read("qwen3-0.6b"), cluster("8xH100-SXM-80GB")
    asked = {**base, "objective": "gkd", "teacher": "qwen3-1.7b", "micro_batch_size": 2, "num_microbatches": 2, **said}
    return PostTrainingStep(model, training_plan(model, machine, TrainingOptions(**asked), Question()), machine)


def test_the_student_of_gkd_generates_in_a_share_of_the_micro_batches():
    # TRL 1.16, trl/experimental/gkd: training_step draws for each micro-batch; lmbda is 0.5 where nobody says it
    seconds = {share: float(gkd(lmbda=share).rollouts.term.value) for share in (0.25, 0.5, 1.0)}
    assert seconds[0.25] * 4 == pytest.approx(seconds[1.0]) == pytest.approx(seconds[0.5] * 2)
    assert float(gkd().rollouts.term.value) == pytest.approx(seconds[0.5])


def test_the_teacher_of_gkd_runs_forward_over_every_row():
    names = list(gkd().parts)
    assert names == ["rollout", "weights to the engine", "forward pass, teacher", "update"]


def test_each_micro_batch_of_gkd_generates_for_itself():
    one = gkd()
    assert one.plan.rollout.rollout_engine == "transformers"
    assert one.rollouts.policy.max_num_seqs == 2


def test_a_tool_s_own_ranks_generate_where_their_cache_runs_enough():
    # veRL, verl/trainer/config/rollout/rollout.yaml: tensor_model_parallel_size 2; OpenRLHF and TRL: 1
    ranks = {tool: int(step(runtime=tool).rollouts.served[0].tensor_parallel_size) for tool in ("verl", "openrlhf")}
    assert ranks == {"verl": 2, "openrlhf": 1}


def test_ranks_that_starve_the_cache_are_not_taken():
    said = {"model": "llama-3.1-70b", "on": "4x8xH100-SXM-80GB", "global_batch_size": 1024}
    few, usual = step(**said, rollout_tensor_parallel_size=4), step(**said, runtime="verl")
    assert few.rollouts.requests_at_once < 16 <= usual.rollouts.requests_at_once
    assert int(usual.rollouts.served[0].tensor_parallel_size) == 8


def test_packed_completions_train_faster_than_padded_ones():
    padded, packing = step(sequence_packing=False), step(sequence_packing=True)
    assert packing.parts["update"].value < padded.parts["update"].value
    assert packing.batch.plan.num_microbatches < padded.batch.plan.num_microbatches


def test_weights_cross_nodes_to_engines_of_their_own():
    here = step(rollout_accelerators=8)
    names = [child.name for child in here.sync.children]
    assert names == [
        "gathered from the shards of training",
        "broadcast to the engines",
        "written by the engine",
        "tensor by tensor",
    ]
    assert here.accelerators == 16


@pytest.mark.parametrize(("apart", "size"), [(0, 8), (8, 16), (4, 12), (16, 24)])
def test_the_machine_of_a_step_has_those_that_train_and_those_that_generate(apart, size):
    assert whole_cluster(Rollout(rollout_accelerators=apart), cluster("8xH100-SXM-80GB")).size == size


def test_what_is_paid_for_includes_the_accelerators_that_generate():
    said = {**BASE, "on": "8xH100-SXM-80GB", "advice": False}
    alone = tonnage.train("qwen2.5-1.5b", **said)
    more = tonnage.train("qwen2.5-1.5b", **said, rollout_accelerators=8)
    hourly = [answer.bill.cost.value / float(answer.step_time.value) for answer in (alone, more)]
    assert hourly[1] == pytest.approx(2 * hourly[0], rel=0.2)


def test_the_engine_takes_what_training_leaves_at_most_half():
    one = step()
    assert one.rollouts.taken == 0.5  # veRL: gpu_memory_utilization
    large = step("qwen2.5-14b", on="8xH100-SXM-80GB")
    usable = large.cluster.accelerator.memory.usable_bytes
    assert large.rollouts.taken * usable + large.held_bytes <= usable * 1.0001 or large.leaving
    assert large.rollout_memory.value <= usable * 1.0001


def test_training_states_that_do_not_fit_beside_the_engine_go_to_the_host():
    one = step("llama-3.1-8b", on="2xH100-SXM-80GB", engine_memory_share=0.6, global_batch_size=64)
    assert one.leaving > 0 and "training states to the host and back" in one.parts
    assert one.rollout_memory.value == pytest.approx(one.cluster.accelerator.memory.usable_bytes)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"async_steps": 1, "rollout_engine": "hf"}, "needs accelerators that generate"),
        (
            {"objective": "sft", "num_generations": 4, "mean_completion_length": None},
            "belongs to objectives that generate",
        ),
        ({"mean_completion_length": 4096}, "must be at most"),
        ({"prompts_per_step": 3}, "multiple of the global batch"),
        ({"num_generations": 3}, "multiple of"),
        ({"tool_seconds": 2.0}, "rollout.turns"),
        ({"tool_seconds": 1e300, "rollout_turns": 2}, "from 0 to 1,000,000"),
        ({"lmbda": 0.5}, "belongs to objective gkd"),
        ({"objective": "gkd", "teacher": "qwen2.5-1.5b", "lmbda": 0.0}, "the objective is distillation"),
        ({"rollout_engine": "hf", "rollout_accelerators": 8}, "runs where the model trains"),
        ({"rollout_engine": "mlx"}, "rollout engine"),
        ({"objective": "online-dpo", "num_generations": 4}, "must be 2"),
        ({"objective": "online-dpo", "beta": 0.1}, "belongs to objectives"),
        ({"beta": -1.0}, "must not be negative"),
        ({"completion_spread": 9.0}, "between 0 and 5"),
        ({"sequence_length": 1024}, "must fit into the sequence"),
    ],
)
def test_what_a_step_cannot_be_is_refused(said, words):
    said = {name: value for name, value in {**BASE, **said}.items() if value is not None}
    if said["objective"] == "sft":
        said = {"objective": "sft", "num_generations": 4}
    with pytest.raises(tonnage.TonnageError, match=words):
        tonnage.train("qwen2.5-1.5b", on="8xH100-SXM-80GB", **said)


def test_rollout_ranks_must_divide_the_accelerators():
    with pytest.raises(InvalidPlan, match="must divide the 8 accelerators"):
        _ = step(rollout_tensor_parallel_size=3).seconds


# ---- lengths


@pytest.mark.parametrize("spread", [0.3, 1.0, 1.5])
@pytest.mark.parametrize("mean", [200, 1000, 1900])
def test_completions_have_the_mean_that_was_said(mean, spread):
    rollout = Rollout(mean_completion_length=mean, max_completion_length=2048, completion_spread=spread)
    lengths = completions(rollout, 4096)
    assert lengths.mean() == pytest.approx(mean, rel=0.01)
    assert lengths.max() <= 2048 and (np.diff(lengths) >= 0).all()


def test_a_spread_of_one_is_an_exponential_distribution():
    rollout = Rollout(mean_completion_length=1000, max_completion_length=10**7, completion_spread=1.0)
    lengths = completions(rollout, 4096)
    assert np.median(lengths) == pytest.approx(1000 * np.log(2), rel=0.01)
    assert lengths.std() == pytest.approx(1000, rel=0.05)


def test_sequences_are_packed_longest_first():
    assert packed(np.array([60, 50, 40, 30, 20]), 100) == 2
    assert packed(np.array([100, 100]), 100) == 2
    assert packed(np.array([51, 51, 51]), 100) == 3
