"""Dated prices: sourced, of accelerators that the catalogue knows, and the user's own before the shipped ones."""

from datetime import date
from pathlib import Path

import pytest

from tonnage.catalogue import accelerator
from tonnage.catalogue.offers import bought, cheapest, in_usd, offers, parse_rates, providers, rate
from tonnage.catalogue.prices import age_days, forget, is_stale, load, prices, purchases, staleness
from tonnage.kernel.errors import InvalidInput, MissingDatum, UnknownName

ROW = """
[[price]]
provider = "Somewhere"
instance = "big"
accelerator = "H100-SXM-80GB"
accelerators = 8
region = "all"
kind = "on-demand"
usd_per_hour = 20
source = "here"
as_of = "2026-11-21"
[[purchase]]
name = "a box"
accelerator = "H100-SXM-80GB"
accelerators = 8
usd = 250000
power_watts = 10200
source = "here"
as_of = "2026-11-21"
"""
TODAY = date(2026, 11, 22)


@pytest.fixture
def config(tmp_path, monkeypatch):
    """A folder of the user's own, with nothing remembered from before or after."""
    monkeypatch.setenv("TONNAGE_CONFIG", str(tmp_path))
    forget()
    yield tmp_path
    forget()


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def own(config: Path, text: str) -> None:
    (config / "prices").mkdir()
    written(config / "prices", text)


def test_each_shipped_price_has_a_source_and_a_date(config):
    assert 150 <= len(prices()) <= 400
    assert 5 <= len(purchases()) <= 15
    for row in (*prices(), *purchases()):
        assert row.source and "2020-" < row.as_of < "2027-"


def test_the_large_clouds_the_gpu_clouds_and_chinese_ones_are_there_in_every_kind(config):
    assert {
        "AWS",
        "Azure",
        "Google Cloud",
        "Oracle",
        "Lambda",
        "RunPod",
        "CoreWeave",
        "Nebius",
        "Crusoe",
        "Vast.ai",
        "阿里云 (Alibaba Cloud)",
    } <= set(providers())
    assert {price.kind for price in prices()} == {"on-demand", "spot", "reserved"}
    assert {price.currency for price in prices()} == {"USD", "CNY"}


def test_every_priced_accelerator_is_in_the_catalogue_by_its_own_name(config):
    for row in (*prices(), *purchases()):
        assert accelerator(row.accelerator).name == row.accelerator


def test_no_offer_is_listed_twice(config):
    rows = [(row.provider, row.instance, row.accelerator, row.region, row.kind, row.term_months) for row in prices()]
    assert len(rows) == len(set(rows))


def test_an_hour_of_an_accelerator_costs_between_ten_cents_and_thirty_dollars_or_half_a_yuan_and_fifty(config):
    for row in prices():
        low, high = {"USD": (0.1, 30), "CNY": (0.5, 50)}[row.currency]
        assert low < row.price_per_accelerator_hour < high, row.instance


def test_spot_and_reserved_are_cheaper_than_on_demand_where_both_are_listed(config):
    rows = {(row.provider, row.instance, row.accelerator, row.region, row.kind): row.price_per_hour for row in prices()}
    pairs = [key for key in rows if key[-1] != "on-demand" and (*key[:-1], "on-demand") in rows]
    assert len(pairs) >= 20
    for key in pairs:
        assert rows[key] < rows[*key[:-1], "on-demand"]


def test_the_published_prices_are_there(config):
    rows = {(row.instance, row.kind, row.region): row.usd_per_hour for row in prices()}
    assert rows["p5.48xlarge", "on-demand", "us-east-1"] == 55.04
    assert rows["p6-b200.48xlarge", "on-demand", "us-east-1"] == 113.9328
    assert rows["Standard_ND96isr_H100_v5", "on-demand", "eastus"] == 98.32
    assert rows["BM.GPU.MI300X.8", "on-demand", "all"] == 48
    bought = {row.name: row.usd for row in purchases()}
    assert bought["GeForce RTX 4090"] == 1599


def test_the_power_of_what_is_bought_covers_its_accelerators(config):
    for row in purchases():
        if row.power_watts:
            assert row.power_watts >= row.accelerators * accelerator(row.accelerator).tdp_watts, row.name


def test_prices_of_ones_own_come_first(config):
    own(config, ROW)
    assert prices()[0].provider == "Somewhere"
    assert prices()[0].usd_per_accelerator_hour == 2.5
    assert purchases()[0].name == "a box"


def test_where_one_of_ones_own_answers_only_they_are_asked(config):
    own(config, ROW.replace("usd_per_hour = 20", "usd_per_hour = 2000"))
    assert cheapest(offers("h100")).provider == "Somewhere"
    assert cheapest(offers("b200")).provider != "Somewhere"


# ---- age ----


def test_a_price_is_stale_after_ninety_days_and_says_how_old_it_is(config):
    own(config, ROW.replace("2026-11-21", "2026-08-24"))
    row = prices()[0]
    assert age_days(row, TODAY) == 90 and not is_stale(row, TODAY) and staleness(row, TODAY) == ""
    later = date(2026, 11, 23)
    assert is_stale(row, later)
    assert staleness(row, later).startswith("the price of Somewhere big is 91 days old (2026-08-24)")
    assert staleness(purchases()[0], later).startswith("the price of a box is 91 days old")


def test_a_price_from_tomorrow_is_not_negative_days_old(config):
    own(config, ROW.replace("2026-11-21", "2026-12-24"))
    assert age_days(prices()[0], TODAY) == 0


# ---- finding ----


def test_offers_are_found_by_accelerator_provider_kind_region_currency_and_size(config):
    assert {row.accelerator for row in offers("h100")} == {"H100-SXM-80GB"}
    assert {row.provider for row in offers(provider="aws")} == {"AWS"}
    assert {row.kind for row in offers(kind="spot")} == {"spot"}
    assert {row.region for row in offers("h100", region="US-East-1")} == {"us-east-1", "all"}
    assert {row.currency for row in offers(currency="cny")} == {"CNY"}
    assert min(max(row.sizes, default=row.accelerators) for row in offers("h100", at_least=8)) == 8
    assert {row.term_months for row in offers(kind="reserved", term_months=12)} == {12}
    assert offers("mi50-32gb") == () == bought("mi50-32gb")


def test_a_chinese_provider_is_found_by_either_of_its_names(config):
    assert offers(provider="阿里云") == offers(provider="Alibaba Cloud") != ()


def test_what_nobody_lists_is_an_error_with_the_nearest_name(config):
    with pytest.raises(UnknownName, match="Lambda"):
        offers(provider="Lamda")
    with pytest.raises(UnknownName, match="h100"):
        offers("h1000")
    with pytest.raises(InvalidInput, match=r"kind must be one of on-demand, spot, reserved\. Got 'preemptible'"):
        offers(kind="preemptible")


def test_the_cheapest_is_by_the_accelerator_not_by_the_machine(config):
    found = offers("a100-sxm-80gb", kind="on-demand")
    best = cheapest(found)
    assert all(best.price_per_accelerator_hour <= row.price_per_accelerator_hour for row in found)


def test_a_missing_price_stays_unknown(config):
    with pytest.raises(MissingDatum, match="no price is known"):
        cheapest(offers("mi50-32gb"))


# ---- exchange ----


def test_yuan_become_dollars_only_at_a_rate_that_is_given(config):
    (row,) = offers(provider="阿里云")
    with pytest.raises(MissingDatum, match="prices in CNY need a rate of exchange, and none is assumed"):
        in_usd(row)
    with pytest.raises(MissingDatum, match="is priced in CNY"):
        row.usd_per_accelerator_hour  # noqa: B018
    assert in_usd(row, {"CNY": 7.0}) == pytest.approx(34.742 / 7)


def test_the_cheapest_leaves_out_prices_without_a_rate_and_refuses_where_there_are_no_others(config):
    yuan = offers("rtx-5090", currency="CNY")
    with pytest.raises(MissingDatum, match="CNY"):
        cheapest(yuan)
    assert cheapest(yuan, {"CNY": 7}).price_per_hour == 2.68
    assert cheapest(offers("rtx-4090")).currency == "USD"
    assert cheapest(offers("rtx-4090"), {"CNY": 70}).currency == "CNY"


@pytest.mark.parametrize("given", [0, -7, float("nan"), float("inf"), True, "7"])
def test_a_rate_that_cannot_be_is_named(given):
    with pytest.raises(InvalidInput, match="the rate of CNY must be above 0"):
        rate("CNY", {"CNY": given})


def test_rates_are_read_as_people_write_them(config):
    own(config, ROW.replace("usd_per_hour = 20", 'price_per_hour = 20\ncurrency = "EUR"'))
    assert parse_rates("cny=7.2, EUR = 0.9", "--rate") == {"CNY": 7.2, "EUR": 0.9}
    for wrong in ("7.2", "CNY", "yuan=7", "CNY=x", "CNY=0", "CNY=nan", ""):
        with pytest.raises(InvalidInput):
            parse_rates(wrong, "--rate")


def test_a_rate_of_a_currency_that_no_price_is_in_is_refused(config):
    for unknown in ("XYZ=3", "EUR=0.9", "USD=1", "CNY=7.2,EUR=0.9"):
        with pytest.raises(UnknownName, match=r"no currency of exchange_rate is called '(XYZ|EUR|USD)'\. Known: CNY\."):
            parse_rates(unknown, "exchange_rate")


def test_a_region_is_one_that_a_price_is_of(config):
    assert {row.region for row in offers("h100", region="all")} == {row.region for row in offers("h100")}
    with pytest.raises(UnknownName, match=r"no region is called 'us-east1'\. Did you mean 'us-east-1'"):
        offers("h100", region="us-east1")
    own(config, ROW.replace('region = "all"', 'region = "mars"'))
    forget()
    assert offers("h100", region="Mars")[0].region == "mars"


# ---- files ----


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('region = "all"', 'region = "all"\nzone = "a"', "unknown field `zone`"),
        ("usd_per_hour = 20", 'usd_per_hour = "20"', "usd_per_hour"),
        ("usd_per_hour = 20", "usd_per_hour = 0", r"price 1 \(big\): usd_per_hour must be above 0"),
        ("usd_per_hour = 20\n", "", "usd_per_hour must be above 0"),
        ("usd_per_hour = 20", "usd_per_hour = 20\nprice_per_hour = 21", "usd_per_hour 20 and price_per_hour 21 differ"),
        ("usd_per_hour = 20", 'usd_per_hour = 20\ncurrency = "CNY"', "written as price_per_hour"),
        ("usd_per_hour = 20", 'currency = "CNY"', "price_per_hour must be above 0"),
        (
            "usd_per_hour = 20",
            'price_per_hour = 20\ncurrency = "yuan"',
            "three capital letters such as USD or CNY. Got 'yuan'",
        ),
        (
            'kind = "on-demand"',
            'kind = "preemptible"',
            "kind must be one of on-demand, spot, reserved. Got 'preemptible'",
        ),
        ('kind = "on-demand"', 'kind = "reserved"', "a reserved price needs term_months"),
        ('kind = "on-demand"', 'kind = "reserved"\nterm_months = 0', "term_months must be from 1 to 60. Got 0"),
        (
            'kind = "on-demand"',
            'kind = "spot"\nterm_months = 12',
            "term_months belongs to kind reserved. Got kind 'spot'",
        ),
        ("accelerators = 8", "accelerators = 0", "accelerators must be at least 1"),
        (
            "accelerators = 8",
            'accelerators = 8\nsizes = [8]\nsizes_source = "here"',
            "sizes belong to a price of 1 accelerator. Got accelerators 8",
        ),
        (
            "accelerators = 8",
            'accelerators = 1\nsizes = [4, 2]\nsizes_source = "here"',
            r"sizes must be whole numbers from 1, the smallest first. Got \[4, 2\]",
        ),
        (
            "accelerators = 8",
            'accelerators = 1\nsizes = [0, 2]\nsizes_source = "here"',
            "sizes must be whole numbers from 1",
        ),
        ("accelerators = 8", "accelerators = 1\nsizes = [1, 2]", "sizes need sizes_source: where they are listed"),
        ('as_of = "2026-11-21"', 'as_of = "2026"', "must be a date such as"),
        ('as_of = "2026-11-21"', 'as_of = "2026-02-30"', "must be a day of the calendar. Got '2026-02-30'"),
        ('source = "here"', 'source = ""', "source is empty"),
        ("usd = 250000", "usd = 250e9", r"purchase 1 \(a box\): usd must be above 0 and at most"),
        ("power_watts = 10200", "power_watts = 10200e9", "power_watts must be above 0 and at most"),
        ('provider = "Somewhere"\n', "", "missing required field `provider`"),
    ],
)
def test_a_mistake_in_a_file_is_a_clear_invalid_input(tmp_path, old, new, message):
    assert old in ROW
    with pytest.raises(InvalidInput, match=message) as caught:
        load(written(tmp_path, ROW.replace(old, new, 1)))
    assert "mine.toml" in str(caught.value)


def test_a_price_by_the_accelerator_is_that_of_the_machines_which_are_sold_at_it(tmp_path):
    (row,) = load(
        written(tmp_path, ROW.replace("accelerators = 8", 'accelerators = 1\nsizes = [1, 4]\nsizes_source = "here"', 1))
    ).price
    assert [(each.accelerators, each.usd_per_hour, each.price_per_hour, each.sizes) for each in row.machines] == [
        (1, 20, 20, ()),
        (4, 80, 80, ()),
    ]
    (yuan,) = load(
        written(
            tmp_path,
            ROW.replace("accelerators = 8\n", 'accelerators = 1\nsizes = [2]\nsizes_source = "here"\n', 1).replace(
                "usd_per_hour = 20", 'currency = "CNY"\nprice_per_hour = 9'
            ),
        )
    ).price
    assert [(each.usd_per_hour, each.price_per_hour) for each in yuan.machines] == [(None, 18)]
    (whole,) = load(written(tmp_path, ROW)).price
    assert whole.machines == (whole,)


def test_a_price_in_dollars_may_be_written_either_way_and_another_currency_has_no_dollars(tmp_path):
    plain = load(written(tmp_path, ROW)).price[0]
    other = load(written(tmp_path, ROW.replace("usd_per_hour", "price_per_hour"))).price[0]
    assert (plain.usd_per_hour, plain.price_per_hour) == (other.usd_per_hour, other.price_per_hour) == (20, 20)
    yuan = load(written(tmp_path, ROW.replace("usd_per_hour = 20", 'currency = "CNY"\nprice_per_hour = 140'))).price[0]
    assert yuan.usd_per_hour is None and yuan.price_per_accelerator_hour == 17.5
