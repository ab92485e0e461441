"""What a search turns away without a walk: bounds are below the estimate, a search with bounds answers as one that
walks every plan, and little is evaluated.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_spaces import MODELS

import tonnage
from tonnage.catalogue import cluster
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.search.progress import followed
from tonnage.search.removed import Tally
from tonnage.search.training import search as training_search
from tonnage.search.training.bounds import Bounds, LeastOfPoints
from tonnage.search.training.search import search
from tonnage.search.training.space import Space
from tonnage.search.training.validity import Validity, columns_of, holding
from tonnage.search.training.walk import REFUSALS, walk

ON = ("8xH100-SXM-80GB", "2x8xA100-SXM-80GB", "8x8xH100-SXM-80GB", "4xMI300X")
OPTIONS = (
    {"runtime": "megatron"},
    {"runtime": "fsdp2"},
    {"runtime": "deepspeed"},
    {"runtime": "megatron", "sequence_parallel": False},
    {"runtime": "fsdp2", "precision": "fp8-te"},
    {"runtime": "nanotron"},
    {"loss": "chunked"},
)


@settings(max_examples=12)
@given(
    name=st.sampled_from(sorted(MODELS)),
    on=st.sampled_from(ON),
    options=st.sampled_from(OPTIONS),
    seed=st.integers(0, 10_000),
)
def test_no_bound_is_above_the_estimate_of_any_plan_of_the_whole_space(name, on, options, seed):
    space, random = Space(MODELS[name], [cluster(on)], TrainingOptions(**options)), np.random.default_rng(seed)
    groups, bounds = list(space.groups()), Bounds(space)
    for at in random.permutation(len(groups))[:8]:
        group = groups[at]
        columns = columns_of(space, group)
        left = holding(space, group, columns, Tally())
        some = left & (random.random(left.shape) < 20 / max(left.sum(), 1))
        if not some.any():
            continue
        try:
            bound, walked = bounds.of(group, columns, left), walk(space, group, columns, some)
        except REFUSALS:
            continue
        if bound is None:
            continue
        needed, seconds = (np.broadcast_to(of, left.shape)[some] for of in (bound.needed(), bound.seconds_per_token()))
        assert (needed <= walked.high * (1 + 1e-9)).all(), (group.choices, group.stages, group.chunks, group.layout)
        assert (seconds <= walked.seconds / walked.tokens * (1 + 1e-9)).all(), (group.choices, group.stages)


@pytest.mark.parametrize("goal", ["fastest", "cheapest", "fewest"])
@settings(max_examples=3)
@given(
    name=st.sampled_from(["llama-3.2-1b", "qwen3-30b-a3b"]),
    runtime=st.sampled_from(["megatron", "fsdp2"]),
    batch=st.sampled_from([32, 48]),
    deadline=st.sampled_from([None, "20d", "400d"]),
    pareto=st.booleans(),
)
def test_a_search_with_bounds_answers_as_one_that_walks_every_plan(goal, name, runtime, batch, deadline, pareto):
    asked = {
        "on": "2xH100-SXM-80GB,4xH100-SXM-80GB,4xA100-SXM-80GB,4xMI300X",
        "runtime": runtime,
        "recompute": "full",
        "sequence_length": 2048,
        "global_batch_size": batch,
        "context_parallel_size": 1,
        "goal": goal,
        "tokens": 1e9 if deadline else None,
        "deadline": deadline,
        "pareto": pareto or None,
    }
    asked = {option: value for option, value in asked.items() if value is not None}
    quick, whole = (tonnage.plan_training(name, **asked, **more).to_dict() for more in ({}, {"exhaustive": True}))
    for part in ("plans", "front", "goal", "status", "considered", "removed"):
        assert quick[part] == whole[part]
    assert quick["beaten"] + quick["estimated"] == whole["beaten"] + whole["estimated"]
    assert quick["estimated"] <= whole["estimated"]


class Counted:
    """How often functions are called, and of how many plans bounds are evaluated."""

    def __init__(self, monkeypatch):
        self.walks = self.bounds = self.masks = 0
        walked, bounded, valid = training_search.walk, LeastOfPoints.seconds_per_token, Validity.of

        def walk_counted(*args):
            self.walks += 1
            return walked(*args)

        def bounds_counted(*args, **kwargs):
            self.bounds += 1
            return bounded(*args, **kwargs)

        def masks_counted(validity, stack):
            before = len(validity._masks)
            known = valid(validity, stack)
            self.masks += len(validity._masks) - before
            return known

        monkeypatch.setattr(training_search, "walk", walk_counted)
        monkeypatch.setattr(LeastOfPoints, "seconds_per_token", bounds_counted)
        monkeypatch.setattr(Validity, "of", masks_counted)


def test_a_fixed_search_of_250_000_plans_makes_few_arrays_and_few_walks(monkeypatch):
    counted = Counted(monkeypatch)
    machine = cluster("8x8xH100-SXM-80GB")
    space = Space(tonnage.read("llama-3.1-70b"), [machine], TrainingOptions())
    found = search(space, machine.accelerator.memory.usable_bytes)
    assert found.tally.considered > 250_000
    assert counted.walks <= 60
    assert counted.bounds <= 600
    assert counted.masks <= 32


def test_accelerators_in_the_same_numbers_share_the_masks_of_valid_plans(monkeypatch):
    counted = Counted(monkeypatch)
    tonnage.plan_training("llama-3.2-1b", on="8xH100-SXM-80GB", recompute="full", runtime="fsdp2")
    alone, counted.masks = counted.masks, 0
    tonnage.plan_training("llama-3.2-1b", on="8xH100-SXM-80GB,8xA100-SXM-80GB", recompute="full", runtime="fsdp2")
    assert 0 < counted.masks == alone


def test_better_plans_are_told_as_they_are_found_and_the_last_one_is_the_best():
    found, counts = [], []
    with followed(lambda *step: counts.append(step), found.append):
        answer = tonnage.plan_training("llama-3.1-8b", on="8xH100-SXM-80GB,8xA100-SXM-80GB", goal="fastest")
    assert len(found) >= 1
    seconds = [1 / plan.tokens_per_second for plan in found]
    assert seconds == sorted(seconds, reverse=True) and len({*seconds}) == len(seconds)
    best = answer.to_dict()["plans"][0]
    assert found[-1].on == best["on"]
    assert found[-1].tokens_per_second == pytest.approx(
        best["tokens_per_second"], rel=2e-3
    )  # ties go to the simpler one
    whole = [step for step in counts if step[0] == "plans"]
    assert whole[-1][1] == whole[-1][2] == answer.to_dict()["considered"]


def test_python_hears_of_a_first_plan_before_most_plans_are_decided():
    told = []
    tonnage.plan_training("llama-3.1-8b", on="h100-sxm-80gb", max_accelerators=64, tell=told.append)
    first = next(one for one in told if one.best is not None)
    assert first.percent < 50
    assert told[-1].percent == 100
    assert [one.done for one in told] == sorted(one.done for one in told)
