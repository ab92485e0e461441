"""Releases cached memory to the driver: old, oversize, or all entirely free segments."""

from tonnage.trace.allocator import _expandable as expandable
from tonnage.trace.allocator._cached import CachedMemory
from tonnage.trace.allocator.blocks import Block, Pool
from tonnage.trace.allocator.settings import NO_LIMIT


def all_cached(allocator: CachedMemory) -> None:
    """Release every entirely free segment, large ones first; expandable ones page by page."""
    for small in (False, True):
        for pool in [pool for (kind, _), pool in allocator.pools.items() if kind is small]:
            blocks = pool.free_blocks()
            for block in blocks:
                if block.segment is None and not block.is_split:
                    release_segment(allocator, block)
            for block in blocks:
                if block.segment is not None:
                    expandable.unmap(allocator, block)


def oversize(allocator: CachedMemory, pool: Pool, size: int) -> bool:
    """With max_split_size: release one free block that is large enough, or several oversize ones, the largest first."""
    limit = allocator.settings.max_split_size
    if limit == NO_LIMIT:
        return False
    wanted = max(size, limit)
    place = pool.first(wanted)
    blocks = pool.free_blocks()
    if place < len(blocks):
        if blocks[place].segment is not None:
            return False
        release_segment(allocator, blocks[place])
        return True
    released = 0
    for block in reversed(blocks):
        if released >= wanted or block.size < limit or block.segment is not None:
            break
        released += block.size
        release_segment(allocator, block)
    return released >= wanted


def aged(allocator: CachedMemory) -> None:
    """garbage_collection_threshold: release free large segments older than the average, until below the threshold."""
    assert allocator.allowed is not None  # only then is anything collected
    threshold = int(allocator.settings.garbage_collection_threshold * allocator.allowed)
    target = allocator.reserved - threshold
    if target <= 0:
        return
    now = allocator.searches[False]
    free = [
        block
        for (small, _), pool in allocator.pools.items()
        if not small
        for block in pool.free_blocks()
        if not block.is_split and block.segment is None
    ]
    ages = {id(block): now - block.age for block in free}
    total, released = sum(ages.values()), 0
    while free and released < target:
        average = total / len(free)
        old = [block for block in free if ages[id(block)] >= average]
        if not old:
            return
        for block in old:
            released += block.size
            total -= ages[id(block)]
            release_segment(allocator, block)
        free = [block for block in free if ages[id(block)] < average]


def release_segment(allocator: CachedMemory, block: Block) -> None:
    """Release a segment that is a single free block."""
    block.pool.remove(block)
    del allocator.heads[block.address]
    allocator.reserved -= block.size
    allocator.segments -= 1
    allocator.driver_frees += 1
    if allocator.trace is not None:
        allocator.trace.append(("segment_free", block.address, block.size, block.pool.stream, None))
