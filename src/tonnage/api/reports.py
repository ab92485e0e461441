"""What every answer of the Python face can do beside its own: reports, notebooks, rows, data frames."""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

from tonnage.kernel import frames
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import listed
from tonnage.kernel.term import rows_of

MAX_BITS = 10_000  # of a whole number; Python does not even print one of more than 4,300 digits


if TYPE_CHECKING:
    import pandas
    import polars


class Reporting:
    """An answer with reports. `command`: the command line that asks the same; "" where there is none."""

    __slots__ = ()
    command: str

    if TYPE_CHECKING:

        def to_dict(self) -> dict[str, Any]: ...

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Return the report as one HTML file, as --html: the decision on one page, then the details; or write it to
        `path`, and return None. Needs the extra `report`.
        """
        return _report(self, path, "html")

    def to_markdown(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Return the report as Markdown, as --markdown, or write it to `path`. Needs the extra `report`."""
        return _report(self, path, "markdown")

    def _repr_html_(self) -> str | None:
        from tonnage.render.report import notebook_of

        return notebook_of(self.to_dict()) if _has_reports() else None

    def _repr_markdown_(self) -> str | None:
        from tonnage.render.report import short_markdown_of

        return short_markdown_of(self.to_dict()) if _has_reports() else None


class Framed:
    """An answer with a table, as a data frame of pandas or polars."""

    __slots__ = ()

    if TYPE_CHECKING:

        def _frame_rows(self, names: Sequence[str]) -> Sequence[Mapping[str, Any]]: ...

    @overload
    def frame(self, *names: str, to: Literal["pandas"]) -> "pandas.DataFrame": ...

    @overload
    def frame(self, *names: str, to: Literal["polars"]) -> "polars.DataFrame": ...

    @overload
    def frame(self, *names: str, to: None = None) -> Any: ...

    def frame(self, *names: str, to: str | None = None) -> Any:
        """Return the answer's table as a data frame of pandas or polars.

        Of train and serve: the parts of memory on the fullest GPU, as `parts` (part, level, bytes, gib, share, ...),
        or with names of breakdowns, such as "step_time" and "run", every figure of them, as `rows`. Of plans,
        placements and frontiers: an entry a row; of comparisons: a cell a row, `names` being columns.

        `to`: "pandas" or "polars"; without it the one that your program has imported, else the one that is installed.
        Raises InvalidInput where neither is: `pip install 'tonnage[notebook]'`.
        """
        return frames.frame(self._frame_rows(names), self._frame_kinds(names), to=to)

    def to_polars(self, *names: str) -> "polars.DataFrame":
        """Return `frame(*names, to="polars")`. Needs polars."""
        return self.frame(*names, to="polars")

    def to_pandas(self, *names: str) -> "pandas.DataFrame":
        """Return `frame(*names, to="pandas")`. Needs pandas."""
        return self.frame(*names, to="pandas")

    def _frame_kinds(self, names: Sequence[str]) -> Mapping[str, frames.Kind] | None:
        """What the columns hold; None: read off the values."""
        return None


class Reported(Framed, Reporting):
    """An answer with reports, and with its figures as rows and data frames."""

    __slots__ = ()

    def rows(self, *names: str) -> list[dict[str, Any]]:
        """Return every figure as a dictionary: path, name, value, unit, basis, formula, text, source.

        `names`: of breakdowns, such as "memory" and "step_time"; all of them where none is said.
        """
        return list(_rows(self.to_dict(), names))

    def _frame_rows(self, names: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        return self.rows(*names)


class Tabled(Reported):
    """An answer that is a list: `rows` are its entries, each value in a cell of its own."""

    __slots__ = ()
    listed: ClassVar[tuple[str, ...]]

    def rows(self, *names: str) -> list[dict[str, Any]]:
        """Return a dictionary for each entry.

        `names`: of the lists that the document has, such as "plans"; the first that is not empty where none is said.
        """
        document = self.to_dict()
        for name in names:
            if not isinstance(name, str):
                raise InvalidInput(
                    "a list is given by its name, and several one after the other. Got {name}.", name=shown(name)
                )
            if name not in self.listed:
                from tonnage.kernel.registry import unknown

                raise unknown("list", name, self.listed)
            if option := self._unasked(name, document):
                raise InvalidInput(
                    "{name} was not asked for, and an empty list would say that there is none: ask with {option}=True.",
                    name=name,
                    option=option,
                )
        chosen = names or tuple(name for name in self.listed if document[name])[:1]
        return [frames.flat(row) for name in chosen for row in document[name] or ()]

    def _unasked(self, name: str, document: Mapping[str, Any]) -> str:
        """The option that asks for a list, where it was not given and the list was therefore not made."""
        return ""


def _has_reports() -> bool:
    """Whether Jinja2 is installed. Without it a notebook shows an answer as its text."""
    from tonnage.render.report import check_extra

    try:
        check_extra()
    except InvalidInput:
        return False
    return True


def _report(answer: Reporting, path: str | os.PathLike[str] | None, form: str) -> str | None:
    from tonnage.render.report import html_of, markdown_of, write_report

    if path is None:
        renderer = html_of if form == "html" else markdown_of
        return renderer(answer.to_dict(), command=answer.command)
    write_report(answer.to_dict(), path, form, command=answer.command)
    return None


def _rows(document: Mapping[str, Any], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    for name in names:
        if not isinstance(name, str):
            raise InvalidInput(
                "a breakdown is given by its name, and several one after the other. Got {name}.", name=shown(name)
            )
        if not any(_terms(document.get(name), name)):
            known = [key for key, value in document.items() if any(_terms(value, key))]
            raise InvalidInput("{name} is no breakdown of this answer: it has {known}.", name=name, known=listed(known))
    for name, value in document.items():
        if not names or name in names:
            for path, term in _terms(value, name):
                yield from rows_of(term, path)


def _terms(value: Any, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """TERMs of a document with their paths; what lies in a TERM belongs to it."""
    if isinstance(value, Mapping) and "combine" in value:
        yield path, value
    elif isinstance(value, Mapping | list):
        for name, child in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _terms(child, f"{path}/{name}")


def command_of(verb: str, /, *alone: Any, reserve_bytes: Any = 0, **options: Any) -> str:
    """The command line of a call: what it asks, said in words.

    >>> command_of("train", "llama-3.1-8b", on="8xh100", tensor_parallel_size=2, sequence_parallel=False)
    'tonnage train llama-3.1-8b --on 8xh100 --tensor-parallel-size 2 --no-sequence-parallel'
    """
    settings = {**options, "reserve": _whole(reserve_bytes)} if reserve_bytes else options
    words = ["tonnage", *verb.split(), *(_text(item) for item in alone if item is not None)]
    for name, value in settings.items():
        words += _option(name.replace("_", "-"), value)
    return shlex.join(words)


def _whole(value: Any) -> Any:
    """Floats as the whole numbers that --reserve takes; of several each, and what is no number as it is."""
    if isinstance(value, list | tuple):
        return [_whole(item) for item in value]
    return round(value) if isinstance(value, float) and isfinite(value) else value


def _option(flag: str, value: Any) -> list[str]:
    if value is None or (isinstance(value, str | list | tuple) and not value):
        return []
    if isinstance(value, bool):
        return [f"--{flag}" if value else f"--no-{flag}"]
    if isinstance(value, list | tuple) and all(isinstance(item, bool) for item in value):
        return [word for item in value for word in _option(flag, item)]
    if isinstance(value, Mapping):
        return [word for name, item in value.items() for word in (f"--{flag}", f"{name}={_text(item)}")]
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise InvalidInput("{flag} is a number out of range. Got {value}.", flag=flag, value=shown(value))
    return [f"--{flag}", _text(value)]


def _text(value: Any) -> str:
    """A value as a command line has it: a Model or a Cluster by its name."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, str):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Sequence):
        texts = ["own" if item is None else _text(item) for item in value]
        return (";" if any("," in text for text in texts) else ",").join(texts)  # as `tonnage compare` reads them
    return str(getattr(value, "name", value))
