# pyright: strict
"""What users write: mypy --strict and pyright know the type of every part (tests/api/test_types.py). It runs."""

from collections.abc import Mapping, Sequence
from typing import assert_type

import tonnage
from tonnage import (
    Answer,
    Cluster,
    Comparison,
    Diagnosis,
    Frontier,
    Maximum,
    Model,
    Reconciliation,
    ServingPlans,
    Term,
    TrainingPlans,
)

ON = "8xH100-SXM-80GB"

# ---- train ----
answer = tonnage.train("llama-3.1-8b", on=ON, sequence_length=8192, recompute="full", tokens="15B", advice=False)
assert_type(answer, Answer)
assert_type(answer.fits, bool | None)
assert_type(answer.needed_bytes, int)
assert_type(answer.band, tuple[int, int] | None)
assert_type(answer.memory, Term)
assert_type(answer.memory.value, float)
assert_type(answer.memory.children, tuple[Term, ...])
assert_type(answer.ranks[0].child("weights").value, float)
assert_type(answer.question["runtime"].why, str)
assert_type(answer.warnings, tuple[str, ...])
if answer.run and answer.run.seconds:
    assert_type(answer.run.mfu.value, float)
    assert_type(answer.run.bound_by, str)
    assert_type(answer.run.seconds, Term)
if answer.step_time:
    assert_type(answer.step_time.value * 1e3, float)
if answer.bill and answer.bill.cost:
    assert_type(answer.bill.cost.value, float)
if answer.host:
    assert_type(answer.host.memory.value, float)
if answer.slopes:
    assert_type(answer.slopes.bytes_per_token, float)
for move in answer.advice:
    assert_type(move.text, str)
    assert_type(move.needed_bytes, int)
assert_type(answer.document.verdict.needed_bytes, int | None)
for part in answer.parts():
    assert_type(part["gib"], float)
assert_type(answer.text(), str)
assert_type(answer.to_html(), str | None)

# ---- serve ----
served = tonnage.serve(
    tonnage.read("llama-3.1-8b"),
    tonnage.cluster("h100"),
    concurrency=16,
    input_tokens=1000,
    output_tokens=200,
    ttft="2s",
)
if served.serving.tpot_seconds and served.serving.concurrency:
    assert_type(served.serving.tpot_seconds.value, float)
    assert_type(served.serving.concurrency.value, float)
if served.serving.service_level:
    assert_type(served.serving.service_level.met, bool)
if served.serving.ttft_band:
    assert_type(served.serving.ttft_band, tuple[float, float])

# ---- maximum, plans, comparison, frontier ----
found = tonnage.maximum("users", "llama-3.1-8b", on="h100", context=8192, advice=False)
assert_type(found, Maximum)
assert_type(found.value, int | None)
assert_type(found.answer, Answer)

plans = tonnage.plan_training("llama-3.2-1b", on=["1xh100"], sequence_length=2048, runtime="fsdp2", top=2)
assert_type(plans, TrainingPlans)
assert_type(plans.plans[0].answer.memory.value, float)
assert_type(plans.plans[0].machine, Cluster)
assert_type(plans.plans[0].usd_per_token, float | None)
if plans.best:
    assert_type(plans.best.text(), str)

machines = tonnage.plan_serving("llama-3.1-8b", "h100", context=2048, max_accelerators=1)
assert_type(machines, ServingPlans)
assert_type(machines.plans[0].tpot, float)
assert_type(machines.best, Answer | None)

compared = tonnage.compare("llama-3.1-8b", ["h100", "rtx-4090"], weights=[None, "fp8"], context=8192)
assert_type(compared, Comparison)
assert_type(compared.columns[0].unit, str)
verdicts: list[str] = [row["verdict"] for row in compared.rows()]

frontier = tonnage.frontier("llama-3.1-8b", on="h100", points=2, context=4096)
assert_type(frontier, Frontier)
for point in frontier.points():
    assert_type(point.tokens_per_second_per_user, float)

# ---- what a run says ----
diagnosis = tonnage.diagnose("CUDA out of memory. Tried to allocate 2.00 GiB.\n", "gpt2", on="h100")
assert_type(diagnosis, Diagnosis)
freed: list[int] = [fix.freed_bytes for fix in diagnosis.fixes if isinstance(fix.freed_bytes, int)]
assert_type(diagnosis.numbers[0].value, float)
reconciliation = tonnage.reconcile("Memory used: 1.50 GB\n", "train", "gpt2", on="h100")
assert_type(reconciliation, Reconciliation)
assert_type(reconciliation.figures[0].relative_error, float | None)

# ---- many, with a table of the same type back ----
rows: list[dict[str, object]] = [{"model": "llama-3.1-8b", "micro_batch_size": size} for size in (1, 2)]
assert_type(tonnage.train_many(rows, on=ON), list[dict[str, object]])

# ---- what there is, and what it means ----
assert_type(tonnage.list_models()[0].parameters, int)
assert_type(tonnage.list_accelerators()[0].memory.usable_bytes, int)
assert_type(tonnage.read("gpt2"), Model)
assert_type(tonnage.read("gpt2").num_parameters(), int)
assert_type(tonnage.rule("A6", sequence_length=4096).value, float)
assert_type(tonnage.options("train").listed[0].default, str)
explained = tonnage.explain("token_cache_bytes")
if explained.kind == "formula":
    assert_type(explained.symbols[0].letter, str)


def settings(recompute: bool) -> tonnage.TrainingOptions:
    """Options as a value, for what takes them so."""
    return tonnage.TrainingOptions(sequence_length=4096, recompute="full" if recompute else None)


def dearest(answers: Sequence[Answer]) -> Mapping[str, float]:
    """A function of one's own on answers."""
    return {each.command: each.bill.cost.value for each in answers if each.bill and each.bill.cost}


try:
    tonnage.train("no-such-model", on=ON)
except tonnage.UnknownName as error:
    assert_type(error, tonnage.UnknownName)
