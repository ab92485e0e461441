"""What fixed questions import, call and allocate stays near its record (tests/counts.toml, scripts/counts.py)."""

import subprocess
import sys
import tomllib

import pytest

import counts
from every_row import every_row

TABLE = tomllib.loads(counts.TABLE.read_text(encoding="utf-8"))
WITH = f"{sys.version_info.major}.{sys.version_info.minor}"


def test_the_table_has_the_questions():
    assert list(TABLE["questions"]) == list(counts.QUESTIONS)
    assert all(tuple(figures) == counts.FIGURES for figures in TABLE["questions"].values())


@every_row("name", counts.QUESTIONS, at_least=8)
def test_a_question_imports_nothing_that_it_does_not_need(name):
    assert counts.unneeded(name) == []


@every_row("name", counts.QUESTIONS, at_least=8)
def test_a_question_costs_no_more_than_a_tenth_above_its_record(name):
    """Of another Python the modules are counted alone: calls and blocks are different ones in each."""
    today, record = counts.counts(name), TABLE["questions"][name]
    figures = counts.FIGURES if TABLE["python"] == WITH else ("modules",)
    dearer = {
        figure: (today[figure], record[figure]) for figure in figures if today[figure] > counts.ABOVE * record[figure]
    }
    assert dearer == {}, "if there is a reason: python scripts/counts.py --write"


def test_what_is_counted_is_the_answer_itself():
    """The words are a question that is answered, not one that is refused early."""
    for name, asked in counts.QUESTIONS.items():
        done = subprocess.run([sys.executable, "-m", "tonnage", *asked.words], capture_output=True, check=False)
        assert done.returncode == (3 if name == "train that does not fit" else 0), name
        assert len(done.stdout) > 500, name


def test_a_module_that_is_not_needed_is_named(monkeypatch):
    asked = counts.Asked(("rules", "A6"), ("tonnage.rules",))
    monkeypatch.setitem(counts.QUESTIONS, "a rule", asked)
    assert "tonnage.rules" in counts.unneeded("a rule")


def test_an_array_brings_numpy_and_a_number_does_not():
    code = "from tonnage.kernel.formula import maximum; import sys; maximum(1, 2); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("written", [True, False])
def test_a_table_that_is_written_holds_the_figures_of_today(written, tmp_path, monkeypatch):
    monkeypatch.setattr(counts, "QUESTIONS", {"help of serve": counts.QUESTIONS["help of serve"]})
    monkeypatch.setattr(counts, "TABLE", tmp_path / "counts.toml")
    if written:
        (tmp_path / "counts.toml").write_text(counts.table())
        assert counts.recorded()["help of serve"] == counts.counts("help of serve")
        assert all("needs no" not in row for row in counts.rows())
    else:
        with pytest.raises(FileNotFoundError):
            counts.recorded()
