"""Memory profiles of TensorFlow's profiler and buffer assignments of XLA."""

import pytest

from tonnage.kernel.errors import InvalidInput
from tonnage.trace.foreign import NOT_TOLD, read
from tracing.foreign.files import as_json


def moment(size: int, region: str, op: str = "conv", heap: int = 0) -> dict:
    activity = {
        "memoryActivity": "ALLOCATION",
        "allocationBytes": str(size),
        "requestedBytes": str(size - 1),
        "regionType": region,
        "tfOpName": op,
        "address": "18446744073709551615",
    }
    return {
        "timeOffsetPs": "5",
        "activityMetadata": activity,
        "aggregationStats": {"heapAllocatedBytes": str(heap), "stackReservedBytes": "0"},
    }


def profile(**more) -> dict:
    summary = {
        "peakBytesUsageLifetime": "5000",
        "memoryCapacity": "16000",
        "peakStats": {
            "stackReservedBytes": "100",
            "heapAllocatedBytes": "3900",
            "freeMemoryBytes": "12000",
            "fragmentation": 0.25,
            "peakBytesInUse": "4000",
        },
    }
    gpu = {
        "profileSummary": summary,
        "memoryProfileSnapshots": [moment(1000, "persist"), moment(300, "temp", heap=700)],
        "activeAllocations": [
            {"snapshotIndex": "0", "specialIndex": "-1", "numOccurrences": "3"},
            {"snapshotIndex": "1", "numOccurrences": "1"},
            {"snapshotIndex": "-1", "specialIndex": "0", "numOccurrences": "1"},
        ],
        "specialAllocations": [
            {"memoryActivity": "RESERVATION", "allocationBytes": "100", "regionType": "stack", "tfOpName": "stack"}
        ],
    }
    return {
        "memoryProfilePerAllocator": {
            "GPU_0_bfc": gpu | more,
            "gpu_host_bfc": {"profileSummary": {"peakStats": {"peakBytesInUse": "90000"}}},
        }
    }


def made(tmp_path, data, device=None):
    return read(as_json(tmp_path / "profile.json", data), device)


def test_a_profile_tells_its_peak_by_region(tmp_path):
    found = made(tmp_path, profile())
    assert (found.device, found.allocated_peak, found.reserved_peak, found.allocated_end) == (
        "GPU_0_bfc",
        4000,
        None,
        700,
    )
    assert found.by_category == {"persist": 3000, "temp": 300, "stack": 100, NOT_TOLD: 600}
    assert len(found.events.allocations) == 5
    assert found.told == ()


def test_what_was_outside_of_the_profile_and_fragmentation_are_said(tmp_path):
    notes = made(tmp_path, profile()).notes
    assert any("held more: 5,000 bytes" in note for note in notes)
    assert any("fragmentation at the peak: 25.0%" in note for note in notes)
    assert any("may hold 16,000 bytes" in note for note in notes)


def test_the_accelerators_allocator_is_read_and_all_are_listed(tmp_path):
    found = made(tmp_path, profile())
    assert [(each.name, each.bytes) for each in found.devices] == [("GPU_0_bfc", 4000), ("gpu_host_bfc", 90000)]
    assert made(tmp_path, profile(), 1).allocated_peak == 90000
    with pytest.raises(InvalidInput, match="nothing of allocator 7"):
        made(tmp_path, profile(), 7)


def test_a_list_with_one_profile_is_read(tmp_path):
    assert made(tmp_path, [profile()]).allocated_peak == 4000


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"memoryProfilePerAllocator": {}}, "is empty"),
        ({"memoryProfilePerAllocator": 3}, "is no memory profile of TensorFlow: Expected `object`"),
        (
            profile(profileSummary={"peakStats": {"peakBytesInUse": "many"}}),
            "is no memory profile of TensorFlow: Expected `int`",
        ),
        (profile(profileSummary={"peakStats": {"peakBytesInUse": "-5"}}), "impossible number"),
        (
            profile(activeAllocations=[{"snapshotIndex": 0, "numOccurrences": 10**12}]),
            "more than 1,000,000 allocations",
        ),
    ],
)
def test_what_is_no_profile_is_refused(tmp_path, data, reason):
    with pytest.raises(InvalidInput, match=reason):
        made(tmp_path, data)


# the lines that buffer_assignment.cc writes
ASSIGNMENT = """BufferAssignment:
allocation 0: size 32768, parameter 0, shape |f32[256,32]| at ShapeIndex {}:
 value: <3 parameter @0> (size=32768,offset=0): f32[256,32]{1,0}
allocation 1: size 128, output shape is |f32[32]|, maybe-live-out:
 value: <5 reduce @0> (size=128,offset=0): f32[32]{0}
allocation 2: size 4, constant:
 value: <4 init_value @0> (size=4,offset=0): f32[]
allocation 3: size 4, thread-local:
 value: <0 x.1 @0> (size=4,offset=0): f32[]
allocation 4: size 1000, preallocated-temp:
 value: <6 fusion @0> (size=600,offset=0): f32[150]{0}
 value: <7 fusion.1 @0> (size=1000,offset=0): f32[250]{0}
allocation 5: size 64, color 5, parameter 1, shape |f32[16]| at ShapeIndex {0}, maybe-live-out:
 value: <8 parameter.1 @0> (size=64,offset=0): f32[16]{0}

Total bytes used: 33968 (33.2KiB)

Used values:
<0 x.1 @0>
 positions:
"""
REPORT = """Total bytes used: 786452 (768.0KiB)

Allocations sorted by size:

cumulative_size; total_size - cumulative_size; allocation
------------------------------------------------------------------------------
  512.0KiB( 67%);   256.0KiB; allocation 6: size 512.0KiB, preallocated-temp:
  768.0KiB(100%);        20B; allocation 0: size 256.0KiB, parameter 0, shape |f32[256,256]| at ShapeIndex {}:
  768.0KiB(100%);        16B; allocation 1: size 4B, output shape is |f32[]|, maybe-live-out:


Allocations sorted by size with their values:
allocation 6: size 512.0KiB, preallocated-temp:
\tcumulative_size;       size;       offset; used_by_n_values; shapes_list
"""


def text(tmp_path, content):
    path = tmp_path / "module_0005.jit_step.gpu_after_optimizations-buffer-assignment.txt"
    path.write_text(content)
    return read(path)


def test_a_buffer_assignment_tells_what_a_program_takes(tmp_path):
    found = text(tmp_path, ASSIGNMENT)
    assert found.allocated_peak == 33968 - 64
    assert found.by_category == {"argument": 32768, "output": 128, "constant": 4, "thread-local": 4, "temp": 1000}
    assert [each.bytes for each in found.events.allocations] == [32768, 128, 4, 4, 1000]
    assert any("64 B lie in the host's memory" in note for note in found.notes)


def test_a_donated_argument_is_counted_once(tmp_path):
    line = (
        "allocation 0: size 8, parameter 0, shape |f32[2]| at ShapeIndex {}, output shape is |f32[2]|, "
        "maybe-live-out:\n"
    )
    assert text(tmp_path, f"BufferAssignment:\n{line}\nTotal bytes used: 8 (8B)\n").by_category == {"argument": 8}


def test_a_report_tells_its_total_exactly_and_its_parts_nearly(tmp_path):
    found = text(tmp_path, REPORT)
    assert found.allocated_peak == 786452
    assert found.by_category == {"temp": 512 * 1024, "argument": 256 * 1024, "output": 4}
    assert any("the total is exact" in note for note in found.notes)


# as jaxlib 0.10 writes it; its buffer assignment of the same program has 2162688, 1048652, 327680 and 16 bytes
NEW_REPORT = """Memory Space: default (color=0)
Total bytes: 3539036 (3.38MiB)
  cumulative_size;       size;       offset; used_by_n_values; shapes_list
  ------------------------------------------------------------
   256.0KiB( 67%);   256.0KiB;            0;                3; f32[256,256], 2×f32[64,256]
"""


def test_a_newer_report_tells_its_total_alone(tmp_path):
    found = text(tmp_path, NEW_REPORT + "Memory Space: host (color=5)\nTotal bytes: 77 (77B)\n")
    assert (found.allocated_peak, found.by_category, found.events) == (3539036, {NOT_TOLD: 3539036}, None)
    assert any("77 B lie in the host's memory" in note for note in found.notes)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("BufferAssignment:\n", "lists no allocations"),
        (
            ASSIGNMENT.replace("allocation 4: size 1000", "allocation 4: size 1001"),
            "sum to 33,969 bytes, and it says 33,968",
        ),
        ("BufferAssignment:\nallocation 0: size 999999999999999999, constant:\n", "lists no allocations"),
    ],
)
def test_what_is_no_whole_assignment_is_refused(tmp_path, content, reason):
    with pytest.raises(InvalidInput, match=reason):
        text(tmp_path, content)
