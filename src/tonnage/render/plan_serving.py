"""A search for a serving plan as lines of text: the best plans, why each beats the next, the best one opened, what the limits removed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tonnage.render.frontier import MOST, thinned
from tonnage.render.serving import serving_ends, serving_lines
from tonnage.render.text import REQUESTS, inputs_lines, quantity, table_lines, tree_lines
from tonnage.units import counted, human

HEADER = (
    "",
    "machines",
    "engine",
    "weights",
    "spread",
    "replicas",
    "users each",
    "first token",
    "each later",
    "tokens/s",
    "USD/h",
    "USD/M tokens",
)
SHORT = (
    ("tensor_parallel_size", "TP"),
    ("pipeline_parallel_size", "PP"),
    ("expert_parallel_size", "EP"),
    ("attention_data_parallel_size", "DP"),
)
UNITS = {"ttft": "seconds", "tpot": "seconds", "budget": "USD an hour", "request_rate": REQUESTS}  # of the question
MONEY = ("cost", "token-cost")
BOUND = "it can be among the best, by a bound"


def plan_lines(document: Mapping[str, Any], best: Any, *, formulas: bool = False) -> list[str]:
    """The verdict, the inputs, the plans; then the first of them as `tonnage serve` answers for it."""
    lines = [verdict_line(document), "", *inputs_lines(document["question"], UNITS)]
    plans = document["plans"]
    if plans:
        lines.append("")
        lines += table_lines([_row(plan, str(place)) for place, plan in enumerate(plans, 1)], HEADER)
        lines += ["", *_reasons(plans)]
    if document["own_precision"] and document["own_precision"] not in [{**plan, "beats_next": None} for plan in plans]:
        lines += [
            "",
            "the best that keeps the checkpoint's own precision:",
            *table_lines([_row(document["own_precision"], "-")], HEADER),
        ]
    lines += _front(document)
    lines += ["", *_counts(document)]
    lines += [each["text"] for each in document["nearest"]]
    if best is not None:
        lines += [
            "",
            f"plan 1, estimated by itself: {plans[0]['on']}",
            f"  {document['command']}",
            *_opened(best, formulas),
        ]
    return [*lines, *(f"note: {each}" for each in _notes(document, best))]


def verdict_line(document: Mapping[str, Any]) -> str:
    """One sentence: what to run it on, for whom, at what price; or that nothing holds."""
    question = document["question"]
    model, load = question["model"]["value"], _load(question)
    if not document["plans"]:
        return f"no plan holds: {model} to {load} on {question['on']['value']}"
    best = document["plans"][0]
    price = "at no known price" if best["usd_per_hour"] is None else f"for {human(best['usd_per_hour'], 'USD')} an hour"
    many = (
        f", {counted(best['users'], 'users')} at once"
        if "searched" in question.get("concurrency", {}).get("why", "")
        else ""
    )
    return f"fits: {best['on']} {price} serves {model} ({best['weights']}) to {load}{many}: {document['means']}"


def _load(question: Mapping[str, Any]) -> str:
    if "request_rate" in question:
        who = quantity(question["request_rate"]["value"], REQUESTS)
    elif question["concurrency"].get("why") == "searched":
        who = "as many users as it can"
    else:
        who = counted(question["concurrency"]["value"], "users")
    limits = [
        f"{name.upper()} {human(question[name]['value'], 'seconds')}" for name in ("ttft", "tpot") if name in question
    ]
    limits += [f"{human(question['budget']['value'], 'USD')} an hour"] if "budget" in question else []
    return f"{who} within {' and '.join(limits)}" if limits else who


def _row(plan: Mapping[str, Any], place: str) -> tuple[str, ...]:
    users, usd, each = plan["users_per_replica"], plan["usd_per_hour"], plan["usd_per_million_tokens"]
    apart = f" ({plan['prefill_replicas']} for prompts)" if plan["prefill_replicas"] else ""
    return (
        place, plan["on"], plan["engine"], _stored(plan), _spread(plan), f"{plan['replicas']}{apart}", _users(users, plan["users_of_fullest_replica"]),
        human(plan["ttft_seconds"], "seconds"), human(plan["tpot_seconds"], "seconds"), f"{plan['tokens_per_second']:,.0f}",
        "-" if usd is None else f"{usd:,.2f}", "-" if each is None else f"{each:.3g}",
    )  # fmt: skip


def _users(mean: float | None, fullest: int | None) -> str:
    """Of each replica; of the fullest where replicas do not share them evenly, for its times are those of the plan."""
    if mean is None:
        return "-"
    return f"{mean:,.4g}" if fullest is None or fullest == mean else f"{fullest:,} or {fullest - 1:,}"


def _stored(plan: Mapping[str, Any]) -> str:
    return (
        plan["weights"]
        if plan["kv_cache"] in ("bf16", "fp16", "fp32")
        else f"{plan['weights']}, cache {plan['kv_cache']}"
    )


def _spread(plan: Mapping[str, Any]) -> str:
    """Sizes above one, and limits of a pass that were set."""
    sizes = [f"{short}{plan[name]}" for name, short in SHORT if plan[name] > 1]
    limits = [
        f"{word} {plan[name]:,}"
        for name, word in (("max_num_batched_tokens", "tokens"), ("max_num_seqs", "seqs"))
        if plan[name]
    ]
    return " ".join([*sizes, *limits]) or "whole"


def _reasons(plans: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for place, plan in enumerate(plans, 1):
        if plan["beats_next"]:
            yield f"{place} before {place + 1}: {plan['beats_next']}"


def _front(document: Mapping[str, Any]) -> list[str]:
    front = document["pareto"]
    if not front:
        return []
    shown = thinned(front, MOST)
    some = f"; {len(shown)} of them" if len(shown) < len(front) else ""
    paid = "USD an hour" if document["goal"] in MONEY or "budget" in document["question"] else "accelerators"
    head = (
        f"{counted(len(front), 'plans')} that none beats in {paid}, time of a token and tokens a second together{some}:"
    )
    return ["", head, *table_lines([_row(plan, "") for plan in shown], HEADER)]


def _counts(document: Mapping[str, Any]) -> Iterator[str]:
    """How many were looked at, and what each limit took away."""
    looked = (
        f"{counted(document['considered'], 'plans')} of {counted(document['configurations'], 'replica configurations')}"
    )
    skipped = next((each["plans"] for each in document["removed"] if each["constraint"] == BOUND), 0)
    exact = (
        f"; bounds rule {skipped:,} out without computing them, and the answer is the same as with all"
        if skipped
        else ""
    )
    yield f"searched: all {looked}{exact}"
    for each in document["removed"]:
        if each["constraint"] != BOUND:
            yield f"  {each['plans']:>12,} do not hold: {each['constraint']}"


def _opened(best: Any, formulas: bool) -> Iterator[str]:
    document = best.summary()
    yield from tree_lines(best.memory, depth=99 if formulas else 2, formulas=formulas)
    yield ""
    yield from serving_lines(document)
    for term in best.others if formulas else best.opened:
        yield ""
        yield from tree_lines(term, depth=99 if formulas else 3, formulas=formulas)
    yield from serving_ends(document)


def _notes(document: Mapping[str, Any], best: Any) -> list[str]:
    return [*document["warnings"], *(best.warnings if best is not None else ())]
