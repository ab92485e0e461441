"""expandable_segments: one long range of addresses for each pool, to which memory is mapped page by page."""

from tonnage.kernel.units import MIB
from tonnage.trace.allocator._cached import CachedMemory
from tonnage.trace.allocator.blocks import Block, Pool, Segment

SMALL_PAGE = 2 * MIB


def best_fit(pool: Pool, place: int) -> int:
    """The place of the large enough block that can grow least: its size counts with the range that may be mapped
    behind it.
    """
    keys, blocks = pool.keys, pool.blocks
    block = blocks[keys[place]]
    while block.segment is not None and place + 1 < len(keys):
        following = blocks[keys[place + 1]]
        if _reach(following) >= _reach(block):
            break
        place, block = place + 1, following
    return place


def _reach(block: Block) -> int:
    behind = block.next
    return block.size + (behind.size if behind is not None and not behind.mapped else 0)


def allocate(allocator: CachedMemory, pool: Pool, size: int) -> Block | None:
    """A free block of at least `size`, mapped where it was not; None if the driver has no memory."""
    block = _stretch(allocator, pool, size)
    if not block.mapped and not _map(allocator, block, min(block.size, size)):
        return None
    while block.size < size:
        behind = block.next
        assert behind is not None  # _stretch found enough behind it
        if not _map(allocator, behind, min(size - block.size, behind.size)):
            return None
        block = behind
    pool.remove(block)
    return block


def _stretch(allocator: CachedMemory, pool: Pool, size: int) -> Block:
    """The lowest range with room for `size`, which may begin with free mapped memory; a new one if there is none."""
    for block in pool.unmapped:
        before = block.previous
        first = before if before is not None and not before.allocated else block
        if _room(first, size) >= size:
            return first
    page = SMALL_PAGE if pool.small else allocator.settings.large_segment_size
    # an eighth more than the accelerator has, so that pages can be moved to the end
    length = -(-(allocator.total + allocator.total // 8) // page) * page
    segment = Segment(allocator.next_address, length, page)
    allocator.next_address += length
    block = Block(length, segment.base, pool, segment)
    block.mapped = False
    allocator.heads[block.address] = block
    pool.insert_unmapped(block)
    return block


def _room(block: Block | None, wanted: int) -> int:
    room = 0
    while room < wanted and block is not None and not block.allocated:
        room += block.size
        block = block.next
    return room


def _map(allocator: CachedMemory, block: Block, size: int) -> bool:
    """Map the pages that hold the first `size` bytes of an unmapped block."""
    segment, pool = block.segment, block.pool
    assert segment is not None  # only such blocks are unmapped
    mapped = -(-size // segment.page) * segment.page
    if not allocator.has_room(mapped):
        return False
    pool.unmapped.remove(block)
    block.mapped = True
    if mapped < block.size:
        rest = Block(block.size - mapped, block.address + mapped, pool, segment)
        rest.mapped = False
        _join(block, rest, block.next)
        block.size = mapped
        pool.insert_unmapped(rest)
    address = block.address
    allocator.merge(block, block.previous)
    allocator.merge(block, block.next)
    allocator.insert(block)
    allocator.grow(mapped)
    if allocator.trace is not None:
        allocator.trace.append(("segment_map", address, mapped, pool.stream, None))
    return True


def unmap(allocator: CachedMemory, block: Block) -> None:
    """Unmap the whole pages of a free block; a segment without any mapped page is released."""
    segment, pool = block.segment, block.pool
    assert segment is not None  # the caller looked
    low = segment.base + -(-(block.address - segment.base) // segment.page) * segment.page
    high = segment.base + (block.address + block.size - segment.base) // segment.page * segment.page
    if high <= low:
        return
    pool.remove(block)
    before, after = low - block.address, block.address + block.size - high
    if before:
        first = Block(before, block.address, pool, segment)
        _join(block.previous, first, block)
        if first.previous is None:
            allocator.heads[first.address] = first
        allocator.insert(first)
    if after:
        last = Block(after, high, pool, segment)
        _join(block, last, block.next)
        allocator.insert(last)
    block.address, block.size, block.mapped = low, high - low, False
    allocator.merge(block, block.previous)
    allocator.merge(block, block.next)
    allocator.reserved -= high - low
    allocator.driver_frees += 1
    if allocator.trace is not None:
        allocator.trace.append(("segment_unmap", low, high - low, pool.stream, None))
    if block.is_split:
        pool.insert_unmapped(block)
    else:
        del allocator.heads[block.address]


def _join(before: Block | None, block: Block, after: Block | None) -> None:
    block.previous, block.next = before, after
    if before is not None:
        before.next = block
    if after is not None:
        after.previous = block
