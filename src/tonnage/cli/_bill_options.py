"""Options about money, power and disks, for the verbs that say what a run costs."""

from tonnage.cli._options import Option, count, number, ranged, word

BILL_OPTIONS = (
    Option("provider", "whose machines are rented, such as AWS", word, unit="name", default="the cheapest offer known"),
    Option("price_kind", "on-demand, spot or reserved", word, unit="kind", default="on-demand"),
    Option("region", "where they are rented", word, unit="name", default="any"),
    Option("exchange_rate", "of offers in another currency, such as CNY=7.1", word, unit="per USD", default="such offers are left out"),
    Option("grid", "a country, or grams of CO2e per kWh: what the electricity emits", word, unit="name or g/kWh"),
    Option("pue", "power of the building for a watt of the machines", number, unit="factor", default="1.54, as the mean of halls"),
    Option("power_share", "of the machines' rated power that is drawn", number, unit="0 to 1", default="0.82"),
    Option("keep_checkpoints", "checkpoints that lie on disk", ranged(count, "from 1 to 1,000,000"), unit="checkpoints", default="3"),
    Option("text_bytes_per_token", "plain text that a token of the data set stands for", number, unit="bytes", default="4, as of English"),
    Option("electricity_usd_per_kwh", "price of a kilowatt-hour: with the two after it buying is compared with renting", number, unit="USD"),
    Option("network_share", "switches, cables and racks, as a share of the machines' price", number, unit="share"),
    Option("staff_usd_per_month", "pay of those who look after all the machines", number, unit="USD"),
    Option("used_share", "of the time that one's own machines are in use and draw power", number, unit="0 to 1", default="1"),
    Option("machine_usd", "price of one machine, of as many accelerators as a node", number, unit="USD", default="the cheapest for sale in the catalogue"),
    Option("machine_watts", "the most that one machine draws", number, unit="watts", default="as the catalogue has the machine"),
    Option("depreciation_years", "years over which one's own machines are written off", number, unit="years", default="5"),
    Option("colocation_usd_per_kw_month", "room in a data centre for a kilowatt and month; 0 in one's own building", number, unit="USD", default="184, as in North America"),
    Option("edge", "a device for sale to compare too, such as rtx-4090: the same training on it alone", word, unit="accelerator"),
)  # fmt: skip
