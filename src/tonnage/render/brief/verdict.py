"""The first line of an answer of `train` or `serve`: whether it fits, how much it needs of what there is, and the
option or the machine that makes it fit.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tonnage.language import say, worded
from tonnage.render.brief.numbers import count, gib, percent, seconds, significant, target
from tonnage.render.brief.words import CHIPS, at_load, flag, flags_of, rate_text, value_of
from tonnage.render.tone import Toned

MAX_OPTION = 44  # characters of a change in the first line
FOLLOWING = ("data_parallel_size", "num_microbatches")  # follow from a larger machine and the batch
LIMITS = (("ttft", "TTFT"), ("tpot", "TPOT"))


def verdict_line(document: Mapping[str, Any]) -> Toned:
    """One sentence: whether it fits, what it needs, what there is."""
    verdict = document["verdict"]
    low, high = verdict["band"] or (verdict["needed_bytes"], verdict["needed_bytes"])
    usable = verdict["usable_bytes"]
    sizes = sizes_text(document)
    option = chosen_text(document)
    if low <= usable < high:
        head = say("tight with {option}", option=option) if option else say("tight")
        end = say("the error band ends at {high} GiB", high=gib(high))
        return Toned(say("{head}: {sizes}; {end}", head=head, sizes=sizes, end=end), "warn")
    if verdict["fits"] is None:
        return Toned(say("not sure: at least {sizes}; not enough is known", sizes=sizes), "warn")
    if not verdict["fits"] and low <= usable and verdict.get("missed"):  # the hosts hold too little
        return Toned(say("does not fit: {missed}; GPUs: {sizes}", missed=worded(verdict["missed"]), sizes=sizes), "bad")
    if not verdict["fits"]:
        way = _way_out(document)
        line = say("does not fit: {sizes}", sizes=sizes)
        return Toned(say("{line}; {way}", line=line, way=way) if way else line, "bad")
    if verdict.get("missed"):
        return Toned(_missed(document, sizes), "bad")
    head = say("fits with {option}", option=option) if option else say("fits")
    share = percent(verdict["needed_bytes"] / usable)
    line = say("{head}: {sizes} ({share} %)", head=head, sizes=sizes, share=share)
    load = "" if option else load_text(document)
    line = say("{line} for {load}", line=line, load=load) if load else line
    unknown = unknown_text(document)
    return Toned(say("{line}; {unknown}", line=line, unknown=unknown) if unknown else line, "good")


def unknown_text(document: Mapping[str, Any]) -> str:
    """What nobody can say of the speed, or what is missing to say it; nothing where the speed is known."""
    if "serving" not in document:
        return "" if "step_time" in document else say("step time not estimated")
    if "tpot_seconds" not in document["serving"]:
        return say("speed not estimated")
    question = document["question"]
    if "draft_tokens" in question and "acceptance" not in question:
        return say("drafts need --acceptance: without it they only cost time")
    return ""


def sizes_text(document: Mapping[str, Any]) -> str:
    """What is needed of what is usable, and on which GPU."""
    verdict, question = document["verdict"], document["question"]
    needed, usable = gib(verdict["needed_bytes"]), gib(verdict["usable_bytes"])
    if value_of(question, "accelerators", 1) == 1:
        return say("{needed} of {usable} GiB", needed=needed, usable=usable)
    chips = any(name in str(value_of(question, "on")) for name in CHIPS)
    if "serving" in document and value_of(question, "pipeline_parallel_size", 1) == 1:
        if chips:
            return say("{needed} of {usable} GiB on each chip", needed=needed, usable=usable)
        return say("{needed} of {usable} GiB on each GPU", needed=needed, usable=usable)
    if chips:
        return say("{needed} of {usable} GiB on the fullest chip", needed=needed, usable=usable)
    return say("{needed} of {usable} GiB on the fullest GPU", needed=needed, usable=usable)


def chosen_text(document: Mapping[str, Any]) -> str:
    """The options that were chosen so that it fits; nothing where the runtime's defaults do."""
    chosen = document.get("chosen")
    return worded(str(chosen["text"])) if chosen else ""


def load_text(document: Mapping[str, Any]) -> str:
    """Users and the length that each was counted with; nothing for training, or where nobody holds a cache."""
    question = document["question"]
    if "serving" not in document or "request_rate" in question or "trace" in question:
        return ""
    users, context = value_of(question, "concurrency"), value_of(question, "context")
    if not users or not context:
        return ""
    if users == 1:
        return say("1 user of {context} tokens", context=count(context))
    return say("{users} users of {context} tokens", users=count(users), context=count(context))


def _way_out(document: Mapping[str, Any]) -> str:
    """What makes it fit: the first change that does, or another machine."""
    fitting = [move for move in document.get("advice", ()) if move["fits"]]
    if fitting:
        return _fits_with(fitting[0])
    near = document.get("nearest_miss")
    if near and near["smallest_machine"]:
        return say("fits on {machine}", machine=near["smallest_machine"])
    return say("no change that was tried makes it fit") if near else ""


def _fits_with(move: Mapping[str, Any]) -> str:
    """The machine or the options that make it fit; how many options, where they are too long for a first line."""
    machine = move["change"].get("on")
    unsaid = ("on", *FOLLOWING) if machine else ("on",)
    rest = " ".join(flag(name, value) for name, value in move["change"].items() if name not in unsaid)
    if machine:
        short = rest and len(rest) <= MAX_OPTION - len(machine)
        return (
            say("fits on {machine} with {option}", machine=machine, option=rest)
            if short
            else say("fits on {machine}", machine=machine)
        )
    if len(rest) <= MAX_OPTION:
        return say("fits with {option}", option=rest)
    return say("fits with {count} changes", count=len(move["change"]))


def _missed(document: Mapping[str, Any], sizes: str) -> str:
    """What fits and does not do what was asked."""
    missed = document["verdict"]["missed"]
    if "serving" not in document:
        return say("{missed}; memory fits: {sizes}", missed=worded(missed), sizes=sizes)
    level = document["serving"].get("service_level")
    if level and not level["met"]:
        names = [name for key, name in LIMITS if exceeded(level, key)]
        line = say("misses {targets}: {what}", targets=say(" and ").join(names), what=_first_missed(document, level))
        better = cheapest_serving(document)
        if better is None:
            return line
        if _holds_at_high_end(document, level, better):
            return say("{line}; met with {option}", line=line, option=flags_of(better))
        key = next((key for key, _ in LIMITS if exceeded(level, key)), "ttft")
        figure = better.get(f"{key}_seconds")
        if not figure or level["percentile"] != "mean":
            return line
        return say("{line}; {value} with {option}", line=line, value=seconds(figure), option=flags_of(better))
    rate = document["serving"].get("largest_rate")
    asked_rate = value_of(document["question"], "request_rate")
    if rate and asked_rate:
        return say(
            "overloaded: {asked} requests/s come, {answered} are answered at most; memory fits: {sizes}",
            asked=rate_text(document["question"]),
            answered=significant(rate["value"]),
            sizes=sizes,
        )
    return say("{missed}; memory fits: {sizes}", missed=worded(missed), sizes=sizes)


def cheapest_serving(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Of the suggestions that serve the load as it was asked the one whose tokens cost least; None where none does."""
    serving = [move for move in document.get("advice", ()) if move.get("serves")]
    return min(serving, key=lambda move: move.get("usd_per_million_tokens") or float("inf"), default=None)


def _holds_at_high_end(document: Mapping[str, Any], level: Mapping[str, Any], move: Mapping[str, Any]) -> bool:
    """Whether a suggestion meets the limits at the high end of the error band too, as wide as it is now."""
    serving = document["serving"]
    for key, _ in LIMITS:
        limit, figure = level.get(f"{key}_limit_seconds"), move.get(f"{key}_seconds")
        now, band = serving.get(f"{key}_seconds"), serving.get(f"{key}_band")
        if limit is None:
            continue
        if not figure or not now or figure * (band[1] / now["value"] if band else 1) > limit:
            return False
    return True


def exceeded(level: Mapping[str, Any], key: str) -> bool:
    """Whether a limit of a service level is exceeded, or its figure grows without end."""
    limit = level.get(f"{key}_limit_seconds")
    figure = level.get(f"{key}_seconds")
    return limit is not None and (figure is None or figure > limit)


def _first_missed(document: Mapping[str, Any], level: Mapping[str, Any]) -> str:
    keys: Sequence[str] = [key for key, _ in LIMITS if exceeded(level, key)]
    key = keys[0] if keys else "ttft"
    figure, limit = level.get(f"{key}_seconds"), target(level[f"{key}_limit_seconds"])
    if figure is None:
        return say("the queue grows without end, target {limit}", limit=limit)
    at = at_load(document["question"])
    value = seconds(figure) if level["percentile"] == "mean" else f"{level['percentile']} {seconds(figure)}"
    if at:
        return say("{value} {load}, target {limit}", value=value, load=at, limit=limit)
    return say("{value}, target {limit}", value=value, limit=limit)
