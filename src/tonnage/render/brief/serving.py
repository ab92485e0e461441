"""What the short text says of serving: subject, targets and their cause, room of the cache, speed, cost."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from tonnage.documents.question import ASKED
from tonnage.kernel.term import Term
from tonnage.kernel.units import money, significant
from tonnage.language import say, say_as
from tonnage.render.brief.encoded import LARGE, SAID, add_encoded, encoded_load, encoded_next, encoded_of
from tonnage.render.brief.layout import Column, Page
from tonnage.render.brief.numbers import (
    band_ends,
    count,
    gib,
    many,
    percent,
    seconds,
    seconds_change,
    target,
    with_band,
)
from tonnage.render.brief.read import model_shown
from tonnage.render.brief.verdict import LIMITS, MoveState, exceeded, limited_band, split_waits
from tonnage.render.brief.words import (
    COST,
    ROOM,
    SOURCES,
    WAITS,
    accelerator_of,
    asked_again,
    at_load,
    carbon_text,
    engine_tool_of,
    flag,
    given,
    is_load_given,
    money_change,
    named_model,
    rate_text,
    usd_per_hour,
    users_text,
    value_of,
    with_changes,
)
from tonnage.render.prompts import media_tokens, media_words

Fields = Literal["target", "figures", "room"]


def serving_subject(document: Mapping[str, Any]) -> str:
    """Model, precision, machine, engine, load."""
    question = document["question"]
    model, weights = model_shown(document), value_of(question, "weights", "")
    what = f"{model} {weights}".rstrip()
    what = say("{what}, {machine}, {engine}", what=what, machine=value_of(question, "on"), engine=runner_of(question))
    parts = (what, load_of(question), _shared_work(document), _drafts(question))
    return say("; ").join(filter(None, parts))


def _shared_work(document: Mapping[str, Any]) -> str:
    """Which replicas compute prompts and which decode, where they are apart."""
    split = document["serving"].get("split")
    if not split:
        return ""
    prefill, decode = split["prefill_replicas"], split["decode_replicas"]
    return say("replicas: {prefill} prefill, {decode} decode", prefill=count(prefill), decode=count(decode))


def _drafts(question: Mapping[str, Any]) -> str:
    """Tokens that are drafted in each step, and how many of them are taken."""
    tokens, accepted = value_of(question, "draft_tokens"), value_of(question, "acceptance")
    if not tokens or not accepted:
        return ""
    figures = {"tokens": count(tokens), "share": percent(accepted)}
    origin = question["acceptance"].get("from")
    if origin == "catalogue":
        return say("--draft-tokens {tokens}, {share} % accepted (published)", **figures)
    if origin == "default":
        return say("--draft-tokens {tokens}, {share} % accepted (assumed)", **figures)
    return say("--draft-tokens {tokens}, {share} % accepted", **figures)


def engine_of(question: Mapping[str, Any]) -> str:
    """The name of the engine as its makers write it."""
    return str(value_of(question, "engine_version") or value_of(question, "engine", "")).partition(" ")[0]


def runner_of(question: Mapping[str, Any]) -> str:
    """The engine, or the tool that was asked for with the engine that it runs on."""
    tool = engine_tool_of(question)
    return f"{tool.title} ({value_of(question, 'engine', '')})" if tool else engine_of(question)


def load_of(question: Mapping[str, Any]) -> str:
    """Who asks, and how long input and output are."""
    if text := encoded_load(question):
        return text
    lengths = [value_of(question, f"{name}_tokens") for name in ("input", "output")]
    cached = value_of(question, "cached_tokens")
    media = "" if None in lengths else media_words(question, lengths[0])
    tokens = (
        ""
        if None in lengths
        else say(
            "{input} tokens in ({cached} cached), {output} out",
            input=count(lengths[0]),
            cached=count(cached),
            output=count(lengths[1]),
        )
        if cached
        else say("{tokens} in, {output} out", tokens=media, output=count(lengths[1]))
        if media
        else say("{input} tokens in, {output} out", input=count(lengths[0]), output=count(lengths[1]))
    )
    if "trace" in question:
        who = say("requests of a trace")
    elif "request_rate" in question:
        who = say("{rate} requests/s", rate=rate_text(question))
    else:
        who = users_text(value_of(question, "concurrency"))
    context = value_of(question, "context")
    if tokens and context and question["context"]["from"] in ASKED and context > sum(lengths) + media_tokens(question):
        who = say("{users} of up to {context} tokens", users=who, context=count(context)) if who else ""
        tokens = say("times at {lengths}", lengths=tokens)
        return say("; ").join(filter(None, (who, tokens)))
    return say(", ").join(filter(None, (who, tokens)))


def add_serving(page: Page, document: Mapping[str, Any], opened: Sequence[Term], *, only: Fields) -> None:
    """Fields above the bar (`target`), or below it; `room`: those of what does not fit."""
    serving, level = document["serving"], document["serving"].get("service_level")
    if only == "target":
        if level:
            _add_targets(page, document, level)
            _add_cause(page, document, opened)
        return
    if (found := encoded_of(document)) is not None:
        if only != "room":
            add_encoded(page, document, found)
        return
    _add_room(page, document)
    if tier := serving.get("kv_offload"):
        page.field("tier", offload_text(tier, value_of(document["question"], "cached_tokens")))
    if only == "room":
        return
    if "tpot_seconds" in serving and not (level and not level["met"]):
        times = [] if level else [times_text(serving, at_load(document["question"]))]
        rates, percentiles = rates_text(serving), _percentiles(serving)
        lines = [*times, rates, *_waits_of_split(serving), *percentiles]
        shorter = page.field_lines("speed", *filter(None, [*times, rates, *percentiles]))
        page.block(page.field_lines("speed", *filter(None, lines)), (WAITS, shorter))
    if cost := _cost(document):
        shorter = page.field_lines("cost", _cost(document, alone=True))
        page.block(page.field_lines("cost", cost), (SOURCES, shorter), (COST, []))
    if carbon := carbon_text(document):
        page.field("carbon", carbon, drop=COST)


def _add_targets(page: Page, document: Mapping[str, Any], level: Mapping[str, Any]) -> None:
    """Each limit beside its figure and the error band."""
    serving, rows = document["serving"], []
    for key, name in LIMITS:
        limit, figure = level.get(f"{key}_limit_seconds"), level.get(f"{key}_seconds")
        if limit is None:
            continue
        band = limited_band(serving, key)
        if figure is None:
            state = say("missed: the queue grows without end")
        elif figure > limit:
            state = say("missed by {over}", over=seconds(figure - limit))
        elif band and limit < band[1]:
            state = say("~ met, inside the error band")
        else:
            state = say_as("target", "met")
        ends = band_ends(figure, band) if band and figure is not None else ""
        rows.append([name, target(limit), "-" if figure is None else seconds(figure), ends, state])
    header = [
        Column("", "l"),
        Column(say_as("column", "asked")),
        Column(say(level["percentile"])),
        Column(say_as("column", "error band"), "l", keep=2),
        Column("", "l"),
    ]
    page.block(page.table_lines(header, rows, bold=None, label="target"))


def _add_cause(page: Page, document: Mapping[str, Any], opened: Sequence[Term]) -> None:
    """What the limit that is exceeded goes to, and how many users keep within both."""
    level, serving = document["serving"]["service_level"], document["serving"]
    texts = []
    missed = [key for key, _ in LIMITS if exceeded(level, key)]
    term = next((term for term in opened if missed and _is(term, missed[0])), None)
    if term is not None and term.children and level["percentile"] == "mean":
        texts.append(f"{dict(LIMITS)[missed[0]]} = {_summed(term)}")
    if missed:
        texts += _within_targets(serving)
    if texts:
        page.field("cause", say("; ").join(texts))


def _summed(term: Term) -> str:
    """The parts of a time, the largest first; with drafts, the time of a pass and the tokens that it gives."""
    if term.combine == "ratio":
        of_pass, tokens = term.children
        return say("{time} per pass / {tokens} tokens", time=seconds(of_pass.value), tokens=significant(tokens.value))
    parts = sorted((child for child in term.children if child.value), key=lambda child: -child.value)
    return " + ".join(f"{say(part.name)} {seconds(part.value)}" for part in parts)


def _within_targets(serving: Mapping[str, Any]) -> list[str]:
    """How many users keep within all targets and within the KV cache, where that is known."""
    users, held = serving.get("users_at_service_level"), serving.get("concurrency")
    if not users:
        return []
    most = min(users["value"], held["value"]) if held else users["value"]
    if most < 1:
        return [say("no user is within the targets")]
    if most == 1:
        return [say("1 user at most within the targets")]
    return [say("{users} users at most within the targets", users=count(most))]


def _is(term: Term, key: str) -> bool:
    """Whether a breakdown is that of TTFT or TPOT."""
    return key.upper() in term.name


def _add_room(page: Page, document: Mapping[str, Any]) -> None:
    """How many requests the KV cache holds."""
    serving, question = document["serving"], document["question"]
    tokens, requests = serving.get("kv_capacity_tokens"), serving.get("concurrency")
    context, longest = value_of(question, "context"), serving.get("longest_context")
    if not tokens or not requests or not context:
        return
    held = requests["value"]
    users = value_of(question, "concurrency") or 0
    if serving.get("split"):
        text = _room_of_split(tokens["value"], held, context)
        page.field("room", _queueing(text, held, users, question), drop=ROOM)
        return
    if held < 1:
        text = say("no KV cache for one request of {context} tokens", context=count(context))
    elif held == 1:
        text = say(
            "KV cache for {tokens} tokens: 1 request of {context} tokens",
            tokens=many(tokens["value"]),
            context=count(context),
        )
    else:
        text = say(
            "KV cache for {tokens} tokens: {requests} requests of {context} tokens",
            tokens=many(tokens["value"]),
            requests=count(held),
            context=count(context),
        )
    safe = serving.get("safe_concurrency")
    if safe and held > 1 and safe["value"] < held:
        text = say("{text}, {safe} with the error band", text=text, safe=count(safe["value"]))
    if longest and longest["value"] > context:
        text = say("{text}; longest request {longest} tokens", text=text, longest=count(longest["value"]))
    running = serving.get("running")
    if running and not {"request_rate", "trace"}.isdisjoint(question):
        text = say("{text}; on average {running} run at once", text=text, running=significant(running["value"]))
    text = _queueing(text, held, users, question)
    if host := serving.get("host_memory"):
        text = say("{text}; {size} GiB in host memory", text=text, size=gib(host["value"]))
    level = serving.get("service_level")
    if level and level["met"]:
        text = say("; ").join([text, *_within_targets(serving)])
    page.field("room", text, drop=ROOM)


def offload_text(tier: Mapping[str, Any], cached: int | None) -> str:
    """What a tier beside the GPUs holds, and how long a hit takes to come back against computing it again."""
    places = {"host": say("host memory"), "disk": say("disks"), "store": say("a store")}
    text = say(
        "{place} for {tokens} tokens of KV cache a replica",
        place=places[tier["place"]],
        tokens=many(tier["capacity_tokens"]["value"]),
    )
    if "load_seconds" not in tier or not cached:
        return say("; ").join((text, say("`--cache-hit-rate` says how much of a prompt comes from there")))
    loading = say(
        "{cached} cached tokens load in {load}, computing them again takes {again} (faster from {rate} GB/s a GPU)",
        cached=count(cached),
        load=seconds(tier["load_seconds"]["value"]),
        again=seconds(tier["recompute_seconds"]["value"]),
        rate=significant(tier["break_even_bandwidth"]["value"] / 1e9),
    )
    return say("; ").join((text, loading))


def _queueing(text: str, held: float, users: float, question: Mapping[str, Any]) -> str:
    """What happens to users beyond those that the cache holds."""
    if not 1 <= held < users:
        return text
    return say("{text}; {engine} starts, further requests queue", text=text, engine=engine_of(question))


def _room_of_split(tokens: float, held: float, context: int) -> str:
    """What the KV cache of the replicas that decode holds."""
    return say(
        "KV cache where answers are decoded for {tokens} tokens: {requests} requests of {context} tokens",
        tokens=many(tokens),
        requests=count(held),
        context=count(context),
    )


def times_text(serving: Mapping[str, Any], load: str) -> str:
    """TTFT and TPOT with their error bands, at a load."""
    ttft, tpot = serving.get("ttft_seconds"), serving.get("tpot_seconds")
    times = []
    if ttft:
        times.append(f"TTFT {with_band(ttft['value'], serving.get('ttft_band'))}")
    elif "ttft_seconds" in serving:
        times.append(say("TTFT grows without end"))
    if tpot:
        times.append(f"TPOT {with_band(tpot['value'], serving.get('tpot_band'))}")
    text = say(", ").join(times)
    return say("{times} {load}", times=text, load=load) if load else text


def rates_text(serving: Mapping[str, Any]) -> str:
    """What comes out for each user and in all, and how long an answer takes."""
    rates = []
    if one := serving.get("tokens_per_second_per_user"):
        rates.append(say("{rate} output tokens/s per user", rate=significant(one["value"])))
    if total := serving.get("tokens_per_second"):
        rates.append(say("{rate} in all", rate=significant(total["value"])))
    text = say(", ").join(rates)
    whole = serving.get("end_to_end_seconds")
    return say("{text}; an answer takes {time}", text=text, time=seconds(whole["value"])) if whole and text else text


NOTED = 0.03  # of an answer's time, from which a wait is said


def _waits_of_split(serving: Mapping[str, Any]) -> list[str]:
    """What of TTFT is a wait for a prefill or a decode replica, where it is a good part of the answer's time."""
    waits = split_waits(serving)
    if waits is None:
        return []
    prefill, decode = waits
    texts = [
        (prefill, say("TTFT has {time} of waiting for a prefill replica", time=seconds(prefill))),
        (decode, say("TTFT has {time} of waiting for a decode replica", time=seconds(decode))),
    ]
    return [text for wait, text in texts if wait > NOTED * serving["end_to_end_seconds"]["value"]]


def _percentiles(serving: Mapping[str, Any]) -> list[str]:
    """Percentiles of TTFT and TPOT, where requests were simulated one by one."""
    simulated = serving.get("simulated")
    if not simulated:
        return []
    ways = ("p50", "p90", "p99")
    texts = [
        f"{name} " + say(", ").join(f"{say(way)} {seconds(simulated[key][way]['value'])}" for way in ways)
        for key, name in LIMITS
        if key in simulated
    ]
    return [say("simulated: {times}", times=say("; ").join(texts))]


def _cost(document: Mapping[str, Any], *, alone: bool = False) -> str:
    """Money of a million tokens at the load, what hosted models take, money of an hour; `alone`: without what others
    take, and where the price is from.
    """
    serving, hour = document["serving"], document.get("cost")
    if not hour:
        return ""
    parts = []
    million, users = serving.get("cost_per_million_tokens"), value_of(document["question"], "concurrency")
    is_one = users == 1 and not is_load_given(document["question"])
    if million and not is_one:
        parts.append(say("{usd} USD per million tokens (input + output)", usd=money(million["value"])))
        hosted = serving.get("hosted", {}).get("offers")
        if hosted and not alone:
            offer = hosted[0]
            parts.append(
                say(
                    "hosted: {usd} ({provider})",
                    usd=money(offer["cost_per_million_tokens"]["value"]),
                    provider=offer["provider"],
                )
            )
    price = "" if alone else usd_per_hour(document)
    by_hour = say("{usd} USD per hour", usd=money(hour["value"]))
    parts.append(say("{text} ({price})", text=by_hour, price=price) if price else by_hour)
    if is_one:
        parts.append(say("cost per token needs a load: `--users N`"))
    return say("; ").join(parts)


def serving_change(document: Mapping[str, Any], move: Mapping[str, Any], state: MoveState = "met") -> str:
    """A suggestion: what it changes, before and after."""
    serving, verdict = document["serving"], document["verdict"]
    parts = []
    rate, later = serving.get("tokens_per_second"), move.get("tokens_per_second")
    if rate and later and significant(rate["value"]) != significant(later):
        parts.append(
            say("{before} -> {after} output tokens/s", before=significant(rate["value"]), after=significant(later))
        )
    for key, name in LIMITS:
        figure, after = serving.get(f"{key}_seconds"), move.get(f"{key}_seconds")
        if figure and after and seconds(figure["value"]) != seconds(after):
            parts.append(f"{name} {seconds_change(figure['value'], after)}")
    million = serving.get("cost_per_million_tokens")
    parts.append(money_change(million["value"] if million else None, move.get("usd_per_million_tokens")))
    if verdict["fits"] is not True or not any(parts):
        sizes = {"before": gib(verdict["needed_bytes"]), "after": gib(move["needed_bytes"])}
        parts.insert(
            0,
            say("{before} -> {after} GiB, fits at the high end of the error band", **sizes)
            if _makes_it_fit(verdict, move)
            else say("{before} -> {after} GiB", **sizes),
        )
    text = with_changes(parts, move)
    if state == "missed":
        return say("nearest: {text}; still misses a target", text=text)
    return say("nearest: {text}; a target lies inside the error band", text=text) if state == "tight" else text


def _makes_it_fit(verdict: Mapping[str, Any], move: Mapping[str, Any]) -> bool:
    """Whether what is tight fits with a change at the high end of the error band too, as wide as it is now."""
    high, usable = (verdict["band"] or (0, 0))[1], verdict["usable_bytes"]
    return bool(high > usable >= move["needed_bytes"] * high / verdict["needed_bytes"])


LENGTHS = (
    *("context", "input_tokens", "output_tokens", "images", "image_size", "video_seconds", "video_fps"),
    *("audio_seconds", "cached_tokens", "cache_hit_rate", "spread"),
)
# What only an estimate takes: it says, or simulates, more than a search.
ESTIMATED = ("advice", "as_is", "trace", "simulate", "num_requests", "seed")
ARRIVALS = ("concurrency", "request_rate", "burstiness", "prefill_replicas")
# What a search for another machine looks for by itself: how many accelerators there are, and what each of them does.
SIZES = (
    *("tensor_parallel_size", "pipeline_parallel_size", "expert_parallel_size", "attention_data_parallel_size"),
    *("redundant_experts", "prefill_replicas", "max_num_seqs"),
)


def serving_next(document: Mapping[str, Any], *, fits: bool) -> str:
    """The following question: machines that serve the load, or how many users this one serves."""
    question = document["question"]
    model, machine = named_model(question), str(value_of(question, "on"))
    if (found := encoded_of(document)) is not None and fits:
        return encoded_next(model, machine, question, found)
    if encoded_load(question):
        return f"tonnage serve {model} --on {LARGE}{given(question, SAID)}"
    is_met = fits and not document["verdict"].get("missed")
    split = "split" in document["serving"]
    if is_met and not split and "tpot_seconds" in document["serving"]:
        context = value_of(question, "context")
        options = asked_again(question, (*ESTIMATED, *ARRIVALS))
        if context and not given(question, LENGTHS):
            options = f" {flag('context', context)}{options}"
        return f"tonnage max users {model} --on {machine}{options}"
    left_out = (*ESTIMATED, "percentile", *(("prefill_replicas",) if is_met and not split else SIZES))
    options = asked_again(question, left_out, ASKED)
    if not given(question, ("concurrency", "request_rate"), ASKED):
        options = f" {flag('concurrency', value_of(question, 'concurrency', 1))}{options}"
    vary = " --vary disaggregation" if split else ""
    return f"tonnage plan --serve {model} --on {accelerator_of(machine)}{vary}{options}"
