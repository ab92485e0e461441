"""Options of the command line: one table a verb, from which the parser, the help and the reading of values come."""

import argparse
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import Any

from msgspec import Struct

from tonnage.cli._flags import assignment, ours
from tonnage.cli._print import write
from tonnage.errors import InvalidInput, OutOfRange, shown
from tonnage.units import parse_bytes, parse_count, parse_length

Reader = Callable[[str, str], Any]
LONGEST = 200  # characters of a wrong word that are shown


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
    return parse_count(text, what)


def count(text: str, what: str) -> int:
    """A whole number that may be 0."""
    return 0 if text.strip() == "0" else parse_count(text, what)


def word(text: str, what: str) -> str:
    """A name, which must not be empty."""
    if not text.strip():
        raise InvalidInput(f"{what} is empty: give it a value, or leave the option out.")
    return text.strip()


def number(text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InvalidInput(f"{what} must be a number. Got {text!r}.") from None
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


# As estimate._checks.check_size has it, and architectures._config: importing them would take longer than an answer.
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
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*args, **kwargs)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Options of other tools that mean the same are read as ours, and underscores as dashes."""
        words = ours(args, self._option_string_actions, self._verb)
        for word in words[: words.index("--")] if "--" in words else words:
            if word.startswith("-") and word.endswith("=--"):  # Python 3.11's argparse reads it as an empty list
                self.error(f"argument {word.removesuffix('=--')}: expected one argument")
        # two positional words, with options between them
        parse = self.parse_known_intermixed_args if self.mixes else self.parse_known_args
        found, extra = parse(words, namespace)
        if extra:
            self.error(f"unrecognized arguments: {' '.join(extra)[:LONGEST]}.{self._nearest(extra[0])}")
        return found

    def error(self, message: str) -> Any:
        raise InvalidInput(f"{message.removesuffix('.')}. See `{self.prog} --help`.")

    @property
    def _verb(self) -> str:
        """Whose options these are, as other tools spell them."""
        return self.reads_as or self.prog.rpartition(" ")[2]

    def _print_message(self, message: str, file: Any = None) -> None:
        """argparse hides that help cannot be written; here it has its status."""
        write(message)

    def _nearest(self, word: str) -> str:
        from difflib import get_close_matches

        if not word.startswith("--"):
            return assignment(word, self._verb)
        known = [flag for action in self._actions for flag in action.option_strings]
        near = get_close_matches(word.partition("=")[0].replace("_", "-"), known, n=2, cutoff=0.5)
        return f" Did you mean {' or '.join(near)}?" if near else ""


def add(
    parser: argparse.ArgumentParser,
    options: Iterable[Option],
    title: str,
    switch: type[argparse.Action] = argparse.BooleanOptionalAction,
) -> None:
    """Add options as a group; each help line ends with unit and default. `switch`: what an option without a value does."""
    group = parser.add_argument_group(title)
    for option in options:
        about = option.help
        if option.unit:
            about += f" [{option.unit}]"
        if option.default:
            about += f" (default: {option.default})"
        about = about.replace("%", "%%")
        if option.read is None:
            group.add_argument(
                option.flag,
                *option.short,
                dest=option.name,
                action=switch,
                default=None,
                help=about,
            )
        else:
            metavar = option.unit.upper().replace(" ", "_") if option.unit and " " not in option.unit else "VALUE"
            group.add_argument(option.flag, *option.short, dest=option.name, metavar=metavar, help=about)


def values(arguments: argparse.Namespace, options: Iterable[Option]) -> dict[str, Any]:
    """The options that were given, read; an error names the option."""
    found = {}
    for option in options:
        given = getattr(arguments, option.name)
        if given is not None:
            found[option.name] = given if option.read is None else option.read(given, option.flag)
    return found


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
    machine = cluster(required(common, COMMON[0]))
    return read_model(arguments), machine, common.get("reserve", 0)


def add_output(parser: argparse.ArgumentParser) -> Any:
    """--json and --formulas; the group, for a verb that has more."""
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="print one JSON document (schema tonnage/1)")
    group.add_argument(
        "--formulas", action="store_true", help="open the breakdown down to formulas with the numbers put in"
    )
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
        raise InvalidInput(f"{option.flag} is needed: {option.help}.")
    return found[option.name]
