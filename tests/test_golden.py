"""Answers are those recorded in tests/golden: a sample of every group, another each day (`make golden` compares all
of them).
"""

import os
from datetime import UTC, datetime

import pytest

pytest.importorskip("litestar")
pytest.importorskip("mcp")

import golden
import golden_questions

EACH = 25  # of so many questions of a group one is asked
DAY = int(os.environ.get("GOLDEN_SAMPLE", datetime.now(UTC).date().toordinal()))


def sample(questions: list[str]) -> list[str]:
    """Every EACH-th question, at least one; which ones, the day says."""
    return questions[DAY % min(EACH, len(questions)) :: EACH]


def test_every_group_has_questions_and_every_question_a_record():
    for name, path in golden.groups().items():
        records = golden.read_group(path)
        assert records, name
        assert not [question for question, record in records.items() if not record], name


def test_answers_are_those_that_were_recorded(monkeypatch):
    monkeypatch.setenv("TONNAGE_LANG", "en")
    found = []
    with golden.clean_place() as place:
        for path in golden.groups().values():
            records = golden.read_group(path)
            for question in sample(list(records)):
                found += golden.differences(question, records[question], place)
    assert not found, "\n".join(found)


def test_a_difference_says_whether_numbers_or_texts_changed():
    value = {
        "name": "memory of one rank",
        "value": 1.5,
        "unit": "bytes",
        "text": "a sum of what a rank holds, in a long sentence",
    }
    was = golden.short_record({"document": {"memory": value}})
    number = golden.short_record({"document": {"memory": {**value, "value": 1.6}}})
    text = golden.short_record(
        {"document": {"memory": {**value, "text": "another sentence that says what a rank holds"}}}
    )
    hashes = [line[0].rpartition("#")[2].split(".") for line in (was, number, text)]
    assert hashes[0][0] != hashes[1][0] and hashes[0][1] == hashes[1][1]
    assert hashes[0][0] == hashes[2][0] and hashes[0][1] != hashes[2][1]


def test_the_questions_of_a_verb_are_drawn_as_they_stand_in_its_file():
    drawn = [" ".join(line.split()) for line in golden_questions.train_runs()]
    assert list(golden.read_group(golden.groups()["train_runs"])) == list(dict.fromkeys(drawn))


def test_the_program_shows_one_answer_and_compares_a_group(capsys):
    assert golden.main(["--show", "tonnage explain kv_cache_bytes --json"]) == 0
    assert '"kv_cache_bytes"' in capsys.readouterr().out
    assert golden.main(["--group", "validate"]) == 0, capsys.readouterr().out
