"""Larger cards as suggestions: the machine whose tokens cost least, instead of more of the same."""

import json

import pytest

from tonnage.catalogue import accelerator, accelerator_names, cluster
from tonnage.cli import main
from tonnage.estimate.money.bill import BillOptions
from tonnage.estimate.options.machine import is_slice
from tonnage.estimate.run.larger_machines import CHEAPEST, MAKER, elsewhere
from tonnage.search.serving.space import Prices
from tonnage.spec import Cluster


@pytest.fixture
def ask(capsys):
    def call(*words):
        main([*" ".join(words).split(), "--json"])
        return json.loads(capsys.readouterr().out)

    return call


@pytest.mark.parametrize(
    ("line", "machine"),
    [
        ("qwen2.5-vl-7b-instruct --on l40s --video-seconds 60 --users 4", "A100-PCIe-80GB"),
        ("deepseek-v3 --on 8xh100", "8xH200-SXM-141GB"),
    ],
)
def test_a_larger_card_whose_tokens_cost_less_is_suggested_instead_of_more_of_the_same(ask, line, machine):
    """One card of 80 GB instead of two of 48, one node instead of two: by shipped prices."""
    before = ask("serve", line)
    move = next(move for move in before["advice"] if "on" in move["change"])
    assert move["change"]["on"] == machine and move["changes"] == "machine"
    after = ask("serve", line, move["text"])
    assert after["verdict"]["fits"] and after["verdict"]["needed_bytes"] == move["needed_bytes"]
    assert after["serving"]["cost_per_million_tokens"]["value"] == pytest.approx(move["usd_per_million_tokens"])


def test_more_of_the_same_is_suggested_where_its_tokens_cost_less_than_those_of_larger_cards(ask):
    """Two RTX 4090 cost more an hour than one RTX A6000, and their tokens less."""
    line = "llama-3.1-8b --on rtx-4090 --context 131072 --users 1"
    move = next(move for move in ask("serve", line)["advice"] if "on" in move["change"])
    other = ask("serve", line.replace("rtx-4090", "rtx-a6000"))["serving"]["cost_per_million_tokens"]["value"]
    assert move["change"]["on"] == "2xRTX-4090" and move["usd_per_million_tokens"] < other
    amd = ask("serve", "llama-3.1-70b --on MI210 --users 1")
    named = [move["change"]["on"] for move in amd["advice"] if "on" in move["change"]]
    assert all("MI210" in name for name in named), "of another maker nothing is known to be cheaper"


def test_where_no_change_fits_the_smallest_node_of_larger_cards_is_named():
    """From small to large memory in all; what holds less than is needed is not looked at."""
    names = [machine.name for machine in elsewhere(cluster("8xH100-SXM-80GB"), 700 * 2**30)]
    assert names[0] == "4xB200-SXM-180GB" and "8xRTX-A6000" not in names
    memory = [machine.size * machine.accelerator.memory.usable_bytes for machine in map(cluster, names)]
    assert memory == sorted(memory)


@pytest.mark.parametrize("name", CHEAPEST)
def test_no_card_with_as_much_memory_costs_less_than_those_that_are_suggested(name):
    """On-demand prices that are shipped, of all NVIDIA cards of the catalogue."""
    prices, card = Prices(BillOptions()), accelerator(name)
    for other in map(accelerator, accelerator_names()):
        if other.kind == "gpu" and other.vendor == MAKER and other.memory.usable_bytes >= card.memory.usable_bytes:
            usd = None if is_slice(other) else prices.of(Cluster(accelerator=other))
            assert usd is None or usd >= prices.of(Cluster(accelerator=card)), other.name
