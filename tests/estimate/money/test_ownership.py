"""Buying against renting, and cloud against own servers against the edge (rule D11)."""

from datetime import date

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from tonnage.catalogue.offers import offers
from tonnage.catalogue.prices import Price
from tonnage.estimate.money.ownership import (
    ASKED,
    Ownership,
    at_the_edge,
    buy_or_rent,
    device_of,
    in_cloud,
    machine_of,
    on_own_servers,
    operation,
    owned,
    purchase_of,
)
from tonnage.kernel.errors import InvalidInput, MissingDatum
from tonnage.kernel.units import MONTH

BOX = Ownership(
    machine_usd=250_000,
    machine_watts=10_000,
    accelerators=8,
    source="a box: an offer",
    machines=1,
    depreciation_years=5,
    pue=1.5,
    power_share=0.8,
    electricity_usd_per_kwh=0.10,
    colocation_usd_per_kw_month=0,
    network_share=0,
    staff_usd_per_month=0,
)
RENT = Price(
    provider="Somewhere",
    instance="8x",
    accelerator="H100-SXM-80GB",
    accelerators=8,
    region="all",
    kind="on-demand",
    usd_per_hour=24.0,
    price_per_hour=24.0,
    source="here",
    as_of="2026-11-21",
)
TODAY = date(2026, 11, 22)
PRICE = st.floats(1.0, 500.0)


def rent_of(usd: float) -> Price:
    return replace(RENT, usd_per_hour=usd, price_per_hour=usd)


def test_operation_is_electricity_room_and_staff():
    month = operation(replace(BOX, colocation_usd_per_kw_month=100, staff_usd_per_month=7), MONTH)
    assert {child.name: child.value for child in month.children} == pytest.approx(
        {"electricity": 10 * 0.8 * 1.5 * 730 * 0.10, "colocation": 1000, "staff": 7}
    )


def test_a_box_is_paid_back_by_the_rent_that_it_saves():
    made = buy_or_rent(BOX, RENT, today=TODAY)
    saved = 24 - 10 * 0.8 * 1.5 * 0.10
    assert made.break_even.value / 3600 == pytest.approx(250_000 / saved)
    assert made.month == 16 and not made.worn_out and made.warnings == ()


def test_an_hour_of_an_own_accelerator_carries_its_share_of_the_purchase():
    made = buy_or_rent(BOX, RENT)
    assert made.own_hour.value == pytest.approx((250_000 / 5 / 8760 + 10 * 0.8 * 1.5 * 0.10) / 8)


def test_idle_hours_make_those_in_use_dearer_and_rent_cheaper():
    idle = buy_or_rent(replace(BOX, used_share=0.25), RENT)
    assert idle.own_hour.value == pytest.approx((4 * 250_000 / 5 / 8760 + 10 * 0.8 * 1.5 * 0.10) / 8)
    assert idle.rent_month.value == pytest.approx(0.25 * 24 * 730)


def test_electricity_is_paid_for_the_hours_in_use_and_room_and_staff_for_all():
    own = replace(BOX, colocation_usd_per_kw_month=100, staff_usd_per_month=7)
    paid, full = (
        {child.name: child.value for child in operation(replace(own, used_share=share), MONTH).children}
        for share in (0.5, 1)
    )
    assert paid == pytest.approx({**full, "electricity": full["electricity"] / 2})


def test_work_on_own_servers_takes_the_electricity_of_its_own_hours_however_idle_they_are_otherwise():
    used, idle = (on_own_servers(replace(BOX, used_share=share), 1000).cost for share in (1, 0.25))
    worn = 1000 / 8760 * 250_000 / 5
    assert used.value - worn == pytest.approx(1000 * 10 * 0.8 * 1.5 * 0.10) == idle.value - 4 * worn


def test_where_rent_is_below_what_owning_costs_to_run_buying_never_pays():
    made = buy_or_rent(BOX, rent_of(1.0))
    assert made.break_even is None and made.month is None and made.worn_out


def test_a_break_even_after_the_machines_are_written_off_is_said():
    assert buy_or_rent(BOX, rent_of(5.0)).worn_out


def test_switches_racks_and_staff_put_the_month_off():
    plain = buy_or_rent(BOX, RENT).month
    assert buy_or_rent(replace(BOX, network_share=0.2), RENT).month > plain
    assert buy_or_rent(replace(BOX, staff_usd_per_month=5000), RENT).month > plain


@given(PRICE, PRICE)
def test_the_break_even_is_later_where_rent_is_cheaper(one, other):
    low, high = sorted((one, other))
    cheap, dear = buy_or_rent(BOX, rent_of(low)).break_even, buy_or_rent(BOX, rent_of(high)).break_even
    assume(dear is not None)
    assert cheap is None or cheap.value >= dear.value


@given(PRICE, st.floats(0.01, 1.0))
def test_dearer_electricity_never_brings_the_break_even_forward(rent, more):
    plain = buy_or_rent(BOX, rent_of(rent)).break_even
    dear = buy_or_rent(replace(BOX, electricity_usd_per_kwh=0.10 + more), rent_of(rent)).break_even
    assert dear is None or (plain is not None and dear.value >= plain.value)


@given(PRICE, st.integers(1, 1000))
def test_many_boxes_pay_back_when_one_does(rent, machines):
    one, many = (buy_or_rent(box, rent_of(rent)).month for box in (BOX, replace(BOX, machines=machines)))
    assert one == many


def test_what_no_source_gives_is_asked_for_all_at_once():
    with pytest.raises(MissingDatum) as caught:
        buy_or_rent(owned(purchase_of("h100-sxm-80gb", 8)), RENT)
    assert all(name in str(caught.value) for name in ASKED)


def test_defaults_are_named_with_their_sources():
    given = {"electricity_usd_per_kwh": 0.1, "network_share": 0.0, "staff_usd_per_month": 0.0}
    made = buy_or_rent(owned(purchase_of("h100-sxm-80gb", 8), **given), RENT)
    assert set(made.assumed) == {"depreciation_years", "pue", "power_share", "colocation_usd_per_kw_month"}
    assert "CBRE" in made.assumed["colocation_usd_per_kw_month"]
    assert buy_or_rent(BOX, RENT).assumed == {}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("pue", 0.5, "pue must be from 1 to 10. Got 0.5"),
        ("depreciation_years", 0, "depreciation_years must be from 0.1"),
        ("used_share", 0, "used_share must be above 0"),
        ("used_share", 1.5, "used_share must be from 0 to 1"),
        ("electricity_usd_per_kwh", float("nan"), "electricity_usd_per_kwh"),
        ("machines", 0, "machines must be from 1"),
        ("network_share", -0.1, "network_share"),
        ("staff_usd_per_month", float("inf"), "staff_usd_per_month"),
    ],
)
def test_an_input_that_cannot_be_is_named(field, value, message):
    with pytest.raises(InvalidInput, match=message):
        buy_or_rent(replace(BOX, **{field: value}), RENT)


def test_a_machine_that_nobody_prices_or_whose_power_nobody_says_is_missing():
    with pytest.raises(MissingDatum, match="no price of a machine of 'h100' with 3 of it is known"):
        purchase_of("h100", 3)
    silent = replace(purchase_of("h100-sxm-80gb", 8), power_watts=None)
    with pytest.raises(MissingDatum, match="give machine_watts"):
        owned(silent)
    assert owned(silent, machine_watts=9000).machine_watts == 9000


def test_yuan_need_a_rate_here_too():
    (yuan,) = offers(provider="Alibaba Cloud")
    with pytest.raises(MissingDatum, match="CNY"):
        buy_or_rent(BOX, yuan)
    assert buy_or_rent(BOX, yuan, rates={"CNY": 7}).rent_month.value == pytest.approx(8 * 34.742 / 7 * 730)


def test_cloud_own_servers_and_edge_each_cost_their_own_way():
    cloud, servers = in_cloud(RENT, 8, 1000), on_own_servers(BOX, 1000)
    assert (cloud.where, cloud.cost.value, cloud.first_payment) == ("cloud", 24_000, 0)
    assert servers.cost.value == pytest.approx(1000 * 8 * buy_or_rent(BOX, RENT).own_hour.value)
    assert servers.first_payment == 250_000
    edge = at_the_edge(purchase_of("jetson-orin-nano-8gb"), 1000, years=3, electricity_usd_per_kwh=0.30)
    assert edge.cost.value == pytest.approx(249 * 1000 / (3 * 8760) + 25 * 0.30)
    assert "small models only" in edge.note
    assert cloud.seconds == servers.seconds == edge.seconds == 1000 * 3600


def test_a_price_of_ones_own_needs_its_power_and_says_that_both_were_given():
    inputs = {"electricity_usd_per_kwh": 0.1, "network_share": 0.0, "staff_usd_per_month": 0.0}
    with pytest.raises(MissingDatum, match="give machine_watts"):
        machine_of("A100-SXM-80GB", 8, usd=150_000, watts=None, **inputs)
    made = machine_of("A100-SXM-80GB", 8, usd=150_000, watts=6500, **inputs)
    assert (made.machine_usd, made.machine_watts, made.accelerators) == (150_000, 6500, 8) and "given" in made.source
    shop = machine_of("H100-SXM-80GB", 8, usd=None, watts=9000, **inputs)
    assert shop.machine_watts == 9000 and "Lenovo" in shop.source


def test_room_that_was_given_is_not_said_to_be_of_the_default():
    sources = [
        {child.name: child.source for child in operation(own, MONTH).children}["colocation"]
        for own in (BOX, replace(BOX, colocation_usd_per_kw_month=None))
    ]
    assert sources[0] == "given" and "CBRE" in sources[1]


def test_a_device_for_the_edge_is_sold_alone():
    assert device_of("rtx-4090").usd == 1599
    with pytest.raises(MissingDatum, match=r"edge: no price of one 'l40s' is known; of these it is: .*RTX-4090"):
        device_of("l40s")


@given(hours=st.floats(1, 1e6), times=st.integers(2, 9))
def test_every_place_costs_twice_as_much_for_twice_the_hours(hours, times):
    device = purchase_of("jetson-orin-nano-8gb")
    for cost in (
        lambda t: in_cloud(RENT, 8, t),
        lambda t: on_own_servers(BOX, t),
        lambda t: at_the_edge(device, t, years=3, electricity_usd_per_kwh=0.3),
    ):
        assert cost(times * hours).cost.value == pytest.approx(times * cost(hours).cost.value)


@pytest.mark.parametrize("hours", [0, -1, float("nan"), float("inf")])
def test_hours_that_cannot_be_are_named(hours):
    with pytest.raises(InvalidInput, match="hours must be a finite number above 0"):
        in_cloud(RENT, 8, hours)
