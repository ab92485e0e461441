"""benchmarks/speed.py runs at a small size, and docs/speed.md is what it measured."""

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from speed_lines import tools
from speed_lines.checkouts import NotMeasured, run
from speed_lines.goals import LINES, PARTS, Line
from speed_lines.measure import MEASURES, SMALL, measured, value_of
from speed_lines.page import PAGE, RESULTS, page
from tonnage import read

ROOT = Path(__file__).parents[1]
RECORDED = json.loads(RESULTS.read_text())


def figures(**values):
    """A part of results in which each line has these CPU figures."""
    found = {key: {"cpu": value, "wall": value} for key, value in values.items()}
    return {
        "measured": "2026-01-01",
        "machine": "one core",
        "commits": {"after": "abc"},
        "after": found,
        "profiles": {},
    }


def test_the_page_is_what_was_measured_the_last_time():
    assert PAGE.read_text() == page(RECORDED), "run `make docs`"


def test_every_line_is_recorded_with_a_figure_or_why_there_is_none():
    for part, lines in PARTS.items():
        for line in lines:
            figure = RECORDED["parts"][part]["after"][line.key]
            assert figure.get("missing") or value_of(line.key, figure) > 0, line.key


def test_every_missed_goal_that_can_be_profiled_says_where_its_time_goes():
    for part in PARTS:
        recorded = RECORDED["parts"][part]
        for key, figure in recorded["after"].items():
            line = LINES[key]
            missed = "missing" not in figure and line.goal and line.short_of(value_of(key, figure)) > 1
            if missed and key not in ("http_saved", "plan_first"):
                assert 1 <= len(recorded["profiles"][key]) <= 5, key


def test_every_tool_is_recorded_beside_tonnage():
    recorded = RECORDED["parts"]["tools"]
    assert recorded["tools"].keys() == tools.SAYS.keys() == tools.questions().keys()
    for one in (*recorded["tools"].values(), *recorded["tonnage"].values()):
        assert one.get("missing") or min(one["process"], one["answer"], one["rate"]) > 0


def test_a_small_run_measures_a_checkout_beside_itself(tmp_path):
    """Whole processes, answers and plans: the web server, the page and traces have tests of their own benchmarks."""
    out, written = tmp_path / "results.json", tmp_path / "speed.md"
    words = ["--small", "--only", "processes", "answers", "plan", "search", "--out", out, "--page", written]
    environment = {**os.environ, "TONNAGE_LANG": "zh", "PYTHONPATH": "/nowhere"}
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "speed.py", "--before", ROOT, *words],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    parts = json.loads(out.read_text())["parts"]
    for name in ("processes", "answers", "plan", "search"):
        for side in ("before", "after"):
            for line in PARTS[name]:
                figure = parts[name][side][line.key]
                assert figure.get("missing") or (figure["cpu"] > 0 and figure["wall"] > 0), (line.key, side)
    text = written.read_text()
    assert text == page(json.loads(out.read_text()))
    for line in LINES.values():
        assert f"| {line.what} |" in text


def test_a_small_run_never_replaces_the_page_of_the_house():
    command = [sys.executable, str(ROOT / "benchmarks" / "speed.py"), "--small"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "--small needs --out and --page" in done.stderr


def test_the_page_is_drawn_again_without_measuring(tmp_path, monkeypatch):
    speed = import_module("speed")
    monkeypatch.setattr(sys, "argv", ["speed.py", "--recorded", "--page", str(tmp_path / "speed.md")])
    monkeypatch.setattr(speed, "measure", None)
    speed.main()
    assert (tmp_path / "speed.md").read_text() == PAGE.read_text()


def test_goals_are_met_at_most_or_at_least_as_their_unit_says():
    seconds, rate = Line("a", "a", "s", 2.0), Line("b", "b", "plans/s", 100.0, more_is_better=True)
    assert seconds.short_of(1) == 0.5 and seconds.short_of(4) == 2 and seconds.gain(4, 1) == 4
    assert rate.short_of(200) == 0.5 and rate.short_of(50) == 2 and rate.gain(50, 200) == 4


def test_the_page_says_met_missed_or_what_is_missing():
    parts = {"plan": figures(plan_catalogue=4.0, plan_two_types=3.0)}
    parts["plan"]["after"]["plan_first"] = {"missing": "no plans in this checkout"}
    lines = {line.partition("|")[2].split("|")[0].strip(): line for line in page({"parts": parts}).splitlines()}
    assert lines[LINES["plan_catalogue"].what].endswith("| met |")
    assert lines[LINES["plan_two_types"].what].endswith("| missed by 3.00 × |")
    assert "| no plans in this checkout | - | - |" in lines[LINES["plan_first"].what]


def test_a_part_that_cannot_be_measured_says_why(monkeypatch):
    def refuse(sides, sizes):
        raise NotMeasured("wrk is not installed")

    monkeypatch.setitem(MEASURES, "http", refuse)
    found = measured("http", {"after": None}, SMALL)
    assert {one["missing"] for one in found["after"].values()} == {"wrk is not installed"} and not found["profiles"]


def test_a_process_that_fails_says_why_and_one_that_runs_what_it_took():
    with pytest.raises(NotMeasured, match="no such thing"):
        run((sys.executable, "-c", "raise SystemExit('no such thing')"))
    spent = run((sys.executable, "-c", "print(sum(range(10**6)))"))
    assert spent.printed.strip() == str(sum(range(10**6))) and spent.cpu > 0 and spent.wall > 0


def test_the_headers_that_a_tool_is_given_count_the_model_exactly():
    model = read("llama-3.1-8b", offline=True)
    header = tools.weights(dict(model.config))
    counted = sum(rows * (rest[0] if rest else 1) for rows, *rest in (each["shape"] for each in header.values()))
    assert counted == model.num_parameters()
