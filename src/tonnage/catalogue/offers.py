"""Finds prices: the offers that match, the cheapest of them, and their amounts in dollars."""

import re
from collections.abc import Mapping, Sequence
from math import isfinite

from tonnage.catalogue import toml_files
from tonnage.catalogue.accelerators import accelerator as accelerator_named
from tonnage.catalogue.prices import (
    DOLLARS,
    KINDS,
    Price,
    Purchase,
    by_accelerator,
    currencies,
    own_prices,
    prices,
    providers,
    purchases,
    regions,
)
from tonnage.kernel.errors import InvalidInput, MissingDatum, UnknownName, shown
from tonnage.kernel.message import Message, listed, option_name
from tonnage.kernel.registry import nearest, unknown
from tonnage.spec import Cluster

Rates = Mapping[str, float]  # currency -> units of it that one US dollar buys
EVERYWHERE = "all"


def offers(
    accelerator: str = "",
    *,
    provider: str = "",
    kind: str = "",
    region: str = "",
    currency: str = "",
    term_months: int | None = None,
    at_least: int = 1,
) -> tuple[Price, ...]:
    """Hourly prices that match the arguments, the user's own first.

    `term_months`: of a reserved price; `at_least`: accelerators of one machine. A region also matches prices that hold
    everywhere. UnknownName for an accelerator, provider, region or currency that has no price, InvalidInput for an
    unknown kind.
    """
    known = not accelerator or accelerator in by_accelerator()
    chip = accelerator if known else accelerator_named(accelerator).name
    if kind:
        toml_files.one_of(kind, KINDS, option_name("kind"))
    if currency and currency.upper() not in currencies():
        raise unknown("currency of prices", currency, currencies())
    who, where = provider_named(provider), region_named(region)
    return tuple(
        price
        for price in (by_accelerator().get(chip, ()) if chip else prices())
        if who in ("", price.provider)
        and kind in ("", price.kind)
        and (where in ("", EVERYWHERE, price.region) or price.region == EVERYWHERE)
        and (not currency or currency.upper() == price.currency)
        and term_months in (None, price.term_months)
        and max(price.sizes, default=price.accelerators) >= at_least
    )


def bought(accelerator: str = "") -> tuple[Purchase, ...]:
    """Purchase prices of this accelerator, the user's own first."""
    chip = accelerator_named(accelerator).name if accelerator else ""
    return tuple(row for row in purchases() if chip in ("", row.accelerator))


def cheapest(candidates: Sequence[Price], rates: Rates | None = None) -> Price:
    """The lowest price of an accelerator for an hour, among those of `compared`."""
    return min(compared(candidates, rates), key=lambda price: in_usd(price, rates) / price.accelerators)


def compared(candidates: Sequence[Price], rates: Rates | None = None) -> list[Price]:
    """The prices that an answer chooses from: only the user's own if there are any; offers before an index of what
    others paid.

    MissingDatum without prices, or where all are in currencies without a rate: none is assumed.
    """
    if not candidates:
        raise MissingDatum(
            "no price is known for this. `tonnage prices` lists those that are; write yours in <config "
            "directory>/prices/."
        )
    considered = [price for price in candidates if price in own_prices()] or list(candidates)
    known = [price for price in considered if price.currency == DOLLARS or price.currency in (rates or {})]
    if not known:
        raise no_rate(sorted({price.currency for price in considered}))
    return [price for price in known if not price.index] or known


def of_named_instance(cluster: Cluster, candidates: Sequence[Price], rates: Rates | None) -> list[Price]:
    """The prices of the instance that the cluster was named by: `g5.2xlarge` costs what it costs, and not what the
    cheapest machine with one A10G does. Empty for other clusters, and where the user has prices of their own.
    """
    if not _is_named(cluster, candidates) or cluster.node is None:
        return []
    named = toml_files.key(cluster.node.name)
    return [
        price
        for price in candidates
        if _payable(price, rates)
        and price.accelerators == cluster.node.accelerators
        and named == toml_files.key(price.instance).removeprefix("standard-")
    ]


def of_named_provider(cluster: Cluster, candidates: Sequence[Price], rates: Rates | None) -> list[Price]:
    """The prices of its provider for machines of its size, where the cluster was named by an instance that is priced
    under another name: `gpu-h100-sxm-8gpu-128vcpu-1600gb` is Nebius' "HGX H100". Empty for other clusters.
    """
    if not _is_named(cluster, candidates) or cluster.node is None:
        return []
    return [
        price
        for price in candidates
        if _payable(price, rates)
        and not price.index
        and price.provider == cluster.node.provider
        and any(machine.accelerators == cluster.node.accelerators for machine in price.machines)
    ]


def _is_named(cluster: Cluster, candidates: Sequence[Price]) -> bool:
    """Whether the machine is a provider's instance, and not what an accelerator is taken to be in."""
    node = cluster.node
    return not (
        node is None
        or cluster.accelerators_per_node != node.accelerators
        or toml_files.key(node.name) == toml_files.key(cluster.accelerator.default_node or "")
        or any(price in own_prices() for price in candidates)
    )


def _payable(price: Price, rates: Rates | None) -> bool:
    return price.currency == DOLLARS or price.currency in (rates or {})


def in_usd(price: Price, rates: Rates | None = None) -> float:
    """US dollars an hour, at the user's rate; MissingDatum without one."""
    if price.usd_per_hour is not None:
        return price.usd_per_hour
    return price.price_per_hour / rate(price.currency, rates)


def rate(currency: str, rates: Rates | None) -> float:
    """Units of the currency for one US dollar in `rates`; MissingDatum where it has none."""
    if currency == DOLLARS:
        return 1.0
    if not rates or currency not in rates:
        raise no_rate([currency])
    units = rates[currency]
    if isinstance(units, bool) or not isinstance(units, int | float) or not (isfinite(units) and units > 0):
        raise InvalidInput(
            "the rate of {currency} must be above 0: how many {currency} one USD buys. Got {given}.",
            currency=currency,
            given=shown(units),
        )
    return float(units)


def no_rate(names: Sequence[str]) -> MissingDatum:
    """The error for prices whose currency has no rate."""
    return MissingDatum(
        "prices in {names} need a rate of exchange, and none is assumed: give how many of it one "
        "US dollar buys, such as {names2}=7.2 ({--exchange-rate} on the command line, "
        "{@exchange_rate} in Python).",
        names=listed(names),
        names2=names[0],
    )


def parse_rates(text: str, what: str) -> dict[str, float]:
    """Parse rates such as "CNY=7.2,EUR=0.9", each for one US dollar; UnknownName for a currency without a price."""
    known = [name for name in currencies() if name != DOLLARS]
    rates: dict[str, float] = {}
    for part in text.replace("，", ",").split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not re.fullmatch(r"[A-Za-z]{3}", name):
            raise InvalidInput(
                "{what} is written like CNY=7.2, several with commas between. Got {text}.",
                what=option_name(what),
                text=shown(text),
            )
        if name.upper() not in known:
            raise unknown(Message("currency of {what}", what=option_name(what)), name, known)
        try:
            rates[name.upper()] = float(value)
        except ValueError:
            raise InvalidInput(
                "{what} of {name} must be a number such as 7.2. Got {value}.",
                what=option_name(what),
                name=name.upper(),
                value=shown(value),
            ) from None
        rate(name.upper(), rates)
    return rates


# Provider -> what else people call it.
OTHER_NAMES = {
    "AWS": ("amazon", "amazon-web-services", "ec2", "sagemaker"),
    "Azure": ("microsoft", "microsoft-azure"),
    "Google Cloud": ("gcp", "google", "gce", "vertex"),
    "Oracle": ("oci", "oracle-cloud"),
    "Together AI": ("together",),
    "Vast.ai": ("vast",),
    "Lambda": ("lambda-labs", "lambdalabs"),
    "阿里云 (Alibaba Cloud)": ("aliyun", "alibaba"),
}


def provider_named(name: str) -> str:
    """The provider's name as in its rows, in any case; of "X (Y)" either name matches. Empty for an empty name."""
    if not name:
        return ""
    known = providers()
    for provider in known:
        if toml_files.key(name) in {toml_files.key(part) for part in (provider, *re.findall(r"[^()]+", provider))}:
            return provider
    other_names = {other: provider for provider, names in OTHER_NAMES.items() if provider in known for other in names}
    if toml_files.key(name) in other_names:
        return other_names[toml_files.key(name)]
    near = nearest(name, known) or dict.fromkeys(other_names[other] for other in nearest(name, other_names))
    if near:
        hint = Message("Did you mean {near}?", near=listed(map(repr, near)))
        error = UnknownName(Message("no {kind} is called {name}. {hint}", kind="provider", name=shown(name), hint=hint))
        error.nearest = tuple(near)
        raise error
    raise unknown("provider", name, known)


def region_named(name: str) -> str:
    """The region's name as in its rows, in any case. Empty for an empty name."""
    if not name:
        return ""
    matches = [known for known in regions() if toml_files.key(name) == toml_files.key(known)]
    if not matches:
        raise unknown("region", name, regions())
    return matches[0]
