"""A release that strangers can carry on: version, changelog and tag agree, and what `make dist` does with a wheel works
on this environment too.
"""

import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tonnage
import try_wheel

ROOT = Path(__file__).parents[1]
HEADING = re.compile(r"^## (\d+\.\d+\.\d+) - (unreleased|\d{4}-\d\d-\d\d)$", re.M)
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
RELEASING = (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8")


def test_the_newest_heading_of_the_changelog_is_the_version():
    assert HEADING.findall(CHANGELOG)[0][0] == tonnage.__version__


def test_every_heading_of_the_changelog_is_a_version_newest_first_and_only_the_newest_is_unreleased():
    headings = re.findall(r"^## .*$", CHANGELOG, flags=re.M)
    found = HEADING.findall(CHANGELOG)
    assert len(found) == len(headings)
    versions = [tuple(map(int, version.split("."))) for version, _ in found]
    assert versions == sorted(set(versions), reverse=True)
    assert "unreleased" not in [date for _, date in found[1:]]


def test_the_citation_says_the_version():
    assert f"\nversion: {tonnage.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_the_package_takes_its_version_from_the_file_that_python_reads():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    path = project["tool"]["hatch"]["version"]["path"]
    assert "version" in project["project"]["dynamic"]
    assert f'__version__ = "{tonnage.__version__}"' in (ROOT / path).read_text(encoding="utf-8")
    assert f"`{path}`" in RELEASING


def test_a_tag_of_this_commit_is_the_version():
    """Tags are vX.Y.Z, as docs/releasing.md says."""
    assert "tag `vX.Y.Z`" in RELEASING
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("no checkout of git")
    done = subprocess.run(["git", "tag", "--points-at", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert {tag for tag in done.stdout.split() if tag.startswith("v")} <= {f"v{tonnage.__version__}"}


def test_the_first_lines_of_the_pages_say_how_to_install_it():
    for name in ("README.md", "README.zh.md", "docs/index.md"):
        first = (ROOT / name).read_text(encoding="utf-8").partition("```console\n")[2].partition("\n")[0]
        assert first.startswith("$ pip install tonnage ") and "uvx tonnage" in first, name


def test_the_description_of_the_package_has_no_link_into_the_checkout():
    build = runpy.run_path(str(ROOT / "hatch_build.py"))
    files, pictures, with_addresses = build["FILES"], build["PICTURES"], build["with_addresses"]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    described = with_addresses(text)
    links = re.findall(r"(!?)\[[^]]*\]\(([^)]+)\)", text)
    assert re.findall(r"(!?)\[[^]]*\]\(([^)]+)\)", described) == [
        (picture, target if "://" in target else (pictures if picture else files) + target) for picture, target in links
    ]
    assert with_addresses(described) == described


def test_a_wheel_is_asked_what_the_readme_shows():
    asked = try_wheel.commands()
    assert [command.split()[1] for command in asked] == ["train", "serve", "plan", "compare", "max", "check", "export"]


def test_the_questions_are_answered_in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(try_wheel, "commands", lambda: ["tonnage max context llama-3.1-8b --on rtx-4090"])
    first, answer, last = try_wheel.ask(Path(sys.executable), tmp_path)
    assert first.startswith(f"tonnage {tonnage.__version__} of ")
    assert "tokens" in answer and last
    assert not try_wheel.is_outside(Path(sys.executable), tmp_path), "here the package is the checkout's"


def test_a_command_that_fails_is_said_with_what_it_printed(tmp_path, monkeypatch):
    monkeypatch.setattr(try_wheel, "commands", lambda: ["tonnage max context no-such-model --on rtx-4090"])
    with pytest.raises(try_wheel.Failed, match=r"status 64\n.*no-such-model"):
        try_wheel.ask(Path(sys.executable), tmp_path)


def test_the_page_is_served_and_each_of_its_files_is_there(tmp_path):
    pytest.importorskip("litestar")
    assert try_wheel.look_at_the_page(Path(sys.executable), tmp_path) > 3
