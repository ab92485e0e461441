"""What every report says of its document: what was taken for granted, whose prices these are, notes, and all inputs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tonnage.documents.question import ASKED
from tonnage.language import say, say_as, worded
from tonnage.language.quantities import counted, human
from tonnage.render.inputs import unit_of
from tonnage.render.report.blocks import Block, Bullets, Facts, Figure, Paragraph, Section, Table
from tonnage.render.text import HIDDEN

Document = Mapping[str, Any]
GIVEN = (*ASKED, "search")
TOLD = frozenset(
    {"model", "parameters", "on", "accelerators", "price", "usable_memory", "error_band", "reserve_bytes", *HIDDEN}
)
NOTHING = (1, 0, False, None, "none", "")
FEW, MOST_NOTES = 10, 5  # on the page of the decision; the details have all
SHORT, LONG, SOURCE = 90, 200, 300  # letters of a reason, a note, and of where a price was read, on that page
TOKENS = ("tokens", "dataset_tokens")
UNKNOWN = "unknown"


def figure(term: Document | None, path: str = "") -> Figure:
    """A TERM as people read it; what nobody knows is said to be unknown."""
    return Figure(say(UNKNOWN)) if term is None else Figure(human(term["value"], term["unit"]), path)


def quantity(value: float | None, unit: str) -> str:
    return say(UNKNOWN) if value is None else human(value, unit)


def accelerators(count: int | None) -> str:
    """How many, in words; nothing where nobody says."""
    return counted(count, "accelerators") if count else ""


def basis(term: Document) -> str:
    """How a figure is known, in words."""
    return say_as("basis", "rule of thumb") if term["basis"] == "rule" else worded(term["basis"])


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def between(band: Sequence[float] | None, unit: str) -> str:
    """The two ends of an error band, in words; nothing where there is none."""
    return say("{low} to {high}", low=human(band[0], unit), high=human(band[1], unit)) if band else ""


def clipped(text: str, most: int) -> str:
    """A text for the first page: the details have the whole of it."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def assumed(question: Document) -> Block:
    """Inputs that nobody said and that matter, with their reasons."""
    defaults = [(name, entry) for name, entry in question.items() if entry["from"] not in GIVEN and name not in TOLD]
    plain = [(name, entry) for name, entry in defaults if entry["value"] not in NOTHING]
    rows = [(name, entered(name, entry["value"]), clipped(origin(entry), SHORT)) for name, entry in plain[:FEW]]
    left = len(defaults) - len(rows)
    if left:
        rows.append((say("and {count} more", count=left), "", say("all inputs are in the details")))
    return Facts(tuple(rows)) if rows else Paragraph(say("Every input was given."))


def inputs(question: Document) -> Section:
    """All inputs with where they come from."""
    rows = [
        (name, entered(name, entry["value"]), worded(str(entry["from"])), worded(str(entry.get("why", ""))))
        for name, entry in question.items()
    ]
    return Section(say("Inputs"), (Table((say("input"), say("value"), say("from"), say("why")), tuple(rows)),))


def entered(name: str, value: Any) -> str:
    """An input as it is read: bytes and seconds with their unit, names as they are."""
    if isinstance(value, list | tuple):
        return ", ".join(entered(name, item) for item in value)
    unit = "tokens" if name in TOKENS else unit_of(name, value)
    if isinstance(value, bool):
        return say("yes") if value else say("no")
    if isinstance(value, int | float):
        return human(value, unit) if unit else f"{value:,}" if isinstance(value, int) else f"{value:,.10g}"
    return worded(str(value)) if " " in str(value) else str(value)  # a word alone is the name of a choice


def origin(entry: Document) -> str:
    why = str(entry.get("why", ""))
    where = worded(str(entry["from"]))
    return say("{where}: {why}", where=where, why=worded(why)) if why else where


def notes(warnings: Iterable[str]) -> Block:
    """The first notes, shortened, for the first page."""
    sentences = [worded(warning) for warning in dict.fromkeys(warnings)]
    if not sentences:
        return Paragraph(say("None were found."))
    more = len(sentences) - MOST_NOTES
    rest = (say("and {count} more: see the details", count=more),) if more > 0 else ()
    return Bullets((*(clipped(warning, LONG) for warning in sentences[:MOST_NOTES]), *rest))


def all_notes(warnings: Iterable[str]) -> Section:
    sentences = tuple(worded(warning) for warning in dict.fromkeys(warnings))
    return Section(say("Notes"), (Bullets(sentences),) if sentences else (Paragraph(say("There are none.")),))


def price(question: Document) -> tuple[tuple[str, str], ...]:
    """Whose price was taken, and where it was read, and when."""
    entry = question.get("price")
    if entry is None:
        user_price = question.get("price_per_accelerator_hour")
        return ((say("given"), human(user_price["value"], "USD")),) if user_price else ()
    return ((worded(str(entry["value"])), worded(str(entry.get("why", "")))),)


def prices(rows: Iterable[tuple[str, str]]) -> Block:
    facts = tuple((name, "", clipped(why, SOURCE)) for name, why in dict.fromkeys(rows))
    return Facts(facts) if facts else Paragraph(say("No price is known of this machine, and none was given."))
