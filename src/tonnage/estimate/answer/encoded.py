"""What a model does that writes no text of its own: documents, pairs or speech a second, and at what price. The part
of an answer of `serve` beside memory.
"""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.documents.serving import EncodedDocument, ServingDocument
from tonnage.estimate.answer.launch import launch_command
from tonnage.estimate.answer.served import Served, hour
from tonnage.estimate.hardware.rates import Band
from tonnage.estimate.inputs import Question
from tonnage.estimate.load.options import LoadOptions
from tonnage.estimate.money.bill import Bill, BillOptions
from tonnage.estimate.serving_time.asked import Encoded, windows_that_fit
from tonnage.estimate.serving_time.encoding import Pass, encoder, made_term, pass_term
from tonnage.estimate.serving_time.encoding_rates import encoding_rates
from tonnage.estimate.serving_time.rates import serving_rates
from tonnage.estimate.serving_time.speech import speech, windows_of
from tonnage.estimate.serving_time.times import pass_time
from tonnage.formulas import service as h
from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.kernel.units import HOUR, money, significant
from tonnage.models.purpose import ITEMS, is_encoder
from tonnage.runtimes import ServingRuntime, serving_runtime
from tonnage.spec import Cluster, ServingPlan

SOURCE = "fitted: scripts/fit_encoding.py"
PROCEDURE = "documents and speech of a server (estimate.answer.encoded)"
MILLION = 1_000_000
# What spends a pass, by the fields of `Spent`.
SPENT = {
    "products": "GEMMs",
    "experts": "experts",
    "attention": "attention",
    "recurrences": "recurrences",
    "kernels": "kernels between products",
    "exchanges": "collectives",
    "adapters": "LoRA adapters",
    "engine": "engine",
}


class Timed(Struct, frozen=True, kw_only=True, eq=False):
    """`seconds` of a pass of as many as run at once, and of one alone; `band`: measured over predicted."""

    at_once: Term
    alone: Term
    band: tuple[float, float] | None = None


def served_encoded(
    model: Model,
    plan: ServingPlan,
    cluster: Cluster,
    asked: Encoded,
    load: LoadOptions,
    money: BillOptions,
    question: Question,
) -> Served:
    """Figures of the block `serving`, and the bill of an hour."""
    launch = launch_command(model, plan, cluster)
    engine = serving_runtime(plan.engine, plan.engine_version)
    try:
        is_speech = asked.purpose == "transcribe"
        timed = (_speech if is_speech else _pass)(model, plan, cluster, engine, asked)
    except MissingDatum as error:
        question.warn(error.args[0], first=True)
        return Served(figures=ServingDocument(launch=launch))
    if timed.band is None:
        question.warn("too few published runs are of this kind for an error band: these times have none.")
    made_bill = hour(cluster, money, load.price_per_accelerator_hour, question)
    figures = _figures(timed, asked, int(plan.data_parallel_size), made_bill, engine.window_advance)
    if engine.front_end and not is_speech:
        question.warn(engine.front_end)
    if is_speech and asked.at_once == 1 and question.entries["concurrency"].origin != "given":
        _note_batches(model, plan, cluster, asked, figures, made_bill, question)
    tokens = {"cost_per_million_tokens": figures.pop("cost_per_million_tokens")} if not is_speech else {}
    encoded = EncodedDocument(item=ITEMS[asked.purpose], at_once=asked.at_once, **figures)
    return Served(figures=ServingDocument(launch=launch, encoded=encoded, **tokens), bill=made_bill)


def _pass(model: Model, plan: ServingPlan, cluster: Cluster, engine: ServingRuntime, asked: Encoded) -> Timed:
    """Documents, or pairs, through the model once."""
    if is_encoder(model) or "generate" not in engine.serves:
        if cluster.accelerator.kind == "cpu":
            raise MissingDatum("no published run says how fast encoders are on processors of known cores.")
        rates = encoding_rates()
        one = encoder(model, plan, cluster)
        keys = asked.length if is_encoder(model) else asked.length / 2
        at_once, alone = (
            pass_term(name, one, Pass(tokens=count * asked.length, keys=keys), rates.encoders[engine.encoding])
            for name, count in (("time of a pass", asked.at_once), ("time of one alone", 1))
        )
        return Timed(at_once=at_once, alone=alone, band=_ends(rates.bands.get(engine.encoding)))
    passes = pass_time(model, plan, cluster)
    if not getattr(passes, "knows_prompts", True):
        raise MissingDatum("no source gives a bf16, fp16 or fp32 peak of {chip}.", chip=cluster.accelerator.name)
    terms = []
    for name, count in (("time of a pass", asked.at_once), ("time of one alone", 1)):
        tokens = count * asked.length
        spent = passes.spent(tokens, tokens * (asked.length + 1) / 2, 0, 0)
        parts = [
            made_term(SPENT[part], float(value), tokens=tokens, keys=asked.length / 2)
            for part, value in zip(spent._fields, spent, strict=True)
            if value
        ]
        terms.append(Term.sum(name, *parts, unit="seconds"))
    return Timed(
        at_once=terms[0], alone=terms[1], band=serving_rates().around("ttft_seconds", 1.0, cluster.accelerator)
    )


def _speech(model: Model, plan: ServingPlan, cluster: Cluster, engine: ServingRuntime, asked: Encoded) -> Timed:
    """Windows of 30 seconds from sound to text."""
    rates = encoding_rates().speech.get(engine.speech)
    if rates is None:
        raise MissingDatum("no published rows say how fast {engine} writes speech down.", engine=engine.name)
    if engine.speech_attention == "fused":
        rates = rates.fused()
    if cluster.accelerator.kind == "cpu":
        raise MissingDatum(
            "how fast speech is on processors is not known: published runs are of one processor alone, whose "
            "8 threads took 51 to 418 s for 780 s of sound with whisper-small."
        )
    one, beams = speech(model, plan, cluster), engine.beams

    def of(name: str, windows: int) -> Term:
        inputs = {"windows": windows, "beams": beams, "tokens": asked.length}
        parts = one.parts(windows, beams, asked.length, rates)
        return Term.sum(name, *(made_term(part, spent, **inputs) for part, spent in parts.items()), unit="seconds")

    return Timed(at_once=of("time of a pass", asked.at_once), alone=of("time of one alone", 1), band=_ends(rates.band))


def _note_batches(
    model: Model,
    plan: ServingPlan,
    cluster: Cluster,
    asked: Encoded,
    now: dict[str, Any],
    bill: Bill,
    question: Question,
) -> None:
    """What more windows of a file at once would give, where the engine takes them and was not told so."""
    engine, replicas = serving_runtime(plan.engine, plan.engine_version), int(plan.data_parallel_size)
    most = min(engine.batched_windows, windows_of(asked.audio_seconds, engine.window_advance))
    if most < 2 or (windows := windows_that_fit(model, cluster, plan, most)) < 2:
        return
    more = replace(asked, at_once=windows)
    then = _figures(_speech(model, plan, cluster, engine, more), more, replicas, bill, engine.window_advance)
    rates = {"rate": significant(now["per_second"].value), "rate2": significant(then["per_second"].value)}
    users = windows * replicas
    usd, usd2 = now.get("total_cost"), then.get("total_cost")
    if usd is None or usd2 is None:
        text = Message(
            "one window at a time: {--users} {users} takes {windows} windows of a file at once: {rate} -> {rate2} x "
            "real time.",
            users=users,
            windows=windows,
            **rates,
        )
    else:
        text = Message(
            "one window at a time: {--users} {users} takes {windows} windows of a file at once: {rate} -> {rate2} x "
            "real time, {usd} -> {usd2} USD.",
            users=users,
            windows=windows,
            usd=money(usd.value),
            usd2=money(usd2.value),
            **rates,
        )
    question.warn(text, first=True)


def _ends(band: Band | None) -> tuple[float, float] | None:
    return (band.low, band.high) if band else None


def _figures(timed: Timed, asked: Encoded, replicas: int, bill: Bill, advance: float) -> dict[str, Any]:
    """Fields of the document, and `cost_per_million_tokens`, which is the server's. `advance`: seconds from one
    window to the next.
    """
    is_speech = asked.purpose == "transcribe"
    pass_seconds = float(timed.at_once.value)
    each = advance if is_speech else 1
    rate = asked.at_once * each * replicas / pass_seconds
    per_second = _made(
        "seconds of sound a second" if is_speech else Message("{items} a second", items=ITEMS[asked.purpose]),
        rate,
        "" if is_speech else "1/s",
        at_once=asked.at_once,
        replicas=replicas,
        tau=pass_seconds,
    )
    seconds = timed.alone
    if is_speech:
        count = windows_of(asked.audio_seconds, advance)
        batch = min(asked.at_once, count)
        share = pass_seconds * -(-count // batch) if batch == asked.at_once else float(timed.alone.value) * count
        seconds = _made("time of a file", share, "seconds", windows=count, at_once=batch)
    found: dict[str, Any] = {
        "per_second": per_second,
        "seconds": seconds,
        "bound_by": max(timed.at_once.children, key=lambda part: part.value).name,
    }
    if timed.band:
        found["band"] = (rate / timed.band[1], rate / timed.band[0])
    cost = bill.cost
    if is_speech:
        hours = None if cost is None else float(cost.value) / rate
        name = "cost of an hour of sound"
        found["cost_per_audio_hour"] = None if hours is None else _made(name, hours, "USD", x=rate)
    else:
        tokens = rate * asked.length
        found["tokens_per_second"] = _made("tokens of documents a second", tokens, "tokens/s", X=rate, s=asked.length)
        for name, what, of in (
            ("cost_per_million_tokens", "cost per million tokens", tokens),
            ("cost_per_million", Message("cost per million {items}", items=ITEMS[asked.purpose]), rate),
        ):
            found[name] = (
                None
                if cost is None
                else Term.of(
                    what, h.usd_per_million_tokens, source=cost.source, basis=cost.basis, USD_all=cost.value, tps=of
                )
            )
    size = asked.audio_seconds if is_speech else 1
    if asked.total is not None:
        total = asked.total * size / rate
        found["total_seconds"] = _made("time of all", total, "seconds", count=asked.total, X=rate)
        paid = None if cost is None else float(cost.value) * total / HOUR
        found["total_cost"] = None if paid is None else _made("cost of all", paid, "USD", tau=total)
    if asked.requests_per_second is not None:
        busy = asked.requests_per_second * size / rate
        found["busy"] = _made("share of the rate that comes", busy, "", X=asked.requests_per_second, X_max=rate)
    return found


def _made(name: str, value: float, unit: str, **inputs: float) -> Term:
    return Term.by(name, value, unit, basis="analytic", source=SOURCE, procedure=PROCEDURE, version="1", **inputs)
