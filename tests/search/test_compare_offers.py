"""Whose prices a comparison has: one provider's for all sizes of an accelerator, and what is rented whole is paid
whole and said.
"""

import pytest

import tonnage
from tonnage.catalogue.offers import providers
from tonnage.kernel.errors import MissingDatum
from tonnage.render.compare import comparison_lines

SIZES = ("1xh100", "2xh100", "4xh100", "8xh100", "2x8xh100")


def provider_of(row):
    return next(name for name in sorted(providers(), key=len, reverse=True) if row["price"].startswith(name))


@pytest.fixture(scope="module")
def compared():
    return tonnage.compare("llama-3.2-1b", SIZES, context=2048).rows()


def test_all_sizes_of_an_accelerator_have_the_prices_of_one_provider(compared):
    assert len({provider_of(row) for row in compared}) == 1
    each = [row["usd_per_hour"] / row["accelerators"] for row in compared]
    assert max(each) <= 1.25 * min(each)


def test_a_cell_is_priced_as_serve_prices_it_with_that_provider(compared):
    for on, row in zip(SIZES, compared, strict=True):
        alone = tonnage.serve("llama-3.2-1b", on, context=2048, provider=provider_of(row))
        assert row["usd_per_hour"] == pytest.approx(alone.bill.cost.value)


def test_accelerators_of_several_providers_are_named_in_a_note():
    made = tonnage.compare("llama-3.2-1b", "1xh100,8xh100,1xgb200", context=2048)
    found = {provider_of(row): row["accelerator"] for row in made.rows()}
    (note,) = [each for each in made.warnings if each.startswith("prices are of several providers")]
    assert len(found) == 2 and all(f"{provider} ({chip})" in note for provider, chip in found.items())


def test_the_smallest_machine_that_is_rented_is_paid_whole_and_said():
    row, other = tonnage.compare("llama-3.2-1b", "1xgb200,4xgb200", context=2048).rows()
    assert (row["accelerators"], row["accelerators_paid"]) == (1, 4) and row["usd_per_hour"] == other["usd_per_hour"]


@pytest.mark.parametrize("said", [{"provider": "AWS"}, {"price_per_accelerator_hour": 2.0}])
def test_a_price_that_the_user_says_stands(said):
    rows = tonnage.compare("llama-3.2-1b", "1xh100,8xh100", context=2048, **said).rows()
    alone = [tonnage.serve("llama-3.2-1b", on, context=2048, **said).bill.cost.value for on in ("1xh100", "8xh100")]
    assert [row["usd_per_hour"] for row in rows] == pytest.approx(alone)


def test_one_machine_alone_has_its_cheapest_offer():
    (row,) = tonnage.compare("llama-3.2-1b", "2xh100", context=[2048]).rows()
    assert row["usd_per_hour"] == pytest.approx(tonnage.serve("llama-3.2-1b", "2xh100", context=2048).bill.cost.value)


def test_an_accelerator_without_a_price_has_its_cell_all_the_same():
    rows = tonnage.compare("llama-3.2-1b", "1xtitan-rtx,2xtitan-rtx", context=2048, price_kind="spot").rows()
    assert [(row["verdict"], row["usd_per_hour"]) for row in rows] == [("fits", None), ("fits", None)]
    with pytest.raises(MissingDatum):
        tonnage.serve("llama-3.2-1b", "1xtitan-rtx", context=2048, price_kind="spot")


def test_several_accelerators_have_the_prices_of_the_one_provider_that_has_them_all():
    made = tonnage.compare("llama-3.1-8b", "h100,a100,h200,b200")
    (provider,) = {provider_of(row) for row in made.rows()}
    assert made.providers == (provider,)
    (note,) = [each for each in made.warnings if each.startswith("prices are of one provider")]
    assert provider in note


def test_the_provider_of_all_is_the_cheapest_of_those_that_have_all():
    rows = tonnage.compare("llama-3.1-8b", "1xh100,1xh200").rows()
    paid = sum(row["usd_per_hour"] for row in rows)
    for name in providers():
        try:
            others = tonnage.compare("llama-3.1-8b", "1xh100,1xh200", provider=name).rows()
        except MissingDatum:
            continue
        each = [row["usd_per_hour"] for row in others]
        assert None in each or paid <= sum(each)


def test_machines_have_the_same_prices_whether_or_not_their_number_is_said():
    open_rows = tonnage.compare("llama-3.1-8b", "h100,h200").rows()
    said_rows = tonnage.compare("llama-3.1-8b", "1xh100,1xh200").rows()
    assert [row["price"] for row in open_rows] == [row["price"] for row in said_rows]
    assert [row["usd_per_hour"] for row in open_rows] == [row["usd_per_hour"] for row in said_rows]


def test_the_first_line_says_whose_price_it_is_where_a_single_answer_is_cheaper():
    for on in ("h100,a100,h200,b200", "1xh100,8xh100,1xgb200", "1xh100"):
        made = tonnage.compare("llama-3.1-8b", on)
        alone = [tonnage.serve("llama-3.1-8b", row["on"]).bill.cost.value for row in made.rows()]
        is_dearer = any(row["usd_per_hour"] > usd * (1 + 1e-9) for row, usd in zip(made.rows(), alone, strict=True))
        first, *_ = comparison_lines(made)
        assert ("prices of" in first) == bool(made.providers) and (not is_dearer or made.providers), on
