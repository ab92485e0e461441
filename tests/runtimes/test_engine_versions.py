"""Versions of engines: which rules an asked version takes, and what differs between them."""

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonnage import read
from tonnage.catalogue import accelerator
from tonnage.estimate.serving.forward_peak import batch_limits
from tonnage.estimate.serving.memory import serving_memory
from tonnage.estimate.serving.weights.rank import BESIDE, as_stored, rotary_tables
from tonnage.formulas import serving as g
from tonnage.kernel.errors import UnknownName
from tonnage.kernel.units import GIB, MIB
from tonnage.ops import StateCache
from tonnage.runtimes import serving_runtime
from tonnage.runtimes.parts.serving import known_versions, number_of
from tonnage.spec import ServingPlan

H100 = accelerator("H100-SXM-80GB")


def memory(name, engine_version="", card=H100, **sizes):
    return serving_memory(
        read(name), ServingPlan.of_fields(**{"context": 8192, "engine_version": engine_version, **sizes}), card
    )


@pytest.mark.parametrize(
    ("asked", "rules"),
    [
        ("", "0.33"),
        ("0.33.0", "0.33"),
        ("0.40", "0.33"),
        ("1.0", "0.33"),
        ("0.21", "0.21"),
        ("v0.20.1", "0.17"),
        ("0.19", "0.17"),
        ("0.16", "0.14"),
        ("0.13", "0.11"),
        ("0.10.2", "0.8"),
        ("V1 0.8.x", "0.8"),
        ("0.6.4.post1", "0.6"),
        ("0.7", "0.6"),
    ],
)
def test_a_version_takes_the_newest_rules_that_are_not_newer_than_it(asked, rules):
    assert serving_runtime("vllm", asked).version == f"vLLM {rules}"


def test_a_version_before_all_that_are_known_and_text_that_is_none_are_refused():
    with pytest.raises(
        UnknownName,
        match=r"rules known are those of 0\.33, 0\.21, .*0\.6; nothing is known of older ones\. Got '0\.2\.7'",
    ):
        serving_runtime("vllm", "0.2.7")
    with pytest.raises(UnknownName, match="a number is needed, such as"):
        serving_runtime("vllm", "latest")


@given(st.integers(0, 9), st.integers(0, 99))
def test_any_version_from_the_oldest_on_has_rules(major, minor):
    if (major, minor) >= (0, 6):
        found = serving_runtime("vllm", f"{major}.{minor}")
        assert number_of(found.version) <= (major, minor)


@pytest.mark.parametrize("engine", ["vllm", "transformers", "sglang", "tensorrt-llm", "llama.cpp", "ollama"])
def test_every_version_names_its_source_and_itself(engine):
    newest = serving_runtime(engine)
    assert known_versions(newest) == sorted(known_versions(newest), key=number_of, reverse=True)
    for version, each in newest.older.items():
        assert each.version.endswith(version) and version in known_versions(newest) and each.source and not each.older


def test_the_share_of_the_memory_was_nine_tenths_before_0_33():
    assert [serving_runtime("vllm", version).memory_share for version in ("", "0.21", "0.11", "0.6")] == [
        0.92,
        0.9,
        0.9,
        0.9,
    ]


@pytest.mark.parametrize(
    ("version", "card", "tokens"),
    [
        ("0.11", "A100-SXM-80GB", 2048),
        ("0.8", "A100-SXM-80GB", 8192),
        ("0.6", "A100-SXM-80GB", 16_384),
        ("0.6", "rtx-3090", 16_384),
    ],
)
def test_a_pass_has_as_many_tokens_as_that_version_gives_it(version, card, tokens):
    engine = serving_runtime("vllm", version)
    assert batch_limits(engine, ServingPlan(context=16_384, engine_version=version), accelerator(card)).tokens == tokens


def test_windows_give_back_what_they_no_longer_see_since_0_11():
    """vLLM 0.8.5: a model of full and sliding layers keeps every token of all of them."""
    before, since = (memory("gemma-3-27b-it", version, context=65_536).fullest for version in ("0.8", "0.11"))
    assert before.per_request.value == 62 * 2 * 16 * 128 * 2 * 65_536
    assert since.per_request.value < before.per_request.value / 2


def test_captured_graphs_are_beside_the_share_where_a_version_does_not_count_them():
    def overhead(version):
        return memory("llama-3.1-8b", version).memory.child("runtime overhead")

    assert "CUDA graphs" in [child.name for child in overhead("0.21").children]
    assert "CUDA graphs" not in [child.name for child in overhead("0.19").children]
    whole = overhead("0.19").child("left unused by vLLM (outside gpu_memory_utilization)")
    assert whole.value == pytest.approx(0.1 * H100.memory.usable_bytes)  # more than context and graphs take


def test_experts_workspace_stays_beside_the_sampler():
    """vLLM, TritonExperts.workspace_shapes: of 8192 tokens by 8 experts, two tensors as wide as the hidden state."""
    staying = memory("qwen3-30b-a3b", "0.19").memory.child("activations").child("expert workspace")
    assert staying.value == 2 * 8192 * 8 * 2048 * 2
    assert not any("experts" in child.name for child in memory("gpt-oss-20b").memory.child("activations").children)


def test_images_of_a_batch_stay_while_the_model_is_profiled():
    staying = memory("gemma-3-4b-it", "0.19").memory.child("activations")
    assert staying.child("images of a full batch").value == 32 * 3 * 896 * 896 * 2  # an image is 256 of 8192 tokens


@pytest.mark.parametrize(
    ("name", "tables"),
    # positions by numbers: of gemma-3's full layers eight times as long, of its windows its own; of YaRN the original
    # length times the factor
    [
        ("gemma-3-4b-it", [(8 * 131_072, 256), (131_072, 256)]),
        ("llama-3.1-8b", [(131_072, 128)]),
        ("deepseek-v3", [(163_840, 64)]),
        ("phi-2", [(2048, 32)]),
        ("gpt-oss-20b", [(131_072, 64)]),
        ("gpt2", []),
        ("mamba-2.8b", []),
        ("bloom-7b1", []),
    ],
)
def test_tables_of_positions_are_as_long_as_what_is_scaled_to(name, tables):
    assert rotary_tables(read(name)) == tables


@pytest.mark.parametrize(
    ("mebibytes", "slack"),
    [(129.5, 0.5), (135, 1), (270, 0), (26.25, 0), (9.5, 0), (43, 1), (12, 0), (11, 1), (10.5, 0)],
)
def test_the_allocator_gives_multiples_of_two_mebibytes_and_keeps_rests_up_to_one(mebibytes, slack):
    assert g.allocator_slack_bytes.evaluate(M=int(mebibytes * MIB)) == slack * MIB


def test_weights_of_one_input_are_one_tensor_to_vllm_and_not_to_transformers():
    """qwen2.5-7b: gate and up together are 259 MiB, which is one more; each alone 129.5, half of one more, as are
    table and head.
    """
    rounded = {
        engine: memory("qwen2.5-7b", version, engine=engine)
        .memory.child("weights")
        .child("rounded up by the allocator")
        .value
        for engine, version in (("vllm", ""), ("transformers", "4.46"))
    }
    assert rounded == {"vllm": (28 * 2 + 1) * MIB, "transformers": (28 * 1.5 + 1) * MIB}
    newest = memory("qwen2.5-7b", engine="transformers").memory.child("weights")
    assert "rounded up by the allocator" not in [child.name for child in newest.children]


def test_latent_attention_keeps_16_bit_copies_of_projections_that_are_quantised():
    weights = memory("deepseek-v3", tensor_parallel_size=8, context=4096).memory.child("weights")
    assert weights.child("absorbed MLA weights (W_UK, W_UV)").value == 61 * 512 * 128 * 256 * 2 / 8
    plain = memory("deepseek-v2-lite").memory.child("weights")
    assert "absorbed MLA weights (W_UK, W_UV)" not in [child.name for child in plain.children]


def test_prompts_are_computed_before_the_cache_of_their_answers_is_there():
    def needed(prompt):
        made = memory("llama-3.1-8b", engine="transformers", context=8192, max_num_batched_tokens=prompt)
        return made.memory.child("activations").value

    whole = memory("llama-3.1-8b", engine="transformers", context=8192).memory.child("activations").value
    assert needed(8192) == whole > needed(8000) > needed(4096)
    # what is less than the cache of the answers does not show
    assert needed(4096) == needed(1) == 32 * MIB  # the products' workspace on Hopper
    assert whole / GIB == pytest.approx(8192 * (4 * 4096 + 3 * 14_336) * 2 / GIB + 1 / 32)


# ---- other engines ----


@pytest.mark.parametrize(
    ("engine", "asked", "rules"),
    [
        ("sglang", "0.5.9", "SGLang 0.5.9"),
        ("sglang", "v0.5.12", "SGLang 0.5.10"),
        ("sglang", "0.5.23.post1", "SGLang 0.5.23"),
        ("sglang", "0.4.5", "SGLang 0.4.1"),
        ("sglang", "0.5", "SGLang 0.5.23"),
        ("sglang", "0.4.x", "SGLang 0.4.6"),
        ("trtllm", "1.3.0rc5", "TensorRT-LLM 1.3"),
        ("trtllm", "0.21", "TensorRT-LLM 0.12"),
        ("ollama", "0.12.3", "Ollama 0.11"),
        ("ollama", "Ollama 0.33.2", "Ollama 0.33.2"),
        ("llama.cpp", "b4000", "llama.cpp b4000"),
        ("llama.cpp", "b10481", "llama.cpp b10481"),
        ("llama.cpp", "b12000", "llama.cpp b10481"),
        ("gpt-fast", "1.0", "gpt-fast"),
    ],
)
def test_every_engine_takes_its_version_in_the_same_way(engine, asked, rules):
    assert serving_runtime(engine, asked).version == rules


@pytest.mark.parametrize(
    ("engine", "asked", "said"),
    [
        ("sglang", "nightly-dev", r"version of sglang: a number is needed, such as 0\.5\.23\. Got 'nightly-dev'"),
        ("sglang", "0.3.2", "nothing is known of older ones"),
        (
            "llama.cpp",
            "b9000",
            r"rules known are those of b10481, b4000, b2900; nothing is known of others\. Got 'b9000'",
        ),
        ("llama.cpp", "b3600", "nothing is known of others"),
        ("llama.cpp", "0.5", r"rules known are those of b10481, b4000, b2900\. Got '0\.5'"),
        ("vllm", "b4000", r"rules known are those of 0\.33"),
        ("gpt-fast", "latest", "a number is needed"),
    ],
)
def test_words_and_builds_that_nobody_read_are_refused(engine, asked, said):
    with pytest.raises(UnknownName, match=said):
        serving_runtime(engine, asked)


@pytest.mark.parametrize(
    ("engine", "plan"), [("sglang", {"max_num_batched_tokens": 512}), ("gpt-fast", {"max_num_batched_tokens": 512})]
)
def test_only_an_engine_whose_cache_grows_with_the_answer_frees_the_prompts_peak_for_it(engine, plan):
    def peak(**more):
        return memory("llama-3.1-8b", engine=engine, context=65_536, **plan, **more).memory.child("activations").value

    assert peak() > 0 and peak(concurrency=8) >= peak()
    prompts = {"engine": "transformers", "context": 65_536, "max_num_batched_tokens": 512}
    assert memory("llama-3.1-8b", **prompts).memory.child("activations").value < peak()


def test_weights_that_are_read_from_files_are_those_without_what_holding_them_takes():
    held = memory("deepseek-v3", tensor_parallel_size=8).memory.child("weights")
    read_of_it = as_stored(held)
    more = sum(child.value for child in held.children if child.name in BESIDE)
    assert 0 < more == held.value - read_of_it.value
    plain = memory("llama-3.1-8b", engine="sglang").memory.child("weights")
    assert as_stored(plain) is plain


def test_whoever_asks_for_the_engine_of_a_plan_asks_for_its_version():
    """`serving_runtime(plan.engine)` is the newest: limits, times and printed values would be of different versions."""
    found = []
    for path in Path("src/tonnage").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "serving_runtime" and len(node.args) == 1:
                asked = node.args[0]
                if isinstance(asked, ast.Attribute) or (isinstance(asked, ast.Name) and asked.id == "engine"):
                    found.append(f"{path}:{node.lineno}")
    assert not found


# ---- recurrent states of SGLang ----


def test_states_of_sglang_have_the_slots_of_its_version():
    """Three slots a request, and two for tracking where the newest takes extra_buffer; one where prefixes are not
    cached.
    """
    name = "qwen3-next-80b-a3b-instruct"
    sizes = {"engine": "sglang", "tensor_parallel_size": 4, "concurrency": 1, "context": 2048}

    def state(engine_version="", model=name, **more):
        kept = memory(model, engine_version, **{**sizes, **more}).fullest.per_request
        return next(term.inputs["M"] for _, term in kept.walk() if term.name == "states, as a part of all pools")

    one = state(prefix_caching=False)
    assert state("0.5.9") == state("0.5.5") == 3 * one
    assert state() == 5 * one
    assert state(model="lfm2-1.2b") == 3 * state(model="lfm2-1.2b", prefix_caching=False)


def test_without_cached_prefixes_sglang_sets_aside_a_state_for_each_request_that_may_run():
    sizes = {"engine": "sglang", "tensor_parallel_size": 4, "concurrency": 1, "context": 2048, "prefix_caching": False}
    split, exact = (
        memory("qwen3-next-80b-a3b-instruct", **sizes, max_num_seqs=most).fullest.per_request for most in (None, 128)
    )
    assert exact.combine == "sum" and split.combine == "max"
    assert exact.value == sum(child.value for child in exact.children) < split.value


def test_a_recurrence_of_sglang_is_in_fp32_unless_the_config_says_otherwise():
    model = read("granite-4.0-h-tiny")
    made = memory("granite-4.0-h-tiny", engine="sglang", concurrency=1, context=2048, prefix_caching=False)
    states = [
        count * cache.elements * (4 if cache.name == "recurrent state" else 2)
        for branch in model.branches
        for block, count in zip(branch.blocks, branch.counts(), strict=True)
        for op in block.ops
        for cache in op.caches()
        if isinstance(cache, StateCache)
    ]
    found = next(term for _, term in made.fullest.per_request.walk() if term.name == "states, as a part of all pools")
    assert found.inputs["M"] == sum(states)


def test_rows_of_hybrids_are_capped_as_an_answer_is():
    """The validator asks for the same room as `serve`: states count, also where a token more takes nothing."""
    from tonnage.catalogue import cluster
    from tonnage.estimate.serving_time.times import pool_tokens
    from tonnage.spec import Load
    from tonnage.validation import row_of
    from tonnage.validation.serving import ServingRow

    model, machine = read("qwen3-next-80b-a3b-instruct"), cluster("4xH100-SXM-80GB")
    load = Load(input_tokens=1024, output_tokens=1024, concurrency=4096)
    for engine, version in (("sglang", ""), ("sglang", "0.5.9"), ("vllm", ""), ("vllm", "0.11")):
        plan = ServingPlan(context=2048, concurrency=1, engine=engine, engine_version=version, tensor_parallel_size=4)
        made = serving_memory(model, plan, machine.accelerator)
        question = {
            "model": "qwen3-next-80b-a3b-instruct",
            "on": "4xH100-SXM-80GB",
            "engine": engine,
            "engine_version": version,
            "input_tokens": 1024,
            "output_tokens": 1024,
            "concurrency": 4096,
            "tensor_parallel_size": 4,
        }
        asked = {
            "id": "x",
            "verb": "serve",
            "question": question,
            "measured": {"quantity": "tpot", "value": 1, "unit": "s"},
        }
        answered = pool_tokens(model, plan, machine, made, machine.accelerator.memory.usable_bytes, load)
        assert answered == ServingRow(row_of(asked)).pool < 4096 * 2048
