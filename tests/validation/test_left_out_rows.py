"""Rows of new sources that are left out for good: a quarter of each source at least, which no fit and no band reads."""

import ast
from collections import Counter
from pathlib import Path

import pytest
import yaml

import _serving_cases
import _speed_cases
import allocator_reserve
import fit_bands
import fit_links
import leave_out
import vllm_overheads
from _rows_for_fits import RECENT, rows_for_fits
from tonnage.validation import Row, read

ROOT = Path(__file__).parents[2]
FILES = sorted(RECENT.glob("*.yaml"))
EARLIEST = {
    "encoders.yaml": "2020",
    "speech.yaml": "2022",
    "lmdeploy_a100.yaml": "2023",
    "goodput.yaml": "2022",
    "notus.yaml": "2023",
    "energy.yaml": "2022",
}  # of runs of months few were published since
# What makes constants or bands of rows.
FITS = ("fit_rates", "fit_serving", "fit_links", "fit_bands", "allocator_reserve", "vllm_overheads")
COLLECTORS = ("_speed_cases", "_serving_cases", *FITS)


@pytest.fixture(scope="module")
def recent() -> list[Row]:
    return read([str(RECENT)])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_row_of_a_new_source_is_decided_on_and_says_where_and_when_it_is_from(path: Path):
    for row in yaml.safe_load(path.read_text(encoding="utf-8")):
        assert isinstance(row["left_out"], bool), row["id"]
        assert row["labels"]["publication"] and row["source"], row["id"]
        assert row["date"] >= EARLIEST.get(path.name, "2024") and row["note"].startswith("collected 2026-"), row["id"]


def test_at_least_a_quarter_of_every_new_source_is_left_out(recent: list[Row]):
    count = Counter(row.labels["publication"] for row in recent)
    out = Counter(row.labels["publication"] for row in recent if row.left_out)
    assert count and {name for name in count if 4 * out[name] < count[name]} == set()
    assert sum(out.values()) < sum(count.values()) / 2


def test_no_row_of_a_new_source_stands_in_another_file(recent: list[Row]):
    others = {
        row.id for row in read([str(ROOT / "validation" / name) for name in ("infer_speed.yaml", "train_speed.yaml")])
    }
    assert others.isdisjoint(row.id for row in recent)


def test_no_fit_reads_a_row_that_is_left_out(recent: list[Row]):
    out = {row.id for row in recent if row.left_out}
    read_by = {
        "speed": {case.id for case in _speed_cases.cases(everything=True, recent=True)},
        "serving": {case.id for case in _serving_cases.cases(recent=True)},
        "links": {row.id for row in fit_links.cases(recent=True)},
        "bands": {row.id for row in rows_for_fits([*fit_bands.CORPUS, RECENT])},
    }
    assert {name: found & out for name, found in read_by.items()} == {name: set() for name in read_by}
    shown = {row.id for row in recent if not row.left_out}
    assert read_by["speed"] & shown and read_by["serving"] & shown  # the question is not empty


def test_without_being_asked_a_fit_reads_no_new_source(recent: list[Row]):
    names = {row.id for row in recent}
    found = (*_speed_cases.cases(everything=True), *_serving_cases.cases())
    assert names.isdisjoint(case.id for case in found)


def test_a_left_out_row_makes_no_band(tmp_path: Path):
    rows = yaml.safe_load((ROOT / "validation" / "train_memory.yaml").read_text(encoding="utf-8"))
    one = next(row for row in rows if row["id"].startswith("tt-") and row["completeness"] == "full")
    path = tmp_path / "rows.yaml"
    for is_out in (False, True):
        path.write_text(yaml.safe_dump([{**one, "left_out": is_out}]), encoding="utf-8")
        assert len(fit_bands.factors([str(path)])) == (not is_out)


@pytest.mark.parametrize("name", COLLECTORS)
def test_a_fit_has_its_rows_from_the_one_place_that_leaves_them_out(name: str):
    tree = ast.parse((ROOT / "scripts" / f"{name}.py").read_text(encoding="utf-8"))
    imported = [
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tonnage.validation")
        for alias in node.names
    ]
    assert "read" not in imported


def test_other_constants_of_rows_are_made_without_them():
    assert allocator_reserve.rows_for_fits is vllm_overheads.rows_for_fits is rows_for_fits


def test_the_least_hashes_are_left_out_whatever_the_order_of_the_rows():
    rows = [{"id": f"a-{n}", "labels": {"publication": "a"}} for n in range(9)]
    found = leave_out.chosen(rows)
    assert found == leave_out.chosen(rows[::-1])
    assert sum(found.values()) == 3  # a quarter of nine, rounded up
    least = max(leave_out.place(name) for name, is_out in found.items() if is_out)
    assert all(leave_out.place(name) > least for name, is_out in found.items() if not is_out)


def test_a_mark_is_never_changed_and_new_rows_bring_a_quarter_of_their_own():
    old = [{"id": f"a-{n}", "labels": {"publication": "a"}, "left_out": n == 0} for n in range(8)]
    new = [{"id": f"b-{n}", "labels": {"publication": "a"}} for n in range(4)]
    found = leave_out.chosen([*old, *new])
    assert set(found) == {"b-0", "b-1", "b-2", "b-3"} and sum(found.values()) == 1


def test_a_mark_is_written_behind_the_id_and_nothing_else_changes():
    text = "# head\n- id: a\n  kind: x\n- id: 'b: c'\n  left_out: true\n"
    assert (
        leave_out.marked(text, {"a": True})
        == "# head\n- id: a\n  left_out: true\n  kind: x\n- id: 'b: c'\n  left_out: true\n"
    )
