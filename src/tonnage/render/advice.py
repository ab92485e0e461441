"""The next best moves, a line each, and the nearest miss where no move is enough."""

from collections.abc import Mapping
from typing import Any

from tonnage.language import say, worded
from tonnage.language.columns import left
from tonnage.language.quantities import human

# Of a load with limits, or that comes by itself: a model that fits may be too slow for it.
SERVES = {
    None: lambda: "",
    True: lambda: say(" and answers in time"),
    False: lambda: say(", but does not answer in time"),
}


def advice_line(move: Mapping[str, Any], prompts: str = "") -> str:
    """`prompts`: how long the prompts are that the time to the first token is for."""
    change = _freed(move["freed_bytes"])
    also = "" if move["changes"] == "nothing" else say(" (changes the {name})", name=say(move["changes"]))
    took = move.get("step_seconds")
    time = say(", a step takes {took}", took=human(took, "seconds")) if took else ""
    if "tpot_seconds" in move:
        first = (
            say(
                ", the first {ttft_seconds} ({prompts})",
                ttft_seconds=human(move["ttft_seconds"], "seconds"),
                prompts=prompts,
            )
            if "ttft_seconds" in move and prompts
            else say(", the first {ttft_seconds}", ttft_seconds=human(move["ttft_seconds"], "seconds"))
            if "ttft_seconds" in move
            else ""
        )
        time = say(
            ", a token takes {tpot_seconds}{first}, {tokens_per_second}",
            tpot_seconds=human(move["tpot_seconds"], "seconds"),
            first=first,
            tokens_per_second=human(move["tokens_per_second"], "tokens/s"),
        )
    what = left(worded(move.get("in_tool") or move["text"]), 60)
    return "  " + say(
        "{what} {change}, needs {needed_bytes}{time}{paid}: fits{serves}{also}",
        what=what,
        change=change,
        needed_bytes=human(move["needed_bytes"], "bytes"),
        time=time,
        paid=_paid(move),
        serves=SERVES[move.get("serves")](),
        also=also,
    )


def _paid(move: Mapping[str, Any]) -> str:
    """Money of a million tokens, and how much more or less of it, and of time of the whole cluster, a token takes:
    of time where that is not the same. What a user waits for a token is another time, and stands beside it.
    """
    usd, time, money = (move.get(name) for name in ("usd_per_million_tokens", "time_change", "usd_change"))
    of_time = (
        ""
        if time is None or (money is not None and _percent(money) == _percent(time))
        else say(", {percent} cluster time a token", percent=_percent(time))
    )
    if usd is None:
        return of_time
    change = "" if money is None else f" ({_percent(money)})"
    market = say(" at {provider}", provider=move["provider"]) if move.get("provider") else ""
    return say(
        "{of_time}, {usd} a million tokens{market}{change}",
        of_time=of_time,
        usd=human(usd, "USD"),
        market=market,
        change=change,
    )


def _percent(part: float) -> str:
    """A share in percent, with its sign; what is many times more, in times."""
    return f"x {1 + part:.3g}" if part >= 9 else f"{round(100 * part):+d} %"


def nearest_line(near: Mapping[str, Any]) -> str:
    fits = near["smallest_machine"]
    where = (
        say("as it is, it fits on {fits}", fits=fits)
        if fits
        else say("it fits on no other machine that was tried either")
    )
    return say(
        "no change fits: the nearest, {what}, still misses {missing_bytes}; {where}",
        what=worded(near["text"]),
        missing_bytes=human(near["missing_bytes"], "bytes"),
        where=where,
    )


def _freed(freed: int) -> str:
    if freed == 0:
        return say("frees nothing")
    return (
        say("frees {freed}", freed=human(freed, "bytes"))
        if freed > 0
        else say("uses {freed} more", freed=human(-freed, "bytes"))
    )
