"""What an engine does by its source and version: operations asked for one by one, tiles, waits for room in a cache."""

import numpy as np
import pytest

import tonnage
from tonnage import read
from tonnage.catalogue import accelerator
from tonnage.catalogue.clusters import cluster
from tonnage.estimate.load import Policy, steady
from tonnage.estimate.serving_time.chip_rates import integer_lanes
from tonnage.estimate.serving_time.rates import serving_rates
from tonnage.estimate.serving_time.times import pass_time
from tonnage.formulas import passes as f
from tonnage.runtimes import serving_runtime
from tonnage.spec import Load, ServingPlan

QWEN = read("qwen3-30b-a3b", offline=True)
DENSE = read("qwen3-8b", offline=True)
DEEPSEEK = read("deepseek-v3", offline=True)
LOOP = 12  # operations of an expert in models/qwen3_moe/modeling_qwen3_moe.py


def passes(model, on, **said):
    return pass_time(model, ServingPlan.of_fields(context=4096, **said), cluster(on))


def launches(version, tokens=1, model=QWEN):
    made = passes(model, "h100", engine="transformers", engine_version=version)
    return sum(made.launches(work, tokens) for work in made.works)


def test_transformers_until_4_52_asks_for_every_expert_and_then_for_those_that_tokens_chose():
    layers = QWEN.num_layers
    assert launches("4.51.3", 1) - launches("4.53.0", 1) == pytest.approx(layers * LOOP * (128 - 8))
    assert launches("4.51.3", 64) == launches("4.51.3", 1)
    touched = f.experts_touched.evaluate(E=128, k_top=8, T=64)
    assert launches("4.53.0", 64) - launches("4.53.0", 1) == pytest.approx(layers * LOOP * (touched - 8))


def test_transformers_5_groups_experts_so_that_their_number_asks_for_nothing_more():
    assert launches("5.0", 64) == launches("5.0", 1) < launches("4.57", 1) < launches("4.51", 1)


def test_deepseek_in_transformers_passes_over_experts_that_no_token_chose():
    assert launches("4.51", 1, DEEPSEEK) < DEEPSEEK.num_layers * LOOP * 32


def test_an_eager_layer_of_qwen3_asks_for_as_many_operations_as_its_source():
    # four RMSNorms of 8, seven products, 17 around the core (15 from 4.54 on, which repeats no heads), two of the
    # activation, two sums of residuals
    made = passes(DENSE, "h100", engine="transformers", engine_version="4.51")
    (work,) = made.works
    assert work.launches == DENSE.num_layers * (4 * 8 + 7 + 17 + 2 + 2)
    newer = passes(DENSE, "h100", engine="transformers", engine_version="4.57")
    assert newer.works[0].launches == DENSE.num_layers * (4 * 8 + 7 + 15 + 2 + 2)


def test_repeated_heads_cross_the_memory_as_often_as_query_heads_share_a_key():
    served, repeats, groups = (
        passes(DENSE, "h100", engine=engine, engine_version=version).works[0].attending[0].bytes
        for engine, version in (("vllm", ""), ("transformers", "4.51"), ("transformers", "4.57"))
    )
    assert repeats == served * (3 + 2 * 32 / 8)
    assert groups == served * 3


def test_few_rows_take_the_time_of_a_full_tile_where_the_chip_computes_little_for_its_memory():
    tile = serving_runtime("sglang", "0.4.6").tile_rows
    small, large = (passes(DENSE, on, engine="sglang", engine_version="0.4.6") for on in ("h20", "h100"))
    assert small.seconds(0, 0, tile, tile) == pytest.approx(small.seconds(0, 0, 1, tile), rel=0.25)
    products = [small.spent(0, 0, n, 1024.0).products for n in (1, 8, 32, tile)]
    least = sum(2 * part.bytes / 2 * tile for part in small.works[0].products) / small.chip.peak("bf16")
    assert products[0] > least
    # a tile of an H100 is full long before its arithmetic outlasts reading
    assert large.spent(0, 0, 1, 1024.0).products < 1.6 * large.works[0].dense_bytes / large.bandwidth


@pytest.mark.parametrize("on", ["h20", "h100", "a100", "b200"])
@pytest.mark.parametrize(
    ("engine", "version", "weights"),
    [("sglang", "0.4.6", None), ("vllm", "0.6.4", "awq"), ("vllm", "", "fp8"), ("transformers", "4.51", None)],
)
def test_a_larger_batch_never_takes_less_time_a_step(on, engine, version, weights):
    made = passes(DENSE, on, engine=engine, engine_version=version, **({"weights": weights} if weights else {}))
    took = [made.seconds(0, 0, n, 1024 * n) for n in (1, 2, 8, 16, 17, 63, 64, 65, 128, 256)]
    assert took == sorted(took)


@pytest.mark.parametrize(
    ("model", "on", "engine", "version", "weights"),
    [
        (QWEN, "h100", "transformers", "4.51", None),
        (QWEN, "h100", "transformers", "4.57", None),
        (DENSE, "h20", "sglang", "0.4.6", None),
        (DENSE, "a100", "vllm", "0.6.4", "awq"),
        (DEEPSEEK, "b200", "sglang", "", "nvfp4"),
    ],
)
def test_arrays_of_batches_take_what_each_takes_by_itself(model, on, engine, version, weights):
    made = passes(model, on, engine=engine, engine_version=version, **({"weights": weights} if weights else {}))
    many = np.array([1.0, 7.0, 64.0, 300.0])
    together = made.seconds(0 * many, 0 * many, many, 1000 * many)
    assert together == pytest.approx([made.seconds(0, 0, float(n), 1000 * float(n)) for n in many])


def test_weights_of_4_bits_are_expanded_no_faster_than_the_lanes_for_integers_do_it():
    made = passes(DENSE, "h20", engine="vllm", weights="awq")
    (packed,) = [part for part in made.works[0].products if part.is_packed]
    seconds = packed.flops / 2 * serving_rates().expand / integer_lanes(made.chip)
    assert packed.is_expanded
    assert made.spent(0, 0, 1, 1024).products >= seconds
    wide = passes(DENSE, "h20", engine="vllm", weights="gptq-8bit-128g")
    assert not any(part.is_expanded for part in wide.works[0].products)


def test_integer_lanes_are_half_of_those_for_fp32_on_hopper_and_as_many_on_the_a100():
    h100, a100 = accelerator("h100"), accelerator("a100")
    assert integer_lanes(h100) == h100.dense_flops["fp32"] / 4
    assert integer_lanes(a100) == a100.dense_flops["fp32"] / 2
    assert integer_lanes(accelerator("gb10")) is None


def test_an_engine_has_the_rates_of_its_version():
    rates = serving_rates()
    oldest, middle, newest = (rates.engine("vllm", version) for version in ("0.6.3", "0.12", "0.19"))
    assert rates.engine("vllm") is newest is rates.engine("vllm", "0.14.0")
    assert rates.engine("vllm", "0.8.0") is middle
    assert oldest is rates.engines["vllm before 0.8"]
    assert rates.engine("unheard of", "3.1") is rates.engines["generic"]


def test_mixtures_of_data_centre_blackwell_are_fused_and_those_of_its_cards_are_not():
    server, card, hopper, wide = (
        passes(DEEPSEEK, on, engine="vllm", **({"weights": weights} if weights else {}))
        for on, weights in (("b200", "nvfp4"), ("rtx-pro-6000", "nvfp4"), ("h200", "fp8"), ("b200", "bf16"))
    )
    assert server.fuses_mixtures
    assert not card.fuses_mixtures
    assert not hopper.fuses_mixtures
    assert not wide.works[0].experts[0].is_quantised


class Steps:
    """A pass takes a hundredth of a second, and a little for each request."""

    def seconds(self, prompt_tokens, prompt_keys, requests, keys):
        return 0.01 + 1e-5 * prompt_tokens + 1e-5 * requests


def test_a_request_waits_for_its_prompts_part_of_the_cache_before_its_first_token_and_for_the_rest_after_it():
    load = Load(input_tokens=1000, output_tokens=8000, concurrency=64)
    with_room = steady(Steps(), Policy(pool_tokens=10_000_000), load)
    sent_back = steady(Steps(), Policy(pool_tokens=200_000), load)
    reserving = steady(Steps(), Policy(pool_tokens=200_000, reserves_answer=True), load)
    assert sent_back.places < 64
    assert with_room.ttft < sent_back.ttft < 0.5 * reserving.ttft
    assert sent_back.tpot > reserving.tpot
    # nobody is lost: 64 users are inside for as long as their requests take
    assert sent_back.requests_per_second * (sent_back.ttft + 7999 * sent_back.tpot) == pytest.approx(64, rel=1e-6)


def test_experts_in_gptq_are_told_to_be_slower_than_shown_before_sglang_0_5():
    said = {
        version: any(
            "no optimised kernels" in str(each)
            for each in tonnage.serve(
                "qwen3-30b-a3b",
                on="h20",
                engine="sglang",
                engine_version=version,
                weights="gptq-4bit-128g",
                context=4096,
            ).warnings
        )
        for version in ("0.4.6", "0.5.9")
    }
    assert said == {"0.4.6": True, "0.5.9": False}


def test_a_generation_without_rows_has_the_band_of_those_that_the_fit_had_not_seen():
    rates = serving_rates()
    for on, bands in (("mi300x", rates.unseen), ("h100", rates.bands)):
        served = tonnage.serve("qwen3-8b", on=on, context=4096).serving
        low, high = served.tpot_band
        assert low == pytest.approx(bands["tpot_seconds"].low * served.tpot_seconds.value)
        assert high == pytest.approx(bands["tpot_seconds"].high * served.tpot_seconds.value)
    assert "CDNA 3" not in rates.generations
