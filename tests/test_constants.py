"""Constants that were fitted are what their scripts print from the rows in validation/."""

import runpy
from pathlib import Path
from statistics import median

import pytest

from tonnage.estimate import _overhead
from tonnage.runtimes import serving_runtime
from tonnage.units import GIB
from tonnage.validation import read

HERE = Path(__file__).parents[1]


def test_the_allocators_reserve_is_the_median_of_its_runs():
    shares = runpy.run_path(str(HERE / "scripts" / "allocator_reserve.py"))["shares"]()
    assert len(shares) >= 19 and pytest.approx(median(shares), abs=0.0005) == _overhead.RESERVE


def test_the_fixed_amounts_of_vllm_are_the_medians_of_its_runs():
    rows = read([str(HERE / "validation" / "vllm_memory_h100.yaml")])
    engine = serving_runtime("vllm")

    def middle(metric, alone):
        chosen = [row for row in rows if (row.config["tp"] * row.config["pp"] == 1) == alone]
        return median(float(each.value) for row in chosen for each in row.also if each.metric == metric)

    expected = (
        middle("non-torch", True),
        middle("non-torch", False),
        middle("CUDA graphs", True),
        middle("CUDA graphs", False),
    )
    used = (engine.process, engine.process + engine.communicators, *engine.graphs)
    assert [size / GIB for size in used] == pytest.approx(expected, abs=0.006)
