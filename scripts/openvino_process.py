"""What a process of OpenVINO holds beside tensors on an integrated GPU, which runtimes/openvino.py uses: the median of
its largest resident set less what is counted, over the rows of text-only models that are not left out.

python scripts/openvino_process.py
"""

from statistics import median

from _rows_for_fits import RECENT, rows_for_fits
from tonnage.runtimes import serving_runtime
from tonnage.validation import validate

METRIC = "max RSS"
MIB = 2**20
TOWERS = ("gemma-3-4b",)  # files of models with towers hold those besides


def main() -> None:
    fixed = serving_runtime("openvino").process
    rows = [
        row
        for row in rows_for_fits([RECENT / "openvino.yaml"])
        if row.completeness_class != "indicative" and not any(name in row.id for name in TOWERS)
    ]
    found = sorted(
        1e6 * (line.measured - line.predicted) / MIB + fixed / MIB
        for line in validate(rows).rows
        if line.metric == METRIC
    )
    print(f"{median(found):.0f} MiB, {found[0]:.0f} to {found[-1]:.0f} in {len(found)} runs")


if __name__ == "__main__":
    main()
