"""A search that is followed says how far it is; one that nobody follows is the same search."""

import pytest

from tonnage.search.progress import advance, expect, followed
from tonnage.verbs.ask import ask

QUESTIONS = (
    ("plan", {"train": True, "model": "llama-3.1-8b", "on": "8xh100"}, {"machines", "plans", "estimated"}),
    ("plan", {"serve": True, "model": "llama-3.1-8b", "on": "h100"}, {"configurations"}),
    ("max", {"what": "context", "model": "llama-3.1-8b", "on": "1xh100"}, {"estimates"}),
    ("compare", {"model": "llama-3.1-8b", "on": "h100,a100", "context": "8k,32k"}, {"cells"}),
)


def steps_of(verb, question):
    told = []
    with followed(lambda *step: told.append(step)):
        document = ask(verb, question).document
    return told, document


@pytest.mark.parametrize(
    ("verb", "question", "counted"), QUESTIONS, ids=[f"{v}-{'-'.join(sorted(c))}" for v, _, c in QUESTIONS]
)
def test_every_search_counts_what_it_does_and_never_backwards(verb, question, counted):
    told, document = steps_of(verb, question)
    assert {what for what, _, _ in told} == counted
    for name in counted:
        done = [count for what, count, _ in told if what == name]
        assert done == sorted(done) and done[-1] > 0
    assert document == ask(verb, question).document


def test_a_count_with_an_end_reaches_it():
    for verb, question, _ in QUESTIONS:
        told, _ = steps_of(verb, question)
        last = {what: (done, of) for what, done, of in told}
        assert all(done == of for done, of in last.values() if of is not None), last


def test_plans_that_were_counted_are_those_that_the_answer_says_were_considered():
    told, document = steps_of(*QUESTIONS[0][:2])
    last = {what: done for what, done, _ in told}
    assert last["plans"] == document["considered"]
    assert (
        document["estimated"] <= last["estimated"] <= document["considered"]
    )  # of those that are estimated some do not fit


def test_the_innermost_follower_hears_it_and_the_outer_one_goes_on_after():
    outer, inner = [], []
    with followed(lambda *step: outer.append(step)):
        advance("cells")
        with followed(lambda *step: inner.append(step)):
            expect("cells", 2)
            advance("cells")
        advance("cells", 2)
    advance("cells")
    assert outer == [("cells", 1, None), ("cells", 3, None)]
    assert inner == [("cells", 1, 2)]
