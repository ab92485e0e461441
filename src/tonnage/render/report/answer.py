"""The report of one answer of `train` or `serve`."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tonnage.language import say, worded
from tonnage.language.quantities import human
from tonnage.render.brief.verdict import verdict_line
from tonnage.render.prompts import with_prompts
from tonnage.render.report.bars import fullest_bar, memory_bars, memory_table, time_bars, tree_table
from tonnage.render.report.blocks import (
    Block,
    Brief,
    Bullets,
    Cell,
    Code,
    Facts,
    Figure,
    Paragraph,
    Report,
    Section,
    Table,
)
from tonnage.render.report.common import (
    accelerators,
    all_notes,
    assumed,
    between,
    figure,
    inputs,
    notes,
    percent,
    price,
    prices,
    quantity,
)
from tonnage.render.report.serving import load_table, percentiles, served_facts

Document = Mapping[str, Any]
Fact = tuple[str, Cell, str]
MOVES = 3  # of the first page
RUN = (
    "seconds",
    "accelerator_hours",
    "tokens",
    "steps",
    "epochs",
    "goodput",
    "failures",
    "checkpoint_interval",
    "restart_seconds",
    "accelerators_for_deadline",
    "tokens_for_budget",
)
BILL = ("cost", "energy", "carbon")


def answer_report(document: Document, **about: str) -> Report:
    """The decision, then the details of memory, time and money."""
    question = document["question"]
    line = verdict_line(document)
    brief = Brief(
        question=asks(document),
        kind=kind_of(document),
        verdict=line,
        sections=(
            Section(say("As asked"), (fullest_bar(document), Facts(tuple(facts(document))))),
            Section(
                say("Suggestions") if document["verdict"]["fits"] else say("What would make it fit"),
                (moves(document),),
            ),
            Section(say("Taken for granted"), (assumed(question),)),
            Section(say("Risks and notes"), (notes(document["warnings"]),)),
            Section(say("Prices"), (prices(price_rows(document)),)),
        ),
    )
    return Report(
        title=line,
        brief=brief,
        sections=(*details(document), inputs(question), all_notes(document["warnings"])),
        terms=dict(terms(document)),
        **about,
    )


def asks(document: Document) -> str:
    """The question in a sentence."""
    question = document["question"]
    model, on = question["model"]["value"], question["on"]["value"]
    if "serving" not in document:
        tokens = document.get("run", {}).get("tokens")
        if tokens:
            return say(
                "Does training {model} on {tokens} fit {on}, how long does it take and what does it cost?",
                model=model,
                on=on,
                tokens=human(tokens["value"], "tokens"),
            )
        return say("Does training {model} fit {on}, and how fast is a step?", model=model, on=on)
    if "request_rate" in question:
        rate = f"{question['request_rate']['value']:g}"
        return say(
            "Does {on} serve {model} to {rate} requests a second, how fast and at what price?",
            model=model,
            on=on,
            rate=rate,
        )
    users = question["concurrency"]["value"] if "concurrency" in question else 1
    return say(
        "Does {on} serve {model} to {users} users at once, how fast and at what price?",
        model=model,
        on=on,
        users=f"{users:,}",
    )


def kind_of(document: Document) -> str:
    """fits, tight, no or unknown; what fits and does not answer as asked is tight."""
    verdict = document["verdict"]
    low, high = verdict["band"] or (verdict["needed_bytes"],) * 2
    if low <= verdict["usable_bytes"] < high:
        return "tight"
    if verdict["fits"] is None:
        return "unknown"
    if not verdict["fits"]:
        return "no"
    return "tight" if verdict.get("missed") else "fits"


def facts(document: Document) -> Iterator[Fact]:
    """Machine, memory with its band, time and money: what a decision is made by."""
    verdict, question = document["verdict"], document["question"]
    count = question.get("accelerators", {}).get("value")
    apart = question.get("rollout_accelerators", {}).get("value")
    yield say("machine"), str(question["on"]["value"]), accelerators(count + apart if count and apart else count)
    band = (
        say("error band {band}", band=between(verdict["band"], "bytes"))
        if verdict["band"]
        else say("no error band is known")
    )
    yield (
        say("memory, fullest GPU"),
        Figure(human(verdict["needed_bytes"], "bytes"), "memory"),
        say("of {usable} usable; {band}", usable=human(verdict["usable_bytes"], "bytes"), band=band),
    )
    if "step_time" in document:
        run = document["run"]
        yield (
            say("time of a step"),
            figure(document["step_time"], "step_time"),
            between(run.get("step_time_band"), "seconds"),
        )
        shares = ", ".join(f"{name} {percent(run[key]['value'])}" for name, key in (("MFU", "mfu"), ("HFU", "hfu")))
        yield say("tokens a second"), figure(run["tokens_per_second"], "run/tokens_per_second"), shares
    for name in ("seconds", "accelerator_hours"):
        if term := document.get("run", {}).get(name):
            yield worded(term["name"]), figure(term, f"run/{name}"), ""
    if "serving" in document:
        yield from served_facts(document["serving"], question)
    for name in BILL:
        if term := document.get(name):
            yield worded(term["name"]), figure(term, name), ""


def moves(document: Document) -> Block:
    """What stands next: changes that were estimated again, or the nearest miss."""
    rows = [_moved(move) for move in document["advice"][:MOVES]]
    if rows:
        return Table((say("change"), say("needs"), say("then"), say("changes")), tuple(rows))
    if near := document.get("nearest_miss"):
        text = say(
            "No change fits: the nearest, {change}, still misses {missing}.",
            change=near["text"],
            missing=human(near["missing_bytes"], "bytes"),
        )
        fits = near["smallest_machine"]
        other = (
            say("As it is, it fits on {machine}.", machine=fits)
            if fits
            else say("It fits on no other machine that was tried.")
        )
        return Bullets((text, other))
    if "advice" in document["question"]:
        return Paragraph(say("None was asked for (--no-advice)."))
    return Paragraph(say("No change that was tried is better: this is as asked."))


def _moved(move: Document) -> tuple[Cell, ...]:
    then = [human(move[name], "seconds") for name in ("step_seconds", "tpot_seconds") if move.get(name)]
    if move.get("usd_per_million_tokens") is not None:
        then.append(say("{usd} a million tokens", usd=human(move["usd_per_million_tokens"], "USD")))
    if move.get("serves") is not None:
        then.append(say("in time") if move["serves"] else say("not in time"))
    return (
        move.get("in_tool") or move["text"],
        human(move["needed_bytes"], "bytes"),
        ", ".join(then),
        worded(move["changes"]),
    )


def price_rows(document: Document) -> Iterator[tuple[str, str]]:
    """Prices of the machine, and of providers that host the model."""
    yield from price(document["question"])
    hosted = (document.get("serving") or {}).get("hosted") or {"offers": ()}
    for offer in hosted["offers"][:2]:
        usd_per_million = human(offer["cost_per_million_tokens"]["value"], "USD")
        yield (
            offer["provider"],
            say(
                "{usd} a million tokens, hosted; {source} ({date})",
                usd=usd_per_million,
                source=offer["source"],
                date=offer["as_of"],
            ),
        )


def details(document: Document) -> Iterator[Section]:
    """Memory by stage and phase, time by part, money, advice."""
    memory: list[Block] = [memory_bars(document), memory_table(document)]
    if document.get("phases"):
        memory.append(Table((say("phase"), say("fullest GPU"), say("basis")), tuple(_phases(document))))
    yield Section(say("Memory"), tuple(memory))
    yield Section(say("Memory, opened"), (tree_table(document["memory"], "memory", 2),))
    if "step_time" in document:
        step = document["step_time"]
        yield Section(say("Time of a step"), (time_bars(step, "step_time"), tree_table(step, "step_time", 3)))
        yield Section(say("The run"), (Facts(tuple(_run(document))),))
    serving = document.get("serving")
    if serving:
        yield Section(say("Speed and price"), tuple(_speed(document, serving)))
        if serving.get("simulated"):
            yield Section(say("Simulated requests"), (percentiles(serving["simulated"], document["question"]),))
        if "launch" in serving:
            yield Section(say("Start it"), (Code(worded(serving["launch"])),))
    yield from _money(document)
    if document["advice"]:
        rows = tuple(_moved(move) for move in document["advice"])
        yield Section(
            say("Changes that were estimated again"),
            (Table((say("change"), say("needs"), say("then"), say("changes")), rows),),
        )


def _phases(document: Document) -> Iterable[tuple[Cell, ...]]:
    for at, phase in enumerate(document["phases"]):
        yield worded(phase["name"]), figure(phase, f"phases/{at}"), worded(phase["basis"])


def _run(document: Document) -> Iterator[Fact]:
    run = document["run"]
    yield say("bound by"), worded(str(run["bound_by"])), ""
    for name in RUN:
        if isinstance(term := run.get(name), Mapping):
            yield worded(term["name"]), figure(term, f"run/{name}"), ""
    for name in ("flops", "traffic", "checkpoint"):
        if term := document.get(name):
            yield worded(term["name"]), figure(term, name), ""
    if host := document.get("host"):
        of = quantity(host["capacity_bytes"], "bytes")
        yield worded(host["memory"]["name"]), figure(host["memory"], "host/memory"), say("of {size}", size=of)


def _titled(term: Any, question: Document) -> Any:
    """A time to the first token under a name that says the length of the prompts; None where there is none."""
    return term and {**term, "name": with_prompts(worded(term["name"]), question)}


def _speed(document: Document, serving: Document) -> Iterator[Block]:
    serving = {
        name: _titled(term, document["question"]) if name.startswith("ttft_seconds") else term
        for name, term in serving.items()
    }
    yield Facts(
        tuple(
            (worded(term["name"]), figure(term, f"serving/{name}"), "")
            for name, term in serving.items()
            if isinstance(term, Mapping) and "combine" in term
        )
    )
    yield load_table(document)
    for name in ("ttft_seconds", "tpot_seconds"):
        if term := serving.get(name):
            yield time_bars(term, f"serving/{name}")
            yield tree_table(term, f"serving/{name}", 3)


def _money(document: Document) -> Iterator[Section]:
    rows = [(worded(document[name]["name"]), figure(document[name], name), "") for name in BILL if document.get(name)]
    own = document.get("ownership")
    blocks: list[Block] = [Facts(tuple(rows))] if rows else []
    if own:
        names = ("purchase", "own_month", "rent_month", "own_hour")
        blocks.append(
            Facts(tuple((worded(own[name]["name"]), figure(own[name], f"ownership/{name}"), "") for name in names))
        )
        places = tuple(
            (
                worded(place["where"]),
                place["what"],
                figure(place.get("cost")),
                quantity(place.get("seconds"), "seconds"),
                worded(place["note"]),
            )
            for place in own["places"]
        )
        blocks.append(Table((say("place"), say("machine"), say("cost"), say("time"), say("note")), places))
    if blocks:
        yield Section(say("Money and energy"), tuple(blocks))


def terms(document: Document) -> Iterator[tuple[str, Document]]:
    """Every TERM of a document by its path; a stage or a phase that is another's equal is opened with it."""
    for name, value in document.items():
        yield from _terms(value, name)


def _terms(value: Any, path: str) -> Iterator[tuple[str, Document]]:
    if isinstance(value, Mapping) and "combine" in value:
        yield path, value
    elif isinstance(value, Mapping):
        for name, child in value.items():
            yield from _terms(child, f"{path}/{name}")
    elif isinstance(value, list):
        for at, child in enumerate(value):
            yield from _terms(child, f"{path}/{at}")
