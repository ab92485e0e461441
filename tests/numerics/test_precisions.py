"""Precisions against the definitions of their formats, and GGUF mixtures against published files."""

import gguf
import numpy as np
import pytest

from every_row import every_row
from tonnage.architectures import ARCHITECTURES, Config, find
from tonnage.estimate.serving.weights.storage import gguf_bytes
from tonnage.kernel.errors import MissingDatum, UnknownName
from tonnage.numerics.precisions import ALIASES, PRECISIONS, TRAINING_RECIPES, precision
from tonnage.numerics.quantization import FILE_TYPES, file_type, layout, more_bits

LLAMA_8B = {
    "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072,
}  # fmt: skip
LLAMA_70B = LLAMA_8B | {
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
}
GEMMA_12B = {
    "architectures": ["Gemma3ForCausalLM"],
    "model_type": "gemma3_text",
    "hidden_size": 3840,
    "intermediate_size": 15360,
    "num_hidden_layers": 48,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 256,
    "vocab_size": 262208,
    "max_position_embeddings": 131072,
    "sliding_window": 1024,
    "sliding_window_pattern": 6,
}
PEAKS = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp6", "fp4", "nvfp4", "int8")

# llama.cpp, tools/quantize/README.md at 311c2c9, Llama-3.1-8B: bits per weight (F32 norms included, one rope table of
# 64).
PUBLISHED_8B = {
    "IQ1_S": 2.0042, "IQ1_M": 2.1460, "IQ2_XXS": 2.3824, "IQ2_XS": 2.5882, "IQ2_S": 2.7403, "IQ2_M": 2.9294,
    "IQ3_XXS": 3.2548, "IQ3_XS": 3.4977, "IQ3_S": 3.6606, "IQ3_M": 3.7628, "IQ4_XS": 4.4597, "IQ4_NL": 4.6818,
    "Q2_K_S": 2.9697, "Q2_K": 3.1593, "Q3_K_S": 3.6429, "Q3_K_L": 4.2979, "Q4_K_S": 4.6672, "Q4_K_M": 4.8944,
    "Q5_K_S": 5.5704, "Q5_K_M": 5.7036, "Q6_K": 6.5633, "Q8_0": 8.5008, "F16": 16.0005,
}  # fmt: skip
# Llama-3.1-70B files quantised with an importance matrix (https://ozeki.chat/p_8590-understanding-ai-model-files.html),
# GB.
PUBLISHED_70B = {
    "Q8_0": 74.98, "Q6_K": 57.89, "Q5_K_L": 50.60, "Q5_K_M": 49.95, "Q5_K_S": 48.66, "Q4_K_L": 43.30, "Q4_K_M": 42.52,
    "Q4_K_S": 40.35, "Q4_0": 40.12, "Q3_K_XL": 38.06, "IQ4_XS": 37.90, "Q3_K_L": 37.14, "Q3_K_M": 34.27, "IQ3_M": 31.94,
    "Q3_K_S": 30.91,
}  # fmt: skip


def bytes_of(config, name, imatrix=False):
    model = find(ARCHITECTURES, config["architectures"][0])(Config(config, "test"))
    return gguf_bytes(model, file_type(name), imatrix), model.num_parameters()


@every_row("tensor_type", list(gguf.GGML_QUANT_SIZES), ids=lambda tensor_type: tensor_type.name, at_least=30)
def test_every_ggml_type_has_the_bits_of_its_block(tensor_type):
    block, size = gguf.GGML_QUANT_SIZES[tensor_type]
    assert precision(tensor_type.name).bits_per_weight == 8 * size / block
    assert precision(tensor_type.name).bytes(3, 4 * block) >= 12 * size


def test_every_file_type_of_ggml_is_known():
    for kind in gguf.LlamaFileType:
        if kind.name not in ("GUESSED", "MOSTLY_NVFP4"):
            assert file_type(kind.name).base in PRECISIONS, kind.name


@pytest.mark.parametrize(("name", "bits"), PUBLISHED_8B.items(), ids=PUBLISHED_8B)
def test_a_mixture_has_the_bits_per_weight_that_llama_cpp_publishes(name, bits):
    size, parameters = bytes_of(LLAMA_8B, name, imatrix=name not in ("IQ4_XS", "IQ4_NL"))
    assert 8 * (size + 4 * 64) / (parameters + 64) == pytest.approx(bits, abs=6e-5)


@pytest.mark.parametrize(("name", "gigabytes"), PUBLISHED_70B.items(), ids=PUBLISHED_70B)
def test_a_mixture_has_the_size_of_the_published_file_less_its_vocabulary(name, gigabytes):
    size, _ = bytes_of(LLAMA_70B, name, imatrix=True)
    assert 0 < gigabytes - size / 1e9 < 0.015


def test_a_tied_table_is_stored_once_and_in_the_heads_type():
    assert bytes_of(GEMMA_12B, "Q8_0")[0] == 12_503_660_544  # a published file
    table = 262_208 * 3840
    assert bytes_of(GEMMA_12B, "Q4_K_M")[0] - bytes_of(GEMMA_12B | {"vocab_size": 2}, "Q4_K_M")[0] == pytest.approx(
        table * 6.5625 / 8, rel=1e-5
    )


def test_a_row_that_a_block_does_not_divide_falls_back_to_a_smaller_block():
    odd = LLAMA_8B | {"hidden_size": 2048 + 32, "num_attention_heads": 65, "num_key_value_heads": 5, "head_dim": 32}
    size, parameters = bytes_of(odd, "Q4_K_M")
    assert 8 * size / parameters > 5.5


def test_more_bits_go_to_the_outer_layers_and_to_every_third_between():
    assert [layer for layer in range(32) if more_bits(layer, 32)] == [
        0,
        1,
        2,
        3,
        6,
        9,
        12,
        15,
        18,
        21,
        24,
        27,
        28,
        29,
        30,
        31,
    ]


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("bf16", 16),
        ("fp8-e4m3", 8),
        ("fp8-block", 8 + 32 / 128**2),
        ("mxfp8", 8.25),
        ("mxfp6", 6.25),
        ("mxfp4", 4.25),
        ("nvfp4", 4.5),
        ("nf4", 4.5),
        ("nf4-double", 4 + 8 / 64 + 32 / (64 * 256)),
        ("int4", 4.125),
        ("gptq-4bit-128g", 4 + (16 + 4) / 128),
        ("gptq-3bit-32g", 3 + (16 + 3) / 32),
        ("awq-4bit-64g", 4 + (16 + 4) / 64),
        ("gptq-8bit-channel", 8),
        ("int8", 8),
        ("q4_k", 4.5),
        ("q6_k", 6.5625),
        ("iq4_xs", 4.25),
    ],
)
def test_bits_per_weight_are_exact(name, bits):
    assert PRECISIONS[name].bits_per_weight == bits


def test_double_quantisation_is_the_figure_of_the_paper():
    assert PRECISIONS["nf4-double"].bits_per_weight - 4 == pytest.approx(0.127, abs=5e-5)


@pytest.mark.parametrize(
    ("name", "size"), [("nf4", 221_248), ("nf4-double", 203_940), ("fp4", 221_248), ("fp4-double", 203_940)]
)
def test_a_bitsandbytes_tensor_has_the_bytes_that_the_library_allocates(name, size):
    # bitsandbytes 0.50.2, quantize_4bit of a 512 x 768 tensor: packed weights, absmax, tables and offset.
    assert PRECISIONS[name].bytes(512, 768) == size


def test_scales_of_a_shape_are_counted_to_the_byte():
    assert PRECISIONS["fp8-block"].bytes(7168, 2048) == 7168 * 2048 + 4 * 56 * 16
    assert PRECISIONS["fp8-block"].bytes(576, 7168) == 576 * 7168 + 4 * 5 * 56  # a last block cut short
    assert PRECISIONS["int8"].bytes(4096, 1024) == 4096 * 1024 + 4 * 4096
    assert (
        PRECISIONS["gptq-4bit-128g"].bytes(4096, 4096) == 4096 * 4096 // 2 + 4096 * 32 * 2 + 4096 * 32 // 2 + 4 * 4096
    )
    assert PRECISIONS["awq-4bit-128g"].bytes(4096, 4096) == 4096 * 4096 // 2 + 4096 * 32 * 2 + 4096 * 32 // 2
    assert PRECISIONS["fp8-e4m3"].bytes(16, 16, copies=3) == 3 * (256 + 4)


@every_row("name", list(PRECISIONS), at_least=70)
def test_a_large_tensor_pays_the_bits_per_weight(name):
    stored = PRECISIONS[name]
    assert stored.bytes(16384, 16384) * 8 / 16384**2 == pytest.approx(stored.bits_per_weight, rel=3e-3)
    assert stored.bits_per_weight >= stored.element_bits


def test_shapes_may_be_arrays():
    rows = np.array([512.0, 4096.0])
    for stored in PRECISIONS.values():
        assert stored.bytes(rows, 1024).tolist() == [stored.bytes(512, 1024), stored.bytes(4096, 1024)]


def test_every_precision_names_a_peak_that_the_catalogue_of_accelerators_knows():
    for stored in PRECISIONS.values():
        assert stored.compute in PEAKS, stored.name
    for recipe in TRAINING_RECIPES.values():
        assert recipe.compute in PEAKS and recipe.rest in PEAKS, recipe.name


def test_names_are_found_as_frameworks_spell_them():
    assert precision("torch.bfloat16").name == "bf16"
    assert precision("FP8_E4M3").name == "fp8-e4m3"
    assert precision("Q4_K").name == "q4_k"
    assert file_type("Q4_K").name == "q4_k_m"
    assert all(name in PRECISIONS for name in ALIASES.values())
    with pytest.raises(UnknownName, match="nf4"):
        precision("nf5")
    with pytest.raises(UnknownName, match="q4_k_m"):
        file_type("Q4_K_N")


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, "gptq-4bit-128g"),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, "gptq-8bit-channel"),
        ({"quant_method": "awq", "bits": 4, "group_size": 64}, "awq-4bit-64g"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, "nf4"),
        (
            {
                "quant_method": "bitsandbytes",
                "load_in_4bit": True,
                "bnb_4bit_quant_type": "nf4",
                "bnb_4bit_use_double_quant": True,
            },
            "nf4-double",
        ),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8"),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8-block"),
        ({"quant_method": "fp8"}, "fp8-e4m3"),
        ({"quant_method": "mxfp4"}, "mxfp4"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {
                    "0": {"weights": {"type": "int", "num_bits": 4, "strategy": "group", "group_size": 32}}
                },
            },
            "int4-32g",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"0": {"weights": {"type": "float", "num_bits": 8, "strategy": "channel"}}},
            },
            "fp8-channel",
        ),
    ],
)
def test_a_checkpoints_config_says_how_its_matrices_are_stored(config, name):
    (used,) = layout(config).used
    assert used.name == name


def test_a_config_that_mixes_precisions_is_not_guessed():
    for config in ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}, {"quant_method": "aqlm"}, {}):
        with pytest.raises(MissingDatum, match="quantization_config"):
            layout(config)


def adam(recipe):
    return sum(recipe.moment_bytes) if recipe.moment_bytes else 2 * recipe.update_bytes


@pytest.mark.parametrize(
    ("name", "how", "total"),
    [
        # Rajbhandari2020, sec. 3.1: 2 + 2 + 12; Megatron-LM, dist_optimizer.md: 18, 20 and 16; FSDP2 and autocast:
        # master alone
        ("bf16-mixed-16bit-gradients", {}, 16),
        ("bf16-mixed", {}, 18),
        ("bf16-mixed", {"both_gradients": True}, 20),
        ("fp32", {}, 16),
        ("bf16-mixed", {"separate_compute_copy": False}, 16),
        ("bf16", {}, 8),
        ("bf16-master", {}, 10),
        # DeepSeek2024V3, sec. 3.3.3; MS-AMP's table: O2 6 bytes, O3 one more for the fp8 weights
        ("fp8-deepseek", {}, 13),
        ("msamp-o1", {}, 11),
        ("msamp-o2", {}, 6),
        ("msamp-o3", {}, 7),
        ("fp8-torchao", {}, 18),
    ],
)
def test_a_recipe_with_adam_takes_the_published_bytes_per_parameter(name, how, total):
    recipe = TRAINING_RECIPES[name]
    assert recipe.resident_bytes(**how) + adam(recipe) == total


def test_every_file_type_has_a_type_for_every_role():
    for kind in FILE_TYPES:
        size, parameters = bytes_of(LLAMA_8B, kind)
        assert 1.4 < 8 * size / parameters <= 32, kind
