from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_spaces import brute_force, scalar, small_space

from tonnage.catalogue import cluster
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.kernel.errors import InvalidInput, UnknownName
from tonnage.search.removed import Tally
from tonnage.search.training import search as training_search
from tonnage.search.training.bounds import Bounds
from tonnage.search.training.search import nearest, search
from tonnage.search.training.space import Space
from tonnage.search.training.validity import columns_of, holding
from tonnage.search.training.walk import REFUSALS, said, walk

CASES = [
    ("llama-3.2-1b", ("2x8xH100-SXM-80GB",), {"runtime": "megatron"}),
    ("llama-3.2-1b", ("2xH100-SXM-80GB", "4xH100-SXM-80GB", "8xH100-SXM-80GB"), {"runtime": "fsdp2"}),
    ("qwen3-30b-a3b", ("8xH100-SXM-80GB", "2x8xH100-SXM-80GB"), {"runtime": "megatron", "recompute": "full"}),
    ("deepseek-v2-lite", ("4xH100-SXM-80GB",), {"runtime": "megatron", "zero_stage": 1}),
    ("qwen3-30b-a3b", ("4xH100-SXM-80GB",), {"runtime": "fsdp2", "zero_stage": 3}),
    ("llama-3.2-1b", ("H100-SXM-80GB",), {"runtime": "transformers"}),
    ("llama-3.2-1b", ("8xH100-SXM-80GB",), {"runtime": "fsdp2", "method": "lora"}),
    ("llama-3.2-1b", ("8xH100-SXM-80GB",), {"runtime": "fsdp2", "pipeline_schedule": "zbv", "recompute": "none"}),
    (
        "llama-3.2-1b",
        ("8xH100-SXM-80GB",),
        {"runtime": "fsdp2", "pipeline_schedule": "zbv", "recompute": "none", "num_microbatches": 1},
    ),
    (
        "llama-3.2-1b",
        ("8xH100-SXM-80GB",),
        {"runtime": "fsdp2", "pipeline_schedule": "interleaved-zero-bubble", "recompute": "none"},
    ),
    ("llama-3.2-1b", ("8xH100-SXM-80GB",), {"runtime": "megatron", "first_stage_layers": 2, "recompute": "full"}),
]


def groups(space, seed, count):
    """Some groups of a space, with their columns and valid plans."""
    every = list(space.groups())
    for at in np.random.default_rng(seed).permutation(len(every))[:count]:
        columns = columns_of(space, every[at])
        yield every[at], columns, holding(space, every[at], columns, Tally())


def walked_or_refused(space, group, columns, left):
    """None where the runtime takes none of the group's plans: what their sizes alone do not tell."""
    try:
        return walk(space, group, columns, left)
    except REFUSALS:
        return None


@pytest.mark.parametrize(("name", "on", "options"), CASES)
@settings(max_examples=4)
@given(seed=st.integers(0, 10_000))
def test_a_plan_of_arrays_is_valid_where_the_scalar_path_takes_it_and_has_its_bytes_and_seconds(
    name, on, options, seed
):
    space = small_space(name, on, **options)
    generator = np.random.default_rng(seed)
    for group, columns, left in groups(space, seed, 3):
        walked = walked_or_refused(space, group, columns, left) if left.any() else None
        for at in generator.permutation(left.size)[:6]:
            row, machine = divmod(int(at), len(space.machines))
            options = said(space, group, columns, row, machine)
            asked = {
                key: value for key, value in options.items() if key not in ("data_parallel_size", "num_microbatches")
            }
            found = scalar(space.model, space.machines[machine], space.options, asked)
            if walked is None:
                assert found is None, options
                continue
            assert (found is not None) == left[row, machine], options
            if found is None:
                continue
            place = np.flatnonzero((walked.row == row) & (walked.machine == machine))[0]
            high, seconds, tokens = found
            assert walked.high[place] == pytest.approx(high, rel=1e-9, abs=2)
            assert walked.seconds[place] == pytest.approx(seconds, rel=1e-9)
            assert walked.tokens[place] == tokens


@pytest.mark.parametrize(("name", "on", "options"), CASES)
def test_a_bound_is_never_above_the_estimate(name, on, options):
    space = small_space(name, on, **options)
    bounds = Bounds(space)
    for group, columns, left in groups(space, 1, 24):
        bound = bounds.of(group, columns, left) if left.any() else None
        if bound is None:
            continue
        walked = walked_or_refused(space, group, columns, left)
        if walked is None:
            continue
        assert (np.broadcast_to(bound.needed(), left.shape)[left] <= walked.high * (1 + 1e-9)).all()
        least = np.broadcast_to(bound.seconds_per_token(), left.shape)[left]
        assert (least <= walked.seconds / walked.tokens * (1 + 1e-9)).all()
        floor = bounds.floor(group)
        assert (
            floor is None or (floor / space.worlds[walked.machine] <= walked.seconds / walked.tokens * (1 + 1e-9)).all()
        )


def same(one, other):
    """Whether two groups have the same plans in the same order."""
    shared = [(group.names, group.stages, group.chunks, group.block, list(group.inner)) for group in (one, other)]
    return shared[0] == shared[1] and all(np.array_equal(one.inner[name], other.inner[name]) for name in one.inner)


class WalkedOnce:
    """`walk`, whose figures of all plans of a group do not depend on the bytes that are usable: searches of one space
    without bounds walk its groups in one order, and those after the first take them from here.
    """

    def __init__(self):
        self.made, self.asked = [], 0

    def __call__(self, space, group, columns, left, hopeful=None):
        if hopeful is not None:
            return walk(space, group, columns, left, hopeful)
        if self.asked == len(self.made):
            try:
                self.made.append((group, walk(space, group, columns, left)))
            except REFUSALS as error:
                self.made.append((group, error))
        first, found = self.made[self.asked]
        self.asked += 1
        assert same(first, group)
        if isinstance(found, Exception):
            raise found
        return found


@pytest.mark.parametrize(("name", "on", "options"), CASES)
def test_cheap_bounds_first_give_the_plans_that_every_plan_walked_gives(name, on, options, monkeypatch):
    space = small_space(name, on, **options)
    once = WalkedOnce()
    monkeypatch.setattr(training_search, "walk", once)
    for share in (1.0, 0.3):
        usable = share * space.largest.accelerator.memory.usable_bytes
        once.asked = 0
        quick, whole = search(space, usable), search(space, usable, bounded=False)
        assert [[(one.order, one.options) for one in found] for found in quick.best] == [
            [(one.order, one.options) for one in found] for found in whole.best
        ]
        assert quick.tally.considered == whole.tally.considered
        assert quick.walked <= whole.walked
    assert once.made


@pytest.mark.parametrize(
    ("name", "on", "options"),
    [
        (
            "llama-3.2-1b",
            ("4xA100-SXM-80GB",),
            {"runtime": "megatron", "virtual_pipeline_size": 1, "recompute": "none"},
        ),
        (
            "qwen3-30b-a3b",
            ("8xH100-SXM-80GB",),
            {
                "runtime": "megatron",
                "recompute": "full",
                "pipeline_parallel_size": 2,
                "context_parallel_size": 1,
                "micro_batch_size": 1,
            },
        ),
        (
            "llama-3.2-1b",
            ("2xH100-SXM-80GB", "4xH100-SXM-80GB"),
            {"runtime": "fsdp2", "recompute": "full", "zero_stage": 3},
        ),
    ],
)
def test_the_search_finds_what_brute_force_through_the_scalar_path_finds(name, on, options):
    space = small_space(name, on, **options)
    usable = space.largest.accelerator.memory.usable_bytes
    made = search(space, usable)
    best = [min((one.seconds / one.tokens for one in found), default=np.inf) for found in made.best]
    assert best == pytest.approx(brute_force(space, usable), rel=1e-9)


def test_every_plan_is_counted_once():
    space = small_space(
        "qwen3-30b-a3b",
        ("8xH100-SXM-80GB", "2x8xH100-SXM-80GB"),
        runtime="megatron",
        recompute="full",
        expert_tensor_parallel_size=1,
    )
    considered = set()
    for bounded in (True, False):
        made = search(space, space.largest.accelerator.memory.usable_bytes, bounded=bounded)
        removed = {each.constraint: each.plans for each in made.tally}
        assert made.tally.considered == sum(removed.values()) + made.beaten + made.walked
        assert made.walked > 0
        considered.add(made.beaten + made.walked)
    assert len(considered) == 1, "bounds move plans from those estimated whole to those turned away, and lose none"


def test_where_nothing_fits_the_nearest_plan_is_the_one_that_needs_least():
    space = small_space("llama-3.2-1b", ("2xH100-SXM-80GB",), runtime="fsdp2", recompute="full")
    found = nearest(space, [0])[0]
    every = search(space, 1e18, most=10_000, bounded=False).best[0]
    assert found.high == min(one.high for one in every)


def test_of_plans_as_fast_the_simpler_one_comes_first():
    space = Space(
        small_space("llama-3.2-1b", ("8xH100-SXM-80GB",)).model,
        [cluster("8xH100-SXM-80GB")],
        TrainingOptions(global_batch_size=64),
    )
    found = search(space, space.largest.accelerator.memory.usable_bytes, most=40).best[0]
    assert [one.order for one in found] == sorted(one.order for one in found)
    tied = [(one, other) for one, other in pairwise(found) if one.order[0] == other.order[0]]
    assert tied
    assert all(one.order[1:3] <= other.order[1:3] for one, other in tied)


def test_what_is_given_is_not_varied():
    machine = cluster("8xH100-SXM-80GB")
    given = TrainingOptions(
        tensor_parallel_size=2, recompute="full", runtime="megatron", micro_batch_size=2, global_batch_size=64
    )
    space = Space(small_space("llama-3.2-1b", ("8xH100-SXM-80GB",)).model, [machine], given)
    for one in search(space, machine.accelerator.memory.usable_bytes).best[0]:
        assert {
            name: one.options[name] for name in ("tensor_parallel_size", "recompute", "runtime", "micro_batch_size")
        } == {"tensor_parallel_size": 2, "recompute": "full", "runtime": "megatron", "micro_batch_size": 2}


def test_an_option_to_vary_must_be_one_and_must_not_be_given():
    model, machine = small_space("llama-3.2-1b", ("8xH100-SXM-80GB",)).model, cluster("8xH100-SXM-80GB")
    with pytest.raises(UnknownName, match="Did you mean"):
        Space(model, [machine], TrainingOptions(), {"precison": ("bf16",)})
    with pytest.raises(InvalidInput, match="given and varied"):
        Space(model, [machine], TrainingOptions(precision="bf16"), {"precision": ("bf16",)})
    with pytest.raises(InvalidInput, match="at least one machine"):
        Space(model, [], TrainingOptions())
