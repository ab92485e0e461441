"""The correction that follows from own runs: shrunk, honest about its width, and none where it is no help."""

from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import to_builtins

from tonnage.estimate.site.cases import Case, Compared
from tonnage.estimate.site.corrections import FEWEST, WORTH, Chosen, Corrections, Fitted, Level, Prior, priors

PRIOR = Prior(
    quantities=("step_time",),
    noise=0.05,
    lengths=(2.0, 2.0),
    levels=(
        Level(alike=(), sizes="", deviation=0.05),
        Level(alike=("accelerator", "runtime"), sizes="", deviation=0.15),
        Level(alike=("runtime", "model"), sizes="near", deviation=0.05),
    ),
    scales=(1.0,),
    together=((1.0,),),
    widening=1.0,
)


def case(size: float = 3.0, *, accelerator: str = "H100", model: str = "llama") -> Case:
    return Case(accelerator=accelerator, runtime="fsdp2", release="", model=model, precision="bf16", sizes=(size, 33.0))


def runs(errors: list[float], **fields: str) -> list[Compared]:
    return [
        Compared(quantity="step_time", error=error, case=case(float(size), **fields))
        for size, error in enumerate(errors)
    ]


SLOWER = [log(1.2) + wobble for wobble in (0.01, -0.02, 0.0, 0.02, -0.01, 0.01, 0.0, -0.01)]


def test_runs_that_all_took_a_fifth_longer_make_the_next_estimate_longer_by_nearly_as_much():
    correction = Corrections(runs(SLOWER), [PRIOR]).correction("step_time", case())
    assert correction is not None
    assert 1.15 < correction.factor < 1.21
    assert correction.low < 1 < correction.high
    assert (correction.runs, correction.alike) == (8, 8)


def test_another_accelerator_is_corrected_less_and_with_a_wider_band():
    known = Corrections(runs(SLOWER), [PRIOR])
    own, other = (
        known.correction("step_time", case()),
        known.correction("step_time", case(accelerator="A100", model="other")),
    )
    assert own is not None
    assert other is not None
    assert 1 < other.factor < own.factor
    assert other.high > own.high
    assert other.alike == 0


def test_fewer_runs_than_six_correct_nothing():
    assert Corrections(runs(SLOWER[: FEWEST - 1]), [PRIOR]).correction("step_time", case()) is None


def test_runs_that_lie_on_both_sides_of_the_estimates_correct_nothing():
    even = [0.1, -0.1, 0.12, -0.11, 0.09, -0.1, 0.11, -0.12, 0.1, -0.09]
    assert Corrections(runs(even), [PRIOR]).correction("step_time", case()) is None


def test_one_run_that_went_wrong_moves_the_others_little():
    with_one = Corrections(runs([*SLOWER, log(20.0)]), [PRIOR]).correction("step_time", case())
    assert with_one is not None
    assert with_one.factor < 1.6


def test_a_quantity_that_no_run_says_is_not_corrected():
    assert Corrections(runs(SLOWER), [PRIOR]).correction("ttft", case()) is None


def test_an_array_of_plans_has_the_corrections_of_each():
    known = Corrections(runs(SLOWER), [PRIOR])
    sizes = np.array([0.0, 1.5, 4.0, 9.0])
    together = known.correction("step_time", case(sizes))  # type: ignore[arg-type]
    alone = [known.correction("step_time", case(float(size))) for size in sizes]
    assert together is not None
    for name in ("factor", "low", "high"):
        assert getattr(together, name) == pytest.approx([getattr(one, name) for one in alone], rel=1e-12)


@given(st.lists(st.floats(-1.5, 1.5), min_size=FEWEST, max_size=14), st.floats(-3, 12))
def test_a_correction_lies_between_nothing_and_the_furthest_run_and_its_band_around_it(errors, size):
    correction = Corrections(runs(errors), [PRIOR]).correction("step_time", case(size))
    if correction is None:
        return
    assert exp(min(0.0, *errors)) * 0.8 <= correction.factor <= exp(max(0.0, *errors)) * 1.25
    assert 0 < correction.low <= 1 <= correction.high < float("inf")


@given(st.lists(st.floats(-1.0, 1.0), min_size=FEWEST, max_size=12))
def test_a_correction_is_used_only_where_runs_left_out_come_nearer(errors):
    fitted = Fitted(PRIOR, runs(errors))
    before, after = np.median(np.abs(fitted._errors)), np.median(np.abs(fitted._left_out))
    assert not fitted.helps["step_time"] or after <= WORTH * before
    (checked,) = fitted.checked()
    assert (checked.runs, checked.used) == (len(errors), fitted.helps["step_time"])


def test_corrections_of_the_same_runs_are_equal_and_of_others_are_not():
    one, same, other = (Corrections(runs(errors), [PRIOR]) for errors in (SLOWER, SLOWER, SLOWER[1:]))
    assert one == same
    assert hash(one) == hash(same)
    assert one != other


def test_the_priors_that_ship_cover_every_quantity_and_fit_the_sizes_of_its_cases():
    quantities = [quantity for prior in priors() for quantity in prior.quantities]
    assert sorted(quantities) == ["request_time", "step_time", "tpot", "training_memory", "ttft"]
    for prior in priors():
        count = len(prior.quantities)
        assert len(prior.lengths) == (8 if "ttft" in prior.quantities else 11)
        assert np.array(prior.together).shape == (count, count)
        assert np.linalg.eigvalsh(np.array(prior.together)).min() > -1e-6
        assert prior.widening >= 1


def test_factors_that_were_kept_give_the_same_correction_and_those_of_other_runs_are_not_taken():
    fresh = Corrections(runs(SLOWER), [PRIOR])
    (kept,) = fresh.chosen
    again = Corrections(runs(SLOWER), [PRIOR], [kept])
    other = Corrections(runs(SLOWER[::-1]), [PRIOR], [Chosen(**{**to_builtins(kept), "width": 0.001})])
    assert again.correction("step_time", case()).factor == fresh.correction("step_time", case()).factor
    assert other.chosen[0].width != 0.001


def test_a_run_left_out_in_closed_form_is_the_one_that_a_fit_without_it_has():
    every = runs(SLOWER)
    fitted = Fitted(PRIOR, every)
    factors = fitted.chosen
    for number, one in enumerate(every):
        others = every[:number] + every[number + 1 :]
        kept = Chosen(**{**to_builtins(factors), "digest": Fitted(PRIOR, others).chosen.digest})
        without = Fitted(PRIOR, others, kept)
        without._centre = fitted._centre  # sizes are counted from the middle of the runs
        factor = without.correction("step_time", one.case).factor
        assert one.error - log(factor) == pytest.approx(fitted._left_out[number], abs=1e-6)
