"""`serve`: one replica or several; every configuration (`frontier`); every model on one machine (`for_my_machine`)."""

from typing import Any

from msgspec.structs import replace

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message, option_name
from tonnage.question.form import Given, values
from tonnage.question.looked_up import model_and_machine
from tonnage.question.option import options_of
from tonnage.question.subjects.frontier import FRONTIER
from tonnage.question.subjects.model import ADVICE, AS_IS, MACHINE
from tonnage.verbs.answered import DocumentedAnswer

LOCAL = "local"
OF_MACHINE = ("ttft", "tpot")  # of the load, what `for_my_machine` knows


def answer(arguments: Given) -> DocumentedAnswer:
    """The answer itself, of which documents and pictures are made."""
    from tonnage.question.subjects.load import LoadOptions
    from tonnage.question.subjects.money import SERVED, BillOptions
    from tonnage.question.subjects.serving import ServingOptions

    options = ServingOptions(**values(arguments, options_of(ServingOptions)))
    load = LoadOptions(**values(arguments, options_of(LoadOptions)))
    money = BillOptions(**values(arguments, SERVED))
    several = values(arguments, FRONTIER)
    _check(several)
    if several.get("for_my_machine"):
        return _my_machine(arguments, options, load, several)
    model, machine, reserve = model_and_machine(arguments)
    if several.get("frontier"):
        from tonnage.estimate.answer.frontier import POINTS, frontier

        options = replace(options, reserve_bytes=reserve)
        return frontier(model, machine, options, load, money, points=several.get("points", POINTS))
    from tonnage.estimate.answer.serving import serve

    asked = values(arguments, (AS_IS, ADVICE))
    return serve(
        model,
        machine,
        options,
        load,
        money,
        reserve_bytes=reserve,
        advise=asked.get("advice", True),
        choose=not asked.get("as_is", False),
    )


def _check(several: dict[str, Any]) -> None:
    """Options of one of the two questions without it."""
    if several.get("frontier") and several.get("for_my_machine"):
        raise InvalidInput(Message("{--frontier} is of one model, {--for-my-machine} of all: give one. Got both."))
    for name, needs in (("points", "frontier"), ("order", "for_my_machine")):
        if name in several and not several.get(needs):
            raise InvalidInput(
                "--{name} is of --{needs}, which is not given. Got {value}.",
                name=name,
                needs=needs.replace("_", "-"),
                value=several[name],
            )


def _my_machine(arguments: Given, options: Any, load: Any, several: dict[str, Any]) -> DocumentedAnswer:
    from tonnage.catalogue import cluster
    from tonnage.estimate.answer.my_machine import my_machine as estimate
    from tonnage.models.catalogued import every

    if arguments.model is not None:
        raise InvalidInput(
            "{--for-my-machine} looks at every model of the catalogue: leave out MODEL. Got {model!r}.",
            model=arguments.model[:80],
        )
    for name in load.__struct_fields__:
        if getattr(load, name) is not None and name not in OF_MACHINE:
            raise InvalidInput(
                "{--for-my-machine} answers for one user with a prompt of 1,024 tokens: leave out {name}. Got {value}.",
                name=option_name(name),
                value=getattr(load, name),
            )
    common = values(arguments, MACHINE)
    machine = cluster(common.get("on", LOCAL))
    options = replace(options, reserve_bytes=common.get("reserve", 0))
    return estimate(machine, every(), options, order=several.get("order", "parameters"), ttft=load.ttft, tpot=load.tpot)
