"""Whose prices the advice has: a move to another machine is compared at the same provider, or the other provider is
named.
"""

import msgspec
import pytest

import tonnage
from tonnage.catalogue.clusters import cluster
from tonnage.estimate.money.bill import BillOptions, rent_of_moves
from tonnage.render.advice import advice_line

LOAD = {"concurrency": 256, "input_tokens": 8000, "output_tokens": 300}


def larger(answer):
    return [move for move in answer.advice if "on" in move.change]


def test_a_move_to_another_machine_names_its_provider_where_that_is_another_one():
    answer = tonnage.serve("llama-3.1-8b", "h100", **LOAD)
    provider = answer.question["price"].value
    for move in larger(answer):
        there = tonnage.serve("llama-3.1-8b", move.change["on"], **LOAD).question["price"].value
        if move.provider:
            assert there.startswith(move.provider) and not provider.startswith(move.provider)
            assert f" at {move.provider}" in advice_line(msgspec.to_builtins(move))


def test_a_training_move_to_another_machine_names_its_provider_too():
    moves = larger(tonnage.train("llama-3.1-8b", "h100"))
    assert moves and all(f" at {move.provider}" in advice_line(msgspec.to_builtins(move)) for move in moves)


@pytest.mark.parametrize("base", ["2xh100", "8xh100", "8xa100"])
def test_moves_are_priced_at_the_provider_of_the_machine_that_was_asked_about(base):
    asked = cluster(base)
    provider = tonnage.serve("llama-3.1-8b", base).question["price"].value
    for size in ("4x", "2x8x"):
        other = cluster(size + asked.accelerator.name)
        rent = rent_of_moves(asked, BillOptions(), None)(other)
        if not rent.provider:
            name = next(each for each in providers_longest_first() if provider.startswith(each))
            alone = tonnage.serve("llama-3.1-8b", other.name, provider=name)
            assert rent.usd == pytest.approx(alone.bill.cost.value)


def providers_longest_first():
    from tonnage.catalogue.offers import providers

    return sorted(providers(), key=len, reverse=True)


def test_a_price_that_was_given_is_the_price_of_every_move():
    rent = rent_of_moves(cluster("h100"), BillOptions(), 2.0)(cluster("8xh100"))
    assert (rent.usd, rent.provider) == (16.0, "")
