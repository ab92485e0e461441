"""Plans of reinforcement learning: how many accelerators train and how many generate."""

import pytest

import tonnage
from tonnage.estimate.post_training.step import PostTrainingStep
from tonnage.kernel.errors import InvalidInput

SAID = {
    "objective": "grpo",
    "global_batch_size": 64,
    "prompt_length": 200,
    "max_completion_length": 1000,
    "mean_completion_length": 400,
    "runtime": "fsdp2",
    "recompute": "full",
}


def searched(on="4xH100-SXM-80GB", **said):
    return tonnage.plan_training("qwen2.5-1.5b", on, **{**SAID, **said})


@pytest.fixture(scope="module")
def found():
    return searched()


def test_every_accelerator_trains_or_generates_or_does_both(found):
    assert found.plans
    for plan in found.plans:
        apart = plan.options.get("rollout_accelerators", 0)
        assert plan.accelerators == 4 and 0 <= apart < 4


def test_the_best_plan_is_the_fastest_of_those_shown(found):
    rates = [plan["tokens_per_second"] for plan in found.to_dict()["plans"]]
    assert rates == sorted(rates, reverse=True)


def test_the_best_plan_asked_of_train_has_the_same_time(found):
    best = found.to_dict()["plans"][0]
    apart = best["options"].get("rollout_accelerators", 0)
    machine = f"{4 - apart}xH100-SXM-80GB"
    answer = tonnage.train("qwen2.5-1.5b", machine, **{**SAID, **best["options"]}, advice=False)
    assert answer.step_time.value == pytest.approx(best["step_seconds"], rel=1e-6)


def test_the_batch_of_a_search_is_that_of_the_prompts_that_are_said():
    found = searched(global_batch_size=None, prompts_per_step=24, num_generations=8)
    assert found.plans and {plan.options["global_batch_size"] for plan in found.plans} == {192}


def test_a_split_that_is_said_is_kept():
    plans = searched(rollout_accelerators=2).plans
    assert plans and {plan.options.get("rollout_accelerators") for plan in plans} <= {2, None}


def test_a_deadline_that_no_split_meets_says_so():
    found = searched(max_steps=100_000, deadline="1h")
    assert not found.plans and found.status == 3


def test_each_split_is_estimated_whole(monkeypatch):
    seen = set()
    made = PostTrainingStep.__init__

    def counted(self, model, plan, *rest, **more):
        seen.add(plan.rollout.rollout_accelerators)
        made(self, model, plan, *rest, **more)

    monkeypatch.setattr(PostTrainingStep, "__init__", counted)
    searched()
    assert {0, 1, 2, 3} & seen == seen and len(seen) >= 3


def test_machines_that_are_too_many_are_refused():
    with pytest.raises(InvalidInput, match="at most 16"):
        tonnage.plan_training("qwen2.5-1.5b", [f"{count}xH100-SXM-80GB" for count in range(1, 18)], **SAID)
