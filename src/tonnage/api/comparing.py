"""The Python face of `tonnage compare`: lists of plain arguments in, one table out."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

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
from tonnage.api.reports import Reporting, command_of
from tonnage.architectures import Model
from tonnage.estimate.options import run_options as amounts
from tonnage.kernel import frames
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.reach import is_there
from tonnage.kernel.registry import unknown
from tonnage.question.subjects.money import OF_TRAINING
from tonnage.search import compare as search
from tonnage.search.compare.places import FEWEST
from tonnage.spec import Cluster
from tonnage.spelling import no_option

if TYPE_CHECKING:
    from typing import Unpack

    from tonnage.api.axes import Axes


# Amounts that may be texts, such as 1T and 30min: read, so that one amount is one value of an axis however it is
# written.
READ: Mapping[str, Callable[[str, object], Any]] = {
    "tokens": amounts.count,
    "dataset_tokens": amounts.count,
    "max_steps": amounts.count,
    "budget": amounts.money,
    "budget_accelerator_hours": amounts.positive,
    **dict.fromkeys(("storage_bandwidth", "storage_read_bandwidth", "host_bandwidth"), amounts.rate),
    **dict.fromkeys(
        ("checkpoint_seconds", "checkpoint_interval", "restart_seconds", "accelerator_mtbf"), amounts.duration
    ),
}


class Comparison(search.Comparison, Reporting, frozen=True, kw_only=True, eq=False):
    """A comparison as text, Markdown, CSV and Parquet. `rows`: a dictionary for each cell; `columns`: their names
    and units; `best`: of each column the numbers of the best rows; `to_dict()` is the document; `to_html()` the
    report.
    """

    command: str = ""

    def text(self, *, show: Sequence[str] = (), rows: bool = False, verbose: bool = False) -> str:
        """The table of the command line, at most 24 lines; with `verbose` all of it and every note (-v). `show`: its
        figures; `rows`: a line for each cell.
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
        """The table as Markdown, for a pull request; where `path` is written, the whole report."""
        if path is not None:
            return super().to_markdown(path)
        from tonnage.render.compare import comparison_markdown

        return comparison_markdown(self, show=show, rows=rows)

    def to_csv(self) -> str:
        """All columns, in base units and full precision."""
        from tonnage.render.compare_files import csv_text

        return csv_text(self)

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """All columns, typed, with the question in the file's metadata. Needs the extra `cluster`."""
        from tonnage.render.compare_files import write_parquet

        write_parquet(self, path)

    def to_arrow(self) -> Any:
        """A pyarrow.Table; `polars.from_arrow` takes it too. Needs the extra `cluster`."""
        from tonnage.render.compare_files import arrow_table

        return arrow_table(self)

    def to_polars(self, *names: str) -> Any:
        """A polars.DataFrame of all columns, or of those named. Needs polars."""
        return frames.to_polars(self.rows, self._kinds(names))

    def to_pandas(self, *names: str) -> Any:
        """A pandas.DataFrame of all columns, or of those named. Needs pandas."""
        return frames.to_pandas(self.rows, self._kinds(names))

    def figure(self, kind: str = "") -> Any:
        """A comparison is a table and has no picture: InvalidInput, which says what has."""
        raise InvalidInput(
            "a comparison is a table and has no figure {typed}: `to_html()` shows it, and `figure` is of "
            "an answer of train or serve.",
            typed=typed(kind),
        )

    def _kinds(self, names: Sequence[str]) -> dict[str, Any]:
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
    **options: "Unpack[Axes]",
) -> Comparison:
    """One table of answers: models x accelerators x everything else that is given as a list: `tonnage compare`.

    `models`, `on`: lists, or names with commas between. "8xh100" is as many as it says; of "h100" alone `count` says
    how many: a number, or the fewest that hold the model. Options are those of `serve`, or with `train` those of
    `train`; a list of values makes an axis, None in it is the option's default. `sort`: the figure that rows are
    ordered by, such as cost, tpot or speed, the best first. What is wrong with one cell is its verdict, what is wrong
    with all is raised.

    >>> made = compare("llama-3.1-8b", ["h100", "rtx-4090"], weights=[None, "fp8"], context=[8192, 32768])
    >>> len(made.rows), made.rows[0]["verdict"]
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
    raise no_option(name, ("on", "count", *search.options_of(verb)))
