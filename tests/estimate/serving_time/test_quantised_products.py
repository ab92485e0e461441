"""How llama.cpp multiplies quantised weights by build and chip, grouped products of experts, weights in host memory."""

import numpy as np
import pytest

from tonnage import read
from tonnage.catalogue import accelerator
from tonnage.catalogue.clusters import cluster
from tonnage.estimate.serving_time.chip_rates import half_sum_peak, scaled_integer_peak
from tonnage.estimate.serving_time.host_weights import HOST_SHARE
from tonnage.estimate.serving_time.rates import serving_rates
from tonnage.estimate.serving_time.times import pass_time
from tonnage.formulas import passes as f
from tonnage.runtimes import serving_runtime
from tonnage.runtimes.llama_cpp import ROWS_OF_VECTORS, SCALE_OPERATIONS
from tonnage.spec import ServingPlan

DENSE = read("llama-3.1-8b", offline=True)
MIXTURE = read("qwen3-30b-a3b", offline=True)
OLD = "b2900"


def passes(model=DENSE, on="rtx-3090", weights="q4_k_m", engine="llama.cpp", version="", **said):
    plan = ServingPlan.of_fields(context=4096, engine=engine, engine_version=version, weights=weights, **said)
    return pass_time(model, plan, cluster(on))


def prompt(made, tokens=512):
    return made.spent(tokens, tokens * tokens / 2, 0, 0)


def test_sums_of_integers_that_nobody_scales_come_at_the_peak_and_every_operation_makes_them_slower():
    chip = accelerator("rtx-4090")
    rates = [scaled_integer_peak(chip, "int8", operations) for operations in (0, 3, 4, 5, 7)]
    assert rates[0] == pytest.approx(chip.peak("int8"))
    assert rates == sorted(rates, reverse=True)
    # 3 operations on each of 32 products: 6 FLOP of the lanes beside 64 of the tensor cores
    seconds = 64 / chip.peak("int8") + 6 / chip.dense_flops["fp32"]
    assert rates[1] == pytest.approx(64 / seconds)


def test_a_chip_of_more_tensor_cores_for_its_lanes_reaches_a_smaller_share_of_them():
    shares = [
        scaled_integer_peak(chip, "int8", 3) / chip.peak("int8")
        for chip in (accelerator("mi50"), accelerator("rtx-3090"), accelerator("a100"))
    ]
    assert shares == sorted(shares, reverse=True)


def test_types_with_minima_or_two_scales_take_more_operations_than_those_with_one_scale():
    assert SCALE_OPERATIONS["q4_0"] == SCALE_OPERATIONS["q8_0"] == 3
    assert SCALE_OPERATIONS["q4_0"] < SCALE_OPERATIONS["q6_k"] < SCALE_OPERATIONS["q4_k"] < SCALE_OPERATIONS["q2_k"]
    made = [prompt(passes(weights=weights)).products for weights in ("q4_0", "q4_1")]
    assert made[0] < made[1]


def test_graphics_cards_sum_in_fp16_at_twice_the_quoted_rate_and_others_at_it():
    assert half_sum_peak(accelerator("rtx-3090"), "fp16") == pytest.approx(142e12)
    for name in ("a100", "h100", "rtx-a6000"):
        chip = accelerator(name)
        assert half_sum_peak(chip, "fp16") == pytest.approx(chip.peak("fp16"), rel=0.01)
    chip = accelerator("mi50")
    assert half_sum_peak(chip, "fp16") == chip.peak("fp16")


def test_builds_of_may_2024_write_all_weights_out_for_more_rows_than_their_vector_kernels_take():
    made = passes(version=OLD)
    few, more = (made.spent(0, 0, rows, 1024.0 * rows).products for rows in (ROWS_OF_VECTORS, ROWS_OF_VECTORS + 1))
    weights = sum(part.flops / 2 for part in made.works[0].products if part.is_packed)
    written = f.expanded_bytes.evaluate(n_weights=weights) / made.bandwidth
    assert more - few > 2 * written  # written once and read once
    assert passes().stored_rows == 0


def test_intels_gpus_have_no_integer_kernels_and_apples_expand_weights_on_the_chip():
    (intel,) = {part.compute for part in passes(on="arc-pro-b60").works[0].products}
    assert intel in ("bf16", "fp16")
    assert passes(on="arc-pro-b60").stored_rows == ROWS_OF_VECTORS
    assert passes(on="apple-m2-ultra-192gb", version=OLD).stored_rows == 0
    assert "int8" in {part.compute for part in passes(on="rx-7900-xtx").works[0].products}


def test_scores_are_written_to_memory_by_builds_without_flash_attention_alone():
    old, new = passes(version=OLD), passes()
    assert old.works[0].attending[0].scores == 32
    assert new.works[0].attending[0].scores == 0
    deep = [made.spent(512, 512 * 8192.0, 0, 0).attention for made in (old, new)]
    written = f.score_bytes.evaluate(n_pairs=512 * 8192 * 32) * DENSE.num_layers / old.bandwidth
    assert deep[0] - deep[1] >= written


@pytest.mark.parametrize(("on", "version"), [("rtx-3090", OLD), ("rtx-3090", ""), ("arc-pro-b60", ""), ("mi50", OLD)])
@pytest.mark.parametrize("model", [DENSE, MIXTURE])
def test_more_rows_never_take_less_time_and_arrays_take_what_each_takes(on, version, model):
    made = passes(model, on, version=version)
    rows = [1.0, 8.0, 9.0, 16.0, 64.0, 128.0, 512.0]
    each = [made.seconds(n, n * n / 2, 0, 0) for n in rows]
    assert each == sorted(each)
    many = np.array(rows)
    assert made.seconds(many, many * many / 2, 0 * many, 0 * many) == pytest.approx(each)


def test_weights_are_unpacked_once_for_each_tile_of_128_rows_and_never_for_vectors():
    once, twice = (f.unpack_seconds.evaluate(n_weights=1e9, n_unpack=10, T=rows, P_lanes=20e12) for rows in (128, 256))
    assert once == pytest.approx(1e9 * 10 / 10e12)
    assert twice == 2 * once
    assert f.unpack_seconds.evaluate(n_weights=1e9, n_unpack=10, T=16, P_lanes=20e12) == once
    made = passes()
    few, more = (made.spent(0, 0, rows, 1024.0 * rows).products for rows in (ROWS_OF_VECTORS, ROWS_OF_VECTORS + 1))
    assert more > few


def test_kernels_of_one_vendor_have_rates_of_their_own():
    rates = serving_rates()
    assert passes(on="mi50").engine is rates.engines["llama.cpp on AMD"]
    assert passes(on="apple-m2-ultra-192gb", version=OLD).engine is rates.engines["llama.cpp on Apple"]
    assert passes(on="rtx-4090").engine is rates.engines["llama.cpp"]
    assert passes(on="rtx-4090", version=OLD).engine is rates.engines["llama.cpp before b4000"]
    assert passes(on="mi300x", engine="vllm", weights=None).engine is rates.engines["vllm"]


def test_tiles_of_experts_hold_twice_their_rows_until_they_are_128_wide():
    assert f.tiled_rows.evaluate(T=1) == 8
    assert f.tiled_rows.evaluate(T=16) == 32
    assert f.tiled_rows.evaluate(T=64) == 128
    assert f.tiled_rows.evaluate(T=1000) == 1064


def test_what_tiles_load_bounds_grouped_products_where_a_chip_computes_much_for_its_memory():
    rows = 4096
    bound, computing = (passes(MIXTURE, on, weights=None, engine="vllm") for on in ("h100", "h20"))
    for made, least in ((bound, "tiles"), (computing, "arithmetic")):
        (experts,) = made.works[0].experts
        flops = rows * experts.top_k * experts.flops
        tiles = f.grouped_tile_bytes.evaluate(C=flops, w=2, n_reuse=made.rates.reuse) / made.bandwidth
        arithmetic = flops / made.chip.peak("bf16") / made._share("bf16", False)
        assert (tiles > arithmetic) == (least == "tiles")
        assert prompt(made, rows).experts >= experts.layers * max(tiles, arithmetic)


def test_prompts_read_weights_in_host_memory_through_a_copy_that_is_not_pinned():
    said = {"weights": "q4_k_m", "on": "rtx-5090", "expert_layers_on_host": 20, "host_bandwidth": 90e9}
    made = passes(MIXTURE, **said)
    link, own = made.chip.host_link.bytes_per_second, 90e9 * HOST_SHARE
    decoding, prompts = made.host._rate(0), made.host._rate(512)
    assert decoding == pytest.approx(own)
    assert prompts == pytest.approx(1 / (1 / own + 1 / link))
    assert prompts < min(own, link)


def test_the_rules_of_builds_before_integer_tensor_cores_are_asked_for_by_their_number():
    old = serving_runtime("llama.cpp", OLD)
    assert not old.integer_products
    assert old.stored_rows["NVIDIA"] == ROWS_OF_VECTORS
    assert serving_runtime("llama.cpp").integer_products == ("int8", "fp8")
