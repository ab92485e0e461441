"""Many questions of Python at once: a table of them in, the same table with figures out."""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from tonnage.api.arguments import (
    check_served,
    cluster_of,
    model_of,
    option_value,
    public,
    reserve_of,
)
from tonnage.api.tables import Table, table_of
from tonnage.architectures import Model
from tonnage.estimate.load.options import LoadOptions
from tonnage.estimate.options.run_options import RunOptions
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.serving.options import ServingOptions
from tonnage.kernel.errors import InvalidInput, TonnageError, shown
from tonnage.kernel.frames import Kind
from tonnage.kernel.message import listed
from tonnage.question.option import types_of
from tonnage.question.owners import unknown_option
from tonnage.question.subjects.money import BillOptions
from tonnage.search.many.columns import SERVING, TRAINING, Columns
from tonnage.search.many.serving import ServingRow, serve_rows
from tonnage.search.many.training import TrainingRow, train_rows
from tonnage.spec import Cluster

if TYPE_CHECKING:
    from typing import Unpack

    from tonnage.api.options import ServeOptions, TrainOptions

AnyTable = TypeVar("AnyTable")
OWN = ("model", "on", "reserve_bytes")  # of a question, beside its options


@public
def train_many(
    table: AnyTable,
    *,
    model: str | os.PathLike[str] | Model | None = None,
    on: str | Cluster | None = None,
    reserve_bytes: float = 0,
    keep: Iterable[str] = (),
    **options: "Unpack[TrainOptions]",
) -> AnyTable:
    """Return the table with the figures of `train` beside each of its rows.

    `table`: a data frame of polars or pandas, a mapping of names to columns (lists, tuples, arrays; one value stands
    for all rows), or a list of mappings; what comes back is of the same kind, its own columns first, in the order of
    its rows. Columns are named as the arguments of `train` (model, on, micro_batch_size, ...); arguments here
    hold for all rows. A cell that is None, null or NaN is not given; 4096.0 is a whole number.
    `keep`: names of columns that are no options (an id, a note): they come back as they are. Any other column is
    InvalidInput, as is a name of an argument that is a column too.

    Columns of the answer, None where a row has no such figure, each the same number as in the answer of `train`:

    - fits (True, False, None: inside the error band), status (the exit status: 0 fits, 2 tight, 3 does not fit or
      misses its deadline or budget, 4 not enough is known, 64 bad input), error (why a row has no answer)
    - needed_bytes, usable_bytes, band_low_bytes, band_high_bytes [bytes]: of the fullest GPU
    - weights_bytes, gradients_bytes, optimizer_bytes, activations_bytes, temporary_bytes,
      communication_buffers_bytes, runtime_overhead_bytes [bytes]: parts of what is needed
    - step_seconds, step_seconds_low, step_seconds_high [seconds]; tokens_per_second; mfu, hfu [shares];
      bound_by (what the step waits for most)
    - step_usd [USD a step]; run_seconds, run_usd of rows with tokens, epochs, max_steps or a budget;
      usd_per_million_tokens

    A bad row has its `error` and status, and never takes others with it. Rows that differ in sizes alone (sequence
    length, micro-batch, micro-batches, tensor, context, expert and data ranks) are walked together as arrays. Rows
    with options of a whole run (tokens, deadline, budget, checkpoints, disks) or of machines that are bought are
    answered one by one: the same figures, more slowly.

    >>> rows = [{"micro_batch_size": 1}, {"micro_batch_size": 4}]
    >>> [row["fits"] for row in tonnage.train_many(rows, model="llama-3.1-8b", on="8xh100", recompute="full")]
    [True, True]
    """
    common = _Common(model, on, reserve_bytes, options)
    return _answered(
        table, common, keep, (TrainingOptions, RunOptions, BillOptions), _training_row, train_rows, TRAINING
    )


@public
def serve_many(
    table: AnyTable,
    *,
    model: str | os.PathLike[str] | Model | None = None,
    on: str | Cluster | None = None,
    reserve_bytes: float = 0,
    keep: Iterable[str] = (),
    **options: "Unpack[ServeOptions]",
) -> AnyTable:
    """Return the table with the figures of `serve` beside each of its rows.

    Tables, `keep`, cells, errors and the columns fits, status, error, needed_bytes, usable_bytes, band_low_bytes and
    band_high_bytes as for `train_many`; columns of the question are named as the arguments of `serve`. Besides:

    - weights_bytes, kv_cache_bytes, activations_bytes, communication_buffers_bytes, runtime_overhead_bytes [bytes]
    - kv_bytes_per_token, kv_bytes_per_request [bytes], before any sharding; max_concurrency [requests], which fit by
      the estimate, max_safe_concurrency at the high end of the error band; kv_capacity_tokens [tokens]
    - ttft_seconds, tpot_seconds, end_to_end_seconds [seconds]; tokens_per_second_per_user, output_tokens_per_second,
      total_tokens_per_second (prompts too) [tokens/s]; requests_per_second, largest_rate [requests/s]
    - usd_per_hour, of all machines; usd_per_million_tokens (prompts too), usd_per_million_output_tokens

    Loads that the same replica answers are found together as arrays. Rows with a service level (ttft, tpot), a
    simulation, a trace, prompts on replicas of their own, or machines that are bought are answered one by one: the
    same figures, more slowly.

    >>> tonnage.serve_many({"concurrency": [1, 8]}, model="llama-3.1-8b", on="h100", context=4096)["fits"]
    [True, True]
    """
    common = _Common(model, on, reserve_bytes, options)
    return _answered(table, common, keep, (ServingOptions, LoadOptions, BillOptions), _serving_row, serve_rows, SERVING)


class _Common(Struct, frozen=True, eq=False):
    """What holds for all rows."""

    model: Any
    on: Any
    reserve_bytes: Any
    options: Mapping[str, Any]

    @property
    def given(self) -> dict[str, Any]:
        """Name -> value, of what is given."""
        own = {"model": self.model, "on": self.on, "reserve_bytes": reserve_of(self.reserve_bytes) or None}
        return {name: value for name, value in (own | dict(self.options)).items() if value is not None}


Forms = tuple[type[Struct], type[Struct], type[Struct]]
Parts = dict[str, Any]  # of one row: model, on, reserve_bytes, and options as their structs have them


def _answered(
    table: Any,
    common: _Common,
    keep: Iterable[str],
    forms: Forms,
    row_of: Callable[..., Any],
    answer: Callable[[list[Any]], Columns],
    kinds: Mapping[str, Kind],
) -> Any:
    cells = table_of(table)
    asked = _asked(cells, common, _kept(cells, keep), forms, kinds)
    rows = _Rows(forms, row_of)
    for name, value in common.given.items():
        rows.meaning(name, value)  # what is wrong for all rows is wrong with the call
    found = answer([rows.of(dict(zip(asked, values, strict=True))) for values in zip(*asked.values(), strict=True)])
    found["error"] = [None if error is None else str(error) for error in found["error"]]
    return cells.with_figures(found, kinds)


def _kept(cells: Table, keep: Iterable[str]) -> tuple[str, ...]:
    """The names of columns that are no part of the question."""
    if not isinstance(keep, Iterable):
        raise InvalidInput("keep is a list of names of fields. Got {keep}.", keep=shown(keep))
    names = (keep,) if isinstance(keep, str) else tuple(keep)
    for name in names:
        if not isinstance(name, str) or name not in cells.columns:
            raise InvalidInput(
                "keep names columns of the table: {columns}. Got {name!r}.", columns=listed(cells.columns), name=name
            )
    return names


def _asked(
    cells: Table, common: _Common, kept: tuple[str, ...], forms: Forms, kinds: Mapping[str, Kind]
) -> dict[str, list[Any]]:
    """The columns of the question, with what holds for all rows."""
    for name in cells.columns:
        if name in kinds:
            raise InvalidInput("{name} is a column of the answer: give the table's own another name.", name=name)
    asked = {name: column for name, column in cells.columns.items() if name not in kept}
    known = dict.fromkeys((*OWN, *(name for form in forms for name in form.__struct_fields__)))
    for name in (*asked, *common.options):
        if name not in known:
            raise unknown_option(name, known, "serve" if ServingOptions in forms else "train")
    for name, value in common.given.items():
        if name in asked:
            raise InvalidInput(
                "{name} is given twice: as a column of the table, and for all rows. Give one of them.", name=name
            )
        asked[name] = [value] * cells.count
    for name in ("model", "on"):
        if name not in asked:
            raise InvalidInput("a table needs {name}: a column of it, or an argument for all rows.", name=name)
    return asked


class _Rows:
    """Makes rows of cells; what a cell means is found once for all cells that say the same."""

    def __init__(self, forms: Forms, row_of: Callable[..., Any]):
        self.forms, self.row_of = forms, row_of
        self.places = {name: form for form in forms for name in form.__struct_fields__}
        self._known: dict[tuple[str, Any, Any], Any] = {}

    def of(self, cells: Mapping[str, Any]) -> Any:
        """The row, or the TonnageError that `train` or `serve` raises for it."""
        try:
            reserve = self.meaning("reserve_bytes", cells.get("reserve_bytes"))
            options: dict[type[Struct], dict[str, Any]] = {form: {} for form in self.forms}
            for form in self.forms:
                for name, value in cells.items():
                    if value is not None and self.places.get(name) is form:
                        options[form][name] = self.meaning(name, value)
            model, on = self.meaning("model", cells["model"]), self.meaning("on", cells["on"])
            return self.row_of(model, on, *(form(**options[form]) for form in self.forms), reserve)
        except TonnageError as error:
            return error

    def meaning(self, name: str, value: Any) -> Any:
        """What a cell says, as its option has it; TonnageError where it cannot be."""
        key = (name, type(value), value if isinstance(value, str | int | float) else id(value))
        if key not in self._known:
            try:
                self._known[key] = self._read(name, value)
            except TonnageError as error:
                self._known[key] = error
        meaning = self._known[key]
        if isinstance(meaning, TonnageError):
            raise meaning
        return meaning

    def _read(self, name: str, value: Any) -> Any:
        if name == "reserve_bytes":
            return reserve_of(0 if value is None else value)
        if value is None:
            raise InvalidInput("this row has no {name}.", name=name)
        if name == "model":
            return model_of(value)
        if name == "on":
            return cluster_of(value)
        form = self.places[name]
        is_whole = types_of(form)[name] in (int, int | None)
        return option_value(form, name, int(value) if is_whole and _is_whole_number(value) else value)


def _is_whole_number(value: Any) -> bool:
    """Whether it is a float without a part: data frames have whole numbers so where some are missing."""
    return isinstance(value, float) and value.is_integer()


def _training_row(
    model: Model, cluster: Cluster, training: TrainingOptions, run: RunOptions, bill: BillOptions, reserve: int
) -> TrainingRow:
    return TrainingRow(model, cluster, training, run, bill, reserve)


def _serving_row(
    model: Model, cluster: Cluster, serving: ServingOptions, load: LoadOptions, bill: BillOptions, reserve: int
) -> ServingRow:
    check_served(bill)
    return ServingRow(model, cluster, serving, load, bill, reserve)
