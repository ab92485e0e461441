"""What a size grows with, and what shards it."""

from typing import Literal, NamedTuple

# A "row" is one copy of a token that arrived at the experts of a rank: capacity, padding and imbalance decide how many
# there are.
# "tile": as a token, but no more of them than a tile of TRL's losses has.
Unit = Literal["token", "row", "pair", "tile", "parameter", "gradient"]
# What shards a size: only sequence parallelism ("whole"), tensor ranks, expert ranks, the vocabulary; "gathered":
# nothing.


class Extent(NamedTuple):
    """What a size grows with, and what shards it. `heads`: a rank holds at least one of this many."""

    unit: Unit
    split: str
    heads: int = 0
