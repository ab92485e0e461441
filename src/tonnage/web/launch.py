"""POST /v1/launch: what starts the run that a question of `train` or `serve` is about, in the words of its runtime
or engine.
"""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import UNSET
from msgspec.structs import replace

from tonnage.documents.answer import AnswerDocument
from tonnage.kernel.errors import InvalidInput, MissingDatum, shown
from tonnage.kernel.message import Message, listed
from tonnage.kernel.reach import Reach, limited
from tonnage.question.command_line import command
from tonnage.question.form import values
from tonnage.question.looked_up import model_and_machine
from tonnage.question.option import options_of
from tonnage.question.read import in_fields, read
from tonnage.question.verbs import form_of
from tonnage.verbs.ask import Reply, ask
from tonnage.web.schema.documents import LaunchDocument

LAUNCH = "launch"


def launched(question: Mapping[str, Any], within: Reach) -> Reply:
    """The settings as a document. The question has one name more than those of its verb: `verb`."""
    rest = {name: value for name, value in question.items() if name != "verb"}
    verb = question.get("verb")
    if verb == "train":
        return _training(rest, within)
    if verb == "serve":
        return _serving(rest, within)
    raise InvalidInput("verb is train or serve: what is launched. Got {verb}.", verb=shown(verb))


def _training(question: Mapping[str, Any], within: Reach) -> Reply:
    from tonnage.estimate.inputs import Question
    from tonnage.estimate.options.plans import training_plan
    from tonnage.question.subjects.money import MONEY
    from tonnage.question.subjects.run import RunOptions
    from tonnage.question.subjects.training import TrainingOptions
    from tonnage.search.training.launch.settings import launch_lacks, launch_program, launch_settings
    from tonnage.verbs.train import answer

    with limited(within):
        parsed = read("train", question)
        with in_fields(parsed):
            values(parsed.given, (*options_of(RunOptions), *MONEY))  # no part of a launch, and still to be right
            model, machine, _ = model_and_machine(parsed.given)
            options = TrainingOptions(**values(parsed.given, options_of(TrainingOptions)))
            parsed.given.advice = False  # no moves: a launch shows none
            chosen = answer(parsed.given).chosen
            if chosen is not None:  # what the answer fits with, and not the defaults that it did not fit with
                options = replace(options, **chosen.change)
            plan = training_plan(model, machine, options, Question())
        settings, lacks, program = (
            launch_settings(model, plan, machine),
            launch_lacks(model, plan),
            launch_program(plan),
        )
    notes = [program] if program else []
    if lacks:
        notes.append(
            Message("not said by these settings: {lacks}.", lacks=listed(lacks))
            if settings
            else Message("nothing is written down here of {lacks}.", lacks=lacks[0])
        )
    return Reply(_document("train", plan.runtime, " ".join(settings), notes), 0, command(parsed.form, question))


def _serving(question: Mapping[str, Any], within: Reach) -> Reply:
    reply = ask("serve", {**question, "advice": False}, within)  # no moves: a launch shows none
    document = reply.document
    launch = document.serving.launch if isinstance(document, AnswerDocument) and document.serving else UNSET
    if not launch and isinstance(document, AnswerDocument):
        raise MissingDatum(Message("nothing is written down here of an engine that loads these weights."))
    if not launch:
        raise InvalidInput(
            Message("what is launched is one model on one machine: ask without {@frontier} and {@for_my_machine}.")
        )
    lines = launch.splitlines()
    typed = [text for text in lines if not text.startswith("# ")]
    notes = [text.removeprefix("# ") for text in lines if text.startswith("# ")]
    engine = str(document.question["engine"].value)
    return Reply(_document("serve", engine, "\n".join(typed), notes), 0, command(form_of("serve"), question))


def _document(verb: Literal["train", "serve"], runtime: str, launch: str, notes: list[str]) -> LaunchDocument:
    return LaunchDocument(verb=verb, runtime=runtime, launch=launch, notes=notes)
