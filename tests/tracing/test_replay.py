"""Events, their file, their replay, and the timeline: facts that hold of any program."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonnage.kernel.errors import InvalidInput, TonnageError, UnknownName
from tonnage.kernel.units import MIB
from tonnage.trace.allocator import parse_settings
from tonnage.trace.events import CATEGORIES, Allocation, Events, check, decode, encode
from tonnage.trace.overlays import OVERLAYS, overlays
from tonnage.trace.profiles import names, profile
from tonnage.trace.replay import least_capacity, replay
from tonnage.trace.timeline import by_category, by_module, timeline


@st.composite
def programs(draw):
    """Events of a program that allocates, frees and marks as it likes."""
    events, live = Events(), []
    for step in range(draw(st.integers(0, 60))):
        if live and draw(st.booleans()):
            events.free(live.pop(draw(st.integers(0, len(live) - 1))))
        else:
            size = draw(st.integers(0, 64 * MIB) | st.integers(0, 5000))
            category = draw(st.sampled_from(CATEGORIES))
            live.append(
                events.allocate(
                    Allocation(size, draw(st.integers(0, 1)), f"op{step % 3}", f"layer.{step % 2}", "p", category)
                )
            )
        if draw(st.integers(0, 9)) == 0:
            events.mark(f"stage {step}")
    return events


@given(programs())
def test_a_file_of_events_gives_the_events_back(events):
    read, about = decode(encode(events, {"said": 1}))
    assert read == events and about == {"said": 1}


@given(programs(), st.sampled_from(["", "expandable_segments:True", "max_split_size_mb:32"]))
def test_reserved_is_never_below_allocated_and_allocated_never_below_requested(events, text):
    run = replay(events, parse_settings(text))
    assert run.peak_reserved_bytes >= run.peak_allocated_bytes >= run.peak_requested_bytes
    assert all(stage.reserved_bytes >= stage.allocated_bytes for stage in run.stages)
    assert run.peak_allocated_bytes == max(
        (stage.peak_allocated_bytes for stage in run.stages), default=run.peak_allocated_bytes
    ) or (not events.marks or events.marks[-1].position < len(events))
    assert [stage.name for stage in run.stages] == [mark.name for mark in events.marks]


@given(programs())
def test_the_peak_is_where_most_is_alive(events):
    run = replay(events)
    alive = by_category(events, events.live_at(run.peak_position))
    assert sum(alive.values()) <= run.peak_allocated_bytes
    assert sum(share.bytes for share in by_module(events, events.live_at(run.peak_position))) == sum(alive.values())


@given(programs())
def test_the_least_capacity_is_enough_and_a_page_less_is_not(events):
    least = least_capacity(events)
    assert replay(events, capacity=least).failure is None
    if least > 0:
        assert replay(events, capacity=least - 2 * MIB).failure is not None


@given(programs(), st.integers(2, 30))
def test_the_timeline_ends_with_what_is_alive_and_has_the_highest_moment(events, points):
    line = timeline(events, points)
    if not events.order:
        return
    alive = sum(events.allocations[number].bytes for number in events.live_at(len(events)))
    assert line.totals[-1] == alive
    now = highest = 0
    for event in events.order:
        now += events.allocations[event].bytes if event >= 0 else -events.allocations[~event].bytes
        highest = max(highest, now)
    assert max(line.totals) == highest or highest == 0
    assert list(line.positions) == sorted(set(line.positions))


def failing(sizes, frees=()):
    events = Events()
    numbers = [events.allocate(Allocation(size * MIB, operation="aten.mm.default")) for size in sizes[:-1]]
    for index in frees:
        events.free(numbers[index])
    events.allocate(Allocation(sizes[-1] * MIB))
    return events


def test_a_program_that_wants_more_than_there_is_fails_for_need():
    failure = replay(failing([40, 40, 40]), capacity=100 * MIB).failure
    assert failure is not None and failure.reason == "need" and failure.allocation == 2 and failure.position == 2
    assert "Tried to allocate 40.00 MiB" in failure.message


def test_a_program_that_would_fit_in_one_piece_fails_for_fragmentation():
    # four blocks of 5 MiB share a segment; one of each two is freed: 20 MiB are free, and no 12 MiB of them lie
    # together
    events = failing([5] * 8 + [12], frees=[0, 2, 4, 6])
    failure = replay(events, capacity=48 * MIB).failure
    assert failure is not None and failure.reason == "fragmentation"
    assert replay(events, parse_settings("expandable_segments:True"), capacity=60 * MIB).failure is None


def test_what_is_outside_of_the_allocator_takes_room_from_it():
    events = failing([40, 40])
    assert replay(events, capacity=100 * MIB).failure is None
    failure = replay(events, capacity=100 * MIB, outside=30 * MIB, total=128 * MIB).failure
    assert (
        failure is not None
        and "total capacity of 128.00 MiB" in failure.message
        and "70.00 MiB memory in use" in failure.message
    )


def broken(**changes):
    events = Events()
    events.free(events.allocate(Allocation(5)))
    events.mark("end")
    return {**json.loads(encode(events)), **changes}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"order": [0, -1, -1]}, "out of turn"),
        ({"order": [-1, 0]}, "out of turn"),
        ({"order": [1]}, "out of turn"),
        ({"order": [0, 0]}, "out of turn"),
        ({"bytes": [-4]}, "less than 0"),
        ({"bytes": [2**60]}, "more than"),
        ({"bytes": [1, 2]}, "differ in length"),
        ({"operations": [9]}, "entry 9"),
        ({"categories": [6]}, "entry 6"),
        ({"marks": [[7, "x"]]}, "marks"),
        ({"schema": "other"}, "schema"),
        ({"names": None}, "no events"),
        ({"order": ["a"]}, "no events"),
    ],
)
def test_a_broken_file_of_events_is_refused_with_the_reason(changes, said):
    with pytest.raises(InvalidInput, match=said):
        decode(json.dumps(broken(**changes)).encode())


@given(st.binary(max_size=200))
def test_any_bytes_are_events_or_a_clean_error(data):
    with pytest.raises(InvalidInput):
        decode(data)


def test_events_that_free_twice_are_found():
    events = Events()
    number = events.allocate(Allocation(1))
    events.free(number)
    check(events)
    events.free(number)
    with pytest.raises(InvalidInput, match="out of turn"):
        check(events)


@pytest.mark.parametrize(
    ("name", "cublas", "lt", "size", "foreach"),
    [
        ("torch-1.13-a100", "outside", "temporary", 8519680, False),
        ("torch-1.12-v100", "outside", "temporary", 8519680, False),
        ("torch-2.1-h100", "kept", "temporary", 33554432, True),
        ("torch-2.8-a100", "kept", "kept", 8519680, True),
        ("torch-2.13-h200", "kept", "unified", 33554432, True),
        ("torch-2.11-b200", "kept", "unified", 8519680, True),
        ("torch-2.13-b200", "kept", "unified", 33554432, True),
        ("rtx-4090", "kept", "unified", 8519680, True),
    ],
)
def test_a_profile_is_a_version_and_a_gpu(name, cublas, lt, size, foreach):
    chosen = profile(name)
    assert (chosen.cublas, chosen.lt, chosen.cublas_bytes, chosen.foreach) == (cublas, lt, size, foreach)


def test_every_gpu_has_a_profile_with_every_version_and_is_in_the_catalogue():
    from tonnage.catalogue import accelerator

    for gpu in names():
        assert accelerator(profile(gpu).gpu.accelerator).name == profile(gpu).gpu.accelerator
        for minor in (12, 13):
            assert profile(f"torch-1.{minor}-{gpu}").name == f"torch-1.{minor}-{gpu}"
        for minor in range(14):
            assert profile(f"torch-2.{minor}-{gpu}").torch == (2, minor)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("torch-1.5-a100", InvalidInput),
        ("torch-3.0-a100", InvalidInput),
        ("torch-2.13-a10o", UnknownName),
        ("", InvalidInput),
        ("torch 2", InvalidInput),
        ("hunderd", UnknownName),
    ],
)
def test_a_profile_that_is_none_is_refused(name, error):
    with pytest.raises(error):
        profile(name)


@given(st.text(max_size=30))
def test_any_name_is_a_profile_or_a_clean_error(name):
    try:
        profile(name)
    except TonnageError as error:
        assert str(error)


def test_every_overlay_says_its_source_and_holds_for_some_version():
    for overlay in OVERLAYS:
        assert overlay.source and overlay.operations and overlay.first <= (2, 13)
    assert "aten._scaled_dot_product_flash_attention_backward.default" not in overlays(profile("torch-1.13-a100"))


def test_a_recording_is_saved_and_read_back(tmp_path):
    from tonnage.trace.recording import Answered, Fired, Recording, load

    events = failing([5, 6])
    made = Recording(
        events=events,
        profile="torch-2.13-h100",
        front_end="meta",
        program="p",
        overlays=(Fired("x", 1, 2, True, "s"),),
        answers=(Answered("a", "b", "c", 3),),
        notes=("n",),
        attention={"flash": 2},
    )
    made.save(tmp_path / "r.json")
    read = load(tmp_path / "r.json")
    assert msgspec.to_builtins(read) == msgspec.to_builtins(made)
    with pytest.raises(InvalidInput, match=r"nothing\.json"):
        load(tmp_path / "nothing.json")


class Shaped:
    """As much of a tensor as an overlay asks for."""

    def __init__(self, *shape, size=2):
        self.shape, self.size = shape, size

    def element_size(self):
        return self.size


@pytest.mark.parametrize(
    ("batch", "heads", "shared", "queries", "keys", "splits"),
    [
        (8, 32, 8, 4096, 4096, 0),  # a prompt fills the GPU
        (1, 32, 8, 1, 4096, 32),  # one token: 8 blocks for 264 half multiprocessors, 32 blocks of 128 keys
        (64, 32, 8, 1, 4096, 0),  # 512 blocks fill it
        (1, 32, 32, 1, 128, 0),  # one block of keys cannot be split
    ],
)
def test_decoding_splits_the_keys_where_there_are_too_few_queries_to_fill_the_gpu(
    batch, heads, shared, queries, keys, splits
):
    from tonnage.trace.overlays import Call

    chosen = profile("torch-2.13-h100")
    (overlay,) = overlays(chosen)["aten._scaled_dot_product_flash_attention.default"]
    found = overlay.effect(
        Call((Shaped(batch, heads, queries, 128), Shaped(batch, shared, keys, 128), None), {}, None, chosen)
    )
    if not splits:
        assert found is None
    else:
        rows = splits * batch * heads * queries
        assert found.temporaries == (rows * 4, rows * 128 * 4)
