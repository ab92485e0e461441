"""Step logs of trainers."""

import re
from collections.abc import Iterator, Mapping

from tonnage.interchange.diagnose.readers.training import FACTS
from tonnage.interchange.logs import READERS, Figure, LogReader
from tonnage.interchange.logs.values import (
    NUMBER,
    facts,
    figure,
    in_gib,
    in_mib,
    largest,
    last,
    number,
    numbers,
    settled,
)

_UNITS = {"KB": 2**10, "MB": 2**20, "GB": 2**30, "B": 1}
_PEAKS = {"peak_allocated": "allocated_memory", "peak_reserved": "reserved_memory"}


def _memory(text: str, tool: str) -> Mapping[str, list[float]]:
    """Quantity -> the peaks in bytes that lines of a tool state."""
    found = facts(text, (sign for sign in FACTS if sign.tool == tool))
    return {quantity: found.get(name, []) for name, quantity in _PEAKS.items()}


def megatron(text: str) -> Iterator[Figure]:
    """Lines of an iteration, and the memory report of a rank, in MiB."""
    step = numbers(rf"elapsed time per iteration \(ms\): {NUMBER}", text)
    yield from figure("step_time", settled(step), "ms", "elapsed time per iteration (ms)")
    flops = numbers(rf"throughput per GPU \(TFLOP/s/GPU\): {NUMBER}", text)
    metric = "throughput per GPU (TFLOP/s/GPU)"
    yield from figure("flops_per_second", settled(flops), "TFLOP/s/GPU", metric, counting="megatron")
    for quantity, peaks in _memory(text, "megatron").items():
        word = "allocated" if quantity == "allocated_memory" else "reserved"
        yield from figure(quantity, largest(in_mib(peaks)), "MiB", f"max {word} (MB)")


def torchtitan(text: str) -> Iterator[Figure]:
    """Lines of a step: `step: 10  loss: ...  memory: 47.91GiB(60.46%)  tps: 5,865  tflops: 339.37  mfu: 34.31%`."""
    plain = re.sub(r"\x1b\[[\d;]*m", "", text)
    rows = re.findall(rf"step:\s*\d+\s.*?memory:\s*[\d.]+GiB.*?tps:\s*{NUMBER}(?:.*?mfu:\s*{NUMBER}%)?", plain)
    peaks = _memory(text, "torchtitan")["reserved_memory"]
    yield from figure("reserved_memory", largest(in_gib(peaks)), "GiB", "memory")
    yield from figure("tokens_per_second", settled(number(row[0]) for row in rows), "tokens/s/GPU", "tps")
    shares = settled(number(row[1]) for row in rows if row[1])
    yield from figure("mfu", shares, "%", "mfu", counting="torchtitan")


def trainer(text: str) -> Iterator[Figure]:
    """What the Trainer of transformers prints at the end, as a dictionary or as its table of metrics."""
    steps = numbers(rf"train_steps_per_second['\"]?\s*[:=]\s*['\"]?{NUMBER}", text)
    if steps and steps[-1] > 0:
        yield from figure("step_time", (1 / steps[-1], 1), "s", "train_steps_per_second")
    samples = numbers(rf"train_samples_per_second['\"]?\s*[:=]\s*['\"]?{NUMBER}", text)
    yield from figure("samples_per_second", last(samples[-1:]), "samples/s", "train_samples_per_second")


def deepspeed(text: str) -> Iterator[Figure]:
    """see_memory_usage, in GiB called GB, and the throughput timer."""
    peaks = _memory(text, "deepspeed")
    allocated = peaks["allocated_memory"]
    yield from figure("allocated_memory", largest(in_gib(allocated)), "GiB", "Max_MA")
    yield from figure("reserved_memory", largest(in_gib(peaks["reserved_memory"])), "GiB", "Max_CA")
    if not allocated:
        peak = numbers(rf"MaxMemAllocated={NUMBER}GB", text)
        yield from figure("allocated_memory", largest(peak), "GiB", "MaxMemAllocated")
    samples = numbers(rf"RunningAvgSamplesPerSec={NUMBER}", text)
    yield from figure("samples_per_second", last(samples), "samples/s", "RunningAvgSamplesPerSec")


def pytorch(text: str) -> Iterator[Figure]:
    """The table of torch.cuda.memory_summary()."""
    for row, quantity in (("Allocated memory", "allocated_memory"), ("GPU reserved memory", "reserved_memory")):
        peaks = re.findall(rf"\|\s*{row}\s*\|\s*[\d.]+ \w+\s*\|\s*([\d.]+) (B|K?i?B|M?i?B|G?i?B)\b", text)
        values = [float(value) * _UNITS[unit.replace("i", "")] for value, unit in peaks]
        yield from figure(quantity, largest(values), "bytes", f"{row}, peak usage")


for reader in (
    LogReader(
        name="megatron",
        tool="Megatron-LM",
        verbs=("train",),
        source="megatron/training/training.py, training_log; megatron/training/utils.py, report_memory",
        read=megatron,
    ),
    LogReader(
        name="torchtitan",
        tool="torchtitan",
        verbs=("train",),
        source="torchtitan/components/metrics.py, MetricsProcessor.log: tps and memory are of one device",
        read=torchtitan,
    ),
    LogReader(
        name="trainer",
        tool="transformers Trainer",
        verbs=("train",),
        source="transformers/trainer_utils.py, speed_metrics",
        read=trainer,
    ),
    LogReader(
        name="deepspeed",
        tool="DeepSpeed",
        verbs=("train",),
        source="deepspeed/runtime/utils.py, see_memory_usage; deepspeed/utils/timer.py, ThroughputTimer",
        read=deepspeed,
    ),
    LogReader(
        name="pytorch",
        tool="PyTorch",
        verbs=("train",),
        source="torch/cuda/memory.py, memory_summary",
        read=pytorch,
    ),
):
    READERS.add(reader.name, reader)
