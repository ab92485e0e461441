"""scripts/durations.py records the seconds of the files that ran, keeps those of the others, and prints the slowest
tenth.
"""

import json
from importlib import import_module
from types import SimpleNamespace

import pytest

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
