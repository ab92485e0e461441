"""PyTorch's caching allocator, rule by rule: each answer is derived by hand from c10/cuda/CUDACachingAllocator.cpp."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonnage.kernel.errors import InvalidInput, TonnageError, UnknownName
from tonnage.kernel.units import GIB, KIB, MIB
from tonnage.trace.allocator import Allocator, OutOfMemory, format_size, out_of_memory_message, parse_settings, snapshot


def made(text="", capacity=None, total=None, record=False):
    return Allocator(parse_settings(text), capacity, total, record)


def held(allocator):
    return allocator.allocated, allocator.reserved


@pytest.mark.parametrize(
    ("asked", "block", "segment"),
    [
        (1, 512, 2 * MIB),
        (512, 512, 2 * MIB),
        (513, 1024, 2 * MIB),
        (MIB, MIB, 2 * MIB),  # the largest small request
        (MIB + 1, MIB + 512, 20 * MIB),  # from 1 to 10 MiB a segment is 20 MiB
        (10 * MIB - 512, 10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB, 10 * MIB),  # from 10 MiB on it is the request, rounded to 2 MiB
        (11 * MIB + 1, 12 * MIB, 12 * MIB),  # less than 1 MiB is left, so it is not split off
        (33 * MIB, 34 * MIB, 34 * MIB),
    ],
)
def test_a_request_is_rounded_and_its_segment_is_of_its_pool(asked, block, segment):
    allocator = made()
    allocator.allocate(asked)
    assert held(allocator) == (block, segment)


def test_nothing_is_allocated_for_no_bytes():
    allocator = made()
    assert allocator.allocate(0) is None and held(allocator) == (0, 0)
    allocator.free(None)


def test_small_requests_share_a_segment_of_2_mib_and_large_ones_one_of_20():
    allocator = made()
    for _ in range(4):
        allocator.allocate(512 * KIB)
    assert allocator.reserved == 2 * MIB
    allocator.allocate(512)
    assert allocator.reserved == 4 * MIB
    for _ in range(5):
        allocator.allocate(4 * MIB)
    assert allocator.reserved == 24 * MIB
    allocator.allocate(4 * MIB)
    assert allocator.reserved == 44 * MIB


def test_the_smallest_block_that_is_large_enough_is_taken_and_the_lower_one_of_two():
    allocator = made()
    blocks = [allocator.allocate(size * MIB) for size in (64, 32, 48, 32)]
    addresses = [block.address for block in blocks]
    for block in blocks:
        allocator.free(block)
    assert allocator.allocate(30 * MIB).address == addresses[1]
    assert allocator.allocate(31 * MIB).address == addresses[3]
    assert allocator.allocate(40 * MIB).address == addresses[2]
    assert allocator.reserved == 176 * MIB


def test_a_large_block_is_split_only_if_more_than_1_mib_is_left():
    allocator = made()
    allocator.free(allocator.allocate(32 * MIB))
    assert allocator.allocate(31 * MIB).size == 32 * MIB
    allocator = made()
    allocator.free(allocator.allocate(32 * MIB))
    assert allocator.allocate(31 * MIB - 512).size == 31 * MIB - 512
    assert allocator.reserved == 32 * MIB


def test_free_neighbours_become_one_block_again():
    allocator = made()
    blocks = [allocator.allocate(5 * MIB) for _ in range(4)]
    for index in (0, 2, 1, 3):
        allocator.free(blocks[index])
    assert allocator.allocate(20 * MIB).address == blocks[0].address
    assert allocator.reserved == 20 * MIB


def test_streams_do_not_share_their_blocks():
    allocator = made()
    allocator.free(allocator.allocate(32 * MIB, stream=0))
    allocator.allocate(32 * MIB, stream=7)
    assert allocator.reserved == 64 * MIB
    allocator.allocate(32 * MIB, stream=0)
    assert allocator.reserved == 64 * MIB


def test_small_and_large_pools_do_not_share_either():
    allocator = made()
    allocator.free(allocator.allocate(20 * MIB))
    allocator.allocate(MIB)
    assert allocator.reserved == 22 * MIB


def test_out_of_memory_gives_cached_segments_back_and_tries_again():
    allocator = made(capacity=100 * MIB)
    allocator.free(allocator.allocate(60 * MIB))
    block = allocator.allocate(80 * MIB)
    assert block.size == 80 * MIB and held(allocator) == (80 * MIB, 80 * MIB) and allocator.retries == 1


def test_a_segment_that_is_partly_in_use_cannot_be_given_back():
    allocator = made(capacity=100 * MIB)
    first, _ = allocator.allocate(30 * MIB), allocator.allocate(30 * MIB)
    allocator.free(first)
    allocator.allocate(10 * MIB)  # takes a part of the 30 that were freed
    with pytest.raises(OutOfMemory) as failed:
        allocator.allocate(50 * MIB)
    assert failed.value.tried == 50 * MIB and allocator.reserved == 60 * MIB


def test_empty_cache_gives_back_whole_segments_only():
    allocator = made()
    kept, freed, whole = allocator.allocate(5 * MIB), allocator.allocate(5 * MIB), allocator.allocate(40 * MIB)
    allocator.free(freed)
    allocator.free(whole)
    allocator.empty_cache()
    assert allocator.reserved == 20 * MIB
    allocator.free(kept)
    allocator.empty_cache()
    assert allocator.reserved == 0 and allocator.segments == 0


def test_blocks_beyond_max_split_size_are_not_split_nor_given_to_small_requests():
    allocator = made("max_split_size_mb:64")
    allocator.free(allocator.allocate(100 * MIB))
    allocator.allocate(30 * MIB)  # may not take the oversize block
    assert allocator.reserved == 130 * MIB
    assert allocator.allocate(90 * MIB).size == 100 * MIB  # within 20 MiB: taken whole
    assert allocator.reserved == 130 * MIB
    allocator.free(allocator.allocate(200 * MIB))
    assert allocator.allocate(170 * MIB).size == 170 * MIB  # 200 is 30 MiB too many
    assert allocator.reserved == 500 * MIB


def test_with_max_split_size_an_oversize_block_is_given_back_before_all_the_rest():
    allocator = made("max_split_size_mb:64", capacity=300 * MIB)
    small = allocator.allocate(30 * MIB)
    allocator.free(small)
    allocator.free(allocator.allocate(240 * MIB))
    allocator.allocate(200 * MIB)  # 240 is too large for it, and is given back; the 30 stay
    assert allocator.reserved == 230 * MIB and allocator.retries == 0


@pytest.mark.parametrize(
    ("asked", "block"),
    # between 1024 and 2048 there are four steps: 1280, 1536, 1792
    [
        (1200 * MIB, 1280 * MIB),
        (1280 * MIB, 1280 * MIB),
        (1281 * MIB, 1536 * MIB),
        (1024 * MIB, 1024 * MIB),
        (2000 * MIB, 2048 * MIB),
    ],
)
def test_roundup_power2_divisions_rounds_to_the_next_step_between_powers_of_two(asked, block):
    allocator = made("roundup_power2_divisions:4")
    assert allocator.allocate(asked).size == block


@pytest.mark.parametrize(
    ("mebibytes", "divisions"), [(1, 8), (100, 8), (130, 2), (300, 4), (600, 2), (1100, 4), (2100, 1), (70000, 1)]
)
def test_a_list_of_divisions_holds_by_size(mebibytes, divisions):
    # 64:8 also holds for all below 128 MiB; what follows ">" holds from 2 GiB on
    settings_read = parse_settings("roundup_power2_divisions:[64:8,128:2,256:4,512:2,1024:4,>:1]")
    assert settings_read.roundup_power2_divisions[min(mebibytes.bit_length() - 1, 15)] == divisions


def test_garbage_is_collected_above_the_threshold_oldest_first():
    # allowed 500 MiB, threshold 300 MiB
    allocator = made("garbage_collection_threshold:0.6,per_process_memory_fraction:0.5", total=1000 * MIB)
    blocks = [allocator.allocate(size * MIB) for size in (100, 110, 120)]
    for block in blocks:
        allocator.free(block)
    allocator.free(allocator.allocate(110 * MIB))
    allocator.free(allocator.allocate(110 * MIB))  # the one of 110 is the youngest
    allocator.allocate(150 * MIB)  # 330 held and 300 allowed: the two older than the average go
    assert allocator.reserved == 110 * MIB + 150 * MIB


def test_a_memory_fraction_is_a_limit():
    allocator = made("per_process_memory_fraction:0.5", capacity=GIB, total=GIB)
    with pytest.raises(OutOfMemory):
        allocator.allocate(513 * MIB)
    assert allocator.allocate(512 * MIB).size == 512 * MIB


def test_expandable_segments_map_only_what_is_needed():
    allocator = made("expandable_segments:True", total=GIB)
    first = allocator.allocate(33 * MIB)
    assert held(allocator) == (33 * MIB, 40 * MIB)  # two pages of 20 MiB
    second = allocator.allocate(40 * MIB)
    assert held(allocator) == (73 * MIB, 80 * MIB)  # it begins in the 7 MiB that were left
    assert second.address == first.address + 33 * MIB
    allocator.free(first)
    allocator.free(second)
    assert allocator.allocate(80 * MIB).address == first.address  # they became one
    assert allocator.reserved == 80 * MIB


def test_expandable_small_blocks_have_pages_of_2_mib():
    allocator = made("expandable_segments:True")
    allocator.allocate(512)
    assert held(allocator) == (512, 2 * MIB)


def test_expandable_pages_in_the_middle_can_be_given_back():
    allocator = made("expandable_segments:True", capacity=200 * MIB, total=200 * MIB)
    low, middle, high = allocator.allocate(60 * MIB), allocator.allocate(60 * MIB), allocator.allocate(60 * MIB)
    allocator.free(middle)
    allocator.empty_cache()
    assert allocator.reserved == 120 * MIB and not low.next.mapped and low.next.next is high
    allocator.free(low)
    allocator.free(high)
    allocator.empty_cache()
    assert allocator.reserved == 0 and allocator.heads == {}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("max_split_size_mb:20", "max_split_size_mb"),
        ("max_split_size_mb:x", "max_split_size_mb"),
        ("expandable_segments:yes", "expandable_segments"),
        ("garbage_collection_threshold:1.5", "garbage_collection_threshold"),
        ("garbage_collection_threshold:nan", "garbage_collection_threshold"),
        ("roundup_power2_divisions:3", "roundup_power2_divisions"),
        ("roundup_power2_divisions:[100:4]", "power of two"),
        ("backend:cudaMallocAsync", "backend"),
        ("max_split_size_mb", "option:value"),
        (":::", "option:value"),
        ("large_segment_size_mb:1", "large_segment_size_mb"),
    ],
)
def test_what_pytorch_refuses_is_refused_by_name(text, named):
    with pytest.raises(InvalidInput, match=named):
        parse_settings(text)


def test_an_option_that_pytorch_does_not_have_is_answered_with_the_nearest():
    with pytest.raises(UnknownName, match="expandable_segments"):
        parse_settings("expandable_segment:True")


@given(st.text(max_size=60))
def test_any_text_is_settings_or_a_clean_error(text):
    try:
        parse_settings(text)
    except TonnageError as error:
        assert str(error)


def test_sizes_are_written_as_pytorch_writes_them():
    assert [format_size(size) for size in (512, 1536, 20 * MIB, 79 * GIB)] == [
        "512 bytes",
        "1.50 KiB",
        "20.00 MiB",
        "79.00 GiB",
    ]


def test_the_message_is_that_of_the_version():
    facts = {
        "tried": 20 * MIB,
        "total": 79 * GIB,
        "free": 5 * MIB,
        "in_use": 78 * GIB,
        "allocated": 70 * GIB,
        "reserved": 77 * GIB,
    }
    assert (
        "(GPU 0; 79.00 GiB total capacity; 70.00 GiB already allocated; 5.00 MiB free; 77.00 GiB reserved in "
        "total by PyTorch)"
    ) in (out_of_memory_message(**facts, torch=(1, 13)))
    newest = out_of_memory_message(**facts, torch=(2, 13))
    assert newest.startswith(
        "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.00 GiB of which "
        "5.00 MiB is free. "
    )
    assert "70.00 GiB is allocated by PyTorch, and 7.00 GiB is reserved by PyTorch but unallocated." in newest
    assert "PYTORCH_ALLOC_CONF" in newest and "PYTORCH_CUDA_ALLOC_CONF" in out_of_memory_message(**facts, torch=(2, 5))


CONFIGS = (
    "",
    "expandable_segments:True",
    "max_split_size_mb:64",
    "roundup_power2_divisions:8",
    "large_segment_size_mb:64",
    "garbage_collection_threshold:0.6,per_process_memory_fraction:0.5",
    "expandable_segments:True,max_split_size_mb:128",
)
STEPS = st.lists(
    st.tuples(st.integers(1, 200 * MIB) | st.integers(1, 4096), st.integers(0, 2), st.integers(0, 40)), max_size=80
)


def check(allocator):
    """Conservation, no overlap, complete coalescing."""
    reserved = allocated = free = 0
    for address, head in allocator.heads.items():
        assert head.address == address and head.previous is None
        block = head
        while block is not None:
            following = block.next
            if following is not None:
                assert following.previous is block and following.address == block.address + block.size
                both_free = not block.allocated and not following.allocated and block.mapped == following.mapped
                assert not both_free, "neighbours that are free were not joined"
            reserved += block.size if block.mapped else 0
            allocated += block.size if block.allocated else 0
            free += block.size if block.mapped and not block.allocated else 0
            block = following
    assert (reserved, allocated) == (allocator.reserved, allocator.allocated)
    assert allocated + free == reserved >= allocated
    pooled = sum(block.size for pool in allocator.pools.values() for block in pool.free_blocks())
    assert pooled == free
    assert all(pool.keys == sorted(pool.keys) for pool in allocator.pools.values())


@given(st.sampled_from(CONFIGS), STEPS)
def test_memory_is_conserved_and_never_handed_out_twice(text, steps):
    allocator = made(text, capacity=GIB, total=2 * GIB)
    live = []
    for size, stream, action in steps:
        if live and action % 3 == 0:
            allocator.free(live.pop(action % len(live)))
        else:
            try:
                live.append(allocator.allocate(size, stream))
            except OutOfMemory:
                allocator.empty_cache()
        check(allocator)
    for block in live:
        allocator.free(block)
    allocator.empty_cache()
    check(allocator)
    assert held(allocator) == (0, 0)


@given(STEPS)
def test_a_snapshot_tells_what_the_allocator_holds(steps):
    allocator = made(record=True)
    for size, stream, _ in steps:
        allocator.allocate(size, stream)
    told = snapshot(allocator)
    assert sum(segment["total_size"] for segment in told["segments"]) == allocator.reserved
    assert sum(segment["allocated_size"] for segment in told["segments"]) == allocator.allocated
    assert sum(entry["action"] == "alloc" for entry in told["device_traces"][0]) == len(steps)
