"""Everything that is wrong with a command, not only what is found first: each input with its problem and what is
nearest to it, and one command that is right.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from tonnage.cli.common.parser import Parser
from tonnage.kernel.errors import InvalidInput, TonnageError
from tonnage.kernel.message import Message
from tonnage.question.form import Form
from tonnage.question.option import Option
from tonnage.question.subjects.model import ON
from tonnage.spelling import instead_of
from tonnage.verbs.wrong.fields import EXAMPLES, MACHINES, NEEDED, NEEDS_MACHINE, NO_OPTION, OF_MODELS
from tonnage.verbs.wrong.values import model_problem, text_problem

STRAY, NO_VALUE, VALUE_NEEDED = Message("belongs to no option"), Message("takes no value"), Message("needs a value")
LIKELY = MACHINES[1]  # the machine of a corrected command that named none


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

    entries: tuple[Problem, ...]
    words: tuple[str, ...]

    @property
    def corrected(self) -> tuple[str, ...]:
        if not self.entries or any(problem.instead is None for problem in self.entries):
            return ()
        words = list(self.words)
        for problem in reversed(self.entries):
            words[problem.at : problem.at + problem.count] = problem.instead or ()
        return tuple(words)


def problems_of(parser: Parser, form: Form, words: Sequence[str]) -> Problems:
    """What is wrong with the words of a verb, as far as it is seen without an estimate."""
    read = parser.translated(words).words
    reader = _Words(parser, form, read)
    entries = dict.fromkeys(sorted(reader.problems(), key=lambda problem: problem.at))
    return Problems(tuple(entries), tuple(read))


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
            yield Problem("--on", NEEDED, MACHINES, len(self.words), 0, ("--on", LIKELY))

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
        sure = len(near) == 1 and self._takes(near[0], value)
        instead = (near[0], *([value] if value is not None else [])) if sure else None
        if near == (ON.flag,):  # then it is no machine that is missing
            self.given.add(ON.name)
        problem = self.parser.other_verb(typed) or NO_OPTION
        return count, Problem(text, problem, near, at, count, instead, sure)

    def _takes(self, flag: str, value: str | None) -> bool:
        """Whether an option can be given this value: what is typed for another one need not be a value of it."""
        action = self.parser._option_string_actions[flag]
        option: Option | None = action.__dict__.get("option")
        if value is None or action.nargs == 0:
            return value is None and action.nargs in (0, "?")
        return option is None or option.read is None or text_problem(self.form, option, flag, value) is None

    def _value(self, option: Option, typed: str, text: str, at: int, count: int) -> Problem | None:
        if option.read is None:
            return None
        problem = text_problem(self.form, option, typed, text)
        if problem is None:
            return None
        wrong, right = problem
        instead = (typed, right) if right else None
        return Problem(f"{typed} {text}", wrong.problem, wrong.nearest, at, count, instead, wrong.sure)

    def _standing_alone(self) -> Iterator[Problem]:
        places = [option for option in self.form.options.values() if option.alone]
        many = any(option.many for option in places)
        for at, option in zip(self.alone, places, strict=False):
            text = self.words[at]
            if option.name == "model":
                for part in text.split(",") if self.form.axes else [text]:
                    wrong = model_problem(part.strip())
                    if wrong is not None:
                        instead = (text.replace(part.strip(), wrong.right, 1),) if wrong.right else None
                        yield Problem(text, wrong.problem, wrong.nearest, at, 1, instead, wrong.sure)
        if not many:
            for at in self.alone[len(places) :]:
                yield Problem(self.words[at], STRAY, (), at)


def estimate_error(parser: Parser, words: Sequence[str]) -> TonnageError | None:
    """Return the error that an estimate raises for words that can all be read; None where it answers."""
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
