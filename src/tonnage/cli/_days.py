"""Days as options take them."""

from datetime import date

from tonnage.kernel.errors import InvalidInput, shown


def day(text: str, what: str) -> date:
    """A day of the calendar, as 2026-11-22."""
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(f"{what} must be a date such as 2026-11-22. Got {shown(text)}.") from None
