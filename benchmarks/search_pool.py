"""How long it takes to place models, replicas and jobs on a pool of 40 accelerators of three types, to a proven gap of
0.

python benchmarks/search_pool.py
"""

import time
from pathlib import Path
from typing import Any

import tonnage

POOL = Path(__file__).parents[1] / "docs" / "examples" / "pool.yaml"
CASES: dict[str, dict[str, Any]] = {
    "pipeline of llama-3.1-405b, served": {"model": "llama-3.1-405b", "concurrency": 64, "context": 8192},
    "pipeline of deepseek-v3, served": {"model": "deepseek-v3", "concurrency": 64, "context": 8192},
    "pipeline of llama-3.1-70b, trained": {
        "model": "llama-3.1-70b",
        "kind": "train",
        "runtime": "megatron",
        "recompute": "full",
    },
    "replicas of llama-3.1-8b": {"model": "llama-3.1-8b", "request_rate": 40.0, "ttft": "500ms", "tpot": "30ms"},
    "four jobs": {},
    "four jobs, a node leaves": {"leave": ("a100-1",)},
}


def pool_rows(cases: int = len(CASES)) -> list[dict[str, Any]]:
    """Seconds of the first `cases` placements in this process, the models read already, and the gap that is proven."""
    rows = []
    for name, asked in list(CASES.items())[:cases]:
        tonnage.place(POOL, **asked)
        start = time.perf_counter()
        found = tonnage.place(POOL, **asked).document
        rows.append(
            {"name": f"place on 40 accelerators of 3 types: {name}", "value": time.perf_counter() - start, "unit": "s"}
        )
        rows.append({"name": f"gap of that: {name}", "value": found.search.gap, "unit": ""})
    return rows


if __name__ == "__main__":
    for row in pool_rows():
        print(f"{row['value']:10.3f} {row['unit']:2} {row['name']}")
