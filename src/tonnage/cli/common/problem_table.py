"""All that is wrong with a command as one text: a table of inputs, what was read as what, and a right command."""

import shlex
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tonnage.cli.common.parser import Parser, columns
from tonnage.cli.common.problems import Problem, Problems, estimate_error, problems_of
from tonnage.documents.document import Problem as ProblemDocument
from tonnage.kernel.message import Message, listed, plain
from tonnage.language import current, say, say_as, worded
from tonnage.language.columns import left, width, wrapped
from tonnage.question.form import Form
from tonnage.question.naming import FLAG

HELP = "--help"
WIDEST, GAP = 120, 2
LONGEST_INPUT = 32  # columns
MAX_INPUT = 100  # characters of an input
LISTS = {"model": "tonnage models", "on": "tonnage accelerators"}


class Wrong(Struct, frozen=True):
    """What is wrong with a command of a verb; `command`: one that is right."""

    verb: str
    problems: tuple[Problem, ...]
    read: tuple[tuple[str, str], ...]
    command: str
    program: str

    @classmethod
    def of(cls, verb: str, parser: Parser, form: Form, words: Sequence[str]) -> "Wrong":
        problems = problems_of(parser, form, words)
        corrected = problems.corrected
        if len(problems.entries) > 1 and corrected:
            problems, corrected = _with_estimate(parser, problems, corrected)
        read = parser.translated(words).read
        command = shlex.join(("tonnage", verb, *corrected)) if corrected else ""
        return cls(verb, problems.entries, read, command, parser.prog)

    @property
    def suggestion(self) -> str:
        """The command to try: of one wrong input where one name alone may be meant."""
        return self.command if len(self.problems) > 1 or all(problem.sure for problem in self.problems) else ""

    def with_error(self, text: str, words: Sequence[str]) -> "Wrong":
        """The same with an error about a path, which only reading it shows, where none of the problems is that."""
        path = next((word for word in words if "/" in word and word in text), "")
        if not path or any(path in problem.input for problem in self.problems) or not self.problems:
            return self
        return replace(self, problems=(Problem(path, text), *self.problems), command="")

    @property
    def documents(self) -> list[ProblemDocument]:
        return [
            ProblemDocument(input=cut(problem.input), problem=plain(problem.problem), nearest=list(problem.nearest))
            for problem in self.problems
        ]


def _with_estimate(parser: Parser, problems: Problems, corrected: tuple[str, ...]) -> tuple[Problems, tuple[str, ...]]:
    """What an estimate of the corrected command would still refuse is wrong too."""
    error = estimate_error(parser, corrected)
    if error is None:
        return problems, corrected
    from tonnage.cli.common.named import as_typed

    text = as_typed(error, parser, corrected)
    flag = FLAG.search(text)
    at = next((at for at, word in enumerate(corrected) if flag and word.partition("=")[0] == flag[0]), None)
    typed = " ".join(corrected[at : at + 2]) if at is not None else (flag[0] if flag else "")
    return Problems((*problems.entries, Problem(typed, text)), problems.words), ()


def table_of(wrong: Wrong) -> Iterator[str]:
    """The lines that say all of it."""
    across = min(columns(), WIDEST)
    count = len(wrong.problems)
    yield say("error: ") + say("{count} inputs cannot be used; nothing was estimated", count=count)
    yield ""
    rows = [(say("input"), say("problem"), say("nearest"))]
    separator = ", " if current() == "en" else "、"
    rows += [
        (cut(problem.input), worded(problem.problem), separator.join(problem.nearest)) for problem in wrong.problems
    ]
    yield from _laid_out(rows, across)
    yield ""
    yield from _labelled(_lines_below(wrong), across)


def cut(text: str) -> str:
    """An input as a line of the table shows it."""
    return text if len(text) <= MAX_INPUT else f"{text[: MAX_INPUT - 3]}..."


def _lines_below(wrong: Wrong) -> Iterator[tuple[str, str]]:
    if wrong.read:
        pairs = (Message("{theirs} as {ours}", theirs=theirs, ours=ours) for theirs, ours in wrong.read)
        yield say("read as"), worded(listed(pairs))
    if wrong.command:
        yield say_as("label", "try"), wrong.command
    lists = [command for name, command in LISTS.items() if any(_is_of(each, name) for each in wrong.problems)]
    yield say_as("label", "more"), "  ".join([*lists, " ".join((wrong.program, HELP))])


def _is_of(problem: Problem, name: str) -> bool:
    return problem.input.startswith("--on") if name == "on" else not problem.input.startswith("-")


def _laid_out(rows: Sequence[tuple[str, str, str]], across: int) -> Iterator[str]:
    """The table, each column as wide as it needs to be, and what is too long on further lines."""
    widths = [max(width(row[at]) for row in rows) for at in range(3)]
    first = min(widths[0], LONGEST_INPUT)
    second = min(widths[1], max((across - first - 2 * GAP) * 3 // 5, across - first - 2 * GAP - widths[2]))
    third = max(across - first - second - 2 * GAP, 12)
    for row in rows:
        cells = [_wrapped(text, size) or [""] for text, size in zip(row, (first, second, third), strict=True)]
        for at in range(max(map(len, cells))):
            parts = [cell[at] if at < len(cell) else "" for cell in cells]
            line = left(parts[0], first + GAP) + left(parts[1], second + GAP) + parts[2]
            yield line.rstrip()


def _labelled(rows: Iterator[tuple[str, str]], across: int) -> Iterator[str]:
    named = list(rows)
    label = max(width(name) for name, _ in named) + GAP
    for name, text in named:
        parts = _command_lines(text, across - label) if text.startswith("tonnage ") else _wrapped(text, across - label)
        for at, part in enumerate(parts):
            yield (left(name if at == 0 else "", label) + part).rstrip()


def _command_lines(command: str, across: int) -> list[str]:
    """A command on several lines, each of which breaks before an option; several commands on a line each, where one
    line is too short.
    """
    if width(command) <= across:
        return [command]
    if "  " in command:
        return command.split("  ")
    lines = [""]
    for piece in command.replace(" --", "\n--").split("\n"):
        if lines[-1] and width(lines[-1]) + width(piece) + 3 > across:
            lines[-1] += " \\"
            lines.append(f"  {piece}")
        else:
            lines[-1] = f"{lines[-1]} {piece}".strip() if len(lines) == 1 else f"{lines[-1]} {piece}"
    return lines


def _wrapped(text: str, across: int) -> list[str]:
    if current() != "en":
        return wrapped(text, across)
    import textwrap

    return textwrap.wrap(text, across, break_on_hyphens=False)
