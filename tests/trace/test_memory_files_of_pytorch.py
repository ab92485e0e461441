"""Files that PyTorch writes and reads: its viewer opens our snapshots, and what its profiler writes is read as it
means it.
"""

import json
import pickle
import warnings
from collections import Counter
from pathlib import Path

import pytest
import torch
from torch.cuda import _memory_viz as viewer
from torch.profiler import ProfilerActivity, profile
from torch.profiler._memory_profiler import _CATEGORY_TO_INDEX

from tonnage.kernel.units import MIB
from tonnage.trace.allocator import Settings, snapshot
from tonnage.trace.beside import compare_with_real
from tonnage.trace.events import Events, check
from tonnage.trace.foreign import read, write_snapshot
from tonnage.trace.foreign.frames import WORDS
from tonnage.trace.foreign.timeline import COLUMNS
from tonnage.trace.profiles import profile as profile_of
from tonnage.trace.program import as_program
from tonnage.trace.record.fake.environment import recording
from tonnage.trace.record.train import train
from tonnage.trace.recording import Recording
from tonnage.trace.replay import Replay, replay


@pytest.fixture(scope="module")
def traced() -> Recording:
    """Two steps of a small network, on no device."""
    with recording("meta", profile_of("torch-2.13-h100")) as recorder, torch.device("meta"):
        model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(4)))
        program = as_program(
            (model, torch.zeros(32, 1024), lambda output: output.square().mean(), torch.optim.AdamW), "test"
        )
        train(recorder, program)
    return recorder.recording("small network")


@pytest.fixture(params=[Settings(), Settings(expandable_segments=True)], ids=["default", "expandable"])
def replayed(request, traced) -> Replay:
    return replay(traced.events, request.param, record=True)


def opened(path: Path) -> dict:
    with path.open("rb") as file:
        return pickle.load(file)  # what torch.cuda._memory_viz does


def test_the_viewer_opens_what_is_written(traced, replayed, tmp_path):
    write_snapshot(replayed, traced.events, tmp_path / "s.pickle")
    data = opened(tmp_path / "s.pickle")
    for plot in (viewer.trace_plot, viewer.segment_plot, lambda each: viewer.trace_plot(each, plot_segments=True)):
        assert "snapshot.pickle" in plot(data)
    assert f"total_reserved: {viewer.Bytes(replayed.allocator.reserved)}" in viewer.segsum(data)
    assert "aten.addmm" in viewer.memory(data, format_flamegraph=str)
    assert "aten.addmm" in viewer.segments(data, format_flamegraph=str)
    assert viewer.trace(data).startswith("Device 0")


def test_the_viewer_opens_a_bare_snapshot_of_the_allocator(replayed):
    data = snapshot(replayed.allocator)
    assert "segments:" in viewer.segsum(data)
    assert viewer.trace_plot(data)
    assert viewer.segment_plot(data)


def test_a_program_that_runs_out_of_memory_is_shown_too(traced, tmp_path):
    failed = replay(traced.events, capacity=40 * MIB, record=True)
    write_snapshot(failed, traced.events, tmp_path / "s.pickle")
    assert "OutOfMemoryError" in viewer.trace(opened(tmp_path / "s.pickle"))
    assert any("memory ran out" in note for note in read(tmp_path / "s.pickle").notes)


def test_a_traced_program_and_its_own_snapshot_agree(traced, replayed, tmp_path):
    write_snapshot(replayed, traced.events, tmp_path / "s.pickle")
    found = read(tmp_path / "s.pickle")
    kept = Events(allocations=[each for each in traced.events.allocations if each.bytes])
    assert found.events.allocations == kept.allocations
    made = compare_with_real(traced, replayed, found)
    assert [row.name for row in made.stages if row.difference] == []
    assert [row.name for row in (*made.totals, *made.categories) if row.difference] == []
    assert {row.name for row in made.categories} >= {"parameter", "gradient", "optimizer", "activation"}


@pytest.fixture(scope="module")
def profiled(tmp_path_factory) -> tuple[Path, Path, Path, torch.nn.Module]:
    """Two real steps on the CPU, and what the profiler writes of them."""
    folder = tmp_path_factory.mktemp("profiled")
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, with_stack=True, record_shapes=True) as seen:
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.ones(64, 256)).square().mean().backward()
            optimizer.step()
    seen.export_chrome_trace(str(folder / "trace.json"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        seen.export_memory_timeline(str(folder / "timeline.json"), "cpu")
        seen.export_memory_timeline(str(folder / "timeline.raw.json.gz"), "cpu")
    return folder / "trace.json", folder / "timeline.json", folder / "timeline.raw.json.gz", model


def _bytes(model: torch.nn.Module) -> int:
    return sum(each.numel() * each.element_size() for each in model.parameters())


def test_a_real_profiler_trace_gives_its_totals_and_stages(profiled):
    trace, _, _, model = profiled
    found = read(trace)
    check(found.events)
    totals = [
        each["args"]["Total Allocated"]
        for each in json.loads(trace.read_text())["traceEvents"]
        if each["name"] == "[memory]"
    ]
    assert (found.device, found.allocated_peak, found.allocated_end) == ("cpu", max(totals), totals[-1])
    assert [stage.name for stage in found.stages] == [
        "After loss",
        "After backward",
        "After optimizer step",
        "After loss (step 2)",
        "After backward (step 2)",
        "After optimizer step (step 2)",
    ]
    states = Counter(each.bytes for each in found.events.allocations if each.category == "optimizer")
    assert states == Counter(size for each in model.parameters() for size in (4, *[each.numel() * 4] * 2))
    gradients = sum(each.bytes for each in found.events.allocations if each.category == "gradient")
    assert gradients == 2 * _bytes(model)


def test_both_real_timelines_tell_the_same(profiled):
    _, timeline, raw, model = profiled
    first, second = read(timeline), read(raw)
    assert first.allocated_end == second.allocated_end
    assert first.allocated_peak <= second.allocated_peak  # what happens in one microsecond is one row of the first
    assert first.by_category["parameter"] >= _bytes(model)
    assert first.told == second.told


def test_columns_and_words_are_those_of_the_profiler():
    for category, column in _CATEGORY_TO_INDEX.items():
        assert COLUMNS[column] == (None if category is None else WORDS[category.name.lower()])
    assert len(COLUMNS) == len(_CATEGORY_TO_INDEX)
