"""GLM-4 (0414), GLM-4.5 to 4.7, GLM-4.7-Flash and GLM-5: dense, mixtures, and mixtures with latent attention and an
indexer.

Structure: transformers 5.23, models/glm, glm4 (norms after both sublayers), glm4_moe, glm4_moe_lite (latent attention)
and glm_moe_dsa. In GLM-5.2 and later only the layers whose indexer_types is "full" have an indexer and its cache;
"shared" ones reuse the last choice. The checkpoints hold num_nextn_predict_layers more layers, which transformers
ignores. Those of GLM-4.5, 4.7 and 4.7-Flash come with a copy of the embedding and the head; those of GLM-4.6 and GLM-5
have none (the Hub's counts from the safetensors headers: 358,337,791,296 and 356,785,898,816 for GLM-4.5 and 4.6,
whose configs are equal; 753,864,139,008 for GLM-5).
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import feed_kinds, layer_kinds, stack
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import attention, mlp, norm, num_layers, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.architectures.deepseek import draft_layers, indexed_attention, mixture
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message
from tonnage.ops import Attention, Op

FUSED = ("gate_up_proj", "gate_up_proj", "down_proj")
DEFAULTS = {"head_dim": 128, "attention_bias": True}  # GlmConfig and Glm4Config
PATTERN = {"F": "full", "S": "shared"}


@architecture("GlmForCausalLM", model_types=("glm",))
def glm(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    layer = pre_norm("decoder layer", _attention(c), mlp(c, names=FUSED), c.size("hidden_size"))
    return stack(c, "glm", [0] * num_layers(c), lambda _: layer)


@architecture("Glm4ForCausalLM", model_types=("glm4", "glm4v_text"))
def glm4(c: Config) -> Model:
    c, h = c.with_defaults(DEFAULTS), c.size("hidden_size")
    ops = (
        norm("input_layernorm", h),
        _attention(c),
        norm("post_self_attn_layernorm", h),
        norm("post_attention_layernorm", h),
        mlp(c, names=FUSED),
        norm("post_mlp_layernorm", h),
    )
    return stack(c, "glm", [0] * num_layers(c), lambda _: Block("decoder layer", ops))


@architecture("Glm4MoeForCausalLM", "SolarOpenForCausalLM", model_types=("glm4_moe", "glm4v_moe_text", "solar_open"))
def glm4_moe(c: Config) -> Model:
    def layer(kind: str) -> Block:
        mixer = _attention(c, qk_norm="head" if c.flag("use_qk_norm", default=False) else "")
        return pre_norm(Message("{kind} layer", kind=kind), mixer, _feed_forward(c, kind), c.size("hidden_size"))

    return stack(c, "glm", feed_kinds(c), layer, drafts=draft_layers(c, layer("sparse")))


@architecture("Glm4MoeLiteForCausalLM", "GlmMoeDsaForCausalLM", model_types=("glm4_moe_lite", "glm_moe_dsa"))
def glm_latent(c: Config) -> Model:
    def layer(kind: tuple[str, str]) -> Block:
        mixer = indexed_attention(c, indexer=kind[1] == "full")
        shares = " that shares its indexer" if kind[1] == "shared" else ""
        return pre_norm(
            Message("{kind} layer{shares}", kind=kind[0], shares=shares),
            mixer,
            _feed_forward(c, kind[0]),
            c.size("hidden_size"),
        )

    kinds = list(zip(feed_kinds(c), indexer_kinds(c), strict=True))
    copies = c.size("index_n_heads", default=None) is None  # GLM-4.7-Flash
    return stack(c, "glm", kinds, layer, drafts=draft_layers(c, layer(("sparse", "full")), table=copies, head=copies))


def _attention(c: Config, **options: str) -> Attention:
    return attention(c, bias=c.flag("attention_bias", default=False), out_bias=False, **options)


def _feed_forward(c: Config, kind: str) -> Op:
    return mlp(c) if kind == "dense" else mixture(c, corrected=True)


def indexer_kinds(c: Config) -> list[str]:
    """ "full" or "shared" for each layer: indexer_types, the letters of index_topk_pattern, or every
    index_topk_freq-th.
    """
    letters = c.raw("index_topk_pattern")
    if c.raw("indexer_types") is None and isinstance(letters, str):
        if len(letters) < num_layers(c) or set(letters) - set(PATTERN):
            raise InvalidInput(
                "{where}: index_topk_pattern must hold F or S for each layer. Got {letters}.",
                where=c.where,
                letters=shown(letters),
            )
        return [PATTERN[letter] for letter in letters[: num_layers(c)]]
    every, offset = c.size("index_topk_freq", default=1), c.size("index_skip_topk_offset", default=2, smallest=0)

    def usual(layer: int) -> str:
        return "full" if max(layer - offset + 1, 0) % every == 0 else "shared"

    field = "indexer_types" if c.raw("indexer_types") is not None or letters is None else "index_topk_pattern"
    return layer_kinds(c, usual, ("full", "shared"), field)
