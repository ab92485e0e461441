"""What a report of serving says of times, rates and prices."""

from collections.abc import Iterator, Mapping
from typing import Any

from tonnage.kernel.part_names import TTFT
from tonnage.language import say, worded
from tonnage.language.quantities import counted, human
from tonnage.render.prompts import both_limits, with_prompts
from tonnage.render.report.blocks import Cell, Table
from tonnage.render.report.common import between, figure
from tonnage.render.serving import NAMES, TIMES, TTFT_KEY, WAYS

Document = Mapping[str, Any]
BRIEF = ("ttft_seconds", "tpot_seconds", "tokens_per_second", "concurrency", "cost_per_million_tokens")


def served_facts(serving: Document, question: Document) -> Iterator[tuple[str, Cell, str]]:
    """What users see, and what a token costs."""
    for name in BRIEF:
        if name in serving:
            term = serving[name]
            band = serving.get(name.replace("_seconds", "_band")) if name.endswith("_seconds") else None
            label = worded(term["name"]) if term else say(TTFT)
            label = with_prompts(label, question) if name == TTFT_KEY else label
            note = between(band, "seconds")
            if name == "concurrency":
                label, note = say("requests that there is room for"), _asked(question)
                if safe := serving.get("safe_concurrency"):
                    both = both_limits(human(term["value"], "requests"), human(safe["value"], "requests"))
                    note = "; ".join(filter(None, (both, note)))
            yield label, figure(term, f"serving/{name}"), note
    if "service_level" in serving:
        level = serving["service_level"]
        met = say("met") if level["met"] else say("not met, bound by {limit}", limit=level["bound_by"].upper())
        limits = [
            f"{name.upper()} {human(level[f'{name}_limit_seconds'], 'seconds')}"
            for name in ("ttft", "tpot")
            if level.get(f"{name}_limit_seconds")
        ]
        yield say("service level"), met, ", ".join(limits)


def _asked(question: Document) -> str:
    """How many users there are, beside how many there is room for."""
    if "concurrency" not in question:
        return ""
    return say(
        "at once, of all replicas; asked about: {users}", users=counted(question["concurrency"]["value"], "users")
    )


def load_table(document: Document) -> Table:
    """One user alone beside the load that was asked about."""
    serving = document["serving"]
    rows: list[tuple[Cell, ...]] = []
    for name, alone, loaded in TIMES:
        if serving.get(alone) or serving.get(loaded):
            cells = [figure(serving[key], f"serving/{key}") if serving.get(key) else "" for key in (alone, loaded)]
            label = with_prompts(worded(name), document["question"]) if loaded == TTFT_KEY else worded(name)
            rows.append((label, *cells))
    return Table(("", say("one user alone"), say("under this load")), tuple(rows))


def percentiles(simulated: Document, question: Document) -> Table:
    """Times of all simulated requests."""
    rows: list[tuple[Cell, ...]] = [
        (
            with_prompts(worded(name), question) if key == "ttft" else worded(name),
            *(figure(simulated[key][way], f"serving/simulated/{key}/{way}") for way in WAYS),
        )
        for key, name in NAMES.items()
        if key in simulated
    ]
    return Table((say("simulated"), *WAYS), tuple(rows))
