"""Bands of step times: which rows are near, and how rows of one source and of many make them."""

import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonnage.catalogue import cluster
from tonnage.estimate.hardware.rates import rates
from tonnage.estimate.inputs import Question
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.step_time.time import Timing
from tonnage.models import read

SCRIPTS = Path(__file__).parents[3] / "scripts"


sys.path.insert(0, str(SCRIPTS))
FIT = runpy.run_path(str(SCRIPTS / "fit_rates.py"))
sys.path.remove(str(SCRIPTS))


def band(machine="8xH100-SXM-80GB", **options):
    made, where = read("llama-3.1-8b", offline=True), cluster(machine)
    return Timing(made, training_plan(made, where, TrainingOptions(**options), Question()), where).band


def rows(*sources, kind="dense"):
    return [SimpleNamespace(source=source, kind=kind) for source in sources]


@pytest.mark.parametrize(
    ("machine", "runtime"),
    [("8xH100-SXM-80GB", "transformers"), ("8xV100-SXM2-32GB", "megatron"), ("8xMI300X", "fsdp2")],
)
def test_where_no_row_is_near_the_band_is_of_generations_left_out(machine, runtime):
    assert band(machine, runtime=runtime) == rates().bands["new generation"]


def test_a_runtime_and_a_generation_with_rows_have_the_band_of_their_kind():
    assert band(runtime="megatron") == rates().bands["dense"] == band(runtime="fsdp2")


def test_a_band_holds_those_that_are_nearer():
    held = rates().bands
    far = held["new generation"]
    assert all(far.low <= held[kind].low < 1 < held[kind].high <= far.high for kind in ("dense", "moe"))


def test_a_hundred_rows_of_one_source_count_as_ten_sources_of_one_row():
    near, far = np.zeros(100), np.full(2, -0.5)  # of two other sources
    low, high = FIT["_ends"](np.concatenate([near, far]), ["a"] * 100 + ["b", "c"])
    assert low == 0
    assert high > 0.45  # two of twelve parts, where two of 102 rows would lie outside
    assert FIT["_ends"](np.concatenate([near, far]), [str(index) for index in range(102)])[1] < 0.1


def test_a_kind_that_few_sources_measured_has_the_band_of_all_and_its_own():
    found = rows("a", "b", "c", "d", "e") + rows("a", "b", kind="moe")
    errors = np.array([0.1, -0.1, 0.05, 0.0, 0.02, 0.4, -0.3])
    dense, mixtures = (FIT["_around"](found, errors, kind) for kind in ("dense", "moe"))
    assert dense == FIT["_ends"](errors, [row.source for row in found])
    assert mixtures[0] <= dense[0] and mixtures[1] >= dense[1]
    assert mixtures[0] <= FIT["_ends"](errors[-2:], ["a", "b"])[0]


@given(st.lists(st.tuples(st.floats(-1, 1), st.sampled_from("abcdef")), min_size=1, max_size=60))
def test_a_band_holds_the_estimate_and_lies_between_the_rows(found):
    ends = FIT["_ends"]
    errors, sources = np.array([error for error, _ in found]), [source for _, source in found]
    low, high = ends(errors, sources)
    assert min(-errors.max(), 0) <= low <= 0 <= high <= max(-errors.min(), 0)


@given(st.permutations(range(9)))
def test_the_order_of_rows_does_not_matter(order):
    errors, sources = np.linspace(-0.4, 0.4, 9), list("aaabbccde")
    assert FIT["_ends"](errors[list(order)], [sources[index] for index in order]) == pytest.approx(
        FIT["_ends"](errors, sources)
    )
