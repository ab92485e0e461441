"""Traces and memory timelines of PyTorch's profiler."""

import pytest

from tonnage.kernel.errors import InvalidInput
from tonnage.trace.events import check
from tonnage.trace.foreign import NOT_TOLD, read
from tracing.foreign.files import KIB, as_json

CUDA = {"Device Type": 1, "Device Id": 0}


class Chrome:
    """Events of a trace; memory is in use as `now` says."""

    def __init__(self, now: int = 0):
        self.events: list[dict] = [{"ph": "M", "name": "process_name", "pid": "Spans", "tid": 0, "args": {"name": "x"}}]
        self.now, self.time = now, 1000.0

    def memory(self, address: int, size: int, tid: int = 1, **more) -> "Chrome":
        self.now += size
        self.time += 1
        args = {
            **CUDA,
            "Addr": address,
            "Bytes": size,
            "Total Allocated": self.now,
            "Total Reserved": 2 * KIB * KIB,
            **more,
        }
        self.events.append(
            {"ph": "i", "s": "t", "name": "[memory]", "pid": 7, "tid": tid, "ts": self.time, "args": args}
        )
        return self

    def span(self, name: str, length: float, cat: str = "cpu_op", tid: int = 1) -> "Chrome":
        self.events.insert(
            0, {"ph": "X", "cat": cat, "name": name, "pid": 7, "tid": tid, "ts": self.time + 0.5, "dur": length}
        )
        return self

    def file(self) -> dict:
        return {"schemaVersion": 1, "traceEvents": self.events}


def made(tmp_path, data, packed: bool = False, device: int | None = None):
    found = read(as_json(tmp_path / "trace.json", data, packed), device)
    if found.events is not None:
        check(found.events)
    return found


def test_totals_are_the_profilers_own(tmp_path):
    found = made(tmp_path, Chrome(now=KIB).memory(10, 4 * KIB).memory(20, KIB).memory(10, -4 * KIB).file())
    assert (found.allocated_peak, found.reserved_peak, found.allocated_end) == (6 * KIB, 2 * KIB * KIB, 2 * KIB)
    assert sum(found.by_category.values()) == 6 * KIB
    assert any("1 allocations of 1,024 bytes were there before" in note for note in found.notes)


def test_memory_freed_that_was_there_before_is_part_of_the_first_total(tmp_path):
    found = made(tmp_path, Chrome(now=3 * KIB).memory(10, KIB).memory(99, -KIB).file())
    assert sorted(each.bytes for each in found.events.allocations) == [KIB, KIB, 2 * KIB]
    assert found.allocated_peak == 4 * KIB == sum(found.by_category.values())


@pytest.mark.parametrize("packed", [False, True])
def test_packed_traces_and_bare_lists_of_events_are_read(tmp_path, packed):
    chrome = Chrome().memory(10, KIB)
    assert made(tmp_path, chrome.file(), packed).allocated_peak == KIB
    assert made(tmp_path, chrome.events[1:], packed).allocated_peak == KIB


def test_spans_tell_who_asked_and_categories(tmp_path):
    chrome = (
        Chrome().span("nn.Module: Llama_0", 10, "python_function").span("nn.Module: Linear_3", 5, "python_function")
    )
    chrome.span("aten::linear", 4).span("aten::mm", 3).memory(10, KIB)
    chrome.time = 2000
    chrome.span("autograd::engine::evaluate_function: MmBackward0", 8, tid=2).span("aten::mm", 3, tid=2).memory(
        20, 2 * KIB, tid=2
    )
    chrome.memory(10, -KIB, tid=2)
    chrome.time = 3000
    chrome.span("Optimizer.step#AdamW.step", 9, "user_annotation").memory(30, 4 * KIB)
    found = made(tmp_path, chrome.file())
    assert [(each.operation, each.module, each.phase, each.category) for each in found.events.allocations] == [
        ("aten.mm", "Llama_0.Linear_3", "forward", "activation"),
        ("aten.mm", "", "backward", "gradient"),
        ("", "", "optimizer step", "optimizer"),
    ]
    assert [stage.name for stage in found.stages] == ["After loss", "After backward", "After optimizer step"]


def test_the_accelerator_is_read_and_all_devices_are_listed(tmp_path):
    chrome = Chrome()
    for _ in range(3):
        chrome.memory(10, KIB, **{"Device Type": 0, "Device Id": -1}).memory(
            10, -KIB, **{"Device Type": 0, "Device Id": -1}
        )
    chrome.memory(10, 5 * KIB).memory(10, 7 * KIB, **{"Device Id": 1})
    found = made(tmp_path, chrome.file())
    assert (found.device, [each.name for each in found.devices]) == ("cuda:0", ["cpu", "cuda:0", "cuda:1"])
    assert made(tmp_path, chrome.file(), device=1).device == "cuda:1"
    with pytest.raises(InvalidInput, match=r"nothing of device 5. It knows cpu, cuda:0, cuda:1"):
        made(tmp_path, chrome.file(), device=5)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"traceEvents": []}, r"profile_memory=True"),
        ({"traceEvents": [{"name": "aten::mm", "ph": "X"}]}, r"profile_memory=True"),
        ({"traceEvents": 3}, "is no trace of PyTorch's profiler"),
        ({"traceEvents": [{"name": "[memory]", "args": {"Bytes": "x"}}]}, "is no trace of PyTorch's profiler"),
        ({"traceEvents": [{"name": "[memory]", "args": {"Bytes": 2**62}}]}, "impossible number of bytes"),
    ],
)
def test_what_is_no_trace_of_memory_is_refused(tmp_path, data, reason):
    with pytest.raises(InvalidInput, match=reason):
        made(tmp_path, data)


ROWS = [[0, 100, 0, 0, 0, 0, 0, 0, 0], [0, 100, 40, 5, 6, 30, 20, 3, 2], [0, 100, 40, 0, 0, 0, 20, 0, 0]]
PEAK = {"parameter": 100, "optimizer": 40, "buffer": 5, "temporary": 9, "activation": 30, "gradient": 20, NOT_TOLD: 2}


def test_a_timeline_tells_its_peak_by_category(tmp_path):
    found = made(tmp_path, [[1, 2, 3], ROWS])
    assert (found.allocated_peak, found.allocated_end, found.by_category) == (206, 160, PEAK)
    assert found.events is None


def test_raw_actions_tell_the_same(tmp_path):
    create = [[1, 2, size, column - 1] for column, size in enumerate(ROWS[1]) if size]
    destroy = [[2, 4, -size, column - 1] for column, size in enumerate(ROWS[1]) if size and column not in (1, 2, 6)]
    found = made(tmp_path, [[-1, 1, 100, 0], *create[1:], *destroy], packed=True)
    assert (found.allocated_peak, found.allocated_end, found.by_category) == (206, 160, PEAK)


def test_a_new_version_takes_the_old_ones_place(tmp_path):
    found = made(tmp_path, [[1, 2, 10, 7], [2, 3, -10, 7], [2, 3, 10, 5]])
    assert (found.allocated_peak, found.allocated_end) == (10, 10)
    assert found.told == ("gradient",)


@pytest.mark.parametrize(
    "data",
    [
        [],
        [[1], [[1]]],
        [[1, 2], [[0] * 9, "x"]],
        [[1, 9, 3, 4]],
        [[1, 2, 3, 99]],
        [[1, 2, 3]],
        [1, 2],
        [[1], [[-5] * 9]],
    ],
)
def test_what_is_no_timeline_is_refused(tmp_path, data):
    with pytest.raises(InvalidInput, match=r"trace\.json"):
        made(tmp_path, data)
