"""Options of the catalogues: accelerators, nodes and prices."""

from tonnage.catalogue.offers import parse_rates
from tonnage.question.forms import as_written, count, day, length, ranged, whole, word
from tonnage.question.option import Option

ACCELERATOR = Option(
    "name",
    "an accelerator, NAME:VARIANT for a slice, a node, or local; none: list all",
    as_written,
    alone=True,
    metavar="NAME",
)
PRICED = Option(
    "name",
    "an accelerator of the catalogue; none: all; or `refresh`: `tonnage prices refresh --help`",
    as_written,
    alone=True,
    metavar="ACCELERATOR",
)
PRICES = (
    Option("provider", "offers of this provider alone, such as AWS", word, unit="name"),
    Option("kind", "on-demand, spot or reserved", word, unit="kind", default="all kinds"),
    Option("region", "offers of this region, and those that hold everywhere", word, unit="name"),
    Option("term", "reserved for so long", whole, unit="months"),
    Option("currency", "offers in this currency, such as CNY", word, unit="name"),
    Option(
        "exchange_rate",
        "units of a currency that one US dollar buys, as CNY=7.2; none is assumed",
        parse_rates,
        ("--rate",),
        "rates",
    ),
    Option("as_of", "the day that ages are counted to", day, unit="date", default="today"),
)
HOSTED = Option(
    "model", "a name from `tonnage models`; none: all that have a price", as_written, alone=True, metavar="MODEL"
)
BY_TOKEN = Option("api", "prices by the token, not by the hour", negatable=False)
API_PRICES = (
    Option(
        "input_tokens", "tokens of a prompt: with the next, what such requests cost", length, ("--input",), "tokens"
    ),
    Option("output_tokens", "tokens of an answer", length, ("--output",), "tokens"),
    Option(
        "cached_tokens",
        "of a prompt that the provider has already",
        ranged(count, "from 0 to 1,099,511,627,776"),
        ("--cached",),
        "tokens",
        "0",
    ),
    Option("requests_per_day", "requests of a day", whole, unit="requests"),
    Option("provider", "of this provider alone, such as Groq", word, unit="name"),
    Option("as_of", "the day that ages are counted to", day, unit="date", default="today"),
)
