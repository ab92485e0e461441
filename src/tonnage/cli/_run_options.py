"""Options about a whole run, for the verbs that estimate one."""

from collections.abc import Callable
from typing import Any

from tonnage.cli._options import Option, Reader, number, word
from tonnage.estimate.options import run_options as r


def _read(check: Callable[[str, object], Any]) -> Reader:
    """The estimate's own reading of a text, which says its own range."""
    return lambda text, what: check(what, word(text, what))


count, amount, money = _read(r.count), _read(r.positive), _read(r.money)
duration, rate = _read(r.duration), _read(r.rate)


def timed(text: str, what: str) -> str:
    """A time as it was typed, such as 500ms; what is none is said here, where the option's name is known as it is typed."""
    duration(text, what)
    return text.strip()


def last_day(text: str, what: str) -> str:
    """A time as it was typed, or a day, which is counted from today by the estimate."""
    if not r.DATE.fullmatch(word(text, what)):
        r.deadline_seconds(text, None, what)
    return text.strip()


RUN_OPTIONS = (
    Option("tokens", "training tokens, such as 15T; or give epochs, or max_steps", count, unit="tokens"),
    Option("epochs", "passes over the data set", number, unit="epochs"),
    Option("dataset_tokens", "tokens of the data set", count, unit="tokens"),
    Option("max_steps", "optimizer steps", count, unit="steps"),
    Option("deadline", "30d, 2w, or the last day, such as 2027-01-31: how many accelerators make it?", last_day, unit="time"),
    Option("budget", "money that may be spent, such as 100k: how many tokens does it buy?", money, unit="USD"),
    Option("budget_accelerator_hours", "accelerator-hours that may be spent", amount, unit="accelerator-hours"),
    Option("price_per_accelerator_hour", "price of one accelerator for one hour", number, unit="USD"),
    Option("checkpoint_seconds", "time that training stands still for a checkpoint, such as 30s", duration, unit="time", default="its bytes / storage_bandwidth"),
    Option("checkpoint_interval", "training between two checkpoints, such as 30min", duration, unit="time", default="Daly's optimum"),
    Option("storage_bandwidth", "bytes a second that all accelerators together write, such as 20GB/s", rate, unit="bytes/s", default="122 MB/s an accelerator, as for Llama 3"),
    Option("storage_read_bandwidth", "bytes a second that all accelerators together read, such as 40GB/s", rate, unit="bytes/s", default="storage_bandwidth"),
    Option("restart_seconds", "time from a failure until training goes on, such as 10min", duration, unit="time", default="10 minutes and reading the checkpoint"),
    Option("accelerator_mtbf", "mean time between failures of one accelerator with its share of node and network, such as 5y", duration, unit="time", default="5.8 years, as Llama 3's H100"),
)  # fmt: skip
