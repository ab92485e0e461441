"""The model that the estimators read: branches of layers, layers of blocks, blocks of operations."""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct

from tonnage.ops import Op, Weight
from tonnage.tape import Router, Style

# A "draft" branch (multi-token prediction) is in the checkpoint, and transformers does not load it.
BranchKind = Literal["decoder", "encoder", "vision", "audio", "draft"]


class Block(Struct, frozen=True, eq=False):
    """A kind of layer: the operations of one layer, in the order in which they run."""

    name: str
    ops: tuple[Op, ...]

    def weights(self) -> Iterator[Weight]:
        for op in self.ops:
            yield from op.weights()


class Branch(Struct, frozen=True, eq=False, kw_only=True):
    """A stack of layers with the operations before and after it.

    `layers[i]` is the index in `blocks` of layer i, so patterns (five sliding, one full) need no rule of their own.
    """

    name: str
    kind: BranchKind
    hidden_size: int
    before: tuple[Op, ...] = ()
    blocks: tuple[Block, ...] = ()
    layers: tuple[int, ...] = ()
    after: tuple[Op, ...] = ()

    @property
    def num_layers(self) -> int:
        return len(self.layers)

    def counts(self, first: int = 0, end: int | None = None) -> tuple[int, ...]:
        """Number of layers of each block, from layer `first` up to `end`."""
        part = self.layers[first:end]
        if len(self.blocks) > 16:  # a kind for each layer, as searched models have them
            counter = Counter(part)
            return tuple(counter[index] for index in range(len(self.blocks)))
        return tuple(part.count(index) for index in range(len(self.blocks)))

    def weighted(self) -> Iterator[tuple[Weight, int]]:
        """Every weight with the number of layers that have it."""
        for op in self.before + self.after:
            for weight in op.weights():
                yield weight, 1
        for block, count in zip(self.blocks, self.counts(), strict=True):
            for weight in block.weights():
                yield weight, count


class TensorGroup(Struct, frozen=True):
    """The sums of the stored tensors of one part, type and role.

    `dtype` is the type as the file names it ("BF16", "F8_E4M3", "I32" for packed 4-bit weights, "Q4_K"). `parameters`
    are the model's own: packed values unpacked, and none for scales and buffers.
    """

    part: str  # embedding, head, attention, mixer, mlp, experts, router, norm, vision, audio, draft, other
    dtype: str
    role: Literal["weight", "scale", "buffer"]
    tensors: int
    elements: int
    parameters: int
    bytes: int


class TensorSummary(Struct, frozen=True, kw_only=True):
    """Exact sums from the headers of a model's files, without its config."""

    format: Literal["safetensors", "gguf"]
    files: int
    groups: tuple[TensorGroup, ...]

    @property
    def num_tensors(self) -> int:
        return sum(group.tensors for group in self.groups)

    @property
    def num_parameters(self) -> int:
        """The model's parameters in all files, the multi-token-prediction layers and a twice-stored table included."""
        return sum(group.parameters for group in self.groups)

    @property
    def total_bytes(self) -> int:
        """Bytes of all tensors as stored, without the files' headers."""
        return sum(group.bytes for group in self.groups)

    @property
    def parameters_by_dtype(self) -> dict[str, int]:
        return _added(self.groups, "dtype", "parameters")

    @property
    def bytes_by_dtype(self) -> dict[str, int]:
        return _added(self.groups, "dtype", "bytes")

    @property
    def bytes_by_part(self) -> dict[str, int]:
        """Bytes of each part, its scales included."""
        return _added(self.groups, "part", "bytes")

    @property
    def parameters_by_part(self) -> dict[str, int]:
        return _added(self.groups, "part", "parameters")

    @property
    def scale_bytes(self) -> int:
        """Bytes of scales, zero points and the like."""
        return sum(group.bytes for group in self.groups if group.role == "scale")

    @property
    def bits_per_parameter(self) -> float:
        """Stored bits per model parameter, scales included."""
        return 8 * self.total_bytes / self.num_parameters if self.num_parameters else 0.0


def _added(groups: tuple[TensorGroup, ...], key: str, what: str) -> dict[str, int]:
    sums: dict[str, int] = {}
    for group in groups:
        sums[getattr(group, key)] = sums.get(getattr(group, key), 0) + getattr(group, what)
    return sums


class Diffusion(Struct, frozen=True, kw_only=True):
    """How a diffusion language model makes an answer: masked tokens are denoised in passes over the prompt and the
    whole answer, or, where `block` is not 0, block by block, each seeing the cache of what stands before it. `serves`:
    engines that do so, beside the model's own code (`transformers`).
    """

    block: int
    source: str
    serves: tuple[str, ...] = ()


class Model(Struct, frozen=True, eq=False, kw_only=True):
    """A model read from a file, a hub, the catalogue or its dimensions.

    `dtype` is the checkpoint's own type; `quantization` its quantization_config, unchanged; `assumed` the fields that
    the config left to the family's defaults; `notes` remarks for the user on how it was read; `tensors` the sums of its
    files, where they were read; `source` how it was read; `place` the name that a loader takes, its id on a hub or a
    path; empty where it has none; `diffusion` how it makes answers, where it denoises them.
    """

    name: str
    family: str
    architecture: str
    hidden_size: int
    vocab_size: int
    context: int | None
    branches: tuple[Branch, ...]
    tied: bool = False
    dtype: str | None = None
    quantization: Mapping[str, Any] | None = None
    config: Mapping[str, Any] = {}
    assumed: Mapping[str, Any] = {}
    notes: tuple[str, ...] = ()
    tensors: TensorSummary | None = None
    source: str = ""
    place: str = ""
    diffusion: Diffusion | None = None

    def __repr__(self) -> str:
        context = f", context {self.context:,} tokens" if self.context else ""
        return f"<Model {self.name}: {self.architecture or self.family}, {self.num_parameters():,} parameters{context}>"

    @property
    def decoder(self) -> Branch:
        """The branch that holds the language model: the decoder, or the encoder of a model that only encodes."""
        for kind in ("decoder", "encoder"):
            for branch in self.branches:
                if branch.kind == kind:
                    return branch
        return self.branches[0]

    @property
    def num_layers(self) -> int:
        return self.decoder.num_layers

    def branch(self, name: str) -> Branch | None:
        return next((branch for branch in self.branches if branch.name == name), None)

    def weighted(self, drafts: bool = False) -> Iterator[tuple[Weight, int]]:
        """Every weight with the number of layers that have it; `drafts`: with the multi-token-prediction layers."""
        for branch in self.branches:
            if drafts or branch.kind != "draft":
                yield from branch.weighted()

    def num_parameters(self, drafts: bool = False) -> int:
        """Parameters as transformers loads them, without non-persistent buffers (rotary tables)."""
        return sum(weight.num_parameters * count for weight, count in self.weighted(drafts))

    def num_active_parameters(self) -> int:
        """Parameters that one token of text passes through: only the chosen experts, no towers."""
        branches = (branch for branch in self.branches if branch.kind in ("decoder", "encoder"))
        return sum(weight.num_active_parameters * count for branch in branches for weight, count in branch.weighted())

    def num_embedding_parameters(self) -> int:
        """Parameters of embedding and head, which Kaplan2020 and model cards leave out of "non-embedding"."""
        return sum(
            weight.num_parameters * count for weight, count in self.weighted() if weight.part in ("embedding", "head")
        )


# ---- Choices of a model's own code that affect training memory and no size, from its config and its family.
#
# Source: transformers 5.24, models/*/modeling_*.py.

ACTIVATIONS = (
    "hidden_act",
    "hidden_activation",
    "activation_function",
    "ffn_activation",
    "activation",
    "mlp_hidden_act",
    "dense_act_fn",
)
# The activation in the code of a family whose config does not name it.
ACTIVATION = {
    "gpt2": "gelu_new",
    "gpt_bigcode": "gelu_pytorch_tanh",
    "gptj": "gelu_new",
    "gpt_neo": "gelu_new",
    "phi": "gelu_new",
    "opt": "relu",
    "falcon": "gelu",
    "bloom": "bloom_gelu",
    "mpt": "gelu",
    "gpt_neox": "gelu",
    "starcoder2": "gelu_pytorch_tanh",
    "gemma": "gelu_pytorch_tanh",
    "gemma2": "gelu_pytorch_tanh",
    "gemma3": "gelu_pytorch_tanh",
    "nemotron": "relu2",
    "modernbert": "gelu",
    "mt5": "gelu_new",
    "t5": "relu",
    "apertus": "xielu",
}
NORMS = {
    "gemma": "gemma",
    "gemma2": "gemma",
    "gemma3": "gemma",
    "recurrent_gemma": "gemma",
    "qwen3_next": "gemma",
    "qwen3_5": "gemma",
}
WIDE = ("Olmo2ForCausalLM", "Olmo3ForCausalLM")  # the weight multiplies in fp32
UNTURNED = (
    "gpt2",
    "gpt3",
    "opt",
    "bloom",
    "mpt",
    "gpt_bigcode",
    "gpt_neo",
    "baichuan",
    "nemotron_h",
    "jamba",
    "bert",
    "roberta",
    "distilbert",
    "albert",
    "bart",
    "t5",
    "mt5",
)  # positions are learned, or biases of the scores
NARROW_SOFTMAX = ("gpt2", "gpt3", "falcon")
PARTS = ("partial_rotary_factor", "rotary_pct", "rope_pct")
# The defaults of the classes' configurations, for configs without the field.
PART = {
    **dict.fromkeys(
        ("qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text", "stablelm", "gpt_neox"), 0.25
    ),
    **dict.fromkeys(("glm", "glm4", "glm4_moe", "phi", "persimmon", "nemotron", "recurrent_gemma", "bamba"), 0.5),
}
FUSED = {"phi3": "slice", "gpt_neox": "view", "bloom": "view", "modernbert": "in order"}
# How rotary positions are written, by model_type: pairs of neighbours in fp32, each half apart, complex numbers.
TURNS: dict[str, Any] = {
    **dict.fromkeys(("cohere", "cohere2", "modernbert"), "pairs in fp32"),
    **dict.fromkeys(("ernie4_5", "ernie4_5_moe"), "pairs cast"),
    **dict.fromkeys(("deepseek_v3", "kimi_k2", "glm4_moe_lite", "longcat_flash", "gpt_oss", "youtu"), "apart"),
    **dict.fromkeys(("deepseek_v2", "llama4", "llama4_text"), "complex"),
}
SIGMOID = Router(wide=True, held_wide=True, scores="sigmoid", stays_wide=True)  # held so since 5.24
MIXTRAL = Router(stays_wide=True)
ROUTERS = {
    **dict.fromkeys(
        ("deepseek_v3", "kimi_k2", "glm4_moe", "glm4v_moe", "glm4_moe_lite", "dots1", "mimo_v2_flash", "nemotron_h"),
        SIGMOID,
    ),
    **dict.fromkeys(("mixtral", "minimax"), MIXTRAL),
    **dict.fromkeys(("qwen2_moe", "qwen3_next", "qwen3_5_moe", "qwen3_5_moe_text"), Router(shared_first=True)),
    **dict.fromkeys(("granitemoe", "granitemoeshared", "granitemoehybrid", "gpt_oss"), Router(chosen_first=True)),
    **dict.fromkeys(("gemma4", "gemma4_text"), Router(stays_wide=True)),
    **dict.fromkeys(("llama4", "llama4_text"), Router(every_expert=True)),
    "deepseek_v2": Router(wide=True, held_wide=True, stays_wide=True),
    "minimax_m2": Router(scores="sigmoid", stays_wide=True),
    "hunyuan_v1_moe": Router(wide=True, held_wide=True, stays_wide=True, shared_first=True),
    "ernie4_5_moe": Router(wide=True, held_wide=True, shared_first=True),
}


NORM_KINDS = {
    **dict.fromkeys(("t5", "mt5", "umt5"), "narrow"),
    "gpt_oss": "wide",
    "nemotron_h": "cast",
    "gemma4": "gemma4",
    "gemma4_text": "gemma4",
    "glm4": "",
}
LATE_NORMS = ("gemma3", "gemma3_text", "hunyuan_v1_dense", "hunyuan_v1_moe")
TABLES = {"ernie4_5": 1, "ernie4_5_moe": 1, "glm": 1, "glm4": 1, "gptj": 2}
LAYER_NORMS: dict[str, Any] = {"cohere": "written out", "cohere2": "written out", "olmo": "wide"}
LAYER_NORMED_HEADS = ("stablelm", "cohere", "phi", "persimmon")
BIASED = ("t5", "mt5", "umt5")  # their attention adds a learned number for each distance
# Attention that transformers 5.24 can call: _supports_sdpa and _supports_flash_attn of its models. FlashAttention takes
# sinks and soft caps, scaled_dot_product_attention neither.
NO_FLASH, SINKS = ("bloom", "mpt"), ("gpt_oss", "mimo_v2_flash")
NO_SDPA = (*NO_FLASH, *SINKS)


@lru_cache(maxsize=256)
def style_of(model: Model) -> Style:
    """The style of transformers' code for this model."""
    text = model.config.get("text_config")
    config: Mapping[str, Any] = {**model.config, **text} if isinstance(text, Mapping) else model.config
    kind = _kind(config)
    activation = next(
        (config[name] for name in ACTIVATIONS if isinstance(config.get(name), str)),
        ACTIVATION.get(model.family, "silu"),
    )
    norm = "wide" if model.architecture in WIDE else NORM_KINDS.get(kind, NORMS.get(model.family, ""))
    own_scores = kind in SINKS
    soft_capped = bool(config.get("attn_logit_softcapping", model.family == "gemma2"))
    return Style(
        activation=activation,
        norm=norm,
        rotary=_rotary(model.family, config),
        soft_capped=soft_capped,
        fused=_fused(model.family, config),
        query_scaled=model.family == "opt",
        has_sdpa=kind not in NO_SDPA and not soft_capped,
        has_flash=kind not in NO_FLASH,
        upcasts_softmax=model.family not in NARROW_SOFTMAX and not own_scores,
        subtracts_max=own_scores,
        residual_scaled=model.family.startswith("granite") and config.get("residual_multiplier", 1) != 1,
        turns=TURNS.get(kind, "halves"),
        turns_whole=kind == "gpt_oss",
        router=ROUTERS.get(kind, Router()),
        shares_openly=model.family == "falcon",
        always_masked=model.family == "falcon",
        norms_late=kind in LATE_NORMS,
        values_normed=kind.startswith("gemma4"),
        values_scaled=kind == "mimo_v2_flash",
        tables=TABLES.get(kind, 0),
        layer_norm=LAYER_NORMS.get(kind, ""),
        wide_scores=kind == "gptj",
        head_norm="layer" if kind in LAYER_NORMED_HEADS else "",
        clamped_experts=kind == "gpt_oss",
        biased_positions=kind in BIASED,
        drops_inner=kind in BIASED,
        heads_normed_turned=kind.startswith("llama4") and bool(config.get("use_qk_norm", True)),
    )


def _fused(family: str, config: Mapping[str, Any]) -> Any:
    if family != "falcon":
        return FUSED.get(family, "split")
    if config.get("new_decoder_architecture"):
        return "spread"
    return "picked" if config.get("multi_query", True) else "view"


def _rotary(family: str, config: Mapping[str, Any]) -> float:
    if family in UNTURNED or config.get("alibi"):
        return 0
    parameters = config.get("rope_parameters") or config.get("rope_scaling") or {}
    for where in (config, parameters):
        for name in PARTS:
            if isinstance(where.get(name), int | float):
                return float(where[name])
    turned, width, hidden, heads = (_size(config.get(name)) for name in ("rotary_dim", "head_dim", "n_embd", "n_head"))
    if isinstance(config.get("rotary_dim"), int):
        head = width or hidden / (heads or 1)
        return min(1.0, turned / head) if head else 1
    return PART.get(_kind(config), 1)


def _kind(config: Mapping[str, Any]) -> str:
    """Its model_type, or an empty text where it is none, since nothing checks it in a section."""
    model_type = config.get("model_type")
    return model_type if isinstance(model_type, str) else ""


def _size(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0
