"""What a sweep goes over: a YAML file, read and checked before anything runs. Every choice is an axis; the sweep is
their product.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from tonnage.estimate.money.bill import BillOptions
from tonnage.kernel.errors import InvalidInput, TonnageError, shown
from tonnage.kernel.message import Message, joined, listed
from tonnage.kernel.registry import unknown
from tonnage.search.sweep.choices import BLOCK_AXES, FORMS, INNER, check_words, option, sizes_of
from tonnage.search.sweep.models_and_clusters import clusters_of, models_of
from tonnage.user_files import read_text
from tonnage.user_files.yaml_text import LARGEST, line_of, load

CHUNK = 65_536  # plans of a chunk: a fifth of a second of work, a file of a few megabytes
MAX_CHUNK = 4_194_304
MAX_PLANS = 2**62  # plans: their numbers stay whole in 64 bits
BEST = 10
MONEY = ("provider", "price_kind", "region", "exchange_rate")
FIELDS = ("kind", "models", "on", "accelerators", "counts", "options", "vary", "keep", "money", "points", "chunk_plans")
_QUOTED = re.compile(r"'([^']+)'|\b([a-z]+_[a-z_]+)\b")
KEEPS = {"train": ("all", "fitting"), "serve": ("all", "pareto")}

Kind = Literal["train", "serve"]


class Axis(Struct, frozen=True):
    """An option and the values that it takes."""

    name: str
    values: tuple[Any, ...]


class Spec(Struct, frozen=True, kw_only=True):
    """A checked sweep. `outer`: options of which all plans of an array share one value; `inner`: sizes that vary within
    an array.

    `keep`: all, fitting, pareto or best; `best`: how many of each model, cluster and workload; `points`: of each
    frontier.
    """

    kind: Kind
    models: tuple[str, ...]
    clusters: tuple[str, ...]
    outer: tuple[Axis, ...]
    inner: tuple[Axis, ...]
    options: dict[str, Any]
    keep: str = "all"
    best: int = BEST
    money: dict[str, Any] = {}
    points: int = 24
    chunk_plans: int = CHUNK
    left_out: tuple[str, ...] = ()  # accelerators of `all` of which no such cluster is known

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Options that take several values, or sizes that were given: the columns that tell plans apart."""
        return (*self.outer, *self.inner)

    def digest(self) -> str:
        """The digest of a sweep: equal for equal sweeps, however the file was written."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()


def read(path: Path) -> Spec:
    """The sweep of a file. InvalidInput or UnknownName with all that is wrong: the line, the field, the value and the
    nearest valid choice.
    """
    document = load(path)
    if not isinstance(document, dict):
        raise InvalidInput(
            "{path} must hold fields, such as kind and models. Got {found}.", path=path, found=shown(document)
        )
    fields = {
        "on" if name is True else name: value for name, value in document.items()
    }  # YAML reads `on` as a truth value
    try:
        return parse(fields)
    except TonnageError as error:
        raise _in_file(path, _all_errors(fields) or [error]) from None


def _in_file(path: Path, errors: Sequence[TonnageError]) -> TonnageError:
    """The errors about a file as one, each with its line where a name that it quotes stands in the file."""
    text = read_text(path, LARGEST)
    located = []
    for error in errors:
        lines = (line_of(text, quoted or name) for quoted, name in _QUOTED.findall(str(error)))
        line = next((line for line in lines if line), 0)
        located.append(Message("line {line}: {error}", line=line, error=error) if line else str(error))
    if len(errors) == 1:
        return type(errors[0])(joined(": ", (path, located[0])))
    first = Message("{path} has {count} mistakes:", path=path, count=len(errors))
    return type(errors[0])(joined("\n  ", (first, *located)))


def _all_errors(fields: Mapping[Any, Any]) -> list[TonnageError]:
    """Everything that is wrong with these fields by themselves, in the order in which they are read."""
    errors: list[TonnageError] = []

    def attempt(check: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return check(*arguments)
        except TonnageError as error:
            errors.append(error)
            return None

    for name in fields:
        attempt(_check_field, name)
    kind = attempt(_kind, fields.get("kind", "train")) or "train"
    for check, of_field in ((clusters_of, "on"), (models_of, "models")):
        names = fields.get(of_field)
        if isinstance(names, list) and names:
            for name in names:
                attempt(check, {of_field: [name]})
        else:
            attempt(check, fields)
    for table, values_of in (("options", _one_value), ("vary", sizes_of)):
        for name, value in (attempt(_table, fields, table) or {}).items():
            for one in attempt(values_of, FORMS[kind], name, value) or ():
                attempt(check_words, name, one)
    attempt(_keep, fields.get("keep", "all"), kind)
    attempt(_money, fields)
    return errors


def _check_field(name: Any) -> None:
    if name not in FIELDS:
        raise unknown("field of a sweep", str(name), FIELDS)


def _one_value(form: tuple[type[Struct], ...], name: str, value: Any) -> tuple[Any, ...]:
    """The value of an option that does not vary."""
    return (option(form, name, value, "options"),)


def parse(fields: Mapping[Any, Any]) -> Spec:
    """The sweep of these fields."""
    for name in fields:
        _check_field(name)
    kind = _kind(fields.get("kind", "train"))
    clusters, left_out = clusters_of(fields)
    fixed, varied = _table(fields, "options"), _table(fields, "vary")
    form = FORMS[kind]
    axes: dict[str, tuple[Any, ...]] = {}
    for name, value in fixed.items():
        axes[name] = _one_value(form, name, value)
    for name, values_given in varied.items():
        if name in fixed:
            raise InvalidInput("{name} is in both options and vary: leave it out of one of them.", name=name)
        axes[name] = sizes_of(form, name, values_given)
    for name, values in axes.items():
        for value in values:
            check_words(name, value)
    _check_batch(axes)
    inner = tuple(Axis(name, axes[name]) for name in INNER[kind] if name in axes)
    ordered = sorted((name for name in axes if name not in INNER[kind]), key=lambda name: (name in BLOCK_AXES, name))
    outer = tuple(Axis(name, axes[name]) for name in ordered if len(axes[name]) > 1 or name in BLOCK_AXES)
    options = {
        name: values[0]
        for name, values in axes.items()
        if name in ordered and len(values) == 1 and name not in BLOCK_AXES
    }
    keep, best = _keep(fields.get("keep", "all"), kind)
    spec = Spec(
        kind=kind,
        models=models_of(fields),
        clusters=clusters,
        outer=outer,
        inner=inner,
        options=options,
        keep=keep,
        best=best,
        money=_money(fields),
        points=_whole(fields, "points", 24, 2, 100_000),
        left_out=left_out,
        chunk_plans=_whole(fields, "chunk_plans", CHUNK if kind == "train" else 32, 1, MAX_CHUNK),
    )
    _check_size(spec)
    return spec


def _kind(kind: Any) -> Kind:
    if kind not in KEEPS:
        raise unknown("kind of sweep", str(kind), KEEPS)
    return "serve" if kind == "serve" else "train"


def _table(fields: Mapping[Any, Any], name: str) -> dict[str, Any]:
    options = fields.get(name) or {}
    if not isinstance(options, dict) or not all(isinstance(key, str) for key in options):
        raise InvalidInput("{name} must hold options by their names. Got {found}.", name=name, found=shown(options))
    return options


def _check_batch(axes: Mapping[str, Any]) -> None:
    if "global_batch_size" in axes and "num_microbatches" in axes:
        raise InvalidInput(Message("{@global_batch_size} and {@num_microbatches} say the same: give one of them."))


def _keep(rule: Any, kind: Kind) -> tuple[str, int]:
    if isinstance(rule, dict) and set(rule) == {"best"}:
        return "best", _whole(rule, "best", BEST, 1, 100_000)
    if rule in KEEPS[kind]:
        return rule, BEST
    words = listed(KEEPS[kind])
    raise InvalidInput(
        "keep of a sweep of kind {kind} must be {words} or {{best: N}}. Got {said}.",
        kind=kind,
        words=words,
        said=shown(rule),
    )


def _money(fields: Mapping[Any, Any]) -> dict[str, Any]:
    money = _table(fields, "money")
    for name, value in money.items():
        if name not in MONEY:
            raise unknown("field of money", name, MONEY)
        if not isinstance(value, str):
            raise InvalidInput("money: {name} must be a text. Got {value}.", name=name, value=shown(value))
    from tonnage.catalogue.offers import parse_rates, provider_named, region_named
    from tonnage.catalogue.prices import KINDS

    options = BillOptions(**money)
    if options.price_kind is not None and options.price_kind not in KINDS:
        raise unknown("price_kind", options.price_kind, KINDS)
    provider_named(options.provider or "")
    region_named(options.region or "")
    if options.exchange_rate:
        parse_rates(options.exchange_rate, "exchange_rate")
    return money


def _whole(fields: Mapping[Any, Any], name: str, default: int, least: int, most: int) -> int:
    value = fields.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidInput(
            "{name} must be a whole number from {least:,} to {most:,}. Got {said}.",
            name=name,
            least=least,
            most=most,
            said=shown(value),
        )
    return value


def _check_size(spec: Spec) -> None:
    count = len(spec.models) * len(spec.clusters)
    for axis in spec.axes:
        count *= len(axis.values)
    if count > MAX_PLANS:
        raise InvalidInput(
            "a sweep has at most 2^62 plans. Got {count:.3g}: take values from the longest axis.", count=count
        )
