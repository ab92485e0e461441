"""Forms of what `tonnage prices --json` prints: hours of machines rented, and machines bought."""

from typing import Literal

from msgspec import Struct

from tonnage.documents.document import Document
from tonnage.documents.serving import HostedOffer
from tonnage.kernel.term import TermDocument

PriceKind = Literal["on-demand", "spot", "reserved"]


class PriceRow(Struct, kw_only=True, forbid_unknown_fields=True):
    """An offer. `price_per_hour` is of the whole machine, in `currency`; the dollars of an accelerator are null
    where the price is in another currency and no rate was given. `sizes`: of a price by the accelerator, how many a
    machine has that is sold so, and where that is listed; empty where only one alone is known to be. `own`: from a
    file of the user's own; `origin`: from which file: own, refreshed or shipped.
    """

    provider: str
    instance: str
    accelerator: str
    accelerators: int
    sizes: list[int]
    sizes_source: str
    region: str
    kind: PriceKind
    term_months: int | None
    currency: str
    price_per_hour: float
    usd_per_accelerator_hour: float | None
    source: str
    as_of: str
    age_days: int
    stale: bool
    own: bool
    origin: Literal["own", "refreshed", "shipped"]
    note: str


class PurchaseRow(Struct, kw_only=True, forbid_unknown_fields=True):
    """A machine or card that is sold: US dollars before tax, and watts at most, null where nobody says."""

    name: str
    accelerator: str
    accelerators: int
    usd: float
    power_watts: float | None
    source: str
    as_of: str
    age_days: int
    stale: bool
    note: str


class PricesDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """What `prices` answers. `as_of`: the day that ages are counted to; `rates`: units of a currency for one US
    dollar, as given.
    """

    as_of: str
    stale_after_days: int
    rates: dict[str, float]
    prices: list[PriceRow]
    purchases: list[PurchaseRow]
    warnings: list[str]


class RefreshedCloud(Struct, kw_only=True, forbid_unknown_fields=True):
    """What was read of one cloud's list. Where it was not `read`, `problem` says why and its older prices are as they
    were. `new`, `moved`
    and `gone`: offers beside the older file; `kept`: older ones that stay because rows of the new list are
    `malformed`. `unknown`: names of accelerators that our catalogue does not have, with their rows; `left_out`: why
    other rows are not read, with their number.
    """

    cloud: str
    provider: str
    source: str
    as_of: str | None
    read: bool
    problem: str | None
    prices: int
    accelerators: list[str]
    new: int
    moved: int
    gone: int
    kept: int
    malformed: list[str]
    unknown: dict[str, int]
    left_out: dict[str, int]


class RefreshDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """What `prices refresh` did. `looked_up`: whether prices are looked up in this file."""

    file: str
    looked_up: bool
    clouds: list[RefreshedCloud]


class HostedRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """The requests whose price is asked for."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int
    requests_per_day: int | None


class ApiPricesDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """What `prices --api` answers: prices by the token, with `request` also what such requests cost. `model`: null
    of all models.
    """

    as_of: str
    stale_after_days: int
    model: str | None
    request: HostedRequest | None
    prices: list[HostedOffer[TermDocument]]
    warnings: list[str]
