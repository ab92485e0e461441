"""Bytes that are known without a walk are those of the walk, and known only where they are."""

import pytest

import tonnage
from tonnage.catalogue import cluster
from tonnage.estimate import growth
from tonnage.estimate.inputs import Question
from tonnage.estimate.memory import ROUNDING, Step
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.kernel.errors import TonnageError

LENGTHS = (512, 1024, 2048, 3000, 4096, 8192, 100_000, 520, 1600, 9000)
MODELS = ("llama-3.1-8b", "mixtral-8x7b", "gemma-3-27b", "mistral-7b", "gpt-oss-20b")  # the last three have windows
OPTIONS = (
    *({}, {"recompute": "full"}, {"recompute": "selective"}, {"attention": "eager"}, {"loss": "chunked"}),
    *({"tensor_parallel_size": 4}, {"pipeline_parallel_size": 4}, {"context_parallel_size": 2}),
    *({"method": "lora"}, {"offload_activations": "cpu"}, {"micro_batch_size": 3, "num_microbatches": 2}),
)
RUNTIMES = ("fsdp2", "megatron", "deepspeed", "ddp", "litgpt")


def _plan(model, machine, **options):
    try:
        return training_plan(model, machine, TrainingOptions(**options), Question())
    except TonnageError:
        return None


@pytest.mark.parametrize("name", MODELS)
def test_bytes_are_those_of_a_walk_at_every_length(name, monkeypatch):
    monkeypatch.setattr(growth, "_KNOWN", {})
    model, machine = tonnage.read(name, offline=True), cluster("8xH100-SXM-80GB")
    compared = 0
    for runtime in RUNTIMES:
        for options in OPTIONS:
            for length in LENGTHS:
                plan = _plan(model, machine, runtime=runtime, sequence_length=length, **options)
                grown = None if plan is None else growth.grown_bytes(model, plan, machine, asker=object())
                if grown is not None:
                    compared += 1
                    walked = Step(model, plan, machine).walk().needed
                    assert grown == pytest.approx(walked, rel=ROUNDING, abs=0), (runtime, options, length)
    assert compared > 150
    assert max(len(known.pieces) for known in growth._KNOWN.values()) > 1  # another moment needs most elsewhere


def _asked(length, asker, name="llama-3.1-8b", machine="8xH100-SXM-80GB", **options):
    model, on = tonnage.read(name, offline=True), cluster(machine)
    return growth.grown_bytes(model, _plan(model, on, sequence_length=length, **options), on, asker)


def test_a_plan_is_walked_with_a_polynomial_when_a_second_question_asks(monkeypatch):
    monkeypatch.setattr(growth, "_KNOWN", {})
    walks = []
    step = growth.Step
    monkeypatch.setattr(growth, "Step", lambda *plan: walks.append(plan) or step(*plan))
    one, another = object(), object()
    assert _asked(4096, one) is None and _asked(2048, one) is None and not walks
    assert _asked(4096, another) and _asked(4160, one) and len(walks) == 1
    assert _asked(4096, another, micro_batch_size=2) is None  # another plan
    assert _asked(4096, another, machine="8xA100-SXM-80GB") is None  # another machine


def test_what_is_no_polynomial_is_tried_twice(monkeypatch):
    monkeypatch.setattr(growth, "_KNOWN", {})
    walks = []
    step = growth.Step
    monkeypatch.setattr(growth, "Step", lambda *plan: walks.append(plan) or step(*plan))
    for _ in range(4):
        assert _asked(4096, object(), machine="H100-SXM-80GB", runtime="torchtune") is None
    assert len(walks) == 2


def test_the_plans_that_were_asked_for_last_are_kept(monkeypatch):
    monkeypatch.setattr(growth, "_KNOWN", {})
    monkeypatch.setattr(growth, "MOST", 3)
    for size in (1, 2, 3, 1, 4):
        _asked(4096, object(), micro_batch_size=size)
    assert [key[0][1].micro_batch_size for key in growth._KNOWN] == [1, 4]
