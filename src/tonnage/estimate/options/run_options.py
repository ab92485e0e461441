"""What is asked of a whole run, as people write it: how much training, until when, for how much money, and what may fail."""

import re
from collections.abc import Callable
from datetime import date
from math import isfinite

from msgspec import Struct

from tonnage.kernel.errors import InvalidInput, MissingDatum, OutOfRange, shown
from tonnage.kernel.units import DAY, human, parse_count, parse_number, parse_rate, parse_seconds, parse_usd

LARGEST = 10**18  # tokens, steps, USD, seconds: more than anybody will ever train, spend or wait for
OF_ANY_ANSWER = ("price_per_accelerator_hour", "storage_bandwidth", "storage_read_bandwidth")  # said of a step too
DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}")


class RunOptions(Struct, frozen=True, kw_only=True):
    """What was said about the run; None is the default, which the estimate chooses and explains.

    One of `tokens`, `epochs` of `dataset_tokens` and `max_steps` says how much is trained, or none with a budget, which is then spent.

    - tokens [tokens]: training tokens, such as 15T; or give epochs, or max_steps
    - epochs [epochs]: passes over the data set
    - dataset_tokens [tokens]: tokens of the data set
    - max_steps [steps]: optimizer steps
    - deadline [time]: 30d, 2w, or the last day, such as 2027-01-31: how many accelerators make it?
    - budget [USD]: money that may be spent, such as 100k: how many tokens does it buy?
    - budget_accelerator_hours [accelerator-hours]: accelerator-hours that may be spent
    - price_per_accelerator_hour [USD]: price of one accelerator for one hour
    - checkpoint_seconds [time]: time that training stands still for a checkpoint, such as 30s (default: its bytes / storage_bandwidth)
    - checkpoint_interval [time]: training between two checkpoints, such as 30min (default: Daly's optimum)
    - storage_bandwidth [bytes/s]: bytes a second that all accelerators together write, such as 20GB/s (default: 122 MB/s an accelerator, as for Llama 3)
    - storage_read_bandwidth [bytes/s]: bytes a second that all accelerators together read, such as 40GB/s (default: storage_bandwidth)
    - restart_seconds [time]: time from a failure until training goes on, such as 10min (default: 10 minutes and reading the checkpoint)
    - accelerator_mtbf [time]: mean time between failures of one accelerator with its share of node and network, such as 5y (default: 5.8 years, as Llama 3's H100)
    """

    tokens: int | str | None = None
    epochs: float | None = None
    dataset_tokens: int | str | None = None
    max_steps: int | str | None = None
    deadline: float | str | None = None
    budget: float | str | None = None
    budget_accelerator_hours: float | str | None = None
    price_per_accelerator_hour: float | None = None
    checkpoint_seconds: float | str | None = None
    checkpoint_interval: float | str | None = None
    storage_bandwidth: float | str | None = None
    storage_read_bandwidth: float | str | None = None
    restart_seconds: float | str | None = None
    accelerator_mtbf: float | str | None = None

    @property
    def stray(self) -> str:
        """An option that says something of a run that nothing asks for, or nothing."""
        if self.asked:
            return ""
        return next(
            (name for name in self.__struct_fields__ if name not in OF_ANY_ANSWER and getattr(self, name) is not None),
            "",
        )

    @property
    def asked(self) -> bool:
        """Whether anything says how much is trained; without it there is no run to estimate."""
        goals = (self.tokens, self.epochs, self.max_steps, self.budget, self.budget_accelerator_hours)
        return any(goal is not None for goal in goals)


class Wanted(Struct, frozen=True, kw_only=True):
    """The options read and checked: numbers in base units. At most one of tokens, epochs and steps is given."""

    tokens: int | None
    epochs: float | None
    dataset_tokens: int | None
    steps: int | None
    deadline: float | None
    budget: float | None
    hours: float | None
    price: float | None


def wanted(o: RunOptions, price: float | None, today: date | None) -> Wanted:
    """Read and check; an error names the option, its value and what it could be. `price` [USD]: where no option gives one."""
    read = Wanted(
        tokens=count("tokens", o.tokens), epochs=positive("epochs", o.epochs), dataset_tokens=count("dataset_tokens", o.dataset_tokens),
        steps=count("max_steps", o.max_steps), deadline=deadline_seconds(o.deadline, today), budget=money("budget", o.budget),
        hours=positive("budget_accelerator_hours", o.budget_accelerator_hours),
        price=positive("price_per_accelerator_hour", o.price_per_accelerator_hour if o.price_per_accelerator_hour is not None else price),
    )  # fmt: skip
    given = {"tokens": read.tokens, "epochs": read.epochs, "max_steps": read.steps}
    said = [f"{name} {value:g}" for name, value in given.items() if value is not None]
    if len(said) > 1:
        raise InvalidInput(
            f"a run is as long as one of tokens, epochs and max_steps says. Got {', '.join(said[:-1])} and {said[-1]}."
        )
    if read.budget is not None and read.hours is not None:
        raise InvalidInput("budget is in USD, budget_accelerator_hours in hours: give one of them. Got both.")
    if not said and read.budget is None and read.hours is None:
        raise InvalidInput(
            "how long a run takes needs one of tokens (15T), epochs with dataset_tokens, max_steps, or a budget. Got none."
        )
    if read.epochs is not None and read.dataset_tokens is None:
        raise InvalidInput(f"epochs {read.epochs:g} needs dataset_tokens: how many tokens the data set has. Got none.")
    if read.epochs is not None and read.epochs * (read.dataset_tokens or 0) > LARGEST:
        raise InvalidInput(
            f"epochs x dataset_tokens may be at most {LARGEST:.0e}. Got {read.epochs:g} x {read.dataset_tokens}."
        )
    if read.budget is not None and read.price is None:
        raise MissingDatum(
            f"what a budget of {human(read.budget, 'USD')} buys needs a price, which no source gave: give "
            "price_per_accelerator_hour in USD, or budget_accelerator_hours instead of budget."
        )
    return read


def deadline_seconds(text: float | str | None, today: date | None, name: str = "deadline") -> float | None:
    """Seconds that a deadline leaves: a time with its unit, or an ISO date, of which the whole day still counts."""
    if text is None:
        return None
    said = text.strip() if isinstance(text, str) else f"{text:g}"
    if DATE.fullmatch(said):
        return _until(said, today)
    if re.fullmatch(r"[-+0-9.,_eE]+", said):
        raise InvalidInput(
            f"{name} needs a unit, such as 30d or 2w, or is a date such as 2027-01-31. Got {shown(said)}."
        )
    seconds = parse_seconds(said, name)
    if not 0 < seconds <= LARGEST:
        raise InvalidInput(
            f"{name} must be more than 0, such as 30d or 2w, and at most {LARGEST:.0e} s. Got {shown(said)}."
        )
    return seconds


def _until(said: str, today: date | None) -> float:
    if today is None:
        raise TypeError("a deadline that is a date needs `today`")
    try:
        year, month, day = map(int, said.split("-"))
        last = date(year, month, day)
    except ValueError:
        raise InvalidInput(f"deadline is no day of the calendar; write it like {today}. Got {shown(said)}.") from None
    if last < today:
        raise InvalidInput(
            f"deadline must not be in the past: today is {today}. Got {shown(said)}. Nearest: {today}, or a time such as 30d."
        )
    return float(((last - today).days + 1) * DAY)


def positive(
    name: str, value: object, parse: Callable[[str, str], float] = parse_number, unit: str = ""
) -> float | None:
    """A number, or a text that `parse` reads, from above 0 to LARGEST: one range is said, whichever way it is missed."""
    if value is None:
        return None
    span = f"{name} must be more than 0 and at most {LARGEST:.0e}{unit}. Got {shown(value)}."
    try:
        read = parse(value, name) if isinstance(value, str) else _finite(name, value)
    except OutOfRange:
        raise InvalidInput(span) from None
    if not 0 < read <= LARGEST:
        raise InvalidInput(span)
    return read


def count(name: str, value: object) -> int | None:
    """A whole number of things from 1 on."""
    found = positive(name, value, parse_count)
    if found is not None and found != int(found):
        raise InvalidInput(f"{name} must be a whole number. Got {shown(value)}.")
    return None if found is None else int(found)


def duration(name: str, value: object) -> float | None:
    """A time of the options in seconds."""
    return positive(name, value, parse_seconds, " s")


def rate(name: str, value: object) -> float | None:
    """Bytes a second."""
    return positive(name, value, parse_rate)


def money(name: str, value: object) -> float | None:
    """US dollars."""
    return positive(name, value, parse_usd)


def _finite(name: str, value: object) -> float:
    """The value, unless it is no number at all: a list, a bool, NaN, infinity."""
    if not isinstance(value, int | float):
        raise InvalidInput(f"{name} must be a number, or a text with one. Got {shown(value)}.")
    if isinstance(value, bool) or (isinstance(value, float) and not isfinite(value)):
        raise InvalidInput(f"{name} must be a finite number. Got {shown(value)}.")
    return value
