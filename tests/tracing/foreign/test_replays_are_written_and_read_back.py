"""A replay written as a snapshot, and read back: the same events, stages, segments and peaks."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonnage.kernel.units import MIB
from tonnage.trace.allocator import Settings, parse_settings
from tonnage.trace.events import CATEGORIES, Allocation, Events
from tonnage.trace.foreign import read, write_snapshot
from tonnage.trace.foreign.snapshot import from_data
from tonnage.trace.foreign.write import as_snapshot, settings_of
from tonnage.trace.replay import replay

SIZES = st.one_of(st.integers(0, 4096), st.integers(1, 3 * MIB), st.integers(9 * MIB, 40 * MIB))
MADE = st.builds(
    Allocation,
    bytes=SIZES,
    stream=st.integers(0, 2),
    operation=st.sampled_from(["", "aten.mm.default", "flash"]),
    module=st.sampled_from(["", "layers.0.mlp"]),
    phase=st.sampled_from(["forward", "backward"]),
    category=st.sampled_from(CATEGORIES),
    overlay=st.booleans(),
)
SETTINGS = st.sampled_from(
    [
        "",
        "expandable_segments:True",
        "max_split_size_mb:32",
        "roundup_power2_divisions:4",
        "roundup_power2_divisions:[256:1,512:2,>:8]",
        "garbage_collection_threshold:0.5,per_process_memory_fraction:0.9",
        "large_segment_size_mb:40,max_non_split_rounding_mb:30",
    ]
)


@st.composite
def programs(draw) -> Events:
    """Allocations that come and go, with marks between."""
    events, live = Events(), []
    for step in range(draw(st.integers(1, 40))):
        what = draw(st.integers(0, 5))
        if what == 0:
            events.mark(f"stage {step}")
        elif what <= 2 and live:
            events.free(live.pop(draw(st.integers(0, len(live) - 1))))
        else:
            live.append(events.allocate(draw(MADE)))
    return events


def without_empty(events: Events, until: int | None = None) -> tuple[list, list, list]:
    """Allocations of some bytes in order of their making, order and marks: what an allocator sees."""
    numbers, allocations, order, places = {}, [], [], []
    for event in events.order[:until]:
        places.append(len(order))
        number = event if event >= 0 else ~event
        if events.allocations[number].bytes == 0:
            continue
        if event >= 0:
            numbers[number] = len(allocations)
            allocations.append(events.allocations[number])
        order.append(numbers[number] if event >= 0 else ~numbers[number])
    places.append(len(order))
    return (
        allocations,
        order,
        [(mark.name, places[mark.position]) for mark in events.marks if mark.position < len(places)],
    )


@given(programs(), SETTINGS)
def test_what_is_read_back_is_what_was_replayed(events, text):
    settings = parse_settings(text)
    first = replay(events, settings, record=True, total=2**40)
    found = from_data(pickle.loads(pickle.dumps(as_snapshot(first, events))), "f")
    assert found.settings == settings
    allocations, order, marks = without_empty(events)
    if not order:
        return
    assert (found.events.allocations, found.events.order) == (allocations, order)
    assert [(mark.name, mark.position) for mark in found.events.marks] == marks
    assert found.reserved_peak == first.peak_reserved_bytes
    assert (found.allocated_end, found.reserved_end) == (first.allocator.allocated, first.allocator.reserved)
    assert [(each.name, each.reserved_bytes) for each in found.stages] == [
        (each.name, each.reserved_bytes) for each in first.stages
    ]
    again = replay(found.events, found.settings, total=2**40)
    assert again.peak_allocated_bytes == first.peak_allocated_bytes >= found.allocated_peak
    assert again.stages == first.stages


@given(programs(), st.integers(1, 40))
def test_a_replay_that_ran_out_of_memory_says_so_when_read_back(events, capacity):
    first = replay(events, capacity=2 * MIB * capacity, record=True)
    found = from_data(as_snapshot(first, events), "f")
    if first.failure is None:
        assert not any("memory ran out" in note for note in found.notes)
        return
    assert any("memory ran out" in note for note in found.notes)
    allocations, order, _ = without_empty(events, first.failure.position)
    if order:
        assert (found.events.allocations, found.events.order) == (allocations, order)


@pytest.mark.parametrize(
    "text", ["", "max_split_size_mb:21,expandable_segments:True", "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]"]
)
def test_settings_are_written_as_pytorch_reads_them(text):
    settings = parse_settings(text)
    assert parse_settings(settings_of(settings)["PYTORCH_CUDA_ALLOC_CONF"]) == settings
    assert settings_of(Settings())["PYTORCH_CUDA_ALLOC_CONF"] == ""


def test_a_file_holds_what_is_known_of_each_allocation(tmp_path):
    events = Events()
    events.allocate(Allocation(5 * MIB, 0, "aten.mm.default", "layers.0.mlp", "forward", "activation"))
    write_snapshot(replay(events, record=True), events, tmp_path / "s.pickle")
    entry = pickle.loads((tmp_path / "s.pickle").read_bytes())["device_traces"][0][-1]
    assert entry["category"] == "activation"
    assert [(each["filename"], each["name"]) for each in entry["frames"]] == [
        ("operation", "aten.mm.default"),
        ("module", "layers.0.mlp"),
        ("phase", "forward"),
        ("category", "activation"),
    ]
    assert read(tmp_path / "s.pickle").by_category == {"activation": 5 * MIB}
