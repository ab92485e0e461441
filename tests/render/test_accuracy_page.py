"""docs/accuracy.md and docs/accuracy_details.md are made from the corpus and the code as they are."""

import re
import runpy
from pathlib import Path

import _accuracy_summary as short

ROOT = Path(__file__).parents[2]
WRITTEN = runpy.run_path(str(ROOT / "scripts" / "accuracy.py"))


def test_the_page_of_accuracy_is_generated_from_the_corpus():
    assert WRITTEN["PAGE"].read_text() == WRITTEN["page"](), "run `make accuracy`"


def test_it_has_every_row_once_by_completeness():
    lines = WRITTEN["Lines"](WRITTEN["CORPUS"])
    assert len(lines.main) + len(lines.indicative) == len(lines.rows)
    for title in ("By source", "By runtime", "By knob", "The worst rows", "Skipped", "Error bands"):
        assert f"# {title}\n" in WRITTEN["page"]()


def test_the_summary_and_its_plot_are_made_from_the_same_rows():
    assert short.SUMMARY.read_text() == short.summary(), "run `make accuracy`"
    assert short.PLOT.read_text() == short.plot(short.figures()), "run `make accuracy`"
    assert len(re.findall("<circle", short.PLOT.read_text())) == len(short.table()) - 2


def test_a_figure_of_the_summary_is_that_of_the_details():
    """Counted twice: the details by `scripts/accuracy.py`, the summary by itself."""
    (full,) = [line for line in WRITTEN["page"]().splitlines() if line.startswith("| full | 86 |")]
    (training,) = [each for each in short.figures() if each.name == "memory of training, every setting published"]
    assert short.percent(training.middle) in full and short.percent(training.most) in full


def test_the_plot_puts_larger_errors_further_right():
    low, high = (short.plot([short.Figure("x", 1, size, size * 2, short.COUNTED)]) for size in (0.01, 0.1))
    places = [float(re.search(r'<circle cx="([\d.]+)"', text)[1]) for text in (low, high)]
    assert places[0] < places[1]
