"""What a search for plans of training found, as lines of text."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tonnage.kernel.term import Term
from tonnage.language import say, worded
from tonnage.language.quantities import counted, human, human_column
from tonnage.render.brief.plan_training import verdict_line
from tonnage.render.text import inputs_lines, table_lines, tree_lines

SIZES = {
    "tensor_parallel_size": "tp",
    "pipeline_parallel_size": "pp",
    "virtual_pipeline_size": "vpp",
    "context_parallel_size": "cp",
    "expert_parallel_size": "ep",
    "expert_tensor_parallel_size": "etp",
    "data_parallel_size": "dp",
    "zero_stage": "zero",
    "micro_batch_size": "mbs",
    "num_microbatches": "m",
}
NAMES = (
    "runtime",
    "recompute",
    "precision",
    "optimizer",
    "offload_optimizer",
    "offload_parameters",
    "offload_activations",
)


def plan_lines(document: Mapping[str, Any], memory: Term | None) -> list[str]:
    """The verdict, what was asked, the plans with the reason that each beats the next, the first one opened, and
    what was taken away.
    """
    plans = document["plans"]
    lines = [verdict_line(document), "", *inputs_lines(document["question"]), ""]
    if plans:
        lines += [*_table(plans), ""]
        lines += [
            say("{at} before {at2}: {beats}", at=at, at2=at + 1, beats=worded(plan["beats"]))
            for at, plan in enumerate(plans[:-1], 1)
        ]
        lines += ["", say("plan 1: {what}", what=worded(plans[0]["text"]))]
        if plans[0]["launch"]:
            lines += [f"  {plans[0]['options'].get('runtime', '')}: {' '.join(plans[0]['launch'])}"]
        if plans[0]["launch_lacks"]:
            lacks = say(", ").join(map(worded, plans[0]["launch_lacks"]))
            inputs = (
                say("not said by these settings: {lacks}", lacks=lacks)
                if plans[0]["launch"]
                else say("nothing is written down here of {lacks}", lacks=lacks)
            )
            lines += [f"  {inputs}"]
        lines += ["", *tree_lines(memory, depth=2)] if memory else []
    if document["front"]:
        lines += [
            "",
            say("no other machine is faster, cheaper and smaller than one of these:"),
            *_front(document["front"]),
        ]
    if document["nearest"]:
        lines += [say("nearest:"), *_table([document["nearest"]]), worded(document["nearest"]["text"])]
    return [
        *lines,
        "",
        *_counts(document),
        *(say("note: {what}", what=worded(warning)) for warning in document["warnings"]),
    ]


def _table(plans: Iterable[Mapping[str, Any]]) -> list[str]:
    rows = list(plans)
    machines = len({row["on"] for row in rows}) > 1 or len(rows) == 1
    names = [name for name in NAMES if any(row["options"].get(name) not in (None, "none") for row in rows)]
    sizes = [name for name in SIZES if any(row["options"].get(name, 1) != 1 for row in rows)]
    header = [
        "",
        *(["on"] if machines else []),
        *names,
        *(SIZES[name] for name in sizes),
        "needs",
        "step",
        "tokens/s",
        "MFU",
    ]
    has_times = any(row["run_seconds"] is not None for row in rows)
    header += ["time", "cost"] if has_times else [say("USD/M tokens")]
    needs = human_column([row["needed_bytes"] for row in rows], "bytes")
    steps = human_column([row["step_seconds"] for row in rows], "seconds")
    times = human_column([row["run_seconds"] for row in rows], "seconds")
    body = []
    for at, row in enumerate(rows, 1):
        cells = [str(at), *([row["on"]] if machines else [])]
        cells += [_named(row, name) for name in names] + [str(row["options"].get(name, 1)) for name in sizes]
        cells += [
            needs[at - 1],
            steps[at - 1],
            _rate(row),
            "-" if row["mfu"] is None else f"{100 * row['mfu']:.1f} %",
        ]
        cells += [times[at - 1], _or(row["cost"], "USD")] if has_times else [_money(row["usd_per_million_tokens"])]
        body.append(cells)
    return table_lines(body, header)


def _named(row: Mapping[str, Any], name: str) -> str:
    value = str(row["options"].get(name, "-"))
    modules = row["options"].get("recompute_modules")
    return f"{value}: {modules}" if name == "recompute" and modules else value


def _or(value: float | None, unit: str) -> str:
    return "-" if value is None else human(value, unit)


def _money(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _rate(row: Mapping[str, Any]) -> str:
    return "-" if row["tokens_per_second"] is None else f"{row['tokens_per_second']:,.0f}"


def _front(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    body = [(row["on"], f"{row['tokens_per_second']:,.0f}", _money(row["usd_per_million_tokens"])) for row in rows]
    return table_lines(body, ("on", "tokens/s", "USD/M tokens"))


def _counts(document: Mapping[str, Any]) -> Iterator[str]:
    """What became of all plans."""
    machines = document["machines"] + document["passed"]
    on = counted(machines, "machines")
    yield say(
        (
            "{considered} plans on {on}, all of the space that docs/commands/plan.md describes: the answer is "
            "exact by the estimate."
        ),
        considered=f"{document['considered']:,}",
        on=on,
    )
    for removal in document["removed"]:
        if removal["plans"]:
            yield "  " + say(
                "{plans} ruled out, as it must hold: {constraint}",
                plans=f"{removal['plans']:>12,}",
                constraint=worded(removal["constraint"]),
            )
    if document["beaten"]:
        yield "  " + say(
            (
                "{beaten} do not fit, are refused by their runtime, or are slower than the best and were not "
                "estimated in full"
            ),
            beaten=f"{document['beaten']:>12,}",
        )
    for removal in document["refused"]:
        yield "    " + say(
            "refused by the runtime, among these: {plans} ({reason})",
            plans=f"{removal['plans']:,}",
            reason=worded(removal["constraint"]),
        )
    yield "  " + say("{estimated} fit and were estimated in full", estimated=f"{document['estimated']:>12,}")
