"""How many parameters stored tensors really hold, and what part of the model they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.files import Shapes, safetensors
from tonnage.models.formats.safetensors import BITS, parse
from tonnage.models.tensors import Tensor, describe, packed_bits, part_of, summarize


def stored(shapes: Shapes, bits: int | None = None, layers: int | None = None):
    data = safetensors(shapes)
    end = 8 + int.from_bytes(data[:8], "little")
    return summarize(describe(parse(data[8:end], len(data) - end, "x"), bits), "safetensors", 1, layers)


P = "model.layers.0.mlp.up_proj"  # 256 inputs, 512 outputs


@pytest.mark.parametrize(
    ("shapes", "bits"),
    [
        ({f"{P}.weight": ("BF16", (512, 256))}, None),
        ({f"{P}.weight": ("F4", (512, 256))}, None),
        ({f"{P}.weight": ("F8_E4M3", (512, 256)), f"{P}.weight_scale_inv": ("F32", (4, 2))}, None),
        (
            {f"{P}.weight": ("F8_E4M3", (512, 256)), f"{P}.weight_scale": ("F32", ()), f"{P}.input_scale": ("F32", ())},
            None,
        ),
        ({f"{P}.weight": ("F8_E4M3", (512, 256)), f"{P}.scale": ("F8_E8M0", (4, 2))}, None),
        ({f"{P}.weight": ("I8", (512, 256)), f"{P}.weight_scale": ("BF16", (512, 1))}, None),
        ({f"{P}.weight": ("I8", (512, 256)), f"{P}.SCB": ("F32", (512,)), f"{P}.weight_format": ("U8", ())}, None),
        # NVFP4 of ModelOpt; the packed I8 of DeepSeek-V4; NVFP4 and MXFP4 of compressed-tensors
        (
            {
                f"{P}.weight": ("U8", (512, 128)),
                f"{P}.weight_scale": ("F8_E4M3", (512, 16)),
                f"{P}.weight_scale_2": ("F32", ()),
            },
            None,
        ),
        ({f"{P}.weight": ("I8", (512, 128)), f"{P}.scale": ("F8_E8M0", (512, 8))}, None),
        (
            {
                f"{P}.weight_packed": ("U8", (512, 128)),
                f"{P}.weight_scale": ("F8_E4M3", (512, 16)),
                f"{P}.weight_global_scale": ("F32", (1,)),
            },
            None,
        ),
        ({f"{P}.weight_packed": ("U8", (512, 128)), f"{P}.weight_scale": ("U8", (512, 8))}, 4),
        # GPTQ in 4, 3 and 8 bits; without g_idx the config's bits tell; AWQ packs outputs
        (
            {
                f"{P}.qweight": ("I32", (32, 512)),
                f"{P}.qzeros": ("I32", (2, 64)),
                f"{P}.scales": ("F16", (2, 512)),
                f"{P}.g_idx": ("I32", (256,)),
            },
            None,
        ),
        (
            {
                f"{P}.qweight": ("I32", (24, 512)),
                f"{P}.qzeros": ("I32", (2, 48)),
                f"{P}.scales": ("F16", (2, 512)),
                f"{P}.g_idx": ("I32", (256,)),
            },
            None,
        ),
        ({f"{P}.qweight": ("I32", (64, 512)), f"{P}.scales": ("F16", (2, 512))}, 8),
        ({f"{P}.qweight": ("I32", (32, 512)), f"{P}.scales": ("F16", (2, 512))}, None),
        ({f"{P}.qweight": ("I32", (256, 64)), f"{P}.qzeros": ("I32", (2, 64)), f"{P}.scales": ("F16", (2, 512))}, None),
        # compressed-tensors' pack-quantized in 4 and 8 bits
        (
            {
                f"{P}.weight_packed": ("I32", (512, 32)),
                f"{P}.weight_scale": ("BF16", (512, 8)),
                f"{P}.weight_shape": ("I64", (2,)),
            },
            4,
        ),
        (
            {
                f"{P}.weight_packed": ("I32", (512, 64)),
                f"{P}.weight_scale": ("BF16", (512, 8)),
                f"{P}.weight_shape": ("I64", (2,)),
            },
            8,
        ),
        # MLX in 4 and 8 bits
        (
            {f"{P}.weight": ("U32", (512, 32)), f"{P}.scales": ("BF16", (512, 4)), f"{P}.biases": ("BF16", (512, 4))},
            None,
        ),
        ({f"{P}.weight": ("U32", (512, 64)), f"{P}.scales": ("BF16", (512, 4)), f"{P}.biases": ("BF16", (512, 4))}, 8),
        # 4-bit bitsandbytes
        (
            {
                f"{P}.weight": ("U8", (65_536, 1)),
                f"{P}.weight.absmax": ("U8", (2048,)),
                f"{P}.weight.quant_map": ("F32", (16,)),
                f"{P}.weight.nested_absmax": ("F32", (8,)),
                f"{P}.weight.nested_quant_map": ("F32", (256,)),
                f"{P}.weight.quant_state.bitsandbytes__nf4": ("U8", (90,)),
            },
            None,
        ),
        # EXL2, EXL3, AQLM
        (
            {
                f"{P}.q_weight": ("I32", (40, 512)),
                f"{P}.q_scale": ("I32", (8, 64)),
                f"{P}.q_scale_max": ("F16", (8,)),
                f"{P}.q_groups": ("I32", (16,)),
                f"{P}.q_invperm": ("I32", (256,)),
            },
            None,
        ),
        ({f"{P}.trellis": ("I32", (16, 32, 32)), f"{P}.suh": ("F16", (256,)), f"{P}.svh": ("F16", (512,))}, None),
        (
            {
                f"{P}.codes": ("I8", (512, 32, 1)),
                f"{P}.codebooks": ("F16", (1, 256, 1, 8)),
                f"{P}.scales": ("F16", (512, 1, 1, 1)),
            },
            None,
        ),
    ],
)
def test_a_quantised_matrix_has_the_parameters_of_the_matrix(shapes: Shapes, bits: int | None):
    found = stored(shapes, bits)
    assert found.num_parameters == 512 * 256
    assert found.num_tensors == len(shapes)
    assert found.parameters_by_part == {"mlp": 512 * 256}
    assert found.total_bytes == len(safetensors(shapes)) - 8 - int.from_bytes(safetensors(shapes)[:8], "little")


def test_the_experts_of_gpt_oss_hold_two_values_a_byte():
    stem = "model.layers.0.mlp.experts"
    found = stored(
        {
            f"{stem}.gate_up_proj_blocks": ("U8", (4, 128, 2, 16)),
            f"{stem}.gate_up_proj_scales": ("U8", (4, 128, 2)),
            f"{stem}.down_proj_blocks": ("U8", (4, 64, 2, 16)),
            f"{stem}.down_proj_scales": ("U8", (4, 64, 2)),
            f"{stem}.gate_up_proj_bias": ("BF16", (4, 128)),
        }
    )
    assert found.num_parameters == 4 * 128 * 64 + 4 * 64 * 64 + 4 * 128
    assert found.scale_bytes == 4 * 128 * 2 + 4 * 64 * 2
    assert set(found.bytes_by_part) == {"experts"}


def test_stacked_nvfp4_experts_hold_two_values_a_byte():
    stem = "model.layers.0.mlp.experts"
    found = stored(
        {f"{stem}.down_proj": ("U8", (4, 64, 32)), f"{stem}.down_proj_weight_scale": ("F8_E4M3", (4, 64, 4))}
    )
    assert found.num_parameters == 4 * 64 * 64


def test_buffers_are_no_parameters():
    found = stored(
        {
            "model.layers.0.self_attn.rotary_emb.inv_freq": ("F32", (64,)),
            "h.0.attn.bias": ("U8", (1, 1, 64, 64)),
            "gpt_neox.layers.0.attention.masked_bias": ("F32", ()),
            "embeddings.position_ids": ("I64", (1, 512)),
            "h.0.attn.c_attn.bias": ("F32", (96,)),
        }
    )
    assert found.num_parameters == 96
    assert {group.role for group in found.groups if group.parameters == 0} == {"buffer"}


def test_a_scale_that_is_a_parameter_counts():
    found = stored({"model.layers.0.router.scale": ("BF16", (64,)), "model.layers.0.mlp.biases": ("BF16", (7,))})
    assert found.num_parameters == 71


def test_layers_behind_the_last_are_multi_token_prediction():
    shapes = {f"model.layers.{number}.mlp.up_proj.weight": ("BF16", (4, 4)) for number in range(3)}
    assert stored(shapes, layers=2).parameters_by_part == {"mlp": 32, "draft": 16}
    assert stored({"mtp.layers.0.mlp.up_proj.weight": ("BF16", (4, 4)), **shapes}).parameters_by_part == {
        "mlp": 48,
        "draft": 16,
    }


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("model.embed_tokens.weight", "embedding"),
        ("transformer.wte.weight", "embedding"),
        ("backbone.embeddings.weight", "embedding"),
        ("token_embd.weight", "embedding"),
        ("lm_head.weight", "head"),
        ("output.weight", "head"),
        ("output_norm.weight", "norm"),
        ("model.norm.weight", "norm"),
        ("model.layers.0.input_layernorm.weight", "norm"),
        ("model.layers.0.self_attn.q_norm.weight", "norm"),
        ("model.layers.0.self_attn.q_proj.weight", "attention"),
        ("h.3.attn.c_attn.weight", "attention"),
        ("blk.0.attn_q.weight", "attention"),
        ("model.layers.0.mlp.gate_proj.weight", "mlp"),
        ("model.layers.0.mlp.gate.weight", "router"),
        ("model.layers.0.mlp.gate.e_score_correction_bias", "router"),
        ("model.layers.0.block_sparse_moe.gate.weight", "router"),
        ("model.layers.0.mlp.router.weight", "router"),
        ("blk.0.ffn_gate_inp.weight", "router"),
        ("model.layers.0.mlp.experts.17.up_proj.weight", "experts"),
        ("blk.0.ffn_up_exps.weight", "experts"),
        ("model.layers.0.mlp.shared_experts.up_proj.weight", "mlp"),
        ("backbone.layers.0.mixer.in_proj.weight", "mixer"),
        ("blk.0.ssm_in.weight", "mixer"),
        ("model.visual.blocks.0.attn.qkv.weight", "vision"),
        ("vision_tower.encoder.layers.0.mlp.fc1.weight", "vision"),
        ("audio_tower.layers.0.fc1.weight", "audio"),
    ],
)
def test_a_name_tells_the_part(name: str, part: str):
    assert part_of(name) == part


def test_bits_are_found_in_every_form_of_quantization_config():
    group = {"config_groups": {"group_0": {"weights": {"num_bits": 8}}}}
    assert packed_bits({"quantization_config": {"bits": 3}}) == 3
    assert packed_bits({"quantization_config": {"w_bit": 4}}) == 4
    assert packed_bits({"compression_config": group}) == 8
    assert packed_bits({"text_config": {"quantization_config": group}}) == 8
    assert packed_bits({"quantization": {"bits": 6, "group_size": 64}}) == 6
    assert packed_bits({"quantization_config": {"bits": "four"}}) is None
    assert packed_bits({"quantization_config": [4]}) is None


WORDS = st.sampled_from(
    [
        "model",
        "layers",
        "0",
        "7",
        "mlp",
        "experts",
        "qweight",
        "scales",
        "weight",
        "g_idx",
        "bias",
        "mtp",
        "weight_scale",
        "suh",
        "svh",
        "trellis",
        "q_weight",
        "q_invperm",
        "codes",
        "codebooks",
        "W_q",
        "",
    ]
)
NAMES = st.lists(WORDS, min_size=1, max_size=5).map(".".join)


@given(
    st.dictionaries(
        NAMES, st.tuples(st.sampled_from(sorted(BITS)), st.lists(st.integers(0, 5), max_size=4)), max_size=8
    )
)
def test_any_names_and_shapes_have_a_count(shapes: dict):
    tensors = [Tensor(name, dtype, tuple(shape), 8) for name, (dtype, shape) in shapes.items()]
    found = summarize(describe(tensors), "safetensors", 1)
    assert found.num_parameters >= 0
    assert found.num_tensors == len(tensors)
