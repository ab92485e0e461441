"""The allocator's blocks, linked to their neighbours in one segment, and its pools of free blocks."""

from bisect import bisect_left, insort
from typing import Any

ADDRESS_BITS = 48


class Segment:
    """A range of addresses that is mapped page by page (expandable_segments)."""

    __slots__ = ("base", "page", "size")

    def __init__(self, base: int, size: int, page: int):
        self.base, self.size, self.page = base, size, page


class Block:
    """`size` bytes from `address` on. `requested`: the program's request; `segment`: the expandable segment of the
    block.
    """

    __slots__ = (
        "address",
        "age",
        "allocated",
        "context",
        "mapped",
        "next",
        "pool",
        "previous",
        "requested",
        "segment",
        "size",
    )

    def __init__(self, size: int, address: int, pool: "Pool", segment: Segment | None = None):
        self.size, self.address, self.pool, self.segment = size, address, pool, segment
        self.requested = self.age = 0
        self.allocated, self.mapped = False, True
        self.previous: Block | None = None
        self.next: Block | None = None
        self.context: Any = None

    @property
    def key(self) -> int:
        """The sort key of free blocks: size, then address."""
        return self.size << ADDRESS_BITS | self.address

    @property
    def is_split(self) -> bool:
        return self.previous is not None or self.next is not None


class Pool:
    """Free blocks of one stream, small or large, smallest first. `unmapped`: ranges of expandable segments without
    memory.
    """

    __slots__ = ("blocks", "keys", "small", "stream", "unmapped")

    def __init__(self, small: bool, stream: int):
        self.small, self.stream = small, stream
        self.keys: list[int] = []
        self.blocks: dict[int, Block] = {}
        self.unmapped: list[Block] = []

    def insert(self, block: Block) -> None:
        key = block.size << ADDRESS_BITS | block.address
        insort(self.keys, key)
        self.blocks[key] = block

    def remove(self, block: Block) -> None:
        key = block.size << ADDRESS_BITS | block.address
        del self.keys[bisect_left(self.keys, key)]
        del self.blocks[key]

    def first(self, size: int) -> int:
        """The place of the smallest block of at least this size."""
        return bisect_left(self.keys, size << ADDRESS_BITS)

    def insert_unmapped(self, block: Block) -> None:
        insort(self.unmapped, block, key=lambda unmapped: unmapped.address)

    def free_blocks(self) -> list[Block]:
        return [self.blocks[key] for key in self.keys]
