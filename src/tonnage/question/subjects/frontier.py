"""Other questions about serving, each with a document of its own: many configurations, many models."""

from tonnage.question.forms import count, ranged, word
from tonnage.question.option import Option

FRONTIER = (
    Option(
        "frontier",
        "speed for a user against throughput of an accelerator, over tensor sizes, precisions and numbers of users",
        default="off",
    ),
    Option(
        "points",
        "numbers of users that are tried of each plan",
        ranged(count, "from 2 to 100,000"),
        unit="configurations",
        default="24",
    ),
    Option(
        "for_my_machine",
        "which models of the catalogue run on --on, in which precisions, and how fast; without MODEL",
        default="off",
    ),
    Option(
        "order",
        "of those models: parameters, tokens_per_second, ttft_seconds, download_bytes or longest_context",
        word,
        unit="name",
        default="parameters",
    ),
)
