"""The search itself: the last value that holds, whatever the function is, with few questions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonnage.estimate.serving.limits import largest
from tonnage.kernel.errors import TonnageError
from tonnage.question.subjects.maximum import NAMES, WHATS, is_what, what_of


@given(st.lists(st.integers(0, 50), min_size=1, max_size=300), st.integers(1, 7), st.integers(-20, 9000))
def test_of_growing_needs_it_is_what_a_scan_finds(steps, stride, room):
    needs = [sum(steps[: place + 1]) for place in range(len(steps))]
    values = range(stride, stride * len(needs) + 1, stride)
    holds = [place for place, needed in enumerate(needs) if needed <= room]
    found = largest(values, lambda value: needs[value // stride - 1] - room)
    assert found == (holds[-1] if holds else None)


@given(st.lists(st.booleans(), min_size=1, max_size=200), st.booleans())
def test_of_any_answers_the_value_holds_and_the_next_does_not(answers, look_beyond):
    found = largest(range(len(answers)), lambda value: 0 if answers[value] else float("inf"), look_beyond=look_beyond)
    if found is None:
        assert not answers[0]
    else:
        assert answers[found] and (found == len(answers) - 1 or not answers[found + 1])


@pytest.mark.parametrize("dip", [2, 5, 8])
def test_a_need_that_falls_again_beyond_is_seen(dip):
    """Work that is cut into one part more needs less."""
    needs = [place if place < 100 else place - dip for place in range(200)]
    assert largest(range(200), lambda value: needs[value] - 100 + dip) == 100


def test_a_straight_line_is_found_in_a_few_questions():
    asked = []

    def over(value):
        asked.append(value)
        return 3.0 * value - 1e9

    assert largest(range(1, 2**40), over, look_beyond=False) == 333_333_333 - 1
    assert len(set(asked)) < 12


@pytest.mark.parametrize("what", WHATS, ids=lambda what: f"{what.verb} {what.name}")
def test_every_name_of_a_quantity_finds_it(what):
    for name in (what.name, what.name.upper(), what.option if what.option != "model" else "model", *what.also):
        assert what_of(name, what.verb) == what and is_what(name)


def test_what_both_verbs_have_is_servings_unless_it_is_said():
    assert what_of("layers").verb == "serve" and what_of("layers", "train").option == "trainable_layers"
    assert what_of("context", "train").name == "sequence" and what_of("sequence", "serve").name == "context"


@pytest.mark.parametrize(
    ("name", "verb", "said"),
    [("contxt", None, "Did you mean 'context'"), ("zzz", None, "Known: "), ("users", "train", "leave out --train")],
)
def test_an_unknown_quantity_names_the_nearest(name, verb, said):
    with pytest.raises(TonnageError, match=said):
        what_of(name, verb)
    assert len(NAMES) == 10
