"""DistributedDataParallel's buckets: when they come, how large they are, and what they cost."""

import pytest
import torch
import torch.distributed as dist
from distributed_programs import LLAMA, PROFILE, SHAPES, elements, live
from torch import nn

from tonnage.kernel.units import MIB
from tonnage.trace.distributed import Distributed, World
from tonnage.trace.record.distributed import distributed
from tonnage.trace.record.fake.environment import recording
from tonnage.trace.replay import replay

LINEAR = (1024 * 1024 + 1024) * 4
WHOLE = 12 * LINEAR


def record(wrap=None, steps=3, ranks=8, no_sync=False, hook=None, frozen=0):
    """Three steps of twelve layers of 1024 x 1024 with a bias, with and without DDP; the first ones may be frozen."""
    with recording("cuda", PROFILE, world=World(size=ranks)) as recorder:
        dist.init_process_group("nccl")
        model = nn.Sequential(*[nn.Linear(1024, 1024, device="cuda") for _ in range(12)])
        model[:frozen].requires_grad_(False)
        inputs = torch.randn(32, 1024, device="cuda")
        if wrap is not None:
            model = nn.parallel.DistributedDataParallel(model, **wrap)
        if hook is not None:
            model.register_comm_hook(None, hook)
        recorder.mark("made", "step 1")
        for step in range(steps):
            if no_sync:
                with model.no_sync():
                    model(inputs).sum().backward()
            model(inputs).sum().backward()
            recorder.sort((each.grad for each in model.parameters() if each.requires_grad), "gradient")
            recorder.mark(f"backward {step + 1}")
            model.zero_grad()
            recorder.mark(f"zeroed {step + 1}", f"step {step + 2}")
        recorder.keep(model)
    return recorder.events


def allocated(events):
    return {stage.name: stage.allocated_bytes for stage in replay(events).stages}


def buckets(events, phase):
    sizes = (
        each.bytes
        for each in events.allocations
        if each.phase == phase and each.operation == "aten.empty.memory_format"
    )
    return [size for size in sizes if size > MIB]


def test_buckets_cost_once_all_gradients():
    plain, wrapped = allocated(record()), allocated(record({}))
    assert {wrapped[stage] - plain[stage] for stage in plain} == {WHOLE}
    assert round(WHOLE / MIB) == 48


def test_buckets_hold_gradients_of_what_trains_alone():
    """torch/nn/parallel/distributed.py, _build_params_for_reducer: parameters with requires_grad."""
    plain, wrapped = allocated(record(frozen=10)), allocated(record({}, frozen=10))
    assert {wrapped[stage] - plain[stage] for stage in plain} == {2 * LINEAR}


def test_gradients_that_are_views_of_buckets_cost_nothing_more():
    plain, wrapped = allocated(record()), allocated(record({"gradient_as_bucket_view": True}))
    for step in (1, 2, 3):
        assert wrapped[f"backward {step}"] == plain[f"backward {step}"]
        assert wrapped[f"zeroed {step}"] - plain[f"zeroed {step}"] == WHOLE


def test_the_first_step_has_one_bucket_and_the_second_many_in_order_of_gradients():
    events = record({})
    made = [each.bytes for each in events.allocations if each.phase == "setup" and each.bytes > 4 * MIB + 4096]
    assert WHOLE in made
    # The first closes at 1 MiB, which one layer's weight fills; the others at 25 MiB, which seven layers reach.
    assert buckets(events, "step 2") == [LINEAR, 7 * LINEAR, 4 * LINEAR]
    assert buckets(events, "step 3") == []


def test_the_one_bucket_is_gone_before_the_many_come():
    events = record({})
    single = next(
        number
        for number, each in enumerate(events.allocations)
        if each.bytes == WHOLE and number in kept(events, "made")
    )
    freed = events.order.index(~single)
    first = next(
        at
        for at, event in enumerate(events.order)
        if event >= 0 and events.allocations[event].phase == "step 2" and events.allocations[event].bytes == LINEAR
    )
    assert freed < first


def kept(events, stage):
    return events.live_at(next(mark.position for mark in events.marks if mark.name == stage))


@pytest.mark.parametrize(("limit", "sizes"), [(1, [1] * 12), (9, [3] * 4), (100, [12])])
def test_a_limit_of_ones_own_holds_for_the_first_bucket_too(limit, sizes):
    assert buckets(record({"bucket_cap_mb": limit}), "step 2") == [each * LINEAR for each in sizes]


def test_looking_for_unused_parameters_keeps_the_first_buckets():
    events = record({"find_unused_parameters": True})
    assert buckets(events, "step 2") == []
    # Assigned by the order of parameters: the first is the small one, which one weight without its bias fills, and is
    # reduced last.
    assert buckets(events, "setup")[-3:] == [4 * LINEAR + 4096, 7 * LINEAR, LINEAR - 4096]


@pytest.mark.parametrize("wrap", [{"static_graph": True}, {"gradient_as_bucket_view": True}, {}], ids=str)
def test_accumulating_without_reducing_changes_nothing_between_steps(wrap):
    plain, accumulated = allocated(record(wrap)), allocated(record(wrap, no_sync=True))
    assert accumulated["zeroed 3"] == plain["zeroed 3"]
    assert accumulated["backward 3"] == plain["backward 3"]


def test_a_hook_that_halves_the_dtype_holds_half_a_bucket_while_it_runs():
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook

    halved = {each.bytes for each in record({}, hook=bf16_compress_hook).allocations if each.phase == "step 3"}
    assert {LINEAR // 2, 7 * LINEAR // 2, 4 * LINEAR // 2} <= halved


def test_ranks_cost_two_events_each_as_counts_of_parameters_are_compared():
    four, nine = len(record({}, ranks=4)), len(record({}, ranks=9))
    assert nine - four == 2 * (9 - 4)


def test_a_llama_under_ddp_has_whole_weights_gradients_states_and_buckets():
    whole = sum(elements(shape) for shape in SHAPES)
    for views in (False, True):
        plan = Distributed(kind="ddp", world_size=4, rank=2, sequence_length=32, gradient_as_bucket_view=views)
        events = distributed(LLAMA, plan, PROFILE).events
        assert live(events, "Initial", "parameter") == 4 * whole
        assert live(events, "After optimizer step (step 2)", "optimizer") == 8 * whole
        assert live(events, "After backward (step 2)", "gradient") == 4 * whole
