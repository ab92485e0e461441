"""The memory of an allocator: pools of free blocks, the first block of each segment, and counters."""

from typing import Any

from tonnage.kernel.units import TIB
from tonnage.trace.allocator.blocks import Block, Pool
from tonnage.trace.allocator.settings import Settings

FIRST_ADDRESS = 0x7F00_0000_0000


class CachedMemory:
    """The memory of one accelerator.

    `capacity`: bytes that the program may reserve; None: no limit. `total`: bytes of the accelerator. Counters in
    bytes: `allocated`, `reserved`, `requested` and their peaks; `segments`, `retries`, `driver_allocations`,
    `driver_frees` count. With `record`, `trace` holds an entry for each action, in the form of memory snapshots.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        capacity: int | None = None,
        total: int | None = None,
        record: bool = False,
    ):
        self.settings = settings or Settings()
        self.capacity, self.total = capacity, total or capacity or TIB
        fraction = self.settings.memory_fraction
        self.allowed = None if fraction is None else int(fraction * self.total)
        self.collects = self.allowed is not None and self.settings.garbage_collection_threshold > 0
        self.pools: dict[tuple[bool, int], Pool] = {}
        self.heads: dict[int, Block] = {}  # the first block of each segment, by address
        self.searches = {
            True: 0,
            False: 0,
        }  # in small and large pools: a block's age is the number of searches since it was freed
        self.allocated = self.reserved = self.requested = 0
        self.peak_allocated = self.peak_reserved = self.peak_requested = 0
        self.segments = self.retries = self.driver_allocations = self.driver_frees = 0
        self.next_address = FIRST_ADDRESS
        self.trace: list[tuple[str, int, int, int, Any]] | None = [] if record else None

    def insert(self, block: Block) -> None:
        """Put a free block into its pool."""
        block.age = self.searches[block.pool.small]
        block.pool.insert(block)

    def merge(self, block: Block, neighbour: Block | None) -> None:
        """Join the block with a neighbour that is free, and mapped as the block is."""
        if neighbour is None or neighbour.allocated or neighbour.mapped != block.mapped:
            return
        pool = block.pool
        if neighbour.mapped:
            pool.remove(neighbour)
        else:
            pool.unmapped.remove(neighbour)
        if neighbour is block.previous:
            before = neighbour.previous
            block.address, block.previous = neighbour.address, before
            if before is not None:
                before.next = block
            else:
                self.heads[block.address] = block
        else:
            after = neighbour.next
            block.next = after
            if after is not None:
                after.previous = block
        block.size += neighbour.size

    def grow(self, size: int) -> None:
        """Count memory that came from the driver."""
        self.reserved += size
        self.driver_allocations += 1
        self.peak_reserved = max(self.peak_reserved, self.reserved)

    def has_room(self, size: int) -> bool:
        return self.capacity is None or self.reserved + size <= self.capacity
