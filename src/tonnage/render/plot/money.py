"""Two lines in dollars over months: buying and renting, and where they cross."""

from typing import Any

from tonnage.documents.run import OwnershipDocument
from tonnage.estimate.money.ownership import months_and_lines, when_it_pays
from tonnage.kernel.term import Term
from tonnage.language import say, worded
from tonnage.language.quantities import human
from tonnage.render.palette import colour
from tonnage.render.plot.panel import Panel

BUY, RENT, EVEN = colour("c-weights"), colour("c-activations"), colour("ok")


def buy_or_rent(own: OwnershipDocument[Term]) -> Panel:
    """What is paid until each month, either way."""
    months, bought, rented, crossing = months_and_lines(own.purchase, own.own_month, own.rent_month, own.break_even)
    when = when_it_pays(own.break_even_month, worn_out=own.worn_out)
    traces: list[dict[str, Any]] = [
        _line(say("renting"), RENT, months, rented),
        _line(say("buying"), BUY, months, bought),
    ]
    notes: tuple[dict[str, Any], ...] = ()
    if crossing and own.break_even_month is not None:
        month, paid = crossing
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": say("break-even"),
                "x": [month],
                "y": [paid],
                "marker": {"size": 11, "color": EVEN},
                "hovertemplate": f"<b>{say('break-even')}</b><br>{_month(own.break_even_month)}"
                f"{say(', ')}{human(paid, 'USD')}<extra></extra>",
            }
        )
        notes = (
            {
                "x": month,
                "y": paid,
                "text": _month(own.break_even_month),
                "showarrow": True,
                "ax": -40,
                "ay": -34,
                "arrowcolor": EVEN,
            },
        )
    return Panel(
        name="ownership",
        title=say("Buying against renting"),
        says=say(
            (
                "Dollars paid until each month: {purchase} once and {own_month} a month, or {rent_month} a month "
                "of rent: {when}."
            ),
            **{name: human(getattr(own, name).value, "USD") for name in ("purchase", "own_month", "rent_month")},
            when=worded(when),
        ),
        traces=tuple(traces),
        x={"title": {"text": say("months")}, "rangemode": "tozero"},
        y={"title": {"text": say("USD paid by then")}, "rangemode": "tozero", "tickformat": "~s"},
        notes=notes,
        header=(say("figure"), "USD"),
        rows=tuple(
            (worded(getattr(own, name).name), human(getattr(own, name).value, "USD"))
            for name in ("purchase", "own_month", "rent_month", "own_hour")
        ),
    )


def _line(name: str, of_line: str, months: list[float], dollars: list[float]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": months,
        "y": dollars,
        "line": {"color": of_line, "width": 3},
        "customdata": [
            f"<b>{name}</b>{say(', ')}{_month(month)}<br>{human(paid, 'USD')}"
            for month, paid in zip(months, dollars, strict=True)
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _month(number: float) -> str:
    return say("month {number}", number=number if isinstance(number, int) else f"{number:.3g}")
