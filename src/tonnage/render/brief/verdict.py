"""The first line of an answer of `train` or `serve`: whether it fits, how much it needs of what there is, and the
option or the machine that makes it fit.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from tonnage.kernel.units import significant
from tonnage.language import say, worded
from tonnage.render.brief.encoded import encoded_of, encoded_result, overload_of
from tonnage.render.brief.numbers import count, gib, percent, seconds, seconds_unit, target
from tonnage.render.brief.run import limits_kept, missed_text
from tonnage.render.brief.words import CHIPS, accelerators_in, at_load, flag, flags_of, rate_text, users_text, value_of
from tonnage.render.tone import Tone, Toned
from tonnage.runtimes import serving_runtime

MOST_KEYS = 3  # that were not understood, in the first line
MAX_OPTION = 44  # characters of a change in the first line
_PIECE = re.compile(r", | (?=-)")  # between the options, or the keys, of a change
FOLLOWING = ("data_parallel_size", "num_microbatches")  # follow from a larger machine and the batch
WAITING = 0.1  # of an answer's time: a longer wait for a replica is said in the first line
MUCH_LARGER = 4  # times the accelerators that were asked about: hardly an answer to who has these
MoveState = Literal["met", "tight", "missed"]  # how a suggestion stands with the targets
LIMITS = (("ttft", "TTFT"), ("tpot", "TPOT"))


def verdict_line(document: Mapping[str, Any]) -> Toned:
    """One sentence: whether it fits, what it needs, what there is; first what was not understood of a file."""
    line = _verdict_line(document)
    read = document.get("read")
    if not read or read["is_sure"]:
        return line
    unclear = [key["key"] for key in read["keys"] if key["status"] == "not understood"]
    more = say(" and {count} more", count=len(unclear) - MOST_KEYS) if len(unclear) > MOST_KEYS else ""
    names = say(", ").join(unclear[:MOST_KEYS]) + more
    unclear_text = say("{names} of {file} not understood", names=names, file=say(read["file"]))
    return Toned(say("not sure: {unclear}; judged without that: {line}", unclear=unclear_text, line=line), "warn")


def _verdict_line(document: Mapping[str, Any]) -> Toned:
    verdict = document["verdict"]
    low, high = verdict["band"] or (verdict["needed_bytes"], verdict["needed_bytes"])
    usable = verdict["usable_bytes"]
    sizes = sizes_text(document)
    option = chosen_text(document)
    if low <= usable < high:
        head = say("tight with {option}", option=option) if option else say("tight")
        over = verdict["needed_bytes"] > usable
        end = (
            say("the error band begins at {low} GiB", low=gib(low))
            if over
            else say("the error band ends at {high} GiB", high=gib(high))
        )
        line = say("{head}: {sizes}; {end}", head=head, sizes=sizes, end=end)
        states = _states(document) or _unjudged(document)
        return Toned(say("{line}; {states}", line=line, states=states) if states else line, "warn")
    if verdict["fits"] is None:
        return Toned(say("not sure: at least {sizes}; not enough is known", sizes=sizes), "warn")
    if not verdict["fits"] and low <= usable and verdict.get("missed"):  # the hosts hold too little
        return Toned(say("does not fit: {missed}; GPUs: {sizes}", missed=worded(verdict["missed"]), sizes=sizes), "bad")
    if not verdict["fits"]:
        way = _way_out(document)
        line = say("does not fit: {sizes}", sizes=sizes)
        if limit := verdict.get("made_for"):
            way = say("; ").join(filter(None, (way, made_for_text(limit))))
        return Toned(say("{line}; {way}", line=line, way=way) if way else line, "bad")
    if verdict.get("missed"):
        return Toned(_missed(document, sizes), "bad")
    head = say("fits with {option}", option=option) if option else say("fits")
    share = percent(verdict["needed_bytes"] / usable)
    line = say("{head}: {sizes} ({share} %)", head=head, sizes=sizes, share=share)
    if result := encoded_result(document):
        return Toned(say("{line}; {states}", line=line, states=result), "good")
    load = "" if option else load_text(document)
    line = say("{line} for {load}", line=line, load=load) if load else line
    line, tone = _beside_others(document, line)
    if queued := _queued(document):
        line, tone = say("{line}; {states}", line=line, states=queued), "warn"
    if limit := verdict.get("made_for"):
        line, tone = say("{line}; {states}", line=line, states=made_for_text(limit)), "warn"
    if states := _states(document):
        line, tone = say("{line}; {states}", line=line, states=states), "warn"
    if wide := document.get("run", {}).get("computes_in"):
        line, tone = say("{line}; {states}", line=line, states=_computes_in(document, wide)), "warn"
    for limit, is_sure in limits_kept(document):
        line, tone = say("{line}; {states}", line=line, states=limit), tone if is_sure else "warn"
    if unknown := unknown_text(document):
        line, tone = say("{line}; {unknown}", line=line, unknown=unknown), "warn" if _is_mlx(document) else tone
    return Toned(line, tone)


def _is_mlx(document: Mapping[str, Any]) -> bool:
    """Whether what is served lies in files of MLX, and the engine loads none."""
    if "serving" not in document or not str(value_of(document["question"], "weights", "")).startswith("mlx-"):
        return False
    return not serving_runtime(value_of(document["question"], "engine")).mlx


def _states(document: Mapping[str, Any]) -> str:
    """Targets that are missed or lie inside the error band of their figure; nothing where all are met for sure."""
    serving, texts = document.get("serving", {}), []
    level = serving.get("service_level") or {}
    for key, name in LIMITS:
        limit, figure, band = level.get(f"{key}_limit_seconds"), level.get(f"{key}_seconds"), limited_band(serving, key)
        if limit is None:
            continue
        if figure is None or exceeded(level, key):
            texts.append(say("misses {targets}", targets=name))
        elif band and limit < band[1]:
            texts.append(tight_text(name, figure, limit))
    return say(", ").join(texts)


def _unjudged(document: Mapping[str, Any]) -> str:
    """Targets that cannot be judged because by the estimate no request has room."""
    question, serving = document["question"], document.get("serving", {})
    names = [name for key, name in LIMITS if key in question]
    if not names or "tpot_seconds" in serving:
        return ""
    return say("{targets} not judged: no room for one request by the estimate", targets=say(" and ").join(names))


def _queued(document: Mapping[str, Any]) -> str:
    """How many of the users run at once, where memory holds all of these and the engine lets the others wait."""
    serving, question = document.get("serving", {}), document["question"]
    held, users = serving.get("concurrency"), value_of(question, "concurrency") or 0
    if waits := split_waits(serving):
        share = sum(waits) / serving["end_to_end_seconds"]["value"]
        if not users or share < WAITING:
            return ""
        running = count(max(round(users * (1 - share)), 1))  # Little's law: of a user's time, the share without a wait
        what = {"running": running, "users": users_text(users)}
        if waits[0] > waits[1]:
            return say("{running} of {users} run at once, the others wait for a prefill replica", **what)
        return say("{running} of {users} run at once, the others wait for a decode replica", **what)
    if not held or not 1 <= held["value"] < users or "split" in serving:
        return ""
    return say("{held} of {users} users run at once", held=count(held["value"]), users=count(users))


def split_waits(serving: Mapping[str, Any]) -> tuple[float, float] | None:
    """Seconds of TTFT in which a request waits for a prefill and for a decode replica; None where none are apart, or
    the queue grows without end.
    """
    split, ttft = serving.get("split"), serving.get("ttft_seconds")
    if not split or not ttft or not serving.get("end_to_end_seconds"):
        return None
    decode = float(split["decode_wait_seconds"]["value"])
    alone, transfer = serving["ttft_seconds_alone"]["value"], split["transfer_seconds"]["value"]
    return max(ttft["value"] - decode - transfer - alone, 0.0), decode


def made_for_text(tokens: int) -> str:
    """What the model was made for, where the context is longer."""
    return say("the model was made for {context} tokens", context=count(tokens))


def tight_text(name: str, figure: float, limit: float) -> str:
    """A target inside the error band of its figure: TPOT tight (42.0 of 50 ms)."""
    size, _ = seconds_unit(limit)
    return say("{name} tight ({found} of {limit})", name=name, found=significant(figure / size), limit=target(limit))


def _beside_others(document: Mapping[str, Any], line: str) -> tuple[str, Tone]:
    """The line and its tone: a run of a kind that nobody measured may need more, as far as those of other kinds do."""
    verdict, question = document["verdict"], document["question"]
    others = verdict.get("band_of_others")
    if not others or others[1] <= verdict["usable_bytes"]:
        return line, "good"
    return say(
        "{line}; not measured with {runtime}: may need up to {high} of {usable} GiB, so try a few steps first",
        line=line,
        runtime=value_of(question, "runtime"),
        high=gib(others[1]),
        usable=gib(verdict["usable_bytes"]),
    ), "warn"


def _computes_in(document: Mapping[str, Any], wide: str) -> str:
    """In what the products are multiplied, where it is not what the precision says."""
    narrow = value_of(document["question"], "precision")
    return say("computes in {wide}, not in {precision}: see the note", wide=wide, precision=narrow)


def unknown_text(document: Mapping[str, Any]) -> str:
    """What nobody can say of the speed, or what is missing to say it; nothing where the speed is known."""
    if "serving" not in document:
        if unjudged := document["verdict"].get("unjudged"):
            return say("step time not estimated: {unjudged}", unjudged=worded(unjudged))
        return "" if "step_time" in document else say("step time not estimated")
    question = document["question"]
    if _is_mlx(document):
        return say("{engine} loads no MLX files; mlx does, on Apple", engine=value_of(question, "engine"))
    if "tpot_seconds" not in document["serving"] and encoded_of(document) is None:
        return say("speed not estimated")
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
    if "serving" not in document:
        return ""
    users, context = value_of(question, "concurrency"), value_of(question, "context")
    if not users or not context:
        return ""
    if not {"prefill_replicas", "request_rate", "trace"}.isdisjoint(question):  # the memory of each, not of a load
        held = value_of(question, "concurrency_per_replica", users)
        if "prefill_replicas" in question:
            return (
                say("1 request of {context} tokens on each decode replica", context=count(context))
                if held == 1
                else say(
                    "{held} requests of {context} tokens on each decode replica",
                    held=count(held),
                    context=count(context),
                )
            )
        return (
            say("1 request of {context} tokens on each replica", context=count(context))
            if held == 1 and value_of(question, "replicas", 1) > 1
            else say("1 request of {context} tokens", context=count(context))
            if held == 1
            else say("{held} requests of {context} tokens on each replica", held=count(held), context=count(context))
        )
    if users == 1:
        return say("1 user of {context} tokens", context=count(context))
    return say("{users} users of {context} tokens", users=count(users), context=count(context))


def first_fix(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The change that makes it fit: the first that meets the targets too, else the first. A machine of many times as
    many accelerators comes after what the own machine can do.
    """
    fitting = [move for move in document.get("advice", ()) if move["fits"]]
    here = value_of(document["question"], "accelerators", 1)
    fitting.sort(key=lambda move: accelerators_in(str(move["change"].get("on", ""))) > MUCH_LARGER * here)
    return next((move for move in fitting if not _still_missed(document, move)), next(iter(fitting), None))


def _still_missed(document: Mapping[str, Any], move: Mapping[str, Any]) -> list[str]:
    """Targets that a change which makes it fit does not meet, where its times are known."""
    level = document.get("serving", {}).get("service_level") or {}
    return [
        name
        for key, name in LIMITS
        if (limit := level.get(f"{key}_limit_seconds")) and (move.get(f"{key}_seconds") or 0) > limit
    ]


def _way_out(document: Mapping[str, Any]) -> str:
    """What makes it fit: the first change that does, or another machine."""
    fix = first_fix(document)
    if fix is not None:
        line, missed = _fits_with(fix), _still_missed(document, fix)
        if missed:
            return say("{line}, which misses {targets}", line=line, targets=say(" and ").join(missed))
        if holds_at_high_end(document, fix) or not fix.get("ttft_seconds"):  # whose times may not be known
            return line
        return say("{line}, a target inside the error band", line=line)
    near = document.get("nearest_miss")
    if near and near["smallest_machine"]:
        return say("fits on {machine}", machine=near["smallest_machine"])
    return say("no change that was tried makes it fit") if near else ""


def _fits_with(move: Mapping[str, Any]) -> str:
    """The machine or the options that make it fit; how many options, where they are too long for a first line."""
    machine = move["change"].get("on")
    unsaid = ("on", *FOLLOWING) if machine else ("on",)
    rest = " ".join(flag(name, value) for name, value in move["change"].items() if name not in unsaid)
    if in_tool := str(move.get("in_tool") or ""):
        rest = in_tool.removeprefix(f"--on {machine}").lstrip(", ")
    if machine:
        short = rest and len(rest) <= MAX_OPTION - len(machine)
        return (
            say("fits on {machine} with {option}", machine=machine, option=rest)
            if short
            else say("fits on {machine}", machine=machine)
        )
    if len(rest) <= MAX_OPTION:
        return say("fits with {option}", option=rest)
    return say("fits with {count} changes", count=len(_PIECE.split(rest)) if in_tool else len(move["change"]))


def _missed(document: Mapping[str, Any], sizes: str) -> str:
    """What fits and does not do what was asked."""
    missed = document["verdict"]["missed"]
    if "serving" not in document:
        return say("{missed}; memory fits: {sizes}", missed=missed_text(document) or worded(missed), sizes=sizes)
    level = document["serving"].get("service_level")
    if level and not level["met"]:
        names = [name for key, name in LIMITS if exceeded(level, key)]
        line = say("misses {targets}: {what}", targets=say(" and ").join(names), what=_first_missed(document, level))
        better = cheapest_serving(document)
        if better is None:
            return line
        if holds_at_high_end(document, better):
            return say("{line}; met with {option}", line=line, option=flags_of(better))
        key = next((key for key, _ in LIMITS if exceeded(level, key)), "ttft")
        figure = better.get(f"{key}_seconds")
        if not figure or level["percentile"] != "mean":
            return line
        value, option = seconds(figure), flags_of(better)
        return say("{line}; {value} with {option}, inside the error band", line=line, value=value, option=option)
    if overload := overload_of(document) or _overload(document):
        return say("overloaded: {rates}; memory fits: {sizes}", rates=overload, sizes=sizes)
    return say("{missed}; memory fits: {sizes}", missed=worded(missed), sizes=sizes)


def _overload(document: Mapping[str, Any]) -> str:
    """How many requests come, and how many are answered at most; nothing where no rate was given."""
    rate, question = document["serving"].get("largest_rate"), document["question"]
    if not rate or "request_rate" not in question:
        return ""
    return say(
        "{asked} requests/s come, {answered} are answered at most",
        asked=rate_text(question),
        answered=significant(rate["value"]),
    )


def cheapest_serving(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Of the suggestions that serve the load as it was asked the one whose tokens cost least, of those that do so at
    the high end of the error band where any does; None where none serves it.
    """
    serving = [move for move in document.get("advice", ()) if move.get("serves")]
    sure = [move for move in serving if holds_at_high_end(document, move)]
    return min(sure or serving, key=lambda move: move.get("usd_per_million_tokens") or float("inf"), default=None)


def recommended_move(document: Mapping[str, Any]) -> tuple[Mapping[str, Any] | None, MoveState]:
    """The suggestion to show, and how it stands with the targets. One that meets them at the high end of the error band
    is recommended; where none does, the nearest is shown, unless the answer as it is does better.
    """
    moves = [move for move in document.get("advice", ()) if move["fits"]]
    if document["verdict"].get("missed"):
        best = cheapest_serving(document) or next(iter(moves), None)
        if best is None or best.get("serves") is False:
            return best, "missed"
        return best, "met" if holds_at_high_end(document, best) else "tight"
    sure = next((move for move in moves if holds_at_high_end(document, move)), None)
    if sure is not None or not moves:
        return sure, "met"
    return (moves[0], "tight") if _is_tight(document) else (None, "met")


def _is_tight(document: Mapping[str, Any]) -> bool:
    """Whether a limit of the answer itself lies inside the error band of its figure."""
    return not holds_at_high_end(
        document,
        {f"{key}_seconds": (document["serving"].get(f"{key}_seconds") or {}).get("value") for key, _ in LIMITS},
    )


def holds_at_high_end(document: Mapping[str, Any], move: Mapping[str, Any]) -> bool:
    """Whether a suggestion meets the limits at the high end of the error band too, as wide as it is now; of a
    percentile as far above the mean as it is now.
    """
    serving = document.get("serving", {})
    level = serving.get("service_level") or {}
    for key, _ in LIMITS:
        limit, figure = level.get(f"{key}_limit_seconds"), move.get(f"{key}_seconds")
        now, band, reached = serving.get(f"{key}_seconds"), serving.get(f"{key}_band"), level.get(f"{key}_seconds")
        if limit is None:
            continue
        if not figure or not now:
            return False
        above = reached / now["value"] if reached and level["percentile"] != "mean" else 1
        if figure * above * (band[1] / now["value"] if band else 1) > limit:
            return False
    return True


def limited_band(serving: Mapping[str, Any], key: str) -> Sequence[float] | None:
    """The error band of the figure that a limit is held against; that of a percentile is as wide, for its size."""
    band, level = serving.get(f"{key}_band"), serving.get("service_level") or {}
    mean, figure = serving.get(f"{key}_seconds"), level.get(f"{key}_seconds")
    if not band or not mean or not figure or level["percentile"] == "mean":
        return band
    return [end * figure / mean["value"] for end in band]


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
        return _overload(document) or say("the queue grows without end, target {limit}", limit=limit)
    at = at_load(document["question"])
    value = seconds(figure) if level["percentile"] == "mean" else f"{level['percentile']} {seconds(figure)}"
    if at:
        return say("{value} {load}, target {limit}", value=value, load=at, limit=limit)
    return say("{value}, target {limit}", value=value, limit=limit)
