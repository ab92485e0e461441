"""tonnage plan --serve: the best machines and plans to serve a model to users."""

import argparse

from msgspec.structs import replace

from tonnage.cli import _options as o
from tonnage.cli._options import Option, size, word
from tonnage.cli.serve import LOAD_OPTIONS, MONEY_OPTIONS
from tonnage.cli.serve import OPTIONS as SERVE_OPTIONS
from tonnage.kernel.units import parse_bytes

HELP = (
    "which machines, how many of them, and how is the model spread over them, to serve these users within these limits?"
)
ON = "accelerators and clusters with commas between: of h100 the number is searched, 8xH200-SXM-141GB is as it says"
OPTIONS = (
    Option("on", ON, word, unit="clusters", default="every accelerator of the catalogue"),
    Option("reserve", "memory of each accelerator to leave free", parse_bytes, unit="bytes", default="0"),
    Option("goal", "cost, accelerators, tpot, ttft, end-to-end, goodput or token-cost", word, unit="name", default="cost where a price is known, else accelerators; of given machines tpot, or goodput where no users are given"),
    Option("vary", "engine, kv-cache, batch, disaggregation, or all: also search these", word, unit="names", default="none of them"),
    Option("max_accelerators", "at most so many", size, ("--max-gpus",), "accelerators", "64 of a kind; a cluster as it is given"),
    Option("budget", "the most that all machines may cost: 20/h, 500/day, 15k/month; a bare number is USD an hour", word, unit="USD", default="any"),
    Option("top", "how many plans are shown", size, (), "plans", "5"),
    Option("pareto", "every plan that none beats in cost, time of a token and tokens a second together", default="off"),
)  # fmt: skip
SEARCH = tuple(option for option in OPTIONS if option.name not in ("on", "reserve"))
# Of serve, what holds for every plan; precisions and engines may be several, with commas between.
SIMULATED = ("trace", "percentile", "simulate", "num_requests", "seed", "prefill_replicas")
OF_LOAD = tuple(option for option in LOAD_OPTIONS if option.name not in SIMULATED)
OF_PLANS = SERVE_OPTIONS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--serve", action="store_true", help="search plans that serve users")
    o.add_model(parser)
    o.add(parser, OPTIONS, "search")
    o.add(parser, OF_LOAD, "load and service level")
    o.add(
        parser,
        OF_PLANS,
        "what is not varied: each of these is searched where it is not given, or is as for `tonnage serve`",
    )
    o.add(parser, MONEY_OPTIONS, "money and power")
    o.add_output(parser, reports=True)


def run(arguments: argparse.Namespace) -> int:
    from tonnage.cli._print import print_json, print_lines
    from tonnage.cli._report import prints_report, reported
    from tonnage.estimate.load.options import LoadOptions
    from tonnage.estimate.money.bill import BillOptions
    from tonnage.estimate.serving.options import ServingOptions
    from tonnage.search.serving import ServingPlanOptions, plan_serving
    from tonnage.search.serving.machines import named

    said = o.values(arguments, OPTIONS)
    machines = named(said.pop("on")) if "on" in said else None
    options = replace(ServingOptions(**o.values(arguments, OF_PLANS)), reserve_bytes=said.pop("reserve", 0))
    found = plan_serving(o.read_model(arguments), machines, ServingPlanOptions(**said), options, LoadOptions(**o.values(arguments, OF_LOAD)),
                         BillOptions(**o.values(arguments, MONEY_OPTIONS)))  # fmt: skip
    if prints_report(arguments, found):
        pass
    elif arguments.json:
        print_json(found.to_dict())
    else:
        from tonnage.render.plans.serving import plan_lines

        print_lines(plan_lines(found.to_dict(), found.best, formulas=arguments.formulas))
    return reported(arguments, found, found.status)
