"""What a machine costs that is named as a provider names it."""

import pytest

from tonnage.catalogue.clusters import cluster
from tonnage.estimate.money.money import best_price, usd_per_accelerator


@pytest.mark.parametrize(
    ("machine", "provider", "hour"),
    [
        ("a2-highgpu-1g", "Google Cloud", 3.6734),
        ("a3-megagpu-8g", "Google Cloud", 93.4007),
        ("Standard_ND96isr_H100_v5", "Azure", 98.32),
        ("Standard_NC24ads_A100_v4", "Azure", 3.673),
        ("Standard_NC48ads_A100_v4", "Azure", 7.346),
    ],
)
def test_an_instance_costs_what_its_provider_takes_for_it(machine, provider, hour):
    named = cluster(machine)
    choice = best_price(named)
    assert choice.named and choice.price.provider == provider
    assert choice.price.usd_per_hour == pytest.approx(hour, rel=1e-3)


@pytest.mark.parametrize(
    ("machine", "provider", "hour"),
    [
        ("gpu-h100-sxm-8gpu-128vcpu-1600gb", "Nebius", 36.0),
        ("gd-8xh100ib-i128", "CoreWeave", 49.24),
        ("h100-80gb-sxm-ib.8x", "Crusoe", 31.2),
    ],
)
def test_an_instance_priced_under_another_name_costs_what_its_provider_takes_for_such_machines(machine, provider, hour):
    named = cluster(machine)
    choice = best_price(named)
    assert choice.of_provider and choice.price.provider == provider and provider in str(choice.why)
    assert usd_per_accelerator(named, choice.price) * 8 == pytest.approx(hour)


def test_a_machine_named_by_its_accelerator_costs_what_the_cheapest_provider_takes():
    choice = best_price(cluster("8xh100"))
    assert not choice.named and not choice.of_provider
