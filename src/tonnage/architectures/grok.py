"""Grok 1 and 2: eight wide experts, two a token; norms before and after both sublayers.

Structure: sgl-project/sglang python/sglang/srt/models/grok.py (with residual_moe, Grok 2 runs a dense feed-forward
beside the experts; moe_intermediate_size is the width of one expert where it is given); names of Grok 1's conversion to
transformers (Grok1ModelForCausalLM): vllm-project/vllm vllm/model_executor/models/grok1.py.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import moe
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, decoder, mlp, model, norm
from tonnage.architectures._registry import architecture
from tonnage.ops import Op


@architecture("Grok1ForCausalLM", model_types=("grok-2",))
def grok(c: Config) -> Model:
    return grok_model(c, "self_attn", "block_sparse_moe", ("w1", "w3", "w2"), tied=False)


@architecture("Grok1ModelForCausalLM", model_types=("grok-1",))
def grok_1(c: Config) -> Model:
    """Grok 1, whose configuration class ties the head to the embedding by default."""
    return grok_model(c, "attn", "moe_block", ("linear", "linear_v", "linear_1"), tied=True)


def grok_model(c: Config, mixer: str, feed: str, matrices: tuple[str, str, str], tied: bool) -> Model:
    h = c.size("hidden_size")
    width = c.size("moe_intermediate_size", "intermediate_size")
    feeds: tuple[Op, ...] = (moe(c, name=feed, expert_names=matrices, intermediate_size=width),)
    if c.flag("residual_moe", default=False):
        feeds = (mlp(c), *feeds)
    before, after, inner, outer = (norm(f"{name}_norm", h) for name in ("pre_attn", "post_attn", "pre_moe", "post_moe"))
    layer = Block("mixture layer", (before, attention(c, name=mixer), after, inner, *feeds, outer))
    is_tied = c.flag("tie_word_embeddings", default=tied)
    return model(c, "grok", decoder(c, [layer], tied=is_tied), tied=is_tied)
