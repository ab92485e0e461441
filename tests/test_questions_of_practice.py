"""docs/questions.toml: every question is answered by its command, and its figure is as near as it says."""

import re
import runpy
from pathlib import Path

import pytest

from short_texts import answered_once

ROOT = Path(__file__).parents[1]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "questions.py"))
QUESTIONS = SCRIPT["questions"]()


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: re.sub(r"\W+", "-", question["ask"])[:60])
def test_every_question_is_answered_and_its_figure_is_met(question, capsys):
    with answered_once():  # as text, and as the document whose figure is compared
        status, text = SCRIPT["run"](question["command"])
        assert status in (0, 2, 3), capsys.readouterr().err
        assert text.splitlines()[0]
        figure = SCRIPT["compared"](question)
    assert (figure is None) == ("within" not in question)
    if figure is not None:
        assert abs(figure.off) <= question["within"], (figure.estimated, figure.figure)


def test_the_page_has_every_question_with_its_command():
    page = SCRIPT["PAGE"].read_text()
    for number, question in enumerate(QUESTIONS, 1):
        assert f"**{number}. {question['ask']}**\n\n```sh\n{question['command']}\n```\n" in page, "run `make docs`"


def test_a_figure_that_may_be_off_by_more_than_35_percent_has_its_reason():
    assert [each["ask"] for each in QUESTIONS if each.get("within", 0) > 0.35 and not each.get("why")] == []
