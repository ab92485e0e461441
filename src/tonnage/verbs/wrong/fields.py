"""Everything that is wrong with a question of fields, as HTTP and assistants ask it: each field that cannot be used."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import UNSET, Struct

from tonnage.documents.document import Problem
from tonnage.kernel import reach
from tonnage.kernel.errors import InvalidInput, TonnageError, UnknownName
from tonnage.kernel.message import Message, plain
from tonnage.question.command_line import line
from tonnage.question.form import CHOOSING, Form
from tonnage.question.naming import in_question
from tonnage.question.owners import other_verb_sentence
from tonnage.question.read import near_fields, read_field
from tonnage.question.subjects.model import DIMENSIONS, ON
from tonnage.question.verbs import form_of, kind_of
from tonnage.verbs.ask import ask, words_of
from tonnage.verbs.wrong.values import text_problem

GATHERED = ("train", "serve", "plan", "max", "compare")  # verbs of which all that is wrong is said at once
NEEDS_MACHINE = ("train", "serve", "max", "compare")
NO_OPTION, NEEDED = Message("no such option"), Message("is needed")
EXAMPLES = ("llama-3.1-8b", "qwen3-32b", "Qwen/Qwen3-32B-AWQ", "config.json")
MACHINES = ("h100", "8xh100", "dgx-h100")
LONGEST = 100  # letters of the name of a field that is shown
OF_MODELS = frozenset(option.name for option in DIMENSIONS)


class WrongQuestion(Struct, frozen=True):
    """What is wrong with a question; `command`: the command line of one that is right, where all can be put right."""

    problems: tuple[Problem, ...] = ()
    command: str = ""


class _Field(Struct, frozen=True):
    """A field that cannot be used. `right`: the fields to write instead; None where nothing is near."""

    problem: Problem
    right: dict[str, Any] | None = None


def all_wrong(verb: str, question: Any, error: TonnageError, within: reach.Reach) -> WrongQuestion:
    """All that is wrong with a question that was refused with `error`, which is among it."""
    near = error.nearest if isinstance(error, UnknownName) else ()
    alone = WrongQuestion((_problem(_field_in(str(error), question), str(error), near),))
    if verb not in GATHERED or not isinstance(question, Mapping) or error.exit_status != TonnageError.exit_status:
        return alone
    if verb == "max" and question.get("what") is None:  # it decides which fields there are
        return alone
    try:
        form = form_of(verb, kind_of(verb, question))
        with reach.limited(within):
            wrong = list(_wrong_fields(form, question))
    except TonnageError:
        return alone
    if not wrong:
        return alone
    problems = tuple(field.problem for field in wrong)
    if any(field.right is None for field in wrong):
        return WrongQuestion(problems)
    corrected = _corrected(question, wrong)
    later = _refused(verb, corrected, within)
    if later:
        return WrongQuestion((*problems, _problem(_field_in(later, corrected), later)))
    return WrongQuestion(problems, line(words_of(verb, corrected)))


def _wrong_fields(form: Form, question: Mapping[str, Any]) -> Iterator[_Field]:
    given: set[str] = set()
    for name, value in question.items():
        field, option = _field(form, name, value)
        given.add(option)
        if field is not None:
            yield field
    other = bool(given & {"for_my_machine"})
    describes = bool(given & (OF_MODELS | {"model", "inventory"})) or question.get("what") == "model"
    if "model" in form.options and not describes and not other:
        yield _Field(_problem("model", NEEDED, EXAMPLES), {"model": EXAMPLES[0]})
    if ON.name not in given and form.verb in NEEDS_MACHINE and not other:
        yield _Field(_problem(ON.name, NEEDED, MACHINES), {ON.name: MACHINES[1]})


def _field(form: Form, name: Any, value: Any) -> tuple[_Field | None, str]:
    """What is wrong with a field, if anything is, and the option that it names, or may name."""
    try:
        read = read_field(form, name, value)
    except UnknownName as error:
        near = near_fields(form, name)
        if not near:
            return _Field(_problem(name, str(error))), ""
        right = {near[0]: value} if len(near) == 1 else None
        problem = other_verb_sentence(name, form) or NO_OPTION
        return _Field(_problem(name, problem, near), right), near[0] if len(near) == 1 else ""
    except TonnageError as error:
        option = form.options.get(name) if isinstance(name, str) else None
        return _Field(_problem(str(name), in_question(error, form, {name: value}))), option.name if option else ""
    if read is None:
        return None, ""
    option, text = read
    if not isinstance(text, str) or (option.read is None and option.name != "model"):
        return None, option.name
    found = text_problem(form, option, name, text)
    if found is None:
        return None, option.name
    wrong, right_text = found
    text_said = in_question(InvalidInput(wrong.problem), form, {name: value})
    return _Field(_problem(name, text_said, wrong.nearest), {name: right_text} if right_text else None), option.name


def _corrected(question: Mapping[str, Any], wrong: Iterable[_Field]) -> dict[str, Any]:
    """The question with what is near in place of what is wrong."""
    instead = {field.problem.input: field.right or {} for field in wrong}
    kept = {name: right for name, value in question.items() for right in [instead.pop(name, {name: value})]}
    return {name: value for right in (*kept.values(), *instead.values()) for name, value in right.items()}


def _refused(verb: str, question: Mapping[str, Any], within: reach.Reach) -> str:
    """What an estimate says of fields that are right otherwise; nothing where it answers, or would take long."""
    if verb not in CHOOSING:
        return ""
    try:
        ask(verb, {**question, "advice": False}, within)
    except TonnageError as error:
        return str(error) if error.exit_status == TonnageError.exit_status else ""
    return ""


def _field_in(text: str, question: Any) -> str:
    """The first field that an error names; nothing where it names none."""
    names = [name for name in question if isinstance(name, str)] if isinstance(question, Mapping) else []
    places = {name: text.find(name) for name in names if name in text.replace("'", " ").replace(".", " ").split()}
    return min(places, key=places.__getitem__, default="")


def _problem(name: Any, problem: str, near: Iterable[str] = ()) -> Problem:
    text = name if isinstance(name, str) else repr(name)
    pointer = "#/" + text.replace("~", "~0").replace("/", "~1") if text else UNSET
    return Problem(input=text[:LONGEST], problem=plain(problem), nearest=list(near), pointer=pointer)
