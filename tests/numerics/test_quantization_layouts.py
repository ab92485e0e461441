"""quantization_config as tools publish it on the Hub, and what it says each matrix of a model is stored in."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tonnage import read
from tonnage.estimate.serving.weights.storage import WeightPlace, storage, stored_bytes
from tonnage.kernel.errors import InvalidInput, MissingDatum, TonnageError
from tonnage.numerics.quantization import Module, Modules, layout

LLAMA, MIXTRAL, QWEN_MOE, VISION = "llama-3.1-8b", "mixtral-8x7b", "qwen3-30b-a3b", "qwen2.5-vl-7b-instruct"


def quantised(name, config, **changes):
    return replace(read(name), quantization=config, tensors=None, **changes)


def bits(model, name, layer=0, kind="layer"):
    """Stored bits of each weight of a tensor, its scales included."""
    branch = model.decoder if kind == "layer" else next(b for b in model.branches if b.kind == kind)
    block = branch.blocks[branch.layers[layer]]
    loose = [weight for op in (*branch.before, *branch.after) for weight in op.weights()]
    found = next(weight for weight in (*block.weights(), *loose) if weight.name == f"{name}.weight")
    place = WeightPlace("outside") if found in loose and kind == "layer" else WeightPlace(kind, layer)
    return 8 * storage(model, None).bytes_of(found, place) / found.num_parameters


GPTQ = {
    "bits": 4,
    "group_size": 128,
    "damp_percent": 0.01,
    "desc_act": True,
    "sym": True,
    "true_sequential": True,
    "quant_method": "gptq",
    "model_file_base_name": "model",
}


def test_gptq_stores_scale_and_zero_of_each_group_and_the_group_of_each_column():
    model = quantised(LLAMA, GPTQ)
    # qweight + scales + qzeros, and g_idx: int32 a column, for all 4096 (k_proj: 1024) rows
    assert bits(model, "self_attn.q_proj") == 4 + (16 + 4) / 128 + 32 / 4096
    assert bits(model, "self_attn.k_proj") == 4 + (16 + 4) / 128 + 32 / 1024
    assert bits(model, "lm_head") == bits(model, "embed_tokens") == 16


def test_gptqmodels_dynamic_rules_leave_modules_alone_or_give_them_other_bits():
    rules = {
        r"-:.*\.layers\.3\.mlp\..*": {},
        r"+:.*down_proj.*": {"bits": 8, "group_size": 32},
        r".*\.o_proj": {"bits": 3},
    }
    model = quantised(LLAMA, GPTQ | {"dynamic": rules})
    assert bits(model, "mlp.down_proj", 3) == 16  # the first rule that matches decides
    assert bits(model, "mlp.down_proj", 4) == 8 + (16 + 8) / 32 + 32 / 4096
    assert bits(model, "self_attn.o_proj", 3) == 3 + (16 + 3) / 128 + 32 / 4096
    assert bits(model, "mlp.up_proj", 4) == 4 + 20 / 128 + 32 / 14336


def test_gptq_may_quantise_the_head_and_some_modules_alone():
    assert bits(quantised(LLAMA, GPTQ | {"lm_head": True}), "lm_head") < 5
    inside = {
        "modules_in_block_to_quantize": [["self_attn.k_proj", "self_attn.v_proj"], ["mlp.up_proj"]],
        "lm_head": True,
    }
    model = quantised(LLAMA, GPTQ | inside)
    assert bits(model, "mlp.up_proj") < 5 and bits(model, "lm_head") < 5 and bits(model, "mlp.down_proj") == 16


AWQ = {
    "backend": "autoawq",
    "bits": 4,
    "do_fuse": False,
    "group_size": 128,
    "modules_to_not_convert": None,
    "quant_method": "awq",
    "version": "gemm",
    "zero_point": True,
}


def test_awq_of_llama_8b_has_the_size_of_its_published_files():
    # hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4, tree/62c1d84, read 2026-11-21: 4.68 GB + 1.05 GB
    assert stored_bytes(quantised(LLAMA, AWQ)) / 1e9 == pytest.approx(5.73, abs=0.01)


def test_awq_leaves_modules_whose_names_contain_a_word():
    model = quantised(MIXTRAL, AWQ | {"modules_to_not_convert": ["gate", "self_attn.k"]})
    assert bits(model, "self_attn.k_proj") == 16 and bits(model, "self_attn.q_proj") == 4 + 20 / 128
    assert bits(model, "block_sparse_moe.experts.w1") == 4 + 20 / 128
    assert bits(model, "block_sparse_moe.gate") == 16


def compressed(weights, form="pack-quantized", activations=None, **more):
    group = {"input_activations": activations, "output_activations": None, "targets": ["Linear"], "weights": weights}
    return {
        "quant_method": "compressed-tensors",
        "format": form,
        "config_groups": {"group_0": group},
        "ignore": ["lm_head"],
        "kv_cache_scheme": None,
        "quantization_status": "compressed",
    } | more


PER_TOKEN = {"dynamic": True, "num_bits": 8, "strategy": "token", "symmetric": True, "type": "float"}
FP8_DYNAMIC = compressed(
    {"dynamic": False, "num_bits": 8, "strategy": "channel", "symmetric": True, "type": "float"},
    "float-quantized",
    PER_TOKEN,
)
W4A16 = compressed(
    {
        "actorder": "weight",
        "dynamic": False,
        "group_size": 128,
        "num_bits": 4,
        "strategy": "group",
        "symmetric": True,
        "type": "int",
    }
)
W8A8 = compressed(
    {"dynamic": False, "num_bits": 8, "strategy": "channel", "symmetric": True, "type": "int"},
    "int-quantized",
    PER_TOKEN | {"type": "int"},
)
NVFP4 = compressed(
    {"dynamic": False, "group_size": 16, "num_bits": 4, "strategy": "tensor_group", "symmetric": True, "type": "float"},
    "nvfp4-pack-quantized",
    {"dynamic": "local", "group_size": 16, "num_bits": 4, "type": "float"},
)


def test_compressed_tensors_scales_are_as_wide_as_the_model():
    rows = 4096
    assert bits(quantised(LLAMA, FP8_DYNAMIC), "self_attn.q_proj") == 8 + 16 / 4096
    assert bits(quantised(LLAMA, W4A16), "self_attn.q_proj") == 4 + 16 / 128 + 16 * 8 / rows**2  # and weight_shape
    assert bits(quantised(LLAMA, W8A8), "self_attn.q_proj") == 8 + 16 / 4096
    assert bits(quantised(LLAMA, NVFP4), "self_attn.q_proj") == 4 + 8 / 16 + 2 * 32 / rows**2  # two global scales
    for config in (FP8_DYNAMIC, W4A16, W8A8, NVFP4):
        assert bits(quantised(LLAMA, config), "lm_head") == 16


def test_w8a8_of_llama_8b_has_the_size_of_its_published_files():
    # jitsi/Llama-3.1-8B-Instruct-W8A8-Dynamic-Per-Token, tree/main, read 2026-11-21: 5 GB + 4.08 GB
    assert stored_bytes(quantised(LLAMA, W8A8)) / 1e9 == pytest.approx(9.08, abs=0.01)


@pytest.mark.parametrize(
    ("name", "config", "ranks", "gib"),
    # validation/infer_memory.yaml: what vLLM 0.19 logged for the weights of a rank
    [("llama-3.3-70b-instruct", FP8_DYNAMIC, 2, 33.88), (LLAMA, GPTQ, 1, 5.38), (LLAMA, W8A8, 1, 8.49)],
)
def test_quantised_weights_are_near_what_vllm_logged(name, config, ranks, gib):
    assert stored_bytes(quantised(name, config)) / ranks / 2**30 == pytest.approx(gib, rel=0.01)


def test_groups_of_compressed_tensors_may_name_modules_and_ignore_may_hold_expressions():
    eight = {
        "weights": {"num_bits": 8, "type": "float", "strategy": "tensor"},
        "targets": ["re:.*self_attn.*", "lm_head"],
        "format": "float-quantized",
    }
    groups = W4A16["config_groups"] | {"group_1": eight}
    model = quantised(
        LLAMA, W4A16 | {"config_groups": groups, "ignore": ["re:.*layers\\.0\\..*"], "format": "mixed-precision"}
    )
    assert bits(model, "self_attn.q_proj", 0) == 16
    assert bits(model, "self_attn.q_proj", 1) == pytest.approx(8, abs=1e-5)
    assert bits(model, "mlp.up_proj", 1) == pytest.approx(4.125, abs=1e-5)
    assert bits(model, "lm_head") == pytest.approx(8, abs=1e-5)


def test_block_fp8_of_compressed_tensors_takes_its_block_as_a_list_or_as_text():
    for block in ([128, 64], "128x64"):
        weights = {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": block}
        assert bits(quantised(LLAMA, compressed(weights, "float-quantized")), "mlp.up_proj") == 8 + 16 / (128 * 64)


def test_integers_that_are_not_packed_take_a_byte_each():
    weights = {"num_bits": 4, "type": "int", "strategy": "channel", "symmetric": True}
    assert bits(quantised(LLAMA, compressed(weights, "int-quantized")), "mlp.up_proj") == 8 + 16 / 4096
    assert bits(quantised(LLAMA, compressed(weights)), "mlp.up_proj") < 5


# nvidia/DeepSeek-R1-0528-NVFP4, hf_quant_config.json, read 2026-11-21; its 61 layers shortened to three
HF_QUANT_CONFIG = {
    "producer": {"name": "modelopt", "version": "0.31.0"},
    "quantization": {
        "quant_algo": "NVFP4",
        "kv_cache_quant_algo": "FP8",
        "group_size": 16,
        "has_zero_point": False,
        "pre_quant_scale": True,
        "exclude_modules": [
            "lm_head",
            "model.layers.0.self_attn*",
            "model.layers.1.self_attn*",
            "model.layers.10.self_attn*",
        ],
    },
}


def test_modelopts_own_file_wraps_its_config_and_leaves_layers_by_number():
    model = quantised("deepseek-r1", HF_QUANT_CONFIG | {"quant_method": "modelopt"})
    assert bits(model, "self_attn.o_proj", 1) == bits(model, "self_attn.o_proj", 10) == 16
    assert bits(model, "self_attn.o_proj", 2) == pytest.approx(4.5, abs=1e-4)
    assert bits(model, "mlp.experts.up_proj", 10) == pytest.approx(4.5, abs=1e-4)
    assert bits(model, "lm_head") == 16


def test_modelopts_mixtures_give_each_module_its_own_algorithm():
    # apandacoding/Step-3.5-Flash-NVFP4, hf_quant_config.json, read 2026-11-21, shortened
    layers = {
        "model.layers.0.mlp.up_proj": {"quant_algo": "W8A8_SQ_PER_CHANNEL"},
        "model.layers.3.moe.up_proj": {"quant_algo": "NVFP4", "group_size": 16},
        "model.layers.4.moe.up_proj": {"quant_algo": "FP8"},
    }
    config = {
        "quantization": {"quant_algo": "MIXED_PRECISION", "kv_cache_quant_algo": None, "quantized_layers": layers}
    }
    model = quantised("step-3.7-flash", config | {"quant_method": "modelopt"})
    assert 8 < bits(model, "mlp.up_proj", 0) < 8.1 and bits(model, "mlp.down_proj", 0) == 16
    assert bits(model, "moe.experts.up_proj", 3) == pytest.approx(4.5, abs=1e-3)
    assert bits(model, "moe.experts.up_proj", 4) == pytest.approx(8, abs=1e-3)
    assert bits(model, "moe.experts.up_proj", 5) == 16


def test_mlx_quantises_tables_and_routers_too_and_names_exceptions():
    plain = {"group_size": 64, "bits": 4, "mode": "affine"}
    model = quantised(LLAMA, plain)
    assert bits(model, "embed_tokens") == bits(model, "lm_head") == bits(model, "mlp.up_proj") == 4 + 32 / 64
    other = plain | {
        "model.layers.0.mlp.down_proj": {"group_size": 32, "bits": 8},
        "lm_head": False,
        "model.embed_tokens": False,
    }
    model = quantised(LLAMA, other)
    assert bits(model, "mlp.down_proj", 0) == 8 + 32 / 32 and bits(model, "mlp.down_proj", 1) == 4.5
    assert bits(model, "embed_tokens") == 16
    experts = {f"model.layers.1.mlp.switch_mlp.{name}": {"mode": "mxfp4"} for name in ("gate_proj", "up_proj")}
    model = quantised(QWEN_MOE, plain | experts)
    assert bits(model, "mlp.experts.up_proj", 1) == 4.25 and bits(model, "mlp.experts.up_proj", 2) == 4.5
    assert bits(model, "mlp.gate", 1) == 4.5


def test_mlxs_config_is_found_in_the_place_where_mlx_writes_it():
    config = {**read(LLAMA).config, "quantization": {"group_size": 64, "bits": 4}}
    model = replace(read(LLAMA), config=config)
    assert bits(model, "embed_tokens") == 4.5


NF4 = {
    "_load_in_8bit": False,
    "_load_in_4bit": True,
    "bnb_4bit_compute_dtype": "bfloat16",
    "bnb_4bit_quant_type": "nf4",
    "bnb_4bit_use_double_quant": True,
    "llm_int8_skip_modules": None,
    "load_in_4bit": True,
    "load_in_8bit": False,
    "quant_method": "bitsandbytes",
}


def test_bitsandbytes_keeps_scales_of_64_weights_quantised_once_more_and_its_tables():
    q = bits(quantised(LLAMA, NF4), "self_attn.q_proj")
    assert q == pytest.approx(4 + 8 / 64 + 32 / (64 * 256) + 8 * (64 + 1024 + 4) / 4096**2)
    single = bits(quantised(LLAMA, NF4 | {"bnb_4bit_use_double_quant": False}), "self_attn.q_proj")
    assert single == pytest.approx(4 + 32 / 64 + 8 * 64 / 4096**2)
    eight = bits(quantised(LLAMA, {"quant_method": "bitsandbytes", "load_in_8bit": True}), "self_attn.q_proj")
    assert eight == pytest.approx(8 + 32 / 4096, abs=1e-5)


def test_bitsandbytes_quantises_towers_unless_it_is_told_to_skip_them():
    assert bits(quantised(VISION, NF4), "attn.proj", kind="vision") < 5
    assert bits(quantised(VISION, NF4 | {"llm_int8_skip_modules": ["visual"]}), "attn.proj", kind="vision") == 16
    assert bits(quantised(VISION, AWQ), "attn.proj", kind="vision") == 16  # AutoAWQ sees the language model alone


def test_fbgemm_keeps_fp32_scales_of_rows_and_the_modules_that_it_lists():
    left = [f"model.layers.{layer}.{name}" for layer in (0, 31) for name in ("self_attn", "mlp.up_proj")] + ["lm_head"]
    config = {"activation_scale_ub": 1200.0, "modules_to_not_convert": left, "quant_method": "fbgemm_fp8"}
    model = quantised(LLAMA, config)
    assert bits(model, "self_attn.q_proj", 0) == bits(model, "mlp.up_proj", 31) == bits(model, "lm_head") == 16
    assert bits(model, "mlp.up_proj", 1) == pytest.approx(8 + 32 / 4096, abs=1e-5)


BLOCK_FP8 = {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128]}


def test_deepseek_v3s_blocks_are_the_bytes_that_the_hub_counts():
    # safetensors.parameters of the Hub's API, read 2026-11-21; 15,104 of the fp32 are the routers' corrections
    total = 2 * 3_918_786_560 + 680_571_043_840 + 4 * 41_555_600
    assert stored_bytes(quantised("deepseek-v3", BLOCK_FP8)) == total


def test_fp8_of_whole_tensors_has_one_scale_and_one_more_for_static_activations():
    for scheme, scalars in (("dynamic", 1), ("static", 2)):
        model = quantised(LLAMA, {"quant_method": "fp8", "activation_scheme": scheme})
        assert bits(model, "self_attn.q_proj") == 8 + 32 * scalars / 4096**2


MXFP4 = {
    "modules_to_not_convert": [
        "model.layers.*.self_attn",
        "model.layers.*.mlp.router",
        "model.embed_tokens",
        "lm_head",
    ],
    "quant_method": "mxfp4",
}


def test_gpt_oss_keeps_its_experts_in_mxfp4_and_all_else_in_16_bits():
    model = quantised("gpt-oss-20b", MXFP4)
    assert bits(model, "mlp.experts.gate_up_proj") == 4.25 and bits(model, "self_attn.q_proj") == 16
    assert stored_bytes(model) == 13_761_264_768  # metadata.total_size of its index


def test_auto_round_packs_like_gptq_without_the_group_of_each_column():
    config = {
        "autoround_version": "0.6.0",
        "bits": 4,
        "data_type": "int",
        "group_size": 128,
        "packing_format": "auto_round:auto_gptq",
        "quant_method": "auto-round",
        "sym": True,
        "extra_config": {
            "model.layers.0.self_attn.q_proj": {"bits": 16, "data_type": "float"},
            r".*\.v_proj$": {"bits": 8},
        },
    }
    model = quantised(LLAMA, config)
    assert storage(model, None).name.startswith("auto-round-4bit-128g")
    assert bits(model, "self_attn.q_proj", 0) == 16 and bits(model, "self_attn.q_proj", 1) == 4 + 20 / 128
    assert bits(model, "self_attn.v_proj", 5) == 8 + 24 / 128
    with pytest.raises(MissingDatum, match="data_type 'mx_fp'"):
        layout(config | {"data_type": "mx_fp"})


def test_quark_reads_its_global_scheme_and_that_of_each_layer():
    mx = {
        "weight": {"dtype": "fp4", "qscheme": "per_group", "group_size": 32, "scale_format": "e8m0"},
        "input_tensors": None,
    }
    eight = {"weight": {"dtype": "fp8_e4m3", "qscheme": "per_tensor", "is_dynamic": False}}
    config = {
        "quant_method": "quark",
        "global_quant_config": mx,
        "layer_quant_config": {"*self_attn*": eight},
        "exclude": ["lm_head", "*.mlp.gate"],
    }
    model = quantised(QWEN_MOE, config)
    assert bits(model, "mlp.experts.up_proj") == 4.25 and bits(model, "lm_head") == 16 and bits(model, "mlp.gate") == 16
    assert bits(model, "self_attn.q_proj") == pytest.approx(8, abs=1e-4)


# What a config may not say: each with the field and the value in the message.
WRONG = [
    (GPTQ | {"bits": 5}, "bits must be one of 2, 3, 4, 8. Got 5"),
    (GPTQ | {"bits": True}, "bits must be a whole number. Got True"),
    (GPTQ | {"bits": float("nan")}, "bits must be a whole number. Got nan"),
    (GPTQ | {"bits": "4"}, "whole number. Got '4'"),
    (GPTQ | {"bits": None}, "bits must be one of"),
    (AWQ | {"bits": 10**5000}, "bits must be .* Got <int>"),
    (AWQ | {"group_size": 0}, "group_size must be -1 .* Got 0"),
    (AWQ | {"group_size": -2}, "Got -2"),
    (AWQ | {"group_size": 10**9}, "from 1 to 1048576. Got 1000000000"),
    (AWQ | {"group_size": [128]}, r"whole number. Got \[128\]"),
    ({"quant_method": "auto-round", "bits": 4, "group_size": False}, "group_size must be a whole number. Got False"),
    (GPTQ | {"dynamic": {"+:.*": {"bits": 7}}}, "bits must be one of"),
    (GPTQ | {"dynamic": {"(": {}}}, "no regular expression"),
    (GPTQ | {"dynamic": {r"-:(\w+)+$": {}}}, "repeats too much"),
    ({"bits": 4, "group_size": -1}, "group_size must be positive"),
    ({"bits": 1, "group_size": 64}, "bits must be one of 2, 3, 4, 5, 6, 8"),
    (BLOCK_FP8 | {"weight_block_size": [128]}, "weight_block_size must hold two sizes"),
    (BLOCK_FP8 | {"weight_block_size": [128, 0]}, "Got .128, 0."),
    (BLOCK_FP8 | {"weight_block_size": True}, "Got True"),
    (compressed({"num_bits": 99, "type": "int"}), "num_bits must be one of 1, 2, 3, 4, 5, 6, 7, 8. Got 99"),
    (NF4 | {"bnb_4bit_quant_type": "bf16"}, "bnb_4bit_quant_type must be nf4 or fp4. Got 'bf16'"),
]


@pytest.mark.parametrize(("config", "message"), WRONG, ids=[message for _, message in WRONG])
def test_a_field_that_cannot_be_is_named_with_its_value(config, message):
    with pytest.raises(InvalidInput, match=message):
        layout(config)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"quant_method": "aqlm"}, "quant_method 'aqlm'"),
        (compressed({"num_bits": 4, "type": "float", "group_size": 64}), "floats of 4 bits"),
        (compressed({"num_bits": 4, "type": "int"}, "marlin-24"), "marlin-24"),
        (compressed(None), "a group with weights None"),
        ({"quant_method": "modelopt", "quant_algo": "W1"}, "quant_algo 'W1'"),
        ({"bits": 4, "group_size": 64, "mode": "new"}, "mode 'new'"),
        ({"quant_method": "modelopt", "quantized_layers": {}}, "lists no module"),
        ({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "int3"}}}, "dtype 'int3'"),
    ],
)
def test_a_format_that_nobody_described_is_a_missing_datum(config, message):
    with pytest.raises(MissingDatum, match=message):
        layout(config)


NAMES = st.sampled_from(
    [
        "model.layers.0.mlp",
        "lm_head",
        "re:.*mlp.*",
        "re:(a+)+$",
        "re:(((a*)b*)c*)*",
        "re:[",
        "*.mlp",
        "*",
        "",
        "layers.",
        "re:" + "(" * 2000,
        "x" * 600,
        "re:" + "a{99999999999}",
        "model.layers.99999999999999999999.mlp",
        "?" * 100,
        "gate",
        "visual",
        "re:" + ".*" * 40 + "X",
    ]
)
LEAF = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    NAMES,
    st.sampled_from(
        [
            2,
            3,
            4,
            8,
            16,
            32,
            64,
            128,
            -1,
            10**400,
            "int",
            "float",
            "group",
            "channel",
            "block",
            "128x128",
            "nf4",
            "mxfp4",
            "NVFP4",
            "FP8",
        ]
    ),
)
JSON = st.recursive(
    LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)
FIELDS = st.sampled_from(
    [
        "bits",
        "group_size",
        "w_bit",
        "q_group_size",
        "quant_algo",
        "quantized_layers",
        "quantization",
        "config_groups",
        "format",
        "ignore",
        "modules_to_not_convert",
        "exclude",
        "dynamic",
        "extra_config",
        "weight_block_size",
        "load_in_4bit",
        "bnb_4bit_quant_type",
        "targets",
        "weights",
        "num_bits",
        "type",
        "strategy",
        "block_structure",
        "symmetric",
        "actorder",
        "input_activations",
        "sparsity_config",
        "global_quant_config",
        "layer_quant_config",
        "weight",
        "dtype",
        "qscheme",
        "mode",
        "modules_in_block_to_quantize",
        "lm_head",
        "data_type",
        "llm_int8_skip_modules",
        "file_type",
    ]
)
BASES = st.sampled_from(
    [
        {},
        GPTQ,
        AWQ,
        W4A16,
        W8A8,
        FP8_DYNAMIC,
        NVFP4,
        NF4,
        BLOCK_FP8,
        MXFP4,
        HF_QUANT_CONFIG,
        {"quant_method": "gguf", "file_type": "Q4_K_M"},
        {"quant_method": 3},
        {"quant_method": "quark"},
        {"quant_method": "fbgemm_fp8"},
        {"quant_method": "auto-round", "bits": 4},
        {"quant_method": "modelopt"},
        {"quant_method": "compressed-tensors"},
        {"bits": 4, "group_size": 64},
    ]
)
WHOLE = st.dictionaries(FIELDS, st.one_of(JSON, st.dictionaries(FIELDS, JSON, max_size=6)), max_size=8)


@settings(deadline=2000, max_examples=400)
@given(BASES, WHOLE, st.sampled_from([LLAMA, MIXTRAL, VISION]))
def test_any_json_gives_an_answer_or_an_error_for_the_user(base, config, name):
    try:
        size = stored_bytes(quantised(name, {**base, **config}))
    except TonnageError as error:
        assert len(str(error)) < 400
    else:
        assert 0 < size <= 17 * read(name).num_parameters(True) / 8 + 1e6


def test_a_name_means_its_module_and_all_below_it_and_nothing_beside_it():
    of = Modules(["model.layers.3.mlp", "lm_head", "mlp.gate", "*.shared_experts", "re:.*v_proj$"])
    assert of.has([Module("mlp.up_proj", 3)]) and not of.has([Module("mlp.up_proj", 30)])
    assert of.has([Module("lm_head")]) and of.has([Module("mlp.gate", 5)]) and not of.has([Module("mlp.gate_proj", 5)])
    assert of.has([Module("mlp.shared_experts.up_proj", 1)]) and of.has([Module("self_attn.v_proj", 1)])
    assert of.by_layer and not Modules(["lm_head", "mlp.gate", "*.mlp"]).by_layer
