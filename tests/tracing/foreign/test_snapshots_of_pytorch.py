"""Snapshots of PyTorch's allocator: what happened, what is held, who made it."""

from pathlib import Path

import pytest

from tonnage.kernel.errors import InvalidInput
from tonnage.trace.events import check
from tonnage.trace.foreign import NOT_TOLD, read
from tonnage.trace.replay import replay
from tracing.foreign.files import (
    BASE,
    ENGINE,
    FORWARD,
    KIB,
    LOAD,
    MIB,
    STEP,
    ZERO,
    Trace,
    as_json,
    as_pickle,
    block,
    frame,
    segment,
    snapshot,
)


def made(tmp_path: Path, data: object, device: int | None = None):
    found = read(as_pickle(tmp_path / "snap.pickle", data), device)
    if found.events is not None:
        check(found.events)
    return found


def small_history() -> dict:
    """A segment, two allocations in it, one address used twice."""
    trace = (
        Trace()
        .add("segment_alloc", BASE, 20 * MIB)
        .alloc(BASE, 3 * MIB)
        .alloc(BASE + 3 * MIB, 2 * MIB)
        .free(BASE, 3 * MIB)
    )
    trace.alloc(BASE, MIB + 1)
    held = [
        block(BASE, MIB + 512, MIB + 1),
        block(BASE + MIB + 512, 2 * MIB - 512, state="inactive"),
        block(BASE + 3 * MIB, 2 * MIB),
    ]
    return snapshot(trace, [segment(BASE, [*held, block(BASE + 5 * MIB, 15 * MIB, state="inactive")])])


def test_an_address_that_comes_again_is_another_allocation(tmp_path):
    found = made(tmp_path, small_history())
    assert [each.bytes for each in found.events.allocations] == [3 * MIB, 2 * MIB, MIB + 1]
    assert found.events.order == [0, 1, ~0, 2]


def test_peaks_ends_and_segments_are_told(tmp_path):
    found = made(tmp_path, small_history())
    assert (found.allocated_peak, found.reserved_peak) == (5 * MIB, 20 * MIB)
    assert (found.allocated_end, found.reserved_end) == (3 * MIB + 512, 20 * MIB)
    assert [(each.bytes, each.allocated_bytes, each.largest_free_bytes) for each in found.segments] == [
        (20 * MIB, 3 * MIB + 512, 15 * MIB)
    ]
    assert found.fragmentation == pytest.approx(1 - (3 * MIB + 512) / (20 * MIB))
    assert found.notes == ()


def test_json_and_packed_json_say_the_same(tmp_path):
    first = made(tmp_path, small_history())
    for packed in (False, True):
        found = read(as_json(tmp_path / "snap", small_history(), packed))
        assert found.events == first.events
        assert found.to_dict() | {"source": ""} == first.to_dict() | {"source": ""}


@pytest.mark.parametrize("protocol", range(6))
def test_every_protocol_says_the_same(tmp_path, protocol):
    assert read(as_pickle(tmp_path / "x", small_history(), protocol)).events == made(tmp_path, small_history()).events


def test_what_is_freed_without_having_been_made_was_there_before(tmp_path):
    found = made(tmp_path, snapshot(Trace().alloc(BASE, 512).free(BASE + 512, MIB)))
    assert found.events.order == [1, 0, ~1]
    assert found.allocated_peak == MIB + 512
    assert any("the history began late: 1 allocations of 1,048,576 bytes" in note for note in found.notes)


def test_blocks_in_use_that_nothing_made_were_there_before(tmp_path):
    trace = Trace().alloc(BASE + MIB, MIB).free(BASE + MIB, MIB)
    found = made(
        tmp_path,
        snapshot(trace, [segment(BASE, [block(BASE, MIB, frames=LOAD), block(BASE + MIB, MIB, state="inactive")])]),
    )
    assert found.allocated_peak == 2 * MIB
    assert found.by_category == {"parameter": MIB, NOT_TOLD: MIB}
    assert found.events.allocations[found.events.order[0]].phase == "before the history"


def test_reserved_bytes_are_told_back_from_what_is_held_now(tmp_path):
    trace = (
        Trace()
        .add("segment_free", BASE, 20 * MIB)
        .add("segment_map", BASE + 40 * MIB, 4 * MIB)
        .alloc(BASE + 40 * MIB, 4 * MIB)
    )
    trace.add("segment_unmap", BASE + 60 * MIB, 2 * MIB)
    found = made(
        tmp_path, snapshot(trace, [segment(BASE + 40 * MIB, [block(BASE + 40 * MIB, 4 * MIB)], is_expandable=True)])
    )
    assert found.reserved_peak == 22 * MIB  # 20 and 2 were held when it began
    assert found.segments[0].expandable


def test_memory_that_another_stream_still_uses_counts_until_the_free_is_completed(tmp_path):
    trace = (
        Trace()
        .alloc(BASE, MIB)
        .add("free_requested", BASE, MIB)
        .alloc(BASE + MIB, MIB)
        .add("free_completed", BASE, MIB)
    )
    assert made(tmp_path, snapshot(trace)).allocated_peak == 2 * MIB


def test_a_history_without_completed_frees_is_read_by_the_requested_ones(tmp_path):
    trace = Trace().alloc(BASE, MIB).add("free_requested", BASE, MIB).alloc(BASE, MIB)
    assert made(tmp_path, snapshot(trace)).allocated_peak == MIB


def test_a_free_that_is_missing_is_said(tmp_path):
    found = made(tmp_path, snapshot(Trace().alloc(BASE, MIB).alloc(BASE, 2 * MIB)))
    assert found.allocated_peak == 2 * MIB
    assert any("1 frees were not recorded" in note for note in found.notes)


def test_running_out_of_memory_is_said(tmp_path):
    found = made(tmp_path, snapshot(Trace().alloc(BASE, MIB).add("oom", 77, 5 * MIB).add("snapshot", 0, 0)))
    assert any("5,242,880 bytes were wanted, the device had 77 free" in note for note in found.notes)


def test_settings_are_those_of_the_file(tmp_path):
    data = small_history() | {
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True,max_split_size_mb:64"}
    }
    found = made(tmp_path, data)
    assert found.settings.expandable_segments
    assert found.settings.max_split_size == 64 * MIB
    odd = made(tmp_path, small_history() | {"allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "of_tomorrow:1"}})
    assert any("of_tomorrow" in note for note in odd.notes)


def test_events_of_a_file_can_be_replayed_with_its_settings(tmp_path):
    found = made(tmp_path, small_history())
    again = replay(found.events, found.settings)
    assert (again.peak_allocated_bytes, again.peak_reserved_bytes) == (found.allocated_peak, found.reserved_peak)


def two_devices() -> dict:
    return snapshot(
        [Trace().alloc(BASE, 512), Trace().alloc(BASE, MIB).free(BASE, MIB)], [segment(BASE, [block(BASE, 512)])]
    )


def test_one_of_several_devices_is_read_and_all_are_listed(tmp_path):
    found = made(tmp_path, two_devices())
    assert (found.device, found.allocated_peak) == ("cuda:1", MIB)
    assert [(each.name, each.actions, each.bytes) for each in found.devices] == [("cuda:0", 1, 512), ("cuda:1", 3, 0)]
    assert made(tmp_path, two_devices(), 0).allocated_peak == 512
    with pytest.raises(InvalidInput, match=r"nothing of device 2\. It knows 0, 1"):
        made(tmp_path, two_devices(), 2)


def training() -> Trace:
    """Weights, a step of forward, backward and optimizer, gradients given up, and forward again."""
    at = [BASE + i * MIB for i in range(10)]
    trace = Trace().alloc(at[0], 100 * KIB, LOAD)
    for _ in range(2):
        trace.alloc(at[1], 50 * KIB, FORWARD).alloc(at[2], 10 * KIB, FORWARD).free(at[2], 10 * KIB, FORWARD)
        trace.alloc(at[3], 100 * KIB, ENGINE).alloc(at[4], 20 * KIB, ENGINE).free(at[4], 20 * KIB).free(at[1], 50 * KIB)
        if trace.entries[-1]["time_us"] < 15:
            trace.alloc(at[5], 200 * KIB, STEP)
        trace.alloc(at[6], 30 * KIB, STEP).free(at[6], 30 * KIB, STEP)
        trace.free(at[3], 100 * KIB, ZERO)
    return trace


def test_frames_and_lifetimes_tell_categories(tmp_path):
    found = made(tmp_path, snapshot(training()))
    assert [each.category for each in found.events.allocations[:7]] == [
        "parameter",
        "activation",
        "temporary",
        "gradient",
        "temporary",
        "optimizer",
        "temporary",
    ]
    assert found.by_category == {  # in backward of the second step
        "parameter": 100 * KIB,
        "optimizer": 200 * KIB,
        "activation": 50 * KIB,
        "gradient": 100 * KIB,
        "temporary": 20 * KIB,
    }
    assert found.told == ("activation", "gradient", "optimizer", "parameter", "temporary")
    assert any("phases are told by stack frames" in note for note in found.notes)


def test_frames_tell_operation_module_and_phase(tmp_path):
    found = made(tmp_path, snapshot(training())).events.allocations
    assert (found[1].operation, found[1].module, found[1].phase) == ("linear", "model.py:7 (forward)", "forward")
    assert (found[3].operation, found[3].phase) == ("aten.mm", "backward")


def test_stages_have_the_names_of_a_traced_program(tmp_path):
    found = made(tmp_path, snapshot(training()))
    assert [(stage.name, stage.allocated_bytes // KIB) for stage in found.stages] == [
        ("Initial", 100),
        ("After loss", 150),
        ("After backward", 200),
        ("After optimizer step", 400),
        ("After loss (step 2)", 350),
        ("After backward (step 2)", 400),
        ("After optimizer step (step 2)", 400),
    ]


def test_a_thread_without_frames_is_the_backward_one(tmp_path):
    trace = Trace().alloc(BASE, KIB, FORWARD).alloc(BASE + KIB, KIB).alloc(BASE + 2 * KIB, KIB, STEP)
    found = made(tmp_path, snapshot(trace))
    assert [each.category for each in found.events.allocations] == ["activation", "gradient", "optimizer"]


def test_a_checkpointed_forward_runs_again_in_backward(tmp_path):
    again = [frame("forward", "/home/me/model.py", 7), frame("unpack_hook", "/x/torch/utils/checkpoint.py", 2)]
    trace = (
        Trace()
        .alloc(BASE, KIB, FORWARD)
        .alloc(BASE + KIB, KIB, again)
        .free(BASE + KIB, KIB)
        .alloc(BASE + KIB, KIB, STEP)
    )
    made_now = made(tmp_path, snapshot(trace)).events.allocations
    assert [(each.phase, each.category) for each in made_now][1] == ("backward", "activation")


def test_nothing_is_sorted_where_nothing_is_told(tmp_path):
    found = made(tmp_path, snapshot(Trace().alloc(BASE, MIB)))
    assert found.by_category == {NOT_TOLD: MIB}
    assert found.told == ()
    assert found.events.allocations[0].category == "temporary"


def test_categories_of_the_profiler_are_taken_in_our_words(tmp_path):
    words = {
        "parameter": 1,
        "optimizer_state": 2,
        "input": 3,
        "autograd_detail": 4,
        "activation": 5,
        "gradient": 6,
        "unknown": 7,
    }
    trace = Trace()
    for word, size in words.items():
        trace.alloc(BASE + size * MIB, size, category=word)
    assert made(tmp_path, snapshot(trace)).by_category == {
        "parameter": 1,
        "optimizer": 2,
        "buffer": 3,
        "temporary": 4,
        "activation": 5,
        "gradient": 6,
        NOT_TOLD: 7,
    }


def test_annotations_of_the_program_are_stages(tmp_path):
    notes = [{"name": "warm", "stage": s, "device": 0, "time_us": t} for s, t in (("START", 0), ("END", 1))]
    found = made(tmp_path, snapshot(Trace().alloc(BASE, MIB).alloc(BASE + MIB, MIB), external_annotations=notes))
    assert [(stage.name, stage.allocated_bytes) for stage in found.stages] == [("warm", MIB)]


def test_a_state_without_a_history_tells_its_own_moment(tmp_path):
    for data in ([segment(BASE, [block(BASE, MIB)])], {"segments": [segment(BASE, [block(BASE, MIB)])]}):
        found = made(tmp_path, data)
        assert (found.allocated_peak, found.reserved_peak, found.events) == (MIB, MIB, None)
        assert any("no actions were recorded" in note for note in found.notes)


def test_blocks_of_old_snapshots_hold_their_history(tmp_path):
    old = {
        "size": MIB,
        "state": "active_allocated",
        "history": [{"addr": BASE, "real_size": MIB - 5, "frames": FORWARD}],
    }
    found = made(
        tmp_path, snapshot(Trace().alloc(BASE + 9 * MIB, 1), [segment(BASE, []) | {"total_size": MIB, "blocks": [old]}])
    )
    assert MIB - 5 in [each.bytes for each in found.events.allocations]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"weights": 1}, "neither segments nor device_traces"),
        ({"segments": 3}, "is no memory snapshot: Expected `array`"),
        ({"device_traces": [[{"action": 1}]]}, "Expected `str`"),
        ({"device_traces": [[{"action": "alloc", "size": -1}]]}, "impossible number of bytes: -1"),
        ({"device_traces": [[{"action": "alloc", "size": 2**60}]]}, "impossible number of bytes"),
        ({"segments": [{"address": 0, "total_size": 2**60, "blocks": []}]}, "a segment has an impossible"),
        ("text", "neither"),
    ],
)
def test_what_is_no_snapshot_is_refused(tmp_path, data, reason):
    with pytest.raises(InvalidInput, match=reason):
        made(tmp_path, data)
