"""Serving memory: the cache of every kind of attention, weights by how they are stored, and invariants."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tonnage import read
from tonnage.catalogue import accelerator, cluster
from tonnage.estimate.answer.answers import serve, train
from tonnage.estimate.serving.memory import serving_memory
from tonnage.estimate.serving.options import ServingOptions
from tonnage.kernel.errors import InvalidPlan, MissingDatum, UnknownName
from tonnage.kernel.term import Term
from tonnage.kernel.units import GIB
from tonnage.spec import ServingPlan

MODELS = (
    "llama-3.1-8b",
    "deepseek-v3",
    "gemma-3-27b-it",
    "qwen3.5-27b",
    "gpt-oss-120b",
    "nemotron-3-nano-30b-a3b",
    "mixtral-8x7b",
)
H100 = "H100-SXM-80GB"
CHILDREN = ["weights", "kv cache", "activations", "communication buffers", "runtime overhead"]


def memory(model, **sizes):
    return serving_memory(read(model), ServingPlan.of_fields(**{"context": 8192, **sizes}), accelerator(H100))


# GiB of one request of 131,072 tokens with 16-bit keys and values: from the configs, as vLLM counts them
# (research on peers, section 4); the second figure is state or window that comes on top.
KV_TABLE = {
    "llama-3.1-8b": (16.0, 0),
    "deepseek-v3": (8.58, 0),
    "kimi-k2-instruct": (8.58, 0),
    "gpt-oss-120b": (4.50, 0.005),
    "gemma-4-26b-a4b": (2.5, 0.2),
    "qwen3.5-27b": (8.0, 0.14),
    "nemotron-3-nano-30b-a3b": (0.75, 0.046),
    "mimo-v2-flash": (2.81, 0.03),
    "llama-4-scout-17b-16e": (6.0, 1.125),
    "glm-5": (10.97, 1.26),
}


@pytest.mark.parametrize("name", KV_TABLE)
def test_the_cache_of_one_request_is_what_the_architecture_keeps(name):
    cache = memory(name, context=131_072).fullest.kept.value / GIB
    assert cache == pytest.approx(sum(KV_TABLE[name]), abs=0.012)


def test_the_indexer_of_glm_5_keeps_132_bytes_a_token_and_layer():
    assert memory("glm-5", context=131_072).fullest.kept.value == 131_072 * 78 * (576 * 2 + 132)


def test_a_full_window_stops_growing_and_full_attention_does_not():
    before, after = (
        memory("gpt-oss-120b", context=1024).fullest.kept_per_token.value,
        memory("gpt-oss-120b", context=64).fullest.kept_per_token.value,
    )
    assert before == 18 * 2048 and after == 36 * 2048


@pytest.mark.parametrize("name", MODELS)
def test_memory_is_the_sum_of_the_five_parts_that_the_contract_names(name):
    answer = serve(read(name), cluster(H100), ServingOptions(context=4096))
    assert [child.name for child in answer.memory.children] == CHILDREN
    assert answer.memory.value == sum(child.value for child in answer.memory.children)


def as_stored(made):
    """The weights without what holding them takes beyond their bytes."""
    beside = ("rounded up by the allocator", "RoPE tables", "absorbed MLA weights (W_UK, W_UV)")
    return sum(child.value for child in made.memory.child("weights").children if child.name not in beside)


@pytest.mark.parametrize(
    ("model", "gigabytes"),
    # model.safetensors.index.json's total_size of the published checkpoints
    [("llama-3.1-8b", 16.060522496), ("gpt-oss-120b", 65.248815744), ("gpt-oss-20b", 13.761264768)],
)
def test_weights_as_stored_are_those_of_the_published_files(model, gigabytes):
    assert as_stored(memory(model)) / 1e9 == pytest.approx(gigabytes, rel=0.001)


def test_fp8_weights_of_deepseek_v3_are_the_checkpoint_without_its_draft_layer():
    # 688.59 GB with multi-token prediction, whose layer and second tables are 14.8 GB
    assert 671e9 < as_stored(memory("deepseek-v3")) < 675e9


@pytest.mark.parametrize(
    ("weights", "bits"), [("bf16", 16), ("fp8", 8), ("int8", 8), ("awq", 4.15), ("nf4", 4.5), ("mxfp4", 4.25)]
)
def test_weights_asked_for_in_a_precision_take_its_bits(weights, bits):
    model = read("llama-3.1-70b")
    quantised = memory("llama-3.1-70b", weights=weights).memory.child("weights").value
    plain = model.num_embedding_parameters() * 2
    assert (quantised - plain) * 8 / (model.num_parameters() - model.num_embedding_parameters()) == pytest.approx(
        bits, rel=0.02
    )


def test_a_gguf_file_type_is_a_mixture():
    # llama.cpp's table for Llama-3.1-8B: Q4_K_M is 4.58 GiB of tensors
    assert as_stored(memory("llama-3.1-8b", weights="Q4_K_M")) / GIB == pytest.approx(4.58, abs=0.005)


SIZES = st.fixed_dictionaries(
    {
        "context": st.sampled_from([512, 8192, 131_072]),
        "concurrency": st.integers(1, 64),
        "tensor_parallel_size": st.sampled_from([1, 2, 4]),
        "pipeline_parallel_size": st.sampled_from([1, 2, 4]),
        "weights": st.sampled_from([None, "fp8", "awq"]),
        "kv_cache": st.sampled_from([None, "fp8"]),
    }
)


@given(st.sampled_from(MODELS), SIZES)
def test_more_context_users_or_precision_never_cost_less(name, sizes):
    now = memory(name, **sizes).memory.value
    assert memory(name, **{**sizes, "context": sizes["context"] * 2}).memory.value >= now
    assert memory(name, **{**sizes, "concurrency": sizes["concurrency"] + 1}).memory.value >= now
    assert memory(name, **{**sizes, "kv_cache": "fp32"}).memory.value >= now
    assert memory(name, **{**sizes, "weights": "fp32"}).memory.value >= now


@given(st.sampled_from(MODELS), SIZES)
def test_more_ranks_never_hold_more_weights_or_cache_each(name, sizes):
    stages = memory(name, **sizes).ranks
    wider = memory(name, **{**sizes, "tensor_parallel_size": sizes["tensor_parallel_size"] * 2}).ranks
    for stage, cut in zip(stages, wider, strict=True):
        for part in ("weights", "kv cache"):
            assert cut.memory.child(part).value <= stage.memory.child(part).value * (1 + 1e-12)


def test_concurrency_is_the_most_that_fits_and_one_more_does_not():
    options = ServingOptions(context=32768)
    most = int(serve(read("llama-3.1-8b"), cluster(H100), options).serving.concurrency.value)
    assert serve(read("llama-3.1-8b"), cluster(H100), replace(options, concurrency=most)).fits
    assert not serve(read("llama-3.1-8b"), cluster(H100), replace(options, concurrency=most + 1)).fits


def test_tokens_of_cache_are_near_what_vllm_logged():
    """vLLM 0.19 on an H100 at 0.95 of its memory: Qwen2.5-7B held 1,096,000 tokens (validation/infer_memory.yaml)."""
    answer = serve(read("qwen2.5-7b-instruct"), cluster(H100), ServingOptions(context=8192))
    per_token = answer.serving.kv_bytes_per_token.value
    room = answer.usable_bytes - (answer.needed_bytes - answer.serving.kv_bytes_per_request.value)
    difference_of_shares = (0.95 - 0.92) * answer.usable_bytes
    assert (room + difference_of_shares) / per_token == pytest.approx(1_096_000, rel=0.02)


def test_the_default_spreads_over_the_node_as_far_as_heads_divide():
    answer = serve(read("llama-3.1-8b"), cluster("8x" + H100))
    assert answer.question["tensor_parallel_size"].value == 8
    odd = serve(read("qwen2.5-7b-instruct"), cluster("8x" + H100))  # 28 query heads, 4 key/value heads
    assert odd.question["tensor_parallel_size"].value == 4 and odd.question["replicas"].value == 2


def test_what_does_not_divide_or_exist_is_refused_with_the_nearest_choice():
    model, machine = read("llama-3.1-8b"), cluster("8x" + H100)
    with pytest.raises(InvalidPlan, match="must divide the cluster's 8 accelerators"):
        serve(model, machine, ServingOptions(tensor_parallel_size=3))
    with pytest.raises(InvalidPlan, match="must be from 1 to"):
        serve(model, machine, ServingOptions(concurrency=0))
    with pytest.raises(UnknownName, match="Did you mean"):
        serve(model, machine, ServingOptions(weights="q4_k_mm"))
    with pytest.raises(UnknownName, match="serving engine"):
        serve(model, machine, ServingOptions(engine="vlllm"))
    with pytest.raises(InvalidPlan, match="no experts"):
        serve(model, machine, ServingOptions(expert_parallel_size=2))


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
@pytest.mark.parametrize(("tensor", "groups"), [(None, 32), (8, 4)])
def test_ranks_of_experts_beyond_a_stage_are_refused_with_the_groups_of_attention_that_have_them(
    engine, tensor, groups
):
    """vLLM, docs/serving/expert_parallel_deployment.md: the expert ranks are all tensor x data parallel ranks."""
    model, machine = read("deepseek-v3"), cluster("4x8x" + H100)
    wide = {"engine": engine, "tensor_parallel_size": tensor, "expert_parallel_size": 32}
    with pytest.raises(InvalidPlan, match=rf"32 is valid with attention_data_parallel_size {groups}\."):
        serve(model, machine, ServingOptions(**wide))
    answer = serve(model, machine, ServingOptions(**wide, attention_data_parallel_size=groups))
    assert answer.question["expert_parallel_size"].value == 32


def test_ranks_of_experts_that_no_groups_of_the_cluster_have_are_refused_without_a_hint():
    model = read("deepseek-v3")
    for machine, ranks in (("8x" + H100, 32), ("4x8x" + H100, 24)):
        with pytest.raises(InvalidPlan, match=r"Nearest: 8\.$"):
            serve(model, cluster(machine), ServingOptions(expert_parallel_size=ranks))


def test_a_context_beyond_the_model_is_answered_with_a_warning():
    answer = serve(read("llama-2-7b"), cluster(H100), ServingOptions(context=8192))
    assert any("beyond the 4096 tokens" in warning for warning in answer.warnings)


@pytest.fixture
def stranger(tmp_path):
    """A model of an architecture that nobody described, with its tensors: 40 MB of 16-bit weights by the header."""
    header = {
        f"model.layers.{i}.mixer.weight": {
            "dtype": "BF16",
            "shape": [1000, 2000],
            "data_offsets": [4_000_000 * i, 4_000_000 * (i + 1)],
        }
        for i in range(10)
    }
    text = json.dumps(header).encode()
    path = tmp_path / "model.safetensors"
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + 40_000_000)
    (tmp_path / "config.json").write_text(
        json.dumps({"architectures": ["StrangeForCausalLM"], "model_type": "strange"})
    )
    return read(str(tmp_path))


def test_a_model_known_by_its_tensors_alone_has_exact_weights_and_no_verdict(stranger):
    answer = serve(stranger, cluster(H100))
    assert answer.memory.value == 40_000_000 and answer.fits is None and answer.status == 4
    assert "no known architecture" in answer.warnings[-1]
    assert answer.to_dict()["verdict"]["fits"] is None


def test_weights_alone_can_be_too_much(stranger):
    answer = serve(stranger, cluster(H100), reserve_bytes=cluster(H100).accelerator.memory.usable_bytes - 1000)
    assert answer.fits is False and answer.status == 3


def test_training_what_is_known_by_its_tensors_alone_is_a_missing_datum(stranger):
    with pytest.raises(MissingDatum):
        train(stranger, cluster(H100))


def test_a_quantisation_that_nobody_described_is_a_missing_datum():
    model = replace(read("llama-3.1-8b"), quantization={"quant_method": "mystery"})
    with pytest.raises(MissingDatum, match="mystery"):
        serve(model, cluster(H100))


def test_requests_are_shared_among_replicas_and_the_fullest_is_answered_for():
    answer = serve(
        read("llama-3.1-8b"), cluster("8x" + H100), ServingOptions(context=8192, concurrency=20, tensor_parallel_size=1)
    )
    assert answer.question["replicas"].value == 8
    assert answer.question["concurrency_per_replica"].value == 3
    assert answer.memory.child("kv cache").value == 3 * 2**30
    alone = serve(read("llama-3.1-8b"), cluster(H100), ServingOptions(context=8192))
    assert answer.serving.concurrency.value == 8 * alone.serving.concurrency.value


def test_all_replicas_together_hold_the_concurrency_and_one_more_does_not_fit():
    options = ServingOptions(context=32768, tensor_parallel_size=2)
    most = int(serve(read("llama-3.1-8b"), cluster("8x" + H100), options).serving.concurrency.value)
    held, beyond = (
        serve(read("llama-3.1-8b"), cluster("8x" + H100), replace(options, concurrency=each))
        for each in (most, most + 1)
    )
    assert held.needed_bytes <= held.usable_bytes < beyond.needed_bytes
    assert held.tight  # a full accelerator is inside the error band


def test_more_requests_than_the_engine_runs_at_once_are_said_to_wait():
    answer = serve(read("llama-3.1-8b"), cluster(H100), ServingOptions(context=256, concurrency=1500))
    assert any("at most 1024 requests" in warning for warning in answer.warnings)


def test_requests_that_an_engine_prints_fewer_of_are_explained():
    answer = serve(read("gemma-3-27b-it"), cluster(H100), ServingOptions(context=8192))
    assert any("prints fewer requests" in warning for warning in answer.warnings)
    assert not any("fewer requests" in warning for warning in serve(read("llama-3.1-8b"), cluster(H100)).warnings)


def test_tokens_in_flight_are_of_all_requests_together():
    """vLLM admits a request with a window and a whole step's tokens; a step has no more of them for 64 requests."""

    def kv_cache(users: int) -> Term:
        options = ServingOptions(context=8192, concurrency=users)
        return serve(read("gemma-3-27b-it"), cluster("2xH100-SXM-80GB"), options).memory.child("kv cache")

    one, two, many = (kv_cache(users) for users in (1, 2, 64))
    in_flight = one.child("tokens in flight").value
    assert many.child("tokens in flight").value == in_flight > two.value - one.value
    assert many.value == pytest.approx(in_flight + 64 * (one.value - in_flight))
    plain = serve(read("llama-3.1-8b"), cluster(H100), ServingOptions(context=8192)).memory.child("kv cache")
    assert "tokens in flight" not in {child.name for child in plain.children}


@pytest.mark.parametrize(
    "wrong",
    [
        {"gpu_memory_utilization": 0},
        {"gpu_memory_utilization": 1.2},
        {"max_num_seqs": 0},
        {"max_num_batched_tokens": -1},
        {"engine": "transformers", "enforce_eager": True},
        {"engine": "transformers", "gpu_memory_utilization": 0.9},
    ],
)
def test_settings_of_an_engine_out_of_their_range_are_refused(wrong):
    with pytest.raises(InvalidPlan, match=next(name for name in wrong if name != "engine")):
        serve(read("llama-3.1-8b"), cluster(H100), ServingOptions(**wrong))


@pytest.mark.parametrize(
    ("model", "said"),
    [("t5-small", "runs no model of an encoder and a decoder"), ("mpt-7b", "the last version that did is 0.28.0")],
)
def test_vllm_is_not_the_default_for_what_it_does_not_run_and_is_warned_about_when_asked_for(model, said):
    answer = serve(read(model), cluster(H100))
    assert answer.question["engine"].value == "transformers" and said in answer.question["engine"].why
    insisted = serve(read(model), cluster(H100), ServingOptions(engine="vllm"))
    assert any(said in warning for warning in insisted.warnings)


def test_vllm_on_a_laptop_is_answered_with_a_warning():
    answer = serve(read("llama-3.2-1b"), cluster("m4-max-128gb"), ServingOptions(engine="vllm", context=4096))
    assert any("may not hold" in warning for warning in answer.warnings)


def test_the_default_leaves_room_for_the_pipeline_stages_that_were_asked_for():
    asked = ServingOptions(pipeline_parallel_size=2, context=8192)
    for machine, tensor in (("8x" + H100, 4), ("2x8x" + H100, 8), (H100.replace("H100", "2xH100"), 1)):
        assert serve(read("llama-3.1-8b"), cluster(machine), asked).question["tensor_parallel_size"].value == tensor


def test_files_of_llama_cpp_are_run_by_it_and_another_engine_is_warned_about():
    for machine in ("rtx-4090", "m4-max-128gb"):
        answer = serve(read("qwen3-8b"), cluster(machine), ServingOptions(context=4096, weights="Q4_K_M"))
        assert answer.question["engine"].value == "llama.cpp"
        assert not any("GGUF" in warning for warning in answer.warnings)
    for engine, said in (
        ("vllm", "judged as vllm would run it"),
        ("transformers", "dequantises GGUF weights when it loads them"),
    ):
        asked = ServingOptions(context=4096, weights="Q4_K_M", engine=engine)
        answer = serve(read("qwen3-8b"), cluster("rtx-4090"), asked)
        assert any(said in warning for warning in answer.warnings)


def test_towers_are_said_to_be_asked_for_text_alone():
    assert any("text alone" in warning for warning in serve(read("gemma-3-4b-it"), cluster(H100)).warnings)


def test_rwkv_is_not_served_by_vllm():
    assert (
        serve(read("rwkv-4-3b-pile"), cluster(H100), ServingOptions(context=1024)).question["engine"].value
        == "transformers"
    )
