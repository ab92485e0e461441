"""Predicted and real memory side by side."""

import json
from pathlib import Path

from hypothesis import given

from tonnage.kernel.units import MIB
from tonnage.trace.beside import Row, compare_with_real
from tonnage.trace.events import Allocation, Events
from tonnage.trace.foreign import Foreign, read, write_snapshot
from tonnage.trace.foreign.snapshot import from_data
from tonnage.trace.foreign.write import as_snapshot
from tonnage.trace.recording import Recording
from tonnage.trace.replay import Stage, replay
from tracing.foreign.test_replays_are_written_and_read_back import programs


def recorded(events: Events) -> Recording:
    return Recording(events=events, profile="torch-2.13-h100", front_end="meta", program="mlp")


def program() -> Events:
    events = Events()
    events.allocate(Allocation(20 * MIB, category="parameter"))
    kept = events.allocate(Allocation(4 * MIB + 1, category="activation"))
    events.mark("After loss")
    events.allocate(Allocation(20 * MIB, category="gradient"))
    events.free(kept)
    events.mark("After backward")
    return events


PREDICTED = recorded(program())


def figures(rows) -> dict:
    return {row.name: (row.predicted, row.real) for row in rows}


def against(**told):
    return compare_with_real(
        PREDICTED, replay(PREDICTED.events), Foreign(format="f", source="s", device="cuda:0", **told)
    )


def test_a_difference_is_predicted_less_real_and_its_share_is_of_the_real_figure():
    assert (Row("x", 110, 100).difference, Row("x", 110, 100).share) == (10, 0.1)
    assert (Row("x", 110, None).difference, Row("x", None, 100).share, Row("x", 5, 0).share) == (None, None, None)


def test_totals_stand_side_by_side():
    made = against(allocated_peak=40 * MIB, reserved_peak=60 * MIB)
    assert figures(made.totals) == {"peak allocated": (44 * MIB + 512, 40 * MIB), "peak reserved": (60 * MIB, 60 * MIB)}


def test_categories_that_the_file_distinguishes_stand_alone_and_the_others_together():
    made = against(
        allocated_peak=46 * MIB,
        by_category={"parameter": 20 * MIB, "not told": 25 * MIB, "persist": MIB},
        told=("parameter", "optimizer"),
    )
    assert figures(made.categories) == {
        "parameter": (20 * MIB, 20 * MIB),
        "optimizer": (0, 0),
        "not told": (24 * MIB + 1, 26 * MIB),
        "rounding": (511, 0),
    }


def test_a_file_that_distinguishes_nothing_is_compared_in_one_row():
    made = against(allocated_peak=46 * MIB, by_category={"temp": 40 * MIB, "argument": 6 * MIB})
    assert figures(made.categories) == {"not told": (44 * MIB + 1, 46 * MIB), "rounding": (511, 0)}


def test_a_file_of_the_driver_is_compared_by_what_is_held_alone():
    made = against(reserved_peak=80 * MIB, by_category={"not told": 80 * MIB})
    assert figures(made.totals) == {"peak reserved": (60 * MIB, 80 * MIB)}
    assert made.categories == ()


def test_stages_that_both_name_stand_side_by_side():
    stages = (Stage("After backward", 30 * MIB, 0, 0), Stage("After backward", 41 * MIB, 0, 0), Stage("Other", 1, 0, 0))
    assert figures(against(allocated_peak=0, stages=stages).stages) == {"After backward": (40 * MIB, 41 * MIB)}


def test_texts_have_units_signs_and_percent():
    rows = list(against(allocated_peak=40 * MIB, reserved_peak=None).rows())
    assert rows[0] == ("peak allocated", "44.00 MiB", "40.00 MiB", "+4.00 MiB", "+10.0%")
    assert rows[1] == ("peak reserved", "60.00 MiB", "not told", "", "")
    assert rows[2] == ("at the peak:", "", "", "", "")


def test_json_has_bytes_and_relative_errors():
    made = against(allocated_peak=40 * MIB, notes=("late",)).to_dict()
    assert json.loads(json.dumps(made)) == made
    assert made["totals"][0] == {
        "name": "peak allocated",
        "predicted_bytes": 44 * MIB + 512,
        "real_bytes": 40 * MIB,
        "difference_bytes": 4 * MIB + 512,
        "relative_error": (4 * MIB + 512) / (40 * MIB),
    }
    assert made["notes"] == ["late"]


@given(programs())
def test_a_program_beside_its_own_snapshot_differs_only_by_blocks_that_were_not_split(events):
    first = replay(events, record=True)
    made = compare_with_real(recorded(events), first, from_data(as_snapshot(first, events), "f"))
    assert figures(made.totals)["peak reserved"][0] == figures(made.totals)["peak reserved"][1]
    assert all(row.difference >= 0 for row in made.totals)
    assert sum(row.predicted for row in made.categories) == first.peak_allocated_bytes


def test_a_snapshot_on_disk_agrees_with_its_recording(tmp_path: Path):
    first = replay(PREDICTED.events, record=True)
    write_snapshot(first, PREDICTED.events, tmp_path / "s.pickle")
    made = compare_with_real(PREDICTED, first, read(tmp_path / "s.pickle"))
    assert [row.difference for part in (made.totals, made.categories, made.stages) for row in part] == [0] * 8
    assert [row.name for row in made.stages] == ["After loss", "After backward"]
