"""Many questions at once are answered as each by itself: every figure of a row equals that of `train` or `serve`."""

from collections import Counter
from math import isclose

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tonnage
from tonnage.documents.sweep import ServeColumns, TrainColumns
from tonnage.question.option import types_of
from tonnage.question.subjects.load import LoadOptions
from tonnage.question.subjects.money import BillOptions
from tonnage.question.subjects.run import RunOptions
from tonnage.question.subjects.serving import ServingOptions
from tonnage.question.subjects.training import TrainingOptions
from tonnage.search.many import serving, training
from tonnage.search.many.columns import SERVING, TRAINING
from tonnage.search.many.serving import FIGURES

TRAIN_ROWS = [
    # dense, sizes alone differ: one array
    *({"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB", "micro_batch_size": b} for b in (1, 2, 4, 8)),
    *({"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB", "sequence_length": s} for s in (2048, 8192, 16384)),
    # several nodes, stages that hold unlike layers, which of them is the fullest differs
    *(
        {
            "model": "llama-3.1-70b",
            "on": "8x8xH100-SXM-80GB",
            "runtime": "megatron",
            "tensor_parallel_size": 8,
            "pipeline_parallel_size": 4,
            "micro_batch_size": b,
            "num_microbatches": m,
        }
        for b, m in ((1, 4), (1, 64), (2, 16), (4, 32))
    ),
    # experts
    *(
        {
            "model": "mixtral-8x7b",
            "on": "4x8xH100-SXM-80GB",
            "runtime": "megatron",
            "expert_parallel_size": e,
            "tensor_parallel_size": t,
            "recompute": "full",
        }
        for e, t in ((8, 1), (8, 2), (4, 2), (2, 4), (1, 8))
    ),
    # a loss whose parts depend on the tokens of a micro-batch
    *(
        {
            "model": "llama-3.1-8b",
            "on": "1xH100-SXM-80GB",
            "runtime": "unsloth",
            "micro_batch_size": b,
            "method": "lora",
        }
        for b in (1, 2, 4, 8)
    ),
    # windows
    *({"model": "gemma-3-27b", "on": "8xMI300X", "sequence_length": s, "recompute": "full"} for s in (512, 2048, 8192)),
    # a time that nobody knows
    {"model": "llama-3.2-1b", "on": "ascend-950pr"},
    *({"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB", "objective": "dpo", "micro_batch_size": b} for b in (1, 2, 3)),
    {"model": "llama-3.1-8b", "on": "1xGaudi2"},
    # a whole run, and money
    {"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB", "tokens": "100B", "deadline": "30d"},
    *({"model": "gpt2", "on": "2x4090", "price_per_accelerator_hour": 2.5, "micro_batch_size": b} for b in (1, 2, 4)),
    # what cannot be
    {"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB", "tensor_parallel_size": 3},
    {"model": "no such model", "on": "8xH100-SXM-80GB"},
    {"model": "llama-3.1-8b", "on": "8xNoSuchChip"},
    {"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB", "micro_batch_size": "two"},
    {"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB", "reserve_bytes": 1e15},
    {"model": "llama-3.1-8b", "on": "8xMI300X", "provider": "AWS"},
]
SERVE_ROWS = [
    *({"model": "llama-3.1-8b", "on": "1xH100-SXM-80GB", "concurrency": n} for n in (1, 8, 64, 200, 5000)),
    *({"model": "llama-3.1-70b", "on": "8xH100-SXM-80GB", "request_rate": r} for r in (0.1, 2.0, 5.0, 1e4, 1.0)),
    *(
        {"model": "mixtral-8x7b", "on": "8xA100-SXM-80GB", "input_tokens": i, "output_tokens": o, "concurrency": 16}
        for i, o in ((128, 1), (1024, 128), (4096, 1024), (16000, 16), (64, 64))
    ),
    *({"model": "llama-3.1-70b", "on": "2x4090", "context": c} for c in (1024, 4096)),
    {"model": "llama-3.1-8b", "on": "1xH100-SXM-80GB", "ttft": "200ms", "tpot": "20ms", "concurrency": 64},
    {"model": "llama-3.1-8b", "on": "1xH100-SXM-80GB", "engine": "llama.cpp", "weights": "q4_k_m"},
    {"model": "llama-3.1-8b", "on": "1xH100-SXM-80GB", "concurrency": 4, "request_rate": 1.0},
    {"model": "llama-3.1-8b", "on": "1xH100-SXM-80GB", "context": 0},
    {"model": "bert-base-uncased", "on": "1xH100-SXM-80GB"},
]


def alone(verb, row):
    """The figures of one row by the public function, nothing chosen; the error where it has no answer."""
    try:
        answer = getattr(tonnage, verb)(**row, as_is=True)
    except tonnage.TonnageError as error:
        return {"status": error.exit_status, "error": str(error)}
    low, high = answer.band or (None, None)
    figures = {
        "fits": answer.fits,
        "status": answer.status,
        "needed_bytes": answer.needed_bytes,
        "usable_bytes": answer.usable_bytes,
        "band_low_bytes": low,
        "band_high_bytes": high,
        **{f"{part.name.replace(' ', '_')}_bytes": part.value for part in answer.memory.children},
    }
    if verb == "serve":
        figures |= {column: getattr(answer.serving, name) or None for column, name in FIGURES.items()}
        figures["usd_per_hour"] = answer.bill and answer.bill.cost
    else:
        figures |= trained(answer)
    return {name: getattr(value, "value", value) for name, value in figures.items() if value is not None}


def trained(answer):
    if answer.run is None:
        return {}
    run, cost = answer.run, answer.bill.cost
    low, high = run.step_time_band or (None, None)
    names = ("tokens_per_second", "mfu", "hfu", "bound_by")
    figures = {"step_seconds": answer.step_time, "step_seconds_low": low, "step_seconds_high": high}
    figures |= {name: getattr(run, name) for name in names}
    if run.seconds:
        per_token = cost.value / run.tokens.value
        return figures | {"run_seconds": run.seconds, "run_usd": cost, "usd_per_million_tokens": per_token * 1e6}
    if cost is not None:
        per_token = cost.value / (run.tokens_per_second.value * answer.step_time.value)
        figures |= {"step_usd": cost, "usd_per_million_tokens": per_token * 1e6}
    return figures


def differences(verb, rows):
    """Where the answer to the table and that to each row differ."""
    table = getattr(tonnage, f"{verb}_many")(rows)
    kinds = TRAINING if verb == "train" else SERVING
    assert len(table) == len(rows)
    for number, (row, found) in enumerate(zip(rows, table, strict=True)):
        expected = alone(verb, row)
        assert set(expected) <= set(kinds)
        for name in kinds:
            one, other = found[name], expected.get(name)
            is_number = isinstance(one, int | float) and isinstance(other, int | float)
            if not (isclose(one, other, rel_tol=1e-9) if is_number else one == other):
                yield number, row, name, one, other


@pytest.mark.parametrize(("verb", "rows"), [("train", TRAIN_ROWS), ("serve", SERVE_ROWS)])
def test_every_figure_of_a_mixed_table_is_that_of_the_single_answer(verb, rows):
    assert list(differences(verb, rows)) == []
    mixed = rows[::-1] + rows[::2]  # another order, and rows that come twice
    assert list(differences(verb, mixed)) == []


def test_the_mixed_tables_have_every_kind_of_row():
    for verb, rows, statuses in (("train", TRAIN_ROWS, {0, 2, 3, 4, 64}), ("serve", SERVE_ROWS, {0, 3, 64})):
        table = getattr(tonnage, f"{verb}_many")(rows)
        assert {row["status"] for row in table} >= statuses
        assert {row["fits"] for row in table} >= {True, False, None}
    trained_rows = tonnage.train_many(TRAIN_ROWS)
    assert any(row["needed_bytes"] and row["step_seconds"] is None for row in trained_rows)  # no time is known


POWERS = st.sampled_from([1, 2, 4, 8])


@st.composite
def training_tables(draw):
    """Rows that share a model, machine and options and differ in sizes, with some that cannot be."""
    shared = {
        "model": draw(st.sampled_from(["llama-3.1-8b", "mixtral-8x7b", "gemma-3-27b", "deepseek-v2-lite", "gpt2"])),
        "on": draw(st.sampled_from(["8xH100-SXM-80GB", "2x8xA100-SXM-80GB", "1xH100-SXM-80GB", "4x4090"])),
        "runtime": draw(
            st.sampled_from([None, "megatron", "fsdp2", "deepspeed", "transformers", "torchtune", "litgpt"])
        ),
        "recompute": draw(st.sampled_from([None, "none", "selective", "full"])),
        "method": draw(st.sampled_from([None, None, "lora", "freeze"])),
        "loss": draw(st.sampled_from([None, None, "chunked", "fused"])),
        "pipeline_parallel_size": draw(st.sampled_from([None, 1, 2])),
    }
    sizes = {
        "sequence_length": st.sampled_from([512, 1024, 4096, 4100]),
        "micro_batch_size": st.integers(1, 4),
        "num_microbatches": st.sampled_from([None, 2, 4, 8]),
        "tensor_parallel_size": st.sampled_from([None, 1, 2, 3]),
    }
    rows = draw(st.lists(st.fixed_dictionaries(sizes), min_size=3, max_size=6))
    return [shared | row for row in rows]


@st.composite
def serving_tables(draw):
    shared = {
        "model": draw(st.sampled_from(["llama-3.1-8b", "mixtral-8x7b", "gemma-3-27b", "mamba-2.8b"])),
        "on": draw(st.sampled_from(["1xH100-SXM-80GB", "8xA100-SXM-80GB", "2x4090"])),
        "engine": draw(st.sampled_from([None, "vllm", "sglang", "tensorrt-llm", "llama.cpp"])),
        "weights": draw(st.sampled_from([None, None, "fp8", "awq"])),
        "tensor_parallel_size": draw(st.sampled_from([None, 1, 2])),
    }
    loads = {
        "concurrency": st.sampled_from([None, 1, 7, 64, 3000]),
        "input_tokens": st.sampled_from([None, 1, 500, 6000]),
        "output_tokens": st.sampled_from([None, 1, 2, 700]),
    }
    rows = draw(st.lists(st.fixed_dictionaries(loads), min_size=4, max_size=8))
    return [shared | row for row in rows]


@settings(max_examples=20, deadline=None)
@given(training_tables())
def test_any_table_of_training_is_answered_as_its_rows(rows):
    assert list(differences("train", rows)) == []


@settings(max_examples=20, deadline=None)
@given(serving_tables())
def test_any_table_of_serving_is_answered_as_its_rows(rows):
    assert list(differences("serve", rows)) == []


def test_rows_that_differ_in_sizes_alone_are_walked_once(monkeypatch):
    walked = Counter()
    walk = training.training_memory
    monkeypatch.setattr(
        training, "training_memory", lambda *given: walked.update([str(given[1].runtime)]) or walk(*given)
    )
    rows = [
        {
            "model": "llama-3.1-8b",
            "on": "8xH100-SXM-80GB",
            "runtime": runtime,
            "micro_batch_size": b,
            "num_microbatches": m,
        }
        for runtime in ("fsdp2", "megatron")
        for b in (1, 2, 4)
        for m in range(1, 100)
    ]
    tonnage.train_many(rows)
    assert walked == {"fsdp2": 1, "megatron": 1}


def test_loads_of_one_replica_are_timed_once(monkeypatch):
    timed = Counter()
    times = serving.times
    monkeypatch.setattr(serving, "times", lambda *given: timed.update(["times"]) or times(*given))
    rows = [
        {"model": "llama-3.1-8b", "on": "1xH100-SXM-80GB", "concurrency": n, "input_tokens": i, "output_tokens": 100}
        for n in (1, 2, 4, 8, 16, 32)
        for i in (100, 200, 400, 800)
    ]
    tonnage.serve_many(rows)
    assert timed == {"times": 1}


def test_rows_that_ask_the_same_are_answered_once(monkeypatch):
    asked = []
    alone_of = training.figures_alone
    monkeypatch.setattr(training, "figures_alone", lambda row: asked.append(row) or alone_of(row))
    row = {"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB", "tokens": "1T"}
    table = tonnage.train_many([row] * 5)
    assert len(asked) == 1 and len({str(answer) for answer in table}) == 1


def test_the_columns_have_names_of_their_own_and_are_those_of_the_document():
    of_training = {name for form in (TrainingOptions, RunOptions, BillOptions) for name in types_of(form)}
    of_serving = {name for form in (ServingOptions, LoadOptions, BillOptions) for name in types_of(form)}
    assert not of_training & set(TRAINING) and not of_serving & set(SERVING)
    assert TrainColumns.__struct_fields__ == tuple(TRAINING) and ServeColumns.__struct_fields__ == tuple(SERVING)
