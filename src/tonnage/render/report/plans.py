"""The reports of `plan --train` and `plan --serve`: the plan to take, the one that comes next and why it lost, and
all that were shown.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tonnage.language import say, worded
from tonnage.language.quantities import human
from tonnage.render.brief.plan_serving import verdict_line
from tonnage.render.brief.plan_training import verdict_line as training_verdict
from tonnage.render.plans.serving import header_of, plan_cells, spread_text, stored_text
from tonnage.render.plans.training import NAMES, SIZES
from tonnage.render.prompts import with_prompts
from tonnage.render.report.answer import details, facts, kind_of, price_rows, terms
from tonnage.render.report.bars import fullest_bar
from tonnage.render.report.blocks import Block, Brief, Bullets, Cell, Code, Facts, Paragraph, Report, Section, Table
from tonnage.render.report.common import all_notes, assumed, inputs, notes, percent, price, prices, quantity

Document = Mapping[str, Any]


def training_plans_report(document: Document, **about: str) -> Report:
    """The best plan, as `train` answers for it, before those that follow."""
    question, plans, best = document["question"], document["plans"], document["best"]
    line = training_verdict(document)
    first_plan = plans[0] if plans else None
    sentence = say(
        "Which machine and which plan train {model} best ({goal})?",
        model=question["model"]["value"],
        goal=worded(document["goal"]),
    )
    warnings = [*document["warnings"], *(best["warnings"] if best else ())]
    brief = Brief(
        question=sentence,
        kind=kind_of(best) if best else ("unknown" if document["status"] == 4 else "no"),
        verdict=line,
        sections=(
            Section(
                say("Recommended"),
                _recommended(
                    best, first_plan["text"] if first_plan else "", _plan_words(first_plan) if first_plan else ""
                ),
            ),
            Section(
                say("The next one, and why it lost"),
                (_runner_up(plans, _training_line, "beats") if plans else _nearest(document),),
            ),
            Section(say("Taken for granted"), (assumed({**(best["question"] if best else {}), **question}),)),
            Section(say("Risks and notes"), (notes(warnings),)),
            Section(say("Prices"), (_prices(document),)),
        ),
    )
    return Report(
        title=line,
        brief=brief,
        sections=tuple(_training_details(document, best, warnings)),
        terms=dict(terms(best)) if best else {},
        **about,
    )


def serving_plans_report(document: Document, **about: str) -> Report:
    """The best plan, as `serve` answers for it, before those that follow."""
    question, plans, best = document["question"], document["plans"], document["best"]
    line = verdict_line(document)
    sentence = say(
        "Which machines serve {model} best, and how is it spread over them ({goal})?",
        model=question["model"]["value"],
        goal=worded(document["means"]),
    )
    warnings = [*document["warnings"], *(best["warnings"] if best else ())]
    words = f"{plans[0]['engine']}, {stored_text(plans[0])}, {spread_text(plans[0])}" if plans else ""
    nearest = (
        Bullets(tuple(worded(miss["text"]) for miss in document["nearest"]))
        if document["nearest"]
        else Paragraph(say("Nothing came near."))
    )
    brief = Brief(
        question=sentence,
        kind="fits" if plans else "no",
        verdict=line,
        sections=(
            Section(say("Recommended"), _recommended(best, document["command"] or "", words)),
            Section(
                say("The next one, and why it lost"),
                (
                    _runner_up(plans, partial(_serving_line, question=document["question"]), "beats_next")
                    if plans
                    else nearest,
                ),
            ),
            Section(say("Taken for granted"), (assumed({**(best["question"] if best else {}), **question}),)),
            Section(say("Risks and notes"), (notes(warnings),)),
            Section(say("Prices"), (_prices(document),)),
        ),
    )
    return Report(
        title=line,
        brief=brief,
        sections=tuple(_serving_details(document, best, warnings)),
        terms=dict(terms(best)) if best else {},
        **about,
    )


def _prices(document: Document) -> Block:
    """Prices of the best plan; where there is none, of the plan that comes nearest, whose cost the title may name."""
    best, near = document["best"], document["nearest"]
    if best:
        return prices(price_rows(best))
    if isinstance(near, Mapping) and near["price"]:
        usd_per_hour = say("{usd} an hour of an accelerator", usd=quantity(near["usd_per_accelerator_hour"], "USD"))
        return prices(((worded(near["price"]), usd_per_hour),))
    user_price = tuple(price(document["question"]))
    return prices(user_price) if user_price else Paragraph(say("No plan holds, so no price was taken."))


def _recommended(best: Document | None, command: str, words: str) -> tuple[Block, ...]:
    if best is None:
        return (Paragraph(say("No plan holds.")),)
    rows = list(facts(best))
    rows.insert(1, (say("plan"), words, ""))
    return fullest_bar(best), Facts(tuple(rows)), Code(command)


def _plan_words(plan: Document) -> str:
    """Runtime, policies and sizes above one of a plan."""
    options = plan["options"]
    named = [str(options[name]) for name in NAMES if options.get(name) not in (None, "none")]
    sizes = [f"{short} {options[name]}" for name, short in SIZES.items() if options.get(name, 1) != 1]
    return ", ".join([*named, *sizes])


def _training_line(plan: Document) -> str:
    money = (
        quantity(plan["cost"], "USD")
        if plan["cost"] is not None
        else say("{usd} a million tokens", usd=quantity(plan["usd_per_million_tokens"], "USD"))
    )
    return say(
        "{on}: {plan}; a step takes {step}, needs {needed}; {money}",
        on=plan["on"],
        plan=_plan_words(plan),
        step=quantity(plan["step_seconds"], "seconds"),
        needed=human(plan["needed_bytes"], "bytes"),
        money=money,
    )


def _serving_line(plan: Document, question: Document) -> str:
    money = say("{usd} an hour", usd=quantity(plan["usd_per_hour"], "USD"))
    return say(
        "{on}: {plan}; first token {first}, each later {later}, needs {needed}; {money}",
        on=plan["on"],
        plan=f"{plan['engine']}, {stored_text(plan)}, {spread_text(plan)}",
        first=with_prompts(human(plan["ttft_seconds"], "seconds"), question),
        later=human(plan["tpot_seconds"], "seconds"),
        needed=human(plan["needed_bytes"], "bytes"),
        money=money,
    )


def _runner_up(plans: list[Document], words: Any, key: str) -> Block:
    if len(plans) < 2:
        return Paragraph(say("No other plan that was shown holds."))
    return Bullets((words(plans[1]), say("The first is before it: {why}.", why=worded(plans[0][key] or ""))))


def _nearest(document: Document) -> Block:
    near = document["nearest"]
    if near is None:
        return Paragraph(say("Nothing came near: {why}.", why=worded(document["binds"])))
    return Bullets((_training_line(near), worded(near["text"])))


def _settings(plan: Document) -> Iterator[Section]:
    """The launch of the best plan and what it leaves unsaid; where there is none, of what nothing is written down."""
    names = ", ".join(map(worded, plan["launch_lacks"]))
    if plan["launch"]:
        lacks = [Paragraph(say("Not said by these settings: {names}.", names=names), "note")] if names else []
        yield Section(say("Settings of the runtime"), (Code(" ".join(plan["launch"])), *lacks))
    elif names:
        yield Section(
            say("Settings of the runtime"),
            (Paragraph(say("There are none: nothing is written down here of {names}.", names=names)),),
        )


def _training_details(document: Document, best: Document | None, warnings: list[str]) -> Iterator[Section]:
    plans = document["plans"]
    header = (
        "",
        say("machine"),
        say("plan"),
        say("needs"),
        say("step"),
        say("tokens/s"),
        "MFU",
        say("time"),
        say("cost"),
        say("USD a million tokens"),
        say("before the next"),
    )
    rows = tuple(
        (
            str(at),
            plan["on"],
            _plan_words(plan),
            human(plan["needed_bytes"], "bytes"),
            quantity(plan["step_seconds"], "seconds"),
            _count(plan["tokens_per_second"]),
            percent(plan["mfu"]) if plan["mfu"] is not None else "",
            _or(plan["run_seconds"], "seconds"),
            _or(plan["cost"], "USD"),
            _or(plan["usd_per_million_tokens"], "USD"),
            worded(plan["beats"]),
        )
        for at, plan in enumerate(plans, 1)
    )
    if rows:
        yield Section(say("Plans"), (Table(header, rows, strong=(0,)),))
        yield from _settings(plans[0])
    if document["front"]:
        front = tuple(
            (row["on"], _count(row["tokens_per_second"]), _or(row["usd_per_million_tokens"], "USD"))
            for row in document["front"]
        )
        yield Section(
            say("Machines that no other beats"),
            (Table((say("machine"), say("tokens/s"), say("USD a million tokens")), front),),
        )
    searched = say(
        "{count} plans on {machines} machines were searched.",
        count=f"{document['considered']:,}",
        machines=f"{document['machines']:,}",
    )
    yield _searched(searched, document["removed"])
    if best:
        yield from details(best)
    yield inputs(best["question"] if best else document["question"])
    yield all_notes(warnings)


def _serving_details(document: Document, best: Document | None, warnings: list[str]) -> Iterator[Section]:
    plans = document["plans"]
    header = tuple(worded(name) for name in header_of(document))
    if plans:
        rows: tuple[tuple[Cell, ...], ...] = tuple(plan_cells(plan, str(at)) for at, plan in enumerate(plans, 1))
        why = tuple(
            say("{first} before {second}: {why}", first=at, second=at + 1, why=worded(plan["beats_next"]))
            for at, plan in enumerate(plans, 1)
            if plan["beats_next"]
        )
        yield Section(say("Plans"), (Table(header, rows, strong=(0,)), *((Bullets(why),) if why else ())))
    if own := document["own_precision"]:
        yield Section(say("The best in the checkpoint's own precision"), (Table(header, (plan_cells(own, "-"),)),))
    if document["pareto"]:
        yield Section(
            say("Plans that none beats in cost, time and rate together"),
            (Table(header, tuple(plan_cells(plan, "") for plan in document["pareto"])),),
        )
    searched = say(
        "{count} plans of {configurations} configurations of a replica were searched.",
        count=f"{document['considered']:,}",
        configurations=f"{document['configurations']:,}",
    )
    yield _searched(searched, document["removed"])
    if best:
        yield from details(best)
    yield inputs(best["question"] if best else document["question"])
    yield all_notes(warnings)


def _searched(line: str, removed: list[Document]) -> Section:
    rows = tuple((f"{removal['plans']:,}", worded(removal["constraint"])) for removal in removed if removal["plans"])
    table = (Table((say("plans"), say("do not hold that")), rows),) if rows else ()
    return Section(say("What was searched"), (Paragraph(line), *table))


def _or(value: float | None, unit: str) -> str:
    return "" if value is None else human(value, unit)


def _count(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"
