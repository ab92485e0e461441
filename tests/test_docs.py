"""The documentation says what the code does."""

import re
import runpy
from pathlib import Path

import pytest

from tonnage.catalogue import accelerator_names, model_names, node_names
from tonnage.cli import VERBS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_page_of_formulas_is_generated_from_the_code():
    written = runpy.run_path(str(ROOT / "scripts" / "write_docs.py"))
    assert (ROOT / "docs" / "formulas.md").read_text() == written["page"](), "run `make docs`"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_in_the_readme(verb):
    assert f"tonnage {verb}" in README


def test_the_readme_counts_what_there_is():
    assert f"{len(model_names())} in the catalogue" in README
    assert f"{len(accelerator_names())} accelerators and {len(node_names())} nodes" in README


def test_links_of_the_documents_lead_somewhere():
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert "://" in target or (page.parent / target).exists(), f"{page}: {target}"
