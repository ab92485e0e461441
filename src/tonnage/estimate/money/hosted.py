"""Build or buy: what the same requests cost where somebody else hosts the model and is paid by the token, and from
which load own machines are cheaper. Only where both prices are known.
"""

from datetime import date
from typing import Any

from msgspec.structs import replace

from tonnage.catalogue.api_prices import ApiPrice, age_days, is_stale, of_model
from tonnage.documents.serving import HostedDocument, HostedOffer
from tonnage.formulas import service as h
from tonnage.kernel.formula import Number
from tonnage.kernel.term import Term


def request_price(price: ApiPrice, prompt: Number, answer: Number, cached: Number = 0) -> Term:
    """What one such request costs at this provider."""
    return Term.of(
        "a request",
        h.request_usd,
        source=f"{price.provider} {price.called}: {price.source} ({price.as_of})",
        s=prompt,
        s_hit=cached,
        O=answer,
        USD_in=price.input_usd,
        USD_hit=price.cached,
        USD_out=price.output_usd,
    )


def million_tokens(request: Term, prompt: Number, answer: Number) -> Term:
    """What a million tokens of such requests cost."""
    return Term.of(
        "cost per million tokens of such requests (input + output)",
        h.request_usd_per_million_tokens,
        source=request.source,
        USD_req=request.value,
        s=prompt,
        O=answer,
    )


def offer(price: ApiPrice, today: date) -> HostedOffer[Term]:
    """The provider's prices."""
    return HostedOffer(
        provider=price.provider,
        model=price.model,
        called=price.called,
        input_usd=price.input_usd,
        output_usd=price.output_usd,
        cached_input_usd=price.cached_input_usd,
        source=price.source,
        as_of=price.as_of,
        age_days=age_days(price, today),
        stale=is_stale(price, today),
        note=price.note,
    )


def beside_hosted(
    model: str,
    hour: Term | None,
    own: Term | None,
    largest_rate: Term,
    prompt: float,
    answer: float,
    cached: float,
    today: date,
    limits: str = "",
) -> HostedDocument[Term] | None:
    """Own machines that cost `hour`, and `own` for a million tokens under the load, beside every provider of the
    model, the cheapest first. None where nobody lists a price of either. `largest_rate`: requests a second that the
    machines answer at most. `limits`: "within" or "past" where users may wait only so long, as this load keeps to it
    or not: then `largest_rate` is within the limits, and a load that is past them has no price of its own.
    """
    priced = [(request_price(price, prompt, answer, cached), price) for price in of_model(model)]
    if hour is None or own is None or not priced:
        return None
    priced.sort(key=lambda each: each[0].value)
    name = "requests a day that these machines answer at most"
    if limits:
        name = "requests a day that these machines answer at most within the limits"
    most = Term.of(name, h.requests_a_day, X=largest_rate.value)
    if limits == "past":
        own = _at_most(hour, largest_rate.value, prompt, answer)
    is_own = own is not None and own.value <= million_tokens(priced[0][0], prompt, answer).value
    offers = []
    for request, price in priced:
        fields: dict[str, Any] = {
            "source": f"{hour.source}; {request.source}",
            "USD_all": hour.value,
            "USD_req": request.value,
        }
        name = "requests a day from which own machines are cheaper"
        even = Term.of(name, h.break_even_requests, **fields)
        name = "tokens a day from which own machines are cheaper"
        tokens = Term.of(name, h.break_even_tokens, **fields, s=prompt, O=answer)
        offers.append(
            replace(
                offer(price, today),
                request=request,
                cost_per_million_tokens=million_tokens(request, prompt, answer),
                break_even_requests_per_day=even,
                break_even_tokens_per_day=tokens,
                within_reach=bool(even.value <= most.value),
            )
        )
    return HostedDocument(
        cheaper="own machines" if is_own else "hosted",
        cost_per_million_tokens=own,
        most_requests_per_day=most,
        offers=offers,
    )


def _at_most(hour: Term, rate: float, prompt: float, answer: float) -> Term | None:
    """What a million tokens cost at the most that the limits allow; None where they allow nothing."""
    tokens = h.all_tokens_per_second.evaluate(X=rate, s=prompt, O=answer)
    name = "cost per million tokens (input + output) at the largest load within the limits"
    return (
        Term.of(name, h.usd_per_million_tokens, source=hour.source, basis=hour.basis, USD_all=hour.value, tps=tokens)
        if rate
        else None
    )
