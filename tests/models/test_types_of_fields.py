"""Fields of a config that hold numbers refuse texts, those too that no family asks for."""

import pytest

import tonnage
from tonnage.kernel.errors import InvalidInput

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 1024,
    "intermediate_size": 2816,
    "num_attention_heads": 16,
    "num_hidden_layers": 12,
    "num_key_value_heads": 8,
    "vocab_size": 32000,
    "max_position_embeddings": 4096,
    "torch_dtype": "bfloat16",
}
NUMBERS = (
    "partial_rotary_factor",
    "rope_theta",
    "rms_norm_eps",
    "max_position_embeddings",
    "head_dim",
    "sliding_window",
    "rotary_pct",
    "hidden_size",
    "num_attention_heads",
    "vocab_size",
    "num_hidden_layers",
    "num_key_value_heads",
    "intermediate_size",
    "attention_dropout",
)


@pytest.mark.parametrize("name", NUMBERS)
def test_a_text_where_a_number_belongs_is_refused_by_name(name):
    with pytest.raises(InvalidInput, match=rf"{name} must be .*'x'"):
        tonnage.train(tonnage.read({**CONFIG, name: "x"}), on="h100")


@pytest.mark.parametrize("name", ["partial_rotary_factor", "factor", "original_max_position_embeddings"])
def test_a_text_in_a_section_of_rotations_is_refused_by_name(name):
    with pytest.raises(InvalidInput, match=rf"{name} must be .*'x'"):
        tonnage.read({**CONFIG, "rope_scaling": {"rope_type": "yarn", "factor": 2.0, name: "x"}})
