"""Rows of sources become rows of our own form: what is committed is what the readers give, and what cannot be read
is named.
"""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from rows.__main__ import SOURCES, VALIDATION, main, rebuilt
from tonnage.validation import read, row_of
from tonnage.validation.quantities import QUANTITIES

ROOT = Path(__file__).parents[2]
EXCERPTS = ROOT / "tests" / "source_excerpts"
# Kinds that no verb answers: their rows are kept and say so.
NOT_PREDICTED = {
    "hardware",
    "rl_time",
    "acceptance",
    "embed_speed",
    "cache",
    "maximum achievable matmul TFLOPS (measured GEMM)",
}


def test_the_committed_rows_are_what_the_readers_make_of_the_sources():
    every = rebuilt()
    assert {path.name for path in every} == {path.name for path in SOURCES.glob("*.yaml")}
    stale = [path.name for path, text in every.items() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run `make rows`"


@pytest.mark.parametrize("path", sorted(SOURCES.glob("*.yaml")), ids=lambda path: path.name)
def test_a_row_keeps_its_id_kind_completeness_and_further_metrics(path: Path):
    listed = yaml.safe_load(path.read_text(encoding="utf-8"))
    made = {row.id: row for row in read([str(VALIDATION / path.name)])}
    assert list(made) == [each["id"] for each in listed]
    for each in listed:
        row = made[each["id"]]
        assert row.kind == each["kind"]
        # what a reader knows of a source may make a row say less than it seems to, never more
        assert row.completeness == each["completeness"] or "whether tokens were drafted" in row.completeness
        spread = [len(also["value"]) if isinstance(also["value"], dict) else 1 for also in each.get("also", [])]
        assert len(row.also) == sum(spread)
        assert row.measured.metric == each["measured"]["metric"] and row.measured.value == each["measured"]["value"]


@pytest.mark.parametrize("path", sorted(EXCERPTS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_kind_of_file_of_sources_is_converted_or_says_why_not(path: Path, capsys: pytest.CaptureFixture[str]):
    assert main([str(path)]) == 0
    printed = capsys.readouterr()
    listed, made = yaml.safe_load(path.read_text(encoding="utf-8")), yaml.safe_load(printed.out)
    assert [row["id"] for row in made] == [row["id"] for row in listed]
    for item, given in zip(made, listed, strict=True):
        row = row_of(item)
        assert (row.kind, row.completeness) == (given["kind"], given["completeness"])
        assert bool(row.skipped) == (f"no question: {row.id}: " in printed.err)
        if given["kind"] in NOT_PREDICTED:
            assert "is not predicted yet" in row.skipped
    if not any(given["kind"] in NOT_PREDICTED for given in listed):
        assert any(row.get("verb") for row in made), printed.err


def test_the_readers_run_as_a_program_and_name_what_they_cannot_read(tmp_path: Path):
    path = tmp_path / "sources.yaml"
    path.write_text(
        "- {id: a, kind: params, model: {name: gpt2}, measured: {metric: parameters, value: 1}}\n"
        "- {id: b, kind: infer_speed, model: gpt2, measured: {metric: TPOT, value: 1, unit: ms}, source: a blog}\n"
        "- {id: c, kind: params}\n"
    )
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "rows"), str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [row["id"] for row in yaml.safe_load(done.stdout)] == ["a", "b"]
    assert "no question: b: how 'a blog' measured is not described" in done.stderr
    assert "no question: c: " in done.stderr and "measured" in done.stderr


def test_every_quantity_is_on_the_page_about_rows_with_its_verb_and_text():
    page = (ROOT / "docs" / "rows.md").read_text(encoding="utf-8")
    for name, quantity in QUANTITIES.items():
        assert f"| `{name}` | `{quantity.verb}` |" in page and quantity.text in page


def test_the_example_on_the_page_about_rows_is_a_row(tmp_path: Path):
    page = (ROOT / "docs" / "rows.md").read_text(encoding="utf-8")
    path = tmp_path / "rows.yaml"
    path.write_text(page.partition("```yaml\n")[2].partition("```")[0])
    (row,) = read([str(path)])
    assert row.kind == "train_memory" and row.guessed
