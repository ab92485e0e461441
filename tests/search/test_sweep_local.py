"""A sweep on processes of this machine: whoever dies, every plan is there once."""

import gc
import json
import os
import signal
import subprocess
import sys

import pytest

from schema_forms import validate
from search import _sweeps
from search._sweeps import ROWS, TEXT, digests, holds_every_plan_once, small, when
from tonnage.cli import main
from tonnage.estimate.memory import Step
from tonnage.kernel.errors import MissingDatum
from tonnage.search.sweep import dataset, local
from tonnage.search.sweep.drive import sweep
from tonnage.search.sweep.manifest import estimator
from tonnage.search.sweep.tasks import Tasks
from tonnage.search.sweep.work import Job, attempt, chunk

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A sweep that nobody disturbed: (directory, what was done)."""
    directory = tmp_path_factory.mktemp("sweep") / "undisturbed"
    return directory, sweep(small(), directory, workers=2)


def test_every_plan_has_one_row_and_every_chunk_one_file(undisturbed):
    directory, done = undisturbed
    assert done.summary.rows == ROWS == Tasks(small()).plans and done.made == done.chunks == 32 and not done.failed
    assert holds_every_plan_once(directory, small())
    assert sorted(digests(directory)) == [f"part-{number:06d}.parquet" for number in range(32)]


def test_a_worker_that_is_killed_loses_nothing_and_nothing_comes_twice(undisturbed, tmp_path, children):
    killed = []

    def kill():
        worker = children()[0]
        os.kill(worker.pid, signal.SIGKILL)
        killed.append(worker.pid)

    done = sweep(small(), tmp_path / "out", workers=2, progress=when(3, kill))
    assert killed and done.made == 32 and not done.failed
    assert digests(tmp_path / "out") == digests(undisturbed[0])


def test_the_document_says_what_became_of_it(undisturbed, tmp_path, capsys):
    (tmp_path / "sweep.yaml").write_text(TEXT)
    assert main(["sweep", str(tmp_path / "sweep.yaml"), "--out", str(undisturbed[0]), "--resume", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    validate(document, "SweepDocument")
    assert (document["rows"], document["plans"], document["chunks_made"], document["chunks_before"]) == (
        ROWS,
        ROWS,
        0,
        32,
    )
    assert document["best"][0]["tokens_per_second"] == max(row["tokens_per_second"] for row in document["best"])
    assert main(["sweep", str(tmp_path / "sweep.yaml"), "--out", str(undisturbed[0]), "--resume"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"done: {ROWS:,} plans, {ROWS:,} valid, ") and "0 made, 32 were there, of 32" in said


def test_a_driver_that_is_killed_is_gone_on_with_and_makes_the_same_dataset(undisturbed, tmp_path):
    program = f"""
import sys
sys.path.insert(0, {os.path.dirname(os.path.dirname(_sweeps.__file__))!r})
from pathlib import Path
from search._sweeps import small, when
from tonnage.search.sweep.drive import sweep
if __name__ == "__main__":
    sweep(small(), Path(sys.argv[1]), workers=2,
          progress=when(3, lambda: (print("three are back", flush=True), sys.stdin.readline())))
"""  # noqa: PTH120
    (tmp_path / "driver.py").write_text(program)
    out = tmp_path / "out"
    with subprocess.Popen(
        [sys.executable, tmp_path / "driver.py", out], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as driver:
        assert driver.stdout.readline() == b"three are back\n"  # it waits for us
        driver.kill()
        assert driver.stdout.read() == b""  # closed by the last worker: they leave when their driver is gone
    made = digests(out)
    assert 3 <= len(made) < 32
    (tmp_path / "sweep.yaml").write_text(TEXT)
    assert main(["sweep", str(tmp_path / "sweep.yaml"), "--out", str(out), "--workers", "2", "--resume"]) == 0
    assert digests(out) == digests(undisturbed[0])
    assert holds_every_plan_once(out, small())


def test_ctrl_c_ends_a_sweep_that_can_be_gone_on_with(undisturbed, tmp_path, capsys, monkeypatch, children):
    (tmp_path / "sweep.yaml").write_text(TEXT)
    words = ["sweep", str(tmp_path / "sweep.yaml"), "--out", str(tmp_path / "out"), "--workers", "2"]
    monkeypatch.setattr(
        "tonnage.search.sweep.drive.sweep.__kwdefaults__",
        {**sweep.__kwdefaults__, "progress": when(2, lambda: os.kill(os.getpid(), signal.SIGTERM))},
    )
    assert main(words) == 130
    assert "--resume" in capsys.readouterr().err and not children()
    monkeypatch.undo()
    assert main([*words, "--resume"]) == 0
    assert digests(tmp_path / "out") == digests(undisturbed[0])


def test_a_chunk_that_its_workers_die_of_is_named_and_the_others_are_made(children):
    job = Job(spec=small(), folder="", digest="", estimator="")
    found = {report.number: report for report in local.reports(job, range(8), 2, _sweeps.dies_of_three)}
    assert sorted(found) == list(range(8))
    assert found[3].failed == "3 workers died of it, the last by signal 9"
    assert not any(report.failed for number, report in found.items() if number != 3)
    assert not children()


def test_a_chunk_whose_part_is_on_disk_is_made_whatever_became_of_its_workers(undisturbed, tmp_path, monkeypatch):
    monkeypatch.setattr(local.reports, "__defaults__", (_sweeps.writes_and_dies_of_three,))
    done = sweep(small(), tmp_path / "out", workers=2)
    assert not done.failed and done.made == done.chunks == 32 and done.plans_made == ROWS == done.summary.rows
    assert digests(tmp_path / "out") == digests(undisturbed[0])


def test_a_part_that_is_damaged_whenever_it_is_written_is_reported_as_failed(tmp_path, monkeypatch):
    rows_of = dataset.rows_of
    monkeypatch.setattr(dataset, "rows_of", lambda path: None if path.name == dataset.part_name(5) else rows_of(path))
    done = sweep(small(), tmp_path / "out", workers=2)
    assert done.failed == {5: "its part was damaged on disk after it was written"}


def test_workers_that_never_live_end_the_sweep_instead_of_failing_chunk_by_chunk():
    job = Job(spec=small(), folder="", digest="", estimator="")
    with pytest.raises(MissingDatum, match="no worker stays alive: 8 died one after the other, the last with status 7"):
        list(local.reports(job, range(100), 2, _sweeps.never_lives))


def test_a_chunk_that_cannot_be_computed_is_a_status_and_not_the_end(tmp_path, capsys):
    """Workers that run another estimator than the driver refuse each chunk, in words."""
    (tmp_path / "sweep.yaml").write_text(TEXT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tonnage.search.sweep.drive.estimator", lambda: "another")
        assert main(["sweep", str(tmp_path / "sweep.yaml"), "--out", str(tmp_path / "out"), "--json"]) == 4
    document = json.loads(capsys.readouterr().out)
    assert len(document["failed"]) == 32 and "another tonnage" in document["failed"][0]["why"] and document["rows"] == 0


def test_a_full_disk_is_said_with_its_status_and_what_is_there_stays(tmp_path):
    """A limit on the size of files stands for a disk that takes no more than a few kilobytes."""
    pytest.importorskip("resource")
    (tmp_path / "sweep.yaml").write_text(TEXT)
    words = ["sweep", str(tmp_path / "sweep.yaml"), "--out", str(tmp_path / "out"), "--workers", "1"]
    program = (
        "import resource, signal, sys\n"
        "from tonnage.cli import main\n"
        "if __name__ == '__main__':\n"
        "    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))\n    sys.exit(main({words!r}))\n"
    )
    (tmp_path / "small_disk.py").write_text(program)
    ended = subprocess.run([sys.executable, tmp_path / "small_disk.py"], capture_output=True, text=True, check=False)
    assert ended.returncode == 74 and "cannot write" in ended.stderr and "--resume" in ended.stderr
    assert not [name for name in os.listdir(tmp_path / "out" / "plans") if name.endswith(dataset.WRITING)]  # noqa: PTH208
    assert main([*words, "--resume"]) == 0
    assert holds_every_plan_once(tmp_path / "out", small())


def test_a_chunk_leaves_no_walk_in_memory(tmp_path):
    """Walks refer to themselves and hold arrays: a worker that did not look for them would grow with every chunk."""
    spec, made = small(), tmp_path / "plans"
    made.mkdir()
    job = Job(spec=spec, folder=str(made), digest=spec.digest(), estimator=estimator())
    gc.collect()
    gc.disable()
    try:
        chunk(job, Tasks(spec), 0)
        assert any(isinstance(each, Step) for each in gc.get_objects())
        assert not attempt(job, 0).failed
        assert not any(isinstance(each, Step) for each in gc.get_objects())
    finally:
        gc.enable()
