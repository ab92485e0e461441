"""The closed form: near the simulation, exact where nothing waits, and the same for arrays as for one load."""

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tonnage
from estimate.load.replica import Roofline
from tonnage.estimate.load import Policy, requests_of, simulate, steady
from tonnage.kernel.errors import InvalidInput, InvalidPlan
from tonnage.spec import Load

MACHINE = Roofline(weights=17.6e9, token_flops=17.5e9, key_bytes=41_000, fixed=3e-3)
POLICIES = {
    "mixed": Policy(),
    "small budget": Policy(max_num_batched_tokens=2048),
    "alone": Policy(mixed=False, chunked_prefill=False, max_num_batched_tokens=32768),
    "cut, alone": Policy(mixed=False, max_num_batched_tokens=4096),
    "reserved": Policy(pool_tokens=100_000, reserves_answer=True),
}


def off(found, form):
    return (
        form.ttft / found.ttft.mean - 1,
        form.tpot / found.tpot.mean - 1,
        form.output_tokens_per_second / found.output_tokens_per_second - 1,
    )


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("spread", [0, 0.2, 0.9])
def test_a_benchmark_of_users_is_as_simulated(policy, spread):
    errors = []
    for prompt, answer in ((1024, 1024), (8000, 500), (300, 300)):
        for users in (4, 16, 64):
            load = Load(input_tokens=prompt, output_tokens=answer, concurrency=users, spread=spread)
            found = simulate(MACHINE, POLICIES[policy], requests_of(load))
            errors.append(off(found, steady(MACHINE, POLICIES[policy], load, rounds=10)))
    ttft, tpot, rate = np.abs(errors).mean(0)
    assert ttft < 0.12 and tpot < 0.03 and rate < 0.05


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("spread", [0, 0.9])
def test_requests_that_arrive_wait_as_simulated(policy, spread):
    errors = []
    for prompt, answer in ((1024, 1024), (8000, 500)):
        most = steady(
            MACHINE, POLICIES[policy], Load(input_tokens=prompt, output_tokens=answer, spread=spread)
        ).largest_rate
        for share in (0.1, 0.4, 0.65):
            load = Load(input_tokens=prompt, output_tokens=answer, requests_per_second=share * most, spread=spread)
            found = simulate(MACHINE, POLICIES[policy], requests_of(load, 1500)).after(0.2)
            errors.append(off(found, steady(MACHINE, POLICIES[policy], load))[:2])
    ttft, tpot = np.abs(errors).mean(0)
    assert ttft < 0.2 and tpot < 0.03


@pytest.mark.parametrize("policy", POLICIES)
def test_one_user_waits_for_the_prompt_and_then_for_each_token_at_the_mean_context(policy):
    form = steady(MACHINE, POLICIES[policy], Load(input_tokens=1000, output_tokens=101, concurrency=1))
    assert form.ttft == pytest.approx(float(MACHINE.seconds(1000, 1000 * 1001 / 2, 0, 0)), rel=1e-9)
    assert form.tpot == pytest.approx(float(MACHINE.seconds(0, 0, 1, 1050.5)), rel=1e-6)
    assert form.requests_per_second == pytest.approx(1 / (form.ttft + 100 * form.tpot))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "asked", [{"concurrency": [1, 7, 80, 700]}, {"requests_per_second": [0.01, 0.5, 3, 500]}], ids=["users", "arrivals"]
)
def test_arrays_of_loads_give_what_each_load_gives(policy, asked):
    ((name, values),) = asked.items()
    lengths = {"input_tokens": np.array([100, 1000, 5000, 20000]), "output_tokens": np.array([1, 400, 1000, 300])}
    together = steady(MACHINE, POLICIES[policy], Load(**lengths, **{name: np.array(values)}, spread=0.3))
    for i, value in enumerate(values):
        alone = steady(
            MACHINE,
            POLICIES[policy],
            Load(
                input_tokens=int(lengths["input_tokens"][i]),
                output_tokens=int(lengths["output_tokens"][i]),
                spread=0.3,
                **{name: value},
            ),
        )
        for field in ("ttft", "tpot", "requests_per_second", "running", "largest_rate", "prompt_passes"):
            assert np.broadcast_to(getattr(together, field), 4)[i] == pytest.approx(getattr(alone, field), rel=1e-9), (
                field
            )


@pytest.mark.parametrize("policy", POLICIES)
def test_more_requests_never_come_faster(policy):
    rates = np.linspace(0.05, 0.99, 40)
    most = steady(MACHINE, POLICIES[policy], Load(input_tokens=2000, output_tokens=500)).largest_rate
    form = steady(
        MACHINE, POLICIES[policy], Load(input_tokens=2000, output_tokens=500, requests_per_second=rates * most)
    )
    assert (np.diff(form.ttft) > -1e-3 * form.ttft[:-1]).all()
    assert (np.diff(form.tpot) > -1e-6 * form.tpot[:-1]).all()
    assert np.isfinite(form.ttft).all() and (form.running <= form.places).all()


@pytest.mark.parametrize("policy", POLICIES)
def test_littles_law_joins_the_means(policy):
    load = Load(input_tokens=2000, output_tokens=500, requests_per_second=1.0)
    form = steady(MACHINE, POLICIES[policy], load)
    assert form.running == pytest.approx(form.requests_per_second * 499 * form.tpot, rel=1e-3)
    users = steady(MACHINE, POLICIES[policy], Load(input_tokens=2000, output_tokens=500, concurrency=600))
    assert users.requests_per_second * (users.ttft + 499 * users.tpot) == pytest.approx(600, rel=1e-6)


def test_more_than_can_be_answered_waits_for_ever_and_says_what_could_be():
    load = Load(input_tokens=2000, output_tokens=500, requests_per_second=1000)
    form = steady(MACHINE, Policy(), load)
    assert math.isinf(form.ttft)
    assert form.requests_per_second == form.largest_rate < 100
    below = steady(
        MACHINE, Policy(), Load(input_tokens=2000, output_tokens=500, requests_per_second=form.largest_rate * 0.9)
    )
    assert math.isfinite(below.ttft)
    found = simulate(MACHINE, Policy(), requests_of(load, 3000))
    assert found.requests_per_second == pytest.approx(form.largest_rate, rel=0.1)


def test_a_small_cache_is_what_limits_where_it_is():
    load = Load(input_tokens=1000, output_tokens=1000, concurrency=500)
    pool = steady(MACHINE, Policy(pool_tokens=50_000, reserves_answer=True), load)
    assert pool.places == 24  # of 2,000 tokens and half a block
    assert steady(MACHINE, Policy(pool_tokens=50_000), load).places == pytest.approx(50_000 / 1508.5 - 0.5, rel=1e-3)
    assert steady(MACHINE, Policy(), load).places == 256
    assert pool.requests_per_second < steady(MACHINE, Policy(), load).requests_per_second


def test_with_neither_users_nor_arrivals_all_places_are_taken():
    form = steady(MACHINE, Policy(), Load(input_tokens=1000, output_tokens=1000))
    assert form.running == pytest.approx(256, rel=0.01)
    assert form.requests_per_second == pytest.approx(form.largest_rate, rel=0.02)


def test_one_load_needs_no_numpy():
    code = (
        "import sys\n"
        "from tonnage.estimate.load import Policy\nfrom tonnage.estimate.load import steady\nfrom "
        "tonnage.spec import Load\n"
        "class Clock:\n    def seconds(self, t, p, r, k): return max(0.007, t * 3e-5) + p * 1e-10 + k * 5e-8\n"
        "for load in (Load(input_tokens=9, output_tokens=9, concurrency=3), Load(input_tokens=9, "
        "output_tokens=9, requests_per_second=1)):\n"
        "    found = steady(Clock(), Policy(), load); assert type(found.ttft) is float and found.ttft > 0\n"
        "assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_load_that_cannot_be_is_refused_by_name():
    for asked, said in (
        ({"input_tokens": 0, "output_tokens": 1}, "input_tokens must be at least 1. Got 0"),
        ({"input_tokens": 9, "output_tokens": 9, "concurrency": 0}, "concurrency must be at least 1. Got 0"),
        ({"input_tokens": 9, "output_tokens": 9, "requests_per_second": 0}, "requests_per_second must be more than 0"),
        ({"input_tokens": 9, "output_tokens": 9, "spread": 2}, "spread must be between 0 and 1. Got 2"),
        (
            {"input_tokens": 9, "output_tokens": 9, "cached_tokens": 9},
            "cached_tokens must be 0 or more, and fewer than input_tokens, 9. Got 9",
        ),
        ({"input_tokens": 9, "output_tokens": 9, "concurrency": 1, "requests_per_second": 1}, "exclude each other"),
    ):
        with pytest.raises(InvalidInput, match=said):
            steady(MACHINE, Policy(), Load(**asked))


def test_what_the_cache_never_holds_is_refused_alone_and_0_among_others():
    with pytest.raises(InvalidPlan, match=r"a request needs 5,000 \+ 100 tokens of cache; the replica holds 4,096"):
        steady(MACHINE, Policy(pool_tokens=4096), Load(input_tokens=5000, output_tokens=100, concurrency=4))
    both = Load(input_tokens=np.array([1000, 5000]), output_tokens=100, concurrency=4)
    form = steady(MACHINE, Policy(pool_tokens=4096), both)
    assert form.requests_per_second[0] > 0 == form.requests_per_second[1] == form.largest_rate[1]
    assert np.isinf(form.ttft).tolist() == [False, True]


def test_policies_may_be_arrays_as_a_search_has_them():
    load = Load(input_tokens=1000, output_tokens=500, concurrency=300)
    pools, seats = np.array([50_000, 400_000, 4_000_000]), np.array([256, 64, 512])
    form = steady(MACHINE, Policy(pool_tokens=pools, max_num_seqs=seats), load)
    for i in range(3):
        alone = steady(MACHINE, Policy(pool_tokens=int(pools[i]), max_num_seqs=int(seats[i])), load)
        assert form.ttft[i] == pytest.approx(alone.ttft) and form.places[i] == pytest.approx(alone.places)


@pytest.mark.parametrize(
    "policy", [*POLICIES.values(), Policy(pool_tokens=300_000), Policy(chunked_prefill=False), Policy(max_num_seqs=1)]
)
@pytest.mark.parametrize("spread", [0, 0.2, 1])
def test_no_load_however_strange_gives_what_is_no_number(policy, spread):
    generator = np.random.default_rng(3)
    count = 4000
    lengths = {
        "input_tokens": np.rint(np.exp(generator.uniform(0, 11, count))),
        "output_tokens": np.rint(np.exp(generator.uniform(0, 10, count))),
    }
    for asked in (
        {"concurrency": np.rint(np.exp(generator.uniform(0, 9, count)))},
        {"requests_per_second": np.exp(generator.uniform(-14, 9, count)), "burstiness": 4},
    ):
        load = Load(**lengths, **asked, cached_tokens=np.floor(lengths["input_tokens"] / 3), spread=spread)
        form = steady(MACHINE, policy, load, rounds=10)
        for field in ("tpot", "requests_per_second", "running", "largest_rate", "prompt_passes"):
            assert np.isfinite(getattr(form, field)).all(), field
            assert (getattr(form, field) >= 0).all(), field
        assert (form.ttft > 0).all() and (form.prompt_passes <= 1).all()


@pytest.mark.parametrize("lengths", [(1024, 1024), (500, 3000), (8192, 1024)], ids=str)
@pytest.mark.parametrize("policy", [*POLICIES.values(), Policy(pool_tokens=100_000)], ids=[*POLICIES, "small pool"])
def test_the_largest_rate_is_what_an_overload_gets(policy, lengths):
    load = Load(input_tokens=lengths[0], output_tokens=lengths[1], spread=0.5)
    largest = steady(MACHINE, policy, load).largest_rate
    asked = Load(input_tokens=lengths[0], output_tokens=lengths[1], spread=0.5, requests_per_second=3 * largest)
    ends = np.sort(simulate(MACHINE, policy, requests_of(asked, 1500)).finished)
    got = 750 / (ends[1200] - ends[450])  # neither while it fills up nor while it empties
    assert largest == pytest.approx(got, rel=0.07)


LENGTHS, USERS = (128, 500, 1000, 1400, 2000, 2800, 4000, 8000), (1, 2, 4, 8, 16, 32, 64, 128)


@given(
    on=st.sampled_from([("llama-3.1-8b", "l40s"), ("qwen3-32b", "2xH100"), ("gpt-oss-120b", "H100")]),
    output=st.integers(20, 2000),
    users=st.sampled_from(USERS),
    prompt=st.sampled_from(LENGTHS),
)
@settings(max_examples=25)
def test_longer_prompts_and_more_users_never_shorten_ttft(on, output, users, prompt):
    """Users of whom nobody says that their requests are all alike do not stay in step."""

    def ttft(users: int, prompt: int) -> float:
        asked = {"concurrency": users, "input_tokens": prompt, "output_tokens": output}
        answer = tonnage.serve(on[0], on=on[1], **asked, advice=False, as_is=True)
        return float(answer.serving.ttft_seconds.value)

    times = [ttft(users, length) for length in LENGTHS]
    assert times == pytest.approx(sorted(times), rel=1e-9)
    times = [ttft(some, prompt) for some in USERS]
    assert times == pytest.approx(sorted(times), rel=1e-9)
