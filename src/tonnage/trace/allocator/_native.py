"""DeviceCachingAllocator: allocate from free blocks or from the driver, release cached memory, free blocks."""

from typing import Any

from tonnage.kernel.message import Message
from tonnage.kernel.units import MIB
from tonnage.trace.allocator import _expandable as expandable
from tonnage.trace.allocator import _release as release
from tonnage.trace.allocator._cached import CachedMemory
from tonnage.trace.allocator.blocks import ADDRESS_BITS, Block, Pool
from tonnage.trace.allocator.settings import INTERVALS

MIN_BLOCK = 512
SMALL_SIZE = MIB  # up to this, a request is small
SMALL_BUFFER = 2 * MIB  # the segment of small blocks
MIN_LARGE = 10 * MIB  # a request of at least this size has its own segment
ROUND_LARGE = 2 * MIB


class OutOfMemory(Exception):
    """The driver has no memory for a segment of `tried` bytes, for a request of `requested` bytes."""

    def __init__(self, tried: int, requested: int, stream: int):
        super().__init__(Message("tried to allocate {tried} bytes", tried=tried))
        self.tried, self.requested, self.stream = tried, requested, stream


class Allocator(CachedMemory):
    """One accelerator's allocator: it chooses the block for a request, and the segments to request from the driver."""

    def allocate(self, size: int, stream: int = 0, context: Any = None) -> Block | None:
        """A block of at least `size` bytes; None for 0 bytes. Raises OutOfMemory."""
        if size <= 0:
            return None
        rounded = (size + 511) & -512 if not self.settings.roundup_power2_divisions else self.rounded(size)
        small = rounded <= SMALL_SIZE
        pool = self.pools.get((small, stream)) or self._new_pool(small, stream)
        block = self._free_block(pool, rounded) or self._from_driver(pool, rounded, size, context)
        rest = block.size - rounded
        if rest and self._splits(small, rounded, rest):
            block = self._split(block, rounded, rest)
        block.allocated, block.requested, block.context = True, size, context
        self.allocated += block.size
        self.requested += size
        if self.allocated > self.peak_allocated:
            self.peak_allocated = self.allocated
        if self.requested > self.peak_requested:
            self.peak_requested = self.requested
        if self.trace is not None:
            self.trace.append(("alloc", block.address, size, stream, context))
        return block

    def free(self, block: Block | None) -> None:
        """Return a block to its pool, joined with free neighbours."""
        if block is None:
            return
        self.allocated -= block.size
        self.requested -= block.requested
        block.allocated = False
        if self.trace is not None:
            for action in ("free_requested", "free_completed"):
                self.trace.append((action, block.address, block.requested, block.pool.stream, block.context))
        block.context = None
        if block.previous is not None:
            self.merge(block, block.previous)
        if block.next is not None:
            self.merge(block, block.next)
        self.insert(block)

    def empty_cache(self) -> None:
        """torch.cuda.empty_cache()."""
        release.all_cached(self)

    def rounded(self, size: int) -> int:
        """A request's size rounded up to that of its block."""
        if size < MIN_BLOCK:
            return MIN_BLOCK
        table = self.settings.roundup_power2_divisions
        if table:
            divisions = table[min(max(size.bit_length() - 21, 0), INTERVALS - 1)]
            if divisions > 1 and size > MIN_BLOCK * divisions:
                return _next_division(size, divisions)
        return -(-size // MIN_BLOCK) * MIN_BLOCK

    def segment_size(self, rounded: int) -> int:
        """The segment size that is requested from the driver for a block of this size."""
        if rounded <= SMALL_SIZE:
            return SMALL_BUFFER
        if rounded < MIN_LARGE:
            return self.settings.large_segment_size
        return -(-rounded // ROUND_LARGE) * ROUND_LARGE

    def _new_pool(self, small: bool, stream: int) -> Pool:
        pool = self.pools[small, stream] = Pool(small, stream)
        return pool

    def _free_block(self, pool: Pool, size: int) -> Block | None:
        if self.collects:
            self.searches[pool.small] += 1
        keys = pool.keys
        place = pool.first(size)
        if place == len(keys):
            return None
        settings = self.settings
        if settings.expandable_segments:
            place = expandable.best_fit(pool, place)
        key = keys[place]
        block_size = key >> ADDRESS_BITS
        if size < settings.max_split_size <= block_size:
            return None  # a small request must not take an oversize block
        if size >= settings.max_split_size and block_size >= size + settings.max_non_split_rounding:
            return None
        del keys[place]
        return pool.blocks.pop(key)

    def _from_driver(self, pool: Pool, rounded: int, size: int, context: Any) -> Block:
        """A block of new memory, after releasing as much cached memory as that needs."""
        segment_bytes = self.segment_size(rounded)
        if self.collects:
            release.aged(self)
        block = self._new_block(pool, rounded, segment_bytes)
        if block is None and release.oversize(self, pool, rounded):
            block = self._new_block(pool, rounded, segment_bytes)
        if block is None:
            release.all_cached(self)
            self.retries += 1
            block = self._new_block(pool, rounded, segment_bytes)
        if block is None:
            if self.trace is not None:
                self.trace.append(("oom", (self.capacity or 0) - self.reserved, rounded, pool.stream, context))
            raise OutOfMemory(segment_bytes, size, pool.stream)
        return block

    def _new_block(self, pool: Pool, rounded: int, segment_bytes: int) -> Block | None:
        if self.allowed is not None and self.reserved + segment_bytes > self.allowed:
            return None
        if self.settings.expandable_segments:
            return expandable.allocate(self, pool, rounded)
        if not self.has_room(segment_bytes):
            return None
        block = Block(segment_bytes, self.next_address, pool)
        self.next_address += -(-segment_bytes // ROUND_LARGE) * ROUND_LARGE
        self.heads[block.address] = block
        self.grow(segment_bytes)
        self.segments += 1
        if self.trace is not None:
            self.trace.append(("segment_alloc", block.address, segment_bytes, pool.stream, None))
        return block

    def _splits(self, small: bool, size: int, rest: int) -> bool:
        """Whether the rest of a block becomes a free block; else the full block counts as allocated."""
        if small or self.settings.expandable_segments:
            return rest >= MIN_BLOCK
        return size < self.settings.max_split_size and rest > SMALL_SIZE

    def _split(self, rest: Block, size: int, left: int) -> Block:
        """Split off the first `size` bytes as a block; `rest` keeps the end."""
        block = Block(size, rest.address, rest.pool, rest.segment)
        before = rest.previous
        block.previous, block.next, rest.previous = before, rest, block
        if before is not None:
            before.next = block
        else:
            self.heads[block.address] = block
        rest.address += size
        rest.size = left
        self.insert(rest)
        return block


def _next_division(size: int, divisions: int) -> int:
    """The size rounded up to the next of `divisions` equal steps between two powers of two."""
    if size & (size - 1) == 0:
        return size
    floor = 1 << (size.bit_length() - 1)
    step = floor >> (divisions.bit_length() - 1)
    if step == 0:
        return floor << 1
    below = size & -step
    return size if below == size else below + step
