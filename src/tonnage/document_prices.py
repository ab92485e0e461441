"""Forms of what `tonnage prices --json` prints: hours of machines rented, and machines bought."""

from typing import Literal

from msgspec import Struct


class PriceRow(Struct, kw_only=True, forbid_unknown_fields=True):
    """An offer. `price_per_hour` is of the whole machine, in `currency`; the dollars of an accelerator are null where the price is in another
    currency and no rate was given. `own`: from a file of the user."""

    provider: str
    instance: str
    accelerator: str
    accelerators: int
    region: str
    kind: Literal["on-demand", "spot", "reserved"]
    term_months: int | None
    currency: str
    price_per_hour: float
    usd_per_accelerator_hour: float | None
    source: str
    as_of: str
    age_days: int
    stale: bool
    own: bool
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


class PricesDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """What `prices` answers. `as_of`: the day that ages are counted to; `rates`: units of a currency for one US dollar, as given."""

    schema: Literal["tonnage/1"]
    as_of: str
    stale_after_days: int
    rates: dict[str, float]
    prices: list[PriceRow]
    purchases: list[PurchaseRow]
    warnings: list[str]
