"""The parser of a verb, built from the options that are declared for it."""

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from tonnage.cli.common.outputs import JSON, add_reports, parted
from tonnage.cli.common.print import write
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import OR, Message, joined, listed
from tonnage.language import LANGUAGES, current, say, speaking, worded
from tonnage.language.columns import wrapped
from tonnage.question.form import ALONE, UNGROUPED, Form, Given, Group
from tonnage.question.option import Option
from tonnage.spelling import assignment, ours
from tonnage.spelling.translation import Translation, translated
from tonnage.verbs.answered import DETAILS, FULL

# ---- The frame of --help in the current language: argparse's own words, headings, and lines that break between Han
# characters.


class Formatter(argparse.RawDescriptionHelpFormatter):
    """argparse's, which in English it is to the letter."""

    def __init__(self, prog: str, **settings: Any):
        settings.setdefault("width", columns() - 2)  # as argparse has it, which imports shutil for it
        super().__init__(prog, **settings)

    def add_usage(
        self, usage: str | None, actions: Iterable[Any], groups: Iterable[Any], prefix: str | None = None
    ) -> None:
        super().add_usage(usage, actions, groups, say("usage: ") if prefix is None else prefix)

    def add_text(self, text: str | None) -> None:
        super().add_text(None if text is None else worded(text))

    def start_section(self, heading: str | None) -> None:
        super().start_section(None if heading is None else say(heading))

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return help_of(action)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return super()._split_lines(text, width) if current() == "en" else wrapped(text, width)


def columns() -> int:
    """Columns of the terminal, as `shutil.get_terminal_size` tells them: it brings four modules of compression."""
    said = os.environ.get("COLUMNS", "")
    if said.isascii() and said.isdecimal() and int(said) > 0:
        return int(said)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):  # no stdout, or one that is no terminal
        return 80


def english_help(option: Option) -> str:
    """Return the help that an option has until `help_of` puts it into words: most command lines never show it."""
    return (option.help or option.name).replace("%", "%%")


def help_of(action: argparse.Action) -> str | None:
    """The help of an option in the current language, with unit and default."""
    option: Option | None = getattr(action, "option", None)
    if option is None or action.help != english_help(option):
        return None if action.help is None else say(action.help)
    about = say(": ").join(filter(None, (worded(option.help) if option.help else "", option.listed_choices)))
    if option.unit:
        about += f" [{say(option.unit)}]"
    if option.default:
        about += say(" (default: {what})", what=worded(option.default))
    return about.replace("%", "%%")


# ---- Which language a command is answered in: --lang, before the verb or after it, else TONNAGE_LANG, else the locale;
# English by default.

FLAG = "--lang"
VARIABLE = "TONNAGE_LANG"
LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")  # the first that is set decides, as in POSIX
HELP = Message(
    "language of what is shown: {languages} (default: as {variable} or the locale says); --json is English",
    languages=listed(LANGUAGES),
    variable=VARIABLE,
)


def split_language(words: Sequence[str], environment: Mapping[str, str] = os.environ) -> tuple[str, list[str]]:
    """Return the language of the answer, and the words without the option --lang.

    >>> split_language(["--lang", "zh", "train", "llama-3.1-8b"])
    ('zh', ['train', 'llama-3.1-8b'])
    """
    rest: list[str] = []
    chosen: str | None = None
    left = iter(words)
    for word in left:
        if word == "--":
            rest += [word, *left]
        elif word == FLAG or word.startswith(f"{FLAG}="):
            chosen = word.partition("=")[2] or next(left, "") if word != f"{FLAG}=" else ""
            if not chosen:
                raise InvalidInput(
                    "{flag} takes a language: {languages}.", flag=FLAG, languages=joined(" or ", LANGUAGES)
                )
        else:
            rest.append(word)
    return chosen or environment.get(VARIABLE) or _locale_language(environment), rest


def language_of_error(words: Sequence[str] = (), environment: Mapping[str, str] = os.environ) -> str:
    """Return the language of an error about --lang itself: a known one of another --lang, else the environment's."""
    values = [value for word, value in zip(words, [*words[1:], ""], strict=True) if word == FLAG]
    values += [word.partition("=")[2] for word in words if word.startswith(f"{FLAG}=")]
    known = [language for language in (*values, environment.get(VARIABLE)) if language in LANGUAGES]
    return known[0] if known else _locale_language(environment)


def _locale_language(environment: Mapping[str, str]) -> str:
    locale = next((environment[name] for name in LOCALE if environment.get(name)), "")
    return next((language for language in LANGUAGES if locale.lower().startswith(language)), LANGUAGES[0])


LONGEST = 200  # characters of a wrong word that are shown
PLACE = re.compile(r"%(?:\((\w+)\))?([sr])")  # of a value, in a text of argparse
NO_OPTION = ("help", "help_all", "lang")  # of no question
NEGATIVE = re.compile(r"-[.\d]")  # begins as a negative amount does
Switch = type[argparse.Action]


class _Text(str):
    """A text of argparse, which marks its own for gettext: what is put in with % stays the data of a Message."""

    __slots__ = ()

    def __mod__(self, values: Any) -> str:
        named = values if isinstance(values, dict) else {"value": values}
        template = PLACE.sub(lambda place: f"{{{place[1] or 'value'}{'!r' if place[2] == 'r' else ''}}}", self)
        return Message(template, **named) if PLACE.search(self) else str.__mod__(self, values)


setattr(argparse, "_", _Text)  # noqa: B010 - the name is argparse's own, and in no stub


class _HelpAll(argparse.Action):
    """Prints the help of every option, and leaves."""

    def __init__(self, option_strings: Sequence[str], dest: str, **settings: Any):
        super().__init__(option_strings, dest, default=argparse.SUPPRESS, **settings)

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        parser.print_help_all()
        parser.exit()


class Parser(argparse.ArgumentParser):
    """argparse, but wrong usage is status 64 (2 means "tight" here), and a wrong option is answered with the nearest
    one. `reads_as`: the verb whose options it has, where it is not its own.
    """

    reads_as = ""
    mixes = False
    form: Form | None = None
    translation: Translation | None = None  # of the words that were read last
    flags_by_verb: Callable[[], Mapping[str, frozenset[str]]] | None = None  # of verbs that no other face has

    def __init__(self, *args: Any, **kwargs: Any):
        kwargs.setdefault("allow_abbrev", False)
        kwargs.setdefault("formatter_class", Formatter)
        super().__init__(*args, **kwargs)
        self.add_argument("--help-all", action=_HelpAll, nargs=0, help="show every option with its unit and default")

    def print_help(self, file: Any = None) -> None:
        """The usual options of a verb that has some, else all of them."""
        from tonnage.cli.common.usual import has_usual, usual_help

        if self.form is None or not has_usual(self.form):
            super().print_help(file)
            return
        flags = frozenset(self._option_string_actions)
        self._print_message(usual_help(self.form, worded(self.description or ""), flags, columns()), file)

    def print_help_all(self) -> None:
        """Every option, with its unit and default."""
        super().print_help()

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Options of other tools that mean the same are read as ours, and underscores as dashes. `typed`: option ->
        as it was written.
        """
        self.translation = self.translated(args)
        typed_words = parted(self.translation.words, details=DETAILS if self._takes_detail else ())
        words = ours(typed_words, self._option_string_actions, self._verb)
        typed = self._typed(typed_words, words)
        # two positional words, with options between them
        parse = self.parse_known_intermixed_args if self.mixes else self.parse_known_args
        parsed, extra = parse(self._with_negatives(words), Given() if namespace is None else namespace)
        if extra:
            unknown: str = Message("unrecognized arguments: {extra}.", extra=" ".join(extra)[:LONGEST])
            other_verb = self.other_verb(extra[0].partition("=")[0]) if extra[0].startswith("--") else ""
            near = self._no_value(extra[0], args) or self._nearest(extra[0], words)
            self._refuse(other_verb or unknown, *near, about="--help" if other_verb or near else "--help-all")
        parsed.typed = typed
        return parsed

    def translated(self, words: Sequence[str]) -> Translation:
        """The words with options of ours in place of other tools' that mean the same."""
        return translated(words, self._option_string_actions, self._verb)

    def _with_negatives(self, words: list[str]) -> list[str]:
        """Joined by `=`, an option and a value such as -1s, which argparse would take for an option: the option's
        own check refuses it.
        """
        joined: list[str] = []
        left = iter(words)
        for word in left:
            action = self._option_string_actions.get(word)
            takes_value = action is not None and action.nargs is None and not isinstance(action, argparse._HelpAction)
            value = next(left, None) if takes_value else None
            if value is None:
                joined.append(word)
            elif NEGATIVE.match(value) and value not in self._option_string_actions and word.startswith("--"):
                joined.append(f"{word}={value}")
            else:
                joined += [word, value]
            if word == "--":
                return joined + list(left)
        return joined

    def _typed(self, typed_words: list[str], words: list[str]) -> dict[str, str]:
        """Option -> how it was spelled. What argparse would take silently, or refuse in words of its own, is refused
        here.
        """
        spellings: dict[str, str] = {}
        for at, word in enumerate(words):
            flag, equals, value = word.partition("=")
            if word == "--":
                break
            action = self._option_string_actions.get(flag)
            if word.startswith("-") and word.endswith("=--"):  # Python 3.11's argparse reads it as an empty list
                self.error(
                    Message(
                        "argument {argument_name}: {message}",
                        argument_name=word.removesuffix("=--"),
                        message="expected one argument",
                    )
                )
            if action is None:
                continue
            if action.nargs == 0 and equals:
                off = next((spelling for spelling in action.option_strings if spelling.startswith("--no-")), "")
                if off:
                    self.error(
                        Message(
                            "{flag} takes no value: write {flag} or {off}. Got {value}",
                            flag=flag,
                            off=off,
                            value=shown(value),
                        )
                    )
                self.error(
                    Message(
                        "{flag} takes no value: write it alone, or leave it out. Got {value}",
                        flag=flag,
                        value=shown(value),
                    )
                )
            if action.nargs is not None or isinstance(action, argparse._AppendAction):
                continue
            spellings[action.dest] = typed_words[at].partition("=")[0].replace("_", "-")
        return spellings

    def near(self, name: str) -> list[str]:
        """Options that may be meant by a name that is none; of an option of another verb only those that it has
        another word for.
        """
        from tonnage.spelling import meant

        names = (action.dest for action in self._actions if action.dest not in NO_OPTION)
        return meant(name, names, alike=not self.other_verb(name))

    def other_verb(self, name: str) -> str:
        """The sentence that names the verbs which have an option that this one has not; "" where none has it."""
        from tonnage.cli.common.other_verbs import no_flags, other_verb_sentence

        flag, form = f"--{name.lstrip('-').replace('_', '-')}", self.form or Form(self._verb, ())
        return other_verb_sentence(flag, form, self.flags_by_verb or no_flags)

    def format_usage(self) -> str:
        """In English, since argparse itself cuts the first word off it."""
        with speaking("en"):
            return super().format_usage()

    def error(self, message: str) -> Any:
        """Refuse what is wrong; `message` has no full stop, as argparse writes its own."""
        self._refuse(Message("{message}.", message=message))

    def _refuse(self, *sentences: str, about: str = "--help") -> Any:
        see = Message("See `{program} {about}`.", program=self.prog, about=about)
        raise InvalidInput(joined(" ", (*sentences, see)))

    @property
    def _takes_detail(self) -> bool:
        """Whether --json takes how much of the document is printed."""
        action = self._option_string_actions.get(JSON)
        return action is not None and action.nargs == "?"

    @property
    def _verb(self) -> str:
        """Whose options these are, as other tools spell them."""
        return self.reads_as or self.prog.rpartition(" ")[2]

    def _print_message(self, message: str, file: Any = None) -> None:
        """argparse hides that help cannot be written; here it has its status."""
        write(message)

    def _no_value(self, word: str, typed: Sequence[str]) -> tuple[str, ...]:
        """The sentence that the option before a stray word takes no value: a switch, of ours or of another tool."""
        before = next((one for one, two in pairwise(typed) if two == word and one.startswith("--")), "")
        action = self._option_string_actions.get(before)
        others = {theirs for theirs, _ in self.translation.read} if self.translation is not None else set()
        if before in others or (action is not None and action.nargs == 0):
            return (Message("{flag} takes no value.", flag=before),)
        return ()

    def _nearest(self, word: str, words: list[str]) -> tuple[str, ...]:
        """What may be meant by one of the words, as a sentence of its own; nothing where nothing is near."""
        if not word.startswith("--"):
            if self._takes_detail and any(
                one.partition("=")[0] == JSON and two == word for one, two in pairwise(words)
            ):
                return (Message("{flag} takes {details}.", flag=JSON, details=listed(DETAILS, OR)),)
            return assignment(word, self._verb)
        near = self.near(word.removeprefix("--").partition("=")[0])
        flags = [
            f"--{name.replace('_', '-')}"
            if f"--{name.replace('_', '-')}" in self._option_string_actions
            else name.upper()
            for name in near
        ]
        return (Message("Did you mean {near}?", near=joined(" or ", flags)),) if flags else ()


def add_form(parser: argparse.ArgumentParser, form: Form, switch: Switch = argparse.BooleanOptionalAction) -> None:
    """Add the options of a form of a verb, group by group. `switch`: what an option without a value does."""
    if isinstance(parser, Parser):
        parser.form = form
        parser.reads_as, parser.mixes = (
            form.reads_as,
            len([option for option in form.options.values() if option.alone]) > 1,
        )
    add_groups(parser, form.groups, form.required, switch)


def add_groups(
    parser: argparse.ArgumentParser,
    groups: Iterable[Group],
    required: Iterable[str] = (),
    switch: Switch = argparse.BooleanOptionalAction,
) -> None:
    """Add options group by group. `required`: those of what stands alone that cannot be left out."""
    for group in groups:
        if group.exclusive:
            _add_all(parser.add_mutually_exclusive_group(), group.options, required, switch)
        elif group.title in (ALONE, UNGROUPED):
            _add_all(parser, group.options, required, switch)
        else:
            add(parser, group.options, group.title, switch)


def add(
    parser: argparse.ArgumentParser,
    options: Iterable[Option],
    title: str,
    switch: Switch = argparse.BooleanOptionalAction,
) -> None:
    """Add options as a group; each help line ends with unit and default."""
    _add_all(parser.add_argument_group(title), options, (), switch)


def _add_all(group: Any, options: Iterable[Option], required: Iterable[str], switch: Switch) -> None:
    for option in options:
        if option.alone:
            nargs = "*" if option.many else None if option.name in required else "?"
            action = group.add_argument(option.name, nargs=nargs, metavar=option.metavar, help=english_help(option))
        else:
            action = group.add_argument(
                option.flag, *option.short, dest=option.name, help=english_help(option), **_how(option, switch)
            )
        action.__dict__["option"] = option


def _how(option: Option, switch: Switch) -> dict[str, Any]:
    """How argparse takes an option: a switch, or a value that it keeps as it was written."""
    if option.read is None:
        return {"action": switch if option.negatable else "store_true", "default": None}
    unit = option.unit.upper().replace(" ", "_") if option.unit and " " not in option.unit else "VALUE"
    repeated: dict[str, Any] = {"action": "append", "default": []} if option.repeated else {}
    return {"metavar": option.metavar or unit} | repeated


def add_output(parser: argparse.ArgumentParser, *, reports: bool = False, summary: bool = False) -> Any:
    """--json and --formulas, and of verbs that have them --html and --markdown; the group, for a verb that has more.
    `summary`: whether --json takes how much of the document is printed.
    """
    group = parser.add_argument_group("output")
    if summary:
        add_json(group)
    else:
        group.add_argument(JSON, action="store_true", help="print one JSON document (schema tonnage/2)")
    group.add_argument(
        "--formulas", action="store_true", help="open the breakdown down to formulas with the numbers put in"
    )
    if summary:
        add_verbose(group)
    if reports:
        add_reports(group)
    return group


def add_verbose(group: Any) -> None:
    """-v, of verbs whose text is short without it."""
    group.add_argument("-v", "--verbose", action="store_true", help="print every figure and every input")


def add_json(group: Any) -> None:
    """--json, which takes how much of the document is printed."""
    group.add_argument(
        JSON,
        nargs="?",
        const=FULL,
        choices=DETAILS,
        metavar="DETAIL",
        help=(
            "print one JSON document (schema tonnage/2): full (the default), or summary, which is the same "
            "without its trees in at most 8 kB"
        ),
    )


def add_named_values(parser: argparse.ArgumentParser) -> None:
    """--argument, of a program FILE.py:callable."""
    parser.add_argument(
        "--argument",
        "-a",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an argument of the callable; can be given again",
    )


def named_values(pairs: list[str]) -> dict[str, Any]:
    """NAME=VALUE, a value as Python writes numbers, truth and texts; what is none of these is a text."""
    import ast

    arguments: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.isidentifier():
            raise InvalidInput("--argument is written NAME=VALUE. Got {pair!r}.", pair=pair[:80])
        try:
            arguments[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            arguments[name] = value
    return arguments
