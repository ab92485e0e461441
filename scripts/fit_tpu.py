"""Fit what 16-bit products of TPUs reach of their peak, from MaxText's published MFU (validation/recent/maxtext.yaml).

One share a generation, of three quarters of its rows: those that are left out are not read. The shares stand in FIXED
of scripts/fit_rates.py and in estimate/hardware/rates.toml.

python scripts/fit_tpu.py
"""

from statistics import median

import yaml

from _rows_for_fits import RECENT
from tonnage.documents.document import builtins
from tonnage.estimate.hardware.rates import Generation, rates
from tonnage.validation import read, validate

GENERATIONS = {"TPU v5e": "v5e", "TPU v5p": "v5p"}
SHARES = [0.60 + 0.01 * step for step in range(41)]


def main() -> None:
    path = RECENT / "maxtext.yaml"
    rows = yaml.safe_load(path.read_text(encoding="utf-8"))
    seen = {row["id"] for row in rows if not row["left_out"]}
    known = rates().generations
    for generation, word in GENERATIONS.items():
        errors, shipped = {}, known[generation]
        for share in SHARES:
            known[generation] = Generation(matrix={"bf16": share}, attention=ATTENTION, of_kernels=True)  # type: ignore[index]
            found = builtins(validate(read([str(path)])))["rows"]
            errors[share] = [
                (row["relative_error"], row["id"] in seen) for row in found if word in row["id"] and row["main"]
            ]
        known[generation] = shipped  # type: ignore[index]
        best = min(SHARES, key=lambda share: abs(median(error for error, used in errors[share] if used)))
        for used in (True, False):
            of = [error for error, was_used in errors[best] if was_used == used]
            print(generation, f"{best:.2f}", "seen" if used else "left out", len(of), f"{median(map(abs, of)):.3f}")


ATTENTION = 0.45  # as the mean of the generations that were measured; a few percent of these steps

if __name__ == "__main__":
    main()
