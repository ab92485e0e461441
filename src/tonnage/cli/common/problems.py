"""Everything that is wrong with a command, not only what is found first: each input with its problem and what is
nearest to it, and one command that is right.
"""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from tonnage.cli.common.parser import Parser
from tonnage.kernel.errors import InvalidInput, TonnageError, UnknownName
from tonnage.kernel.message import Message
from tonnage.kernel.registry import nearest
from tonnage.question.command_line import OWN
from tonnage.question.form import WHOLE, Form
from tonnage.question.option import Option, names_in
from tonnage.question.subjects.model import DIMENSIONS, ON
from tonnage.spelling import instead_of

NEEDS_MACHINE = ("train", "serve", "max", "compare")
FEW = 4  # nearest names, and known values, that are shown
NO_MODEL, NO_ACCELERATOR = Message("no such model"), Message("no such accelerator")
NO_OPTION, NO_SUCH = Message("no such option"), "no such {kind}"
NEEDED, STRAY = Message("is needed"), Message("belongs to no option")
NO_VALUE, VALUE_NEEDED = Message("takes no value"), Message("needs a value")
EXAMPLES = ("llama-3.1-8b", "qwen3-32b", "Qwen/Qwen3-32B-AWQ", "config.json")
OF_MODELS = frozenset(option.name for option in DIMENSIONS)
LIKELY = "8xh100"  # the machine of a corrected command that named none


class Problem(Struct, frozen=True):
    """input: as it was typed, in its place `at` of the words, `count` of them
    nearest: what may be meant
    instead: words that put it right; None where nothing is near enough
    sure: whether one name alone is near
    """

    input: str
    problem: str
    nearest: tuple[str, ...] = ()
    at: int = 0
    count: int = 1
    instead: tuple[str, ...] | None = None
    sure: bool = False


class Problems(Struct, frozen=True):
    """What is wrong with a command, and the words of one that is right, where all can be put right."""

    found: tuple[Problem, ...]
    words: tuple[str, ...]

    @property
    def corrected(self) -> tuple[str, ...]:
        if not self.found or any(problem.instead is None for problem in self.found):
            return ()
        words = list(self.words)
        for problem in reversed(self.found):
            words[problem.at : problem.at + problem.count] = problem.instead or ()
        return tuple(words)


def problems_of(parser: Parser, form: Form, words: Sequence[str]) -> Problems:
    """What is wrong with the words of a verb, as far as it is seen without an estimate."""
    read = parser.translated(words).words
    reader = _Words(parser, form, read)
    return Problems(tuple(sorted(reader.problems(), key=lambda problem: problem.at)), tuple(read))


class _Words:
    def __init__(self, parser: Parser, form: Form, words: list[str]):
        self.parser, self.form, self.words = parser, form, words
        self.alone: list[int] = []
        self.given: set[str] = set()

    def problems(self) -> Iterator[Problem]:
        at = 0
        while at < len(self.words):
            word = self.words[at]
            if word == "--":
                self.alone += range(at + 1, len(self.words))
                break
            if not word.startswith("-") or word == "-":
                self.alone.append(at)
                at += 1
                continue
            count, problem = self._option(at)
            if problem is not None:
                yield problem
            at += count
        yield from self._standing_alone()
        if self._lacks_model():
            yield Problem("MODEL", NEEDED, EXAMPLES, 0, 0, EXAMPLES[:1])
        if "on" not in self.given and self.form.verb in NEEDS_MACHINE and not self._is_other_question():
            yield Problem("--on", NEEDED, ("h100", "8xh100", "dgx-h100"), len(self.words), 0, ("--on", LIKELY))

    def _lacks_model(self) -> bool:
        """Whether no model is named, nor described by its dimensions, in a question that is of one."""
        places = [option.name for option in self.form.options.values() if option.alone]
        named = dict(zip(places, (self.words[at] for at in self.alone), strict=False))
        other = self._is_other_question() or "inventory" in self.given or named.get("what") == "model"
        return "model" in places and "model" not in named and not other and not self.given & OF_MODELS

    def _is_other_question(self) -> bool:
        return "for_my_machine" in self.given

    def _option(self, at: int) -> tuple[int, Problem | None]:
        """How many words an option takes, and what is wrong with it."""
        typed, equals, value = self.words[at].partition("=")
        actions = self.parser._option_string_actions
        action = actions.get(typed) or actions.get(typed.replace("_", "-"))
        following = self.words[at + 1] if at + 1 < len(self.words) else None
        if action is None:
            return self._unknown(at, typed, bool(equals), following)
        self.given.add(action.dest)
        if action.nargs == "?":
            takes_next = not equals and following in (action.choices or ())
            return 2 if takes_next else 1, None
        if action.nargs == 0:
            wrong = Problem(self.words[at], NO_VALUE, (typed,), at, 1, (typed,), True) if equals else None
            return 1, wrong
        if not equals and (following is None or following in actions):
            return 1, Problem(typed, VALUE_NEEDED, (), at)
        text = value if equals else str(following)
        option: Option | None = action.__dict__.get("option")
        count = 1 if equals else 2
        return count, None if option is None else self._value(option, typed, text, at, count)

    def _unknown(self, at: int, typed: str, joined: bool, following: str | None) -> tuple[int, Problem | None]:
        """An option that there is not, or that means something else in another tool."""
        takes = not joined and following is not None and not following.startswith("-")
        count = 2 if takes else 1
        text = " ".join(self.words[at : at + count])
        try:
            ours = instead_of(typed, self.parser._verb)
        except InvalidInput as error:
            return count, Problem(text, str(error), (), at, count)
        if ours:  # an option of another tool that means the same
            return 1 if joined else 2, None
        near = tuple(f"--{name.replace('_', '-')}" for name in self.parser.near(typed.lstrip("-")))
        near = tuple(flag for flag in near if flag in self.parser._option_string_actions)
        value = self.words[at].partition("=")[2] if joined else following if takes else None
        instead = (near[0], *([value] if value is not None else [])) if len(near) == 1 else None
        if near == (ON.flag,):  # then it is no machine that is missing
            self.given.add(ON.name)
        return count, Problem(text, NO_OPTION, near, at, count, instead, len(near) == 1)

    def _value(self, option: Option, typed: str, text: str, at: int, count: int) -> Problem | None:
        if option.read is None:
            return None
        many = self.form.takes_lists(option.name) or (option.name == "on" and self.form.verb == "plan")
        parts = text.split(";" if option.name in WHOLE else ",") if many else [text]
        for part in (part.strip() for part in parts):
            if self.form.axes and part.lower() == OWN:
                continue
            found = _machine(part) if option.name == "on" else _named(option, typed, part)
            if found is None:
                continue
            whole = text.replace(part, found.right, 1) if found.right else ""
            instead = (typed, whole) if whole else None
            return Problem(f"{typed} {text}", found.problem, found.nearest, at, count, instead, found.sure)
        return None

    def _standing_alone(self) -> Iterator[Problem]:
        places = [option for option in self.form.options.values() if option.alone]
        many = any(option.many for option in places)
        for at, option in zip(self.alone, places, strict=False):
            text = self.words[at]
            if option.name == "model":
                for part in text.split(",") if self.form.axes else [text]:
                    found = _model(part.strip())
                    if found is not None:
                        instead = (text.replace(part.strip(), found.right, 1),) if found.right else None
                        yield Problem(text, found.problem, found.nearest, at, 1, instead, found.sure)
        if not many:
            for at in self.alone[len(places) :]:
                yield Problem(self.words[at], STRAY, (), at)


class Found(Struct, frozen=True):
    """What is wrong with a value, which names are near, and which is right instead; `sure`: it alone is near."""

    problem: str
    nearest: tuple[str, ...] = ()
    right: str = ""
    sure: bool = False


def _named(option: Option, typed: str, text: str) -> Found | None:
    try:
        if option.read is not None:
            option.read(text, typed)
    except TonnageError as error:
        return Found(str(error))
    choices = names_in(option.choices or (option.known if option.name == "weights" else ()))
    if not choices or _takes(option.name, text, choices):
        return None
    near = tuple(nearest(text, choices))
    others = tuple(name for name in choices if name not in near)[: FEW - len(near)]
    kind = Message(NO_SUCH, kind=option.unit or "value")
    return Found(kind, (*near[:FEW], *others), near[0] if near else "", len(near) == 1)


def _takes(name: str, text: str, choices: Iterable[str]) -> bool:
    """Whether a name is one of the choices, or another name of one."""
    plain = text.strip().lower().replace("_", "-")
    if plain in {choice.lower().replace("_", "-") for choice in choices}:
        return True
    try:
        if name == "optimizer":
            from tonnage.numerics.optimizers import optimizer

            optimizer(text)
        elif name == "runtime":
            from tonnage.runtimes import training_runtime

            training_runtime(text)
        elif name == "engine":
            from tonnage.runtimes import serving_runtime

            serving_runtime(text)
        elif name == "weights":
            from tonnage.estimate.serving.weights.request import asked_for

            asked_for(text)
        else:
            return False
    except UnknownName:
        return False
    except TonnageError:  # what it says is of something else
        return True
    return True


def _machine(text: str) -> Found | None:
    from tonnage.catalogue.clusters import cluster, nearest_clusters

    try:
        cluster(text)
    except TonnageError as error:
        near = nearest_clusters(text) if isinstance(error, UnknownName) else ()
        if not near:
            return Found(str(error)) if error.exit_status == UnknownName.exit_status else None
        return Found(NO_ACCELERATOR, near[:FEW], near[0], len(near) == 1)
    return None


def _model(text: str) -> Found | None:
    """What is wrong with the name of a model. What has to be asked for, or read, is left to the answer."""
    from tonnage.catalogue import aliases, model_names
    from tonnage.models import kind

    try:
        if set(text) & set("/\\:~") or kind(text) != "unknown":
            return None
    except TonnageError:
        return None
    near = tuple(nearest(text, [*model_names(), *aliases("models")]))
    return Found(NO_MODEL, near[:FEW], near[0] if near else "", len(near) == 1)


def first_of_estimate(parser: Parser, words: Sequence[str]) -> TonnageError | None:
    """What an estimate says of words that are right otherwise."""
    from importlib import import_module

    verb = parser.prog.rpartition(" ")[2]
    if verb not in ("train", "serve"):
        return None
    try:
        parsed = parser.parse_args([*words, "--no-advice"])
        import_module(f"tonnage.verbs.{verb}").answer(parsed)
    except TonnageError as error:
        return error if error.exit_status == InvalidInput.exit_status else None
    except SystemExit:
        return None
    return None
