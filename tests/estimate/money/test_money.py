"""Rent, power, energy and carbon of a run: whole machines, sources named, nothing assumed in silence."""

from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonnage.catalogue import cluster
from tonnage.catalogue.offers import offers
from tonnage.catalogue.prices import Price
from tonnage.estimate.money.money import (
    BUILDING,
    POWER_SHARE,
    best_price,
    hourly,
    run_carbon,
    run_cost,
    run_energy,
    usd_per_accelerator,
)
from tonnage.kernel.errors import InvalidInput, MissingDatum

EIGHT = Price(
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
YUAN = Price(
    provider="某处",
    instance="1x",
    accelerator="RTX-4090",
    accelerators=1,
    region="all",
    kind="on-demand",
    currency="CNY",
    price_per_hour=14.0,
    source="there",
    as_of="2026-11-21",
)
HOURS = st.floats(0.0, 1e6)
DAY = 86400


# ---- money ----


def test_a_run_costs_its_hours_times_the_price_of_its_machines():
    assert run_cost(16, 10 * 3600, EIGHT).cost.value == 2 * 10 * 24
    assert run_cost(16, 10 * 3600, EIGHT).per_accelerator_hour.value == 3


def test_a_machine_that_is_used_in_part_is_paid_whole():
    assert run_cost(1, 3600, EIGHT).cost.value == 24
    assert run_cost(9, 3600, EIGHT).cost.value == 48
    assert run_cost(9, 3600, EIGHT).machines.value == 2


def test_the_source_of_the_price_and_its_day_stand_in_the_term():
    source = run_cost(8, 3600, EIGHT).cost.source
    assert source == "Somewhere 8x, all, on-demand: here (2026-11-21)"


def test_the_cost_of_gpt_3_at_rent_of_today():
    """355 GPU-years of V100 (Lambda, 2020) are 3.11 million hours; at 3.06 dollars, 9.5 million."""
    price = next(price for price in offers("v100-sxm2-16gb", provider="AWS") if price.instance == "p3.2xlarge")
    cost = run_cost(1, 355 * 365 * DAY, price).cost.value
    assert cost == pytest.approx(9.516e6, rel=1e-3)


@given(hours=HOURS, times=st.integers(2, 100))
def test_cost_is_linear_in_hours(hours, times):
    once = run_cost(64, hours * 3600, EIGHT).cost.value
    assert run_cost(64, times * hours * 3600, EIGHT).cost.value == pytest.approx(times * once)


@given(first=st.integers(1, 10_000), more=st.integers(1, 10_000))
def test_more_accelerators_never_cost_less(first, more):
    assert run_cost(first + more, 3600, EIGHT).cost.value >= run_cost(first, 3600, EIGHT).cost.value


@given(st.lists(st.tuples(st.integers(1, 100_000), st.floats(0, 1e8)), min_size=1, max_size=20))
def test_an_array_of_plans_costs_what_each_costs_alone(plans):
    sizes, seconds = (np.array(column, dtype=float) for column in zip(*plans, strict=True))
    together = run_cost(sizes, seconds, EIGHT).cost
    assert [together.at(i).value for i in range(len(plans))] == [
        run_cost(float(n), float(t), EIGHT).cost.value for n, t in plans
    ]


def test_yuan_are_refused_without_a_rate_and_counted_with_it():
    with pytest.raises(MissingDatum, match="none is assumed"):
        run_cost(1, 3600, YUAN)
    made = run_cost(1, 3600, YUAN, rates={"CNY": 7})
    assert made.cost.value == 2
    assert "the rate of 7 CNY for 1 USD was given" in made.cost.source
    assert hourly(YUAN, {"CNY": 7}).text == "amount / fx"


def test_what_the_price_leaves_open_is_said():
    old = run_cost(8, 3600, EIGHT, today=date(2027, 3, 1)).warnings
    assert old == ("the price of Somewhere 8x is 100 days old (2026-11-21): prices older than 90 days may have moved.",)
    (spot, *_) = offers("h100", kind="spot", provider="CoreWeave")
    assert "can be taken back" in " ".join(run_cost(8, 3600, spot).warnings)
    (reserved, *_) = offers("h100", kind="reserved", term_months=12)
    assert "paid for 12 months, used or not" in " ".join(run_cost(8, 3600, reserved).warnings)
    (single, *_) = offers("h100", provider="Nebius")
    assert "check that those of a node share its fast links" in " ".join(run_cost(8, 3600, single).warnings)


@pytest.mark.parametrize(
    ("size", "seconds", "message"),
    [
        (0, 1, "num_accelerators must be above 0"),
        (1, -1, "seconds must be a finite number"),
        (1, float("nan"), "seconds"),
        (1, float("inf"), "seconds"),
        (float("nan"), 1, "num_accelerators"),
    ],
)
def test_what_cannot_be_is_named(size, seconds, message):
    with pytest.raises(InvalidInput, match=message):
        run_cost(size, seconds, EIGHT)


def test_the_best_price_of_a_cluster_is_of_machines_as_large_as_its_nodes():
    whole = best_price(cluster("4xdgx-h100")).price
    assert whole.accelerators == 8 and whole.kind == "on-demand"
    offered = [each for row in offers("h100", kind="on-demand", at_least=8) for each in row.machines]
    assert whole.usd_per_hour == min(each.usd_per_hour for each in offered if each.accelerators >= 8)
    assert best_price(cluster("h100")).price.usd_per_accelerator_hour < whole.usd_per_accelerator_hour


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_a_part_of_a_node_is_rented_by_its_size_where_somebody_rents_that(size):
    best = best_price(cluster(f"{size}xh100-sxm-80gb"))
    assert best.price.accelerators == size
    assert not any("whole machine" in said for said in run_cost(size, 3600, best.price).warnings)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 8])
def test_a_price_by_the_accelerator_stands_for_each_machine_that_is_sold_at_it(size):
    """RunPod lists 1 to 8 of its MI300X at one price; a whole machine of eight at Azure is 20 times that of one."""
    asked = cluster(f"{size}xmi300x")
    best = best_price(asked, provider="RunPod").price
    assert (best.accelerators, best.usd_per_hour) == (size, pytest.approx(size * 2.39))
    assert usd_per_accelerator(asked, best_price(asked).price) == pytest.approx(2.39)
    said = run_cost(size, 3600, best).warnings
    assert not any("whole machine" in each or "fast links" in each for each in said)


def test_several_machines_that_are_priced_by_the_accelerator_may_have_no_fast_network():
    best = best_price(cluster("2x8xmi300x"), provider="RunPod").price
    assert "check that its machines are connected by a fast network" in " ".join(run_cost(16, 3600, best).warnings)


def test_a_price_by_the_accelerator_is_not_taken_for_machines_that_nobody_lists():
    """Hyperstack's H100 SXM are sold eight at a time, RunPod's B300 one or two, and of a market nobody says."""
    assert all(best_price(cluster(f"{size}xh100-sxm-80gb")).price.provider != "Hyperstack" for size in (1, 2, 4))
    assert best_price(cluster("8xh100-sxm-80gb"), provider="Hyperstack").price.usd_per_hour == pytest.approx(8 * 3.20)
    assert best_price(cluster("4xb300-sxm-288gb")).price.provider != "RunPod"
    assert best_price(cluster("2xl40s")).price.provider != "Vast.ai"
    one = best_price(cluster("h100-sxm-80gb"), provider="Hyperstack").price
    assert one.accelerators == 8 and usd_per_accelerator(cluster("h100-sxm-80gb"), one) == pytest.approx(8 * 3.20)


def test_two_accelerators_cost_less_than_the_node_that_they_are_a_part_of():
    two, eight = (best_price(cluster(f"{size}xh100-sxm-80gb")) for size in (2, 8))
    assert hourly(two.price).value < hourly(eight.price).value / 2
    assert "of machines with as many accelerators as are used" in two.why


def test_a_node_that_is_only_rented_whole_is_paid_whole_and_that_is_said():
    one = cluster("mi355x")
    best = best_price(one)
    assert best.price.accelerators == 8
    assert usd_per_accelerator(one, best.price) == best.price.usd_per_hour
    said = " ".join(run_cost(1, 3600, best.price).warnings)
    assert "is rented as a whole machine of 8 accelerators: 8 are paid for 1 that are used." in said


def test_smaller_machines_are_taken_where_nobody_rents_larger_ones():
    assert best_price(cluster("8xrtx-3090")).price.accelerators == 1


def test_the_best_price_can_be_of_one_provider_kind_and_region():
    price = best_price(cluster("8xh100"), provider="aws", region="ap-northeast-1").price
    assert (price.provider, price.region, price.usd_per_hour) == ("AWS", "ap-northeast-1", 68.8)
    assert best_price(cluster("8xh100"), kind="spot").price.kind == "spot"


def test_an_offer_comes_before_an_index_of_what_others_paid():
    """SemiAnalysis' index of contracts is below every list price, and nobody rents at it."""
    best = best_price(cluster("8xh100"), kind="reserved")
    (index,) = [row for row in offers("h100", kind="reserved") if row.index]
    assert not best.price.index and best.price.usd_per_accelerator_hour > index.usd_per_accelerator_hour
    alone = best_price(cluster("8xh100"), kind="reserved", provider=index.provider)
    assert alone.price == index and alone.why.startswith(
        "the only reserved index known: what others paid, and nobody's offer, 2.35 USD"
    )


def test_what_a_price_was_chosen_from_is_said_as_it_is():
    many, one = best_price(cluster("8xh100")), best_price(cluster("8xh100"), provider="aws", region="us-east-1")
    offered = [row for row in offers("h100", kind="on-demand", at_least=8) if row.currency == "USD"]
    assert many.why.startswith(
        f"the cheapest of {len(offered)} on-demand offers known of machines with as many accelerators as a node, "
    )
    assert one.why.startswith("the only on-demand offer known of machines with as many accelerators as a node, ")
    single = best_price(cluster("8xrtx-3090")).why
    assert "on-demand offer" in single and "priced per accelerator: no offer has a whole node, " in single


def test_a_price_that_nobody_says_is_missing_and_the_message_says_what_was_asked():
    with pytest.raises(MissingDatum, match=r"no price of MI50-32GB is known \(on-demand\)"):
        best_price(cluster("mi50-32gb"))
    with pytest.raises(MissingDatum, match=r"\(reserved, 36 months\)"):
        best_price(cluster("8xh100"), kind="reserved", term_months=36)
    with pytest.raises(MissingDatum, match="need a rate of exchange"):
        best_price(cluster("rtx-5090"))


# ---- energy and carbon ----


def test_whole_nodes_draw_their_rated_power_times_a_share_that_was_measured():
    made = run_energy(cluster("4xdgx-h100"), DAY)
    assert made.power.value == pytest.approx(4 * 10200 * POWER_SHARE)
    assert made.energy.value == pytest.approx(made.power.value * DAY * BUILDING)
    assert set(made.assumed) == {"power_share", "pue"} and "Latif2024" in made.assumed["power_share"]
    assert made.energy.basis == "rule" and not made.warnings


@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_part_of_a_node_draws_its_part_of_the_power_and_that_is_said(size):
    part, whole = run_energy(cluster(f"{size}xh100-sxm-80gb"), DAY), run_energy(cluster("8xh100-sxm-80gb"), DAY)
    assert part.energy.value == pytest.approx(whole.energy.value * size / 8)
    assert f"energy is that of {size} of the 8 accelerators" in part.warnings[0]


def test_without_a_node_of_known_power_accelerators_are_counted_alone_and_that_is_said():
    made = run_energy(cluster("rtx-4090"), 3600, power_share=1, pue=1)
    assert made.power.value == 450 and made.energy.value == 450 * 3600
    assert made.assumed == {} and made.energy.basis == "analytic"
    assert "hosts, fans and network come on top" in made.warnings[0]


def test_carbon_is_energy_times_the_grid():
    energy = run_energy(cluster("rtx-4090"), 3600, power_share=1, pue=1).energy
    assert run_carbon(energy, 1000).value == pytest.approx(450)
    assert run_carbon(energy, "France").value == pytest.approx(0.45 * 41)
    assert "Ember" in run_carbon(energy, "France").source
    with pytest.raises(MissingDatum, match="Atlantis"):
        run_carbon(energy, "Atlantis")


def test_the_energy_of_gpt_3_as_patterson_prints_it():
    """Patterson2021: 10,000 V100 at 330 W for 14.8 days and a PUE of 1.10 are 1,287 MWh; at 0.429 kg a kWh, 552 t."""
    from tonnage.formulas import energy as e

    energy = e.energy_joules(pw=e.accelerators_power(n=10_000, pw=330, u=1), tau=14.8 * DAY, pue=1.10)
    assert energy / 3.6e9 == pytest.approx(1287, rel=2e-3)
    assert e.carbon_grams(en=energy, gco2=429) / 1e6 == pytest.approx(552, rel=5e-3)


@given(hours=HOURS, pue=st.floats(1, 3))
def test_energy_grows_with_time_and_with_the_building(hours, pue):
    machine = cluster("8xh100")
    made = run_energy(machine, hours * 3600, pue=pue).energy.value
    assert made >= run_energy(machine, hours * 3600, pue=1).energy.value
    assert run_energy(machine, 2 * hours * 3600, pue=pue).energy.value == pytest.approx(2 * made)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"pue": 0.9}, "pue must be from 1 to 10. Got 0.9"),
        ({"power_share": 1.5}, "power_share must be from 0 to 1"),
        ({"pue": float("nan")}, "pue"),
    ],
)
def test_a_building_that_cannot_be_is_named(inputs, message):
    with pytest.raises(InvalidInput, match=message):
        run_energy(cluster("h100"), 3600, **inputs)


def test_an_accelerator_of_unknown_power_is_refused():
    with pytest.raises(MissingDatum, match=r"no source says what .* draws"):
        run_energy(cluster("tpu-v5e"), 3600)


@pytest.mark.parametrize(("name", "usd"), [("g5.2xlarge", 1.212), ("g5.12xlarge", 5.672), ("inf2.xlarge", 0.7582)])
def test_an_instance_costs_what_it_costs_and_not_what_the_cheapest_of_its_accelerator_does(name, usd):
    """The AWS price list of us-east-1 of 2026-01-19."""
    choice = best_price(cluster(name))
    assert (choice.price.instance, choice.price.usd_per_hour) == (name, usd)
    assert f"price of {name}, as named" in str(choice.why)
