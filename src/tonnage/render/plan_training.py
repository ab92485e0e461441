"""What a search for plans of training found, as lines of text."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tonnage.breakdown import Term
from tonnage.render.text import inputs_lines, table_lines, tree_lines
from tonnage.units import human

SIZES = {"tensor_parallel_size": "tp", "pipeline_parallel_size": "pp", "virtual_pipeline_size": "vpp", "context_parallel_size": "cp",
         "expert_parallel_size": "ep", "expert_tensor_parallel_size": "etp", "data_parallel_size": "dp", "zero_stage": "zero",
         "micro_batch_size": "mbs", "num_microbatches": "m"}  # fmt: skip
NAMES = (
    "runtime",
    "recompute",
    "precision",
    "optimizer",
    "offload_optimizer",
    "offload_parameters",
    "offload_activations",
)
LIMITS = {"deadline": "", "budget": "USD", "budget_accelerator_hours": "accelerator-hours"}
BEST = {"deadline": "fastest", "budget": "cheapest", "budget of accelerator-hours": "least busy"}
EACH, TOGETHER = ", each by itself", " together"
WORDS = {"fastest": "the fastest", "cheapest": "the cheapest", "fewest": "the fewest accelerators"}


def plan_lines(document: Mapping[str, Any], memory: Term | None) -> list[str]:
    """The verdict, what was asked, the plans with the reason that each beats the next, the first one opened, and what was taken away."""
    plans = document["plans"]
    lines = [_verdict(document), "", *inputs_lines(document["question"]), ""]
    if plans:
        lines += [*_table(plans), ""]
        lines += [f"{at} before {at + 1}: {plan['beats']}" for at, plan in enumerate(plans[:-1], 1)]
        lines += ["", f"plan 1: {plans[0]['text']}"]
        if plans[0]["launch"]:
            lines += [f"  {plans[0]['options'].get('runtime', '')}: {' '.join(plans[0]['launch'])}"]
        if plans[0]["launch_lacks"]:
            lines += [f"  not said by these settings: {', '.join(plans[0]['launch_lacks'])}"]
        lines += ["", *tree_lines(memory, depth=2)] if memory else []
    if document["front"]:
        lines += ["", "no other machine is faster, cheaper and smaller than one of these:", *_front(document["front"])]
    if document["nearest"]:
        lines += ["nearest:", *_table([document["nearest"]]), document["nearest"]["text"]]
    return [*lines, "", *_counts(document), *(f"note: {warning}" for warning in document["warnings"])]


def _verdict(document: Mapping[str, Any]) -> str:
    question, plans = document["question"], document["plans"]
    model = question["model"]["value"]
    if not plans:
        return f"no plan: {_why(document, model)}"
    best = plans[0]
    parts = [f"{best['tokens_per_second']:,.0f} tokens/s", f"MFU {100 * best['mfu']:.1f} %"]
    if best["run_seconds"] is not None:
        parts.append(human(best["run_seconds"], "seconds"))
    if best["cost"] is not None:
        parts.append(human(best["cost"], "USD"))
    elif best["usd_per_million_tokens"] is not None:
        parts.append(f"{human(best['usd_per_million_tokens'], 'USD')} a million tokens")
    return f"{WORDS[document['goal']]} of {document['considered']:,} plans of {model}: {best['on']}, {', '.join(parts)}"


def _why(document: Mapping[str, Any], model: str) -> str:
    binds, near, question = document["binds"], document["nearest"], document["question"]
    if near is None:
        if document["status"] == 4:
            return f"not enough is known of any plan of {model}: {binds}"
        return (
            f"none of {document['considered']:,} plans of {model} is valid: of none that is left it holds that {binds}"
        )
    on = near["on"]
    if binds == "memory":
        short = near["needed_bytes"] - near["usable_bytes"]
        by = f"{human(short, 'bytes')} too much" if short > 0 else "inside the error band"
        return f"memory binds: the plan of {model} that needs least, on {on}, needs {human(near['needed_bytes'], 'bytes')} of {human(near['usable_bytes'], 'bytes')} ({by})"
    takes = human(near["run_seconds"], "seconds") if near["run_seconds"] is not None else "longer"
    costs = human(near["cost"], "USD") if near["cost"] is not None else "an unknown sum"
    if binds == "price":
        return f"no price is known of any machine that carries {model}: give --price-per-accelerator-hour"
    asked = " and ".join(_said(question, name) for name in LIMITS if name in question)
    what = f"plan of {model} that fits, on {on}, takes {takes} and costs {costs}, and {asked} {'are' if ' and ' in asked else 'is'} asked"
    if binds.endswith(TOGETHER):
        return f"{binds.removesuffix(TOGETHER)} cannot be kept together: the cheapest in time, a {what}"
    if binds.endswith(EACH):
        return f"{binds.removesuffix(EACH)} bind, each by itself: the {BEST[binds.partition(' and ')[0]]} {what}"
    return f"the {binds} binds: the {BEST[binds]} {what}"


def _said(question: Mapping[str, Any], name: str) -> str:
    value = question[name]["value"]
    return human(value, LIMITS[name]) if LIMITS[name] and isinstance(value, float | int) else str(value)


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
    asked = any(row["run_seconds"] is not None for row in rows)
    header += ["time", "cost"] if asked else ["USD/M tokens"]
    body = []
    for at, row in enumerate(rows, 1):
        cells = [str(at), *([row["on"]] if machines else [])]
        cells += [_named(row, name) for name in names] + [str(row["options"].get(name, 1)) for name in sizes]
        cells += [
            human(row["needed_bytes"], "bytes"),
            _or(row["step_seconds"], "seconds"),
            _rate(row),
            "-" if row["mfu"] is None else f"{100 * row['mfu']:.1f} %",
        ]
        cells += (
            [_or(row["run_seconds"], "seconds"), _or(row["cost"], "USD")]
            if asked
            else [_money(row["usd_per_million_tokens"])]
        )
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
    machines = document["machines"]
    yield f"{document['considered']:,} plans on {machines:,} {'machine' if machines == 1 else 'machines'}, all of the space: the answer is exact by the estimate."
    for each in document["removed"]:
        if each["plans"]:
            yield f"  {each['plans']:>12,} taken away, as it must hold that {each['constraint']}"
    if document["beaten"]:
        yield f"  {document['beaten']:>12,} slower or dearer than what was found, by a bound or by their time"
    yield f"  {document['estimated']:>12,} estimated"
