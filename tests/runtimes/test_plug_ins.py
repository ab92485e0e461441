"""Runtimes of installed packages are found by their entry points; where no package names any, nobody asks for them."""

import subprocess
import sys
import zipfile

import pytest

from tonnage import runtimes

NAMES = "[tonnage.runtimes]\nheron = heron_of_tests\n"
MODULE = """
from msgspec.structs import replace
from tonnage.runtimes import TRAINING_RUNTIMES, training_runtime
TRAINING_RUNTIMES.add("heron", replace(training_runtime("ddp"), name="heron", older={}))
"""
CODE = """
import sys
from tonnage.runtimes import training_runtimes
print("heron" in training_runtimes(), "importlib.metadata" in sys.modules)
"""


def _asked(*folders) -> str:
    path = ":".join(map(str, folders))
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {path.split(':') if path else []}{CODE}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture
def installed(tmp_path):
    about = tmp_path / "heron-1.0.dist-info"
    about.mkdir()
    (about / "entry_points.txt").write_text(NAMES)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: heron\nVersion: 1.0\n")
    (tmp_path / "heron_of_tests.py").write_text(MODULE)
    return tmp_path


def test_a_package_that_names_runtimes_is_found(installed):
    assert _asked(installed) == "True True"


def test_packages_that_name_others_are_not_imported_for(installed):
    (installed / "heron-1.0.dist-info" / "entry_points.txt").write_text("[console_scripts]\nheron = heron:main\n")
    assert _asked(installed) == "False False"


def test_a_folder_that_is_not_there_names_none(tmp_path):
    assert _asked(tmp_path / "nowhere") == "False False"


def test_what_is_in_an_archive_is_left_to_importlib(installed):
    archive = installed / "heron.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for part in ("heron_of_tests.py", "heron-1.0.dist-info/entry_points.txt", "heron-1.0.dist-info/METADATA"):
            file.write(installed / part, part)
    assert _asked(archive) == "True True"


def test_a_finder_of_its_own_is_asked(monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    assert not runtimes._are_named()

    class Finder:
        @staticmethod
        def find_distributions(context=None):
            return ()

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    assert runtimes._are_named()
