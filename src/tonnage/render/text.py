"""Answers as lines of text. A renderer reads Terms and documents and computes nothing but the layout."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tonnage.breakdown import Term
from tonnage.estimate.ownership import when_it_pays
from tonnage.estimate.unserved import unserved
from tonnage.render.serving import serving_ends, serving_lines
from tonnage.units import human

NAME_WIDTH = 46
INPUT_WIDTH = 28
LONGEST_REASON = 80  # the whole of it is in the document
# What a node makes of its children where it does not add them.
TOGETHER = {
    "max": "the largest of these",
    "product": "the product of these",
    "ratio": "the first of these over the second",
}
SPEED = ("mfu", "hfu", "tokens_per_second")  # said behind the time of a step
MUCH = 1.1  # compute over that of the best model that is as good
SAID = ("Besiroglu 2024", "Hoffmann 2022")  # fits of Chinchilla's law; the document has all
REQUESTS = "requests a second"
NO_UNITS: Mapping[str, str] = {}
HIDDEN = frozenset({"runtime_version", "engine_version"})


def answer_lines(
    document: Mapping[str, Any],
    memory: Term,
    *,
    formulas: bool = False,
    others: Iterable[Term] = (),
    opened: Iterable[Term] = (),
) -> list[str]:
    """The verdict, the inputs that decided it, the breakdown, the next best move. `others`: breakdowns that `formulas` opens too;
    `opened`: those that are shown without it."""
    lines = [verdict_line(document), ""]
    lines += inputs_lines(document["question"])
    lines += ["", *tree_lines(memory, depth=99 if formulas else 2, formulas=formulas)]
    lines += _figures(document)
    if "serving" in document:
        lines += serving_lines(document)
        for term in () if formulas else opened:
            lines += ["", *tree_lines(term, depth=3)]
        lines += serving_ends(document)
    if formulas:
        lines += _conventions(document)
        for term in others:
            lines += ["", *tree_lines(term, depth=99, formulas=True)]
    if document["advice"]:
        lines += ["", "next moves, each estimated again:"]
        lines += [_advice(move) for move in document["advice"]]
    if near := document.get("nearest_miss"):
        lines += ["", _nearest(near)]
    lines += [f"note: {warning}" for warning in document["warnings"]]
    return lines


def verdict_line(document: Mapping[str, Any]) -> str:
    """One sentence: whether it fits, what it needs, what there is."""
    verdict, question = document["verdict"], document["question"]
    needed, usable = verdict["needed_bytes"], verdict["usable_bytes"]
    what = f"{question['model']['value']} on {question['on']['value']}"
    sizes = f"{human(needed, 'bytes')} of {human(usable, 'bytes')} on the fullest accelerator"
    low, high = verdict["band"] or (needed, needed)
    if low <= usable < high:
        between = f"{human(low, 'bytes')} to {human(high, 'bytes')}"
        return f"tight: {what} needs about {sizes}: inside the error band, {between}"
    if verdict["fits"] is None:
        return f"not enough is known: {what} needs at least {sizes}"
    if verdict["fits"]:
        but = unserved(document.get("serving", {}), question)
        return f"fits{f', but {but}' if but else ''}: {what} needs {sizes} ({_share(needed, high, usable)})"
    return f"does not fit: {what} needs {sizes} ({human(needed - usable, 'bytes')} too much)"


def _share(needed: int, high: int, usable: int) -> str:
    """Of what there is, with the high end of the error band, which the verdict uses."""
    share = f"{100 * needed / usable:.0f} %"
    return share if high <= needed else f"{share}, at most {100 * high / usable:.0f} % in the error band"


def tree_lines(term: Term, *, depth: int, formulas: bool = False) -> list[str]:
    """A breakdown, indented; with `formulas` each leaf shows its formula with the numbers put in, and its source.

    What is nothing is left out, with all that is under it. Children are added up unless their parent says otherwise.
    """
    rows = list(_rows(term, depth, 0))
    width = max(NAME_WIDTH, *(len(name) for name, _, _ in rows))
    return [
        f"{name:<{width}} {human(node.value, node.unit):>16}  {why(node) if formulas else together}".rstrip()
        for name, node, together in rows
    ]


def _rows(term: Term, depth: int, level: int) -> Iterator[tuple[str, Term, str]]:
    """Indented name, node, and how the children that follow it make it up."""
    children = [child for child in term.children if child.value] if level < depth else []
    yield "  " * level + term.name, term, f"{TOGETHER[term.combine]}:" if children and term.combine in TOGETHER else ""
    for child in children:
        yield from _rows(child, depth, level + 1)


def why(node: Term) -> str:
    """How a node's value came about, on one line."""
    if node.formula:
        return f"= {node.formula.substituted(node.inputs)}   [{node.basis}; {node.formula.name}; {node.source}]"
    if node.method:
        return f"by {node.method['procedure']}   [{node.basis}; {node.source}]"
    return f"({TOGETHER.get(node.combine, 'the sum of these')}; {node.basis})"


def table_lines(rows: Iterable[Sequence[str]], header: Sequence[str]) -> list[str]:
    """Columns as wide as their widest cell; numbers to the right."""
    body = [list(map(str, row)) for row in rows]
    widths = [max(len(row[i]) for row in [list(header), *body]) for i in range(len(header))]
    right = [
        bool(body) and all(row[i][:1].isdigit() or row[i] in ("", "-") for row in body) for i in range(len(header))
    ]

    def line(row: Sequence[str]) -> str:
        cells = (
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        )
        return "  ".join(cells).rstrip()

    return [line(header), "  ".join("-" * width for width in widths), *map(line, body)]


def inputs_lines(question: Mapping[str, Mapping[str, Any]], units: Mapping[str, str] = NO_UNITS) -> list[str]:
    """Each input with its value and where that comes from. `units`: of inputs, by name, that are said with them."""
    lines = []
    width = max(INPUT_WIDTH, *(len(name) for name in question))
    for name, entry in question.items():
        if name in HIDDEN or (name == "reserve_bytes" and not entry["value"]):
            continue
        unit = "bytes" if name.endswith("_bytes") else units.get(name)
        value = _shown(entry["value"]) if unit is None else quantity(entry["value"], unit)
        lines.append(f"  {name:<{width}} {value:<24} {_origin(entry)}".rstrip())
    return lines


def quantity(value: float, unit: str) -> str:
    """With its unit; of "USD an hour" the money as money is written, and requests a second with separators."""
    if unit.startswith("USD "):
        return human(value, "USD") + unit.removeprefix("USD")
    return f"{value:,.10g} {unit}" if unit == REQUESTS else human(value, unit)


def _origin(entry: Mapping[str, Any]) -> str:
    if entry["from"] == "given":
        return ""
    why = str(entry.get("why", ""))
    why = why if len(why) <= LONGEST_REASON else f"{why[: LONGEST_REASON - 3]}..."
    return f"{entry['from']}: {why}" if why else str(entry["from"])


def _shown(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _figures(document: Mapping[str, Any]) -> list[str]:
    slopes = document["slopes"]
    sequence, token = human(slopes["bytes_per_sequence"], "bytes"), human(slopes["bytes_per_token"], "bytes")
    more = (
        ("request", "of its context") if "serving" in document else ("sequence in the micro-batch", "in each sequence")
    )
    lines = ["", f"one more {more[0]} adds {sequence}, one more token {more[1]} {token}, on the fullest accelerator"]
    for key in ("flops", "step_time", "traffic", "checkpoint"):
        if key in document:
            lines.append(
                f"{document[key]['name']}: {human(document[key]['value'], document[key]['unit'])}{_behind(document, key)}"
            )
    lines += [f"{value['name']}: {human(value['value'], value['unit'])}" for name, value in document.get("run", {}).items()
              if isinstance(value, dict) and name not in SPEED]  # fmt: skip
    lines += _overtrained(document.get("run", {}))
    lines += [] if "serving" in document else bill_lines(document)
    if "host" in document:
        lines.append(_host(document["host"]))
        lines += _room(document["host"], document.get("storage", {}))
    return lines


def _overtrained(run: Mapping[str, Any]) -> list[str]:
    """What is paid for a smaller model, where that is much; the first fit is the one to prefer."""
    fits = [row for row in run.get("best_models") or [] if "factor" in row]
    if not fits or fits[0]["factor"]["value"] < MUCH or run["tokens"]["value"] < fits[0]["tokens"]["value"]:
        return []
    best = fits[0]
    factors = ", ".join(f"{row['factor']['value']:.3g} times ({row['fit']})" for row in fits if row["fit"] in SAID)
    size, data = human(best["parameters"]["value"], "parameters"), human(best["tokens"]["value"], "tokens")
    return [
        f"over-training: {factors} the compute of the best model that is as good; for this compute the best has {size} and sees {data}"
    ]


def _conventions(document: Mapping[str, Any]) -> list[str]:
    """FLOPs of a step and their share of the peak, by the names of those who count so."""
    rows = document.get("run", {}).get("conventions") or []
    if not rows:
        return []
    lines = ["", "FLOPs of a step as others count them:"]
    for row in rows:
        word = "HFU" if row["recomputes"] else "MFU"
        share = f"{word} {100 * row['utilization']['value']:.1f} %"
        lines.append(f"  {row['name']:<20} {human(row['flops']['value'], 'FLOP'):>16}  {share}  {row['text']}; leaves out {row['leaves_out']}   [{row['source']}]")  # fmt: skip
    return lines


def bill_lines(document: Mapping[str, Any]) -> list[str]:
    """Cost, energy, carbon, and buying against renting."""
    lines = [
        f"{term['name']}: {human(term['value'], term['unit'])}"
        for name in ("cost", "energy", "carbon")
        if (term := document.get(name))
    ]
    own = document.get("ownership")
    if own:
        shown = ", ".join(
            f"{own[name]['name']} {human(own[name]['value'], 'USD')}"
            for name in ("purchase", "own_month", "rent_month")
        )
        lines.append(f"{shown}: {when_it_pays(own['break_even_month'], worn_out=own['worn_out'])}")
        lines.append(f"{document['cost']['name']} by place: {'; '.join(map(_place, own['places']))}")
    return lines


def _place(place: Mapping[str, Any]) -> str:
    name = f"{place['where']} ({place['what']})"
    if "cost" not in place:
        return f"{name} {place['note']}"
    first = f", {human(place['first_payment'], 'USD')} of purchase before it" if place["first_payment"] else ""
    return f"{name} {human(place['cost']['value'], 'USD')} in {human(place['seconds'], 'seconds')}{first}"


def _behind(document: Mapping[str, Any], key: str) -> str:
    """What is said behind a figure."""
    if key == "step_time":
        return _speed(document)
    return _saved(document["storage"]) if key == "checkpoint" and "storage" in document else ""


def _saved(storage: Mapping[str, Any]) -> str:
    """Behind a checkpoint: its time, and what it is in other formats."""
    times = ", ".join(f"{human(storage[name]['value'], 'seconds')} to {name}" for name in ("write", "read"))
    formats = "; ".join(f"{each['name']} {human(each['value'], 'bytes')}" for each in storage["formats"])
    return f", {times}; {formats}"


def _speed(document: Mapping[str, Any]) -> str:
    """What is said behind the time of a step."""
    run = document["run"]
    low, high = run.get("step_time_band") or (0, 0)
    band = f" ({human(low, 'seconds')} to {human(high, 'seconds')})" if high else ""
    shares = ", ".join(f"{run[name]['name']} {100 * run[name]['value']:.1f} %" for name in ("mfu", "hfu"))
    return f"{band}, {human(run['tokens_per_second']['value'], 'tokens/s')}, {shares}, bound by {run['bound_by']}"


def _host(host: Mapping[str, Any]) -> str:
    shown = [f"{host['memory']['name']}: {human(host['memory']['value'], 'bytes')}"]
    if host["capacity_bytes"] is not None:
        shown.append(f"of {human(host['capacity_bytes'], 'bytes')}")
    if "storage" in host:
        shown.append(f"and {human(host['storage']['value'], 'bytes')} on NVMe")
    return " ".join(shown)


def _room(host: Mapping[str, Any], storage: Mapping[str, Any]) -> list[str]:
    """Cores and disk, of training alone."""
    if "disk" not in host:
        return []
    size = human(host["disk"]["value"], "bytes")
    count = storage["drives"]["value"] if "drives" in storage else 0
    drives = f" ({count:,.0f} drive{'' if count == 1 else 's'} of the nodes' size)" if count else ""
    lines = [f"disk for checkpoints and data: {size}{drives}, cores of a node: {host['cores']['value']:,.0f}"]
    if "dataset" in storage:
        ids, text = (human(storage[name]["value"], "bytes") for name in ("dataset", "dataset_text"))
        lines.append(f"data set: {ids} as token ids, {text} as plain text")
    return lines


def _advice(move: Mapping[str, Any]) -> str:
    freed = move["freed_bytes"]
    change = f"frees {human(freed, 'bytes')}" if freed >= 0 else f"uses {human(-freed, 'bytes')} more"
    also = "" if move["changes"] == "nothing" else f" (changes the {move['changes']})"
    took = move.get("step_seconds")
    time = f", a step takes {human(took, 'seconds')}" if took else ""
    if "tpot_seconds" in move:
        first = f", the first {human(move['ttft_seconds'], 'seconds')}" if "ttft_seconds" in move else ""
        time = f", a token takes {human(move['tpot_seconds'], 'seconds')}{first}, {human(move['tokens_per_second'], 'tokens/s')}"
    return f"  {move['text']:<60} {change}, needs {human(move['needed_bytes'], 'bytes')}{time}{_paid(move)}: fits{also}"


def _paid(move: Mapping[str, Any]) -> str:
    """Money of a million tokens, and how much more or less of it, and of time, a token takes: of time where that is not the same."""
    usd, time, money = (move.get(name) for name in ("usd_per_million_tokens", "time_change", "usd_change"))
    of_time = (
        ""
        if time is None or (money is not None and _percent(money) == _percent(time))
        else f", {_percent(time)} time a token"
    )
    if usd is None:
        return of_time
    return f"{of_time}, {human(usd, 'USD')} a million tokens{'' if money is None else f' ({_percent(money)})'}"


def _percent(part: float) -> str:
    """Of a hundred, with its sign; what is many times more, in times."""
    return f"x {1 + part:.3g}" if part >= 9 else f"{round(100 * part):+d} %"


def _nearest(near: Mapping[str, Any]) -> str:
    fits = near["smallest_machine"]
    where = f"as it is, it fits on {fits}" if fits else "it fits on no other machine that was tried either"
    return f"no change fits: the nearest, {near['text']}, still misses {human(near['missing_bytes'], 'bytes')}; {where}"
