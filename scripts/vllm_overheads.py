"""Medians of the fixed amounts of vLLM in validation/vllm_memory_h100.yaml, which runtimes/vllm.py uses, with their spread.

python scripts/vllm_overheads.py
"""

from pathlib import Path
from statistics import median

from tonnage.validation import read

ROWS = Path(__file__).parents[1] / "validation" / "vllm_memory_h100.yaml"
METRICS = ("non-torch", "CUDA graphs")


def main() -> None:
    rows = read([str(ROWS)])
    for alone in (True, False):
        chosen = [row for row in rows if (row.config["tp"] * row.config["pp"] == 1) == alone]
        for metric in METRICS:
            values = [float(measured.value) for row in chosen for measured in row.also if measured.metric == metric]
            errors = [abs(value - median(values[:i] + values[i + 1 :])) for i, value in enumerate(values)]
            who = "one rank" if alone else "each of many ranks"
            print(
                f"{metric:<12} {who:<18} {median(values):.2f} GiB, {min(values):.2f} to {max(values):.2f} in {len(values)} runs; "
                f"mean error with each run left out {sum(errors) / len(errors):.3f} GiB"
            )


if __name__ == "__main__":
    main()
