"""A search for a serving plan as lines of text: the best plans, why each beats the next, the best one opened, what
the limits removed.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tonnage.language import say, worded
from tonnage.language.quantities import counted, human
from tonnage.render.brief.plan_serving import verdict_line
from tonnage.render.frontier import MAX_ROWS, thinned
from tonnage.render.prompts import with_prompts
from tonnage.render.serving import serving_ends, serving_lines
from tonnage.render.text import REQUESTS, inputs_lines, table_lines, titled, tree_lines

FIRST = "first token"
HEADER = (
    "",
    "machines",
    "engine",
    "weights",
    "spread",
    "replicas",
    "users each",
    FIRST,
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
UNITS = {"budget": "USD an hour", "request_rate": REQUESTS}  # of the question
MONEY = ("cost", "token-cost")
BOUND = "it can be among the best, by a bound"


def plan_lines(document: Mapping[str, Any], best: Any, *, formulas: bool = False) -> list[str]:
    """The verdict, the inputs, the plans; then the first of them as `tonnage serve` answers for it."""
    lines = [verdict_line(document), "", *inputs_lines(document["question"], UNITS)]
    plans = document["plans"]
    if plans:
        lines.append("")
        lines += table_lines([plan_cells(plan, str(place)) for place, plan in enumerate(plans, 1)], header_of(document))
        lines += ["", *_reasons(plans)]
    if document["own_precision"] and document["own_precision"] not in [{**plan, "beats_next": None} for plan in plans]:
        lines += [
            "",
            say("the best that keeps the checkpoint's own precision:"),
            *table_lines([plan_cells(document["own_precision"], "-")], header_of(document)),
        ]
    lines += _front(document)
    lines += ["", *_counts(document)]
    lines += [worded(text["text"]) for text in document["nearest"]]
    if best is not None:
        lines += [
            "",
            say("plan 1, estimated by itself: {on}", on=plans[0]["on"]),
            f"  {document['command']}",
            *_opened(best, formulas),
        ]
    return [*lines, *(say("note: {what}", what=worded(text)) for text in _notes(document, best))]


def plan_cells(plan: Mapping[str, Any], place: str) -> tuple[str, ...]:
    users, usd, usd_per_million = plan["users_per_replica"], plan["usd_per_hour"], plan["usd_per_million_tokens"]
    split_sizes = (
        say(" ({prefill_replicas} for prompts)", prefill_replicas=plan["prefill_replicas"])
        if plan["prefill_replicas"]
        else ""
    )
    return (
        place,
        plan["on"],
        plan["engine"],
        stored_text(plan),
        spread_text(plan),
        f"{plan['replicas']}{split_sizes}",
        _users(users, plan["users_of_fullest_replica"]),
        human(plan["ttft_seconds"], "seconds"),
        human(plan["tpot_seconds"], "seconds"),
        f"{plan['tokens_per_second']:,.0f}",
        "-" if usd is None else f"{usd:,.2f}",
        "-" if usd_per_million is None else f"{usd_per_million:.3g}",
    )


def header_of(document: Mapping[str, Any]) -> list[str]:
    """The headings of the table of plans; that of the time to the first token says the length of the prompts."""
    return [with_prompts(say(name), document["question"]) if name == FIRST else name for name in HEADER]


def _users(mean: float | None, fullest: int | None) -> str:
    """Users of each replica; those of the fullest where the shares are uneven, for its times are those of the plan."""
    if mean is None:
        return "-"
    return (
        f"{mean:,.4g}"
        if fullest is None or fullest == mean
        else say("{fullest} or {fullest2}", fullest=f"{fullest:,}", fullest2=f"{fullest - 1:,}")
    )


def stored_text(plan: Mapping[str, Any]) -> str:
    return (
        plan["weights"]
        if plan["kv_cache"] in ("bf16", "fp16", "fp32")
        else say("{weights}, cache {kv_cache}", weights=plan["weights"], kv_cache=plan["kv_cache"])
    )


def spread_text(plan: Mapping[str, Any]) -> str:
    """Sizes above one, and limits of a pass that were set. A replica that nothing splits lies on one accelerator."""
    sizes = [f"{short}{plan[name]}" for name, short in SHORT if plan[name] > 1]
    limits = [
        f"{say(word)} {plan[name]:,}"
        for name, word in (("max_num_batched_tokens", "tokens"), ("max_num_seqs", "seqs"))
        if plan[name]
    ]
    return " ".join([*sizes, *limits]) or say("one accelerator")


def _reasons(plans: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for place, plan in enumerate(plans, 1):
        if plan["beats_next"]:
            yield say(
                "{place} before {place2}: {beats_next}",
                place=place,
                place2=place + 1,
                beats_next=worded(plan["beats_next"]),
            )


def _front(document: Mapping[str, Any]) -> list[str]:
    front = document["pareto"]
    if not front:
        return []
    shown = thinned(front, MAX_ROWS)
    some = say("; {shown_count} of them", shown_count=len(shown)) if len(shown) < len(front) else ""
    paid = say("USD an hour") if document["goal"] in MONEY or "budget" in document["question"] else say("accelerators")
    head = say(
        "{front_count} that none beats in {paid}, time of a token and tokens a second together{some}:",
        front_count=counted(len(front), "plans"),
        paid=paid,
        some=some,
    )
    return ["", head, *table_lines([plan_cells(plan, "") for plan in shown], header_of(document))]


def _counts(document: Mapping[str, Any]) -> Iterator[str]:
    """How many were looked at, and what each limit took away."""
    looked = say(
        "{considered} of {configurations}",
        considered=counted(document["considered"], "plans"),
        configurations=counted(document["configurations"], "replica configurations"),
    )
    skipped = next((removal["plans"] for removal in document["removed"] if removal["constraint"] == BOUND), 0)
    exact = (
        say(
            "; bounds rule {skipped} out without computing them, and the answer is the same as with all",
            skipped=f"{skipped:,}",
        )
        if skipped
        else ""
    )
    yield say("searched: all {looked}{exact}", looked=looked, exact=exact)
    for removal in document["removed"]:
        if removal["constraint"] != BOUND:
            constraint = worded(removal["constraint"])
            yield "  " + say(
                "{plans} do not hold: {constraint}", plans=f"{removal['plans']:>12,}", constraint=constraint
            )
    yield "  " + say("{plans} hold all that is asked", plans=f"{document['kept']:>12,}")


def _opened(best: Any, formulas: bool) -> Iterator[str]:
    document = best.without_trees()
    yield from tree_lines(best.memory, depth=99 if formulas else 2, formulas=formulas)
    yield ""
    yield from serving_lines(document)
    for term in best.others if formulas else best.opened:
        yield ""
        yield from tree_lines(titled(term, document["question"]), depth=99 if formulas else 3, formulas=formulas)
    yield from serving_ends(document)


def _notes(document: Mapping[str, Any], best: Any) -> list[str]:
    return [*document["warnings"], *(best.warnings if best is not None else ())]
