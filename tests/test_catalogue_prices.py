"""Dated prices: few, sourced, of accelerators that the catalogue knows, and the user's own before the shipped ones."""

from pathlib import Path

import pytest

from tonnage.catalogue import accelerator
from tonnage.catalogue.prices import load, prices, purchases
from tonnage.errors import InvalidInput

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


@pytest.fixture
def config(tmp_path, monkeypatch):
    """A folder of the user's own, with nothing remembered from before or after."""
    monkeypatch.setenv("TONNAGE_CONFIG", str(tmp_path))
    forget()
    yield tmp_path
    forget()


def forget():
    prices.cache_clear()
    purchases.cache_clear()


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_shipped_prices_are_few_and_each_has_a_source_and_a_date(config):
    assert 10 <= len(prices()) <= 30
    assert 5 <= len(purchases()) <= 15
    for row in (*prices(), *purchases()):
        assert row.source and "2020-" < row.as_of < "2027-"


def test_every_priced_accelerator_is_in_the_catalogue_by_its_own_name(config):
    for row in (*prices(), *purchases()):
        assert accelerator(row.accelerator).name == row.accelerator


def test_no_offer_is_listed_twice(config):
    offers = [(row.provider, row.instance, row.accelerator, row.region, row.kind) for row in prices()]
    assert len(offers) == len(set(offers))


def test_an_hour_of_an_accelerator_costs_between_ten_cents_and_thirty_dollars(config):
    for row in prices():
        assert 0.1 < row.usd_per_accelerator_hour < 30, row.instance


def test_spot_is_cheaper_than_on_demand_where_both_are_listed(config):
    rows = {(row.provider, row.instance, row.kind): row.usd_per_hour for row in prices()}
    pairs = [key for key in rows if key[2] == "spot" and (*key[:2], "on-demand") in rows]
    assert len(pairs) >= 3
    for provider, instance, _ in pairs:
        assert rows[provider, instance, "spot"] < rows[provider, instance, "on-demand"]


def test_the_published_prices_are_there(config):
    rows = {(row.instance, row.kind): row.usd_per_hour for row in prices()}
    assert rows["p5.48xlarge", "on-demand"] == 55.04
    assert rows["p6-b200.48xlarge", "on-demand"] == 113.9328
    assert rows["Standard_ND96isr_H100_v5", "on-demand"] == 98.32
    assert rows["BM.GPU.MI300X.8", "on-demand"] == 48
    bought = {row.name: row.usd for row in purchases()}
    assert bought["GeForce RTX 4090"] == 1599


def test_the_power_of_what_is_bought_covers_its_accelerators(config):
    for row in purchases():
        if row.power_watts:
            assert row.power_watts >= row.accelerators * accelerator(row.accelerator).tdp_watts, row.name


def test_prices_of_ones_own_come_first(config):
    folder = config / "prices"
    folder.mkdir()
    written(folder, ROW)
    assert prices()[0].provider == "Somewhere"
    assert prices()[0].usd_per_accelerator_hour == 2.5
    assert purchases()[0].name == "a box"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('region = "all"', 'region = "all"\nzone = "a"', "unknown field `zone`"),
        ("usd_per_hour = 20", 'usd_per_hour = "20"', "usd_per_hour"),
        ("usd_per_hour = 20", "usd_per_hour = 0", r"price 1 \(big\): usd_per_hour must be above 0"),
        ('kind = "on-demand"', 'kind = "reserved"', "kind must be one of on-demand, spot. Got 'reserved'"),
        ("accelerators = 8", "accelerators = 0", "accelerators must be at least 1"),
        ('as_of = "2026-11-21"', 'as_of = "2026"', "must be a date such as"),
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
