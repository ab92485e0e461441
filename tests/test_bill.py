"""What a training run costs and draws: the bill of its seconds, as the answer of `train` shows it."""

import pytest

import tonnage
from tonnage.cli import main
from tonnage.errors import InvalidInput, MissingDatum, UnknownName

RUN = {"tokens": "10B", "recompute": "full"}
OWN = {"electricity_usd_per_kwh": 0.12, "network_share": 0.1, "staff_usd_per_month": 5000}


def trained(model="llama-3.1-8b", machine="8xH100-SXM-80GB", **options):
    return tonnage.train(model, machine, **{**RUN, **options})


def test_the_price_given_times_the_hours_is_the_cost():
    made = trained(price_per_accelerator_hour=2.5)
    assert made.bill.cost.value == pytest.approx(2.5 * made.run["accelerator_hours"].value)


def test_the_cheapest_offer_of_the_catalogue_is_named_with_its_date():
    made = trained()
    assert made.bill.cost.value > 0 and "USD an accelerator" in made.question["price"]["why"]
    assert made.bill.cost.value <= trained(provider="AWS").bill.cost.value


def test_without_a_run_a_step_is_billed():
    made = tonnage.train("llama-3.1-8b", "8xH100-SXM-80GB")
    assert made.bill.of == "a step" and made.bill.energy.name == "energy of a step"


def test_energy_is_power_times_time_with_the_building_in_it():
    made = trained(pue=1.2, power_share=0.5)
    assert made.bill.energy.value == pytest.approx(10_200 * 0.5 * 1.2 * made.run["seconds"].value)


def test_carbon_is_asked_for_with_a_grid():
    assert trained().bill.carbon is None
    low, high = trained(grid="France").bill.carbon.value, trained(grid="500").bill.carbon.value
    energy = trained().bill.energy.value
    assert high == pytest.approx(500 * energy / 3.6e6) and low < high


def test_buying_is_compared_where_what_no_source_knows_is_given():
    assert trained().bill.ownership == {}
    own = trained(**OWN).bill.ownership
    assert own["rent_month"].value > own["own_month"].value
    months = own["purchase"].value / (own["rent_month"].value - own["own_month"].value)
    assert own["break_even_month"] == pytest.approx(months, abs=1)
    assert trained(**OWN, used_share=0.2).bill.ownership["worn_out"]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"price_kind": "auction"}, UnknownName),
        ({"provider": "Nobody"}, UnknownName),
        ({"region": "mars"}, UnknownName),
        ({"exchange_rate": "XYZ=3"}, UnknownName),
        ({"provider": "Nobody", "price_per_accelerator_hour": 2.0}, UnknownName),
        ({"region": "mars", "price_per_accelerator_hour": 2.0}, UnknownName),
        ({"electricity_usd_per_kwh": 0.1}, MissingDatum),
        ({"grid": "Atlantis"}, MissingDatum),
        ({"grid": "-5"}, InvalidInput),
        ({"pue": 0.5}, InvalidInput),
        ({"keep_checkpoints": 0}, InvalidInput),
        ({"exchange_rate": "CNY"}, InvalidInput),
        ({"price_per_accelerator_hour": -1.0}, InvalidInput),
        ({**OWN, "price_per_accelerator_hour": 2.0}, InvalidInput),
    ],
)
def test_what_cannot_be_billed_is_refused(wrong, error):
    with pytest.raises(error):
        trained(**wrong)


@pytest.mark.parametrize(
    ("option", "wrong", "span"),
    [
        ("network_share", -1.0, "from 0 to 5"), ("electricity_usd_per_kwh", -0.1, "from 0 to 100"), ("staff_usd_per_month", 1e10, "from 0 to 1e+09"),
        ("used_share", 3.0, "from 0 to 1"), ("pue", 0.5, "from 1 to 10"), ("power_share", 2.0, "from 0 to 1"),
    ],
)  # fmt: skip
def test_a_figure_out_of_its_range_is_refused_before_what_is_missing(option, wrong, span, capsys):
    """Status 64, not 4: nothing that the user could add would make it right."""
    flag = f"--{option.replace('_', '-')}"
    assert main(["train", "llama-3.1-8b", "--on", "8xH100-SXM-80GB", f"{flag}={wrong}"]) == 64
    assert f"{option} must be {span}. Got {wrong!r}." in capsys.readouterr().err


@pytest.mark.parametrize("wrong", ["-1", "0", "1e7"])
def test_the_range_of_kept_checkpoints_is_said_in_one_text(wrong, capsys):
    assert main(["train", "llama-3.1-8b", "--on", "8xH100-SXM-80GB", f"--keep-checkpoints={wrong}"]) == 64
    assert "must be from 1 to 1,000,000. Got " in capsys.readouterr().err


def test_a_machine_whose_price_nobody_published_has_no_cost_and_says_so():
    made = trained("llama-3.2-1b", "MI210-64GB", recompute="none")
    assert made.bill.cost is None and any("no price of MI210" in each for each in made.warnings)
    assert made.to_dict()["cost"] is None


def test_a_price_in_another_currency_names_the_option_that_its_rate_takes():
    with pytest.raises(
        MissingDatum, match=r"CNY=7\.2 \(--exchange-rate on the command line, exchange_rate in Python\)"
    ):
        trained("qwen3-0.6b", "rtx-5090", price_kind="on-demand")
    assert trained("qwen3-0.6b", "rtx-5090", exchange_rate="CNY=7.2").bill.cost.value > 0


def test_disks_hold_the_checkpoints_that_are_kept_and_the_data():
    few, many = (trained(keep_checkpoints=count).disks["disk"].value for count in (1, 5))
    assert many - few == pytest.approx(4 * trained().checkpoint.value)
    assert few == pytest.approx(trained().checkpoint.value + 4 * 10e9)
