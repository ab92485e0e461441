"""docs/accuracy.md is made from the corpus and the code as they are."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
WRITTEN = runpy.run_path(str(ROOT / "scripts" / "accuracy.py"))


def test_the_page_of_accuracy_is_generated_from_the_corpus():
    assert WRITTEN["PAGE"].read_text() == WRITTEN["page"](), "run `make accuracy`"


def test_it_has_every_row_once_by_completeness():
    lines = WRITTEN["Lines"](WRITTEN["CORPUS"])
    assert len(lines.main) + len(lines.indicative) == len(lines.rows)
    for title in ("By source", "By runtime", "By knob", "The worst rows", "Skipped", "Error bands"):
        assert f"# {title}\n" in WRITTEN["page"]()
