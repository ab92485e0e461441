"""How much more PyTorch's allocator reserves than it allocates, in validation/allocator_reserve.yaml, with the spread.

python scripts/allocator_reserve.py
"""

from pathlib import Path
from statistics import median

from _rows_for_fits import rows_for_fits

ROWS = Path(__file__).parents[1] / "validation" / "allocator_reserve.yaml"


def shares() -> list[float]:
    """Reserved over allocated, less one, of each run."""
    return [float(row.measured.value) / float(row.also[0].value) - 1 for row in rows_for_fits([ROWS])]


def main() -> None:
    found = shares()
    errors = [abs(share - median(found[:i] + found[i + 1 :])) / (1 + share) for i, share in enumerate(found)]
    print(
        f"reserved beyond allocated: median {median(found):.1%} of {len(found)} runs, {min(found):.1%} to "
        f"{max(found):.1%}; "
        f"mean error of the reserved peak with each run left out {sum(errors) / len(errors):.1%}"
    )


if __name__ == "__main__":
    main()
