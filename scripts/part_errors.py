"""Write src/tonnage/estimate/bands/part_errors.toml: how far single parts of the memory lie from what was measured, of
each runtime or engine whose rows measure them by themselves and say everything. A part with fewer rows has no figure.

PYTHONPATH=src python scripts/part_errors.py
"""

from collections.abc import Iterable
from math import ceil
from pathlib import Path
from statistics import median

from tonnage.validation import Row, read
from tonnage.validation.serving import ServingRow, part_pairs

ROOT = Path(__file__).parents[1]
CORPUS = ROOT / "validation" / "infer_memory.yaml"
OUT = ROOT / "src" / "tonnage" / "estimate" / "bands" / "part_errors.toml"
FEWEST = 8  # measurements
# The quantity of a row -> the part of a breakdown that it measures.
PART_OF = {"weights": "weights", "kv_cache": "kv cache", "activations": "activations", "cuda_graphs": "CUDA graphs"}
HEAD = "# Written by scripts/part_errors.py from validation/infer_memory.yaml: do not edit.\n"


def errors(path: Path = CORPUS) -> dict[tuple[str, str], list[float]]:
    """Engine and part -> how far each measurement lies from its estimate, as a share of the measurement."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in full(read([str(path)])):
        for quantity, (measured, predicted) in part_pairs(row).items():
            if quantity in PART_OF and measured > 0:
                engine = ServingRow(row).engine
                found.setdefault((engine, PART_OF[quantity]), []).append(abs(predicted / measured - 1))
    return found


def full(rows: Iterable[Row]) -> Iterable[Row]:
    return (row for row in rows if not row.skipped and row.completeness_class == "full" and row.kind == "infer_memory")


def text(path: Path = CORPUS) -> str:
    """The file."""
    parts = [HEAD]
    for (engine, part), shares in sorted(errors(path).items()):
        if len(shares) < FEWEST:
            continue
        nine_in_ten = sorted(shares)[ceil(0.9 * len(shares)) - 1]
        parts.append(
            f'\n[[errors]]\nverb = "serve"\nruntime = "{engine}"\npart = "{part}"\n'
            f"median = {median(shares):.6f}\np90 = {nine_in_ten:.6f}\nrows = {len(shares)}\n"
        )
    return "".join(parts)


if __name__ == "__main__":
    OUT.write_text(text(), encoding="utf-8")
