"""Results of benchmarks, and what watches GPUs."""

import csv
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tonnage.interchange.logs import READERS, Figure, LogReader
from tonnage.interchange.logs.values import NUMBER, figure, first, largest, number, numbers

# `vllm bench serve`, once benchmark_serving.py, and sglang.bench_serving: key of the result -> quantity and unit.
RESULT = {
    "mean_ttft_ms": ("ttft", "ms"),
    "mean_tpot_ms": ("tpot", "ms"),
    "mean_e2el_ms": ("end_to_end", "ms"),
    "mean_e2e_latency_ms": ("end_to_end", "ms"),  # sglang.bench_serving
    "output_throughput": ("output_tokens_per_second", "tokens/s"),
    "input_throughput": ("input_tokens_per_second", "tokens/s"),  # sglang.bench_serving
    "request_throughput": ("requests_per_second", "requests/s"),
}
PRINTED = {
    "Mean TTFT (ms)": ("ttft", "ms"),
    "Mean TPOT (ms)": ("tpot", "ms"),
    "Mean E2EL (ms)": ("end_to_end", "ms"),
    "Mean E2E Latency (ms)": ("end_to_end", "ms"),
    "Output token throughput (tok/s)": ("output_tokens_per_second", "tokens/s"),
    "Input token throughput (tok/s)": ("input_tokens_per_second", "tokens/s"),
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
NANOSECONDS = "ns"  # in which genai-perf wrote times until 24.08
# A title of the CSV files of genai-perf and AIPerf, such as `Time To First Token (ms)`.
TITLE = re.compile(r"(.+?) \(([\w/]+)\)")
TESTS = ("n_prompt", "n_gen", "avg_ts")  # columns that llama-bench has had since it writes files


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
    """What genai-perf and AIPerf export: as JSON {"time_to_first_token": {"unit": "ms", "avg": ...}}, inside of
    "records" in the first releases of AIPerf, or as CSV with a row for each.
    """
    for row in _objects(text):
        records = row.get("records") if isinstance(row.get("records"), Mapping) else row
        for key in PERF:
            record = records.get(key) if isinstance(records, Mapping) else None
            if isinstance(record, Mapping) and (value := _real(record.get("avg"))) is not None:
                yield from _of_perf(key, value, str(record.get("unit")))
    header: list[str] = []
    for cells in _table(text, "Metric"):
        if cells[:1] == ["Metric"]:
            header = [cell.lower() for cell in cells]
            continue
        titled = TITLE.fullmatch(cells[0]) if cells else None
        key = titled[1].lower().replace(" ", "_") if titled else ""
        place = next((at for at, name in enumerate(header) if name in ("avg", "value")), None)
        if titled is None or key not in PERF or place is None or place >= len(cells):
            continue
        if re.fullmatch(NUMBER, cells[place]):
            yield from _of_perf(key, number(cells[place]), titled[2])


def _of_perf(key: str, value: float, unit: str) -> list[Figure]:
    quantity, usual = PERF[key]
    if unit == NANOSECONDS:
        value, unit = value / 1000, "us"
    return figure(quantity, (value, 1), UNITS.get(unit, usual), key)


def _table(text: str, name: str) -> Iterator[list[str]]:
    """The cells of a table of CSV, from the line on that has this name; of several tables in a text, all lines."""
    lines = text.splitlines()
    at = next((at for at, line in enumerate(lines) if name in line and "," in line), None)
    if at is None:
        return
    try:
        for row in csv.reader(lines[at:], skipinitialspace=True):
            yield [cell.strip() for cell in row]
    except csv.Error:  # a cell that is longer than any number
        return


def llama_bench(text: str) -> Iterator[Figure]:
    """The tests of llama-bench: ppN reads a prompt of N tokens, tgN writes N, `@ dD` with D tokens before; as JSON,
    CSV, or its table. Its columns grow with releases: they are found by name. `n_depth` is of builds since May 2025.
    """
    for row in [*_objects(text), *_rows_of_tests(text)]:
        speed, prompt, written = (_real(row.get(key)) for key in ("avg_ts", "n_prompt", "n_gen"))
        depth = _real(row.get("n_depth", 0))
        if speed is not None and prompt is not None and written is not None and depth is not None:
            yield from _test(int(prompt), int(written), int(depth), speed)
    for kind, size, depth, speed in re.findall(
        r"\|\s*(pp|tg) ?(\d+)(?:\s*@\s*d(\d+))?\s*\|\s*([\d.]+)\s*(?:±|\+/-)", text
    ):
        yield from _test(int(size) * (kind == "pp"), int(size) * (kind == "tg"), int(depth or 0), float(speed))


def _rows_of_tests(text: str) -> Iterator[Mapping[str, float]]:
    """The rows of llama-bench's CSV: the columns that a test is known by."""
    header: list[str] = []
    for cells in _table(text, "n_prompt"):
        if set(TESTS) <= set(cells):
            header = cells
        elif header and len(cells) == len(header):
            row = dict(zip(header, cells, strict=True))
            yield {name: number(row[name]) for name in (*TESTS, "n_depth") if re.fullmatch(NUMBER, row.get(name, ""))}


def _test(prompt: int, written: int, depth: int, speed: float) -> Iterator[Figure]:
    if bool(prompt) == bool(written) or not speed > 0:
        return  # of both together nothing is predicted
    tokens = {"input_tokens": prompt} if prompt else {"output_tokens": written}
    if depth and prompt:
        tokens = {"input_tokens": depth + prompt, "cached_tokens": depth}
    elif depth:
        tokens = {"input_tokens": depth, "output_tokens": written}
    yield Figure(
        quantity="prefill_tokens_per_second" if prompt else "decode_tokens_per_second",
        value=speed,
        unit="tokens/s",
        metric=(f"pp{prompt}" if prompt else f"tg{written}") + (f" @ d{depth}" if depth else ""),
        inputs={"concurrency": 1, **tokens},
    )


def nvidia_smi(text: str) -> Iterator[Figure]:
    """Of nvidia-smi, in MiB, at any times and of any GPUs the largest: `--query-compute-apps=used_memory` and the
    table of processes say what a process holds, `--query-gpu=memory.used` and the table of GPUs what the GPU does.
    """
    for found, metric in (
        (_column(text, ("used_gpu_memory", "used_memory")), "used_gpu_memory"),
        (numbers(rf"(?m)^\|[^|\n]*?\s[CG+]{{1,3}}\s[^|\n]*?\s{NUMBER}MiB \|", text), "GPU Memory Usage"),
        (_column(text, ("memory.used",)), "memory.used"),
        (numbers(rf"\|\s+{NUMBER}MiB / +\d+MiB \|", text), "Memory-Usage"),
    ):
        if found:
            yield from figure("process_memory", largest(found), "MiB", metric)
            return


def _column(text: str, names: tuple[str, ...]) -> list[float]:
    """The values of a column of `--format=csv`, with units or without; a text may hold several tables."""
    values: list[float] = []
    place = None
    for cells in _table(text, names[0]):
        named = [at for at, cell in enumerate(cells) if cell.split(" [")[0] in names]
        if named or (place is not None and any(cell.endswith("]") for cell in cells)):
            place = named[0] if named else None
            continue
        match = re.fullmatch(r"(\d+)(?: MiB)?", cells[place]) if place is not None and len(cells) > place else None
        values += [float(match[1])] if match else []
    return values


def dcgm(text: str) -> Iterator[Figure]:
    """The exporter of DCGM, in MiB: DCGM_FI_DEV_FB_USED, which releases before 2.0 call dcgm_fb_used."""
    for name in ("DCGM_FI_DEV_FB_USED", "dcgm_fb_used"):
        values = numbers(rf"(?m)^\s*{name}(?:\{{[^}}\n]*\}})?\s+{NUMBER}", text) if name in text else []
        yield from figure("process_memory", largest(values), "MiB", name)


def litgpt(text: str) -> Iterator[Figure]:
    """The last line of LitGPT's scripts: torch.cuda.max_memory_allocated(), in GB of 10^9 bytes."""
    used = numbers(rf"(?m)^Memory used: {NUMBER} GB\s*$", text)
    yield from figure("allocated_memory", first(used), "GB", "Memory used")


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
        name="litgpt",
        tool="LitGPT",
        verbs=("train", "serve"),
        source="litgpt/generate/base.py, litgpt/finetune/full.py: max_memory_allocated() / 1e9",
        read=litgpt,
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
