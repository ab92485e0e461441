"""What a request meets beside its own passes: those that were scheduled before it came, polls, kernels that run beside
others.
"""

import numpy as np
import pytest

import tonnage
from tonnage import read
from tonnage.catalogue.clusters import cluster
from tonnage.estimate.load import Policy, steady
from tonnage.estimate.serving_time.times import pass_time, serving_times
from tonnage.runtimes import serving_runtime
from tonnage.spec import Load, ServingPlan

DENSE = read("qwen3-8b", offline=True)
DEEPSEEK = read("deepseek-v3", offline=True)
HYBRID = read("qwen3.5-397b-a17b", offline=True)
NEXT = read("qwen3-next-80b-a3b-instruct", offline=True)
MINIMAX = read("minimax-m2.5", offline=True)


def plan(**said):
    return ServingPlan.of_fields(context=4096, **said)


def passes(model, on, **said):
    return pass_time(model, plan(**said), cluster(on))


class Steps:
    """A decode step takes a hundredth of a second, a pass with prompts a tenth, however many it has."""

    def seconds(self, prompt_tokens, prompt_keys, requests, keys):
        return np.where(prompt_tokens > 0, 0.1, 0.01) + 0 * requests


def test_vllm_schedules_a_pass_ahead_since_0_14_and_sglang_and_tensorrt_llm_always():
    ahead = {version: serving_runtime("vllm", version).passes_ahead for version in ("0.12", "0.14.1", "0.19", "")}
    assert ahead == {"0.12": 0, "0.14.1": 1, "0.19": 1, "": 1}
    assert serving_runtime("sglang", "0.4.6").passes_ahead == serving_runtime("tensorrt-llm").passes_ahead == 1
    assert serving_runtime("llama.cpp").passes_ahead == 0


@pytest.mark.parametrize(("version", "waited"), [("0.12", 1), ("0.19", 2)])
def test_a_user_who_comes_again_waits_for_the_pass_that_has_begun_and_those_scheduled_ahead(version, waited):
    load = Load(input_tokens=1000, output_tokens=1000, concurrency=32)
    times = serving_times(DENSE, plan(engine="vllm", engine_version=version), load, cluster("h100"))
    arrive = times.around_seconds - waited * times.tpot_seconds
    alone = serving_times(
        DENSE,
        plan(engine="vllm", engine_version=version),
        Load(input_tokens=1000, output_tokens=1000, concurrency=1),
        cluster("h100"),
    )
    assert arrive == pytest.approx(alone.around_seconds)  # nobody else is there: no pass runs


def test_requests_that_arrive_by_themselves_wait_for_a_pass_ahead_only_where_somebody_is_served():
    def around(rate):
        load = Load(input_tokens=1000, output_tokens=1000, requests_per_second=rate)
        times = serving_times(DENSE, plan(engine="sglang"), load, cluster("h100"))
        return times.around_seconds, times.tpot_seconds

    (idle, _), (busy, tpot) = around(1e-6), around(4.0)
    assert busy - idle == pytest.approx(tpot, rel=0.01)


def test_the_simulation_waits_as_the_closed_form_does():
    said = {"on": "h100", "context": 4096, "input_tokens": 1000, "output_tokens": 200, "concurrency": 16, "spread": 0.5}
    sync, ahead = (
        tonnage.serve("qwen3-8b", engine="vllm", engine_version=version, simulate=True, **said).serving
        for version in ("0.12", "0.14")
    )
    simulated = ahead.simulated.ttft.mean.value - sync.simulated.ttft.mean.value
    assert simulated == pytest.approx(ahead.ttft_seconds.value - sync.ttft_seconds.value, rel=0.25)
    assert simulated == pytest.approx(ahead.tpot_seconds.value, rel=0.25)  # one pass more


def test_the_scheduler_takes_no_time_where_a_pass_runs_meanwhile():
    spent = passes(DENSE, "h100", engine="vllm", engine_version="0.12").spent(0, 0, 8, 8192.0)
    hidden = passes(DENSE, "h100", engine="vllm", engine_version="0.19").spent(0, 0, 8, 8192.0)
    assert spent.engine > 0
    assert hidden.engine == 0


def test_prompts_come_together_where_the_engine_looks_for_requests_every_thirtieth_pass():
    load = Load(input_tokens=1000, output_tokens=1000, concurrency=64, spread=0.9)
    each, polled = (steady(Steps(), Policy(mixed=False, poll_passes=n), load, rounds=10) for n in (1, 30))
    assert each.prompt_passes > 1.5 * polled.prompt_passes
    assert each.tpot > polled.tpot
    # no more come together than there are users
    all_at_once = steady(Steps(), Policy(mixed=False, poll_passes=10**6), load, rounds=10)
    assert all_at_once.tpot == pytest.approx(0.01, rel=0.05)


def test_experts_that_all_share_start_beside_the_routed_ones():
    def kernels(version):
        (work,) = passes(DEEPSEEK, "8xh200", engine="vllm", engine_version=version, tensor_parallel_size=8).works
        return sum(product.kernels for product in work.products)

    # gate and up were one product with the router, which stays; down has its own
    assert kernels("0.8.5") - kernels("0.12") == 61 - 3


def test_inputs_of_a_gated_delta_net_are_four_products_until_sglang_0_5_10_and_two_since():
    def kernels(model, version):
        made = passes(model, "8xb200", engine="sglang", engine_version=version, tensor_parallel_size=8)
        (work,) = made.works
        return sum(product.kernels for product in work.products), work.kernels, work.recurrences

    (before, copies, nets), (since, fewer, _) = kernels(HYBRID, "0.5.9"), kernels(HYBRID, "0.5.10")
    assert before - since == 2 * nets
    assert copies - fewer == 3 * nets
    # Qwen3-Next's checkpoint has two matrices, which nobody takes apart
    assert kernels(NEXT, "0.5.9")[0] == kernels(NEXT, "0.5.10")[0]


def fused(model, engine, weights, **said):
    made = passes(model, "8xb200", engine=engine, weights=weights, tensor_parallel_size=8, **said)
    return made.works[0].experts[0].is_fused


def test_sglang_fuses_experts_in_8_bit_of_the_architectures_that_its_default_names():
    assert fused(DEEPSEEK, "sglang", "fp8")
    assert not fused(MINIMAX, "sglang", "fp8")
    assert fused(MINIMAX, "sglang", "nvfp4")
    assert fused(MINIMAX, "vllm", "fp8")
    assert not fused(DEEPSEEK, "sglang", "bf16")


def test_sglang_fuses_experts_in_16_bit_where_it_is_told_to():
    assert fused(HYBRID, "sglang", "bf16", fused_experts=True)
    assert not fused(DEEPSEEK, "sglang", "fp8", fused_experts=False)
