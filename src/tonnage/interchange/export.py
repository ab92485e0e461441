"""The file or command of another tool that starts what a question of ours asks for."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.interchange.formats import Format, format_of, formats
from tonnage.interchange.planned_run import PlannedRun
from tonnage.interchange.source import MARK, Source
from tonnage.kernel.errors import InvalidInput, TonnageError
from tonnage.kernel.message import listed, option_name
from tonnage.kernel.registry import letters_of
from tonnage.question.command_line import command, line
from tonnage.question.form import values
from tonnage.question.looked_up import model_and_machine
from tonnage.question.option import options_of
from tonnage.question.read import in_fields, read
from tonnage.question.verbs import form_of
from tonnage.spec import Cluster

# Options of serve that ask for many models or settings.
OF_MANY = ("frontier", "points", "for_my_machine", "order")


class Export(Struct, frozen=True, kw_only=True):
    """A file that was written: its text, the ending of its name, and what it does not say."""

    text: str
    ending: str
    lacks: tuple[str, ...]


def export(name: str, verb: str, question: Mapping[str, Any], edit: Source | None = None) -> Export:
    """Write what a question asks in a format. `edit`: a file of that format, which gets the values and keeps all else.
    InvalidInput where the format has no such verb, or the question names another tool's runtime or engine.
    """
    for option in OF_MANY:
        if question.get(option) not in (None, False):
            raise InvalidInput(
                "a file starts one model on one machine: leave {option} out.", option=option_name(option)
            )
    form = writer(name)
    if verb not in form.verbs:
        raise InvalidInput("{name} is a format of {verbs}. Got {verb}.", name=name, verbs=listed(form.verbs), verb=verb)
    full_question = {
        **_of_format(form, verb, question),
        **(form.fills(verb, question) if form.fills else {}),
        **question,
    }
    planned = _planned_run(verb, full_question)
    says = form.says | (form.carries(planned) if form.carries else frozenset())
    says -= form.omits(planned) if form.omits else frozenset()
    comment_options = {option: value for option, value in planned.question.items() if option not in says}
    comment_options |= _implied(planned, says)
    if "on" in comment_options and form.counts is not None and form.counts(planned):
        comment_options["on"] = planned.cluster.accelerator.name
    mark = f"# {MARK} {line(command(form_of(verb), _at_front(comment_options))).removeprefix('tonnage ')}\n"
    text = form.write(planned) if form.write else ""
    if edit is not None:
        from tonnage.interchange.edit import edited

        text = edited(edit, text)
        _check_edited(text, edit, planned)
    elif form.has_comments:
        text = form.put_comment(text, mark)
    in_comment = form.has_comments and edit is None
    lacks = () if in_comment else tuple(f"--{option.replace('_', '-')}" for option in comment_options)
    return Export(text=text, ending=form.ending, lacks=lacks)


def _check_edited(text: str, edit: Source, planned: PlannedRun) -> None:
    """InvalidInput where the file has further keys that say something else than the question."""
    from tonnage.interchange.check import understood
    from tonnage.interchange.reading import Asker
    from tonnage.interchange.source import text_source

    source = text_source(text, edit.name, edit.folder)
    config = understood(source, Asker(model=planned.place, on=str(planned.question["on"])))
    others = [
        key
        for option, keys in config.origins.items()
        if option not in ("model", "on")
        for key in keys
        if planned.question.get(option) is not None and _differ(config.question[option], planned.question[option])
    ]
    if others:
        raise InvalidInput(
            "{file}: {keys} would still say something else than was asked: take them out, or change them.",
            file=edit.name,
            keys=listed(dict.fromkeys(others)),
        )


def _differ(one: Any, other: Any) -> bool:
    """Whether two values of an option are different, however they are written."""
    from tonnage.kernel.units import parse_size

    def plain(value: Any) -> Any:
        try:
            return parse_size(str(value), "") if not isinstance(value, bool) else value
        except TonnageError:
            return str(value).lower()

    return bool(plain(one) != plain(other))


def writer(name: str) -> Format:
    """The format of this name, which can be written."""
    form = format_of(name)
    if form.write is None:
        writable = [one.name for one in formats() if one.write is not None]
        raise InvalidInput(
            "{name} is read here, not written. Written are {names}.", name=form.name, names=listed(writable)
        )
    return form


def _of_format(form: Format, verb: str, question: Mapping[str, Any]) -> dict[str, Any]:
    """The runtime or engine of the format, which the question may name as the format or its tool is called."""
    option = {"train": "runtime", "serve": "engine"}[verb]
    own, got = form.sets.get(verb, ""), question.get(option)
    if verb == "serve" and own and got and _starts_as(str(got), own):
        return {option: got}
    if own and got not in (None, own) and letters_of(str(got)) not in (letters_of(form.name), letters_of(form.tool)):
        raise InvalidInput(
            "{name} starts {own}: leave {option} out. Got {got}.",
            name=form.name,
            own=own,
            option=option_name(option),
            got=got,
        )
    return {option: own} if own else {}


def _starts_as(name: str, engine: str) -> bool:
    """Whether a tool of this name starts the engine by the engine's own command, as vllm-ascend does."""
    from tonnage.runtimes.parts.engine_tools import ENGINE_TOOLS
    from tonnage.runtimes.parts.tool import find_tool

    tool = find_tool(ENGINE_TOOLS, name)
    return tool is not None and tool.launch is None and engine in tool.engines


def _implied(planned: PlannedRun, says: frozenset[str]) -> dict[str, Any]:
    """Defaults that the comment must name because the format cannot say them: lengths that follow from a default
    context, and the rank of adapters.
    """
    lengths = ("input_tokens", "output_tokens")
    names = list(lengths) if "context" in says and not planned.is_set("context") else []
    names = names if any(map(planned.is_set, lengths)) else []
    if planned.is_set("lora_adapters") and "lora_rank" not in says:
        names.append("lora_rank")
    entries = planned.answer.question
    return {name: entries[name].value for name in names if not planned.is_set(name) and name in entries}


def _at_front(question: Mapping[str, Any]) -> dict[str, Any]:
    return {**{name: question[name] for name in ("model", "on") if name in question}, **question}


def _planned_run(verb: str, question: Mapping[str, Any]) -> PlannedRun:
    from tonnage.estimate.answer.launch import place

    parsed = read(verb, {**question, "advice": False})
    with in_fields(parsed):
        answer = import_module(f"tonnage.verbs.{verb}").answer(parsed.given)
        changes = dict(answer.chosen.change) if answer.chosen is not None else {}
        model, cluster, _ = model_and_machine(parsed.given)
        plans = _plans(verb, parsed.given, changes, model, cluster)
    return PlannedRun(
        verb=verb,
        model=model,
        cluster=cluster,
        place=place(model),
        question={**question, **{name: value for name, value in changes.items() if value is not None}},
        answer=answer,
        **plans,
    )


def _plans(
    verb: str, answered_options: Any, changes: Mapping[str, Any], model: Model, cluster: Cluster
) -> dict[str, Any]:
    from tonnage.estimate.inputs import Question

    if verb == "train":
        from tonnage.estimate.options.plans import training_plan
        from tonnage.question.subjects.training import TrainingOptions

        options = TrainingOptions(**values(answered_options, options_of(TrainingOptions)))
        return {"training": training_plan(model, cluster, replace(options, **changes), Question())}
    from tonnage.estimate.load.media import with_load
    from tonnage.estimate.serving.plans import serving_plan
    from tonnage.question.subjects.load import LoadOptions
    from tonnage.question.subjects.serving import ServingOptions

    load = LoadOptions(**values(answered_options, options_of(LoadOptions)))
    serving = with_load(model, ServingOptions(**values(answered_options, options_of(ServingOptions))), load)
    return {"serving": serving_plan(model, cluster, replace(serving, **changes), Question())}
