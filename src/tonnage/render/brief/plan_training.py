"""The short text of a search for plans of training."""

from collections.abc import Mapping, Sequence
from typing import Any

from tonnage.kernel.units import money, significant
from tonnage.language import say, say_as, worded
from tonnage.language.quantities import human
from tonnage.render.brief.bar import add_bar, memory_parts, peak_of
from tonnage.render.brief.layout import MAX_LINES, Column, Page, Runs
from tonnage.render.brief.numbers import count, gib, many, money_column, seconds, seconds_column, with_band
from tonnage.render.brief.run import deadline_kept
from tonnage.render.brief.training import kind_of
from tonnage.render.brief.words import (
    ASSUMED,
    COUNTS,
    FEWER_ASSUMED,
    NEXT,
    ONE_ROW,
    PLAN_NOTE,
    PROGRAM,
    THREE_ROWS,
    accelerator_of,
    add_more,
    add_notes,
    asked_again,
    assumed,
    gpus,
    named_model,
    value_of,
)
from tonnage.render.tone import Tone, Toned
from tonnage.search.training.machines import MAX_ACCELERATORS

SIZES = {
    "tensor_parallel_size": "TP",
    "pipeline_parallel_size": "PP",
    "virtual_pipeline_size": "VPP",
    "context_parallel_size": "CP",
    "expert_parallel_size": "EP",
    "data_parallel_size": "DP",
    "micro_batch_size": "MBS",
}
NAMES = (
    *("runtime", "recompute", "liger", "loss", "precision", "optimizer"),
    *("offload_optimizer", "offload_parameters"),
)
ASSUMED_NAMES = ("sequence_length", "global_batch_size", "precision", "optimizer", "method", "objective")
GOALS = {"fastest": "fastest", "cheapest": "cheapest", "fewest": "fewest GPUs"}
TIE = 0.03  # a share of the figure that is searched for: less is no difference that an estimate can see
PLAN_DIGITS = 4  # plans are close to one another
WIDER = 4  # times as many accelerators as were searched: what is proposed where the deadline binds
LIMITS = {"deadline": "", "budget": "USD", "budget_accelerator_hours": "accelerator-hours"}
BEST = {"deadline": "fastest", "budget": "cheapest", "budget of accelerator-hours": "least busy"}
EACH, TOGETHER = ", each by itself", " together"


def plan_text(result: Any, program: str, width: int) -> list[Runs]:
    """The lines of a search, at most 24. `program`: what takes the settings of the best plan."""
    document = result.to_dict()
    best = result.plans[0].answer if result.plans else None
    return plan_page(document, best, program, width).lines(MAX_LINES)


def plan_page(document: Mapping[str, Any], best: Any, program: str, width: int) -> Page:
    """`best`: the answer of the first plan, None where there is no plan."""
    page = Page(width)
    line = verdict_line(document)
    page.verdict(line, line.tone)
    page.dim(_subject(document))
    page.blank()
    plans = document["plans"]
    if plans:
        full, three, one = (_table(page, document, plans[:most]) for most in (5, 3, 1))
        page.block(full, (THREE_ROWS, three), (ONE_ROW, one))
        page.blank()
    if best is not None:
        verdict = document["plans"][0]
        add_bar(page, memory_parts(best.memory), verdict["usable_bytes"], best.band, peak_of(best.memory))
    elif document["nearest"]:
        page.command("nearest", document["nearest"]["text"])
    page.options("assumed", assumed(_inputs(document), ASSUMED_NAMES), fewer=FEWER_ASSUMED, drop=ASSUMED)
    page.field("search", _counts(document), drop=COUNTS)
    notes = [*document["warnings"]]
    if plans and plans[0]["launch"] and plans[0]["launch_lacks"]:
        page.field("note", say("the settings do not say {lacks}", lacks=_listed(plans[0]["launch_lacks"])))
    add_notes(page, notes, most=1, drop=PLAN_NOTE)
    page.blank()
    if plans and plans[0]["launch"]:
        page.command("start", " ".join(plans[0]["launch"]))
        if program:
            page.field("", worded(program), drop=PROGRAM)
    if plans:
        page.command("next", plans[0]["text"], drop=NEXT)
    elif wider := _wider_search(document):
        page.command("try", wider)
    add_more(page)
    return page


def verdict_line(document: Mapping[str, Any]) -> Toned:
    """The best plan and its figure; or why there is none."""
    plans, question = document["plans"], document["question"]
    model = question["model"]["value"]
    if not plans:
        tone: Tone = "warn" if document["status"] in (2, 4) else "bad"
        return Toned(say("no plan: {why}", why=_why(document, model)), tone)
    best = plans[0]
    what = say(", ").join([*([best["on"]] if _machines(document) else []), *_spread(best)])
    parts = [say("{rate} tokens/s", rate=significant(best["tokens_per_second"], PLAN_DIGITS))]
    if best["run_seconds"] is not None:
        parts.append(seconds(best["run_seconds"]))
    if best["cost"] is not None:
        parts.append(f"{money(best['cost'])} USD")
    elif document["goal"] == "cheapest" and best["usd_per_million_tokens"] is not None:
        parts.append(say("{usd} USD per million tokens", usd=money(best["usd_per_million_tokens"])))
    figures = say(", ").join(parts)
    goal = say_as("goal", GOALS[document["goal"]])
    line = say("{goal}: {plan}: {figures}", goal=goal, plan=what, figures=figures)
    return _backed(document, line)


def _backed(document: Mapping[str, Any], line: str) -> Toned:
    """The line, with what is not sure: a deadline inside the error band, and what no published run backs: the memory
    of the best plan, or the rates of its accelerator.
    """
    best, verdict = document["plans"][0], document["best"]["verdict"]
    band, deadline = best.get("run_seconds_band"), document.get("deadline_seconds")
    tone: Tone = "good"
    if band and deadline is not None:
        kept, is_sure = deadline_kept(best["run_seconds"], band[1], deadline)
        line, tone = (line, tone) if is_sure else (say("; ").join([line, kept]), "warn")
    others = verdict.get("band_of_others")
    if others and others[1] > verdict["usable_bytes"]:
        high, usable = gib(others[1]), gib(verdict["usable_bytes"])
        line = say("{line}; not measured: may need up to {high} of {usable} GiB", line=line, high=high, usable=usable)
        return Toned(line, "warn")
    if not best["measured"]:
        chip = accelerator_of(best["on"])
        return Toned(say("{line}; no published runs on {machine} back it", line=line, machine=chip), "warn")
    return Toned(line, tone)


def _machines(document: Mapping[str, Any]) -> bool:
    """Whether several machines were searched."""
    return bool(document["machines"] + document["passed"] > 1)


def _spread(plan: Mapping[str, Any]) -> list[str]:
    """The runtime and how a plan is spread over the GPUs."""
    options = plan["options"]
    names = ("tensor_parallel_size", "pipeline_parallel_size", "context_parallel_size", "expert_parallel_size")
    sizes = [f"{SIZES[name]} {options[name]}" for name in (*names, "data_parallel_size") if options.get(name, 1) > 1]
    words = [str(options["runtime"])] if "runtime" in options else []
    words += [" x ".join(sizes)] if sizes else []
    if options.get("micro_batch_size", 1) > 1:
        words.append(say("micro-batch {size}", size=options["micro_batch_size"]))
    if options.get("recompute", "none") != "none":
        words.append(say("recompute {policy}", policy=options["recompute"]))
    if options.get("liger"):
        words.append("liger")
    if options.get("loss"):
        words.append(say("loss {kind}", kind=options["loss"]))
    if generating := options.get("rollout_accelerators"):
        train = plan["accelerators"] - generating
        if options.get("async_steps"):
            words.append(say("{train} train while {apart} generate", train=train, apart=generating))
        else:
            words.append(say("{train} train, {apart} generate", train=train, apart=generating))
    return words


def _subject(document: Mapping[str, Any]) -> str:
    question, plans = document["question"], document["plans"]
    on = str(value_of(question, "on", ""))
    number = plans[0]["accelerators"] if plans and not _machines(document) else 0
    where = say("{machine} ({gpus})", machine=on, gpus=gpus(on, number)) if number > 1 else on
    inputs = _inputs(document)
    what = say("{model} on {where}: {kind}", model=question["model"]["value"], where=where, kind=kind_of(inputs))
    length, batch = value_of(inputs, "sequence_length"), value_of(inputs, "global_batch_size")
    if length and batch:
        return say("{what}, {tokens} tokens per step", what=what, tokens=many(length * batch))
    return what


def _inputs(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The inputs of the search, and of the best plan those that the search did not choose."""
    best = document["best"]
    own = {
        name: entry
        for name, entry in (best["question"] if best else {}).items()
        if name in (*ASSUMED_NAMES, "runtime_version") and entry["from"] != "given"
    }
    return {**own, **document["question"]}


def _table(page: Page, document: Mapping[str, Any], plans: Sequence[Mapping[str, Any]]) -> list[Runs]:
    """The plans, what differs between them, and their figures."""
    money_of = any(plan["run_seconds"] is not None for plan in plans)
    header = [Column("", "l"), *([Column(say("machine"), "l")] if _machines(document) else [])]
    is_split = any(plan["options"].get("rollout_accelerators") for plan in plans)
    header += [Column(say("train")), Column(say("generate"))] if is_split else []
    names = [name for name in NAMES if any(plan["options"].get(name) not in (None, "none") for plan in plans)]
    sizes = [name for name in SIZES if any(plan["options"].get(name, 1) != 1 for plan in plans)]
    header += [Column(say(name.replace("_", " ")), "l", keep=3 if name != "runtime" else 8) for name in names]
    header += [Column(SIZES[name], keep=6) for name in sizes]
    header += [
        Column("GiB", keep=7),
        Column(say_as("column", "step"), keep=4),
        Column(say_as("column", "tokens/s")),
        Column("MFU", keep=2),
    ]
    header += [Column(say("time")), Column("USD", keep=8)] if money_of else [Column("USD/M", keep=5)]
    steps = seconds_column([plan["step_seconds"] for plan in plans], PLAN_DIGITS)
    times = seconds_column([plan["run_seconds"] for plan in plans])
    costs = money_column([plan["cost" if money_of else "usd_per_million_tokens"] for plan in plans])
    is_guessed = not all(plan["measured"] for plan in plans)
    rows = []
    tied = False
    for place, plan in enumerate(plans, 1):
        ties = place > 1 and _ties(document, plans[0], plan)
        tied |= ties
        rows.append(
            [
                f"{place} =" if ties else f"{place}",
                *([_marked(plan)] if _machines(document) else []),
                *(_split_cells(plan) if is_split else []),
                *(_option(plan, name) for name in names),
                *(str(plan["options"].get(name, 1)) for name in sizes),
                gib(plan["needed_bytes"]),
                steps[place - 1],
                _or(plan["tokens_per_second"], lambda rate: significant(rate, PLAN_DIGITS)),
                _or(plan["mfu"], lambda share: f"{100 * share:.1f} %"),
                *([times[place - 1]] if money_of else []),
                costs[place - 1],
            ]
        )
    words = [say("= ties with row 1: within {percent} % of it", percent=round(100 * TIE))] if tied else []
    words += [say("? no published runs on this machine")] if _machines(document) and is_guessed else []
    words += [] if money_of else [say("USD/M: per million tokens")]
    key = page.dim_lines(say("; ").join(words)) if words else []
    return [*page.table_lines(header, rows), *key]


def _split_cells(plan: Mapping[str, Any]) -> list[str]:
    """The accelerators that train, and those that generate; the same where they take turns."""
    generating = plan["options"].get("rollout_accelerators", 0)
    return [str(plan["accelerators"] - generating), str(generating) if generating else say("the same")]


def _marked(plan: Mapping[str, Any]) -> str:
    """The machine of a plan, marked where no published runs on it back the time."""
    return str(plan["on"]) if plan["measured"] else f"{plan['on']} ?"


def _ties(document: Mapping[str, Any], best: Mapping[str, Any], plan: Mapping[str, Any]) -> bool:
    """Whether a plan is as good as the best by the figure that is searched for."""
    if document["goal"] == "fewest" and best["accelerators"] != plan["accelerators"]:
        return False
    key = "usd_per_million_tokens" if document["goal"] == "cheapest" else "step_seconds"
    one, other = best[key], plan[key]
    if one is None or other is None or best["on"] != plan["on"]:
        return False
    return bool(abs(other / one - 1) < TIE)


def _option(plan: Mapping[str, Any], name: str) -> str:
    value = str(plan["options"].get(name, "-"))
    if name == "liger":
        return say("yes") if plan["options"].get(name) else "-"
    modules = plan["options"].get("recompute_modules")
    return str(modules) if name == "recompute" and modules else value


def _or(value: Any, write: Any) -> str:
    return "-" if value is None else str(write(value))


def _wider_search(document: Mapping[str, Any]) -> str:
    """The search again, over more accelerators: of any number where one machine was named, of larger machines where
    the deadline binds; nothing where more of them help nothing.
    """
    question, binds = document["question"], str(document["binds"])
    on, most = str(value_of(question, "on", "")), value_of(question, "max_accelerators", MAX_ACCELERATORS)
    if document["status"] == 4 or "budget" in binds or question["on"]["from"] != "given":
        return ""
    start = f"tonnage plan {named_model(question)} --train --on"
    if not _machines(document):
        rest = asked_again(question, ("data_parallel_size", "top"))
        return "" if accelerator_of(on) == on else f"{start} {accelerator_of(on)}{rest}"
    if not binds.startswith("deadline"):
        return ""
    rest = asked_again(question, ("max_accelerators", "goal"))
    return f"{start} {on.replace(', ', ',')}{rest} --max-accelerators {WIDER * most}"


def _listed(texts: Sequence[str]) -> str:
    return say(", ").join(map(worded, texts))


def _counts(document: Mapping[str, Any]) -> str:
    """What became of all plans."""
    invalid = sum(removal["plans"] for removal in document["removed"])
    parts = [
        say("{count} invalid", count=count(invalid)),
        say("{count} do not fit or are slower", count=count(document["beaten"])),
        say("{count} estimated in full", count=count(document["estimated"])),
    ]
    return say("all {count} plans: {parts}", count=count(document["considered"]), parts=say(", ").join(parts))


def _why(document: Mapping[str, Any], model: str) -> str:
    binds, near, question = document["binds"], document["nearest"], document["question"]
    if near is None:
        if document["status"] == 4:
            return say("not enough is known of any plan of {model}: {binds}", model=model, binds=worded(binds))
        if document["refused"]:
            most = max(document["refused"], key=lambda refusal: refusal["plans"])
            return say(
                "the runtimes refuse every plan of {model}: {reason}", model=model, reason=worded(most["constraint"])
            )
        return say(
            "none of {considered} plans of {model} is valid; what none keeps: {binds}",
            considered=f"{document['considered']:,}",
            model=model,
            binds=worded(binds),
        )
    on = near["on"]
    if binds == "memory":
        short = near["needed_bytes"] - near["usable_bytes"]
        by = say("{short} too much", short=human(short, "bytes")) if short > 0 else say("inside the error band")
        return say(
            (
                "memory binds: the plan of {model} that needs least, on {on}, needs {needed_bytes} of "
                "{usable_bytes} ({by})"
            ),
            model=model,
            on=on,
            needed_bytes=human(near["needed_bytes"], "bytes"),
            usable_bytes=human(near["usable_bytes"], "bytes"),
            by=by,
        )
    takes = _takes(near, document.get("deadline_seconds"))
    costs = human(near["cost"], "USD") if near["cost"] is not None else say("an unknown sum")
    if binds == "price":
        return say(
            "no price is known of any machine that carries {model}: give --price-per-accelerator-hour", model=model
        )
    return _limited(binds, [_said(question, name) for name in LIMITS if name in question], (model, on, takes, costs))


def _takes(near: Mapping[str, Any], deadline: float | None) -> str:
    """The time of the nearest plan, with its error band where that reaches the deadline."""
    if near["run_seconds"] is None:
        return say("longer")
    band = near.get("run_seconds_band")
    return with_band(near["run_seconds"], band if band and deadline is not None and band[0] <= deadline else None)


def _limited(binds: str, limits: list[str], nearest: tuple[str, str, str, str]) -> str:
    """Why no plan keeps within the limits. `nearest`: the model, the machine, the time and the cost of the nearest
    plan.
    """
    model, on, takes, costs = nearest
    bounds = say(" and ").join(limits)
    if len(limits) > 1:
        what = say(
            "plan of {model} that fits, on {on}, takes {takes} and costs {costs}, and {asked} are asked",
            model=model,
            on=on,
            takes=takes,
            costs=costs,
            asked=bounds,
        )
    else:
        what = say(
            "plan of {model} that fits, on {on}, takes {takes} and costs {costs}, and {asked} is asked",
            model=model,
            on=on,
            takes=takes,
            costs=costs,
            asked=bounds,
        )
    if binds.endswith(TOGETHER):
        return say(
            "{limits} cannot be kept together: the cheapest in time, a {what}",
            limits=_limits(binds.removesuffix(TOGETHER)),
            what=what,
        )
    if binds.endswith(EACH):
        return say(
            "{limits} bind, each by itself: the {name} {what}",
            limits=_limits(binds.removesuffix(EACH)),
            name=say(BEST[binds.partition(" and ")[0]]),
            what=what,
        )
    return say("the {name} binds: the {name2} {what}", name=say(binds), name2=say(BEST[binds]), what=what)


def _limits(names: str) -> str:
    return say(" and ").join(map(say, names.split(" and ")))


def _said(question: Mapping[str, Any], name: str) -> str:
    value = question[name]["value"]
    return human(value, LIMITS[name]) if LIMITS[name] and isinstance(value, float | int) else str(value)
