"""What a training run costs and draws: the bill of its seconds, as the answer of `train` shows it."""

import pytest
from msgspec import UNSET

import tonnage
from tonnage.cli import main
from tonnage.kernel.errors import InvalidInput, MissingDatum, UnknownName

RUN = {"tokens": "10B", "recompute": "full"}
OWN = {"electricity_usd_per_kwh": 0.12, "network_share": 0.1, "staff_usd_per_month": 5000}


def trained(model="llama-3.1-8b", machine="8xH100-SXM-80GB", **options):
    return tonnage.train(model, machine, **{**RUN, **options})


def test_the_price_given_times_the_hours_is_the_cost():
    made = trained(price_per_accelerator_hour=2.5)
    assert made.bill.cost.value == pytest.approx(2.5 * made.run.accelerator_hours.value)


def test_the_cheapest_offer_of_the_catalogue_is_named_with_its_date():
    made = trained()
    assert made.bill.cost.value > 0 and "USD an accelerator" in made.question["price"].why
    assert made.bill.cost.value <= trained(provider="AWS").bill.cost.value


def test_without_a_run_a_step_is_billed():
    made = tonnage.train("llama-3.1-8b", "8xH100-SXM-80GB")
    assert made.bill.of == "a step" and made.bill.energy.name == "energy of a step"


def test_energy_is_power_times_time_with_the_building_in_it():
    made = trained(pue=1.2, power_share=0.5)
    assert made.bill.energy.value == pytest.approx(10_200 * 0.5 * 1.2 * made.run.seconds.value)


def test_carbon_is_asked_for_with_a_grid():
    assert trained().bill.carbon is None
    low, high = trained(grid="France").bill.carbon.value, trained(grid="500").bill.carbon.value
    energy = trained().bill.energy.value
    assert high == pytest.approx(500 * energy / 3.6e6) and low < high


def test_buying_is_compared_where_what_no_source_knows_is_given():
    assert trained().bill.ownership is None
    own = trained(**OWN).bill.ownership
    assert own.rent_month.value > own.own_month.value
    months = own.purchase.value / (own.rent_month.value - own.own_month.value)
    assert own.break_even_month == pytest.approx(months, abs=1)
    assert trained(**OWN, used_share=0.2).bill.ownership.worn_out


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
        ({**OWN, "depreciation_years": 0.0}, InvalidInput),
        ({**OWN, "colocation_usd_per_kw_month": -1.0}, InvalidInput),
        ({**OWN, "machine_usd": -1.0}, InvalidInput),
        ({"machine_usd": -1.0}, InvalidInput),  # before what is missing is asked for
        ({**OWN, "machine_watts": -1.0}, InvalidInput),
        ({**OWN, "edge": "l40s"}, MissingDatum),
        ({**OWN, "edge": "abacus"}, UnknownName),
        ({"edge": "rtx-4090"}, MissingDatum),
        ({"text_bytes_per_token": 0.0}, InvalidInput),
    ],
)
def test_what_cannot_be_billed_is_refused(wrong, error):
    with pytest.raises(error):
        trained(**wrong)


@pytest.mark.parametrize(
    ("option", "wrong", "span"),
    [
        ("network_share", -1.0, "from 0 to 5"),
        ("electricity_usd_per_kwh", -0.1, "from 0 to 100"),
        ("staff_usd_per_month", 1e10, "from 0 to 1e+09"),
        ("used_share", 3.0, "from 0 to 1"),
        ("pue", 0.5, "from 1 to 10"),
        ("power_share", 2.0, "from 0 to 1"),
    ],
)
def test_a_figure_out_of_its_range_is_refused_before_what_is_missing(option, wrong, span, capsys):
    """Status 64, not 4: nothing that the user could add would make it right."""
    flag = f"--{option.replace('_', '-')}"
    assert main(["train", "llama-3.1-8b", "--on", "8xH100-SXM-80GB", f"{flag}={wrong}"]) == 64
    assert f"{flag} must be {span}. Got {wrong!r}." in capsys.readouterr().err


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
    few, many = (trained(keep_checkpoints=count).disks.disk.value for count in (1, 5))
    assert many - few == pytest.approx(4 * trained().checkpoint.value)
    assert few == pytest.approx(trained().checkpoint.value + 4 * 10e9)


@pytest.mark.parametrize(
    ("runtime", "zero", "bytes_each"),
    [("megatron", 1, 14), ("deepspeed", 2, 14), ("deepspeed", 3, 12), ("fsdp2", 3, 12)],
)
def test_disks_and_their_time_are_of_what_the_runtime_writes(runtime, zero, bytes_each):
    """Megatron-core and DeepSpeed below ZeRO-3 write the weights twice: as the model has them, and as the optimizer
    updates them.
    """
    made = tonnage.train(
        "llama-3.1-8b", "8xH100-SXM-80GB", runtime=runtime, zero_stage=zero, storage_bandwidth=20e9, keep_checkpoints=2
    )
    written = bytes_each * made.question["parameters"].value
    assert made.disks.write.value == written / 20e9 and made.disks.kept.value == 2 * written
    assert made.checkpoint.value == 12 * made.question["parameters"].value


def test_storage_is_as_fast_for_the_run_as_for_the_answer_and_said_without_a_run_too():
    made = trained(storage_bandwidth=20e9, storage_read_bandwidth=40e9)
    assert made.disks.write.value == made.run.checkpoint_seconds.value == made.checkpoint.value / 20e9
    assert made.run.restart_seconds.value == 600 + made.disks.read.value == 600 + made.checkpoint.value / 40e9
    step = tonnage.train("llama-3.1-8b", "8xH100-SXM-80GB", storage_bandwidth=20e9)
    assert step.to_dict()["storage"]["write"]["value"] == made.disks.write.value and "to write" in step.text(
        verbose=True
    )
    assert "assumption" in trained().question["storage_bandwidth"].why
    assert "storage_bandwidth" not in trained(checkpoint_seconds=1.0).question


def test_a_data_set_is_stored_once_however_often_it_is_seen():
    once = trained(text_bytes_per_token=3.0).disks
    assert (once.dataset.value, once.dataset_text.value) == (4 * 10e9, 3 * 10e9)
    thrice = trained(tokens=None, epochs=3.0, dataset_tokens="10B").disks
    assert (thrice.dataset.value, thrice.dataset_text.value) == (4 * 10e9, 4 * 10e9)
    assert thrice.drives.value == 1  # of 3.84 TB
    assert tonnage.train("llama-3.1-8b", "8xH100-SXM-80GB").disks.dataset is None


def test_a_machine_of_ones_own_price_is_compared_where_nobody_sells_one():
    with pytest.raises(MissingDatum, match="no price of a machine"):
        trained(machine="8xA100-SXM-80GB", **OWN)
    own = trained(machine="8xA100-SXM-80GB", **OWN, machine_usd=150_000.0, machine_watts=6500.0).bill.ownership
    assert own.purchase.value == pytest.approx(1.1 * 150_000)


CARD = {
    **OWN,
    "network_share": 0.0,
    "staff_usd_per_month": 0.0,
    "colocation_usd_per_kw_month": 0.0,
    "sequence_length": 512,
    "method": "lora",
}


def test_a_card_is_said_to_be_bought_without_a_host_unless_a_machine_is_given():
    note = "GeForce RTX 4090 is bought for 1,599 USD (the card alone, without a host, before tax)"
    assert any(note in warning for warning in trained("qwen2.5-0.5b", "rtx-4090", **CARD).warnings)
    whole = trained("qwen2.5-0.5b", "rtx-4090", **CARD, machine_usd=2500.0, machine_watts=700.0)
    assert not any("is bought for" in warning for warning in whole.warnings)


def test_a_month_beyond_the_life_of_the_machines_does_not_count_as_paying_off():
    dear = {**CARD, "electricity_usd_per_kwh": 0.3, "machine_usd": 2500.0, "machine_watts": 700.0}
    text = trained("qwen2.5-0.5b", "rtx-4090", **dear).text(verbose=True)
    assert "buying does not pay off within the machines' life: they are written off before month 1" in text
    assert "buying costs less from" not in text
    assert "buying costs less from month" in trained("qwen2.5-0.5b", "rtx-4090", **CARD).text(verbose=True)


def test_who_owns_a_building_and_writes_off_slowly_pays_less_for_an_hour():
    plain, frugal = (
        trained(**OWN, **more).bill.ownership
        for more in ({}, {"colocation_usd_per_kw_month": 0.0, "depreciation_years": 8.0})
    )
    assert frugal.own_hour.value < plain.own_hour.value and frugal.own_month.value < plain.own_month.value
    noted = trained(**OWN, depreciation_years=8.0).question
    assert noted["depreciation_years"].value == 8 and noted["colocation_usd_per_kw_month"].value == 184


def test_the_run_costs_in_each_place_what_its_hours_cost_there():
    made = trained(**OWN)
    cloud, own = made.bill.ownership.places
    assert cloud.cost.value == made.bill.cost.value
    hours = made.run.seconds.value / 3600
    assert own.cost.value == pytest.approx(
        8 * hours * made.bill.ownership.own_hour.value, rel=0.03
    )  # switches are bought once
    assert "cost of the run by place: cloud (" in made.text(verbose=True) and "written off" in made.text(formulas=True)


def test_a_device_at_the_edge_is_as_slow_and_as_small_as_it_is():
    small = {"model": "llama-3.2-1b", "method": "qlora", **OWN}
    card = trained(**small, edge="rtx-4090").bill.ownership.places[2]
    assert card.where == "edge" and card.first_payment == 1599
    alone = tonnage.train("llama-3.2-1b", "RTX-4090", **RUN, method="qlora")
    assert card.seconds == pytest.approx(alone.run.productive_seconds.value, rel=1e-3)
    full = trained(**OWN, edge="jetson-orin-nano-8gb")
    assert full.bill.ownership.places[2].cost is UNSET and "does not fit: needs" in full.text(verbose=True)
    assert "cost" not in full.to_dict()["ownership"]["places"][2]


def test_a_model_far_beyond_its_best_data_says_what_that_costs():
    long, short = trained(tokens="15T"), trained(tokens="100B")
    first = long.to_dict()["run"]["best_models"][0]
    assert first["fit"] == "Besiroglu 2024" and first["factor"]["value"] == pytest.approx(5.5, rel=0.01)
    assert "over-training: 5.5 times (Besiroglu 2024), 2.48 times (Hoffmann 2022)" in long.text(verbose=True)
    assert "over-training" not in short.text(verbose=True)
    assert "optimal_compute" in long.text(formulas=True)
    assert [row["fit"] for row in short.to_dict()["run"]["best_models"]][-1] == "Kaplan 2020"


def test_the_laws_are_said_of_what_they_were_fitted_to():
    experts = trained("qwen3-30b-a3b", machine="8xH200-SXM-141GB").to_dict()["run"]["best_models"]
    assert all("factor" not in row and row["parameters"]["value"] > 0 for row in experts)
    assert not trained(method="lora").run.best_models
    assert not trained("bert-base-uncased").run.best_models
