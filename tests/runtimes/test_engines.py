"""Engines besides vLLM: lines that they logged, rules of their sources by version, what they refuse, and how they
are started.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tonnage
from tonnage import read
from tonnage.catalogue import accelerator, cluster
from tonnage.estimate.answer.answers import serve
from tonnage.estimate.answer.launch import launch_command
from tonnage.estimate.inputs import Question
from tonnage.estimate.serving.memory import serving_memory
from tonnage.estimate.serving.overhead import captured, memory_share
from tonnage.estimate.serving.plans import ServingOptions, serving_plan
from tonnage.formulas import engines as e
from tonnage.kernel.errors import InvalidPlan, UnknownName
from tonnage.kernel.units import GIB, MIB
from tonnage.runtimes import serving_runtime, serving_runtimes
from tonnage.spec import ServingPlan

H100, RTX = "H100-SXM-80GB", "RTX-4090"


def made(model, machine=RTX, engine="llama.cpp", **plan):
    return serving_memory(
        read(model), ServingPlan.of_fields(engine=engine, **{"context": 8192, **plan}), accelerator(machine)
    )


def mib(memory, part):
    return memory.memory.child(part).value / MIB


def answered(model, machine, **options):
    return serve(read(model), cluster(machine), ServingOptions(**options))


# ---- llama.cpp: what it printed ----


def test_gemma_3_4b_at_32k_has_the_buffers_that_llama_fit_params_prints():
    """llama.cpp, pull request 22171: device 7401 model, 814 context, 517 compute [MiB]; the projector's file is not
    in them.
    """
    model = read("gemma-3-4b-pt")
    found = made("gemma-3-4b-pt", context=32768, weights="F16")
    tower = (
        sum(
            weight.num_parameters * count
            for branch in model.branches
            if branch.kind != "decoder"
            for weight, count in branch.weighted()
        )
        * 2
        / MIB
    )
    assert mib(found, "weights") - tower == pytest.approx(7401, abs=1)
    assert mib(found, "kv cache") == 814
    assert mib(found, "activations") == pytest.approx(517, abs=0.5)


def test_llama_3_8b_of_2024_has_the_buffers_that_ollama_logged():
    """Q4_0, four slots of 2048 tokens, b3600: CPU 281.81, CUDA0 4156.00, KV 1024.00, compute 560.00, host compute
    24.01, output 2.02 MiB.
    """
    found = made("meta-llama-3-8b", engine_version="b4000", context=2048, concurrency=4, weights="Q4_0")
    assert mib(found, "weights") == pytest.approx(4156.00, abs=0.02)
    assert (mib(found, "kv cache"), mib(found, "activations")) == (1024, 560)
    host = {part.name: part.value / MIB for part in found.host.children}
    assert host["weights"] == pytest.approx(281.81, abs=0.01)
    assert host["inputs of a batch"] == pytest.approx(24.01, abs=0.02)
    assert host["outputs"] == pytest.approx(2.02, abs=0.005)


def test_qwen_2_5_7b_has_the_cache_and_the_compute_buffer_that_llama_cpp_logged():
    """validation/infer_memory: KV self size 112.0 MiB and compute buffer 304.0 MiB at 2048 tokens."""
    found = made("qwen2.5-7b", context=2048)
    assert (mib(found, "kv cache"), mib(found, "activations")) == (112, 304)


def test_a_window_holds_itself_and_a_batch_since_2025_and_all_tokens_before():
    now, before = made("gemma-3-4b-pt", context=32768), made("gemma-3-4b-pt", context=32768, engine_version="b4000")
    assert mib(before, "kv cache") == 34 * 32768 * 4096 / MIB > mib(now, "kv cache") == 814


def test_layers_that_do_not_fit_stay_in_host_memory_with_their_cache():
    whole = made("llama-3.1-70b", weights="Q4_K_M")
    part = made("llama-3.1-70b", weights="Q4_K_M", layers_on_accelerator=41)
    assert mib(part, "kv cache") == mib(whole, "kv cache") / 2  # 40 of 80 layers and the head
    assert part.host.child("kv cache").value == part.memory.child("kv cache").value
    together = [each.memory.child("weights").value + each.host.child("weights").value for each in (whole, part)]
    assert together[0] == pytest.approx(together[1])


def test_experts_of_the_first_layers_stay_in_host_memory():
    whole, part, none = (made("qwen3-30b-a3b", weights="Q4_K_M", expert_layers_on_host=n) for n in (0, 24, 48))
    assert mib(whole, "weights") > mib(part, "weights") > mib(none, "weights") > 700
    assert mib(none, "kv cache") == mib(whole, "kv cache")
    moved = mib(whole, "weights") - mib(none, "weights")
    assert none.host.child("weights").value - whole.host.child("weights").value == pytest.approx(moved * MIB)


def test_several_accelerators_share_layers_and_the_head_counts_as_one():
    """llama.cpp, src/llama-model.cpp, load_tensors: 81 slots over four: 21, 20, 20 layers, and 19 with the head."""
    found = made("llama-3.1-70b", weights="Q4_K_M", pipeline_parallel_size=4, context=8192)
    assert [rank.per_token.value / (2 * 8 * 128 * 2) for rank in found.ranks] == [21, 20, 20, 19]
    assert (
        answered("llama-3.1-70b", "4xrtx-4090", weights="q4_k_m", context=8192).question["pipeline_parallel_size"].value
        == 4
    )


@pytest.mark.parametrize(("word", "bits"), [("q8_0", 8.5), ("q4_0", 4.5), ("f16", 16), ("f32", 32), ("iq4_nl", 4.5)])
def test_llama_cpp_holds_keys_and_values_in_its_own_types(word, bits):
    answer = answered("llama-3.1-8b", RTX, engine="llama.cpp", kv_cache=word, context=8192)
    assert answer.memory.child("kv cache").value == 8192 * 65536 * bits / 8


def test_on_a_processor_all_is_in_one_memory():
    found = made("llama-3.2-1b", "EPYC-9654", weights="Q8_0")
    assert found.host is None and mib(found, "runtime overhead") == 0


# ---- Ollama ----


@pytest.mark.parametrize(
    ("machine", "version", "tokens"),
    [
        ("rtx-4070", None, 4096),
        ("rtx-4090", None, 32_768),
        ("2xrtx-4090", None, 40_960),
        ("rtx-4090", "0.11", 4096),
        ("rtx-4090", "0.5", 2048),
    ],
)
def test_ollamas_context_follows_the_memory_and_was_short_before(machine, version, tokens):
    answer = answered("qwen3-8b", machine, engine="ollama", engine_version=version, weights="q4_k_m")
    assert answer.question["context"].value == tokens  # of 256k at most the model's own 40,960


# ---- SGLang ----


def share(version="", machine=H100, model="llama-3.1-8b", **plan):
    chosen = ServingPlan.of_fields(context=8192, engine="sglang", engine_version=version, **plan)
    return memory_share(serving_runtime("sglang", version), chosen, read(model), accelerator(machine))


@pytest.mark.parametrize(
    ("version", "plan", "expected"),
    # sglang/srt/server_args.py of each version
    [
        ("0.4.1", {}, 0.88),
        ("0.4.1", {"tensor_parallel_size": 8}, 0.81),
        ("0.4.6", {"tensor_parallel_size": 2}, 0.87),
        ("0.5.5", {}, 1 - (512 + 12288 + 512 + 128) / 81559),
        ("0.5.5", {"tensor_parallel_size": 8}, 1 - (512 + 12288 + 1024 + 1024) / 81559),
        ("", {}, 1 - (512 + 12288 + 512 + 128 + 8 * 58) / 81559),
    ],
)
def test_the_static_share_is_that_of_the_version(version, plan, expected):
    assert accelerator(H100).memory.reported_bytes == 81559 * MIB and len(captured(8192)) == 58
    assert share(version, **plan) == pytest.approx(round(expected, 3))


def test_sglang_0_4_6_leaves_13_gib_of_a_large_accelerator():
    mib_of = accelerator("H200-SXM-141GB").memory.reported_bytes / MIB
    assert share("0.4.6", "H200-SXM-141GB") == pytest.approx(1 - 13 * 1024 / mib_of, abs=0.0006)


def test_a_pool_of_sglang_is_its_static_part_less_the_weights():
    """A log of four 24 GB accelerators: 15.54 GB of weights, 6.09 free, 0.85 of what was free before: 46,611 tokens
    of 64 KiB.
    """
    pool = (15.54 + 6.09) * GIB - 15.54 * GIB - e.dynamic_bytes(U=(15.54 + 6.09) * GIB, u=0.85)
    assert pool / 65536 == pytest.approx(46_611, rel=0.001)
    found = made("qwen2.5-32b-instruct", RTX, "sglang", engine_version="0.4.1", tensor_parallel_size=4)
    assert found.fullest.per_token.value == 65536
    assert found.memory.child("weights").value / GIB == pytest.approx(15.54, abs=0.4)


def test_a_token_of_qwen3_30b_is_that_of_the_log_of_1_669_816():
    found = made("qwen3-30b-a3b", H100, "sglang")
    assert 1_669_816 * found.fullest.per_token.value / GIB == pytest.approx(2 * 76.44, abs=0.01)


def test_states_of_nemotron_are_those_of_the_log_and_take_their_part_of_the_pools():
    """A log with 48 slots, one more for padding: ssm state 6.46 GB, conv state 0.09 GB; 8192 bytes of keys a token."""
    found = made("nvidia-nemotron-nano-9b-v2", H100, "sglang").fullest.per_request
    states, tokens = (child.inputs["M"] for child in found.children)
    assert 49 * states / 5 / GIB == pytest.approx(6.46 + 0.09, abs=0.01)  # five slots of a request
    assert tokens == 8192 * 2 * 8192
    assert found.value == max(states / (0.9 / 1.9), tokens / (1 / 1.9))


def test_windows_have_four_fifths_of_the_tokens_and_had_none_of_their_own_before():
    now, before = (
        made("gpt-oss-120b", H100, "sglang", engine_version=v).fullest.per_request.value for v in ("", "0.5.5")
    )
    assert now == pytest.approx(8192 * 2048 * 18 * 1.8) and before == 8192 * 2048 * 36


def test_groups_of_attention_keep_all_of_it_and_share_the_requests_and_the_experts():
    cut = made("deepseek-v3", "H200-SXM-141GB", "sglang", tensor_parallel_size=8, concurrency=64)
    plan = {"attention_data_parallel_size": 8, "expert_parallel_size": 8, "concurrency": 64}
    groups = made("deepseek-v3", "H200-SXM-141GB", "sglang", **plan)
    assert groups.memory.child("kv cache").value == cut.memory.child("kv cache").value / 8
    assert groups.memory.child("weights").value > cut.memory.child("weights").value
    experts = 58 * 3 * 256 * 7168 * 2048 / 8
    assert groups.memory.child("weights").value > experts > 0.8 * groups.memory.child("weights").value


# ---- TensorRT-LLM ----


def test_tensorrt_llm_gives_nine_tenths_of_what_is_free_to_the_cache():
    found = made("llama-3.1-8b", H100, "tensorrt-llm", context=8192)
    usable = accelerator(H100).memory.usable_bytes
    fixed = found.memory.child("runtime overhead").children[0].value
    taken = found.memory.child("weights").value + found.memory.child("activations").value + fixed
    assert usable - found.fullest.besides_cache.value == pytest.approx(0.9 * (usable - taken))


def test_blocks_of_tensorrt_llm_hold_32_tokens_and_held_64():
    now, before = (
        made("llama-3.1-8b", H100, "tensorrt-llm", context=8200, engine_version=v).fullest.per_request.value
        for v in ("", "0.12")
    )
    assert (now, before) == (8224 * 131072, 8256 * 131072)


# ---- drafts, adapters, offload ----


def test_a_draft_model_brings_its_weights_and_its_cache():
    alone, drafted = (
        made("llama-3.1-8b", H100, "sglang", draft_tokens=3, draft_model=name) for name in ("", "llama-3.2-1b")
    )
    assert mib(drafted, "weights") - mib(alone, "weights") == pytest.approx(
        read("llama-3.2-1b").num_parameters() * 2 / MIB
    )
    assert drafted.fullest.per_token.value - alone.fullest.per_token.value == 16 * 8 * 64 * 2 * 2


def test_layers_of_multi_token_prediction_are_loaded_for_drafts_alone():
    without, drafted = (
        made("deepseek-v3", "H200-SXM-141GB", "vllm", tensor_parallel_size=8, draft_tokens=n) for n in (0, 1)
    )
    assert mib(drafted, "weights") > mib(without, "weights")
    assert drafted.fullest.per_token.value == without.fullest.per_token.value * 62 / 61


def test_adapters_take_rank_times_what_their_matrices_take_and_give():
    # Llama-3-8B's 41,943,040 parameters of rank 16, as a log of llama.cpp has them in fp32: LoRA buffer size 160.00 MiB
    with_four, without = (made("llama-3.1-8b", H100, "vllm", lora_adapters=n, lora_rank=16) for n in (4, 0))
    assert mib(with_four, "weights") - mib(without, "weights") == 4 * 80


def test_weights_in_host_memory_free_as_much_of_each_rank():
    kept, moved = (made("llama-3.1-8b", H100, "vllm", weights_on_host_bytes=size) for size in (0, 4 * GIB))
    assert kept.memory.child("weights").value - moved.memory.child("weights").value == 4 * GIB == moved.host.value


# ---- what engines refuse ----


@pytest.mark.parametrize(
    ("model", "machine", "options", "said"),
    [
        (
            "llama-3.1-8b",
            "a100",
            {"engine": "tensorrt-llm", "weights": "fp8"},
            "needs an accelerator with fp8 arithmetic.* Nearest: awq",
        ),
        (
            "llama-3.1-8b",
            "h100",
            {"engine": "trtllm", "weights": "nvfp4"},
            "needs an accelerator with fp4 arithmetic.* Nearest: fp8",
        ),
        (
            "llama-3.1-8b",
            "h100",
            {"engine": "tensorrt-llm", "weights": "q4_k_m"},
            "loads bf16.* Engines that load it: .*llama.cpp",
        ),
        (
            "llama-3.1-8b",
            "h100",
            {"engine": "llama.cpp", "weights": "awq"},
            "loads bf16.* Got awq-4bit-128g. Engines that load it: vllm, sglang",
        ),
        (
            "llama-3.1-8b",
            "h100",
            {"engine": "sglang", "engine_version": "0.4.1", "weights": "nvfp4"},
            "SGLang 0.4.1 loads",
        ),
        (
            "llama-3.1-8b",
            "3xh100",
            {"engine": "sglang", "tensor_parallel_size": 3},
            r"must divide num_attention_heads.*total_num_heads % tp_size == 0",
        ),
        (
            "qwen2.5-7b",
            "8xh100",
            {"engine": "vllm", "tensor_parallel_size": 8},
            r"must divide num_attention_heads of qwen2.5-7b \(28\).*Nearest: 4\.",
        ),
        (
            "llama-3.1-8b",
            "h100",
            {"engine": "vllm", "layers_on_accelerator": 20},
            "layers_on_accelerator is a setting of llama.cpp",
        ),
        (
            "llama-3.1-8b",
            "h100",
            {"engine": "llama.cpp", "weights_on_host": GIB},
            "weights_on_host is a setting of vllm, sglang",
        ),
        ("llama-3.1-8b", "h100", {"engine": "llama.cpp", "expert_layers_on_host": 2}, "has no experts"),
        (
            "llama-3.1-8b",
            "mi300x",
            {"engine": "tensorrt-llm"},
            "runs on accelerators of NVIDIA. Got MI300X of AMD. Nearest: vllm, sglang",
        ),
        ("llama-3.1-8b", "h100", {"lora_rank": 8}, "lora_rank is that of lora_adapters"),
        (
            "llama-3.1-8b",
            "h100",
            {"draft_tokens": 2, "acceptance": 1.5},
            "acceptance must be at least 0 and less than 1",
        ),
        (
            "llama-3.1-8b",
            "h100",
            {"engine": "ollama", "gpu_memory_utilization": 0.9},
            "gpu_memory_utilization is a setting of vllm",
        ),
    ],
)
def test_what_an_engine_refuses_names_its_rule_and_the_nearest_choice(model, machine, options, said):
    with pytest.raises(InvalidPlan, match=said):
        answered(model, machine, **options)


def test_an_unknown_version_lists_those_that_are_known():
    with pytest.raises(UnknownName, match="version of sglang"):
        answered("llama-3.1-8b", "h100", engine="sglang", engine_version="9")


@pytest.mark.parametrize(
    "written", ["trtllm", "TensorRT-LLM", "tensorrt_llm", "llamacpp", "llama-cpp", "TGI", "SGLang"]
)
def test_an_engine_is_known_however_it_is_written(written):
    assert serving_runtime(written).name in serving_runtimes()


def test_formats_that_llama_cpp_does_not_load_are_transformers_on_a_laptop():
    assert answered("llama-3.2-1b", "m4-max-128gb", context=4096).question["engine"].value == "llama.cpp"
    asked = answered("llama-3.2-1b", "m4-max-128gb", context=4096, weights="int4").question["engine"].value
    assert asked == "transformers"


# ---- every engine ----


@pytest.mark.parametrize("engine", [name for name in serving_runtimes() if "generate" in serving_runtime(name).serves])
def test_every_engine_answers_and_is_started_by_a_command(engine):
    on = {"neuron": "2xtrainium2", "mlx": "m3-ultra-96gb", "openvino": "2xarc-pro-b60-24gb"}.get(engine, "2xh100")
    name = "qwen3-30b-a3b" if serving_runtime(engine).host_experts else "llama-3.1-8b"
    answer = answered(name, on, engine=engine, context=8192, concurrency=4)
    assert answer.fits and answer.question["engine"].value == engine
    model, machine = read(name), cluster(on)
    asked = ServingOptions(engine=engine, context=8192, concurrency=4)
    assert name in launch_command(model, serving_plan(model, machine, asked, Question()), machine).lower()
    assert all(serving_runtime(name).launch for name in serving_runtimes())


@pytest.mark.parametrize(
    ("options", "command"),
    [
        (
            {"engine": "vllm", "tensor_parallel_size": 8, "kv_cache": "fp8", "max_num_seqs": 64},
            (
                "vllm serve meta-llama/Llama-3.1-8B --tensor-parallel-size 8 --max-model-len 8192 "
                "--kv-cache-dtype fp8_e4m3 --max-num-seqs 64"
            ),
        ),
        (
            {"engine": "sglang", "gpu_memory_utilization": 0.85},
            (
                "python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B --context-length 8192 "
                "--tp-size 8 --mem-fraction-static 0.85"
            ),
        ),
        (
            {"engine": "tensorrt-llm", "max_num_seqs": 32},
            "trtllm-serve meta-llama/Llama-3.1-8B --max_seq_len 8192 --tp_size 8 --max_batch_size 32",
        ),
        (
            {"engine": "llama.cpp", "kv_cache": "q8_0", "concurrency": 4, "layers_on_accelerator": 20},
            "llama-server -m Llama-3.1-8B-BF16.gguf -c 32768 -np 4 -ngl 20 -ctk q8_0 -ctv q8_0",
        ),
    ],
)
def test_a_command_says_what_the_plan_says_and_no_defaults(options, command):
    model, machine = read("llama-3.1-8b"), cluster("8xh100")
    plan = serving_plan(model, machine, ServingOptions(context=8192, **options), Question())
    assert launch_command(model, plan, machine) == command


SIZES = st.fixed_dictionaries(
    {
        "context": st.sampled_from([500, 8192, 131_072]),
        "concurrency": st.integers(1, 40),
        "tensor_parallel_size": st.sampled_from([1, 2, 4]),
        "weights": st.sampled_from([None, "bf16"]),
        "kv_cache": st.sampled_from(["bf16", "fp8"]),
    }
)
MODELS = ("llama-3.1-8b", "deepseek-v3", "gemma-3-27b-it", "qwen3.5-27b", "gpt-oss-120b", "nemotron-3-nano-30b-a3b")


@given(st.sampled_from([name for name in serving_runtimes() if name != "vllm"]), st.sampled_from(MODELS), SIZES)
def test_more_context_users_or_precision_never_cost_less_and_more_ranks_never_more(engine, model, sizes):
    plan = ServingPlan.of_fields(engine=engine, **sizes)
    chip = accelerator("H200-SXM-141GB")

    def needed(**more):
        return serving_memory(read(model), plan.with_fields(**more), chip).memory

    now = needed()
    floor = now.value * (1 - 1e-12)
    assert needed(context=sizes["context"] * 2).value >= floor
    assert needed(concurrency=sizes["concurrency"] + 1).value >= floor
    assert needed(kv_cache="fp32").value >= floor
    assert needed(weights="fp32").value >= floor
    cut = needed(tensor_parallel_size=sizes["tensor_parallel_size"] * 2)
    for part in ("weights", "kv cache"):
        assert cut.child(part).value <= now.child(part).value * (1 + 1e-12)


def test_weights_are_loaded_at_the_speed_of_the_drives_or_of_the_link():
    answer = answered("llama-3.1-8b", "h100", engine="vllm", context=8192, storage_read_bandwidth=2 * 10**9)
    assert answer.serving.load_seconds.value == pytest.approx(16.06e9 / 2e9, rel=0.001)
    quick = answered("llama-3.1-8b", "h100", engine="vllm", context=8192, storage_read_bandwidth=10**12)
    link = accelerator(H100).host_link.bytes_per_second
    assert quick.serving.load_seconds.value == pytest.approx(16.06e9 / link, rel=0.001)


def test_a_card_that_is_too_small_is_told_how_many_layers_it_holds():
    answer = answered("llama-3.1-70b", RTX, weights="Q4_K_M", context=8192)
    best = next(move for move in answer.advice if "layers_on_accelerator" in move.change)
    layers = best.change["layers_on_accelerator"]
    assert (
        best.fits and answered("llama-3.1-70b", RTX, weights="Q4_K_M", context=8192, layers_on_accelerator=layers).fits
    )
    assert not answered("llama-3.1-70b", RTX, weights="Q4_K_M", context=8192, layers_on_accelerator=layers + 1).fits


def test_a_table_is_filled_up_to_whole_64_rows_under_sglang():
    padded = made("gpt2", H100, "sglang", context=512).memory.child("weights").value
    assert (
        padded - made("gpt2", H100, "generic", context=512).memory.child("weights").value == (50304 - 50257) * 768 * 2
    )


@pytest.mark.parametrize("weights", ["fp8", "awq", "nvfp4"])
def test_vllm_refuses_formats_that_an_old_accelerator_has_no_kernels_for(weights):
    with pytest.raises(InvalidPlan, match=r"no kernels of .* for Volta .*V100.*Nearest: gptq"):
        tonnage.serve("llama-3.2-1b", on="v100-sxm2-32gb", weights=weights, context=4096)
    assert tonnage.serve("llama-3.2-1b", on="v100-sxm2-32gb", weights="gptq", context=4096).fits
    assert not any(
        "awq" in move["text"] or "fp8" in move["text"]
        for move in tonnage.serve("llama-3.2-1b", on="v100-sxm2-32gb", context=4096).advice
    )
