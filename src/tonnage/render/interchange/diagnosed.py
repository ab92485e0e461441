"""The short text of a diagnosis: phase and cause, lines of the log with their numbers, fixes."""

from collections.abc import Sequence

from msgspec import UNSET

from tonnage.documents.document import builtins
from tonnage.documents.interchange.diagnose import DiagnosisDocument, EvidenceDocument, FixDocument
from tonnage.language import say, say_as, worded
from tonnage.language.quantities import human
from tonnage.render.brief.answer import SERVING, TRAINING
from tonnage.render.brief.layout import MAX_LINES, Column, Page, Runs
from tonnage.render.brief.numbers import gib, seconds_column
from tonnage.render.brief.words import ASSUMED, FEWER_ASSUMED, NEXT, NOTE, ONE_FIX, TWO_FIXES, add_notes, assumed

MOST_LINES, MOST_FIXES, LONGEST = 5, 6, 150
FEWER_LINES, FEWER_FIXES, FIGURES = 92, 86, 82
EVERYTHING = 10_000  # lines of the long text
# Numbers that are shown, and what they are called.
NAMES = {
    "tried": "asked for",
    "free": "free",
    "total": "GPU",
    "allocated": "allocated by PyTorch",
    "reserved_but_unallocated": "reserved, unallocated",
    "in_use_by_this_process": "this process",
    "in_use_by_other_processes": "other processes",
    "weights": "weights",
    "weights_and_outside_pytorch": "weights and memory outside PyTorch",
    "activations": "activations",
    "kv_cache": "KV cache",
    "available_kv": "left for the KV cache",
    "needed_kv": "KV cache needed",
    "cuda_graphs": "CUDA graphs",
    "outside_pytorch": "outside PyTorch",
    "wanted": "needed",
    "peak_allocated": "peak allocated",
    "peak_reserved": "peak reserved",
    "weights_and_optimizer": "weights and optimizer",
    "in_use_on_host": "in use on the host",
}


def diagnosis_text(document: DiagnosisDocument, width: int, *, verbose: bool = False) -> list[Runs]:
    """The lines of a diagnosis, at most 24; `verbose`: every line and number."""
    return diagnosis_page(document, width, verbose=verbose).lines(EVERYTHING if verbose else MAX_LINES)


def diagnosis_page(document: DiagnosisDocument, width: int, *, verbose: bool = False) -> Page:
    page = Page(width)
    page.verdict(worded(document.text), "bad")
    page.dim(_subject(document))
    page.blank()
    _add_lines(page, document.evidence, verbose)
    if figures := _figures(document):
        page.field("figures", figures, drop=FIGURES)
    _add_estimate(page, document)
    page.blank()
    _add_fixes(page, document.fixes)
    if document.estimate is None and document.fixes:
        page.field("note", _without_numbers(document), drop=NOTE)
    add_notes(page, document.warnings)
    page.blank()
    page.field("more", say("`-v` every line and number, `--json` the document"), drop=NEXT)
    return page


def _subject(document: DiagnosisDocument) -> str:
    """The log, its line, the tool, the ranks."""
    first = document.evidence[0]
    text = say(
        "{log}, line {line}, {tool}",
        log=document.question["log"].value,
        line=first.line,
        tool=document.tool_name,
    )
    if len(document.ranks) == 1:
        return say("{text}, rank {rank}", text=text, rank=document.ranks[0])
    if document.ranks:
        ranks = ", ".join(document.ranks[:8]) + (", ..." if len(document.ranks) > 8 else "")
        text = say("{text}, ranks {ranks}", text=text, ranks=ranks)
    return text


def _add_lines(page: Page, evidence: Sequence[EvidenceDocument], verbose: bool) -> None:
    for at, line in enumerate(evidence if verbose else evidence[:MOST_LINES]):
        text = f"{line.line}: {_shortened(line.text, verbose)}"
        page.field("" if at else "log", text, drop=FEWER_LINES + at if at else 0)


def _shortened(text: str, verbose: bool) -> str:
    plain = text.replace("`", "'")
    return plain if verbose or len(plain) <= LONGEST else f"{plain[: LONGEST - 3]}..."


def _figures(document: DiagnosisDocument) -> str:
    """The numbers of the log."""
    found = {number.name: number for number in document.numbers if number.unit == "bytes"}
    return say(", ").join(
        say("{name} {size}", name=say(name), size=human(found[key].value, "bytes"))
        for key, name in NAMES.items()
        if key in found
    )


def _add_estimate(page: Page, document: DiagnosisDocument) -> None:
    estimate = document.estimate
    if estimate is None:
        return
    text = say(
        "{needed} of {usable} GiB usable",
        needed=gib(estimate.needed_bytes),
        usable=gib(estimate.usable_bytes),
    )
    if estimate.band:
        text = say(
            "{text} (error band {low} to {high})", text=text, low=gib(estimate.band[0]), high=gib(estimate.band[1])
        )
    page.field("estimate", text)
    question = builtins(document)["question"]
    flags = assumed(question, SERVING if "engine" in question else TRAINING)
    page.options("assumed", flags, fewer=FEWER_ASSUMED, drop=ASSUMED)


def _add_fixes(page: Page, fixes: Sequence[FixDocument]) -> None:
    """A table of those that have numbers, a line each of others."""
    if any(fix.basis == "estimated" for fix in fixes):
        forms = [_table(page, fixes[:most]) for most in (MOST_FIXES, 4, 2, 1)]
        page.block(forms[0], (FEWER_FIXES, forms[1]), (TWO_FIXES, forms[2]), (ONE_FIX, forms[3]))
        return
    for at, fix in enumerate(fixes):
        changes = _changes(fix)
        text = f"`{fix.text}`" if fix.in_flags else worded(fix.text)
        text = say("{fix}: {changes}", fix=text, changes=changes) if changes else text
        page.field("" if at else "fix", text, drop=FEWER_FIXES + at - len(fixes) if at > 1 else 0)


def _table(page: Page, fixes: Sequence[FixDocument]) -> list[Runs]:
    header = [Column(say_as("column", "fix"), "l")]
    cells = [[f"`{fix.text}`" if fix.in_flags else worded(fix.text)] for fix in fixes]
    if any(fix.basis == "estimated" for fix in fixes):
        header.append(Column("GiB"))
        for row, fix in zip(cells, fixes, strict=True):
            row.append("-" if fix.needed_bytes is UNSET else gib(fix.needed_bytes))
        times = seconds_column([fix.seconds or None for fix in fixes])
        if any(cell != "-" for cell in times):
            header.append(Column(say_as("column", "time"), keep=4))
            for row, cell in zip(cells, times, strict=True):
                row.append(cell)
    header.append(Column(say_as("column", "changes"), "l", keep=5))
    for row, fix in zip(cells, fixes, strict=True):
        row.append(say("nothing") if fix.changes == "nothing" else say(fix.changes))
    return page.table_lines(header, cells)


def _changes(fix: FixDocument) -> str:
    """Why a fix frees memory, and what it changes."""
    why = worded(fix.why) if fix.why else ""
    if fix.changes == "nothing":
        return why
    changes = say("changes the {name}", name=say(fix.changes))
    return say("{why}; {changes}", why=why, changes=changes) if why else changes


def _without_numbers(document: DiagnosisDocument) -> str:
    if document.cause in ("host memory", "shared memory", "another process"):
        return say("fixes by rule, without numbers")
    return say("fixes by rule: with `--model` and `--on` (or `--config`) they have numbers")
