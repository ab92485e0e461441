"""KTransformers: where experts lie, how long the processor multiplies them, what is refused, how it is started."""

import pytest

import tonnage
from tonnage.catalogue.clusters import cluster
from tonnage.estimate.serving.memory import serving_memory
from tonnage.kernel.errors import InvalidInput, InvalidPlan, UnknownName
from tonnage.models import read
from tonnage.runtimes import serving_runtime
from tonnage.spec import ServingPlan

LAYERS, EXPERTS, CHOSEN = 58, 256, 8  # config.json of DeepSeek-V3: 61 layers, the first three dense
EXPERT = 3 * 7168 * 2048  # parameters
ROWS = 2 * 2048 + 7168  # of the three matrices of an expert
KT = "ktransformers"


def ask(model="deepseek-v3", on="rtx-4090", engine=KT, **said):
    return tonnage.serve(model, on=on, engine=engine, context=said.pop("context", 8192), advice=False, **said)


def held(**said):
    plan = ServingPlan.of_fields(context=4096, engine=KT, **said)
    return serving_memory(read("deepseek-v3"), plan, cluster("rtx-4090").accelerator)


def test_experts_that_no_gpu_holds_are_in_host_memory_in_four_bits_with_a_scale_a_row():
    int4 = EXPERT / 2 + 2 * ROWS
    assert held().host.value == pytest.approx(LAYERS * EXPERTS * int4, rel=1e-9)
    assert held(gpu_experts=16).host.value == pytest.approx(LAYERS * (EXPERTS - 16) * int4, rel=1e-9)
    assert held(host_method="AMXINT8").host.value == pytest.approx(LAYERS * EXPERTS * (EXPERT + 4 * ROWS), rel=1e-9)


def test_a_file_s_experts_take_its_own_types_of_each_layer():
    """llama.cpp, src/llama-quant.cpp: Q4_K_M has Q6_K for down projections of the first and the last eighth of the
    layers and of each third in between, Q4_K else; 144 and 210 bytes for 256 weights.
    """
    more = sum(i < 7 or i >= 53 or (i - 7) % 3 == 2 for i in range(3, 61))
    matrix = EXPERT // 3
    q4, q6 = matrix * 144 / 256, matrix * 210 / 256
    expected = EXPERTS * (LAYERS * 2 * q4 + more * q6 + (LAYERS - more) * q4)
    for method in ("q4_k_m", "LLAMAFILE"):
        assert held(host_method=method).host.value == pytest.approx(expected, rel=1e-9)
    assert held(weights="q4_k_m").host.value == pytest.approx(expected, rel=1e-9), "the file that is named"


def test_each_expert_of_a_layer_on_the_gpu_adds_its_bytes_in_the_checkpoint_s_fp8():
    none, some = held(), held(gpu_experts=3)
    fp8 = 3 * LAYERS * (EXPERT + 4 * EXPERT / 128**2)
    assert some.memory.children[0].value - none.memory.children[0].value == pytest.approx(fp8, rel=1e-6)


def test_the_gpu_has_room_for_a_layer_that_prompts_are_computed_with():
    """kt-kernel/README.md: prefill of whole layers on the GPU takes 9 GB more of Kimi-K2-Thinking."""
    plans = [
        ServingPlan.of_fields(context=4096, engine=KT, host_method="RAWINT4", gpu_prefill_tokens=tokens)
        for tokens in (0, 400)
    ]
    without, with_layer = (
        serving_memory(read("kimi-k2-thinking"), plan, cluster("h100").accelerator).memory.children[0] for plan in plans
    )
    assert with_layer.value - without.value == pytest.approx(9.5e9, rel=0.02)


def test_the_first_question_of_a_user_is_answered_with_both_memories_times_and_a_command():
    found = ask(host_memory=512_000_000_000)
    assert found.fits and found.host.capacity == 512e9
    assert found.host.memory.value == pytest.approx(327.3e9, rel=1e-3)
    serving = found.document.serving
    assert serving.tpot_band[0] < serving.tpot_seconds.value < serving.tpot_band[1]
    assert "python -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3" in serving.launch
    for word in ("--kt-method AMXINT4", "--kt-num-gpu-experts 0", "--kt-cpuinfer 9", "--kt-threadpool-count"):
        assert word in serving.launch
    assert any("89.6 GB/s" in warning for warning in found.warnings)


def test_host_memory_that_is_too_small_is_no_fit_and_says_how_much_is_missing():
    found = ask(host_memory=300_000_000_000)
    assert found.fits is False and found.status == 3
    assert "host memory" in found.document.verdict.missed
    assert any("25.41 GiB are missing" in warning for warning in found.warnings)


def test_experts_on_the_gpu_never_make_decoding_slower_and_more_bandwidth_makes_it_faster():
    said = {"model": "qwen3-30b-a3b", "on": "rtx-5090", "host_method": "BF16"}
    slow = {**said, "host_bandwidth": "89.6GB/s"}
    times = [ask(gpu_experts=n, **slow).serving.tpot_seconds.value for n in (0, 8, 24, 40)]
    assert times == sorted(times, reverse=True) and times[0] > 1.2 * times[-1]
    assert ask(host_bandwidth="307.2GB/s", **said).serving.tpot_seconds.value < times[0]


def test_a_token_s_experts_are_read_from_host_memory_and_each_layer_waits():
    """8 of 256 experts of 58 layers, each 22.04 MB in four bits, at the fitted share of 307.2 GB/s."""
    rules = serving_runtime(KT).host_experts
    found = ask(host_bandwidth="307.2GB/s", host_cores=32, input_tokens=64, output_tokens=64)
    experts = next(
        term.value for _, term in found.serving.tpot_seconds.walk() if term.name == "experts" and term.unit == "seconds"
    )
    touched = LAYERS * CHOSEN * (EXPERT / 2 + 2 * ROWS) / (307.2e9 * rules.bandwidth_share)
    assert experts == pytest.approx(touched + LAYERS * rules.layer_seconds, rel=0.02)


def test_prompts_are_computed_by_cores_or_by_the_gpu_that_their_experts_are_loaded_onto():
    said = {"host_method": "FP8", "host_bandwidth": "614.4GB/s", "input_tokens": 2048, "output_tokens": 16}
    few, many = (ask(host_cores=n, **said).serving.ttft_seconds.value for n in (16, 64))
    assert few > 3 * many
    loaded = ask(on="h100", host_cores=16, gpu_prefill_tokens=1024, **said).serving.ttft_seconds.value
    assert loaded < few
    short = {**said, "input_tokens": 512}
    hybrid, same = (
        ask(on="h100", host_cores=16, gpu_prefill_tokens=n, **short).serving.ttft_seconds.value for n in (None, 1024)
    )
    assert hybrid == same, "below the threshold"


@pytest.mark.parametrize(
    ("said", "error", "words"),
    [
        ({"model": "llama-3.1-8b"}, InvalidInput, "llama-3.1-8b has none. Nearest: sglang"),
        ({"gpu_experts": 300}, InvalidPlan, "from 0 to the 256 experts"),
        ({"host_method": "amxint5"}, UnknownName, "AMXINT4"),
        ({"gpu_prefill_tokens": 400}, InvalidPlan, "RAWINT4"),
        ({"expert_layers_on_host": 3}, InvalidInput, "a setting of llama.cpp"),
        ({"engine": "llama.cpp", "weights": "q4_k_m", "gpu_experts": 3}, InvalidInput, "a setting of ktransformers"),
        ({"on": "mi300x"}, InvalidPlan, "runs on accelerators of NVIDIA"),
    ],
)
def test_what_it_does_not_do_is_refused_with_the_nearest_that_is_right(said, error, words):
    with pytest.raises(error, match=words):
        ask(**said)


def test_fewer_experts_on_the_gpu_are_suggested_where_it_cannot_hold_so_many():
    found = tonnage.serve("deepseek-v3", on="rtx-4090", engine=KT, context=8192, gpu_experts=8, concurrency=1)
    assert found.fits is False
    assert any("--gpu-experts 0" in move.text for move in found.advice)


def test_the_checkpoint_s_own_four_bits_are_taken_where_nobody_names_a_method():
    found = ask(model="kimi-k2-thinking", on="h100", host_bandwidth="614.4GB/s")
    assert found.question["host_method"].value == "RAWINT4"
    assert "--kt-weight-path moonshotai/Kimi-K2-Thinking" in found.document.serving.launch


def test_its_own_server_of_2025_reads_files_and_runs_one_request():
    found = ask(engine_version="0.2.1", weights="q4_k_m", host_bandwidth="614.4GB/s")
    assert found.question["max_num_seqs"].value == 1 and found.question["host_method"].value == "q4_k_m"
    assert "local_chat.py" in found.document.serving.launch
    assert found.needed_bytes < 14 * 2**30  # the tutorial: at least 14 GB


def test_kt_and_kt_kernel_are_other_names_of_it():
    assert all(serving_runtime(name) is serving_runtime(KT) for name in ("kt", "kt-kernel", "KTransformers"))
