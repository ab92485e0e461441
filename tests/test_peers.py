"""The tables of other tools (benchmarks/peer_tables) hold together, and tonnage's column is made without network."""

import json
import shlex
import subprocess
from datetime import date

import pytest
import yaml

from peer_tables import cache_sizes, live, scaling_book, serving, speed
from peer_tables.cases import MEASURED, TABLES, ZERO1, measured
from peer_tables.page import FIGURES, PAGE, _errors, page, table
from tonnage.cli import main
from tonnage.kernel.units import GIB

QUOTED = yaml.safe_load(FIGURES.read_text())
PLAN = next(case for case in ZERO1 if case.name == "C selective, 3 chunks")


def test_the_page_is_what_the_tables_say_today():
    assert PAGE.read_text() == page(live.recorded()), "run `make docs`"


@pytest.mark.parametrize("name", TABLES)
def test_quoted_figures_are_numbers_of_known_runs_and_tools(name):
    runs = {case.name for case in TABLES[name]}
    assert len(runs) == len(TABLES[name])
    for tool, found in QUOTED[name].items():
        assert tool in QUOTED["tools"] and found.keys() <= runs, tool
        assert all(value > 0 for value in found.values()), tool


def test_every_tool_is_quoted_with_its_source_version_and_day():
    assert {tool for name in TABLES for tool in QUOTED[name]} == set(QUOTED["tools"])
    for tool in QUOTED["tools"].values():
        assert all(tool[key] for key in ("name", "where", "version", "how")) and isinstance(tool["read"], date)


def test_tools_that_are_asked_have_answered_every_run():
    answers = live.recorded()
    for name, cases in TABLES.items():
        able = {case.name for case in cases if "virtual_pipeline_size" not in case.options}
        assert answers["llm-analysis"][name].keys() == able
    assert answers["llm-analysis"]["counts"].keys() == set(live.COUNTED)
    assert answers["accelerate"].keys() == {"A", "B"}


def test_every_row_that_both_can_be_asked_was_answered_and_ours_lie_nearer():
    answers = live.recorded()
    told = {case.id for case in speed.told()}
    for found in answers["llm-analysis"]["speed"].values():
        assert found.keys() == told and all(value > 0 for value in found.values())
    _, (_, overall, *_), sentence = speed.section(answers)
    ours, *theirs = (float(column.split(" / ")[1]) for column in overall[2:])
    assert int(overall[1]) == len(told) and ours < min(theirs)
    assert f"llm-analysis {answers['milliseconds']['llm-analysis']:.2f} ms" in sentence


def test_every_row_of_serving_was_answered_or_refused_with_a_reason():
    answers = live.recorded()["serving"]
    told = {case.id for case in serving.told()}
    assert answers["aiconfigurator"].keys() | answers["refused"].keys() == told
    assert not answers["aiconfigurator"].keys() & answers["refused"].keys() and all(answers["refused"].values())
    assert answers["GenZ"].keys() == serving.genz().keys()
    assert sum(answers["modes"].values()) == len(answers["aiconfigurator"])
    for tool in ("aiconfigurator", "GenZ"):
        assert all(ttft > 0 and tpot > 0 for ttft, tpot in answers[tool].values()), tool


def test_what_aiconfigurator_is_asked_has_as_many_ranks_as_were_run():
    questions = serving.aiconfigurator()
    for case in serving.told():
        asked = questions[case.id]
        ranks = asked["tp_size"] * asked["attention_dp_size"]
        assert ranks == asked.get("moe_tp_size", 1) * asked.get("moe_ep_size", ranks) == case.asked.cluster.size, (
            case.id
        )


def test_errors_of_serving_say_how_many_rows_a_tool_answered():
    one, two = serving.told()[:2]
    found = {one.id: [1000 * one.measured["ttft_seconds"], 1500 * one.measured["tpot_seconds"]]}
    assert serving._errors("TPOT", [one], found) == "50.0 / 50.0 / 50.0 %"
    assert serving._errors("TTFT", [one, two], found) == "0.0 / 0.0 / 0.0 % (1)"


def test_the_roofline_is_the_published_formula():
    case = next(
        case for case in serving.told() if case.asked.model.name == "llama-3.1-70b" and case.asked.precision == "fp8"
    )
    load, chips = case.asked.load, case.asked.cluster.size
    chip, parameters = case.asked.cluster.accelerator, case.asked.model.num_active_parameters()
    ttft, tpot = scaling_book.milliseconds(case.asked)
    cache = 2 * 80 * 8 * 128 * (load.input_tokens + load.output_tokens // 2) * {"fp8": 1, "bf16": 2}[case.plan.kv_cache]
    read = cache * load.concurrency / (chips * chip.memory.bytes_per_second)
    multiplied = 2 * parameters * load.concurrency / (chips * chip.peak("fp8"))
    assert ttft == pytest.approx(1000 * 2 * parameters * load.input_tokens / (chips * chip.peak("fp8")), rel=1e-3)
    weights = 70.6e9 / (chips * chip.memory.bytes_per_second)
    assert tpot == pytest.approx(1000 * (read + max(multiplied, weights)), rel=0.05)  # embeddings stay in 16 bits


@pytest.mark.parametrize("name", cache_sizes.BY_HAND)
def test_one_long_request_keeps_what_its_config_says_by_hand(name):
    assert cache_sizes.ours(name) == cache_sizes.by_hand(name)
    assert live.recorded()["hf-mem"][name] > 0


def test_errors_are_against_what_was_measured():
    truth = measured()
    assert truth.keys() == {case.name for case in MEASURED}
    halves = {run: value * (1.5 if i % 2 else 0.5) for i, (run, value) in enumerate(truth.items())}
    *_, signed, absolute = _errors({"off": halves})
    assert (signed[2], absolute[2]) == ("+0.0%", "50.0%")


def test_the_command_of_a_run_asks_what_the_table_answers(capsys):
    main([*shlex.split(PLAN.command)[1:], "--json"])
    memory = json.loads(capsys.readouterr().out)["memory"]
    (overhead,) = [child["value"] for child in memory["children"] if child["name"] == "runtime overhead"]
    assert (memory["value"] - overhead) / GIB == pytest.approx(PLAN.allocated())


def test_columns_are_aligned():
    assert table([("a", "bcd"), ("ef", "1")]) == "| a  | bcd |\n|----|----:|\n| ef |   1 |\n"


def test_a_tool_that_cannot_be_installed_is_named(monkeypatch, tmp_path):
    refused = subprocess.CompletedProcess([], returncode=1, stdout="", stderr="no network")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: refused)
    monkeypatch.setattr(live, "ENVIRONMENTS", tmp_path)
    with pytest.raises(live.NoPeer, match="no environment for llm-analysis\nno network"):
        live.ask()
