"""The time of passes and of serving: bounds that physics sets, arrays against single plans, and what each setting
must do.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tonnage import read
from tonnage.catalogue import accelerator
from tonnage.catalogue.clusters import cluster
from tonnage.estimate.serving_time.rates import serving_rates
from tonnage.estimate.serving_time.speed import prompt_pass
from tonnage.estimate.serving_time.split import Side, split_times
from tonnage.estimate.serving_time.times import pass_time, policy, serving_times
from tonnage.estimate.serving_time.work import kv_bytes, stage_works
from tonnage.formulas import passes as f
from tonnage.kernel.errors import InvalidPlan, MissingDatum
from tonnage.spec import Load, ServingPlan

MODELS = {
    name: read(name, offline=True)
    for name in ("llama-3.1-8b", "llama-3.1-70b", "deepseek-v3", "gpt-oss-120b", "qwen3-235b-a22b")
}
LOAD = Load(input_tokens=1024, output_tokens=512, concurrency=16, spread=0.2)


def plan(**said):
    return ServingPlan.of_fields(**{"context": 2048, "concurrency": 16, **said})


def prompt_alone(name, machine, tokens=LOAD.input_tokens, **said):
    """A prompt in an idle replica."""
    made = plan(**said)
    return prompt_pass(pass_time(MODELS[name], made, machine), policy(made, machine.accelerator), tokens)


def times(name, on, load=LOAD, **said):
    return serving_times(MODELS[name], plan(**said), load, cluster(on))


@pytest.mark.parametrize(
    ("name", "on", "said"),
    [
        ("llama-3.1-8b", "h100", {}),
        ("llama-3.1-70b", "8xh100", {"tensor_parallel_size": 8, "weights": "fp8"}),
        ("deepseek-v3", "8xh200", {"tensor_parallel_size": 8, "expert_parallel_size": 8}),
        ("gpt-oss-120b", "b200", {}),
    ],
)
def test_a_pass_never_takes_less_than_reading_the_weights_that_it_touches(name, on, said):
    machine = cluster(on)
    made = plan(**said)
    works = stage_works(MODELS[name], made, tuple(machine.accelerator.dense_flops), kv_bytes(made))
    bandwidth = machine.accelerator.memory.bytes_per_second
    passes = pass_time(MODELS[name], made, machine)
    for requests in (1, 8, 64):
        dense = sum(each.bytes for work in works for each in (*work.products, *work.head))
        touched = sum(
            each.layers
            * each.bytes
            * each.num_experts
            * (1 - (1 - each.top_k / each.num_experts) ** requests)
            / made.expert_parallel_size
            for work in works
            for each in work.experts
        )
        assert passes.seconds(0, 0, requests, requests * 1024) > (dense + touched) / bandwidth


@settings(max_examples=30)
@given(st.integers(1, 512), st.integers(1, 30_000), st.sampled_from(sorted(MODELS)))
def test_more_requests_and_more_context_never_make_a_pass_shorter(requests, context, name):
    passes = pass_time(MODELS[name], plan(), cluster("h200"))
    one = passes.seconds(0, 0, requests, requests * context)
    assert passes.seconds(0, 0, requests + 1, (requests + 1) * context) >= one
    assert passes.seconds(0, 0, requests, requests * (context + 100)) >= one
    assert passes.seconds(256, 256 * 128, requests, requests * context) > one


@settings(max_examples=20)
@given(st.floats(1.01, 4), st.sampled_from(sorted(MODELS)), st.integers(1, 256))
def test_a_faster_memory_or_a_higher_peak_never_makes_anybody_wait_longer(factor, name, users):
    machine = cluster("h200")
    chip = machine.accelerator
    load = replace(LOAD, concurrency=users)
    wide = replace(chip, memory=replace(chip.memory, bytes_per_second=chip.memory.bytes_per_second * factor))
    strong = replace(chip, dense_flops={kind: peak * factor for kind, peak in chip.dense_flops.items()})
    base = serving_times(MODELS[name], plan(), load, machine)
    for better in (wide, strong):
        found = serving_times(MODELS[name], plan(), load, replace(machine, accelerator=better))
        assert found.tpot_seconds <= base.tpot_seconds * (1 + 1e-6)
        alone = [prompt_alone(name, replace(machine, accelerator=each)).seconds for each in (better, chip)]
        assert alone[0] <= alone[1] * (1 + 1e-6)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_pass_of_arrays_is_each_of_its_entries(name):
    passes = pass_time(MODELS[name], plan(), cluster("h200"))
    prompts, requests = np.array([0, 512, 4096]), np.array([1, 7, 200])
    together = passes.seconds(prompts, prompts * 100, requests, requests * 900)
    for n in range(3):
        alone = passes.seconds(int(prompts[n]), int(prompts[n]) * 100, int(requests[n]), int(requests[n]) * 900)
        assert together[n] == pytest.approx(alone, rel=1e-12)


def test_tensor_ranks_in_an_array_are_the_plans_one_by_one():
    model, sizes = MODELS["llama-3.1-70b"], np.array([1, 2, 4, 8])
    together = pass_time(model, plan(tensor_parallel_size=sizes), cluster("8xh100")).seconds(0, 0, 16, 16 * 1024)
    for n, size in enumerate(sizes.tolist()):
        alone = pass_time(model, plan(tensor_parallel_size=size), cluster("8xh100")).seconds(0, 0, 16, 16 * 1024)
        assert together[n] == pytest.approx(alone, rel=1e-12)


def test_what_spends_a_pass_adds_up_to_it():
    passes = pass_time(MODELS["deepseek-v3"], plan(tensor_parallel_size=8), cluster("8xh200"))
    spent = passes.spent(100, 5000, 32, 32 * 2000)
    assert sum(spent) == pytest.approx(passes.seconds(100, 5000, 32, 32 * 2000))
    assert spent.experts > 0 and spent.exchanges > 0


def test_one_token_touches_as_many_experts_as_it_is_sent_to_and_many_touch_all():
    assert f.experts_touched.evaluate(E=256, k_top=8, T=1) == pytest.approx(8)
    assert f.experts_touched.evaluate(E=256, k_top=8, T=10_000) == pytest.approx(256)


def test_drafts_that_are_always_taken_give_every_token_of_a_pass_and_such_as_never_are_only_one():
    assert f.tokens_per_pass.evaluate(n_draft=3, p_take=1 - 1e-9) == pytest.approx(4, rel=1e-5)
    assert f.tokens_per_pass.evaluate(n_draft=3, p_take=0) == 1


def test_drafts_that_are_taken_shorten_the_time_of_a_token_and_such_as_are_not_lengthen_it():
    said = {"tensor_parallel_size": 8, "expert_parallel_size": 8, "engine": "sglang"}
    without, good, bad = (
        times("deepseek-v3", "8xh200", replace(LOAD, concurrency=4), draft_tokens=n, acceptance=p, **said).tpot_seconds
        for n, p in ((0, 0), (1, 0.9), (1, 0))
    )
    assert good < without < bad


def test_layers_in_host_memory_are_read_at_its_own_speed():
    said = {"weights": "q4_k_m", "engine": "llama.cpp"}
    load = replace(LOAD, concurrency=1)
    whole = times("llama-3.1-8b", "rtx-4090", load, **said).tpot_seconds
    part = times("llama-3.1-8b", "rtx-4090", load, layers_on_accelerator=17, host_bandwidth=80e9, **said).tpot_seconds
    none = times("llama-3.1-8b", "rtx-4090", load, layers_on_accelerator=0, host_bandwidth=80e9, **said).tpot_seconds
    assert whole < part < none
    assert none > 4.5e9 / 80e9  # all of its 4.6 GB at 80 GB/s
    with pytest.raises(MissingDatum, match="host_bandwidth"):
        times("llama-3.1-8b", "rtx-4090", load, layers_on_accelerator=0, **said)


def test_weights_that_cross_the_hosts_link_in_every_pass_take_at_least_as_long_as_the_link_does():
    load = replace(LOAD, concurrency=1)
    link = accelerator("h100").host_link.bytes_per_second
    found = times(
        "llama-3.1-70b", "2xh100", load, tensor_parallel_size=2, weights_on_host_bytes=20_000_000_000
    ).tpot_seconds
    assert found > 20e9 / link


def test_without_graphs_the_host_asks_for_each_kernel():
    load = replace(LOAD, concurrency=1)
    assert (
        times("llama-3.1-8b", "h100", load, enforce_eager=True).tpot_seconds
        >= times("llama-3.1-8b", "h100", load).tpot_seconds
    )


def test_an_accelerator_without_a_peak_is_timed_where_reading_bounds_it_and_no_further():
    found = times(
        "llama-3.1-8b", "apple-m5-max-64gb", replace(LOAD, concurrency=1), engine="llama.cpp", weights="q4_k_m"
    )
    assert found.tpot_seconds > 4.5e9 / accelerator("apple-m5-max-64gb").memory.bytes_per_second
    assert found.ttft_seconds is None and found.end_to_end_seconds is None


def test_prompts_on_replicas_of_their_own_do_not_hold_up_answers():
    model, machine = MODELS["llama-3.1-70b"], cluster("8xh100")
    made = plan(tensor_parallel_size=8, weights="fp8", context=8192)
    load = Load(input_tokens=6000, output_tokens=200, requests_per_second=2.0)
    apart = split_times(model, Side(made, machine, 1), Side(made, machine, 1), load)
    together = serving_times(model, made, load, machine)
    assert apart.tpot_seconds < together.tpot_seconds
    assert 0 < apart.transfer_seconds < apart.ttft_seconds
    with pytest.raises(InvalidPlan, match="replicas of answers"):
        split_times(model, Side(made, machine, 1), Side(made, machine, 0), load)


def test_a_pipeline_reads_each_layer_once_whatever_its_stages():
    one = times("llama-3.1-70b", "4xh100", tensor_parallel_size=4).tpot_seconds
    cut = times("llama-3.1-70b", "4xh100", pipeline_parallel_size=4).tpot_seconds
    assert cut > one


def test_rates_are_shares_and_seconds():
    rates = serving_rates()
    assert 0.5 < rates.weights <= 1 and 0.5 < rates.cache <= 1
    assert all(
        0 < value < 1e-3
        for value in (rates.product, rates.cast, rates.attention, rates.mixture, rates.other, rates.reduce)
    )
    assert {"vllm", "sglang", "tensorrt-llm", "generic"} <= set(rates.engines)


def test_no_more_weights_cross_the_hosts_link_than_there_are():
    load = replace(LOAD, concurrency=1)
    whole, more = (
        times("llama-3.1-8b", "rtx-4090", load, weights_on_host_bytes=size).tpot_seconds for size in (17e9, 100e9)
    )
    assert whole == more


def test_ollamas_passes_take_the_time_of_llama_cpps():
    load = replace(LOAD, concurrency=1)
    both = [times("llama-3.1-8b", "h100", load, engine=name, weights="q4_k_m") for name in ("ollama", "llama.cpp")]
    assert both[0].tpot_seconds == both[1].tpot_seconds and both[0].ttft_seconds == both[1].ttft_seconds


def test_a_peak_of_four_bit_products_alone_times_tokens_and_no_prompts():
    found = times("llama-3.1-8b", "ascend-950pr", replace(LOAD, concurrency=1))
    assert found.tpot_seconds > 16e9 / accelerator("ascend-950pr").memory.bytes_per_second
    assert found.ttft_seconds is None


def test_tensor_ranks_on_two_nodes_sum_over_the_network():
    """An engine's own all-reduce writes to memory of its node: between nodes NCCL's is taken."""
    machine = cluster("2xdgx-h100")
    passes = pass_time(MODELS["llama-3.1-70b"], plan(tensor_parallel_size=16), machine)
    for size in (1 << 10, 1 << 16, 1 << 24):
        nccl = passes.network.collective("all_reduce", size, 16).seconds
        assert passes.reduce_seconds(size, 16) == nccl
        assert passes.reduce_seconds(size, 8) <= passes.network.collective("all_reduce", size, 8).seconds
    both = passes.reduce_seconds(1 << 16, np.array([8, 16]))
    assert list(both) == pytest.approx([passes.reduce_seconds(1 << 16, 8), passes.reduce_seconds(1 << 16, 16)])


def test_two_ranks_beside_a_bridge_sum_over_it():
    bridged = pass_time(MODELS["llama-3.1-8b"], plan(tensor_parallel_size=2), cluster("8xH100-NVL-94GB"))
    size = 1 << 24
    assert bridged.reduce_seconds(size, 2) < bridged.reduce_seconds(size, 4) / 2


# ---- pipelines ----


def prompt_seconds(engine, tokens, stages, name="llama-3.1-8b", on="4xrtx-4090", **said):
    passes = pass_time(MODELS[name], plan(engine=engine, pipeline_parallel_size=stages, **said), cluster(on))
    return passes.seconds(tokens, tokens * tokens / 2, 0, 0)


@pytest.mark.parametrize("stages", [2, 4])
def test_a_prompt_of_one_micro_batch_passes_the_stages_of_llama_cpp_one_after_the_other(stages):
    """512 tokens are one micro-batch (-ub): more GPUs do not speed it up."""
    one, many = (prompt_seconds("llama.cpp", 512, number, weights="q4_k_m") for number in (1, stages))
    assert one < many < 1.2 * one


@pytest.mark.parametrize(("stages", "micro_batches"), [(2, 8), (4, 8), (4, 16)])
def test_micro_batches_of_a_prompt_fill_and_drain_the_stages_of_llama_cpp(stages, micro_batches):
    tokens = 512 * micro_batches
    one = prompt_seconds("llama.cpp", tokens, 1, weights="q4_k_m")
    many = prompt_seconds("llama.cpp", tokens, stages, weights="q4_k_m")
    slots = (micro_batches + stages - 1) / (micro_batches * stages)
    assert many == pytest.approx(slots * one, rel=0.1)


def test_the_first_token_on_four_cards_of_llama_cpp_takes_as_long_as_its_prompts_pass():
    load = Load(input_tokens=4096, output_tokens=1, concurrency=1)
    said = {"engine": "llama.cpp", "weights": "q4_k_m", "context": 8192, "concurrency": 1}
    found = serving_times(MODELS["llama-3.1-8b"], plan(pipeline_parallel_size=4, **said), load, cluster("4xrtx-4090"))
    own = prompt_alone("llama-3.1-8b", cluster("4xrtx-4090"), 4096, pipeline_parallel_size=4, **said)
    alone = serving_times(MODELS["llama-3.1-8b"], plan(**said), load, cluster("rtx-4090"))
    assert found.ttft_seconds == pytest.approx(own.seconds, rel=0.05)
    assert 0.25 * alone.ttft_seconds < found.ttft_seconds < 0.6 * alone.ttft_seconds


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm", "transformers"])
def test_one_request_gains_no_speed_from_more_stages(engine):
    """One micro-batch is on one stage at a time, in a prompt and in decoding."""
    for tokens, requests in ((1024, 0), (0, 1)):
        one, four = (
            pass_time(
                MODELS["llama-3.1-8b"], plan(engine=engine, pipeline_parallel_size=stages), cluster("4xh100")
            ).seconds(tokens, tokens * tokens / 2, requests, requests * 1000)
            for stages in (1, 4)
        )
        assert four >= one


def test_many_requests_keep_all_stages_of_an_engine_at_work_and_none_of_a_model_that_was_only_cut():
    busy = {
        engine: [
            pass_time(MODELS["llama-3.1-8b"], plan(engine=engine, pipeline_parallel_size=p), cluster("4xh100")).seconds(
                0, 0, 256, 256 * 4000
            )
            for p in (1, 4)
        ]
        for engine in ("vllm", "transformers")
    }
    assert busy["vllm"][1] < busy["vllm"][0]
    assert busy["transformers"][1] >= busy["transformers"][0]


@pytest.mark.parametrize("engine", ["vllm", "llama.cpp", "transformers"])
def test_more_tokens_and_more_requests_never_shorten_a_pass_of_a_pipeline(engine):
    passes = pass_time(MODELS["llama-3.1-8b"], plan(engine=engine, pipeline_parallel_size=4), cluster("4xh100"))
    requests = np.array([0, 1, 2, 3, 4, 5, 8, 64, 256])
    for tokens in (0, 100, 1024):
        seconds = passes.seconds(tokens, tokens * 500, requests, requests * 1000)
        assert (np.diff(seconds) >= -1e-12).all()


def test_prompts_beside_requests_that_decode_never_shorten_a_pass_of_llama_cpp():
    """Requests that decode stay in as few micro-batches as they fill: tokens of prompts do not spread them over
    more.
    """
    passes = pass_time(MODELS["llama-3.1-8b"], plan(engine="llama.cpp", pipeline_parallel_size=4), cluster("4xh100"))
    tokens = np.array([0, 1, 64, 256, 511, 512, 513, 1024, 4096, 32768])
    for requests in (1, 256, 512, 700):
        seconds = passes.seconds(tokens, tokens * 500, requests, requests * 8000)
        assert (np.diff(seconds) >= 0).all()


# ---- weights of 8 bits ----


@pytest.mark.parametrize("weights", ["fp8", "int8", "gptq-8bit-128g"])
@pytest.mark.parametrize("ranks", [1, 8])
@pytest.mark.parametrize("users", [1, 64])
def test_eight_bit_weights_are_no_slower_on_h100_than_on_a100(weights, ranks, users):
    """Products whose weights alone are narrow start as late as those that quantise their operands."""
    model = read("qwen-7b", offline=True)
    made = plan(engine="sglang", weights=weights, tensor_parallel_size=ranks)
    new, old = (
        serving_times(model, made, replace(LOAD, concurrency=users), cluster(f"{ranks}x{name}-SXM-80GB"))
        for name in ("H100", "A100")
    )
    assert new.tpot_seconds < old.tpot_seconds and new.ttft_seconds < old.ttft_seconds
