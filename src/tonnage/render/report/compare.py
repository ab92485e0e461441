"""The report of `compare`: the best combination, or that of each workload, the one that comes next, and a line for
each.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tonnage.language import say, worded
from tonnage.language.quantities import human
from tonnage.render.report.blocks import Block, Brief, Bullets, Cell, Facts, Paragraph, Report, Section, Table
from tonnage.render.report.common import (
    accelerators,
    all_notes,
    assumed,
    entered,
    inputs,
    notes,
    origin,
    prices,
    quantity,
)
from tonnage.search.compare.axes import WORKLOAD
from tonnage.search.compare.columns import WITHOUT_ROOM
from tonnage.search.compare.pivot import TAKEN, part_paid

Document = Mapping[str, Any]
FIGURES = (
    "accelerators",
    "needed_bytes",
    "usable_bytes",
    "requests_that_fit",
    "longest_context_tokens",
    "ttft_seconds",
    "tpot_seconds",
    "step_seconds",
    "tokens_per_second",
    "mfu",
    "run_seconds",
    "usd_per_hour",
    "usd_per_million_tokens",
    "usd_per_billion_tokens",
    "run_usd",
)
KINDS = {
    "fits": "fits",
    "tight": "tight",
    "not served": "tight",
    "does not fit": "no",
    "not known": "unknown",
    "cannot be": "no",
}
HEADINGS = {
    "on": "machine",
    "needed_bytes": "needs",
    "usable_bytes": "usable",
    "ttft_seconds": "first token",
    "tpot_seconds": "each later token",
    "step_seconds": "step",
    "run_seconds": "time of the run",
    "tokens_per_second": "tokens/s",
    "usd_per_hour": "price of an hour",
    "usd_per_million_tokens": "price of a million tokens",
    "usd_per_billion_tokens": "price of a billion tokens",
    "usd_per_million_output_tokens": "price per million output tokens",
    "audio_seconds_per_second": "x real time",
    "usd_per_audio_hour": "price of an hour of sound",
    "usd_per_step": "price of a step",
    "run_usd": "price of the run",
    "mfu": "MFU",
    "longest_context_tokens": "longest context",
    "requests_that_fit": "requests that fit",
}
MADE_OF = tuple(dict.fromkeys((*TAKEN, *WORKLOAD)))  # engine or runtime, and what is asked of it
DRAWN = (
    "accelerators",
    "ttft_seconds",
    "tpot_seconds",
    "step_seconds",
    "tokens_per_second",
    "usd_per_hour",
)  # of the best of each workload
NONE = "-"
IN_TITLE, SHOWN = 3, 8  # workloads that the title and the first page have


def compare_report(document: Document, **about: str) -> Report:
    """The decision, what was compared, and a line for each combination."""
    cells = document["cells"]
    line = _title(document)
    names = {axis["name"]: axis["values"] for axis in document["axes"]}
    sentence = say(
        "Which of {count} combinations of {axes} is best?",
        count=f"{len(cells):,}",
        axes=", ".join(name for name, values in names.items() if len(values) > 1) or "model",
    )
    firsts = [order[0] for _, order in _orders(document) if order]
    warnings = [*document["warnings"], *(warning for at in firsts for warning in cells[at]["warnings"])]
    entries = {**document["settings"], **document["question"]}
    rest = {name: entry for name, entry in entries.items() if name not in MADE_OF}
    brief = Brief(
        question=sentence,
        kind=KINDS[next(iter(document["counts"]))],
        verdict=line,
        sections=(
            Section(say("Recommended"), (_recommended(document),)),
            Section(say("The next one, and why it lost"), (_runners_up(document),)),
            Section(
                say("Workload and engine") if document["verb"] == "serve" else say("Workload and runtime"),
                (Facts(tuple(_workload(document, entries))),),
            ),
            Section(say("Taken for granted"), (assumed(rest),)),
            Section(say("Risks and notes"), (notes(warnings),)),
            Section(say("Prices"), (prices(_prices(document)),)),
        ),
    )
    more = {warning: None for cell in cells for warning in cell["warnings"]}
    sections = (
        Section(say("All combinations"), tuple(_cells(document))),
        *_reasons(cells),
        inputs({**document["question"], **document["settings"]}),
        all_notes([*document["warnings"], *more]),
    )
    return Report(title=line, brief=brief, sections=sections, terms={}, **about)


# ---- what is best ----


def _orders(document: Document) -> list[tuple[str, list[int]]]:
    """For each workload, in words, the numbers of its cells of the best verdict that it has, the best first; of one
    workload alone no words.
    """
    if not document["workloads"]:
        return [("", _ordered(document, range(len(document["cells"]))))]
    return [
        (
            ", ".join(f"{name} {value}" for name, value in workload["values"].items()),
            _ordered(document, workload["cells"]),
        )
        for workload in document["workloads"]
    ]


def _ordered(document: Document, numbers: Sequence[int]) -> list[int]:
    cells, key = document["cells"], document["key"]
    sign = -1 if any(column["name"] == key and column["better"] == "high" for column in document["columns"]) else 1

    def worth(at: int) -> float:
        value = cells[at].get(key)
        return float("inf") if value is None else sign * value

    for verdict in ("fits", "tight", "not served"):
        among = [at for at in numbers if cells[at]["verdict"] == verdict]
        if among:
            return sorted(among, key=worth)
    return []


def _title(document: Document) -> str:
    counts = ", ".join(f"{worded(verdict)}: {number:,}" for verdict, number in document["counts"].items())
    bests = [(words, document["cells"][order[0]]) for words, order in _orders(document) if order]
    if not bests:
        return say("none fits: {counts}", counts=counts)
    best = [
        f"{words}{say(': ')}{_with_key(document, cell)}" if words else _with_key(document, cell)
        for words, cell in bests[:IN_TITLE]
    ]
    if len(bests) > IN_TITLE:
        best.append(say("and {count} more", count=len(bests) - IN_TITLE))
    return say("best: {best} ({counts})", best=say("; ").join(best), counts=counts)


def _with_key(document: Document, cell: Document) -> str:
    key = document["key"]
    where = _where(document, cell)
    return (
        where
        if cell.get(key) is None
        else (
            f"{where}{say('; ' if not document['workloads'] else ', ')}{worded(_header(key))} "
            f"{_value(document, key, cell)}"
        )
    )


def _where(document: Document, cell: Document) -> str:
    """What tells a cell from the others of its workload: its place on each axis that varies, the machine in any
    case.
    """
    also = [f"{name} {'own' if cell.get(name) is None else cell[name]}" for name in _rivals(document)]
    return ", ".join([say("{model} on {on}", model=cell["model"], on=cell["on"]), *also])


def _rivals(document: Document) -> list[str]:
    """Axes with several values that are no workload, beside the model and the machine."""
    loads = {name for workload in document["workloads"] for name in workload["values"]}
    return [
        axis["name"]
        for axis in document["axes"]
        if len(axis["values"]) > 1 and axis["name"] not in {"on", "count", "model", *loads}
    ]


def _recommended(document: Document) -> Block:
    orders = _orders(document)
    cells = document["cells"]
    if not any(order for _, order in orders):
        return Paragraph(say("None of these fits."))
    if len(orders) == 1:
        return Facts(tuple(_facts(document, cells[orders[0][1][0]])))
    also = [name for name in _rivals(document) if name not in FIGURES]
    shown = [
        name
        for name in (*also, *_differing(document), *DRAWN, document["key"])
        if any(cell.get(name) is not None for cell in cells)
    ]
    names = list(dict.fromkeys(shown))
    header = (say("workload"), say("machine"), *(worded(_header(name)) for name in names))
    rows = tuple(
        (
            words,
            *(
                (cells[order[0]]["on"], *(_value(document, name, cells[order[0]]) for name in names))
                if order
                else (say("none fits"), *("" for _ in names))
            ),
        )
        for words, order in orders[:SHOWN]
    )
    return Table(header, rows)


def _facts(document: Document, cell: Document) -> Iterator[tuple[str, Cell, str]]:
    used = accelerators(cell["accelerators"])
    paid = say("{paid} are paid for", paid=f"{cell['accelerators_paid']:,}") if part_paid(cell) else ""
    yield say("machine"), str(cell["on"]), say(", ").join(detail for detail in (used, paid) if detail)
    for name in FIGURES[1:]:
        if cell.get(name) is not None:
            yield worded(_header(name)), _value(document, name, cell), ""


def _runners_up(document: Document) -> Block:
    """What comes behind the best, and by how much."""
    cells, key = document["cells"], document["key"]
    behind = [(words, *(cells[at] for at in order[:2])) for words, order in _orders(document) if len(order) > 1]
    if not behind:
        return Paragraph(say("No other combination does as well."))
    if not document["workloads"]:
        _, first, second = behind[0]
        line = _where(document, second)
        if second.get(key) is None:
            return Paragraph(line)
        lost = say(
            "Its {figure} is {value}, and that of the first {best}.",
            figure=worded(_header(key)),
            value=_value(document, key, second),
            best=_value(document, key, first),
        )
        return Bullets((line, lost))
    header = (say("workload"), say("the next one"), worded(_header(key)), say("of the first"))
    return Table(
        header,
        tuple(
            (words, _where(document, second), _value(document, key, second), _value(document, key, first))
            for words, first, second in behind[:SHOWN]
        ),
    )


# ---- what was asked ----


def _workload(document: Document, inputs: Document) -> Iterator[tuple[str, Cell, str]]:
    """Engine or runtime, and what is asked of it: what was given, what all cells took, and what some took and others
    not.
    """
    held = {axis["name"] for axis in document["axes"] if len(axis["values"]) > 1}
    differ = _differing(document)
    for name in MADE_OF:
        if name in differ:
            values = dict.fromkeys(
                str(entered(name, cell[name])) for cell in document["cells"] if cell.get(name) is not None
            )
            yield name, ", ".join(values), say("not the same in all: see all combinations")
        elif name in inputs:
            note = (
                say("room that is held for each request")
                if name == "context" and name in held
                else origin(inputs[name])
            )
            yield name, entered(name, inputs[name]["value"]), note


def _differing(document: Document) -> list[str]:
    """What answers took that is not the same in all, though nobody asked for several."""
    vary = {axis["name"] for axis in document["axes"] if len(axis["values"]) > 1}
    return [
        name
        for name in TAKEN
        if name not in vary and len({cell[name] for cell in document["cells"] if cell.get(name) is not None}) > 1
    ]


def _prices(document: Document) -> Iterator[tuple[str, str]]:
    """Whose prices the first ones have; where they were read and when, as the catalogue has it."""
    orders = [order for _, order in _orders(document)]
    first = [at for order in orders for at in order[: 3 if len(orders) == 1 else 1]]
    for cell in [document["cells"][at] for at in first]:
        if cell.get("price"):
            source, date = _read(cell)
            words = say("{usd} an hour", usd=quantity(cell.get("usd_per_hour"), "USD"))
            if part_paid(cell):
                words = say(
                    "{price}: {paid} are paid for {used} that are used",
                    price=words,
                    paid=cell["accelerators_paid"],
                    used=cell["accelerators"],
                )
            price = f"{cell['on']}{say(': ')}{worded(str(cell['price']))}"
            yield price, f"{words}; {source} ({date})" if source else words


def _read(cell: Document) -> tuple[str, str]:
    from tonnage.catalogue.prices import prices as listed

    for row in listed():
        if row.accelerator == cell.get("accelerator") and str(cell["price"]).startswith(
            f"{row.provider} {row.instance}"
        ):
            return row.source, row.as_of
    return "", ""


# ---- everything ----


def _cells(document: Document) -> Iterator[Block]:
    cells = document["cells"]
    vary = [axis["name"] for axis in document["axes"] if axis["name"] not in ("on", "model", "count")]
    columns = {column["name"] for column in document["columns"]}
    shown = [
        name
        for name in (*FIGURES, document["key"])
        if name in columns and any(cell.get(name) is not None for cell in cells)
    ]
    also = dict.fromkeys((*(name for name in vary if name in columns), *_differing(document)))
    prompts = ("input_tokens",) if "ttft_seconds" in shown and "input_tokens" in columns else ()
    names = list(dict.fromkeys(("model", "on", *also, *prompts, "verdict", *shown)))
    best = {order[0] for _, order in _orders(document) if order}
    rows = tuple(tuple(_value(document, name, cell) for name in names) for cell in cells)
    yield Table(tuple(worded(_header(name)) for name in names), rows, strong=tuple(sorted(best)))
    if any(cell["verdict"] == "does not fit" for cell in cells):
        yield Paragraph(say("What does not fit has no speed and no price: {dash}.", dash=NONE), "note")
    if any(map(part_paid, cells)):
        yield Paragraph(say("1 (8 paid): one accelerator is used, of a machine of eight that is rented whole."), "note")


def _reasons(cells: Iterable[Document]) -> Iterator[Section]:
    reasons = tuple(
        dict.fromkeys(
            say("{where}: {why}", where=cell["on"], why=worded(cell["reason"])) for cell in cells if cell["reason"]
        )
    )
    if reasons:
        yield Section(say("Why some have no answer"), (Bullets(reasons),))


def _header(name: str) -> str:
    return HEADINGS.get(name) or name.replace("_", " ")


def _value(document: Document, name: str, cell: Document) -> str:
    value = cell.get(name)
    if name == "verdict":
        return worded(str(value))
    if name == "accelerators":
        paid = cell["accelerators_paid"]
        return say("{used} ({paid} paid)", used=f"{value:,}", paid=f"{paid:,}") if part_paid(cell) else f"{value:,}"
    column = next((column for column in document["columns"] if column["name"] == name), None)
    if column and column["better"] and cell["verdict"] == "does not fit" and name not in WITHOUT_ROOM:
        return NONE
    if value is None:
        return ""
    unit = column["unit"] if column else ""
    if name == "mfu":
        return f"{100 * value:.1f} %"
    if (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and unit in ("bytes", "seconds", "USD", "tokens/s")
    ):
        return human(value, unit)
    return entered(name, value)
