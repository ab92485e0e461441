"""The Python face of `tonnage compare`: lists of plain arguments in, one table out."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from tonnage.api.arguments import (
    check_text,
    cluster_of,
    model_of,
    names_in_text,
    option_value,
    public,
    reserve_of,
    typed,
)
from tonnage.api.axes import Axes
from tonnage.api.reports import Framed, Reporting, command_of
from tonnage.architectures import Model
from tonnage.estimate.options import run_options as amounts
from tonnage.kernel import frames
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.reach import is_there
from tonnage.kernel.registry import unknown
from tonnage.question.owners import unknown_option
from tonnage.question.subjects.money import OF_TRAINING
from tonnage.search import compare as search
from tonnage.search.compare.places import FEWEST
from tonnage.spec import Cluster

if TYPE_CHECKING:
    import pyarrow


# Amounts that may be texts, such as 1T and 30min: read, so that one amount is one value of an axis however it is
# written.
READ: Mapping[str, Callable[[str, object], Any]] = {
    "tokens": amounts.count,
    "dataset_tokens": amounts.count,
    "max_steps": amounts.count,
    "budget": amounts.money,
    "budget_accelerator_hours": amounts.positive,
    **dict.fromkeys(("inter_node_bandwidth", "intra_node_bandwidth"), amounts.link_rate),
    **dict.fromkeys(("storage_bandwidth", "storage_read_bandwidth", "host_bandwidth"), amounts.rate),
    **dict.fromkeys(
        ("checkpoint_seconds", "checkpoint_interval", "restart_seconds", "repair_seconds", "accelerator_mtbf"),
        amounts.duration,
    ),
}


class Comparison(search.Comparison, Framed, Reporting, frozen=True, kw_only=True, eq=False):
    """A table of answers, a cell a row: `rows()` as dictionaries, `frame()`, text, Markdown, CSV, Parquet, report.

    `columns`: their names, units and which way is better; `best`: of each column the numbers of the best rows;
    `counts`: the number of cells with each verdict; `status`: that of the best cell; `to_dict()` is the document.
    """

    command: str = ""

    def text(self, *, show: Sequence[str] = (), rows: bool = False, verbose: bool = False) -> str:
        """Return the table of the command line, at most 24 lines; with `verbose` all of it and every note (-v).

        `show`: its figures; `rows`: a line for each cell.
        """
        if not verbose:
            from tonnage.render.brief.compare import comparison_text
            from tonnage.render.brief.layout import plain_text

            return plain_text(lambda width: comparison_text(self, width, show=show, rows=rows))
        from tonnage.render.compare import comparison_lines

        return "\n".join(comparison_lines(self, show=show, rows=rows))

    def to_markdown(
        self, path: str | os.PathLike[str] | None = None, *, show: Sequence[str] = (), rows: bool = False
    ) -> str | None:
        """Return the table as Markdown, for a pull request; where `path` is written, the whole report."""
        if path is not None:
            return super().to_markdown(path)
        from tonnage.render.compare import comparison_markdown

        return comparison_markdown(self, show=show, rows=rows)

    def to_csv(self) -> str:
        """Return all columns as CSV, in base units and full precision."""
        from tonnage.render.compare_files import csv_text

        return csv_text(self)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write all columns as Parquet, typed, with the question in the file's metadata. Needs the extra `cluster`."""
        from tonnage.render.compare_files import write_parquet

        write_parquet(self, path)

    def to_arrow(self) -> "pyarrow.Table":
        """Return a pyarrow.Table; `polars.from_arrow` takes it too. Needs the extra `cluster`."""
        from tonnage.render.compare_files import arrow_table

        return arrow_table(self)

    def _frame_rows(self, names: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        return self.rows()

    def figure(self, kind: str = "") -> Any:
        """A comparison is a table and has no picture: InvalidInput, which says what has."""
        raise InvalidInput(
            "a comparison is a table and has no figure {typed}: `to_html()` shows it, and `figure` is of "
            "an answer of train or serve.",
            typed=typed(kind),
        )

    def _frame_kinds(self, names: Sequence[str]) -> Mapping[str, frames.Kind]:
        kinds = {column.name: column.kind for column in self.columns}
        for name in names:
            if not isinstance(name, str):
                raise InvalidInput(
                    "a column is given by its name, and several one after the other. Got {typed}.", typed=typed(name)
                )
            if name not in kinds:
                raise unknown("column", name, kinds)
        return {name: kinds[name] for name in names} if names else kinds

    def __str__(self) -> str:
        return self.text()


@public
def compare(
    models: str | os.PathLike[str] | Model | Sequence[str | os.PathLike[str] | Model],
    on: str | Cluster | Sequence[str | Cluster],
    *,
    train: bool = False,
    count: int | str | Sequence[int | str] = FEWEST,
    sort: str = "",
    **options: Unpack[Axes],
) -> Comparison:
    """Return one table of answers: models x machines x everything else that is given as a list: `tonnage compare`.

    models, on: a name, names with commas between, or a list; "8xh100" is as many as it says, of "h100" alone `count`
        says how many
    train: compare training runs (default: False, served models)
    count: GPUs of a machine that is named without a number: a number, a list of them, or "fewest", those that hold the
        model (default)
    sort: the figure that rows are ordered by, the best first, such as cost, tpot or speed
    options: those of `serve`, with `train` those of `train`; a list of values makes an axis, None in it is the default

    Returns a Comparison: `rows()`, a dictionary for each cell, with `verdict` and `reason`; `frame()`. What is wrong
    with one cell is its verdict; what is wrong with all is raised, as by `train`.

    >>> table = tonnage.compare("llama-3.1-8b", ["h100", "rtx-4090"], weights=[None, "fp8"], context=[8192, 32768])
    >>> len(table.rows()), table.rows()[0]["verdict"]
    (8, 'fits')
    """
    verb, sort = "train" if train else "serve", check_text("sort", sort)
    command = command_of(
        "compare", models, on=on, train=train or None, count=None if count == FEWEST else count, sort=sort, **options
    )
    axes = [search.axis("model", _models(models)), search.axis("on", names_in_text(on, "on"))]
    if count != FEWEST:
        axes.append(search.axis("count", [_counted(item) for item in _listed(count)]))
    for name, value in options.items():
        axes.append(search.axis(name, [_one_option(verb, name, item) for item in _listed(value)]))
    for machine in axes[1].values:
        cluster_of(machine)
    comparison = search.compare(verb, axes, lambda model, _: model_of(model), sort=sort)
    return Comparison(**{name: getattr(comparison, name) for name in comparison.__struct_fields__}, command=command)


def _models(value: Any) -> list[Any]:
    """A file whose name has a comma is one model."""
    is_file = isinstance(value, str) and "," in value and is_there(value)
    return [value] if is_file else names_in_text(value, "models")


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple | range) else [value]


def _counted(value: Any) -> Any:
    if value == FEWEST or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return value
    raise InvalidInput(
        "{@count} takes a number of accelerators, or {fewest!r}. Got {typed}.", fewest=FEWEST, typed=typed(value)
    )


def _one_option(verb: str, name: str, value: Any) -> Any:
    if name == "reserve_bytes":
        return reserve_of(value)
    if verb == "serve" and name in OF_TRAINING:
        raise InvalidInput("{name} is of a training run. Got {value}.", name=name, value=typed(value))
    for form in search.FORMS[verb]:
        if name in form.__struct_fields__:
            option_text = option_value(form, name, value)
            return READ[name](name, option_text) if name in READ and isinstance(option_text, str) else option_text
    raise unknown_option(name, ("on", "count", *search.options_of(verb)), verb)
