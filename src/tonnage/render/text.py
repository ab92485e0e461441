"""Answers as lines of text. A renderer reads Terms and documents and computes nothing but the layout."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tonnage.kernel.message import listed
from tonnage.kernel.part_names import TTFT
from tonnage.kernel.term import Term
from tonnage.language import say, worded
from tonnage.language.columns import left, right
from tonnage.language.columns import width as columns
from tonnage.language.quantities import counted, human
from tonnage.render.advice import advice_line, nearest_line
from tonnage.render.bill import bill_lines, named
from tonnage.render.brief.read import key_lines, read_line
from tonnage.render.brief.verdict import verdict_line
from tonnage.render.inputs import unit_of
from tonnage.render.prompts import prompt_words, with_prompts
from tonnage.render.serving import serving_ends, serving_lines

NAME_WIDTH = 46
INPUT_WIDTH = 28
MAX_REASON_LENGTH = 80  # the whole of it is in the document
# What a node makes of its children where it does not add them.
TOGETHER = {
    "max": "the largest of these",
    "product": "the product of these",
    "ratio": "the first of these over the second",
}
SUM = "the sum of these"
SPEED = ("mfu", "hfu", "tokens_per_second", "rollout_share")  # said behind the time of a step
MIN_COMPUTE_FACTOR = 1.1  # compute over that of the best model that is as good
ASKED = ("Besiroglu 2024", "Hoffmann 2022")  # fits of Chinchilla's law; the document has all
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
    """The verdict, the inputs that decided it, the breakdown, the next best move. `others`: breakdowns that `formulas`
    opens too;
    `opened`: those that are shown without it."""
    lines = [verdict_line(document), ""]
    if read := document.get("read"):
        lines += [read_line(read), *key_lines(read), ""]
    lines += inputs_lines(document["question"])
    lines += ["", *tree_lines(memory, depth=99 if formulas else 2, formulas=formulas)]
    lines += _figures(document)
    if "serving" in document:
        lines += serving_lines(document)
        for term in () if formulas else opened:
            lines += ["", *tree_lines(titled(term, document["question"]), depth=3)]
        lines += serving_ends(document)
    if formulas:
        lines += _conventions(document)
        for term in others:
            lines += ["", *tree_lines(titled(term, document["question"]), depth=99, formulas=True)]
    if document["advice"]:
        lines += ["", say("suggestions (re-estimated):")]
        lines += [advice_line(move, prompt_words(document["question"])) for move in document["advice"]]
    if near := document.get("nearest_miss"):
        lines += ["", nearest_line(near)]
    lines += [say("note: {what}", what=worded(warning)) for warning in document["warnings"]]
    return lines


def titled(term: Term, question: Mapping[str, Any]) -> Term:
    """The breakdown of TTFT, with the length of the prompts in its name; others unchanged."""
    return term.named(with_prompts(worded(term.name), question)) if term.name == TTFT else term


def tree_lines(term: Term, *, depth: int, formulas: bool = False) -> list[str]:
    """A breakdown, indented; with `formulas` each leaf shows its formula with the numbers put in, and its source.

    Zero entries are omitted, with all below them. Children are added up unless their parent says otherwise.
    """
    rows = list(_rows(term, depth, 0))
    width = max(NAME_WIDTH, *(columns(name) for name, _, _ in rows))
    return [
        f"{left(name, width)} {right(human(node.value, node.unit), 16)}  {why(node) if formulas else together}".rstrip()
        for name, node, together in rows
    ]


def _rows(term: Term, depth: int, level: int) -> Iterator[tuple[str, Term, str]]:
    """Indented name, node, and how the children that follow it make it up."""
    children = [child for child in term.children if child.value] if level < depth else []
    together = f"{say(TOGETHER[term.combine])}{say(':')}" if children and term.combine in TOGETHER else ""
    yield "  " * level + worded(term.name), term, together
    for child in children:
        yield from _rows(child, depth, level + 1)


def why(node: Term) -> str:
    """How a node's value came about, on one line."""
    if node.formula:
        source = f"{say(node.basis)}; {node.formula.name}; {worded(node.source)}"
        return f"= {node.formula.substituted(node.inputs)}   [{source}]"
    if node.method:
        by = say("by {procedure}", procedure=worded(str(node.method["procedure"])))
        return f"{by}   [{say(node.basis)}; {worded(node.source)}]"
    return f"({say(TOGETHER.get(node.combine, SUM))}; {say(node.basis)})"


def table_lines(rows: Iterable[Sequence[str]], header: Sequence[str]) -> list[str]:
    """Columns as wide as their widest cell; numbers to the right. The header is said in the current language."""
    header = list(map(say, header))
    body = [list(map(str, row)) for row in rows]
    widths = [max(columns(row[i]) for row in [header, *body]) for i in range(len(header))]
    numeric = [
        bool(body) and all(row[i][:1].isdigit() or row[i] in ("", "-") for row in body) for i in range(len(header))
    ]

    def line(row: Sequence[str]) -> str:
        cells = (
            right(cell, width) if is_number else left(cell, width)
            for cell, width, is_number in zip(row, widths, numeric, strict=True)
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
        unit = units.get(name) or unit_of(name, entry["value"])
        value = _shown(entry["value"]) if unit is None else quantity(entry["value"], unit)
        lines.append(f"  {left(name, width)} {left(value, 24)} {_origin(entry)}".rstrip())
    return lines


def quantity(value: float, unit: str) -> str:
    """With its unit; of "USD an hour" the money as money is written, and requests a second with separators."""
    if unit.startswith("USD "):
        return say("{usd} an hour", usd=human(value, "USD"))
    return say("{n} requests a second", n=f"{value:,.10g}") if unit == REQUESTS else human(value, unit)


def _origin(entry: Mapping[str, Any]) -> str:
    if entry["from"] == "file":
        return say("from {keys}", keys=listed(entry.get("keys", ()))) if entry.get("keys") else say("file")
    if entry["from"] == "given":
        return ""
    why = str(entry.get("why", ""))
    reason = worded(why)
    reason = reason if len(reason) <= MAX_REASON_LENGTH else f"{reason[: MAX_REASON_LENGTH - 3]}..."
    return f"{say(str(entry['from']))}{say(': ')}{reason}" if why else say(str(entry["from"]))


def _shown(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.10g}"
    return worded(str(value)) if " " in str(value) else str(value)  # a word alone is the name of a choice


def _figures(document: Mapping[str, Any]) -> list[str]:
    lines = ["", *_slopes(document)]
    for key in ("flops", "step_time", "traffic", "checkpoint"):
        if key in document:
            lines.append(f"{named(document[key])}{_behind(document, key)}")
    lines += [
        named(value)
        for name, value in document.get("run", {}).items()
        if isinstance(value, dict) and name not in (*SPEED, "meets_deadline")  # the first line says it
    ]
    lines += _overtrained(document.get("run", {}))
    lines += [] if "serving" in document else bill_lines(document)
    if "host" in document:
        lines.append(_host(document["host"]))
        lines += _room(document["host"], document.get("storage", {}))
    return lines


def _slopes(document: Mapping[str, Any]) -> list[str]:
    """What one more sequence or request, and one more token, add; no line where this was not estimated."""
    slopes = document.get("slopes")
    if slopes is None:
        return []
    sequence, token = human(slopes["bytes_per_sequence"], "bytes"), human(slopes["bytes_per_token"], "bytes")
    if "serving" in document:
        return [
            say(
                "one more request adds {sequence}, one more token of its context {token}, on the fullest GPU",
                sequence=sequence,
                token=token,
            )
        ]
    return [
        say(
            (
                "one more sequence in the micro-batch adds {sequence}, one more token in each sequence {token}, "
                "on the fullest GPU"
            ),
            sequence=sequence,
            token=token,
        )
    ]


def _overtrained(run: Mapping[str, Any]) -> list[str]:
    """What is paid for a smaller model, where that is much; the first fit is the one to prefer."""
    fits = [row for row in run.get("best_models") or [] if "factor" in row]
    if (
        not fits
        or fits[0]["factor"]["value"] < MIN_COMPUTE_FACTOR
        or run["tokens"]["value"] < fits[0]["tokens"]["value"]
    ):
        return []
    best = fits[0]
    factors = say(", ").join(
        say("{factor} times ({fit})", factor=f"{row['factor']['value']:.3g}", fit=row["fit"])
        for row in fits
        if row["fit"] in ASKED
    )
    size, data = human(best["parameters"]["value"], "parameters"), human(best["tokens"]["value"], "tokens")
    return [
        say(
            (
                "over-training: {factors} the compute of the best model that is as good; for this compute the "
                "best has {size} and sees {data}"
            ),
            factors=factors,
            size=size,
            data=data,
        )
    ]


def _conventions(document: Mapping[str, Any]) -> list[str]:
    """FLOPs of a step and their share of the peak, by the names of those who count so."""
    rows = document.get("run", {}).get("conventions") or []
    if not rows:
        return []
    lines = ["", say("FLOPs of a step as others count them:")]
    for row in rows:
        word = "HFU" if row["recomputes"] else "MFU"
        share = f"{word} {100 * row['utilization']['value']:.1f} %"
        leaves_out = say("leaves out {what}", what=worded(row["leaves_out"]))
        flops = right(human(row["flops"]["value"], "FLOP"), 16)
        lines.append(
            f"  {left(row['name'], 20)} {flops}  {share}  {worded(row['text'])}{say('; ')}{leaves_out}   "
            f"[{row['source']}]"
        )
    return lines


def _behind(document: Mapping[str, Any], key: str) -> str:
    """What is said behind a figure."""
    if key == "step_time":
        return _speed(document)
    return _saved(document["storage"]) if key == "checkpoint" and "storage" in document else ""


def _saved(storage: Mapping[str, Any]) -> str:
    """Behind a checkpoint: its time, and what it is in other formats."""
    write, read = (human(storage[name]["value"], "seconds") for name in ("write", "read"))
    formats = say("; ").join(
        f"{worded(format_size['name'])} {human(format_size['value'], 'bytes')}" for format_size in storage["formats"]
    )
    return say(", {write} to write, {read} to read; {formats}", write=write, read=read, formats=formats)


def _speed(document: Mapping[str, Any]) -> str:
    """What is said behind the time of a step."""
    run = document["run"]
    low, high = run.get("step_time_band") or (0, 0)
    band = say(" ({low} to {high})", low=human(low, "seconds"), high=human(high, "seconds")) if high else ""
    shares = say(", ").join(f"{worded(run[name]['name'])} {100 * run[name]['value']:.1f} %" for name in ("mfu", "hfu"))
    if "rollout_share" in run:
        rollout = say("rollout {share} %", share=f"{100 * run['rollout_share']['value']:.1f}")
        shares = say(", ").join((rollout, shares))
    return say(
        "{band}, {tokens_per_second}, {shares}, bound by {bound_by}",
        band=band,
        tokens_per_second=human(run["tokens_per_second"]["value"], "tokens/s"),
        shares=shares,
        bound_by=worded(run["bound_by"]),
    )


def _host(host: Mapping[str, Any]) -> str:
    shown = [named(host["memory"])]
    if host["capacity_bytes"] is not None:
        shown.append(say(" of {capacity_bytes}", capacity_bytes=human(host["capacity_bytes"], "bytes")))
    if "storage" in host:
        shown.append(say(" and {storage} on NVMe", storage=human(host["storage"]["value"], "bytes")))
    return "".join(shown)


def _room(host: Mapping[str, Any], storage: Mapping[str, Any]) -> list[str]:
    """Cores and disk, of training alone."""
    if "disk" not in host:
        return []
    size = human(host["disk"]["value"], "bytes")
    count = storage["drives"]["value"] if "drives" in storage else 0
    drives = say(" ({count} of the nodes' size)", count=counted(count, "drives")) if count else ""
    lines = [
        say(
            "disk for checkpoints and data: {size}{drives}, cores of a node: {cores}",
            size=size,
            drives=drives,
            cores=f"{host['cores']['value']:,.0f}",
        )
    ]
    if "dataset" in storage:
        ids, text = (human(storage[name]["value"], "bytes") for name in ("dataset", "dataset_text"))
        lines.append(say("data set: {ids} as token ids, {what} as plain text", ids=ids, what=text))
    return lines
