"""Small model files for the tests: safetensors whose data are holes, configs, GGUF files."""

import json
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import gguf
import numpy as np

BITS = {
    "F32": 32,
    "BF16": 16,
    "F16": 16,
    "U8": 8,
    "I8": 8,
    "F8_E4M3": 8,
    "F8_E8M0": 8,
    "I32": 32,
    "U32": 32,
    "I64": 64,
    "F4": 4,
}
Shapes = Mapping[str, tuple[str, tuple[int, ...]]]

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 96,
    "max_position_embeddings": 128,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
LLAMA_PARAMETERS = 2 * 96 * 32 + 3 * (2 * 32 * 32 + 2 * 32 * 16 + 3 * 32 * 64 + 2 * 32) + 32


def llama(
    layers: int = 3, head: bool = True, dtype: str = "BF16", rows: int = 96
) -> dict[str, tuple[str, tuple[int, ...]]]:
    """The tensors of LLAMA."""
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (rows, 32), "model.norm.weight": (32,)}
    if head:
        shapes["lm_head.weight"] = (rows, 32)
    for number in range(layers):
        for name, shape in LAYER.items():
            shapes[f"model.layers.{number}.{name}.weight"] = shape
    return {name: (dtype, shape) for name, shape in shapes.items()}


LAYER: dict[str, tuple[int, ...]] = {
    "self_attn.q_proj": (32, 32),
    "self_attn.k_proj": (16, 32),
    "self_attn.v_proj": (16, 32),
    "self_attn.o_proj": (32, 32),
    "mlp.gate_proj": (64, 32),
    "mlp.up_proj": (64, 32),
    "mlp.down_proj": (32, 64),
    "input_layernorm": (32,),
    "post_attention_layernorm": (32,),
}


def safetensors(shapes: Shapes, metadata: Mapping[str, str] | None = None) -> bytes:
    """A whole file, its data zeros."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    at = 0
    for name, (dtype, shape) in shapes.items():
        taken = prod(shape) * BITS[dtype] // 8
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + taken]}
        at += taken
    return framed(header) + bytes(at)


def framed(header: Any) -> bytes:
    """The length and the header of a safetensors file."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text


def folder(path: Path, config: Mapping[str, Any] | None = LLAMA, shapes: Shapes | None = None) -> Path:
    """A model's folder with a config and one file of weights."""
    path.mkdir(parents=True, exist_ok=True)
    if config is not None:
        (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    if shapes is not None:
        (path / "model.safetensors").write_bytes(safetensors(shapes))
    return path


def shards(shapes: Shapes, count: int = 2) -> dict[str, bytes]:
    """The same tensors in several files, with their index."""
    names = [f"model-{number + 1:05}-of-{count:05}.safetensors" for number in range(count)]
    parts: list[dict[str, tuple[str, tuple[int, ...]]]] = [{} for _ in names]
    where = {}
    for number, (name, what) in enumerate(shapes.items()):
        parts[number % count][name] = what
        where[name] = names[number % count]
    made = {name: safetensors(part) for name, part in zip(names, parts, strict=True)}
    made["model.safetensors.index.json"] = json.dumps({"metadata": {}, "weight_map": where}).encode()
    return made


GGUF_LLAMA = {
    "llama.block_count": 2,
    "llama.embedding_length": 256,
    "llama.feed_forward_length": 512,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.context_length": 1024,
}
GGUF_LAYER: dict[str, tuple[int, ...]] = {
    "attn_q": (256, 256),
    "attn_k": (128, 256),
    "attn_v": (128, 256),
    "attn_output": (256, 256),
    "ffn_gate": (512, 256),
    "ffn_up": (512, 256),
    "ffn_down": (256, 512),
}


def gguf_llama_tensors(kind: str = "Q4_K", layers: int = 2) -> dict[str, tuple[str, tuple[int, ...]]]:
    shapes: dict[str, tuple[str, tuple[int, ...]]] = {
        "token_embd.weight": ("Q6_K", (512, 256)),
        "output.weight": ("Q6_K", (512, 256)),
        "output_norm.weight": ("F32", (256,)),
    }
    for number in range(layers):
        shapes |= {f"blk.{number}.{name}.weight": (kind, shape) for name, shape in GGUF_LAYER.items()}
        shapes |= {f"blk.{number}.{name}.weight": ("F32", (256,)) for name in ("attn_norm", "ffn_norm")}
    return shapes


def write_gguf(
    path: Path,
    metadata: Mapping[str, Any],
    shapes: Shapes,
    architecture: str = "llama",
    file_type: int | None = 15,
    tokens: int = 0,
    endian: gguf.GGUFEndian = gguf.GGUFEndian.LITTLE,
) -> Path:
    """A GGUF file by the gguf package, its data zeros."""
    writer = gguf.GGUFWriter(path, architecture, endianess=endian)
    for key, value in metadata.items():
        _add(writer, key, value)
    if file_type is not None:
        writer.add_file_type(file_type)
    if tokens:
        writer.add_token_list([f"token {number}" for number in range(tokens)])
        writer.add_token_scores([0.0] * tokens)
    at = 0
    for name, (kind, shape) in shapes.items():
        number = gguf.GGMLQuantizationType[kind]
        block, size = gguf.GGML_QUANT_SIZES[number]
        taken = prod(shape) // block * size
        writer.add_tensor_info(name, shape, np.dtype(np.float32), taken, raw_dtype=number)
        at += -(-taken // 32) * 32
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    with path.open("r+b") as file:
        end = file.seek(0, 2)
        file.truncate(-(-end // 32) * 32 + at)
    return path


def _add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_array(key, value)
