"""Which layers peft scales by IA3 where none are named, by the type of the model: of the last ones the inputs, of the
others the outputs.

Source: peft 0.21.2, peft/utils/constants.py: TRANSFORMERS_MODELS_TO_IA3_TARGET_MODULES_MAPPING and
TRANSFORMERS_MODELS_TO_IA3_FEEDFORWARD_MODULES_MAPPING.
"""

from collections.abc import Mapping

KEYS, QUERIES = ("k_proj", "v_proj"), ("q_proj", "v_proj")
IA3: Mapping[str, tuple[tuple[str, ...], str]] = {
    "gpt2": (("c_attn",), "mlp.c_proj"),
    "bloom": (("query_key_value",), "mlp.dense_4h_to_h"),
    "opt": (("q_proj", "k_proj"), "fc2"),
    "gptj": (QUERIES, "fc_out"),
    "gpt_neox": (("query_key_value",), "dense_4h_to_h"),
    "llama": (KEYS, "down_proj"),
    "mistral": (KEYS, "down_proj"),
    "falcon": (("query_key_value",), "dense_4h_to_h"),
    "phi": (QUERIES, "fc2"),
    **dict.fromkeys(("gemma", "gemma2", "gemma3_text", "qwen2", "qwen3"), (QUERIES, "down_proj")),
}
