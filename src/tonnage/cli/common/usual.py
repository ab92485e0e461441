"""`--help` of a verb: the options that most people need, each on a line. `--help-all` has all of them."""

from collections.abc import Iterator

from tonnage.language import current, say, worded
from tonnage.language.columns import wrapped
from tonnage.question.form import Form
from tonnage.question.option import MODEL_AND_MACHINE, TITLES, Option, Usual

CONFIG = "--config FILE"
LABEL = 29  # columns of an option with its value
WIDEST = 120
# Options that say how an answer is shown, of those that a verb has: what stands for their value, and what they do.
OUTPUT = {
    "--json": ("[summary]", "one JSON document; summary: without its trees"),
    "--csv": ("", "all columns, in base units and full precision"),
    "--verbose": ("", "every figure and every input"),
    "--formulas": ("", "how each figure is computed"),
    "--html": ("FILE", "a one-page report that needs no network"),
}


def has_usual(form: Form | None) -> bool:
    """Whether any option of the form is declared usual."""
    return form is not None and any(option.usual for option in form.options.values())


def usual_help(form: Form, about: str, flags: frozenset[str], width: int) -> str:
    """The text of `--help`. `about`: what the verb answers, in words; `flags`: everything that can be typed."""
    width = min(width, WIDEST)
    verb = " ".join(("tonnage", form.verb, *(option.metavar for option in form.options.values() if option.alone)))
    lines = [
        say("usage: {verb} --on CLUSTER [options]", verb=verb),
        *_wrapped(about.partition("\n")[0], width),
    ]
    shown = [option for option in form.options.values() if option.usual and option.name not in form.searched]
    for title in TITLES:
        of_title = [(option, usual) for option in shown if (usual := option.usual) and usual.title == title]
        if of_title:
            lines.append(say(title))
        for option, usual in sorted(of_title, key=lambda pair: pair[1].place):
            lines += _option_lines(option, usual, width)
        if title == MODEL_AND_MACHINE and "--config" in flags:
            lines += _line(CONFIG, say("another tool's file or job, read as the question"), width)
    lines.append(say("Output"))
    for flag, (metavar, text) in OUTPUT.items():
        if flag in flags:
            name = f"-v, {flag}" if flag == "--verbose" else flag
            lines += _line(f"{name} {metavar}".rstrip(), say(text), width)
    lines += _wrapped(say("[ ]: default. --help-all: every option with its unit and default."), width)
    lines += _wrapped(say("Exit status: 0 fits, 2 tight, 3 does not fit, 4 not sure, 64 bad input."), width)
    if form.example:
        lines += _wrapped(say("Example: {command}", command=form.example), width)
    return "\n".join(lines) + "\n"


def _option_lines(option: Option, usual: Usual, width: int) -> Iterator[str]:
    default = option.default if usual.default is None else usual.default
    text = worded(usual.help) + (f" [{worded(default)}]" if default else "")
    name = usual.metavar if option.alone else f"{usual.flag or option.flag} {usual.metavar}".rstrip()
    yield from _line(name, text, width)


def _line(name: str, text: str, width: int) -> Iterator[str]:
    parts = _wrapped(text, width - LABEL - 2)
    first = parts[0] if parts else ""
    yield f"  {name:<{LABEL}}{first}" if len(name) < LABEL else f"  {name} {first}"
    yield from (" " * (LABEL + 2) + part for part in parts[1:])


def _wrapped(text: str, width: int) -> list[str]:
    if current() != "en":
        return wrapped(text, width)
    import textwrap

    return textwrap.wrap(text, max(width, 20), break_on_hyphens=False)
