"""The short text of a search for machines and plans that serve users."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tonnage.catalogue import cluster
from tonnage.estimate.serving_time.rates import serving_rates
from tonnage.kernel.errors import TonnageError
from tonnage.kernel.term import Term
from tonnage.kernel.units import money, significant
from tonnage.language import say, say_as, worded
from tonnage.render.brief.answer import add_launch
from tonnage.render.brief.bar import add_bar, memory_parts
from tonnage.render.brief.layout import MAX_LINES, Column, Page, Runs
from tonnage.render.brief.numbers import count, seconds, seconds_change, target, with_band
from tonnage.render.brief.serving import engine_of, runner_of
from tonnage.render.brief.verdict import LIMITS, tight_text
from tonnage.render.brief.words import (
    ASSUMED,
    BETTER,
    FEWER_ASSUMED,
    NEXT,
    ONE_ROW,
    PLAN_NOTE,
    THREE_ROWS,
    accelerator_of,
    add_more,
    add_notes,
    assumed,
    money_change,
    rate_text,
    usd_per_hour,
    users_text,
    value_of,
)
from tonnage.render.tone import Toned

GOALS = {
    "cost": "cheapest",
    "token-cost": "cheapest per token",
    "accelerators": "fewest GPUs",
    "goodput": "most requests",
}
TIGHT, UNMEASURED = "~", "?"
ASSUMED_NAMES = ("input_tokens", "output_tokens", "context", "max_accelerators", "goal")
SPREAD = (
    ("tensor_parallel_size", "TP"),
    ("pipeline_parallel_size", "PP"),
    ("expert_parallel_size", "EP"),
    ("attention_data_parallel_size", "DP"),
)


def plan_text(result: Any, width: int) -> list[Runs]:
    """The lines of a search, at most 24."""
    best = result.best
    opened = best.without_trees() if best is not None else None
    return plan_page(result.to_dict(), opened, best.memory if best is not None else None, width).lines(MAX_LINES)


def plan_page(document: Mapping[str, Any], best: Mapping[str, Any] | None, memory: Term | None, width: int) -> Page:
    """`best`: the answer of `serve` for the first plan, `memory` its breakdown."""
    page = Page(width)
    line = verdict_line(document)
    page.verdict(line, line.tone)
    page.dim(_subject(document))
    page.blank()
    plans, question = document["plans"], document["question"]
    if plans:
        full, three, one = (_table(page, plans[:most], question) for most in (5, 3, 1))
        page.block(full, (THREE_ROWS, three), (ONE_ROW, one))
        page.blank()
    if best is not None and memory is not None:
        verdict = best["verdict"]
        add_bar(page, memory_parts(memory), verdict["usable_bytes"], verdict["band"], "", engine_of(best["question"]))
        _add_speed(page, best)
        _add_cost(page, best)
    page.options("assumed", assumed(question, ASSUMED_NAMES), fewer=FEWER_ASSUMED, drop=ASSUMED)
    _add_better(page, plans, question)
    if not plans:
        page.field("search", _counts(document))
    for near in document["nearest"][:1]:
        page.field("nearest", worded(near["text"]))
    add_notes(page, [*document["warnings"], *(best["warnings"] if best else ())], most=1, drop=PLAN_NOTE)
    page.blank()
    if best is not None and (launch := best["serving"].get("launch")):
        add_launch(page, launch)
    if document.get("command"):
        page.command("next", _command(document), drop=NEXT)
    add_more(page)
    return page


def verdict_line(document: Mapping[str, Any]) -> Toned:
    """The best machine, its price, and how its targets stand; or that no plan holds."""
    plans, question = document["plans"], document["question"]
    if not plans:
        what = say(
            "{model} for {load} on {on}",
            model=value_of(question, "model"),
            load=_load(question),
            on=value_of(question, "on"),
        )
        return Toned(say("no plan: {what}", what=what), "bad")
    best = plans[0]
    price = (
        say("no known price")
        if best["usd_per_hour"] is None
        else say("{usd} USD per hour", usd=money(best["usd_per_hour"]))
    )
    goal = say_as("goal", GOALS[document["goal"]]) if document["goal"] in GOALS else worded(document["means"])
    machine = _machine(best)
    if best["changes_weights"]:  # which changes the numerics of the model
        machine = say("{machine} with {weights} weights", machine=machine, weights=best["weights"])
    line = say("{goal}: {machine}, {price}", goal=goal, machine=machine, price=price)
    searched = "searched" in str(question.get("concurrency", {}).get("why", ""))
    if searched:
        line = say("{line}; {users} at once", line=line, users=users_text(best["users"]))
    states = _states(document)
    line = say("{line}; {states}", line=line, states=say(", ").join(states)) if states else line
    if not _is_measured(best):
        chip = accelerator_of(best["on"])
        return Toned(say("{line}; no published runs on {chip}", line=line, chip=chip), "warn")
    return Toned(line, "good")


def _is_measured(plan: Mapping[str, Any]) -> bool:
    """Whether runs on accelerators of its generation are published; without them its band is that of others."""
    try:
        return serving_rates().is_measured(cluster(plan["on"]).accelerator)
    except TonnageError:  # of a file
        return False


def _states(document: Mapping[str, Any]) -> list[str]:
    """Each target of the best plan: met, or tight where it lies inside the error band."""
    best, question, texts = document["plans"][0], document["question"], []
    serving = (document["best"] or {}).get("serving", {})
    for key, name in LIMITS:
        limit = value_of(question, key)
        if limit is None:
            continue
        band = serving.get(f"{key}_band")
        if band and limit < band[1]:
            texts.append(tight_text(name, best[f"{key}_seconds"], limit))
        else:
            texts.append(say("{name} met", name=name))
    return texts


def _machine(plan: Mapping[str, Any]) -> str:
    """The machine of a plan: 1 x L40S."""
    return str(plan["on"]) if plan["accelerators"] > 1 else f"1 x {plan['on']}"


def _subject(document: Mapping[str, Any]) -> str:
    question, plans = document["question"], document["plans"]
    best = document["best"]
    on = say(" or ").join(str(value_of(question, "on", "")).split(", "))
    engine = runner_of(best["question"]) if best else str(plans[0]["engine"]) if plans else ""
    where = say("{model} on {on}", model=value_of(question, "model"), on=on)
    what = say("{where}, {engine}", where=where, engine=engine) if engine else where
    return say("{what}; {load}", what=what, load=_load(question))


def _replicas(plan: Mapping[str, Any]) -> str:
    """How many there are; of prefill and decode where they are apart, as in 2P 6D."""
    prefill, total = plan["prefill_replicas"], plan["replicas"]
    return f"{prefill}P {total - prefill}D" if prefill else str(total)


def _command(document: Mapping[str, Any]) -> str:
    """The question of the best plan by itself; one accelerator needs no sizes of 1 to be told."""
    command = str(document["command"]).replace("--concurrency ", "--users ")
    return (
        re.sub(r" --\w+-parallel-size 1(?= |$)", "", command) if document["plans"][0]["accelerators"] == 1 else command
    )


def _load(question: Mapping[str, Any]) -> str:
    """Who is served, within which limits."""
    if "request_rate" in question:
        who = say("{rate} requests/s", rate=rate_text(question))
    elif question["concurrency"].get("why") == "searched":
        who = say("as many users as it can")
    else:
        who = users_text(value_of(question, "concurrency"))
    limits = [f"{name} {target(value_of(question, key))}" for key, name in LIMITS if key in question]
    if "budget" in question:
        limits.append(say("{usd} USD per hour", usd=money(value_of(question, "budget"))))
    return say(", ").join([who, *limits])


def _table(page: Page, plans: Sequence[Mapping[str, Any]], question: Mapping[str, Any]) -> list[Runs]:
    """The plans, what differs between them, and their figures; `~` at a target inside the error band, `?` at a machine
    of which no runs are published.
    """
    limits = {key: value_of(question, key) for key, _ in LIMITS}
    ttft, tpot = (_marked([_time(plan, key, limits[key]) for plan in plans]) for key in ("ttft", "tpot"))
    unknown = [not _is_measured(plan) for plan in plans]
    machines = [
        _machine(plan) + (f" {UNMEASURED}" if unmeasured else "")
        for plan, unmeasured in zip(plans, unknown, strict=True)
    ]
    apart = any(plan["prefill_replicas"] for plan in plans)
    spreads = [" ".join(f"{short}{plan[name]}" for name, short in SPREAD if plan[name] > 1) for plan in plans]
    columns: list[tuple[Column, list[str]]] = [
        (Column("", "l"), [str(place) for place in range(1, len(plans) + 1)]),
        (Column(say("machine"), "l", keep=9), machines),
        (Column(say("engine"), "l", keep=2), _differ([plan["engine"] for plan in plans])),
        (Column(say("weights"), "l", keep=7), [_stored(plan) for plan in plans]),
        (Column(say("spread"), "l", keep=6 if len(set(spreads)) > 1 else 3), spreads if any(spreads) else []),
        (Column(say("replicas"), keep=6 if apart else 1), _differ([_replicas(plan) for plan in plans], same="1")),
        (Column("TTFT", keep=5), ttft),
        (Column("TPOT", keep=6), tpot),
        (Column(say_as("column", "tokens/s"), keep=4), [significant(plan["tokens_per_second"]) for plan in plans]),
        (Column("USD/h", keep=8), [_usd(plan["usd_per_hour"]) for plan in plans]),
        (Column("USD/M", keep=8), [_usd(plan["usd_per_million_tokens"]) for plan in plans]),
    ]
    shown = [(column, cells) for column, cells in columns if cells]
    rows = [[cells[at] for _, cells in shown] for at in range(len(plans))]
    table = page.table_lines([column for column, _ in shown], rows)
    heads = "".join(text for text, _ in table[0])
    words = [
        say("tokens/s: output of all users; USD/M: per million tokens, input + output")
        if say_as("column", "tokens/s") in heads
        else say("USD/M: per million tokens, input + output")
    ]
    if any(cell.endswith(TIGHT) for cell in (*ttft, *tpot)):
        words.append(say("`~` the target lies inside the error band"))
    if any(unknown):
        words.append(say("`?` no published runs on it"))
    key = page.dim_lines(say("; ").join(words).replace("`", ""))
    return [*table, *key]


def _time(plan: Mapping[str, Any], key: str, limit: float | None) -> tuple[str, bool]:
    """A time of a plan, and whether the target lies inside its error band."""
    figure, band = plan[f"{key}_seconds"], plan[f"{key}_band"]
    return seconds(figure), bool(limit is not None and band and figure <= limit < band[1])


def _marked(times: Sequence[tuple[str, bool]]) -> list[str]:
    """The cells of a column: numbers stay below each other where some have a mark."""
    if not any(tight for _, tight in times):
        return [text for text, _ in times]
    return [f"{text} {TIGHT if tight else ' '}" for text, tight in times]


def _differ(cells: list[str], same: str | None = None) -> list[str]:
    """A column; no cells where all say the same (`same`: only where they say this)."""
    return [] if len(set(cells)) == 1 and (same is None or cells[0] == same) else cells


def _stored(plan: Mapping[str, Any]) -> str:
    plain = plan["kv_cache"] in ("bf16", "fp16", "fp32")
    return (
        str(plan["weights"])
        if plain
        else say("{weights}, cache {kv_cache}", **{name: plan[name] for name in ("weights", "kv_cache")})
    )


def _usd(value: float | None) -> str:
    return "-" if value is None else money(value)


def _add_speed(page: Page, best: Mapping[str, Any]) -> None:
    serving = best["serving"]
    times = [
        f"{name} {with_band(serving[f'{key}_seconds']['value'], serving.get(f'{key}_band'))}"
        for key, name in LIMITS
        if serving.get(f"{key}_seconds")
    ]
    text = say(", ").join(times)
    users, asked = serving.get("users_at_service_level"), value_of(best["question"], "concurrency", 0)
    if users and users["value"] >= asked:  # fewer are those who run at once, where nobody limits the wait
        most = say("up to {users} within the targets", users=users_text(users["value"]))
        text = say("{text}; {most}", text=text, most=most)
    if text:
        page.field("speed", text)


def _add_cost(page: Page, best: Mapping[str, Any]) -> None:
    """Whose price it is, and what hosted models take."""
    price, hosted = usd_per_hour(best), best["serving"].get("hosted", {}).get("offers")
    texts = [say("price: {price}", price=price)] if price else []
    if hosted:
        offer = hosted[0]
        usd = money(offer["cost_per_million_tokens"]["value"])
        texts.append(say("hosted: {usd} USD/M tokens ({provider})", usd=usd, provider=offer["provider"]))
    if texts:
        page.field("cost", say("; ").join(texts))


def _add_better(page: Page, plans: Sequence[Mapping[str, Any]], question: Mapping[str, Any]) -> None:
    """What the same machine does with other weights, where that is cheaper or faster; first those that meet the targets
    at the high end of the error band.
    """
    if not plans or plans[0]["changes_weights"]:
        return
    best = plans[0]
    faster = [
        plan
        for plan in plans[1:]
        if plan["on"] == best["on"] and plan["changes_weights"] and plan["tpot_seconds"] < best["tpot_seconds"]
    ]
    if not faster:
        return
    plan = next((plan for plan in faster if not _is_tight(plan, question)), faster[0])
    change = seconds_change(best["tpot_seconds"], plan["tpot_seconds"])
    parts = [f"TPOT {change}", money_change(best["usd_per_million_tokens"], plan["usd_per_million_tokens"])]
    what = say(", ").join(filter(None, parts))
    text = say("`{option}`: {what}", option=f"--weights {plan['weights']}", what=what)
    text = say("{text}; changes {what}", text=text, what=say("numerics"))
    if _is_tight(plan, question):
        text = say("nearest: {text}; a target lies inside the error band", text=text)
    page.field("better", text, drop=BETTER)


def _is_tight(plan: Mapping[str, Any], question: Mapping[str, Any]) -> bool:
    """Whether a target lies inside the error band of its figure."""
    return any(_time(plan, key, value_of(question, key))[1] for key, _ in LIMITS)


def _counts(document: Mapping[str, Any]) -> str:
    parts = [
        say(
            "{count} do not hold: {constraint}", count=count(removal["plans"]), constraint=worded(removal["constraint"])
        )
        for removal in document["removed"][:2]
        if removal["plans"]
    ]
    return say("all {count} plans: {parts}", count=count(document["considered"]), parts=say(", ").join(parts))
