"""Type checkers know what the Python functions take and return: mypy --strict and pyright on a script that is right and
on one that is wrong in each of its marked lines.
"""

import json
import os
import runpy
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import tonnage

ROOT = Path(__file__).parents[2]
TYPED = Path(__file__).parent / "typed"
MARKED = [
    number for number, line in enumerate((TYPED / "wrong.py").read_text().splitlines(), 1) if line.endswith("# wrong")
]


@pytest.fixture(scope="module")
def found_by_mypy():
    """Lines with an error, by file: both files in one run, which reads the package once and keeps nothing of it."""
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary"]
    files = ["tests/api/typed/sample.py", "tests/api/typed/wrong.py"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MYPY")}
    done = subprocess.run(
        [*command, "--cache-dir", os.devnull, *files],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert errors, done.stderr
    return {file: [int(line.split(":")[1]) for line in errors if line.startswith(file)] for file in files}, errors


@pytest.fixture(scope="module")
def found_by_pyright():
    if find_spec("pyright") is None:
        pytest.skip("pyright is of the extra dev")
    files = [TYPED / "sample.py", TYPED / "wrong.py"]
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson", *map(str, files)],
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [each for each in json.loads(done.stdout)["generalDiagnostics"] if each["severity"] == "error"]
    return {
        f"tests/api/typed/{file.name}": [
            each["range"]["start"]["line"] + 1 for each in errors if Path(each["file"]).name == file.name
        ]
        for file in files
    }, errors


@pytest.mark.parametrize("checker", ["found_by_mypy", "found_by_pyright"])
def test_a_checker_knows_every_type_of_a_script_that_is_right(checker, request):
    lines, errors = request.getfixturevalue(checker)
    assert lines["tests/api/typed/sample.py"] == [], errors


@pytest.mark.parametrize("checker", ["found_by_mypy", "found_by_pyright"])
def test_a_checker_finds_every_line_that_is_wrong_and_no_other(checker, request):
    lines, errors = request.getfixturevalue(checker)
    assert lines["tests/api/typed/wrong.py"] == MARKED, errors


def test_the_script_that_is_right_runs():
    names = runpy.run_path(str(TYPED / "sample.py"))
    assert names["answer"].fits and names["dearest"]([names["answer"]])


def test_the_mark_of_a_typed_package_is_shipped():
    assert (Path(tonnage.__file__).parent / "py.typed").exists()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["packages"] == ["src/tonnage"] and "src/tonnage/py.typed" not in wheel["exclude"]
