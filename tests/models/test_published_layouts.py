"""Two released checkpoints, every tensor by name, type and shape, against what the Hub publishes of them.

DeepSeek-V3 (safetensors.parameters of the Hub's API, read 2026-11-21): 3,918,786,560 BF16, 680,571,043,840 F8_E4M3 and
41,555,600 F32, of which 15,104 are no scales. gpt-oss-20b (metadata.total_size of its index): 13,761,264,768 bytes.
"""

from math import prod

from tonnage.catalogue import model_file
from tonnage.models.contents import Contents
from tonnage.models.formats.safetensors import BITS
from tonnage.models.reconcile import assemble
from tonnage.models.tensors import Tensor

Shapes = dict[str, tuple[str, tuple[int, ...]]]


def model(name: str, shapes: Shapes, quantization: dict):
    tensors = [Tensor(key, dtype, shape, prod(shape) * BITS[dtype] // 8) for key, (dtype, shape) in shapes.items()]
    fields = {**model_file(name).config, "quantization_config": quantization}
    return assemble(Contents(name=name, source="test", where=name, fields=fields, tensors=tensors, files=1), {})


def fp8(name: str, rows: int, columns: int) -> Shapes:
    scales = (-(-rows // 128), -(-columns // 128))
    return {f"{name}.weight": ("F8_E4M3", (rows, columns)), f"{name}.weight_scale_inv": ("F32", scales)}


def plain(names: dict[str, tuple[int, ...]]) -> Shapes:
    return {f"{name}.weight": ("BF16", shape) for name, shape in names.items()}


def deepseek_layer(number: int) -> Shapes:
    p, h = f"model.layers.{number}", 7168
    made = plain({f"{p}.input_layernorm": (h,), f"{p}.post_attention_layernorm": (h,)})
    made |= plain({f"{p}.self_attn.q_a_layernorm": (1536,), f"{p}.self_attn.kv_a_layernorm": (512,)})
    attention = {
        "q_a_proj": (1536, h),
        "q_b_proj": (24_576, 1536),
        "kv_a_proj_with_mqa": (576, h),
        "kv_b_proj": (32_768, 512),
        "o_proj": (h, 16_384),
    }
    for name, shape in attention.items():
        made |= fp8(f"{p}.self_attn.{name}", *shape)
    experts = ["mlp"] if number < 3 else ["mlp.shared_experts", *(f"mlp.experts.{expert}" for expert in range(256))]
    width = 18_432 if number < 3 else 2048
    for expert in experts:
        made |= fp8(f"{p}.{expert}.gate_proj", width, h) | fp8(f"{p}.{expert}.up_proj", width, h)
        made |= fp8(f"{p}.{expert}.down_proj", h, width)
    if number >= 3:
        made |= plain({f"{p}.mlp.gate": (256, h)}) | {f"{p}.mlp.gate.e_score_correction_bias": ("F32", (256,))}
    return made


def deepseek_v3() -> Shapes:
    made = plain({"model.embed_tokens": (129_280, 7168), "lm_head": (129_280, 7168), "model.norm": (7168,)})
    for number in range(62):
        made |= deepseek_layer(number)
    last = "model.layers.61"
    return made | plain(
        {
            f"{last}.embed_tokens": (129_280, 7168),
            f"{last}.shared_head.head": (129_280, 7168),
            f"{last}.eh_proj": (7168, 14_336),
            f"{last}.shared_head.norm": (7168,),
            f"{last}.enorm": (7168,),
            f"{last}.hnorm": (7168,),
        }
    )


def test_deepseek_v3_is_counted_as_the_hub_counts_it():
    found = model("deepseek-ai/DeepSeek-V3", deepseek_v3(), {"quant_method": "fp8", "weight_block_size": [128, 128]})
    assert found.notes == ()
    elements: dict[str, int] = {}
    for group in found.tensors.groups:
        elements[group.dtype] = elements.get(group.dtype, 0) + group.elements
    assert elements == {"BF16": 3_918_786_560, "F8_E4M3": 680_571_043_840, "F32": 41_555_600}
    assert found.tensors.parameters_by_dtype["F32"] == 15_104
    assert found.num_parameters() == 671_026_419_200
    assert found.num_parameters(True) == found.tensors.num_parameters
    assert found.tensors.num_tensors == 91_991


def gpt_oss_20b() -> Shapes:
    h, experts = 2880, 32
    made = plain({"model.embed_tokens": (201_088, h), "lm_head": (201_088, h), "model.norm": (h,)})
    for number in range(24):
        p = f"model.layers.{number}"
        made |= plain(
            {f"{p}.input_layernorm": (h,), f"{p}.post_attention_layernorm": (h,), f"{p}.mlp.router": (experts, h)}
        )
        made |= {f"{p}.mlp.router.bias": ("BF16", (experts,)), f"{p}.self_attn.sinks": ("BF16", (64,))}
        for name, rows, columns in (("q_proj", 4096, h), ("k_proj", 512, h), ("v_proj", 512, h), ("o_proj", h, 4096)):
            made |= plain({f"{p}.self_attn.{name}": (rows, columns)}) | {
                f"{p}.self_attn.{name}.bias": ("BF16", (rows,))
            }
        for name, rows in (("gate_up_proj", 5760), ("down_proj", h)):
            stem = f"{p}.mlp.experts.{name}"
            made |= {
                f"{stem}_blocks": ("U8", (experts, rows, 90, 16)),
                f"{stem}_scales": ("U8", (experts, rows, 90)),
                f"{stem}_bias": ("BF16", (experts, rows)),
            }
    return made


def test_gpt_oss_20b_has_its_published_bytes_and_its_parameters_unpacked():
    found = model("openai/gpt-oss-20b", gpt_oss_20b(), {"quant_method": "mxfp4"})
    assert found.notes == ()
    assert found.tensors.total_bytes == 13_761_264_768
    assert found.num_parameters() == found.tensors.num_parameters == 20_914_757_184
    assert found.tensors.num_tensors == 459
