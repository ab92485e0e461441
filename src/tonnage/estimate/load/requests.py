"""Requests that a replica is asked to answer: lengths and arrivals, drawn or read."""

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from tonnage.estimate.load.shape import check_load
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.formula import Number
from tonnage.spec import Load

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, np.dtype[Any]]
import io
from collections.abc import Iterator, Mapping
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

from tonnage.kernel.errors import shown
from tonnage.kernel.message import Message, listed
from tonnage.kernel.reach import allowed_file, called
from tonnage.kernel.units import counted
from tonnage.user_files import csv_text, json_text, read_text

JITTER = 0.05  # share of the mean by which lengths differ where no spread is given, so that users do not stay in step


class Requests(Struct, frozen=True, kw_only=True, eq=False):
    """Requests in the order in which they come: arrays with one entry each.

    `users`: how many there are who send the next one when an answer ends; None: each comes at its second of `arrival`.
    `cached`: tokens of each prompt that the engine has already; they take their place in the cache like the others.
    `note`: how a file was read.
    """

    arrival: "Numbers"
    input_tokens: "Numbers"
    output_tokens: "Numbers"
    cached: "Numbers"
    users: int | None = None
    note: str = ""

    def __len__(self) -> int:
        return len(self.input_tokens)


def requests_of(load: Load, count: int | None = None, seed: int = 0) -> Requests:
    """Requests as a benchmark client draws them: `count`, ten for each user if not given, as InferenceMAX does (10
    000 where they arrive by themselves). The same seed draws the same requests.
    """
    import numpy as np

    check_load(load)
    generator = np.random.default_rng(seed)
    if (load.concurrency is None) == (load.requests_per_second is None):
        raise InvalidInput(
            "a simulation needs either concurrency or requests_per_second. Got {concurrency} and "
            "{requests_per_second}.",
            concurrency=load.concurrency,
            requests_per_second=load.requests_per_second,
        )
    users = None if load.concurrency is None else int(load.concurrency)
    total = count or (10 * users if users else 10_000)
    longest_prompt, longest_answer, spread = int(load.input_tokens), int(load.output_tokens), load.spread
    if users is not None and users > 1 and not load.in_step and not spread:
        longest_prompt, longest_answer = (round(each * (1 + JITTER)) for each in (longest_prompt, longest_answer))
        spread = 2 * JITTER / (1 + JITTER)
    prompts = uniform_lengths(generator, longest_prompt, spread, total)
    return Requests(
        arrival=np.zeros(total)
        if users
        else gamma_arrivals(generator, load.requests_per_second, load.burstiness, total),
        input_tokens=prompts,
        output_tokens=uniform_lengths(generator, longest_answer, spread, total),
        cached=np.minimum(
            int(load.cached_tokens), prompts - 1
        ),  # the last token is computed in any case: it makes the first of the answer
        users=users,
    )


def uniform_lengths(generator: "np.random.Generator", longest: int, spread: float, count: int) -> "Numbers":
    """Whole numbers from (1 - spread) of the longest to the longest, at least 1."""
    return generator.integers(max(round(longest * (1 - spread)), 1), longest, count, endpoint=True)


def lognormal_lengths(generator: "np.random.Generator", mean: float, cv: float, count: int) -> "Numbers":
    """Whole numbers of this mean whose standard deviation is `cv` of it; as what people write, few are much longer
    than most.
    """
    import numpy as np

    variance = np.log1p(cv * cv)
    drawn = generator.lognormal(np.log(mean) - variance / 2, np.sqrt(variance), count)
    return np.maximum(np.rint(drawn), 1).astype(int)


def gamma_arrivals(generator: "np.random.Generator", rate: Number, burstiness: float, count: int) -> "Numbers":
    """Seconds of arrivals whose gaps have a mean of 1 / rate and a squared coefficient of variation of `burstiness`;
    0: evenly spaced.
    """
    import numpy as np

    if burstiness == 0:
        return np.arange(count) / rate
    return np.cumsum(generator.gamma(1 / burstiness, burstiness / rate, count))


# ---- Requests of a file: when each came, and how long its prompt and its answer are. CSV with a header, or JSON, an
# object
# a line.
#
# Known columns are ours (arrival_seconds, input_tokens, output_tokens, and cached_tokens), those of the Azure traces
# (TIMESTAMP, ContextTokens, GeneratedTokens), those of BurstGPT (Timestamp, Request tokens, Response tokens), and those
# of Mooncake (timestamp in milliseconds, input_length, output_length).

LARGEST_FILE = 512_000_000  # bytes
MOST_REQUESTS = 2_000_000  # a year of a busy replica; BurstGPT's first file has 1.4 million
MOST_FORMS = 100  # of lines of JSON whose form is remembered
LARGEST_COUNT = 2**53  # tokens: above it, floats skip whole numbers
_LONGEST_MOMENT = 100  # characters

# ours -> how others write it
_COLUMNS = {
    "arrival_seconds": ("arrival_seconds", "arrival", "timestamp", "arrived_at"),
    "input_tokens": ("input_tokens", "contexttokens", "request tokens", "num_prefill_tokens", "input_length"),
    "output_tokens": ("output_tokens", "generatedtokens", "response tokens", "num_decode_tokens", "output_length"),
    "cached_tokens": ("cached_tokens",),
}
_NEEDED = ("arrival_seconds", "input_tokens", "output_tokens")
# The other form that counts from a moment in another unit, and the one that writes requests without an answer.
_MOONCAKE = frozenset({"timestamp", "input_length", "output_length"})
_BURSTGPT = frozenset({"timestamp", "request tokens", "response tokens"})
MILLISECONDS = "timestamp, input_length and output_length are Mooncake's columns, whose times are milliseconds"


class _Form(Struct, frozen=True):
    """How a file writes requests: where each of our columns is found (its name, or its number), and whose form it
    is.
    """

    columns: dict[str, Any]
    is_mooncake: bool
    is_burstgpt: bool


def read_requests(path: Path | str) -> Requests:
    """The requests of a file, in order of arrival, from second 0 on. BurstGPT's failures, which have no answer, are
    left out; `note` says what was taken as something.
    """
    import numpy as np

    path = allowed_file(
        str(path), "a trace is one, so leave it out, or ask where a folder of models is read (--models)"
    )
    name = called(path)
    text = read_text(path, LARGEST_FILE)
    if text.count("\n") > MOST_REQUESTS:
        raise InvalidInput(
            "{name} has more than {most_requests:,} lines: take a part of it, such as its first {most_requests:,}.",
            name=name,
            most_requests=MOST_REQUESTS,
        )
    rows: list[tuple[float, int, int, int]] = []
    failed, milliseconds = 0, False
    for line, form, fields in (_json_rows if text.lstrip().startswith("{") else _csv_rows)(name, text):
        request = _request(fields, form, Message("{name}: line {line}", name=name, line=line))
        milliseconds = milliseconds or form.is_mooncake
        if request is None:
            failed += 1
        else:
            rows.append(request)
    if not rows:
        raise InvalidInput("{name}: no requests.", name=name)
    rows.sort(key=itemgetter(0))
    times, prompts, answers, cached_tokens = (np.array(column) for column in zip(*rows, strict=True))
    notes = [MILLISECONDS] if milliseconds else []
    if failed:
        notes.append(
            Message("{failed} of BurstGPT without an answer left out, which failed", failed=counted(failed, "requests"))
        )
    return Requests(
        arrival=times - times[0],
        input_tokens=prompts,
        output_tokens=answers,
        cached=cached_tokens,
        users=None,
        note="; ".join(notes),
    )


def _request(fields: tuple[object, ...], form: _Form, where: str) -> tuple[float, int, int, int] | None:
    """Arrival [seconds], prompt, answer and what is cached of the prompt; None of a request that failed. `fields`:
    in the order of `_COLUMNS`.
    """
    for name, value in zip(_NEEDED, fields, strict=False):
        if value is None or value == "":
            raise InvalidInput("{where}: {name} is missing.", where=where, name=name)
    arrival = _seconds(fields[0], where) / (1000 if form.is_mooncake else 1)
    prompt, answer = _count(fields[1], "input_tokens", where), _count(fields[2], "output_tokens", where)
    cached = 0 if fields[3] is None else _count(fields[3], "cached_tokens", where)
    if cached >= prompt > 0:
        raise InvalidInput(
            "{where}: {@cached_tokens} must be fewer than {@input_tokens}, {prompt}. Got {cached}.",
            where=where,
            prompt=prompt,
            cached=cached,
        )
    if form.is_burstgpt and not answer:
        return None
    if not prompt or not answer:
        name = "output_tokens" if prompt else "input_tokens"
        raise InvalidInput(
            "{where}: {name} must be at least 1: leave the request out, or count its one token. Got 0.",
            where=where,
            name=name,
        )
    return arrival, prompt, answer, cached


_Rows = Iterator[tuple[int, _Form, tuple[object, ...]]]


def _json_rows(name: str, text: str) -> _Rows:
    forms: dict[tuple[str, ...], _Form] = {}
    for line, written in enumerate(io.StringIO(text), start=1):
        if not written.strip():
            continue
        where = Message("{name}: line {line}", name=name, line=line)
        fields = json_text.parse(written.encode(), where)
        if not isinstance(fields, dict):
            raise InvalidInput("{where}: must be an object. Got {fields}.", where=where, fields=shown(fields))
        names = tuple(fields)
        form = forms.get(names) or _form(dict(zip(names, names, strict=True)))
        if len(forms) < MOST_FORMS:
            forms[names] = form
        yield line, form, tuple(fields.get(form.columns.get(column)) for column in _COLUMNS)


def _csv_rows(name: str, text: str) -> _Rows:
    table = csv_text.Rows(text, name)
    form = _form({column: number for number, column in enumerate(table.header)})
    missing = [column for column in _NEEDED if column not in form.columns]
    if missing:
        raise InvalidInput(
            "{name}: line 1: no column {missing} (also written {columns}). Got {header}.",
            name=name,
            missing=missing[0],
            columns=listed(_COLUMNS[missing[0]][1:]),
            header=shown(", ".join(table.header)),
        )
    places = [form.columns.get(column, len(table.header)) for column in _COLUMNS]
    width = max(len(table.header), *places) + 1
    pick = itemgetter(*places)
    for line, cells in table:
        yield line, form, pick(cells + [None] * (width - len(cells)))


def _form(places: Mapping[str, Any]) -> _Form:
    """The form that these names of columns tell."""
    by_name = {str(name).strip().lower(): place for name, place in places.items()}
    columns = {ours: by_name[name] for ours, names in _COLUMNS.items() for name in reversed(names) if name in by_name}
    return _Form(columns, by_name.keys() >= _MOONCAKE, by_name.keys() >= _BURSTGPT)


def _count(value: object, name: str, where: str) -> int:
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else -1.0
        if 0 <= number <= LARGEST_COUNT and number.is_integer():
            return int(number)
    except ValueError:
        pass
    raise InvalidInput(
        "{where}: {name} must be a whole number, 0 or more. Got {value}.",
        where=where,
        name=name,
        value=shown(value),
    )


def _seconds(value: object, where: str) -> float:
    """A number of seconds, or a moment: 2023-11-16 18:17:03.9799600 (Azure's have seven digits after the point)."""
    text = value.strip()[:_LONGEST_MOMENT] if isinstance(value, str) else ""
    try:
        is_number = type(value) in (int, float)
        number = float(text if isinstance(value, str) else value if is_number else -1)  # type: ignore[arg-type]
        if 0 <= number < 1e15:
            return number
    except ValueError:
        integer_part, _point, rest = text.partition(".")
        digits = len(rest) - len(rest.lstrip("0123456789"))
        try:
            moment = datetime.fromisoformat(
                f"{integer_part}.{rest[:digits][:6]:0<6}{rest[digits:]}" if digits else text
            )
            epoch = datetime(1970, 1, 1)  # noqa: DTZ001
            return (moment.replace(tzinfo=None) - epoch).total_seconds() - _offset(moment)
        except ValueError:
            pass
    raise InvalidInput(
        "{where}: arrival_seconds must be seconds, 0 or more, or a moment such as 2023-11-16 18:17:03.98. Got {value}.",
        where=where,
        value=shown(value),
    )


def _offset(moment: datetime) -> float:
    offset = moment.utcoffset()
    return offset.total_seconds() if offset else 0.0
