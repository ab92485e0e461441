"""Options of the table of a comparison."""

from tonnage.question.forms import FEWEST, accelerators, parquet, word
from tonnage.question.option import Option

COUNT = Option(
    "count",
    "how many accelerators, where --on does not say it: a number, or fewest: the fewest that hold the model, in parts "
    "of a machine, a machine or several",
    accelerators,
    unit="accelerators",
    default=FEWEST,
)
TABLE = (
    COUNT,
    Option(
        "sort",
        "order by this figure, the best first: cost, price, memory, ttft, tpot, step, speed, users, ..., or "
        "a column of "
        "--csv; it also decides what is marked as best",
        word,
        unit="name",
        default="in the order of the options; cost decides",
    ),
    Option("show", "figures of the table, as for --sort", word, unit="names", default="the usual ones"),
    Option("rows", "a line for each cell, with more figures", default="off, where two axes vary"),
    Option(
        "parquet",
        "write all columns to this file too, which ends in .parquet: needs tonnage[cluster]",
        parquet,
        unit="file",
        faces=("command line",),
    ),
)
