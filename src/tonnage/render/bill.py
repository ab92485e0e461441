"""Money, energy and carbon of an answer, as lines of text."""

from collections.abc import Mapping
from typing import Any

from tonnage.estimate.money.ownership import when_it_pays
from tonnage.language import say, worded
from tonnage.language.quantities import human


def named(term: Mapping[str, Any]) -> str:
    """A figure with its name."""
    return f"{worded(term['name'])}{say(': ')}{human(term['value'], term['unit'])}"


def bill_lines(document: Mapping[str, Any]) -> list[str]:
    """Cost, energy, carbon, and buying against renting."""
    lines = [named(term) for name in ("cost", "energy", "carbon") if (term := document.get(name))]
    own = document.get("ownership")
    if own:
        shown = say(", ").join(
            f"{worded(own[name]['name'])} {human(own[name]['value'], 'USD')}"
            for name in ("purchase", "own_month", "rent_month")
        )
        lines.append(f"{shown}{say(': ')}{worded(when_it_pays(own['break_even_month'], worn_out=own['worn_out']))}")
        places, cost = say("; ").join(map(_place, own["places"])), worded(document["cost"]["name"])
        lines.append(say("{cost} by place: {places}", cost=cost, places=places))
    return lines


def _place(place: Mapping[str, Any]) -> str:
    name = f"{worded(place['where'])} ({worded(place['what'])})"
    if "cost" not in place:
        return f"{name} {worded(place['note'])}"
    first = (
        say(", {first_payment} of purchase before it", first_payment=human(place["first_payment"], "USD"))
        if place["first_payment"]
        else ""
    )
    return say(
        "{name} {cost} in {seconds}{first}",
        name=name,
        cost=human(place["cost"]["value"], "USD"),
        seconds=human(place["seconds"], "seconds"),
        first=first,
    )
