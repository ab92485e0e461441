"""Options of money, power and disks."""

from typing import Annotated

from tonnage.question.forms import count, number, ranged, word
from tonnage.question.option import RUN_AND_MONEY, Options, Usual, described, option, options_of

NEEDED = ("electricity_usd_per_kwh", "network_share", "staff_usd_per_month")  # to compare buying with renting
OF_OWNING = ("used_share", "machine_usd", "machine_watts", "depreciation_years", "colocation_usd_per_kw_month")
# Of a training run alone: a served model asks for no disks, and for no other device.
OF_TRAINING = ("keep_checkpoints", "text_bytes_per_token", "edge")


@described
class BillOptions(Options, frozen=True, kw_only=True):
    """Options of money, power and disks; None is the default, which `answer.question` names with its source.

    To compare buying with renting, all of NEEDED are given, or none.
    """

    provider: Annotated[
        str | None,
        option(
            "whose machines are rented, such as AWS",
            word,
            unit="name",
            default="the cheapest offer known",
            usual=Usual(RUN_AND_MONEY, "whose price", "NAME", "the cheapest known"),
        ),
    ] = None
    price_kind: Annotated[
        str | None,
        option(
            "on-demand, spot or reserved",
            word,
            unit="kind",
            default="on-demand",
            choices=("on-demand", "spot", "reserved"),
            usual=Usual(RUN_AND_MONEY, "on-demand, spot or reserved", "KIND"),
        ),
    ] = None
    region: Annotated[str | None, option("where they are rented", word, unit="name", default="any")] = None
    exchange_rate: Annotated[
        str | None,
        option(
            "of offers in another currency, such as CNY=7.1", word, unit="per USD", default="such offers are left out"
        ),
    ] = None
    grid: Annotated[
        float | str | None,
        option("a country, or grams of CO2e per kWh: what the electricity emits", word, unit="name or g/kWh"),
    ] = None
    pue: Annotated[
        float | None,
        option(
            "power of the building for a watt of the machines",
            number,
            unit="factor",
            default="1.54, as the mean of halls",
        ),
    ] = None
    power_share: Annotated[
        float | None, option("of the machines' rated power that is drawn", number, unit="0 to 1", default="0.82")
    ] = None
    keep_checkpoints: Annotated[
        int | None,
        option("checkpoints that lie on disk", ranged(count, "from 1 to 1,000,000"), unit="checkpoints", default="3"),
    ] = None
    text_bytes_per_token: Annotated[
        float | None,
        option("plain text that a token of the data set stands for", number, unit="bytes", default="4, as of English"),
    ] = None
    electricity_usd_per_kwh: Annotated[
        float | None,
        option("price of a kilowatt-hour: with the two after it buying is compared with renting", number, unit="USD"),
    ] = None
    network_share: Annotated[
        float | None, option("switches, cables and racks, as a share of the machines' price", number, unit="share")
    ] = None
    staff_usd_per_month: Annotated[
        float | None, option("pay of those who look after all the machines", number, unit="USD")
    ] = None
    used_share: Annotated[
        float | None,
        option("of the time that one's own machines are in use and draw power", number, unit="0 to 1", default="1"),
    ] = None
    machine_usd: Annotated[
        float | None,
        option(
            "price of one machine, of as many accelerators as a node",
            number,
            unit="USD",
            default="the cheapest for sale in the catalogue",
        ),
    ] = None
    machine_watts: Annotated[
        float | None,
        option("the most that one machine draws", number, unit="watts", default="as the catalogue has the machine"),
    ] = None
    depreciation_years: Annotated[
        float | None, option("years over which one's own machines are written off", number, unit="years", default="5")
    ] = None
    colocation_usd_per_kw_month: Annotated[
        float | None,
        option(
            "room in a data centre for a kilowatt and month; 0 in one's own building",
            number,
            unit="USD",
            default="184, as in North America",
        ),
    ] = None
    edge: Annotated[
        str | None,
        option(
            "a device for sale to compare too, such as rtx-4090: the same training on it alone",
            word,
            unit="accelerator",
        ),
    ] = None

    @property
    def compares(self) -> bool:
        """Whether buying is to be compared with renting."""
        return any(getattr(self, name) is not None for name in (*NEEDED, *OF_OWNING, "edge"))


MONEY = options_of(BillOptions)
SERVED = tuple(each for each in MONEY if each.name not in OF_TRAINING)
