"""Results of benchmarks, and what watches GPUs."""

import csv
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tonnage.interchange.logs import READERS, Figure, LogReader, figure, largest, number

NUMBER = r"(\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?)"
# `vllm bench serve`: key of its result -> quantity and unit.
RESULT = {
    "mean_ttft_ms": ("ttft", "ms"),
    "mean_tpot_ms": ("tpot", "ms"),
    "mean_e2el_ms": ("end_to_end", "ms"),
    "output_throughput": ("output_tokens_per_second", "tokens/s"),
    "request_throughput": ("requests_per_second", "requests/s"),
}
PRINTED = {
    "Mean TTFT (ms)": ("ttft", "ms"),
    "Mean TPOT (ms)": ("tpot", "ms"),
    "Mean E2EL (ms)": ("end_to_end", "ms"),
    "Mean E2E Latency (ms)": ("end_to_end", "ms"),
    "Output token throughput (tok/s)": ("output_tokens_per_second", "tokens/s"),
    "Request throughput (req/s)": ("requests_per_second", "requests/s"),
}
# genai-perf and AIPerf: record -> quantity and, without a unit of its own, the unit.
PERF = {
    "time_to_first_token": ("ttft", "ms"),
    "inter_token_latency": ("tpot", "ms"),
    "request_latency": ("end_to_end", "ms"),
    "output_token_throughput": ("output_tokens_per_second", "tokens/s"),
    "request_throughput": ("requests_per_second", "requests/s"),
}
UNITS = {"ms": "ms", "s": "s", "sec": "s", "us": "us", "tokens/sec": "tokens/s", "requests/sec": "requests/s"}


def _objects(text: str) -> list[Mapping[str, Any]]:
    """The objects that a text is: one, a list of them, or one on each line."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        parsed = []
        for line in text.splitlines():
            if line.strip().startswith("{"):
                try:
                    parsed.append(json.loads(line))
                except (ValueError, RecursionError):
                    continue
    rows = parsed if isinstance(parsed, list) else [parsed]
    return [row for row in rows if isinstance(row, Mapping)]


def _real(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15
    return float(value) if is_number else None


def bench_serve(text: str) -> Iterator[Figure]:
    """The result of `vllm bench serve` and `sglang.bench_serving`, as it is saved or printed."""
    for row in _objects(text):
        if "mean_ttft_ms" not in row:
            continue
        for key, (quantity, unit) in RESULT.items():
            if (value := _real(row.get(key))) is not None:
                yield from figure(quantity, (value, 1), unit, key)
    if "Serving Benchmark Result" in text:
        for title, (quantity, unit) in PRINTED.items():
            found = re.findall(rf"{re.escape(title)}:\s+{NUMBER}", text)
            yield from figure(quantity, (number(found[0]), 1) if found else None, unit, title)


def perf(text: str) -> Iterator[Figure]:
    """What genai-perf and AIPerf export as JSON: {"time_to_first_token": {"unit": "ms", "avg": ...}}."""
    for row in _objects(text):
        records = row.get("records") if isinstance(row.get("records"), Mapping) else row
        for key, (quantity, unit) in PERF.items():
            record = records.get(key) if isinstance(records, Mapping) else None
            value = _real(record.get("avg")) if isinstance(record, Mapping) else None
            if value is not None and isinstance(record, Mapping):
                yield from figure(quantity, (value, 1), UNITS.get(str(record.get("unit")), unit), key)


def llama_bench(text: str) -> Iterator[Figure]:
    """The tests of llama-bench: ppN reads a prompt of N tokens, tgN writes N; as JSON, or as its table."""
    for row in _objects(text):
        speed, prompt, written = (_real(row.get(key)) for key in ("avg_ts", "n_prompt", "n_gen"))
        if speed is not None and prompt is not None and written is not None:
            yield from _test(int(prompt), int(written), speed)
    for kind, size, speed in re.findall(r"\|\s*(pp|tg)(\d+)\s*\|\s*([\d.]+)\s*±", text):
        yield from _test(int(size) * (kind == "pp"), int(size) * (kind == "tg"), float(speed))


def _test(prompt: int, written: int, speed: float) -> Iterator[Figure]:
    if bool(prompt) == bool(written) or not speed > 0:
        return  # of both together nothing is predicted
    quantity = "prefill_tokens_per_second" if prompt else "decode_tokens_per_second"
    tokens = {"input_tokens": prompt} if prompt else {"output_tokens": written}
    yield Figure(
        quantity=quantity,
        value=speed,
        unit="tokens/s",
        metric=f"pp{prompt}" if prompt else f"tg{written}",
        inputs={"concurrency": 1, **tokens},
    )


def nvidia_smi(text: str) -> Iterator[Figure]:
    """`nvidia-smi --query-gpu=memory.used --format=csv`, in MiB, at any times and of any GPUs: the largest."""
    lines = text.splitlines()
    at = next((at for at, line in enumerate(lines) if "memory.used" in line), None)
    if at is None:
        return
    header = [name.strip() for name in next(csv.reader([lines[at]]))]
    place = next((place for place, name in enumerate(header) if name.startswith("memory.used")), None)
    if place is None:
        return
    values = []
    for row in csv.reader(lines[at + 1 :]):
        match = re.fullmatch(r"\s*(\d+)(?:\s*MiB)?\s*", row[place]) if len(row) > place else None
        values += [float(match[1])] if match else []
    yield from figure("process_memory", largest(values), "MiB", "memory.used")


def dcgm(text: str) -> Iterator[Figure]:
    """The exporter of DCGM: DCGM_FI_DEV_FB_USED, in MiB."""
    values = [number(value) for value in re.findall(rf"(?m)^DCGM_FI_DEV_FB_USED(?:\{{[^}}]*\}})?\s+{NUMBER}", text)]
    yield from figure("process_memory", largest(values), "MiB", "DCGM_FI_DEV_FB_USED")


for reader in (
    LogReader(
        name="bench-serve",
        tool="vllm bench serve",
        verbs=("serve",),
        source="vllm/benchmarks/serve.py; sglang/bench_serving.py",
        read=bench_serve,
    ),
    LogReader(
        name="genai-perf", tool="AIPerf", verbs=("serve",), source="aiperf and genai-perf, profile_export", read=perf
    ),
    LogReader(
        name="llama-bench",
        tool="llama-bench",
        verbs=("serve",),
        source="llama.cpp, tools/llama-bench/llama-bench.cpp",
        read=llama_bench,
    ),
    LogReader(
        name="nvidia-smi",
        tool="nvidia-smi",
        verbs=("train", "serve"),
        source="nvidia-smi --help-query-gpu",
        read=nvidia_smi,
    ),
    LogReader(
        name="dcgm", tool="DCGM", verbs=("train", "serve"), source="dcgm-exporter, etc/default-counters.csv", read=dcgm
    ),
):
    READERS.add(reader.name, reader)
