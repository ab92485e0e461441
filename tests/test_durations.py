"""scripts/durations.py records the seconds of the files that ran, keeps those of the others, and prints the slowest
tenth. Workers take the files that took longest first, each whole.
"""

import json
from importlib import import_module
from types import SimpleNamespace

import pytest

pytest.importorskip("xdist")

from distribution import LongestFirst, recorded_seconds

durations = import_module("durations")


def ran(monkeypatch, *cases):
    """pytest as if these cases had run: name, seconds of its setup, call and teardown."""

    def main(arguments, plugins):
        for case, *parts in cases:
            for seconds in parts:
                plugins[0].pytest_runtest_logreport(SimpleNamespace(nodeid=case, duration=seconds))
        return 1

    monkeypatch.setattr(durations.pytest, "main", main)


def test_a_run_of_some_files_keeps_the_figures_of_the_others(monkeypatch, tmp_path, capsys):
    record = tmp_path / "durations.json"
    one, two = "tests/test_durations.py", "tests/test_every_row.py"
    ran(monkeypatch, (f"{one}::fast", 0.1, 0.2, 0), (f"{one}::slow[a::b]", 1, 6, 0.5), (f"{two}::fast", 0, 9, 0))
    assert durations.main([], record) == 1  # the status of pytest
    ran(monkeypatch, (f"{two}::fast", 0, 0.5, 0), ("tests/test_gone.py::old", 0, 1, 0))
    durations.main([two], record)
    files = json.loads(record.read_text())["files"]
    assert list(files) == [one, "tests/test_gone.py", two]
    assert (files[one]["seconds"], files[one]["cases"], files[one]["slow"]) == (7.8, 2, {"slow[a::b]": 7.5})
    assert files[two]["seconds"] == 0.5 and "slow" not in files[two]
    ran(monkeypatch)
    durations.main([], record)
    assert list(json.loads(record.read_text())["files"]) == [one, two]  # a file that is gone goes
    capsys.readouterr()
    assert durations.main(["--show"], record) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith(f"2 cases  {one}")


def test_the_plug_in_hears_of_every_case(monkeypatch, tmp_path):
    case = tmp_path / "test_small.py"
    case.write_text("def test_one():\n    pass\n\n\ndef test_two():\n    pass\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    heard = durations.Durations()
    assert pytest.main(["-p", "no:cacheprovider", "-c", str(tmp_path / "pytest.ini"), str(case)], plugins=[heard]) == 0
    assert len(heard.seconds) == 2


class Worker:
    """One of pytest-xdist that runs what it is sent at once."""

    shutting_down = False

    def __init__(self):
        self.sent = []
        self.gateway = SimpleNamespace(id="a worker")

    def send_runtest_some(self, indices):
        self.sent += indices

    def shutdown(self):
        self.shutting_down = True


def test_workers_take_whole_files_and_the_longest_first(pytestconfig, monkeypatch):
    monkeypatch.setattr(pytestconfig.option, "tx", ["2*popen"])
    seconds = {"tests/a.py": 1, "tests/b.py": 9, "tests/page/one.py": 4, "tests/page/two.py": 6, "tests/c.py": 2}
    collected = [f"{file}::test_{number}" for file in (*seconds, "tests/new.py") for number in range(30)]
    scheduler = LongestFirst(pytestconfig, seconds=seconds)
    workers = [Worker(), Worker()]
    for worker in workers:
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, collected)
    scheduler.schedule()
    for step in range(len(collected)):
        for worker in workers:
            if step < len(worker.sent):
                scheduler.mark_test_complete(worker, worker.sent[step])
    files = [list(dict.fromkeys(collected[index].partition("::")[0] for index in worker.sent)) for worker in workers]
    assert files == [  # a case of a new file counts a tenth of a second
        ["tests/page/one.py", "tests/page/two.py", "tests/c.py"],
        ["tests/b.py", "tests/new.py", "tests/a.py"],
    ]
    assert sorted(index for worker in workers for index in worker.sent) == list(range(len(collected)))


def test_without_a_record_files_go_by_their_cases(tmp_path):
    assert recorded_seconds(tmp_path / "durations.json") == {}
    record = tmp_path / "some.json"
    record.write_text(json.dumps({"files": {"tests/a.py": {"seconds": 3.5, "cases": 2}}}))
    assert recorded_seconds(record) == {"tests/a.py": 3.5}
