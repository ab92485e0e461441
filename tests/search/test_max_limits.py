"""What binds: memory, the model, the engine, the service level, another option; and what would let it be more."""

from itertools import product

import pytest

import tonnage
from tonnage.catalogue import cluster
from tonnage.estimate.answer.answers import train
from tonnage.estimate.answer.my_machine import PRECISIONS
from tonnage.estimate.inputs import Question
from tonnage.estimate.load.options import LoadOptions
from tonnage.estimate.memory import training_memory
from tonnage.estimate.money.bill import BillOptions
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.options.run_options import RunOptions
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.serving.options import ServingOptions
from tonnage.search.maximum import ask
from tonnage.search.maximum.catalogue import ServedCatalogue, TrainedCatalogue
from tonnage.search.maximum.models import largest_model, some_model

CHAT = {"weights": "fp8", "input_tokens": 2000, "output_tokens": 400}
SMALL = (
    "gpt2",
    "qwen3-0.6b",
    "llama-3.2-1b",
    "llama-3.1-8b",
    "qwen3-32b",
    "llama-3.1-70b",
    "deepseek-v3",
    "bert-base-uncased",
    "pythia-410m",
    "smollm2-1.7b",
)


def _small():
    return [(name, "", tonnage.read(name)) for name in SMALL]


def test_beyond_the_models_context_memory_has_a_word_of_its_own():
    found = tonnage.maximum("context", "llama-3.1-8b", on="h100", advice=False).to_dict()
    assert found["value"] == 131072 and found["limit"]["by"] == "model" and found["beyond"]["fits"]
    memory = found["memory_value"]
    assert (
        tonnage.serve("llama-3.1-8b", on="h100", context=memory).fits
        and not tonnage.serve("llama-3.1-8b", on="h100", context=memory + 1).fits
    )


def test_a_table_of_positions_ends():
    found = tonnage.maximum("context", "gpt2", on="rtx-4090", advice=False).to_dict()
    assert found["value"] == 1024 and found["limit"]["by"] == "model" and found["memory_value"] is None
    assert "has no more positions" in found["beyond"]["refused"] and found["beyond"]["fits"] is False


def test_a_state_of_fixed_size_has_no_limit():
    found = tonnage.maximum("context", "mamba-2.8b", on="rtx-4090", advice=False)
    assert (
        found.to_dict()["limit"]["by"] == "nothing"
        and "no limit was found" in found.text()
        and found.text().startswith("at least ")
    )


def is_sure(serving):
    """Whether limits are kept at the high end of the error bands."""
    level = serving["service_level"]
    return all(
        serving[f"{name}_band"][1] <= limit
        for name in ("ttft", "tpot")
        if (limit := level.get(f"{name}_limit_seconds")) is not None
    )


@pytest.mark.parametrize("limits", [{"ttft": "1s", "tpot": "25ms"}, {"tpot": "15ms"}])
def test_users_within_a_service_level_are_verified_one_step_either_side(limits):
    found = tonnage.maximum("users", "llama-3.1-70b", on="8xh100", **CHAT, **limits)
    document = found.to_dict()
    assert document["limit"]["by"] == "service level" and document["memory_value"] > document["value"]
    estimate = document["estimate_value"]
    assert estimate > document["value"]
    for value, met, sure in (
        (document["value"], True, True),
        (document["value"] + 1, True, False),
        (estimate, True, False),
        (estimate + 1, False, False),
    ):
        answer = tonnage.serve("llama-3.1-70b", on="8xh100", concurrency=value, **CHAT, **limits)
        assert answer.serving.service_level.met is met and answer.status == (0 if met else 3)
        assert is_sure(answer.to_dict()["serving"]) is sure
    for move in document["advice"]:
        answer = tonnage.serve("llama-3.1-70b", **{"on": "8xh100", **CHAT, **limits, **move["options"]})
        assert move["value"] > document["value"] and answer.status == 0 and answer.needed_bytes == move["needed_bytes"]
    assert document["advice"]


def test_a_service_level_that_one_request_breaks_is_not_served():
    found = tonnage.maximum("users", "llama-3.1-70b", on="8xh100", **CHAT, ttft="1ms")
    assert found.value is None and found.status == 3 and found.found.limit.by == "service level"
    assert found.text().startswith("not served: ")


def test_percentiles_of_users_that_replicas_do_not_share_evenly_are_simulated():
    limits = {"input_tokens": 500, "output_tokens": 20, "ttft": "400ms", "percentile": "p90", "tensor_parallel_size": 1}
    found = tonnage.maximum("users", "llama-3.1-8b", on="2xrtx-4090", advice=False, **limits)
    assert found.found.limit.by == "service level"
    estimate = found.to_dict()["estimate_value"]
    for value, met in ((estimate, True), (estimate + 1, False)):
        answer = tonnage.serve("llama-3.1-8b", on="2xrtx-4090", concurrency=value, **limits)
        assert answer.serving.service_level.met is met


def test_prompts_within_a_service_level():
    found = tonnage.maximum("input", "llama-3.1-8b", on="h100", output_tokens=500, ttft="1s", advice=False)
    estimate = found.to_dict()["estimate_value"]
    assert estimate > found.value
    for value, met in ((estimate, True), (estimate + 1, False)):
        answer = tonnage.serve("llama-3.1-8b", on="h100", input_tokens=value, output_tokens=500, ttft="1s")
        assert answer.serving.service_level.met is met


def test_what_an_engine_runs_at_once_is_not_memory():
    found = tonnage.maximum("users", "llama-3.1-8b", on="8xh100", context=500).to_dict()
    assert (found["value"], found["limit"]["by"]) == (1024, "engine")
    (move,) = found["advice"]
    assert move["value"] == found["memory_value"] > 1024 and move["change"] == {"max_num_seqs": move["value"]}
    for more, fits in ((0, True), (1, None)):  # one more is tight: inside the error band
        users = move["value"] + more
        assert (
            tonnage.serve("llama-3.1-8b", on="8xh100", context=500, concurrency=users, max_num_seqs=users).fits is fits
        )


@pytest.mark.parametrize(
    ("what", "model", "machine", "options"),
    [
        ("context", "llama-3.1-8b", "rtx-4090", {}),
        ("users", "llama-3.1-8b", "h100", {"context": 8192}),
        ("layers", "llama-3.1-70b", "rtx-4090", {"weights": "q4_k_m", "context": 8192}),
        ("context", "llama-3.1-70b", "rtx-4090", {}),
        ("sequence", "llama-3.1-8b", "8xh100", {}),
        ("micro-batch", "llama-3.1-8b", "8xh100", {"recompute": "full"}),
        ("lora-rank", "llama-3.1-8b", "rtx-4090", {}),
        ("input", "llama-3.1-8b", "rtx-4090", {}),
        (
            "sequence",
            "mixtral-8x7b",
            "4x8xh100",
            {"runtime": "megatron", "expert_parallel_size": 8, "pipeline_parallel_size": 4},
        ),
    ],
    ids=str,
)
def test_every_advised_change_gives_what_it_says(what, model, machine, options):
    found = tonnage.maximum(what, model, on=machine, **options)
    ask_of = tonnage.serve if found.what.verb == "serve" else tonnage.train
    moves = found.to_dict()["advice"]
    assert moves
    for move in moves:
        said = {name: value for name, value in move["options"].items() if value is not None}
        if what == "input":
            said = {"output_tokens": 1024, **said}
        if what == "layers" and "layers_on_accelerator" not in said:
            said["engine"] = "llama.cpp"
        answer = ask_of(model, **{"on": machine, **options, **said})
        assert answer.fits and answer.needed_bytes == move["needed_bytes"] and move["value"] > (found.value or 0)
        assert all(
            f"--{name.replace('_', '-')}" in move["text"] or value is False for name, value in move["change"].items()
        )


@pytest.mark.parametrize(
    "options",
    [
        ServingOptions(),
        ServingOptions(context=1024),
        ServingOptions(weights="q4_k_m"),
        ServingOptions(weights="awq", context=2048),
    ],
)
def test_the_largest_served_model_is_what_trying_all_finds(monkeypatch, options):
    machine, models = cluster("rtx-4090"), _small()
    monkeypatch.setattr(ask, "every", lambda: iter(models))
    found = tonnage.maximum(
        "model",
        on=machine,
        advice=False,
        **{name: each for name in ("context", "weights") if (each := getattr(options, name)) is not None},
    )
    context = options.context or 8192
    fits = []
    for (name, _, model), weights in product(models, [options.weights] if options.weights else PRECISIONS):
        try:
            if (model.context or context) >= context and any(branch.kind == "decoder" for branch in model.branches):
                made = tonnage.serve(model, on=machine, context=context, weights=weights)
                fits += [(model.num_parameters(), name)] * bool(made.fits)
        except tonnage.TonnageError:
            continue
    assert (found.value, found.model) == max(fits)
    assert found.beyond_model is None or found.found.beyond.value > found.value


@pytest.mark.parametrize(("machine", "context"), [("rtx-4090", 16384), ("rtx-3060", 4096), ("2xh100", 32768)])
def test_the_largest_model_is_the_first_that_runs_on_my_machine(machine, context, monkeypatch):
    models = list(_small())
    monkeypatch.setattr(ask, "every", lambda: iter(models))
    monkeypatch.setattr("tonnage.api.answers.every", lambda: iter(models))
    found = tonnage.maximum("model", on=machine, context=context, advice=False)
    first = max(
        tonnage.for_my_machine(machine, context=context).runs, key=lambda row: (row.parameters, row.download_bytes)
    )
    assert (found.value, found.options.get("weights", "")) == (first.parameters, first.option)
    assert (
        "weights" not in found.options
        or f" in {found.options['weights']}: the largest model that " in found.text(verbose=True).splitlines()[0]
    )


def test_the_largest_model_that_trains_is_what_trying_all_finds(monkeypatch):
    machine, models = cluster("rtx-4090"), _small()
    monkeypatch.setattr(ask, "every", lambda: iter(models))
    for options in ({"sequence_length": 512}, {"sequence_length": 512, "method": "qlora"}):
        found = tonnage.maximum("model", on="rtx-4090", verb="train", advice=False, **options)
        fits = [
            (model.num_parameters(), name)
            for name, _, model in models
            if train(model, machine, TrainingOptions(**options), advise=False).fits
        ]
        assert (found.value, found.model) == max(fits)


def test_a_model_that_is_passed_over_for_its_weights_does_not_fit():
    """What is not estimated must not fit."""
    machine = cluster("rtx-4090")
    bill = BillOptions()
    served = [
        ServedCatalogue(
            cluster=machine, options=ServingOptions(weights=weights), load=LoadOptions(), money=bill, reserve=0
        )
        for weights in (None, "q4_k_m", "fp8")
    ]
    trained = [
        TrainedCatalogue(
            cluster=machine, options=TrainingOptions(method=method), run=RunOptions(), money=bill, reserve=0
        )
        for method in (None, "lora", "qlora")
    ]
    passed = 0
    for question in (*served, *trained):
        for _, _, model in _small():
            try:
                for case, value in question.cases(model):
                    if question.is_too_large(case, value):
                        passed += 1
                        assert not case.ask(value).fits
            except tonnage.TonnageError:
                continue
    assert passed > 8


def test_a_model_found_by_halving_fits():
    question = TrainedCatalogue(
        cluster=cluster("rtx-4090"),
        options=TrainingOptions(sequence_length=512),
        run=RunOptions(),
        money=BillOptions(),
        reserve=0,
    )
    found, exact = some_model(_small(), question), largest_model(_small(), question).largest
    assert found.outcome.fits and found.parameters <= exact.parameters


def test_of_training_every_change_that_makes_room_names_a_larger_model():
    found = tonnage.maximum("model", on="rtx-4090", verb="train").to_dict()
    assert len(found["advice"]) == 4  # halving passes models that no estimate takes


def test_of_a_tight_least_the_status_is_tight():
    model, machine, options = tonnage.read("gpt2"), cluster("rtx-4090"), {"method": "lora"}
    plan = training_plan(model, machine, TrainingOptions(sequence_length=1, **options), Question())
    needed = training_memory(model, plan, machine).memory.value
    reserve = machine.accelerator.memory.usable_bytes - round(needed * 1.01)
    found = tonnage.maximum("sequence", "gpt2", on=machine, reserve_bytes=reserve, advice=False, **options)
    assert found.value is None and found.tight_value >= 1 and found.status == 2 and found.text().startswith("tight: ")


def test_a_rank_above_the_narrowest_matrix_is_of_no_use():
    found = tonnage.maximum("lora-rank", "gpt2", on="rtx-4090", advice=False).to_dict()
    assert found["limit"]["by"] == "model" and found["value"] == 768 and found["options"]["method"] == "lora"


@pytest.mark.parametrize(
    ("what", "model", "options", "said"),
    [
        ("context", "llama-3.1-8b", {"context": 8192}, "looks for context: leave it out"),
        ("users", "llama-3.1-8b", {"request_rate": 3.0}, "leave out request_rate"),
        ("model", "llama-3.1-8b", {}, "leave out MODEL"),
        ("context", None, {}, "is of one model"),
        ("lora-rank", "llama-3.1-8b", {"method": "freeze"}, "method lora or dora or qlora"),
        ("expert-layers", "llama-3.1-8b", {}, "has none"),
        ("sequence", "llama-3.1-8b", {"context_parallel_size": 3}, "must divide"),
        ("kontext", "llama-3.1-8b", {}, "Did you mean 'context'"),
        (3, "llama-3.1-8b", {}, "what takes a name"),
        ("context", "llama-3.1-8b", {"lora_targets": "x"}, "lora_targets is an option of train"),
        ("sequence", "llama-3.1-8b", {"reserve_bytes": 90 * 2**30}, "reserve must leave"),
        ("micro-batch", "llama-3.1-8b", {"global_batch_size": 64, "num_microbatches": 64}, "leave one micro-batch"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_a_reason(what, model, options, said):
    with pytest.raises(tonnage.TonnageError, match=said):
        tonnage.maximum(what, model, on="h100", **options)
