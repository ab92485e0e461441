"""What the short text says of models that write no text of their own: documents or speech a second, and money."""

from collections.abc import Mapping
from typing import Any

from tonnage.documents.question import ASKED
from tonnage.kernel.units import money, significant
from tonnage.language import say
from tonnage.render.brief.layout import Page
from tonnage.render.brief.numbers import count, many, seconds
from tonnage.render.brief.words import COST, accelerator_of, asked_again, given, rate_text, usd_per_hour, value_of

Document = Mapping[str, Any]


def encoded_of(document: Document) -> Mapping[str, Any] | None:
    """The block of such a model; None where the answer is of another, or where its speed is not known."""
    found: Mapping[str, Any] | None = document.get("serving", {}).get("encoded")
    return found


def encoded_load(question: Mapping[str, Any]) -> str:
    """How long what comes is, and how much of it runs at once where that is one number; nothing for models that
    answer.
    """
    at_once = value_of(question, "concurrency")
    if "audio_tokens" in question:  # of a model that answers
        return ""
    if "audio_seconds" in question:
        length = seconds(value_of(question, "audio_seconds"))
        if at_once is None:  # of machines that are compared
            return say("files of {length}", length=length)
        if at_once == 1:
            return say("files of {length}, 1 window of 30 s at once", length=length)
        return say("files of {length}, {windows} windows of 30 s at once", length=length, windows=count(at_once))
    if "input_tokens" not in question or "output_tokens" in question:
        return ""
    tokens = count(value_of(question, "input_tokens"))
    if at_once is None:
        return say("{tokens} tokens each", tokens=tokens)
    return say("{tokens} tokens each, {number} at once", tokens=tokens, number=count(at_once))


def rate_of(document: Document, found: Mapping[str, Any]) -> str:
    """412 documents/s of 512 tokens."""
    rate = significant(found["per_second"]["value"])
    length = value_of(document["question"], "input_tokens")
    if found["item"] == "documents":
        return say("{rate} documents/s of {tokens} tokens", rate=rate, tokens=count(length))
    if found["item"] == "pairs":
        return say("{rate} pairs/s of {tokens} tokens", rate=rate, tokens=count(length))
    return say("{rate} x real time", rate=rate)


def encoded_result(document: Document) -> str:
    """What to act on: the rate, and the price of a million tokens or of all that was asked about."""
    found = encoded_of(document)
    if found is None:
        return ""
    parts = [rate_of(document, found)]
    if whole := _whole(document, found):
        parts.append(whole)
    elif found["item"] == "files":
        parts.append(
            say(
                "a file of {length} in {time}",
                length=seconds(value_of(document["question"], "audio_seconds")),
                time=seconds(found["seconds"]["value"]),
            )
        )
        if usd := found.get("cost_per_audio_hour"):
            parts.append(say("{usd} USD per hour of sound", usd=money(usd["value"])))
    elif usd := document["serving"].get("cost_per_million_tokens"):
        parts.append(say("{usd} USD per million tokens", usd=money(usd["value"])))
    return say(", ").join(parts)


def _whole(document: Document, found: Mapping[str, Any]) -> str:
    """How long all take, and what it costs."""
    if "total_seconds" not in found:
        return ""
    number, time = value_of(document["question"], "documents"), seconds(found["total_seconds"]["value"])
    if cost := found.get("total_cost"):
        return say("{number} in {time} for {usd} USD", number=count(number), time=time, usd=money(cost["value"]))
    return say("{number} in {time}", number=count(number), time=time)


def overload_of(document: Document) -> str:
    """How much comes, and how much is done at most; nothing where it is no more."""
    found = encoded_of(document)
    if not found or found.get("busy", {}).get("value", 0) < 1:
        return ""
    question = document["question"]
    done = value_of(question, "request_rate") / found["busy"]["value"]
    return say(
        "{asked} {items}/s come, {done} are done at most",
        asked=rate_text(question),
        items=say(found["item"]),
        done=significant(done),
    )


def add_encoded(page: Page, document: Document, found: Mapping[str, Any]) -> None:
    """Fields of speed and money."""
    question, rate = document["question"], found["per_second"]["value"]
    band = found.get("band")
    ends = "" if not band else say(" ({low} to {high})", low=significant(band[0]), high=significant(band[1]))
    bound = say("most of it: {part}", part=say(found["bound_by"]))
    if found["item"] == "files":
        text = say("{rate} x real time{band}", rate=significant(rate), band=ends)
        alone = say("a file takes {time}", time=seconds(found["seconds"]["value"]))
    else:
        text = say(
            "{rate} {items}/s{band}, {tokens} tokens/s",
            rate=significant(rate),
            items=say(found["item"]),
            band=ends,
            tokens=many(found["tokens_per_second"]["value"]),
        )
        alone = say("one alone takes {time}", time=seconds(found["seconds"]["value"]))
    parts = [text, say("; ").join((alone, bound))]
    if busy := found.get("busy"):
        parts.append(
            say(
                "busy {share} % at {rate} {items}/s",
                share=significant(100 * busy["value"]),
                rate=rate_text(question),
                items=say(found["item"]),
            )
        )
    page.field("speed", *parts)
    hour = document.get("cost")
    if not hour:
        return
    costs = []
    if usd := document["serving"].get("cost_per_million_tokens"):
        costs.append(say("{usd} USD per million tokens", usd=money(usd["value"])))
    if usd := found.get("cost_per_million"):
        name = say(found["item"])
        costs.append(say("{usd} USD per million {items}", usd=money(usd["value"]), items=name))
    if usd := found.get("cost_per_audio_hour"):
        costs.append(say("{usd} USD per hour of sound", usd=money(usd["value"])))
    if whole := _whole(document, found):
        costs.append(whole)
    by_hour, price = say("{usd} USD per hour", usd=money(hour["value"])), usd_per_hour(document)
    costs.append(say("{text} ({price})", text=by_hour, price=price) if price else by_hour)
    page.field("cost", say("; ").join(costs), drop=COST)


LARGE = "H100-SXM-80GB"  # which holds any such model
COMPARED = ("L4", "L40S", LARGE)  # that are rented most for such models
SAID = ("input_tokens", "audio_seconds", "documents", "concurrency")


def encoded_next(model: str, machine: str, question: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """The following question: how long a corpus takes; with one, every figure; how many machines do what comes, where
    it is more than these do.
    """
    said = given(question, SAID) + asked_again(question, ("advice", "as_is", "request_rate", *SAID), ASKED)
    if found.get("busy", {}).get("value", 0) >= 1:
        machines = ",".join(dict.fromkeys((accelerator_of(machine), *COMPARED)))
        return f"tonnage compare {model} --on {machines}{said} --request-rate {rate_text(question).replace(',', '')}"
    if "documents" in question:
        return f"tonnage serve {model} --on {machine}{said} -v"
    return f"tonnage serve {model} --on {machine}{said} --documents {'1k' if found['item'] == 'files' else '10M'}"
