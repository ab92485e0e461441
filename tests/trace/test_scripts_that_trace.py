"""Scripts and benchmarks that need torch, each run at a small size."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from tonnage.trace.recording import load

ROOT = Path(__file__).parents[2]


def test_the_benchmark_of_traces_runs_one_case():
    words = [sys.executable, str(ROOT / "benchmarks" / "trace.py"), "--small"]
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, cwd=ROOT, env={**os.environ, "HF_HUB_OFFLINE": "1"}
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "after imports" in done.stdout and "MISSED" not in done.stdout


def test_compare_trace_prints_one_program_beside_its_estimate(capsys):
    script = import_module("compare_trace")
    script.main(list(script.CASES)[:1])
    assert "| traced | analytic |" in capsys.readouterr().out


def test_record_e5_records_what_is_shipped(tmp_path, capsys):
    script = import_module("record_e5")
    script.main(tmp_path)
    shipped = script.PACKAGE / "data"
    for variant in script.VARIANTS:
        name = script.file_of(variant)
        assert script_events(tmp_path / name) == script_events(shipped / name)


def script_events(path):
    return load(path).events
