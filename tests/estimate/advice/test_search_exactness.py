"""The search leaves out what cannot win; beside it the one that leaves out nothing: every comparison by exact bytes."""

from math import ceil

import pytest

import tonnage
from tonnage.catalogue import cluster
from tonnage.estimate import growth
from tonnage.estimate.advice import changed_run, moves
from tonnage.estimate.answer.training import train
from tonnage.estimate.bands import highest
from tonnage.estimate.plan.training_options import TrainingOptions

LENGTHS = (512, 2048, 1000, 16384)  # each question is asked at all: from the second on bytes are known
TRAINING = [
    ("llama-3.1-70b", "8xH100-SXM-80GB", {}),
    ("llama-3.1-70b", "8xH100-SXM-80GB", {"micro_batch_size": 4, "zero_stage": 2}),
    ("mixtral-8x7b", "8xH100-SXM-80GB", {}),
    ("qwen3-32b", "8xH100-SXM-80GB", {}),
    ("gemma-3-27b", "8xA100-SXM-80GB", {"recompute": "selective"}),
    ("llama-3.1-8b", "rtx-4090", {"method": "lora"}),
    ("llama-3.1-8b", "2xrtx-4090", {"runtime": "transformers", "attention": "eager"}),
    ("llama-3.1-8b", "8xA100-SXM-80GB", {"runtime": "ddp"}),
    ("llama-3.1-70b", "2x8xA100-SXM-80GB", {"runtime": "deepspeed", "global_batch_size": 64}),
    ("llama-3.1-405b", "8x8xH100-SXM-80GB", {"runtime": "megatron"}),
    ("deepseek-v3", "32x8xH800-SXM-80GB", {"runtime": "megatron", "precision": "bf16-mixed"}),
    ("llama-3.1-405b", "rtx-4090", {"runtime": "torchtune"}),
    ("llama-3.1-70b", "H100-SXM-80GB", {"runtime": "unsloth", "method": "qlora"}),
]


def _least_of_all(search, tried):
    return min(tried, key=lambda picks: search.ask(picks).needed)


def _is_less(search, picks, other):
    one, another = search.ask(picks), search.ask(other) if other else None
    return (one.needed if one else search.needed) < (another.needed if another else search.needed)


def _fits(run, usable):
    return max(run.needed, highest(run.planned.plan, run.planned.machine, run.needed)) <= usable


@pytest.fixture
def by_exact_bytes(monkeypatch):
    """The whole search with nothing known and nothing left out."""

    def call(ask):
        with monkeypatch.context() as patch:
            patch.setattr(changed_run, "grown_bytes", lambda *_, **__: None)
            patch.setattr(changed_run.ChangedRun, "fits", _fits)
            patch.setattr(changed_run.ChangedRun, "exceeds", lambda run, needed: run.needed > needed)
            patch.setattr(
                changed_run.ChangedRun,
                "is_lighter",
                lambda run, other, or_alike=False: run.needed < other.needed + or_alike,
            )
            patch.setattr(changed_run.ChangedRun, "needed", property(lambda run: ceil(_needed(run))))
            patch.setattr(moves._Search, "_lightest", _least_of_all)
            patch.setattr(moves._Search, "_is_lighter", _is_less)
            return ask()

    return call


def _needed(run):
    """The largest of the trees of all moments, which a number need not be walked to."""
    return max(phase.value for rank in run.planned.memory.ranks for phase in rank.phases)


@pytest.mark.parametrize(("name", "machine", "options"), TRAINING, ids=str)
def test_the_same_is_chosen_and_suggested_as_by_exact_bytes_alone(name, machine, options, by_exact_bytes, monkeypatch):
    monkeypatch.setattr(growth, "_KNOWN", {})
    model, on = tonnage.read(name, offline=True), cluster(machine)
    for length in LENGTHS:
        asked = TrainingOptions(sequence_length=length, **options)
        today = train(model, on, asked, choose=True)
        exact = by_exact_bytes(lambda asked=asked: train(model, on, asked, choose=True))
        assert today.advice == exact.advice and today.nearest_miss == exact.nearest_miss
        assert today.chosen == exact.chosen and today.needed_bytes == exact.needed_bytes
    assert any(known.pieces for known in growth._KNOWN.values()), "nothing was known from the questions before"
