"""Constants that were fitted are what their scripts print from the rows in validation/."""

import runpy
from pathlib import Path
from statistics import median

import pytest

from tonnage.estimate.step import communication
from tonnage.kernel.units import GIB
from tonnage.runtimes import serving_runtime

HERE = Path(__file__).parents[2]


def test_the_allocators_reserve_is_the_median_of_its_runs():
    shares = runpy.run_path(str(HERE / "scripts" / "allocator_reserve.py"))["shares"]()
    assert len(shares) >= 19 and pytest.approx(median(shares), abs=0.0005) == communication.RESERVE


def test_the_fixed_amounts_of_vllm_are_what_its_runs_give():
    script = runpy.run_path(str(HERE / "scripts" / "vllm_overheads.py"))
    engine, outside = serving_runtime("vllm"), script["outside_torch"]()
    two = engine.process + engine.communicators
    used = {1: engine.process, 2: two, 4: two + 2 * engine.each_peer}
    assert {ranks: size / GIB for ranks, size in used.items()} == pytest.approx(
        {ranks: median(values) for ranks, values in outside.items()}, abs=0.006
    )
    fitted = script["fitted"](script["graphs"]())
    assert engine.graphs[0] == engine.graphs[1]
    assert [size / GIB for size in (engine.graphs[0], *engine.graph_layers)] == pytest.approx(fitted, abs=0.005)
