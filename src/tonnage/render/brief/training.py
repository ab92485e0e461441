"""What the short text says of a training run: subject, speed, cost, a suggestion, the following question."""

from collections.abc import Mapping
from typing import Any

from tonnage.documents.question import ASKED
from tonnage.kernel.units import money, significant
from tonnage.language import say, say_as
from tonnage.render.brief.layout import Page
from tonnage.render.brief.numbers import count, gib, many, percent, seconds, seconds_change, with_band
from tonnage.render.brief.read import model_shown
from tonnage.render.brief.run import is_length_of_budget
from tonnage.render.brief.verdict import MoveState
from tonnage.render.brief.words import (
    COST,
    accelerator_of,
    asked_again,
    carbon_text,
    flag,
    gpus,
    money_change,
    named_model,
    tool_of,
    usd_per_hour,
    value_of,
    with_changes,
)
from tonnage.runtimes import has_training_runtime, training_runtime
from tonnage.runtimes.parts.tool import WRITTEN_OBJECTIVES

METHODS = {"full": "full training", "lora": "LoRA", "qlora": "QLoRA", "dora": "DoRA", "ia3": "IA3"}
NOT_SEARCHED = ("advice", "as_is", "calibrated")  # options of `train` that neither a search nor a file has
LARGEST = {"sequence_length": "sequence", "micro_batch_size": "micro-batch"}  # what `tonnage max` is asked for
HOUR, MILLION = 3600.0, 1e6

# Objectives that are known by their letters.
ABBREVIATED = {name: name.upper() for name in ("dpo", "grpo", "dapo", "rloo", "ppo", "orpo", "kto", "gkd")} | {
    "online-dpo": "online DPO"
}


def training_subject(document: Mapping[str, Any]) -> str:
    """Model, machine, kind of training, runtime."""
    question = document["question"]
    machine, number = str(value_of(question, "on")), value_of(question, "accelerators", 1)
    where = machine if number == 1 else say("{machine} ({gpus})", machine=machine, gpus=gpus(machine, number))
    if generating := value_of(question, "rollout_accelerators", 0):
        where = say(
            "{machine} ({gpus}: {train} train, {apart} generate)",
            machine=machine,
            gpus=gpus(machine, number + generating),
            train=count(number),
            apart=count(generating),
        )
    what = say(
        "{model} on {where}: {kind}, {runtime}",
        model=model_shown(document),
        where=where,
        kind=kind_of(question),
        runtime=runtime_of(question),
    )
    what = _with_media(what, question)
    if question["sequence_length"]["from"] not in ASKED:
        return what
    return say("{what}, {tokens}-token sequences", what=what, tokens=count(value_of(question, "sequence_length")))


def _with_media(what: str, question: Mapping[str, Any]) -> str:
    """What is trained, with the tokens of images or of a video in each sequence."""
    frozen = value_of(question, "vision_tower") == "frozen"
    if images := value_of(question, "image_tokens"):
        words = {"what": what, "tokens": count(images)}
        return (
            say("{what}; {tokens} image tokens a sequence, vision tower frozen", **words)
            if frozen
            else say("{what}; {tokens} image tokens a sequence, vision tower trained", **words)
        )
    if tokens := value_of(question, "video_tokens"):
        words = {"what": what, "tokens": count(tokens)}
        return (
            say("{what}; {tokens} video tokens a sequence, vision tower frozen", **words)
            if frozen
            else say("{what}; {tokens} video tokens a sequence, vision tower trained", **words)
        )
    return what


def kind_of(question: Mapping[str, Any]) -> str:
    """How it is trained, and for what: full training, LoRA, DPO, GRPO of 64 x 8 completions a step."""
    method, objective = str(value_of(question, "method", "full")), str(value_of(question, "objective", "sft"))
    kind = say(METHODS[method]) if method in METHODS else method
    if objective == "sft":
        return kind
    what = ABBREVIATED.get(objective, objective)
    prompts, each = (value_of(question, name) for name in ("prompts_per_step", "num_generations"))
    if prompts and each:
        what = say("{objective} of {prompts} x {each} completions", objective=what, prompts=prompts, each=each)
    return say("{kind}, {objective}", kind=kind, objective=what)


def runtime_of(question: Mapping[str, Any]) -> str:
    """The runtime as its option names it, with torchtitan where the recipe and the model's code are torchtitan's; of a
    tool its name, with what it runs on.
    """
    tool = tool_of(question)
    if tool:
        return f"{tool.title} ({value_of(question, 'runtime', '')})"
    runtime, version = str(value_of(question, "runtime", "")), str(value_of(question, "runtime_version", ""))
    code = version.partition(" ")[0]
    is_own_code = str(value_of(question, "model_code", code)) == code
    return f"{runtime} ({code})" if is_own_code and code and not code.lower().startswith(runtime) else runtime


def add_training(page: Page, document: Mapping[str, Any]) -> None:
    """Speed of a step, the whole run, and money."""
    run, step = document.get("run", {}), document.get("step_time")
    if not step or not run:
        page.field("speed", say("not known: see the note"))
        return
    parts = [
        say("{time} per step", time=with_band(step["value"], run.get("step_time_band"))),
        say("{rate} tokens/s", rate=significant(run["tokens_per_second"]["value"])),
        f"MFU {percent(run['mfu']['value'])} %",
        say("bound by {what}", what=say_as("bound", run["bound_by"])),
    ]
    if "rollout_share" in run:
        parts.insert(2, say("rollout {share} %", share=percent(run["rollout_share"]["value"])))
    lines = [say(", ").join(parts)]
    if "seconds" in run:
        lines.append(_whole_run(run, document["question"]))
    page.field("speed", *lines)
    if cost := _cost(document):
        page.field("cost", cost)
    if carbon := carbon_text(document):
        page.field("carbon", carbon, drop=COST)


def _whole_run(run: Mapping[str, Any], question: Mapping[str, Any]) -> str:
    whole = say(
        "{tokens} tokens in {time}, {hours} GPU-hours",
        tokens=many(run["tokens"]["value"]),
        time=_time_of_run(run, question),
        hours=_hours(run["accelerator_hours"]["value"]),
    )
    wanted = run.get("accelerators_for_deadline")
    if wanted and run.get("deadline_met"):
        enough = say("{count} GPUs meet the deadline", count=count(wanted["value"]))
        return say("{whole}; {enough}", whole=whole, enough=enough)
    return whole


def _time_of_run(run: Mapping[str, Any], question: Mapping[str, Any]) -> str:
    """The time by the clock; where failures are to be expected also the computing alone, its share, and whose rate of
    failures that is.
    """
    whole = seconds(run["seconds"]["value"])
    number = run["failures"]["value"]
    if number < 1:
        return whole
    failures = say("{number} failures", number=significant(number))
    if rate := value_of(question, "failures"):
        failures = say("{failures} at the rate of {rate}", failures=failures, rate=rate)
    return say(
        "{time} ({computing} of computing, goodput {goodput} %, {failures})",
        time=whole,
        computing=seconds(run["productive_seconds"]["value"]),
        goodput=percent(run["goodput"]["value"]),
        failures=failures,
    )


def _hours(value: float) -> str:
    """GPU-hours with three digits, from a million on with M or B."""
    return many(value) if value >= MILLION else significant(value)


def _cost(document: Mapping[str, Any]) -> str:
    """Money of a million tokens, of an hour, and of the run; nothing where no price is known."""
    cost, million = document.get("cost"), usd_per_million(document)
    if not cost or million is None:
        return ""
    run = document["run"]
    taken = run["seconds"]["value"] if "seconds" in run else document["step_time"]["value"]
    parts = [
        say("{usd} USD per million tokens", usd=money(million)),
        say("{usd} USD per hour", usd=money(cost["value"] / taken * HOUR)),
    ]
    if "seconds" in run:
        parts.insert(0, say("{usd} USD for the run", usd=money(cost["value"])))
    text, price = say(", ").join(parts), usd_per_hour(document)
    return say("{text} ({price})", text=text, price=price) if price else text


def _with_failures(document: Mapping[str, Any], usd: float | None) -> float | None:
    """What tokens of a move cost, with the share of the time that failures and checkpoints take of this run."""
    run = document.get("run", {})
    if usd is None or "seconds" not in run:
        return usd
    return float(usd * run["seconds"]["value"] / run["productive_seconds"]["value"])


def usd_per_million(document: Mapping[str, Any]) -> float | None:
    """USD of a million tokens; None where no price is known."""
    cost, run, step = document.get("cost"), document.get("run", {}), document.get("step_time")
    if not cost or not step or not run:
        return None
    if "tokens" in run and "seconds" in run:
        return float(cost["value"] / run["tokens"]["value"] * MILLION)
    return float(cost["value"] / (step["value"] * run["tokens_per_second"]["value"]) * MILLION)


def training_change(document: Mapping[str, Any], move: Mapping[str, Any], state: MoveState = "met") -> str:
    """A suggestion: what it changes, before and after."""
    verdict = document["verdict"]
    needed, after = verdict["needed_bytes"], move["needed_bytes"]
    fits = say(", fits") if verdict["fits"] is not True and move["fits"] and state != "missed" else ""
    parts = []
    if gib(needed) != gib(after):
        parts.append(say("{before} -> {after} GiB{fits}", before=gib(needed), after=gib(after), fits=fits))
    run, change = document.get("run", {}), move.get("time_change")
    if run and change is not None and "on" not in move["change"]:
        before = run["tokens_per_second"]["value"]
        rate = say("{before} -> {after} tokens/s", before=significant(before), after=significant(before / (1 + change)))
        parts.append(rate)
    elif document.get("step_time") and move.get("step_seconds"):
        took = seconds_change(document["step_time"]["value"], move["step_seconds"])
        parts.append(say("{change} per step", change=took))
    parts.append(money_change(usd_per_million(document), _with_failures(document, move.get("usd_per_million_tokens"))))
    return with_changes(parts, move)


def training_start(document: Mapping[str, Any]) -> str:
    """The command that writes what starts the run; nothing where no format of the runtime, or of the tool that was
    asked for, is written, or none with this objective.
    """
    question = document["question"]
    tool, runtime = tool_of(question), str(value_of(question, "runtime", ""))
    format_name = tool.export if tool else training_runtime(runtime).export if has_training_runtime(runtime) else ""
    objective = str(value_of(question, "objective", "sft"))
    if not format_name or objective not in WRITTEN_OBJECTIVES.get(format_name, (objective,)):
        return ""
    rest = asked_again(question, NOT_SEARCHED)
    return f"tonnage export {format_name} train {named_model(question)} --on {value_of(question, 'on')}{rest}"


def training_next(document: Mapping[str, Any], *, fits: bool) -> str:
    """The following question, with all that was given: the best plan of this machine, or where it does not fit or
    misses a limit the best machine for it; where the time of a step is not known, the longest sequence, or the largest
    micro-batch, that fits; nothing where both were given.
    """
    from tonnage.estimate.step.objective import TIMED  # not where a served model is shown

    question = document["question"]
    on = str(value_of(question, "on"))
    objective = str(value_of(question, "objective", "sft"))
    if "step_time" not in document or objective not in ("sft", *TIMED):
        free = next((name for name in LARGEST if question.get(name, {}).get("from") not in ASKED), None)
        if free is None or not fits:
            return ""
        rest = asked_again(question, (free, *NOT_SEARCHED))
        return f"tonnage max {LARGEST[free]} {named_model(question)} --on {on}{rest}"
    keeps_machine = fits and not document["verdict"].get("missed")
    left_out = NOT_SEARCHED if keeps_machine else (*NOT_SEARCHED, "data_parallel_size")
    machine = on if keeps_machine else accelerator_of(on)
    rest = asked_again(question, left_out, ASKED)
    if "tokens" in document["run"] and is_length_of_budget(question):  # a search needs the length that the budget buys
        rest += f" {flag('tokens', round(document['run']['tokens']['value']))}"
    search = "" if keeps_machine else " --train"
    return f"tonnage plan {named_model(question)}{search} --on {machine}{rest}"
