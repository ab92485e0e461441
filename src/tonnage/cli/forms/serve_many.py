"""`serve --frontier` and `serve --for-my-machine`."""

from typing import Any

from msgspec.structs import replace

from tonnage.cli.common.print import plotted, print_json, print_lines
from tonnage.cli.common.report import prints_report, reported
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message
from tonnage.question.given import Given, values
from tonnage.question.subjects.machine import MACHINE

LOCAL = "local"
OF_MACHINE = ("ttft", "tpot")  # of the load, what this answer knows


def check(asked: dict[str, Any], arguments: Given) -> None:
    """Options of one of the two questions without it."""
    if asked.get("frontier") and asked.get("for_my_machine"):
        raise InvalidInput("--frontier is of one model, --for-my-machine of all: give one. Got both.")
    for name, needs in (("points", "frontier"), ("order", "for_my_machine")):
        if name in asked and not asked.get(needs):
            raise InvalidInput(
                Message(
                    "--{name} is of --{needs}, which is not given. Got {asked}.",
                    name=name,
                    needs=needs.replace("_", "-"),
                    asked=asked[name],
                )
            )
    if arguments.plot is not None and asked.get("for_my_machine"):
        raise InvalidInput("--for-my-machine has no pictures: leave out --plot.")
    for name in ("html", "markdown"):
        if getattr(arguments, name) is not None and asked.get("for_my_machine"):
            raise InvalidInput(Message("--for-my-machine has no report: leave out --{name}.", name=name))


def frontier(
    arguments: Given, model: Any, machine: Any, options: Any, load: Any, money: Any, asked: dict[str, Any]
) -> int:
    from tonnage.estimate.answer.frontier import POINTS
    from tonnage.estimate.answer.frontier import frontier as estimate

    found = estimate(model, machine, options, load, money, points=asked.get("points", POINTS))
    if prints_report(arguments, found):
        pass
    elif arguments.json:
        print_json(found.document)
    else:
        from tonnage.render.frontier import frontier_lines

        print_lines(frontier_lines(found.to_dict()))
    return reported(arguments, found, plotted(found, arguments.plot))


def my_machine(arguments: Given, options: Any, load: Any, asked: dict[str, Any]) -> int:
    from tonnage.catalogue import cluster
    from tonnage.estimate.answer.my_machine import my_machine as estimate
    from tonnage.models.catalogued import every

    if arguments.model is not None:
        raise InvalidInput(
            Message(
                "--for-my-machine looks at every model of the catalogue: leave out MODEL. Got {model!r}.",
                model=arguments.model[:80],
            )
        )
    for name in load.__struct_fields__:
        if getattr(load, name) is not None and name not in OF_MACHINE:
            raise InvalidInput(
                Message(
                    "--for-my-machine answers for one user with a prompt of 1,024 tokens: leave out {name}. "
                    "Got {value}.",
                    name=name,
                    value=getattr(load, name),
                )
            )
    common = values(arguments, MACHINE)
    machine = cluster(common.get("on", LOCAL))
    options = replace(options, reserve_bytes=common.get("reserve", 0))
    found = estimate(machine, every(), options, order=asked.get("order", "parameters"), ttft=load.ttft, tpot=load.tpot)
    if arguments.json:
        print_json(found.document)
    else:
        from tonnage.render.machine import machine_lines

        print_lines(machine_lines(found.to_dict(), found.widest))
    return found.status
