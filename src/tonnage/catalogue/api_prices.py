"""Dated prices per token of hosted models: catalogue/api_prices/*.toml -> ApiPrice. The user's own come first."""

from datetime import date
from functools import cache
from pathlib import Path

from msgspec import Struct

from tonnage.catalogue import toml_files
from tonnage.catalogue.models import find
from tonnage.catalogue.prices import STALE_DAYS
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message

MAX_USD = 1000.0  # for a million tokens: ten times what any hosted model costs


class ApiPrice(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A provider's price for a million input and output tokens, in US dollars: list price of the usual tier, without
    discounts.

    `model`: the catalogue's name of the model with the same shape; `called`: the provider's name of it.
    `cached_input_usd`: of cached input tokens, None where it lists no such price: then they cost as all others.
    """

    provider: str
    model: str
    called: str
    input_usd: float
    output_usd: float
    source: str
    as_of: str
    cached_input_usd: float | None = None
    note: str = ""

    @property
    def cached(self) -> float:
        """The price of cached input tokens."""
        return self.input_usd if self.cached_input_usd is None else self.cached_input_usd


class ApiPriceFile(Struct, forbid_unknown_fields=True):
    """The form of a file; docs/catalogue.md explains each key."""

    price: list[ApiPrice] = []


@cache
def api_prices() -> tuple[ApiPrice, ...]:
    """All prices per token, the user's own first; one of the user's own replaces a shipped one of the same provider and
    model.
    """
    own = [price for path in toml_files.user_files("api_prices") for price in load(path).price]
    own_keys = {(price.provider, price.model) for price in own}
    shipped = [price for path in sorted((toml_files.HERE / "api_prices").glob("*.toml")) for price in load(path).price]
    return (*own, *(price for price in shipped if (price.provider, price.model) not in own_keys))


def of_model(model: str) -> tuple[ApiPrice, ...]:
    """Prices of the model, by its name in the catalogue or an alias; none for a model that is not in it."""
    path = find(model) if model else None
    return tuple(price for price in api_prices() if path is not None and price.model == path.stem)


def age_days(row: ApiPrice, today: date) -> int:
    """Days since the price was published or read; 0 for a day after `today`."""
    return max(0, (today - date.fromisoformat(row.as_of)).days)


def is_stale(row: ApiPrice, today: date) -> bool:
    """Whether the row is older than STALE_DAYS."""
    return age_days(row, today) > STALE_DAYS


def forget() -> None:
    """Drop the cached prices, so that the files are read again."""
    api_prices.cache_clear()


def load(path: Path) -> ApiPriceFile:
    """Read one file, strictly."""
    form = toml_files.read(path, ApiPriceFile)
    for number, price in enumerate(form.price, 1):
        where = Message(
            "{path}: price {number} ({provider} {called})",
            path=path,
            number=number,
            provider=price.provider,
            called=price.called,
        )
        for name in ("input_usd", "output_usd", "cached_input_usd"):
            value = getattr(price, name)
            if value is not None and not 0 < value <= MAX_USD:
                raise InvalidInput(
                    "{where}: {name} must be above 0 and at most {dearest:,.0f} USD a million tokens. Got {value!r}.",
                    where=where,
                    name=name,
                    dearest=MAX_USD,
                    value=value,
                )
        toml_files.one_of(toml_files.key(price.model), [price.model], Message("{where}: model", where=where))
        if not price.source.strip() or not price.provider.strip():
            raise InvalidInput("{where}: source and provider must not be empty.", where=where)
        toml_files.calendar_day(price.as_of, f"{where}: as_of")
    return form
