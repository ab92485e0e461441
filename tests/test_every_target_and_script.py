"""Every target of the Makefile, every script and every benchmark is run by a test at a small size, so that none
stops working unseen.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from tonnage.estimate.hardware.rates import rates

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text()
CHROMIUM = Path("/usr/bin/chromium")
# Script -> the test file that runs it. `here`: a test below.
RUN_BY = {
    "scripts/accuracy.py": "tests/render/test_accuracy_page.py",
    "scripts/add_model.py": "tests/catalogue/test_catalogue_models.py",
    "scripts/allocator_reserve.py": "tests/runtimes/test_constants.py",
    "scripts/build_site.py": "tests/test_site.py",
    "scripts/compare_load.py": "here",
    "scripts/compare_trace.py": "tests/trace/test_scripts_that_trace.py",
    "scripts/counts.py": "tests/test_counts.py",
    "scripts/debian_packages.sh": "here",
    "scripts/demo.py": "here",
    "scripts/durations.py": "tests/test_durations.py",
    "scripts/extract_messages.py": "tests/language/test_messages.py",
    "scripts/fit_bands.py": "tests/estimate/bands/test_bands.py",
    "scripts/fit_encoding.py": "here",
    "scripts/fit_links.py": "here",
    "scripts/fit_rates.py": "here",
    "scripts/fit_rl.py": "here",
    "scripts/fit_serving.py": "here",
    "scripts/fit_site.py": "tests/calibration/test_fit_site.py",
    "scripts/fit_host_experts.py": "here",
    "scripts/fit_tpu.py": "here",
    "scripts/golden.py": "tests/test_golden.py",
    "scripts/golden_questions.py": "tests/test_golden.py",
    "scripts/house.py": "tests/test_house.py",
    "scripts/leave_out.py": "tests/validation/test_left_out_rows.py",
    "scripts/openvino_process.py": "tests/runtimes/test_openvino.py",
    "scripts/option_types.py": "tests/api/test_option_types.py",
    "scripts/part_errors.py": "tests/estimate/bands/test_part_errors.py",
    "scripts/published_plans.py": "tests/search/test_published_plans.py",
    "scripts/questions.py": "tests/test_questions_of_practice.py",
    "scripts/record_arguments.py": "tests/interchange/test_record_arguments.py",
    "scripts/record_e5.py": "tests/trace/test_scripts_that_trace.py",
    "scripts/terminal_pictures.py": "tests/render/test_terminal_pictures.py",
    "scripts/try_wheel.py": "tests/test_release.py",
    "scripts/short_texts.py": "tests/render/test_brief.py",
    "scripts/vllm_overheads.py": "tests/runtimes/test_constants.py",
    "scripts/write_docs.py": "tests/test_docs.py",
    "scripts/write_locale.py": "tests/language/test_catalogues.py",
    "benchmarks/many.py": "here",
    "benchmarks/page.py": "here",
    "benchmarks/page_pictures.py": "here",
    "benchmarks/peers.py": "here",
    "benchmarks/run.py": "here",
    "benchmarks/search_pool.py": "here",  # by run.py, as the next two
    "benchmarks/search_serving.py": "here",
    "benchmarks/search_training.py": "here",
    "benchmarks/sizes.py": "here",
    "benchmarks/speed.py": "tests/test_speed_page.py",
    "benchmarks/sweep.py": "here",
    "benchmarks/trace.py": "tests/trace/test_scripts_that_trace.py",
    "benchmarks/web.py": "here",
}
TOOLS = {"pytest", "ruff", "mypy"}  # which the tests themselves, and every commit, run


def _run(*words, status=0):
    """What a script prints; it writes nothing to this tree."""
    environment = {**os.environ, "TONNAGE_LANG": "en"}
    done = subprocess.run(
        [sys.executable, *map(str, words)], capture_output=True, text=True, cwd=ROOT, env=environment, check=False
    )
    assert done.returncode == status, done.stderr[-2000:]
    return done.stdout


def _rows(path):
    rows = json.loads(path.read_text())
    assert rows and all(set(row) == {"name", "value", "unit"} for row in rows)
    return {row["name"] for row in rows}


def test_every_script_is_run_by_a_test():
    there = {
        str(path.relative_to(ROOT))
        for folder in ("scripts", "benchmarks")
        for path in (ROOT / folder).glob("[a-z]*.*")
        if path.suffix in (".py", ".sh")
    }
    assert there == set(RUN_BY)
    for script, test in RUN_BY.items():
        if test != "here":
            assert Path(script).stem in (ROOT / test).read_text(), f"{test} does not run {script}"


def test_every_target_runs_commands_that_tests_run():
    """`make -n` prints what a target would do: scripts of the table above, verbs of tonnage on files that are there,
    and known tools.
    """
    targets = re.search(r"^\.PHONY: (.*)$", MAKEFILE, flags=re.M)[1].split()
    assert {"demo", "test", "bench", "validate", "docs"} <= set(targets)
    done = subprocess.run(
        ["make", "--no-print-directory", "-n", *targets], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    commands = re.findall(r"^(?:\w+=\S+ )?\.venv/bin/(\S+) ?(.*)$", done.stdout, flags=re.M)
    seen = {script for name, words in commands if name == "python" for script in re.findall(r"\S+\.py", words)}
    assert seen <= set(RUN_BY) and {"benchmarks/run.py", "scripts/demo.py"} <= seen
    assert {name for name, _ in commands} <= {"python", "tonnage", *TOOLS}
    for name, words in commands:
        if name == "tonnage":
            assert words.split()[0] == "validate" and all((ROOT / each).exists() for each in words.split()[1:])
        elif name == "python" and words.startswith("-m"):
            assert words.split()[1] in (
                "build",
                "pip",
                "pytest",
                "tonnage.documents.schema",
                "tonnage.kernel.prepared",
                "brute.run",
            )


def test_the_benchmark_of_many_questions_runs(tmp_path):
    out = tmp_path / "many.json"
    _run("benchmarks/many.py", "--rows", "60", "--repeats", "1", "--out", out)
    names = _rows(out)
    assert {"train_many, 60 mixed rows", "serve_many, 60 mixed rows", "walk of experts, an array of 10"} <= names


def test_the_demo_mends_a_run_serves_a_model_and_ends_with_where_to_go_on():
    printed = _run("scripts/demo.py")
    lines = printed.splitlines()
    assert len(lines) <= 60
    first, *others = [lines[at + 1] for at, line in enumerate(lines) if line.startswith("$ tonnage ")]
    assert first.startswith("does not fit")
    assert len(others) == 2 and all(re.match(r"(fits|tight)\b", line) for line in others)
    tail = printed.partition("Where to go on:")[2]
    verbs = re.findall(r"^  (?:\.venv/bin/)?tonnage (\S+)", tail, flags=re.M)
    assert len(verbs) >= 4 and set(verbs) <= set(import_module("tonnage.cli").VERBS)


@pytest.mark.parametrize("length", [12, 24, 90])
def test_the_demo_stays_short_whatever_the_length_of_an_answer(length, monkeypatch):
    demo = import_module("demo")
    answer = "\n".join(["fits: a verdict", *(f"memory {number}" for number in range(1, length))])
    monkeypatch.setattr(demo, "main", lambda words: print(answer))
    lines = "\n".join(demo.lines()).splitlines()
    assert len(lines) <= 60 and "fits: a verdict" in lines


def test_the_demo_shows_a_whole_answer_of_24_lines(monkeypatch):
    demo = import_module("demo")
    answer = ["fits: a verdict", *(f"line {number}" for number in range(2, 25))]
    monkeypatch.setattr(demo, "main", lambda words: print("\n".join(answer)))
    assert list(demo.answered("tonnage train", demo.WHOLE)) == ["$ tonnage train", *answer, ""]


def test_what_the_demo_asks_is_what_its_commands_ask(capsys, monkeypatch):
    """The first line of each answer is that of the command above it."""
    from tonnage.cli import main

    monkeypatch.setenv("COLUMNS", "120")
    lines = _run("scripts/demo.py").splitlines()
    asked = [at for at, line in enumerate(lines) if line.startswith("$ tonnage ")]
    assert len(asked) == 3
    for at in asked:
        assert main(lines[at].removeprefix("$ tonnage ").split()) in (0, 2, 3)
        assert capsys.readouterr().out.splitlines()[0] == lines[at + 1]


def test_the_benchmarks_of_make_bench_run(tmp_path):
    _run("benchmarks/run.py", "--small", "--out", tmp_path / "results.json")
    names = " ".join(_rows(tmp_path / "results.json"))
    for part in (
        "whole process",
        "breakdown of",
        "frontier of",
        "as arrays",
        "simulated",
        "place on",
        "serving plans",
        "peak memory",
    ):
        assert part in names


def test_the_benchmark_of_sweeps_runs(tmp_path):
    _run("benchmarks/sweep.py", "--small", "--results", tmp_path / "results.json")
    assert "two processes over one" in _rows(tmp_path / "results.json")


def test_the_benchmarks_of_the_server_and_of_the_page_run(tmp_path):
    """One after the other: both serve at the same port."""
    pytest.importorskip("litestar")
    if shutil.which("wrk") is None or not CHROMIUM.exists():
        pytest.skip("scripts/debian_packages.sh installs wrk and Chromium")
    _run("benchmarks/web.py", "--small", "--out", tmp_path / "web.json")
    assert "POST /v1/train, the same question: throughput" in _rows(tmp_path / "web.json")
    _run("benchmarks/page.py", "--small", "--out", tmp_path / "page.json")
    assert _rows(tmp_path / "page.json")
    _run("benchmarks/page_pictures.py", "--only", "page_phone", "--out", tmp_path)
    assert (tmp_path / "page_phone.png").stat().st_size > 10_000


def test_the_page_of_other_tools_is_written_without_network(tmp_path, monkeypatch):
    """That it is up to date is for tests/test_peers.py to say: here one table is enough."""
    peers = import_module("peers")
    monkeypatch.setattr(peers, "page", lambda answers: f"{len(answers)} tools")
    peers.main(["--recorded"], tmp_path / "peers.md")
    assert int((tmp_path / "peers.md").read_text().split()[0]) > 1
    with pytest.raises(SystemExit, match="takes --recorded or nothing"):
        peers.main(["--recordet"])


def test_packages_of_debian_are_asked_for_by_a_script_that_a_shell_reads():
    assert subprocess.run(["sh", "-n", ROOT / "scripts" / "debian_packages.sh"], check=False).returncode == 0


def test_the_comparison_of_closed_forms_with_simulations_runs(monkeypatch, capsys):
    script = import_module("compare_load")
    for table in ("MACHINES", "POLICIES"):
        monkeypatch.setattr(script, table, dict(list(getattr(script, table).items())[:1]))
    monkeypatch.setattr(script, "LENGTHS", script.LENGTHS[:1])
    script.main(each=True)
    assert "90th percentile" in capsys.readouterr().out


class TestFits:
    """Each script that fits constants, on a few rows: it ends, and what it would write can be read."""

    @pytest.fixture(autouse=True)
    def solver(self, monkeypatch):
        pytest.importorskip("scipy")
        monkeypatch.setattr(sys, "argv", ["script"])

    def test_links(self, monkeypatch, tmp_path, capsys):
        script = import_module("fit_links")
        rows = script.cases()
        monkeypatch.setattr(script, "cases", lambda recent=False: rows[::60])
        monkeypatch.setattr(script, "OUT", tmp_path / "links.toml")
        script.main()
        assert "inside" in tomllib.loads((tmp_path / "links.toml").read_text())
        assert "each source by the others" in capsys.readouterr().out

    def test_rates_of_training(self, monkeypatch, tmp_path, capsys):
        script = import_module("fit_rates")
        rows = script.cases()
        dense, mixtures = ([case for case in rows if (case.kind == "moe") is sparse] for sparse in (False, True))
        few = [case for kind in (dense, mixtures) for case in kind if case.source == kind[0].source]
        monkeypatch.setattr(script, "cases", lambda everything=False, recent=False: [*few[:4], *few[-4:]])
        monkeypatch.setattr(script, "OUT", tmp_path / "rates.toml")
        script.main()
        assert {"generations", "bands"} <= tomllib.loads((tmp_path / "rates.toml").read_text()).keys()
        assert "sources left out" in capsys.readouterr().out

    def test_rates_of_serving(self, monkeypatch, capsys):
        script = import_module("fit_serving")
        rows = script.cases()
        core = [case for case in rows if script.is_core(case)]
        monkeypatch.setattr(script, "cases", lambda recent=False: core[::60])
        monkeypatch.setattr(sys, "argv", ["fit_serving.py", "--quick"])
        script.main()
        assert "[engines." in capsys.readouterr().out


class TestFitsWhoseTablesTheyWrite:
    """Each gives the table that is shipped: whoever changes what it reads runs it again."""

    @pytest.fixture(autouse=True)
    def arguments(self, monkeypatch):
        monkeypatch.setattr(sys, "argv", ["script", "--write"])

    def test_shares_of_tpus(self, monkeypatch, capsys):
        script = import_module("fit_tpu")
        monkeypatch.setattr(script, "SHARES", [0.83, 0.84, 0.85, 0.90, 0.91, 0.92])
        script.main()
        printed = capsys.readouterr().out
        for name in script.GENERATIONS:
            assert f"{name} {rates().generations[name].matrix['bf16']:.2f} seen" in printed

    def test_experts_in_host_memory(self):
        script = import_module("fit_host_experts")
        assert script.main("--check") == script.shipped()

    @pytest.mark.parametrize("name", ["fit_rl", "fit_encoding"])
    def test_loops_and_passes_without_decoding(self, name, monkeypatch, tmp_path):
        script = import_module(name)
        shipped = script.OUT.read_text(encoding="utf-8")
        monkeypatch.setattr(script, "OUT", tmp_path / "table")
        script.main()
        assert script.OUT.read_text(encoding="utf-8") == shipped
