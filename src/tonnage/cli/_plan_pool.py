"""tonnage plan --inventory: a model, replicas of it, or jobs placed on a pool of unlike machines."""

import argparse
from collections.abc import Mapping
from typing import Any

from tonnage.cli import _options as o
from tonnage.cli import serve, train
from tonnage.cli._options import Option, number, size, word
from tonnage.cli._report import add_reports
from tonnage.kernel.errors import InvalidInput

HELP = "what goes where on a pool of unlike machines: the layers or replicas of a model, or the jobs of the inventory, and what is proven of it"
OPTIONS = (
    Option("inventory", "the pool: nodes, what others hold of them, jobs; YAML, TOML or JSON (docs/commands/plan_pool.md)", word, unit="file"),
    Option("serve", "MODEL is served", default="on"),
    Option("train", "MODEL is trained", default="off"),
    Option("split", "of a served model: pipeline (its layers over unlike accelerators), replicas, or auto", word, unit="name", default="auto: replicas where one node holds it"),
    Option("goal", "of a pipeline that serves: throughput (to the users asked about) or latency (the shortest token of one user alone)", word, unit="name", default="throughput"),
    Option("stages", "stages of the pipeline", size, unit="stages", default="searched"),
    Option("offload", "host memory may be used, at the time that it takes", default="off"),
    Option("leave", "nodes or groups that leave the pool, commas between: what moves where?", word, unit="names"),
    Option("join", "spare groups of the inventory that join it, commas between", word, unit="names"),
    Option("time_limit", "how long may be searched", number, unit="seconds", default="60"),
    Option("gap", "share of the value that may be left unproven", number, unit="0 to 1", default="0"),
)  # fmt: skip
OF_ALL = frozenset({"reserve_bytes"})


def _named(options: tuple[Option, ...], taken: set[str]) -> tuple[Option, ...]:
    """Those whose names and short forms nobody has yet."""
    found = []
    for option in options:
        if option.name in taken:
            continue
        short = tuple(flag for flag in option.short if flag not in taken)
        taken |= {option.name, option.flag, *short}
        found.append(Option(option.name, option.help, option.read, short, option.unit, option.default))
    return tuple(found)


def _tables() -> tuple[tuple[Option, ...], tuple[Option, ...], tuple[Option, ...], tuple[Option, ...]]:
    taken = {name for option in (*OPTIONS, *o.MODEL_OPTIONS) for name in (option.name, option.flag, *option.short)}
    return OPTIONS, _named(serve.OPTIONS, taken), _named(serve.LOAD_OPTIONS, taken), _named(train.OPTIONS, taken)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    own, serving, load, training = _tables()
    o.add_model(parser)
    o.add(parser, own, "pool")
    o.add(parser, serving, "serving, and training where it has the same")
    o.add(parser, load, "load and service level")
    o.add(parser, training, "training")
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="print one JSON document (schema tonnage/1)")
    add_reports(group)


def run(arguments: argparse.Namespace) -> int:
    from tonnage.cli._print import print_json, print_lines
    from tonnage.cli._report import prints_report, reported
    from tonnage.search.pool.place import place

    whole = isinstance(arguments.inventory, Mapping)  # of a question that is no command line
    own = o.values(arguments, OPTIONS[1:] if whole else OPTIONS)
    inventory = arguments.inventory if whole else o.required(own, OPTIONS[0])
    kinds = [name for name in ("serve", "train") if own.pop(name, False)]
    if len(kinds) > 1:
        raise InvalidInput("--train and --serve are two questions: give one. Got both.")
    names: dict[str, Any] = {
        name: tuple(part.strip() for part in own.pop(name).split(",") if part.strip())
        for name in ("leave", "join")
        if name in own
    }
    own.pop("inventory", None)
    if "goal" in own:
        own["objective"] = own.pop("goal")
    model, options, load = _asked(arguments, kinds[0] if kinds else "serve")
    found = place(inventory, model, options, load, **own, **names)
    if prints_report(arguments, found):
        pass
    elif arguments.json:
        print_json(found.to_dict())
    else:
        from tonnage.render.plans.pool import pool_lines

        print_lines(pool_lines(found.to_dict()))
    return reported(arguments, found, found.status)


def _asked(arguments: argparse.Namespace, kind: str) -> tuple[Any, Any, Any]:
    """The model and its options; nothing of it where no model is named, and then no option may be."""
    from tonnage.estimate.load.options import LoadOptions
    from tonnage.estimate.plan.training_options import TrainingOptions
    from tonnage.estimate.serving.options import ServingOptions

    _, serving, load, training = _tables()
    given = o.values(arguments, (*serving, *load, *training))
    forms = (TrainingOptions,) if kind == "train" else (ServingOptions, LoadOptions)
    for name, value in given.items():
        if not any(name in form.__struct_fields__ for form in forms):
            other = "--serve" if kind == "train" else "--train"
            raise InvalidInput(f"--{name.replace('_', '-')} is of {other}, and this is --{kind}. Got {value}.")
    if arguments.model is None and not o.values(arguments, o.MODEL_OPTIONS):
        if given:
            name = next(iter(given)).replace("_", "-")
            raise InvalidInput(
                f"--{name} is of one MODEL, and none is named: options of the inventory's jobs are written there."
            )
        return None, None, None
    model = o.read_model(arguments)
    if kind == "train":
        return model, TrainingOptions(**given), None
    own = {name: value for name, value in given.items() if name in ServingOptions.__struct_fields__}
    return (
        model,
        ServingOptions(**own),
        LoadOptions(**{name: value for name, value in given.items() if name not in own}),
    )
