"""What sweeps cost: one process, two, and Ray with two, over the same chunks. Writes results_sweep.json: a list of
{name, value, unit}.

    make bench-sweep PLANS=1e7
    python benchmarks/sweep.py --small --results FILE      a few plans, without Ray, as the tests run it

Each case runs in a process of its own, so that its memory is its own. Time is that of all chunks; what it takes to
start workers (their imports, a Ray) is apart: the time until the first chunk is back, less the chunk's own. Where
others use the machine, workers get less than a core each, and only processor time and shares of time travel.
"""

import argparse
import json
import math
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CASES = {"one process": {"workers": 1}, "two processes": {"workers": 2}, "Ray, two workers": {"workers": 2, "ray": ""}}
CHUNK = 65_536


def fields(plans: float) -> dict[str, Any]:
    """A sweep of at least so many plans, all of which can be: each cluster has twelve blocks, each a chunk."""
    clusters = max(math.ceil(plans / (12 * CHUNK)), 1)
    return {
        "models": ["llama-3.1-8b"],
        "on": [f"{16 * (number + 1)}x8xH100-SXM-80GB" for number in range(clusters)],
        "options": {"runtime": "megatron"},
        "vary": {
            "recompute": ["none", "selective", "full"],
            "pipeline_parallel_size": [1, 2, 4, 8],
            "tensor_parallel_size": [1, 2, 4, 8],
            "context_parallel_size": [1, 2],
            "micro_batch_size": [1, 2, 4, 8],
            "sequence_length": {"from": 4096, "to": 32768, "step": 4096},
            "num_microbatches": {"from": 1, "to": 256},
        },
        "chunk_plans": CHUNK,
    }


def few_fields() -> dict[str, Any]:
    """A sweep of 32 plans in chunks of 8."""
    sizes = {
        "recompute": ["none", "full"],
        "tensor_parallel_size": [1, 2],
        "micro_batch_size": [1, 2, 4, 8],
        "context_parallel_size": [1, 2],
    }
    return {
        "models": ["llama-3.2-1b"],
        "on": ["8xH100-SXM-80GB"],
        "options": {"runtime": "megatron"},
        "vary": sizes,
        "chunk_plans": 8,
    }


def case(name: str, plans: float, directory: Path, *, small: bool) -> dict[str, float]:
    """One sweep, in this process."""
    from tonnage.search.sweep.drive import sweep
    from tonnage.search.sweep.spec import parse

    done = sweep(parse(few_fields() if small else fields(plans)), directory, **CASES[name])
    if done.failed or done.summary.missing:
        raise SystemExit(f"{name}: {done.failed or 'parts are missing'}")
    start = done.first_seconds - done.first_chunk_seconds
    return {
        "plans": done.plans_made,
        "rows": done.summary.rows,
        "bytes": done.summary.size,
        "start": start,
        "seconds": done.seconds - start,
        "inside": done.seconds_in_chunks,
        "processor": done.processor_seconds,
        "summary": done.summary_seconds,
        "worker_rss": done.worker_rss,
        "driver_rss": done.driver_rss,
        "chunks": done.chunks,
    }


def measured(name: str, plans: float, repeats: int, *, small: bool) -> dict[str, float]:
    """The fastest of several runs: what the machine's other work adds is not ours."""
    found = []
    for _ in range(repeats):
        directory = Path(tempfile.mkdtemp())
        try:
            words = [
                sys.executable,
                __file__,
                "--plans",
                str(plans),
                "--case",
                name,
                "--out",
                str(directory / "out"),
                *(["--small"] if small else []),
            ]
            made = subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True)
            found.append(json.loads(made.stdout.splitlines()[-1]))
        finally:
            shutil.rmtree(directory, ignore_errors=True)
    return min(found, key=lambda each: each["seconds"])


def main(plans: float, repeats: int, results_file: Path, *, small: bool) -> None:
    results: list[dict[str, object]] = []

    def note(name: str, value: float, unit: str) -> None:
        results.append({"name": name, "value": value, "unit": unit})
        print(f"{name:<70} {value:14.5g} {unit}", flush=True)

    cases = [name for name, options in CASES.items() if not (small and "ray" in options)]
    runs = {name: measured(name, plans, repeats, small=small) for name in cases}
    tenth = measured("two processes", plans / 10, 1, small=small)
    one, two = runs["one process"], runs["two processes"]
    note("plans of a sweep", one["plans"], "plans")
    note("chunks of a sweep", one["chunks"], "chunks")
    for name, run in runs.items():
        note(f"{name}: plans a second", run["plans"] / run["seconds"], "plans/s")
        note(f"{name}: plans a second of processor time in chunks", run["plans"] / run["processor"], "plans/s")
        note(f"{name}: of a core, what a worker got in chunks", run["processor"] / run["inside"], "share")
        note(f"{name}: start of workers", run["start"], "s")
        note(
            f"{name}: time outside of chunks, of all workers' time",
            1 - run["inside"] / run["seconds"] / CASES[name]["workers"],
            "share",
        )
    note("two processes over one", one["seconds"] / two["seconds"], "ratio")
    ray = runs.get("Ray, two workers")
    if ray:
        note("Ray over two processes, time", ray["seconds"] / two["seconds"] - 1, "share")
    note("summary of a chunk, by the driver", min(run["summary"] for run in runs.values()) / one["chunks"], "s")
    note("Parquet of a plan", one["bytes"] / one["rows"], "bytes")
    for who in ("worker", "driver"):
        note(f"memory of the {who} at a tenth of the plans", tenth[f"{who}_rss"], "bytes")
        note(f"memory of the {who} at all plans", two[f"{who}_rss"], "bytes")
    if ray:
        note("memory of a worker on Ray", ray["worker_rss"], "bytes")
    results_file.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plans", type=float, default=1e6)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--case", choices=CASES)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--small", action="store_true", help="a few plans, without Ray: its values mean nothing")
    parser.add_argument("--results", type=Path, default=HERE / "results_sweep.json", help="the file to write")
    given = parser.parse_args()
    if given.case:
        print(json.dumps(case(given.case, given.plans, given.out, small=given.small)))
    else:
        main(given.plans, 1 if given.small else given.repeats, given.results, small=given.small)
