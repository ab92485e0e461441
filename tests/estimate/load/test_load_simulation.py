"""Continuous batching: exact beside a walk from pass to pass, and what must hold of any queue."""

from itertools import pairwise

import numpy as np
import pytest

from estimate.load.replica import Roofline, walk
from every_row import every_row
from tonnage.estimate.load import Policy, simulate
from tonnage.estimate.load.requests import Requests, lognormal_lengths, requests_of
from tonnage.kernel.errors import InvalidInput, InvalidPlan
from tonnage.spec import Load

AFFINE = Roofline()
SLOW_CACHE = Roofline(key_bytes=1e7, fixed=5e-3)


class Bent:
    """A pass that reads keys and weights at the same time: the longer counts."""

    def seconds(self, prompt_tokens, prompt_keys, requests, keys):
        return np.maximum(6e-3, keys * 2e-7) + 2e-5 * prompt_tokens + 1e-10 * prompt_keys + 1e-5 * requests


def many(prompt, answer, **more):
    count = max(np.size(prompt), np.size(answer), np.size(more.get("arrival", 0)))
    fill = {"arrival": 0.0, "cached": 0} | more
    users = fill.pop("users", None)
    arrays = {"input_tokens": prompt, "output_tokens": answer} | fill
    return Requests(**{name: np.broadcast_to(value, count).copy() for name, value in arrays.items()}, users=users)


def drawn(seed):
    """A small, hard case: a pool that is too small, budgets that cut, blocks of any size, and requests of every
    length.
    """
    generator = np.random.default_rng(seed)
    prompts = generator.integers(1, generator.choice([20, 300, 900]), 40)
    answers = generator.integers(1, generator.choice([3, 60, 300]), 40)
    users = int(generator.integers(1, 30)) if seed % 2 else None
    gaps = np.zeros(40) if users else generator.exponential(generator.choice([0.01, 0.1, 0.5]), 40)
    requests = Requests(
        arrival=np.cumsum(gaps),
        input_tokens=prompts,
        output_tokens=answers,
        cached=np.minimum(prompts - 1, generator.integers(0, 100)),
        users=users,
    )
    block = int(generator.choice([1, 7, 16, 64]))
    policy = Policy(
        mixed=bool(generator.integers(2)),
        chunked_prefill=bool(generator.integers(2)),
        reserves_answer=bool(generator.integers(2)),
        max_num_seqs=int(generator.integers(1, 20)),
        max_num_batched_tokens=int(generator.choice([20, 128, 1000])),
        block_size=block,
        pool_tokens=int((prompts + answers).max() * generator.uniform(1, 4)) + block if generator.integers(4) else None,
    )
    return policy, requests


@every_row("seed", range(60))
def test_it_is_what_a_walk_from_pass_to_pass_finds(seed):
    policy, requests = drawn(seed)
    found = simulate(SLOW_CACHE, policy, requests)
    arrival, started, first, finished, evicted = walk(SLOW_CACHE, policy, requests)
    np.testing.assert_allclose(found.arrival, arrival, rtol=1e-9)
    np.testing.assert_allclose(found.started, started, rtol=1e-9)
    np.testing.assert_allclose(found.first_token, first, rtol=1e-9)
    np.testing.assert_allclose(found.finished, finished, rtol=1e-9)
    assert np.array_equal(found.evicted, evicted)


def test_these_cases_send_requests_back_and_cut_prompts():
    found = [simulate(SLOW_CACHE, *drawn(seed)) for seed in range(60)]
    assert sum(one.preemptions for one in found) > 100
    assert sum(one.passes - one.decoding_passes > 0 for one in found) > 10


@pytest.mark.parametrize("mixed", [True, False])
def test_a_bend_in_the_time_of_a_pass_costs_less_than_1_percent(mixed):
    load = Load(input_tokens=500, output_tokens=400, concurrency=40, spread=0.5)
    requests, policy = requests_of(load, 80), Policy(mixed=mixed, max_num_batched_tokens=1024)
    found = simulate(Bent(), policy, requests)
    _arrival, _started, first, finished, _evicted = walk(Bent(), policy, requests)
    np.testing.assert_allclose(found.finished, finished, rtol=0.01)
    np.testing.assert_allclose(found.first_token, first, rtol=0.01)


@pytest.mark.parametrize("mixed", [True, False])
def test_one_user_waits_for_the_prompt_and_then_for_each_token(mixed):
    requests = requests_of(Load(input_tokens=1000, output_tokens=50, concurrency=1), 4)
    found = simulate(AFFINE, Policy(mixed=mixed), requests)
    prompt = float(AFFINE.seconds(1000, 1000 * 1001 // 2, 0, 0))
    decode = sum(float(AFFINE.seconds(0, 0, 1, 1000 + made)) for made in range(1, 50))
    assert found.ttft.mean == pytest.approx(prompt, rel=1e-12)
    assert found.end_to_end.p99 == pytest.approx(prompt + decode, rel=1e-12)
    assert found.tpot.mean == pytest.approx(decode / 49, rel=1e-12)
    assert found.utilization == pytest.approx(1)
    assert found.mean_running == pytest.approx(1) and found.mean_batch == 1


def test_tokens_of_a_prompt_that_are_cached_are_read_and_not_computed():
    found = simulate(AFFINE, Policy(), many(1000, 1, cached=600))
    assert found.ttft.mean == pytest.approx(float(AFFINE.seconds(400, 400 * 600 + 400 * 401 // 2, 0, 0)))
    assert found.computed_prompt_tokens == 400


@pytest.mark.parametrize("rate", [2, 12, 30])
@pytest.mark.parametrize(
    "policy", [Policy(), Policy(mixed=False), Policy(pool_tokens=20_000)], ids=["mixed", "alone", "small pool"]
)
def test_littles_law_holds(rate, policy):
    found = simulate(
        AFFINE,
        policy,
        requests_of(Load(input_tokens=1000, output_tokens=200, requests_per_second=rate, spread=0.8), 2000),
    )
    served = len(found.arrival) / found.seconds
    inside = (found.finished - found.started).mean()
    if not found.preemptions:  # one that was sent back waits outside
        assert served * inside == pytest.approx(found.mean_running, rel=1e-9)
    assert served * inside >= found.mean_running * (1 - 1e-9)
    assert found.mean_running >= served * (found.finished - found.first_token).mean() * (1 - 1e-9) or found.preemptions


@pytest.mark.parametrize("seed", range(10))
def test_every_token_is_computed_once_and_again_only_after_it_was_sent_back(seed):
    policy, requests = drawn(seed)
    found = simulate(AFFINE, policy, requests)
    prompts = int((requests.input_tokens - requests.cached).sum())
    answers = int((requests.output_tokens - 1).sum())
    if found.preemptions:
        assert found.computed_prompt_tokens > prompts
        assert found.decoded_tokens <= answers
    else:
        assert found.computed_prompt_tokens == prompts
        assert found.decoded_tokens == answers
        assert found.gap_counts.sum() == answers
    assert (found.started >= found.arrival).all()
    assert (found.first_token > found.started).all()
    assert (found.finished >= found.first_token).all()


def test_gaps_between_tokens_add_up_to_the_time_of_the_answers():
    for mixed in (True, False):
        found = simulate(
            AFFINE,
            Policy(mixed=mixed),
            requests_of(Load(input_tokens=800, output_tokens=100, concurrency=8, spread=0.4)),
        )
        times = (found.finished - found.first_token).sum()
        assert (found.gaps * found.gap_counts).sum() == pytest.approx(times, rel=1e-9 if mixed else 0.05)
        assert found.itl.mean == pytest.approx((found.tpot.mean), rel=0.05)
        assert found.itl.p99 > found.itl.p50


def test_the_first_token_comes_later_the_more_requests_arrive():
    waits = [
        simulate(
            AFFINE,
            Policy(max_num_seqs=64),
            requests_of(Load(input_tokens=1000, output_tokens=200, requests_per_second=rate), 3000),
        )
        for rate in (1, 8, 16, 24, 40)
    ]
    assert all(a.ttft.mean < b.ttft.mean for a, b in pairwise(waits))
    assert all(a.mean_batch < b.mean_batch for a, b in pairwise(waits))
    assert waits[-1].queueing.mean > 1 > waits[0].queueing.mean


def test_burstier_arrivals_wait_longer():
    even, poisson, bursty = (
        simulate(
            AFFINE,
            Policy(max_num_seqs=32),
            requests_of(Load(input_tokens=1000, output_tokens=200, requests_per_second=11, burstiness=cv2), 4000),
        )
        for cv2 in (0, 1, 6)
    )
    assert even.ttft.mean < poisson.ttft.mean < bursty.ttft.mean


@pytest.mark.parametrize("reserves_answer", [True, False])
def test_more_memory_never_lowers_goodput(reserves_answer):
    requests = requests_of(Load(input_tokens=1000, output_tokens=400, requests_per_second=12, spread=0.5), 1500)
    pools = (8_000, 16_000, 32_000, 64_000, None)
    good = [
        simulate(AFFINE, Policy(pool_tokens=pool, reserves_answer=reserves_answer), requests).goodput(ttft=2, tpot=0.05)
        for pool in pools
    ]
    assert all(b[0] >= a[0] for a, b in pairwise(good))
    assert good[0][0] < 0.2 and good[-1][0] == 1


def test_goodput_counts_what_keeps_both_limits():
    found = simulate(
        AFFINE, Policy(), requests_of(Load(input_tokens=1000, output_tokens=200, requests_per_second=10), 500)
    )
    ttft, tpot = found.ttft.p90, found.tpot.p50
    share, rate = found.goodput(ttft, tpot)
    kept = ((found.first_token - found.arrival) <= ttft) & ((found.finished - found.first_token) / 199 <= tpot)
    assert share == kept.mean() and 0.3 < share < 0.55
    assert rate == pytest.approx(kept.sum() / found.span)
    assert found.goodput() == (1, pytest.approx(found.requests_per_second))


def test_prompts_that_share_passes_delay_no_token_as_long_as_prompts_that_run_alone():
    requests = requests_of(Load(input_tokens=6000, output_tokens=200, requests_per_second=4), 1000)
    mixed, alone = (
        simulate(AFFINE, Policy(mixed=mixed, max_num_batched_tokens=1024), requests) for mixed in (True, False)
    )
    assert mixed.itl.p99 < alone.itl.p99
    assert mixed.ttft.mean > alone.ttft.mean


def test_a_benchmark_sends_ten_requests_for_each_user_and_begins_with_all_of_them():
    requests = requests_of(Load(input_tokens=1000, output_tokens=100, concurrency=32))
    found = simulate(AFFINE, Policy(), requests)
    assert len(requests) == 320
    assert (found.arrival == 0).sum() == 32
    assert 31 < found.mean_running <= 32
    assert found.after(0.1).ttft.mean < found.ttft.mean  # without the burst


def test_the_same_seed_draws_the_same_requests_and_lengths_keep_their_spread():
    load = Load(input_tokens=1000, output_tokens=200, requests_per_second=3, spread=0.2)
    one, same, other = requests_of(load, 500, 7), requests_of(load, 500, 7), requests_of(load, 500, 8)
    assert np.array_equal(one.arrival, same.arrival) and np.array_equal(one.input_tokens, same.input_tokens)
    assert not np.array_equal(one.arrival, other.arrival)
    assert one.input_tokens.min() >= 800 and one.input_tokens.max() <= 1000
    assert one.input_tokens.mean() == pytest.approx(900, rel=0.02)


@pytest.mark.parametrize("burstiness", [0.25, 1, 4])
def test_arrivals_have_the_rate_and_the_burstiness_that_was_asked(burstiness):
    requests = requests_of(Load(input_tokens=1, output_tokens=1, requests_per_second=5, burstiness=burstiness), 40_000)
    gaps = np.diff(requests.arrival)
    assert gaps.mean() == pytest.approx(0.2, rel=0.03)
    assert gaps.var() / gaps.mean() ** 2 == pytest.approx(burstiness, rel=0.1)


def test_lognormal_lengths_have_the_mean_and_the_variation_that_was_asked():
    lengths = lognormal_lengths(np.random.default_rng(0), 800, 0.7, 50_000)
    assert lengths.mean() == pytest.approx(800, rel=0.02)
    assert lengths.std() / lengths.mean() == pytest.approx(0.7, rel=0.05)


def test_a_request_that_the_cache_never_holds_is_refused():
    with pytest.raises(InvalidPlan, match=r"request 1 needs 5,000 \+ 100 tokens of cache; the replica holds 4,096"):
        simulate(AFFINE, Policy(pool_tokens=4096), many([1000, 5000], 100))


def test_a_load_or_a_policy_that_says_too_little_is_refused():
    with pytest.raises(InvalidInput, match="either concurrency or requests_per_second"):
        requests_of(Load(input_tokens=1, output_tokens=1))
    with pytest.raises(InvalidInput, match="requests_per_second must be more than 0"):
        requests_of(Load(input_tokens=1, output_tokens=1, requests_per_second=0))
    with pytest.raises(InvalidInput, match="burstiness must not be negative"):
        requests_of(Load(input_tokens=1, output_tokens=1, requests_per_second=1, burstiness=-1))
    with pytest.raises(InvalidInput, match="max_num_seqs must be at least 1"):
        Policy(max_num_seqs=0)
    with pytest.raises(InvalidInput, match="max_num_batched_tokens must be at least max_num_seqs, 256"):
        Policy(max_num_batched_tokens=128)
    with pytest.raises(InvalidInput, match="requests must be at least one"):
        simulate(AFFINE, Policy(), many(np.array([], int), np.array([], int), arrival=np.array([])))
