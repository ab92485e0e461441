"""What serving adds to an answer: the cache, a table of times and rates, percentiles, prices, the command that
starts the engine.
"""

from collections.abc import Mapping
from typing import Any

from tonnage.kernel import units
from tonnage.kernel.part_names import TPOT, TTFT
from tonnage.language import say, worded
from tonnage.language.columns import left, right
from tonnage.language.quantities import counted, human
from tonnage.render.bill import bill_lines
from tonnage.render.prompts import both_limits, with_prompts

CACHE = (
    "kv_bytes_per_token",
    "kv_bytes_per_request",
    "concurrency",
    "kv_capacity_tokens",
    "longest_context",
    "host_memory",
    "load_seconds",
)
# A line of the table: its name, the figure of one user alone, the one under the load.
TIMES = (
    (TTFT, "ttft_seconds_alone", "ttft_seconds"),
    (TPOT, "tpot_seconds_alone", "tpot_seconds"),
    ("output tokens per second per user", "tokens_per_second_alone", "tokens_per_second_per_user"),
    ("end-to-end latency", "", "end_to_end_seconds"),
    ("output tokens per second", "", "tokens_per_second"),
    ("input and output tokens per second", "", "total_tokens_per_second"),
    ("output tokens per second per GPU", "", "tokens_per_second_per_gpu"),
    ("requests per second", "", "requests_per_second"),
    ("requests per second at full load", "", "largest_rate"),
    ("running requests", "", "running"),
    ("cost per million tokens (input + output)", "cost_per_million_tokens_alone", "cost_per_million_tokens"),
    ("cost per million output tokens (input included)", "", "cost_per_million_output_tokens_all"),
    ("energy per million tokens", "energy_per_million_tokens_alone", "energy_per_million_tokens"),
)
LIMITS = ("users_at_service_level", "rate_at_service_level", "replicas_needed", "accelerators_needed")
WAYS = ("mean", "p50", "p90", "p99")
NAMES = {
    "ttft": TTFT,
    "tpot": TPOT,
    "itl": "inter-token latency (ITL)",
    "end_to_end": "end-to-end latency",
    "queueing": "queueing time",
}
TTFT_KEY = "ttft_seconds"
WIDTH = 46
HOSTS = 3  # who host the model that are named


def serving_lines(document: Mapping[str, Any]) -> list[str]:
    """Up to the breakdowns of times."""
    serving, question = document["serving"], document["question"]
    lines = [_held(serving, name) for name in CACHE if name in serving]
    if "tpot_seconds" not in serving:
        return lines
    lines += ["", f"{left('', WIDTH)} {right(say('one user alone'), 18)} {right(_load(question), 18)}"]
    for name, alone, loaded in TIMES:
        cells = [_cell(serving, figure) for figure in (alone, loaded)]
        if any(cells):
            label = with_prompts(say(name), question) if loaded == TTFT_KEY else say(name)
            lines.append(
                f"{left(label, WIDTH)} {right(cells[0], 18)} {right(cells[1], 18)}{_band(serving, loaded)}".rstrip()
            )
    if "kv_offload" in serving:
        terms = [term for term in serving["kv_offload"].values() if isinstance(term, Mapping)]
        lines += ["", *(_named(term) for term in terms)]
    if "split" in serving:
        lines += _split(serving["split"])
    if "simulated" in serving:
        lines += _percentiles(serving["simulated"], question)
    return lines


def serving_ends(document: Mapping[str, Any]) -> list[str]:
    """What follows the breakdowns: the service level, money, the launch."""
    serving = document["serving"]
    lines = [""] if "tpot_seconds" in serving or "launch" in serving else []
    if "service_level" in serving:
        lines.append(_level(serving["service_level"]))
    lines += [_named(serving[name]) for name in LIMITS if name in serving]
    lines += bill_lines(document)
    split = [serving.get(f"cost_per_million_{which}_tokens") for which in ("input", "output")]
    if all(split):
        lines.append(
            say("; ").join(f"{worded(term['name'])}{say(': ')}{human(term['value'], 'USD')}" for term in split if term)
        )
    if own := serving.get("own_cost_per_million_tokens"):
        lines.append(_named(own))
    if "hosted" in serving:
        lines += _hosted(serving)
    if "launch" in serving:
        lines += [
            say("start it: {line}", line=line) if not i else f"{' ' * 10}{line}"
            for i, line in enumerate(worded(serving["launch"]).splitlines())
        ]
    return lines


def _hosted(serving: Mapping[str, Any]) -> list[str]:
    """Build or buy: the cheapest who host the model, and the load from which own machines are cheaper than the first
    of them.
    """
    offers, own, level = (
        serving["hosted"]["offers"],
        serving["hosted"]["cost_per_million_tokens"],
        serving.get("service_level"),
    )
    hosts = [
        (
            f"{offer['provider']} {human(offer['cost_per_million_tokens']['value'], 'USD')} "
            f"({offer['as_of']}{(say(', stale') if offer['stale'] else '')})"
        )
        for offer in offers[:HOSTS]
    ]
    more = say("; {offers_count} more", offers_count=len(offers) - HOSTS) if len(offers) > HOSTS else ""
    first, most = offers[0], f"{serving['hosted']['most_requests_per_day']['value']:,.0f}"
    even, tokens = (first[f"break_even_{what}_per_day"]["value"] for what in ("requests", "tokens"))
    line = say(
        (
            "these machines are cheaper than {provider} from {even} requests ({tokens}) a day, and answer {most} "
            "at most{within}"
        ),
        provider=first["provider"],
        even=f"{even:,.0f}",
        tokens=human(tokens, "tokens"),
        most=most,
        within=say(" within the limits") if level else "",
    )
    if not first["within_reach"]:
        line = say(
            (
                "these machines are never cheaper than {provider}{within}: they answer {most} requests a day at "
                "most, and would have to answer {even}"
            ),
            provider=first["provider"],
            most=most,
            even=f"{even:,.0f}",
            within=say(" within the limits") if level else "",
        )
    price = say("none within the limits") if own is None else human(own["value"], "USD")
    return [
        say(
            "a million tokens of such requests: these machines {own}{at_most}; hosted: {each}{more}",
            own=price,
            at_most=say(" at the most within the limits") if own and level and not level["met"] else "",
            each=say(", ").join(hosts),
            more=more,
        ),
        line,
    ]


def _held(serving: Mapping[str, Any], name: str) -> str:
    """A figure of the cache; where an error band is known, it says at which end of it the figure holds."""
    safe = serving.get("safe_concurrency")
    if safe is None or name not in ("concurrency", "longest_context"):
        return _named(serving[name])
    term = serving[name]
    if name == "longest_context":
        return say("{what} (at the high end of the error band)", what=_named(term))
    both = both_limits(human(term["value"], term["unit"]), human(safe["value"], safe["unit"]))
    return f"{worded(term['name'])}{say(': ')}{both}"


def _named(term: Mapping[str, Any]) -> str:
    return f"{worded(term['name'])}{say(': ')}{human(term['value'], term['unit'])}"


def _cell(serving: Mapping[str, Any], name: str) -> str:
    if not name or name not in serving:
        return ""
    term = serving[name]
    if term is None:
        return "-" if name in ("ttft_seconds", "end_to_end_seconds") else ""
    if term["unit"] == "requests":
        return units.human(term["value"], "requests").removesuffix(" requests").removesuffix(" request")
    return human(term["value"], term["unit"])


def _band(serving: Mapping[str, Any], name: str) -> str:
    band = serving.get(name.replace("_seconds", "_band")) if name.endswith("_seconds") else None
    return (
        "   " + say("({found} to {found2})", found=human(band[0], "seconds"), found2=human(band[1], "seconds"))
        if band
        else ""
    )


def _load(question: Mapping[str, Any]) -> str:
    if "trace" in question:
        return say("the trace's mean")
    if "request_rate" in question:
        return say("{request_rate} requests/s", request_rate=f"{question['request_rate']['value']:g}")
    users = question["concurrency"]["value"]
    return counted(users, "users")


def _split(split: Mapping[str, Any]) -> list[str]:
    terms = [term for term in split.values() if isinstance(term, Mapping)]
    head = say(
        "prompts on {prefill_replicas} of the replicas, answers on {decode_replicas}",
        prefill_replicas=split["prefill_replicas"],
        decode_replicas=split["decode_replicas"],
    )
    lines = [
        "",
        head,
        *(f"{left(worded(term['name']), WIDTH)} {right(human(term['value'], term['unit']), 18)}" for term in terms),
    ]
    return lines if split["ttft_seconds"] else [*lines, say("the queue grows without end")]


def _percentiles(simulated: Mapping[str, Any], question: Mapping[str, Any]) -> list[str]:
    lines = ["", f"{left(say('simulated'), WIDTH)} {''.join(right(say(way), 12) for way in WAYS)}"]
    for key, name in NAMES.items():
        if key in simulated:
            cells = [human(simulated[key][way]["value"], "seconds") for way in WAYS]
            label = with_prompts(say(name), question) if key == "ttft" else say(name)
            lines.append(f"{left(label, WIDTH)} {''.join(right(cell, 12) for cell in cells)}")
    for key in ("tokens_per_second", "requests_per_second", "goodput", "goodput_share", "preemptions"):
        if key in simulated and (simulated[key]["value"] or key != "preemptions"):
            term = simulated[key]
            value = f"{100 * term['value']:.1f} %" if key == "goodput_share" else human(term["value"], term["unit"])
            lines.append(f"{worded(term['name'])}{say(': ')}{value}")
    return lines


def _level(level: Mapping[str, Any]) -> str:
    limits = [
        f"{name.upper()} {human(level[f'{name}_limit_seconds'], 'seconds')}"
        for name in ("ttft", "tpot")
        if f"{name}_limit_seconds" in level
    ]
    met = say("met") if level["met"] else say("not met, bound by {bound_by}", bound_by=level["bound_by"].upper())
    return say(
        "service level ({name} of {limits}): {met}",
        name=say(level["percentile"]),
        limits=say(", ").join(limits),
        met=met,
    )
