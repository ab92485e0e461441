"""tonnage plan --train: the best plans of a machine, or the best machines."""

import argparse
from typing import Any

from tonnage.cli import _options as o
from tonnage.cli._bill_options import BILL_OPTIONS
from tonnage.cli._options import Option, size, word
from tonnage.cli._run_options import RUN_OPTIONS
from tonnage.cli.train import OPTIONS
from tonnage.kernel.errors import InvalidInput

HELP = (
    "the best plans of a training run on a machine, or the best machines for it: parallel sizes, micro-batch, ZeRO stage, recomputation and runtime. "
    "`tonnage plan --serve --help` is of machines for users, `tonnage plan --inventory --help` of a pool of unlike machines"
)
MACHINES = (
    Option("on", "machines to compare, parted by commas: a name with a number (8xH100) is that machine, a name alone any number of it", word, unit="clusters", default="every GPU of the catalogue"),
    Option("reserve", "memory of each accelerator to leave free", o.COMMON[1].read, unit="bytes", default="0"),
)  # fmt: skip
SEARCH_OPTIONS = (
    Option("goal", "fastest, cheapest or fewest (accelerators)", word, unit="name", default="fastest of one machine; of several cheapest, or fewest where no price is known"),
    Option("top", "plans, or machines, that are shown", size, unit="plans", default="5"),
    Option("max_accelerators", "of a machine that is named without a number", size, unit="accelerators", default="4096"),
    Option("pareto", "also the machines that no other beats in time, money and number", default="off"),
    Option("exhaustive", "estimate every valid plan, also those that a bound shows to be worse: the same answer, slower", default="off"),
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    if isinstance(parser, o.Parser):
        parser.reads_as = "train"
    parser.add_argument("--train", action="store_true", help="a training run (the default)")
    o.add_model(parser)
    o.add(parser, MACHINES, "machines")
    o.add(parser, SEARCH_OPTIONS, "search")
    parser.add_argument_group("search: more options").add_argument(
        "--vary", action="append", default=[], metavar="OPTION=VALUE,VALUE",
        help="an option of training to try besides, such as precision=bf16-mixed,fp8-te, optimizer=adamw,muon, offload_optimizer=none,cpu or "
        "sequence_length=4k,32k; can be given again",
    )  # fmt: skip
    o.add(parser, OPTIONS, "training: what is given is not varied")
    o.add(parser, RUN_OPTIONS, "the whole run")
    o.add(parser, BILL_OPTIONS, "money, power and disks")
    o.add_output(parser, reports=True)


def varied(pairs: list[str]) -> dict[str, tuple[Any, ...]]:
    """Of --vary: the values, read as the option of `train` reads them."""
    known = {option.name: option for option in OPTIONS}
    found: dict[str, tuple[Any, ...]] = {}
    for pair in pairs:
        name, equals, values = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not values.strip():
            raise InvalidInput(
                f"--vary is written OPTION=VALUE,VALUE, such as precision=bf16-mixed,fp8-te. Got {pair[:80]!r}."
            )
        if name not in known:
            from tonnage.kernel.registry import unknown

            raise unknown("option to vary", name, known)
        if name in found:
            raise InvalidInput(f"--vary {name} is given twice: write all its values in one.")
        read = known[name].read
        texts = [text.strip() for text in values.split(",") if text.strip()]
        found[name] = tuple(_switch(text, name) if read is None else read(text, f"--vary {name}") for text in texts)
    return found


def _switch(text: str, name: str) -> bool:
    if text not in ("on", "off"):
        raise InvalidInput(f"--vary {name} takes on and off. Got {text!r}.")
    return text == "on"


def machines_named(text: str | None) -> tuple[str, ...]:
    """The names in a list that is parted by commas; none where nothing is said."""
    if text is None:
        return ()
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise InvalidInput(f"--on names machines, such as h100,8xa100. Got {text!r}.")
    return names


def run(arguments: argparse.Namespace) -> int:
    from tonnage.api_plan import plan_training
    from tonnage.cli._print import print_json, print_lines
    from tonnage.cli._report import prints_report, reported

    common = o.values(arguments, MACHINES)
    given = (
        o.values(arguments, SEARCH_OPTIONS)
        | o.values(arguments, OPTIONS)
        | o.values(arguments, RUN_OPTIONS)
        | o.values(arguments, BILL_OPTIONS)
    )
    found = plan_training(
        o.read_model(arguments),
        on=machines_named(common.get("on")),
        vary=varied(arguments.vary),
        reserve_bytes=common.get("reserve", 0),
        **given,
    )
    if prints_report(arguments, found):
        pass
    elif arguments.json:
        print_json(found.to_dict())
    else:
        from tonnage.render.plans.training import plan_lines

        print_lines(plan_lines(found.to_dict(), found.plans[0].answer.memory if found.plans else None))
    return reported(arguments, found, found.status)
