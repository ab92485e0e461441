"""Checkpoints and failures: the intervals of Young and Daly, the goodput that is left, and what was published."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonnage.catalogue.failures import failure_rate, failure_rates, rate_of_generation
from tonnage.estimate.host.storage import STORAGE_SHARE
from tonnage.estimate.run.reliability import accelerator_mtbf
from tonnage.formulas import failures as f
from tonnage.kernel.references import cited

MINUTE, HOUR, DAY = 60, 3600, 86400
seconds = st.floats(1e-3, 1e9)


def test_youngs_interval_is_the_root_of_twice_checkpoint_times_mtbf():
    assert f.young_interval(delta=50, MTBF=10_000) == math.sqrt(2 * 50 * 10_000) == 1000


@pytest.mark.parametrize(("hours", "minutes"), [(24, 117), (6, 57), (0.25, 9.1)])
def test_dalys_interval_is_what_the_captions_of_his_figures_say(hours, minutes):
    """Figures 3, 4 and 5: checkpoints of five minutes."""
    assert f.daly_interval(delta=5 * MINUTE, MTBF=hours * HOUR) / MINUTE == pytest.approx(
        minutes, abs=0.5 if minutes > 10 else 0.05
    )


def test_young_and_daly_agree_where_checkpoints_are_short():
    assert f.daly_interval(delta=1, MTBF=1e8) == pytest.approx(f.young_interval(delta=1, MTBF=1e8), rel=1e-3)


def test_dalys_interval_stays_below_the_mtbf_however_long_a_checkpoint_takes():
    for delta in (1.9, 2, 2.1, 1e6):
        assert f.daly_interval(delta=delta, MTBF=1) == pytest.approx(8 / 9, rel=0.01)


@given(delta=st.floats(1, 1e4), ratio=st.floats(3, 1e5), restart=st.floats(0, 1e3))
def test_no_other_interval_is_much_better_than_dalys(delta, ratio, restart):
    mtbf = delta * ratio

    def left(interval):
        return f.goodput(tau_c=interval, delta=delta, MTBF=mtbf, tau_r=restart)

    best = f.daly_interval(delta=delta, MTBF=mtbf)
    assert max(left(best * 1.02**n) for n in range(-150, 150)) <= left(best) * 1.002


@given(interval=seconds, delta=seconds, mtbf=seconds, restart=seconds)
def test_goodput_is_above_0_and_at_most_1(interval, delta, mtbf, restart):
    assert 0 < f.goodput(tau_c=interval, delta=delta, MTBF=mtbf, tau_r=restart) <= 1


@given(mtbf=st.floats(100, 1e8), delta=st.floats(0.1, 100), restart=st.floats(0, 1000))
def test_more_failures_slower_checkpoints_and_slower_restarts_never_help(mtbf, delta, restart):
    asked = {"tau_c": 300, "delta": delta, "MTBF": mtbf, "tau_r": restart}
    now = f.goodput(**asked)
    for worse in ({"MTBF": mtbf / 2}, {"delta": 2 * delta}, {"tau_r": 2 * restart}):
        assert f.goodput(**{**asked, **worse}) <= now * (1 + 1e-12)


def test_without_failures_only_checkpoints_are_lost():
    assert f.goodput(tau_c=900, delta=100, MTBF=1e15, tau_r=600) == pytest.approx(0.9)


def test_the_goodput_is_that_of_a_run_played_through():
    """Failures at random times, also while saving and restarting: the clock of a thousand intervals."""
    chance = random.Random(1974)
    interval, delta, mtbf, restart, clock = 1200, 100, 3600, 300, 0.0
    for _done in range(20_000):
        while (failure := chance.expovariate(1 / mtbf)) < interval + delta:
            clock += failure
            while (failure := chance.expovariate(1 / mtbf)) < restart:
                clock += failure
            clock += restart
        clock += interval + delta
    expected = f.goodput(tau_c=interval, delta=delta, MTBF=mtbf, tau_r=restart)
    assert 20_000 * interval / clock == pytest.approx(expected, rel=0.01)


def test_llama_3_was_interrupted_every_three_hours():
    one = accelerator_mtbf(failure_rate("llama-3"))
    assert one / 16384 / HOUR == pytest.approx(3.09, abs=0.01)
    assert one / (365 * DAY) == pytest.approx(5.8, abs=0.05)


@pytest.mark.parametrize(("accelerators", "hours"), [(16384, 1.8), (131072, 0.23)])
def test_the_rate_of_rsc_1_projects_to_the_mttf_of_its_paper(accelerators, hours):
    assert accelerator_mtbf(failure_rate("rsc-1")) / accelerators / HOUR == pytest.approx(hours, rel=0.03)


def test_published_rates_lie_within_a_factor_of_eight():
    every = [accelerator_mtbf(failure_rate(name)) for name in failure_rates()]
    assert max(every) / min(every) < 8


def test_llama_3_405b_would_be_above_90_percent_as_its_paper_says():
    """16 bytes a parameter, saved at 2 TB/s: 3.2 s."""
    delta = 405e9 * 16 / (STORAGE_SHARE * 16384)
    mtbf = accelerator_mtbf(failure_rate("llama-3")) / 16384
    interval = f.daly_interval(delta=delta, MTBF=mtbf)
    assert 0.9 < f.goodput(tau_c=interval, delta=delta, MTBF=mtbf, tau_r=600 + delta) < 0.95


def test_arrays_of_clusters_are_as_each_of_them():
    mtbf = np.array([1e3, 1e5, 1e7])
    together = f.daly_interval(delta=30.0, MTBF=mtbf)
    assert together.tolist() == pytest.approx(
        [f.daly_interval(delta=30.0, MTBF=each) for each in mtbf.tolist()], rel=1e-15
    )


def test_the_causes_of_llama_3_are_all_its_interruptions():
    rate = failure_rate("llama3")
    assert sum(cause.failures for cause in rate.cause) == rate.failures == 419
    assert rate.share("node") == pytest.approx((268 + 21 + 32) / 419)
    assert rate.share("several nodes") == pytest.approx(0.084, abs=0.001), "switches and cables: 8.4 %"


def test_the_rate_of_an_a100_is_the_one_in_the_middle_of_those_published():
    ampere = [rate for name in failure_rates() if (rate := failure_rate(name)).generation == "Ampere"]
    every = sorted(accelerator_mtbf(rate) for rate in ampere)
    assert every[len(every) // 2] == accelerator_mtbf(rate_of_generation("Ampere"))


def test_a_generation_of_which_nobody_counted_all_failures_has_the_rate_of_the_largest_run():
    assert rate_of_generation("Blackwell").name == rate_of_generation("CDNA3").name == "llama-3"
    assert not failure_rate("b200-504").default, "it has failures of GPUs alone"


def test_every_rate_cites_the_bibliography():
    assert all(cited(failure_rate(name).source) for name in failure_rates())
