"""Options of the command line: one table a verb, from which the parser, the help and the reading of values come."""

import argparse
import re
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Any

from msgspec import Struct

from tonnage.cli._help import Formatter
from tonnage.cli._print import write
from tonnage.cli._report import add_reports, parted
from tonnage.kernel.errors import InvalidInput, OutOfRange, TonnageError, UnknownName, shown
from tonnage.kernel.units import parse_bytes, parse_length, parse_size
from tonnage.language import say, sentence, speaking
from tonnage.spelling.flags import assignment, ours

Reader = Callable[[str, str], Any]
LONGEST = 200  # characters of a wrong word that are shown
LAST_PORT = 65535
NEGATIVE = re.compile(r"-[.\d]")  # begins as a negative amount does


class Option(Struct, frozen=True):
    """One option: its long name (the field that it fills), short forms, how its text is read, its unit, help, default."""

    name: str
    help: str
    read: Reader | None = None
    short: tuple[str, ...] = ()
    unit: str = ""
    default: str = ""

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"


def whole(text: str, what: str) -> int:
    """A plain whole number, or one with k, M, 万, 亿."""
    return parse_size(text, what)


def count(text: str, what: str) -> int:
    """A whole number that may be 0."""
    return 0 if text.strip() == "0" else parse_size(text, what)


def port(text: str, what: str) -> int:
    """Of this machine."""
    plain = text.strip()
    found = int(plain) if plain.isascii() and plain.isdecimal() and len(plain) < len(str(LAST_PORT)) + 1 else 0
    if not 1 <= found <= LAST_PORT:
        raise InvalidInput(f"{what} must be a port from 1 to {LAST_PORT:,}, such as 8000. Got {shown(text)}.")
    return found


def word(text: str, what: str) -> str:
    """A name, which must not be empty."""
    if not text.strip():
        raise InvalidInput(f"{what} is empty: give it a value, or leave the option out.")
    return text.strip()


def number(text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InvalidInput(f"{what} must be a number. Got {shown(text)}.") from None
    if not isfinite(value):
        raise InvalidInput(f"{what} must be a finite number. Got {shown(text)}.")
    return value


def ranged(read: Reader, span: str) -> Reader:
    """The reader of an option that states the range which the option's own check has, instead of that of all numbers."""

    def within(text: str, what: str) -> Any:
        try:
            return read(text, what)
        except OutOfRange:
            raise InvalidInput(f"{what} must be {span}. Got {shown(text)}.") from None

    return within


# As estimate.plan.checks.check_size has it, and architectures._config: importing them would take longer than an answer.
SIZES = "from 1 to 1,099,511,627,776"
size, length = ranged(whole, SIZES), ranged(parse_length, SIZES)
width, depth = (ranged(whole, f"a whole number from 1 to {most}") for most in (17179869184, 20000))


class Parser(argparse.ArgumentParser):
    """argparse, but wrong usage is status 64 (2 means "tight" here), and a wrong option is answered with the nearest one. `reads_as`: the
    verb whose options it has, where it is not its own."""

    reads_as = ""
    mixes = False

    def __init__(self, *args: Any, **kwargs: Any):
        kwargs.setdefault("allow_abbrev", False)
        kwargs.setdefault("formatter_class", Formatter)
        super().__init__(*args, **kwargs)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Options of other tools that mean the same are read as ours, and underscores as dashes. `typed`: option -> as it was written."""
        given = parted(args)
        words = ours(given, self._option_string_actions, self._verb)
        typed = self._typed(given, words)
        # two positional words, with options between them
        parse = self.parse_known_intermixed_args if self.mixes else self.parse_known_args
        found, extra = parse(self._with_negatives(words), namespace)
        if extra:
            self.error(f"unrecognized arguments: {' '.join(extra)[:LONGEST]}.{self._nearest(extra[0])}")
        found.typed = typed
        return found

    def _with_negatives(self, words: list[str]) -> list[str]:
        """Joined by `=`, an option and a value such as -1s, which argparse would take for an option: the option's own check refuses it."""
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

    def _typed(self, given: list[str], words: list[str]) -> dict[str, str]:
        """Option -> how it was spelled. What argparse would take silently, or refuse in words of its own, is refused here."""
        found: dict[str, str] = {}
        for at, word in enumerate(words):
            flag, equals, value = word.partition("=")
            if word == "--":
                break
            action = self._option_string_actions.get(flag)
            if word.startswith("-") and word.endswith("=--"):  # Python 3.11's argparse reads it as an empty list
                self.error(f"argument {word.removesuffix('=--')}: expected one argument")
            if action is None:
                continue
            if action.nargs == 0 and equals:
                off = next((each for each in action.option_strings if each.startswith("--no-")), "")
                if off:
                    self.error(f"{flag} takes no value: write {flag} or {off}. Got {shown(value)}")
                self.error(f"{flag} takes no value: write it alone, or leave it out. Got {shown(value)}")
            if action.nargs is not None or isinstance(action, argparse._AppendAction):
                continue
            found[action.dest] = given[at].partition("=")[0].replace("_", "-")
        return found

    def takes(self, name: str) -> argparse.Action | None:
        """The option that a field of a question names; None where there is none. InvalidInput for another tool's that means something else."""
        (flag,) = ours([f"--{name.replace('_', '-')}"], self._option_string_actions, self._verb)
        return self._option_string_actions.get(flag)

    def near(self, name: str) -> list[str]:
        """Fields that may be meant by a name that is none."""
        from tonnage.spelling import meant

        return meant(name, (action.dest for action in self._actions if action.dest not in ("help", "lang")))

    def format_usage(self) -> str:
        """In English, since argparse itself cuts the first word off it."""
        with speaking("en"):
            return super().format_usage()

    def error(self, message: str) -> Any:
        end = "" if message.endswith("?") else "."
        raise InvalidInput(f"{message.removesuffix('.')}{end} See `{self.prog} --help`.")

    @property
    def _verb(self) -> str:
        """Whose options these are, as other tools spell them."""
        return self.reads_as or self.prog.rpartition(" ")[2]

    def _print_message(self, message: str, file: Any = None) -> None:
        """argparse hides that help cannot be written; here it has its status."""
        write(message)

    def _nearest(self, word: str) -> str:
        if not word.startswith("--"):
            return assignment(word, self._verb)
        near = self.near(word.removeprefix("--").partition("=")[0])
        flags = [f"--{name.replace('_', '-')}" if f"--{name.replace('_', '-')}" in self._option_string_actions else name.upper() for name in near]  # fmt: skip
        return f" Did you mean {' or '.join(flags)}?" if flags else ""


def add(
    parser: argparse.ArgumentParser,
    options: Iterable[Option],
    title: str,
    switch: type[argparse.Action] = argparse.BooleanOptionalAction,
) -> None:
    """Add options as a group; each help line ends with unit and default. `switch`: what an option without a value does."""
    group = parser.add_argument_group(title)
    for option in options:
        about = sentence(option.help)
        if option.unit:
            about += f" [{say(option.unit)}]"
        if option.default:
            about += say(" (default: {what})", what=sentence(option.default))
        about = about.replace("%", "%%")
        if option.read is None:
            action = group.add_argument(
                option.flag,
                *option.short,
                dest=option.name,
                action=switch,
                default=None,
                help=about,
            )
        else:
            metavar = option.unit.upper().replace(" ", "_") if option.unit and " " not in option.unit else "VALUE"
            action = group.add_argument(option.flag, *option.short, dest=option.name, metavar=metavar, help=about)
        action.__dict__["option"] = option  # for faces that show the options of a verb otherwise


def values(arguments: argparse.Namespace, options: Iterable[Option]) -> dict[str, Any]:
    """The options that were given, read; an error names the option."""
    found = {}
    for option in options:
        given = getattr(arguments, option.name)
        if given is not None:
            found[option.name] = given if option.read is None else option.read(given, spelled(arguments, option))
    return found


def spelled(arguments: argparse.Namespace, option: Option) -> str:
    """The option as it was typed, by which of its names that may be."""
    return str(getattr(arguments, "typed", {}).get(option.name, option.flag))


MODEL_OPTIONS = (
    Option("hidden_size", "width of the residual stream", width, unit="elements"),
    Option("num_hidden_layers", "number of layers", depth, ("--num-layers",), "layers"),
    Option("num_attention_heads", "query heads", width, unit="heads"),
    Option("num_key_value_heads", "key/value heads", width, unit="heads", default="num_attention_heads"),
    Option("head_dim", "width of a head", width, unit="elements", default="hidden_size / num_attention_heads"),
    Option("intermediate_size", "width inside the feed-forward layers", width, unit="elements"),
    Option(
        "vocab_size",
        "rows of the token embedding",
        ranged(whole, "a whole number from 2 to 17179869184"),
        unit="tokens",
    ),
    Option(
        "max_position_embeddings",
        "context of the model",
        ranged(parse_length, "a whole number from 1 to 17179869184"),
        unit="tokens",
    ),
    Option("tie_word_embeddings", "the head uses the embedding's table"),
    Option("num_experts", "routed experts a layer", depth, unit="experts"),
    Option("num_experts_per_tok", "experts that a token goes to", depth, unit="experts"),
    Option("moe_intermediate_size", "width inside an expert", width, unit="elements"),
    Option("family", "model_type that the dimensions belong to", word, default="generic: Llama-like"),
)
COMMON = (
    Option(
        "on",
        "cluster: NAME, 8xNAME, nodes x 8 x NAME, a node such as dgx-h100, a TOML file, or local",
        word,
        unit="cluster",
    ),
    Option("reserve", "memory of each accelerator to leave free", parse_bytes, unit="bytes", default="0"),
)

ADVICE = (
    Option("advice", "the next best moves: other plans are estimated for them, which takes most of the time of an answer", default="on"),
)  # fmt: skip


def add_model(parser: argparse.ArgumentParser, switch: type[argparse.Action] = argparse.BooleanOptionalAction) -> None:
    """MODEL, and what can be said about it."""
    parser.add_argument("model", nargs="?", metavar="MODEL", help="a name from `tonnage models`, a Hugging Face or ModelScope id or URL, "
                        "a folder, config.json, .safetensors or .gguf; or none, with dimensions")  # fmt: skip
    group = parser.add_argument_group("reading the model")
    group.add_argument("--revision", metavar="REV", help="branch, tag or commit on the Hub (default: main)")
    group.add_argument(
        "--offline", action="store_true", default=None, help="never ask the network (default: as HF_HUB_OFFLINE says)"
    )
    add(parser, MODEL_OPTIONS, "dimensions: of a model without a name, or changes to the named one", switch)


def read_model(arguments: argparse.Namespace) -> Any:
    """The model that the arguments name."""
    from tonnage.models import read

    overrides = values(arguments, MODEL_OPTIONS)
    if "family" in overrides:
        overrides["model_type"] = overrides.pop("family")
    return read(arguments.model, overrides=overrides, revision=arguments.revision, offline=arguments.offline)


def read_as(parser: argparse.ArgumentParser, verb: str) -> None:
    """A parser that has the options of another verb, and takes what that takes from other tools."""
    if isinstance(parser, Parser):
        parser.reads_as, parser.mixes = verb, True


def no_model(arguments: argparse.Namespace) -> bool:
    """Whether no model is named, nor described by its dimensions."""
    return arguments.model is None and not values(arguments, MODEL_OPTIONS)


def model_and_machine(arguments: argparse.Namespace) -> tuple[Any, Any, int]:
    """The model, the cluster, and the bytes to leave free on each accelerator."""
    from tonnage.catalogue import cluster

    common = values(arguments, COMMON)
    if COMMON[0].name not in common:
        _say_both(arguments)
    machine = cluster(required(common, COMMON[0]))
    return read_model(arguments), machine, common.get("reserve", 0)


def check_model(name: str) -> None:
    """UnknownName for a name of no model; what has to be asked for, or read, is left for later."""
    from tonnage.models import read

    if not set(name) & set("/\\:~"):
        try:
            read(name, offline=True)
        except UnknownName:
            raise
        except TonnageError:
            pass


def _say_both(arguments: argparse.Namespace) -> None:
    """A name of no model is said together with the machine that is missing."""
    if isinstance(arguments.model, str):
        try:
            check_model(arguments.model)
        except UnknownName as error:
            raise UnknownName(f"{error} {_needed(COMMON[0])}") from None


def add_output(parser: argparse.ArgumentParser, *, reports: bool = False) -> Any:
    """--json and --formulas, and of verbs that have them --html and --markdown; the group, for a verb that has more."""
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="print one JSON document (schema tonnage/1)")
    group.add_argument(
        "--formulas", action="store_true", help="open the breakdown down to formulas with the numbers put in"
    )
    if reports:
        add_reports(group)
    return group


def add_named_values(parser: argparse.ArgumentParser) -> None:
    """--argument, of a program FILE.py:callable."""
    parser.add_argument("--argument", "-a", action="append", default=[], metavar="NAME=VALUE",
                        help="an argument of the callable; can be given again")  # fmt: skip


def named_values(pairs: list[str]) -> dict[str, Any]:
    """NAME=VALUE, a value as Python writes numbers, truth and texts; what is none of these is a text."""
    import ast

    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.isidentifier():
            raise InvalidInput(f"--argument is written NAME=VALUE. Got {pair[:80]!r}.")
        try:
            found[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            found[name] = value
    return found


def required(found: Mapping[str, Any], option: Option) -> Any:
    """The value of an option that cannot be left out."""
    if option.name not in found:
        raise InvalidInput(_needed(option))
    return found[option.name]


def _needed(option: Option) -> str:
    return f"{option.flag} is needed: {option.help}."
