"""Step logs of trainers."""

import re
from collections.abc import Iterator

from tonnage.interchange.logs import READERS, Figure, LogReader, figure, largest, number, settled

NUMBER = r"(\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?)"
_UNITS = {"KB": 2**10, "MB": 2**20, "GB": 2**30, "B": 1}


def _all(pattern: str, text: str) -> list[float]:
    return [number(match) for match in re.findall(pattern, text)]


def megatron(text: str) -> Iterator[Figure]:
    """Lines of an iteration, and the memory report of a rank, in MiB."""
    step = _all(rf"elapsed time per iteration \(ms\): {NUMBER}", text)
    yield from figure("step_time", settled(step), "ms", "elapsed time per iteration (ms)")
    flops = _all(rf"throughput per GPU \(TFLOP/s/GPU\): {NUMBER}", text)
    metric = "throughput per GPU (TFLOP/s/GPU)"
    yield from figure("flops_per_second", settled(flops), "TFLOP/s/GPU", metric, counting="megatron")
    for word, quantity in (("allocated", "allocated_memory"), ("reserved", "reserved_memory")):
        values = _all(rf"max {word}: {NUMBER}", text) if "memory (MB)" in text else []
        yield from figure(quantity, largest(values), "MiB", f"max {word} (MB)")


def torchtitan(text: str) -> Iterator[Figure]:
    """Lines of a step: `step: 10  loss: ...  memory: 47.91GiB(60.46%)  tps: 5,865  tflops: 339.37  mfu: 34.31%`."""
    plain = re.sub(r"\x1b\[[\d;]*m", "", text)
    rows = re.findall(rf"step:\s*\d+\s.*?memory:\s*{NUMBER}GiB.*?tps:\s*{NUMBER}(?:.*?mfu:\s*{NUMBER}%)?", plain)
    yield from figure("reserved_memory", largest(number(row[0]) for row in rows), "GiB", "memory")
    yield from figure("tokens_per_second", settled(number(row[1]) for row in rows), "tokens/s/GPU", "tps")
    shares = settled(number(row[2]) for row in rows if row[2])
    yield from figure("mfu", shares, "%", "mfu", counting="torchtitan")


def trainer(text: str) -> Iterator[Figure]:
    """What the Trainer of transformers prints at the end, as a dictionary or as its table of metrics."""
    steps = _all(rf"train_steps_per_second['\"]?\s*[:=]\s*['\"]?{NUMBER}", text)
    if steps and steps[-1] > 0:
        yield from figure("step_time", (1 / steps[-1], 1), "s", "train_steps_per_second")
    samples = _all(rf"train_samples_per_second['\"]?\s*[:=]\s*['\"]?{NUMBER}", text)
    last = (samples[-1], 1) if samples else None
    yield from figure("samples_per_second", last, "samples/s", "train_samples_per_second")


def deepspeed(text: str) -> Iterator[Figure]:
    """see_memory_usage, in GiB called GB, and the throughput timer."""
    allocated = _all(rf"Max_MA {NUMBER} GB", text)
    yield from figure("allocated_memory", largest(allocated), "GiB", "Max_MA")
    yield from figure("reserved_memory", largest(_all(rf"Max_CA {NUMBER} GB", text)), "GiB", "Max_CA")
    if not allocated:
        peak = _all(rf"MaxMemAllocated={NUMBER}GB", text)
        yield from figure("allocated_memory", largest(peak), "GiB", "MaxMemAllocated")
    samples = _all(rf"RunningAvgSamplesPerSec={NUMBER}", text)
    last = (samples[-1], len(samples)) if samples else None
    yield from figure("samples_per_second", last, "samples/s", "RunningAvgSamplesPerSec")


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
