"""Of the machine: which one, and what is left free of it."""

from tonnage.kernel.units import parse_bytes
from tonnage.question.option import Option
from tonnage.question.texts import word

ON = Option(
    "on",
    "cluster: NAME, 8xNAME, nodes x 8 x NAME, a node such as dgx-h100, a TOML file, or local",
    word,
    unit="cluster",
)
RESERVE = Option("reserve", "memory of each accelerator to leave free", parse_bytes, unit="bytes", default="0")
MACHINE = (ON, RESERVE)
# Of a search for plans of training, and of one for plans that serve.
TO_TRAIN_ON = Option(
    "on",
    (
        "machines to compare, separated by commas: a name with a number (8xH100) is that machine, a name alone "
        "any number of it"
    ),
    word,
    unit="clusters",
    default="every GPU of the catalogue",
)
TO_SERVE_ON = Option(
    "on",
    "accelerators and clusters with commas between: of h100 the number is searched, 8xH200-SXM-141GB is as it says",
    word,
    unit="clusters",
    default="every accelerator of the catalogue",
)
