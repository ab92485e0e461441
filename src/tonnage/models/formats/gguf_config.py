"""GGUF metadata -> the fields of the config.json that the file was made from.

Keys are llama.cpp's (gguf 0.19, constants.py: Keys); the keys that each architecture's converter writes are in its
convert_hf_to_gguf.py. Where metadata is silent - biases, a tied head, a second norm - the tensors decide.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tonnage.kernel.errors import InvalidInput, shown
from tonnage.models.formats.gguf import FILE_TYPES, Counted
from tonnage.models.tensors import Tensor

Fields = dict[str, Any]
_DTYPES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
LARGEST = 2**40

# General fields: ours <- GGUF's, without the architecture's name.
_COMMON = {
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "max_position_embeddings": "context_length",
    "sliding_window": "attention.sliding_window",
}
_MIXTURE = {"num_experts_per_tok": "expert_used_count", "moe_intermediate_size": "expert_feed_forward_length"}
# Architecture -> class name in transformers, where the common fields say all.
_PLAIN = {
    "llama": "LlamaForCausalLM",
    "mistral3": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "gemma": "GemmaForCausalLM",
    "gemma2": "Gemma2ForCausalLM",
    "gemma3": "Gemma3ForCausalLM",
    "phi2": "PhiForCausalLM",
    "phi3": "Phi3ForCausalLM",
    "starcoder2": "Starcoder2ForCausalLM",
    "gptneox": "GPTNeoXForCausalLM",
    "command-r": "CohereForCausalLM",
    "cohere2": "Cohere2ForCausalLM",
    "glm4": "Glm4ForCausalLM",
    "olmo": "OlmoForCausalLM",
    "olmo2": "Olmo2ForCausalLM",
    "stablelm": "StableLmForCausalLM",
    "granite": "GraniteForCausalLM",
    "smollm3": "SmolLM3ForCausalLM",
    "nemotron": "NemotronForCausalLM",
    "internlm2": "InternLM2ForCausalLM",
    "baichuan": "BaichuanForCausalLM",
    "exaone": "ExaoneForCausalLM",
    "seed_oss": "SeedOssForCausalLM",
    "hunyuan-dense": "HunYuanDenseV1ForCausalLM",
    "ernie4_5": "Ernie4_5ForCausalLM",
    "arcee": "ArceeForCausalLM",
}


class _Gguf:
    """Metadata with checked access, and the tensors by name."""

    def __init__(self, metadata: Mapping[str, Any], tensors: Sequence[Tensor], where: str):
        self.metadata, self.where = metadata, where
        self.tensors = {tensor.name: tensor for tensor in tensors}
        self.architecture = self._architecture()

    def _architecture(self) -> str:
        name = self.metadata.get("general.architecture")
        if not isinstance(name, str) or not name:
            raise InvalidInput(
                "{where}: general.architecture must name what the model is. Got {name}.",
                where=self.where,
                name=shown(name),
            )
        return name

    def raw(self, key: str) -> Any:
        value = self.metadata.get(f"{self.architecture}.{key}")
        return None if isinstance(value, Counted) else value

    def value(self, key: str) -> Any:
        """The value: a whole number, or a list with one for each layer where they differ; None where the key is
        missing.
        """
        value = self.raw(key)
        if isinstance(value, list):
            if not value:
                return None
            value = value[0] if len(set(map(repr, value))) == 1 else value
        if value is None or isinstance(value, list):
            return value
        return self._whole(key, value)

    def number(self, key: str, default: int | None = None) -> int | None:
        """The value as a whole number: of a list its maximum."""
        value = self.value(key)
        if isinstance(value, list):
            value = max(self._whole(key, item) for item in value)
        return default if value is None else value

    def need(self, key: str) -> int:
        value = self.number(key)
        if not value:
            raise InvalidInput(
                "{where}: {architecture}.{key} is missing, and decides the model's size.",
                where=self.where,
                architecture=self.architecture,
                key=key,
            )
        return value

    def items(self, key: str, length: int) -> list[int]:
        """One whole number for each layer."""
        value = self.value(key)
        numbers = value if isinstance(value, list) else [value or 0] * length
        if len(numbers) != length:
            raise InvalidInput(
                "{where}: {architecture}.{key} must have {length} items. Got {count}.",
                where=self.where,
                architecture=self.architecture,
                key=key,
                length=length,
                count=len(numbers),
            )
        return [self._whole(key, item) for item in numbers]

    def _whole(self, key: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < LARGEST:
            raise InvalidInput(
                "{where}: {architecture}.{key} must be a whole number. Got {value}.",
                where=self.where,
                architecture=self.architecture,
                key=key,
                value=shown(value),
            )
        return value

    def has(self, name: str) -> bool:
        """Whether any layer has this tensor; `name` is what follows blk.N."""
        return any(tensor.endswith(f".{name}") for tensor in self.tensors if tensor.startswith("blk."))


def config_of(metadata: Mapping[str, Any], tensors: Sequence[Tensor], where: str) -> tuple[Fields, list[str]]:
    """The fields of a config.json, and notes on missing ones."""
    g = _Gguf(metadata, tensors, where)
    fields: Fields = {"model_type": f"gguf:{g.architecture}"}
    notes: list[str] = []
    try:
        fields |= _common(g)
        if g.architecture in _SPECIAL:
            _SPECIAL[g.architecture](g, fields)
        elif g.architecture in _PLAIN:
            fields["architectures"] = [_PLAIN[g.architecture]]
    except InvalidInput as error:
        fields.pop("architectures", None)
        notes.append(str(error))
    if "architectures" in fields and fields["model_type"].startswith("gguf:"):
        del fields["model_type"]
    _add_type(g, fields)
    return {key: value for key, value in fields.items() if value is not None}, notes


def name_of(metadata: Mapping[str, Any]) -> str:
    name = metadata.get("general.name")
    return name.strip()[:200] if isinstance(name, str) else ""


def _common(g: _Gguf) -> Fields:
    fields: Fields = {ours: g.value(theirs) for ours, theirs in _COMMON.items()}
    drafts = g.number("nextn_predict_layers", 0) or 0
    fields["num_hidden_layers"] = g.need("block_count") - drafts
    fields["num_nextn_predict_layers"] = drafts or None
    fields["vocab_size"] = _vocabulary(g)
    fields["tie_word_embeddings"] = "output.weight" not in g.tensors if "token_embd.weight" in g.tensors else None
    if g.has("attn_q.bias"):
        fields["attention_bias"] = True
    heads = fields["num_attention_heads"]
    if fields["head_dim"] is None and isinstance(heads, int) and heads:  # llama.cpp's own default
        fields["head_dim"] = g.need("embedding_length") // heads
    return fields


def _vocabulary(g: _Gguf) -> int | None:
    """Rows of the embedding table; without it the metadata's vocab_size, or the number of tokens."""
    table = g.tensors.get("token_embd.weight")
    if table is not None and len(table.shape) == 2:
        return table.shape[0]
    tokens = g.metadata.get("tokenizer.ggml.tokens")
    return g.number("vocab_size") or (tokens.items if isinstance(tokens, Counted) else None)


def _add_type(g: _Gguf, fields: Fields) -> None:
    number = g.metadata.get("general.file_type")
    name = FILE_TYPES.get(number) if isinstance(number, int) else None
    kinds = {tensor.dtype for tensor in g.tensors.values() if len(tensor.shape) > 1}
    if kinds and kinds <= set(_DTYPES):
        fields["dtype"] = _DTYPES[
            max(kinds, key=lambda kind: sum(t.bytes for t in g.tensors.values() if t.dtype == kind))
        ]
    else:
        fields["quantization_config"] = {"quant_method": "gguf", "file_type": name or "mixed"}


def _llama(g: _Gguf, fields: Fields) -> None:
    fields["architectures"] = ["LlamaForCausalLM"]
    experts = g.number("expert_count", 0)
    if experts:
        fields |= {
            "architectures": ["MixtralForCausalLM"],
            "num_local_experts": experts,
            "num_experts_per_tok": g.need("expert_used_count"),
        }


def _experts(g: _Gguf, fields: Fields, name: str = "num_experts") -> None:
    fields[name] = g.need("expert_count")
    fields |= {
        ours: g.need(theirs) if theirs != "expert_feed_forward_length" else g.number(theirs)
        for ours, theirs in _MIXTURE.items()
    }


def _qwen2moe(g: _Gguf, fields: Fields) -> None:
    _experts(g, fields)
    fields |= {
        "architectures": ["Qwen2MoeForCausalLM"],
        "decoder_sparse_step": 1,
        "shared_expert_intermediate_size": g.need("expert_shared_feed_forward_length"),
    }
    if fields["moe_intermediate_size"] is None:
        fields["moe_intermediate_size"] = _rows(g, "ffn_gate_exps.weight")


def _qwen3moe(g: _Gguf, fields: Fields) -> None:
    _experts(g, fields)
    fields |= {"architectures": ["Qwen3MoeForCausalLM"], "decoder_sparse_step": 1}


def _rows(g: _Gguf, name: str) -> int | None:
    """The output rows of one expert, or of a matrix."""
    match = next((tensor for key, tensor in g.tensors.items() if key.endswith(f".{name}")), None)
    return match.shape[-2] if match is not None and len(match.shape) > 1 else None


def _tied(name: str) -> Callable[[_Gguf, Fields], None]:
    """A converter for families whose head is always tied, even where a file stores it again."""

    def special(g: _Gguf, fields: Fields) -> None:
        fields |= {"architectures": [name], "tie_word_embeddings": True}

    return special


def _gemma3(g: _Gguf, fields: Fields) -> None:
    fields |= {"architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "tie_word_embeddings": True}


def _deepseek2(g: _Gguf, fields: Fields) -> None:
    rope = g.need("rope.dimension_count")
    keys = g.number("attention.key_length_mla") or g.need("attention.key_length")
    third = g.has("exp_probs_b.bias") or g.has("exp_probs_b")
    fields |= {
        "architectures": ["DeepseekV3ForCausalLM" if third else "DeepseekV2ForCausalLM"],
        "topk_method": "noaux_tc" if third else None,
        "q_lora_rank": g.number("attention.q_lora_rank") or None,
        "kv_lora_rank": g.need("attention.kv_lora_rank"),
        "qk_rope_head_dim": rope,
        "qk_nope_head_dim": keys - rope,
        "v_head_dim": g.number("attention.value_length_mla") or g.need("attention.value_length"),
        "n_routed_experts": g.need("expert_count"),  # Youtu and other dense models of this architecture have none
        "num_experts_per_tok": g.need("expert_used_count"),
        "n_shared_experts": g.number("expert_shared_count", 0),
        "moe_intermediate_size": g.need("expert_feed_forward_length"),
        "first_k_dense_replace": g.number("leading_dense_block_count", 0),
        "moe_layer_freq": 1,
        "head_dim": None,
        "num_key_value_heads": None,
    }


def _gpt2(g: _Gguf, fields: Fields) -> None:
    fields |= {
        "architectures": ["GPT2LMHeadModel"],
        "n_embd": g.need("embedding_length"),
        "n_layer": g.need("block_count"),
        "n_head": g.need("attention.head_count"),
        "n_inner": g.number("feed_forward_length"),
        "n_positions": _positions(g),
        "tie_word_embeddings": True,
    }
    _without(
        fields,
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "intermediate_size",
        "head_dim",
        "max_position_embeddings",
        "attention_bias",
    )


def _positions(g: _Gguf) -> int | None:
    table = g.tensors.get("position_embd.weight")
    return table.shape[0] if table is not None and table.shape else g.number("context_length")


def _without(fields: Fields, *names: str) -> None:
    for name in names:
        fields.pop(name, None)


def _falcon(g: _Gguf, fields: Fields) -> None:
    kv = g.number("attention.head_count_kv", 1) or 1
    fields |= {
        "architectures": ["FalconForCausalLM"],
        "num_kv_heads": kv,
        "multi_query": kv == 1,
        "parallel_attn": True,
        "new_decoder_architecture": g.has("attn_norm_2.weight"),
        "bias": g.has("attn_qkv.bias"),
        "alibi": False,
    }
    _without(fields, "intermediate_size", "num_key_value_heads", "head_dim")
    fields["ffn_hidden_size"] = g.number("feed_forward_length")


def _bloom(g: _Gguf, fields: Fields) -> None:
    fields |= {
        "architectures": ["BloomForCausalLM"],
        "n_layer": g.need("block_count"),
        "n_head": g.need("attention.head_count"),
        "tie_word_embeddings": True,
    }
    _without(
        fields,
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "intermediate_size",
        "head_dim",
        "attention_bias",
    )


def _mpt(g: _Gguf, fields: Fields) -> None:
    width = g.need("embedding_length")
    fields |= {
        "architectures": ["MPTForCausalLM"],
        "d_model": width,
        "n_layers": g.need("block_count"),
        "n_heads": g.need("attention.head_count"),
        "max_seq_len": g.need("context_length"),
        "expansion_ratio": (g.number("feed_forward_length") or 4 * width) // width,
        "no_bias": not g.has("attn_qkv.bias"),
        "tie_word_embeddings": True,
    }
    kv = g.number("attention.head_count_kv")
    fields["attn_config"] = {
        "attn_type": "multihead_attention",
        "alibi": "position_embd.weight" not in g.tensors,
        **({"kv_n_heads": kv} if kv else {}),
    }
    _without(
        fields,
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "intermediate_size",
        "head_dim",
        "max_position_embeddings",
        "attention_bias",
    )


def _starcoder(g: _Gguf, fields: Fields) -> None:
    _gpt2(g, fields)
    fields |= {"architectures": ["GPTBigCodeForCausalLM"], "multi_query": g.number("attention.head_count_kv", 1) == 1}


def _gpt_oss(g: _Gguf, fields: Fields) -> None:
    fields |= {
        "architectures": ["GptOssForCausalLM"],
        "num_local_experts": g.need("expert_count"),
        "num_experts_per_tok": g.need("expert_used_count"),
        "attention_bias": True,
        "intermediate_size": g.number("expert_feed_forward_length") or g.need("feed_forward_length"),
    }


def _glm4moe(g: _Gguf, fields: Fields) -> None:
    fields |= {
        "architectures": ["Glm4MoeForCausalLM"],
        "n_routed_experts": g.need("expert_count"),
        "num_experts_per_tok": g.need("expert_used_count"),
        "n_shared_experts": g.number("expert_shared_count", 0),
        "moe_intermediate_size": g.need("expert_feed_forward_length"),
        "first_k_dense_replace": g.number("leading_dense_block_count", 0),
        "use_qk_norm": g.has("attn_q_norm.weight"),
    }


def _cohere(g: _Gguf, fields: Fields) -> None:
    fields |= {
        "architectures": ["CohereForCausalLM"],
        "use_qk_norm": g.has("attn_q_norm.weight"),
        "tie_word_embeddings": True,
    }


def _mamba(g: _Gguf, fields: Fields) -> None:
    fields |= {
        "architectures": ["MambaForCausalLM"],
        "state_size": g.need("ssm.state_size"),
        "conv_kernel": g.need("ssm.conv_kernel"),
        "time_step_rank": g.need("ssm.time_step_rank"),
        "intermediate_size": g.need("ssm.inner_size"),
        "expand": g.need("ssm.inner_size") // g.need("embedding_length"),
    }
    _without(fields, "num_attention_heads", "num_key_value_heads", "head_dim")


def _mamba2(g: _Gguf, fields: Fields) -> None:
    _mamba(g, fields)
    heads, inner = g.need("ssm.time_step_rank"), g.need("ssm.inner_size")
    fields |= {
        "architectures": ["Mamba2ForCausalLM"],
        "num_heads": heads,
        "head_dim": inner // heads,
        "n_groups": g.need("ssm.group_count"),
    }
    _without(fields, "time_step_rank", "intermediate_size")


def _nemotron_h(g: _Gguf, fields: Fields) -> None:
    """Nemotron-H: each block is attention (it has KV heads), feed-forward (it has a width), a mixture, or Mamba 2."""
    blocks, count = g.need("block_count"), fields["num_hidden_layers"]
    kv, widths = g.items("attention.head_count_kv", blocks)[:count], g.items("feed_forward_length", blocks)[:count]
    sparse = {int(name.split(".")[1]) for name in g.tensors if name.startswith("blk.") and "_exps." in name}
    kinds = ["*" if kv[i] else "E" if i in sparse else "-" if widths[i] else "M" for i in range(count)]
    heads, inner = g.need("ssm.time_step_rank"), g.need("ssm.inner_size")
    fields |= {
        "architectures": ["NemotronHForCausalLM"],
        "hybrid_override_pattern": "".join(kinds),
        "num_key_value_heads": max(kv),
        "num_attention_heads": g.need("attention.head_count"),
        "intermediate_size": max(widths),
        "ssm_state_size": g.need("ssm.state_size"),
        "mamba_num_heads": heads,
        "mamba_head_dim": inner // heads,
        "n_groups": g.need("ssm.group_count"),
        "conv_kernel": g.need("ssm.conv_kernel"),
    }
    if sparse:
        _experts(g, fields, "n_routed_experts")
        fields["moe_shared_expert_intermediate_size"] = g.number("expert_shared_feed_forward_length")
        fields["moe_latent_size"] = g.number("moe_latent_size") or None


_SPECIAL: dict[str, Callable[[_Gguf, Fields], None]] = {
    "llama": _llama,
    "qwen2moe": _qwen2moe,
    "qwen3moe": _qwen3moe,
    "gemma": _tied("GemmaForCausalLM"),
    "gemma2": _tied("Gemma2ForCausalLM"),
    "gemma3": _gemma3,
    "deepseek2": _deepseek2,
    "gpt2": _gpt2,
    "falcon": _falcon,
    "bloom": _bloom,
    "mpt": _mpt,
    "starcoder": _starcoder,
    "gpt-oss": _gpt_oss,
    "glm4moe": _glm4moe,
    "command-r": _cohere,
    "mamba": _mamba,
    "mamba2": _mamba2,
    "nemotron_h": _nemotron_h,
    "nemotron_h_moe": _nemotron_h,
}
