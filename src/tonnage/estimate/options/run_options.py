"""What is asked of a whole run, as people write it: how much training, until when, for how much money, and what may
fail.
"""

from datetime import date

from msgspec import Struct

from tonnage.estimate.inputs import Question
from tonnage.kernel.errors import InvalidInput, MissingDatum
from tonnage.kernel.message import Message, listed
from tonnage.kernel.units import human
from tonnage.question.amounts import LARGEST, count, deadline_seconds, duration, link_rate, money, positive, rate
from tonnage.question.subjects.run import RunOptions

__all__ = [
    "RunOptions",
    "Wanted",
    "count",
    "deadline_seconds",
    "duration",
    "link_rate",
    "money",
    "positive",
    "put_limits",
    "rate",
    "wanted",
]


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
    """Read and check; an error names the option, its value and what it could be. `price` [USD]: where no option
    gives one.
    """
    read = Wanted(
        tokens=count("tokens", o.tokens),
        epochs=positive("epochs", o.epochs),
        dataset_tokens=count("dataset_tokens", o.dataset_tokens),
        steps=count("max_steps", o.max_steps),
        deadline=deadline_seconds(o.deadline, today),
        budget=money("budget", o.budget),
        hours=positive("budget_accelerator_hours", o.budget_accelerator_hours),
        price=positive(
            "price_per_accelerator_hour",
            o.price_per_accelerator_hour if o.price_per_accelerator_hour is not None else price,
        ),
    )
    lengths = {"tokens": read.tokens, "epochs": read.epochs, "max_steps": read.steps}
    texts = [f"{name} {value:g}" for name, value in lengths.items() if value is not None]
    if len(texts) > 1:
        raise InvalidInput(
            "a run is as long as one of {@tokens}, {@epochs} and {@max_steps} says. Got {said} and {said2}.",
            said=listed(texts[:-1]),
            said2=texts[-1],
        )
    if read.budget is not None and read.hours is not None:
        raise InvalidInput(
            Message("{@budget} is in USD, {@budget_accelerator_hours} in hours: give one of them. Got both.")
        )
    if not texts and read.budget is None and read.hours is None:
        raise InvalidInput(
            Message(
                "how long a run takes needs one of {@tokens} (15T), {@epochs} with {@dataset_tokens}, "
                "{@max_steps}, or a {@budget}. Got none."
            )
        )
    if read.epochs is not None and read.dataset_tokens is None:
        raise InvalidInput(
            "{@epochs} {epochs:g} needs {@dataset_tokens}: how many tokens the data set has. Got none.",
            epochs=read.epochs,
        )
    if read.epochs is not None and read.epochs * (read.dataset_tokens or 0) > LARGEST:
        raise InvalidInput(
            "{@epochs} x {@dataset_tokens} may be at most {largest:.0e}. Got {epochs:g} x {dataset_tokens}.",
            largest=LARGEST,
            epochs=read.epochs,
            dataset_tokens=read.dataset_tokens,
        )
    if read.budget is not None and read.price is None:
        raise MissingDatum(
            "what a budget of {budget} buys needs a price, which no source gave: give "
            "{@price_per_accelerator_hour} in USD, or {@budget_accelerator_hours} instead of {@budget}.",
            budget=human(read.budget, "USD"),
        )
    return read


def put_limits(o: RunOptions, today: date | None, question: Question) -> None:
    """Note the length, the deadline and the budget of a run that cannot be estimated, read and checked."""
    values = {
        "tokens": count("tokens", o.tokens),
        "deadline_seconds": deadline_seconds(o.deadline, today),
        "budget": money("budget", o.budget),
        "budget_accelerator_hours": positive("budget_accelerator_hours", o.budget_accelerator_hours),
    }
    for name, value in values.items():
        if value is not None:
            question.put(name, value, "given")
