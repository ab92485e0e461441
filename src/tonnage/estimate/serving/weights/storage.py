"""How the weights of a served model are stored: bytes of each weight, from what the user asks for, the files' headers,
the checkpoint's quantization_config, or its dtype, in this order."""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import accumulate
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Block, Branch, Model
from tonnage.estimate.inputs import Origin
from tonnage.estimate.plan.rule import near
from tonnage.estimate.serving.weights.request import asked_for, is_meant
from tonnage.estimate.step.rank import COPIED_TABLE
from tonnage.kernel.errors import InvalidPlan, TonnageError
from tonnage.kernel.message import Message
from tonnage.numerics.precisions import Precision, precision
from tonnage.numerics.quantization import (
    FILE_TYPES,
    OWN_FORMATS,
    VALUES,
    FileType,
    Layout,
    Module,
    Shape,
    file_type,
    layout,
    role,
    tensor_type,
    tool_layout,
)
from tonnage.numerics.quantization import SOURCE as GGUF
from tonnage.ops import MLP, Attention, MoE, Op, Weight
from tonnage.runtimes import ServingRuntime, serving_runtime
from tonnage.spec import ServingPlan

# ---- Bytes of a model's weights as they are stored: of one weight at a place, of an op, of a layer, of a branch.


class WeightPlace(Struct, frozen=True):
    """Where a weight is: in layer `layer` of the language model, beside its layers, in a tower, or in a draft."""

    kind: Literal["layer", "outside", "vision", "audio", "draft"] = "outside"
    layer: int = 0


OUTSIDE = WeightPlace()
Size = Callable[[Weight, WeightPlace], float]


class Storage(Struct, frozen=True, eq=False):
    """Bytes of a weight (all its copies) at a place; and where that is known from.

    `origin`: "default" where nobody said it; `by_layer`: layers of one kind can differ, in the weights that `differs`
    says.
    """

    name: str
    source: str
    bytes_of: Size
    origin: Origin = "model"
    by_layer: bool = False
    differs: Callable[[Weight], bool] = lambda weight: True
    ops: Mapping[Op, WeightPlace] = {}
    blocks: Mapping[Block, tuple[WeightPlace, ...]] = {}

    def mean_bytes(self, weight: Weight, places: tuple[WeightPlace, ...]) -> float:
        """Bytes of a weight of each of these layers: the mean where they can differ."""
        different = places if self.by_layer and self.differs(weight) else places[:1]
        return sum(self.bytes_of(weight, place) for place in different) / len(different)


@lru_cache(maxsize=512)
def block_bytes(model: Model, stored: Storage, block: Block) -> dict[tuple[str, int], tuple[int, float]]:
    """One layer of this kind: (split, heads) -> (parameters, bytes), the mean over the layers where they can differ."""
    places = stored.blocks.get(block) or (OUTSIDE,)
    totals: dict[tuple[str, int], tuple[int, float]] = {}
    for weight in block.weights():
        _add(totals, weight, stored.mean_bytes(weight, places))
    return totals


def op_bytes(stored: Storage, op: Op) -> list[tuple[Weight, float]]:
    """Each weight of an op outside the layers with its bytes."""
    return [(weight, stored.bytes_of(weight, stored.ops.get(op, OUTSIDE))) for weight in op.weights()]


def _add(totals: dict[tuple[str, int], tuple[int, float]], weight: Weight, size: float) -> None:
    cut = (weight.split, weight.heads if weight.split == "kv" else 0)
    count, total = totals.get(cut, (0, 0.0))
    totals[cut] = (count + weight.num_parameters, total + size)


def branch_bytes(model: Model, stored: Storage, branch: Branch) -> float:
    """Bytes of all weights of a branch of the model."""
    loose = sum(size for op in branch.before + branch.after for _, size in op_bytes(stored, op))
    counts = zip(branch.blocks, branch.counts(), strict=True)
    return loose + sum(size * n for block, n in counts for _, size in block_bytes(model, stored, block).values())


# ---- Weights that are quantised in blocks of rows and columns (FP8 of DeepSeek-V3 and others): which tensor sizes
# engines
# cut them into.
#
# vLLM and SGLang refuse to load a rank's part of a matrix whose cut side is no multiple of the block: an expert of
# 1,536
# on 8 ranks is 192 wide, and a block is 128. Expert parallelism keeps experts whole.


def check_blocks(
    model: Model, weights: str | None, engine: ServingRuntime, t: int, e: int, groups: int, among: list[int]
) -> None:
    """InvalidPlan where a rank's part of a matrix is cut through a block. `t`, `e`: tensor and expert ranks;
    `among`: sizes that there is room for.
    """
    wrong = None if not engine.blocks_rule else _misfit(model, weights, t, e, groups)
    if wrong is None:
        return
    what, width, part, block = wrong
    fitting = [size for size in among if _misfit(model, weights, size, min(e, size * groups), groups) is None]
    ranks = t * groups
    nearest = str(near(t, fitting or [1]))
    if what == "expert" and _misfit(model, weights, t, ranks, groups) is None:
        nearest += Message(", or {@expert_parallel_size} {whole}", whole=ranks)
    raise InvalidPlan(
        "{@tensor_parallel_size}: {version} cuts the {width:,} columns of an {what} of {model} "
        "into {part:g} a rank, which is no multiple of its blocks of {block}. Got {t}. Nearest: "
        "{nearest}. ({blocks_rule}.)",
        version=engine.version,
        width=width,
        what=what,
        model=model.name,
        part=part,
        block=block,
        t=t,
        nearest=nearest,
        blocks_rule=engine.blocks_rule,
    )


def fits_blocks(model: Model, weights: str | None, engine: ServingRuntime, t: int, e: int, groups: int) -> bool:
    """Whether the engine loads the weights on so many ranks."""
    try:
        return not engine.blocks_rule or _misfit(model, weights, t, e, groups) is None
    except TonnageError:  # what the checkpoint is in cannot be told: the reading of its weights says so
        return True


@lru_cache(maxsize=1024)
def _misfit(model: Model, weights: str | None, t: int, e: int, groups: int) -> tuple[str, int, float, int] | None:
    """What is cut through a block: its name, its width, the part of a rank, and the block."""
    blocks = block_sizes(model, weights)
    if not blocks:
        return None
    ranks = {"expert": t * groups // e if e else 1, "MLP": t, "attention output": t}
    for layer in model.decoder.blocks:
        for op in layer.ops:
            for what, width, name in _cut(op):
                block = blocks.get(name)
                part = width / max(ranks[what], 1)
                if block and ranks[what] > 1 and part % block:
                    return what, width, part, block
    return None


def _cut(op: Op) -> Iterator[tuple[str, int, str]]:
    """For each matrix that tensor ranks share: what it is of, the width that is cut, and the name of its weight."""
    names = [weight.name for weight in op.weights() if weight.linear]
    if isinstance(op, MoE):
        yield from (("expert", op.intermediate_size, name) for name in names if ".experts." in f".{name}")
        yield from (
            ("MLP", op.shared_size, name) for name in names if op.shared_size and f".{op.shared_name}." in f".{name}"
        )
    elif isinstance(op, MLP):
        yield from (("MLP", op.intermediate_size, name) for name in names)
    elif isinstance(op, Attention):
        # Keys and values of few heads are repeated or padded by engines: of them nothing is refused here.
        query, _, _, out = op.names
        yield from (
            ("attention output", op.heads * op.head_dim, name) for name in names if name.split(".")[-2] in (query, out)
        )


# ---- A model's weights in a GGUF file: what `llama-quantize` would choose for each, and the towers in a file beside
# it.

LAYERED = (*VALUES, "ffn_down", "ffn_up")  # roles whose type the rules choose by the layer


def gguf_storage(model: Model, kind: FileType, plain: Precision, source: str, imatrix: bool = False) -> Storage:
    """A file of this type, and the towers beside it, which llama.cpp keeps in a file of their own and in 16 bits,
    `plain`.
    """
    before = _values_before(model)
    shape = _shape(model, before[-1], imatrix)
    known: dict[
        tuple[str, bool, int, int, int, int], float
    ] = {}  # every tensor of a block is asked for again in each of its layers, thrice an answer

    def bytes_of(weight: Weight, place: WeightPlace) -> float:
        if place.kind in ("vision", "audio"):
            return plain.bytes(weight.rows, weight.columns, weight.copies)
        what = role(weight.name, weight.part, weight.columns)
        layer = place.layer if what in LAYERED else 0
        key = what, weight.part == "experts", weight.rows, weight.columns, weight.copies, layer
        stored = known.get(key)
        if stored is None:
            stored = known[key] = chosen(weight, what, layer)
        return stored

    def chosen(weight: Weight, what: str, layer: int) -> float:
        layer = before[min(layer, len(before) - 1)] if what in VALUES else layer
        precision = tensor_type(kind, what, layer, shape, weight.columns, weight.part == "experts")
        return precision.bytes(weight.rows, weight.columns, weight.copies)

    def differs(weight: Weight) -> bool:
        return role(weight.name, weight.part, weight.columns) in LAYERED

    return Storage(kind.name, source, bytes_of, by_layer=True, differs=differs)


def _values_before(model: Model) -> list[int]:
    """How many layers before each, and in all, have values: the rules count only those."""
    main = model.decoder
    have = [any(role(w.name, w.part, w.columns) in VALUES for w in block.weights()) for block in main.blocks]
    return list(accumulate((int(have[index]) for index in main.layers), initial=0))


def _shape(model: Model, num_values: int, imatrix: bool) -> Shape:
    ops = [op for block in model.decoder.blocks for op in block.ops]
    attention = next((op for op in ops if isinstance(op, Attention)), None)
    experts = next((op.num_experts for op in ops if isinstance(op, MoE)), 0)
    groups = attention.heads // attention.kv_heads if attention else 1
    return Shape(
        num_layers=model.num_layers,
        num_values=num_values,
        groups=groups,
        num_experts=experts,
        tied=model.tied,
        imatrix=imatrix,
    )


_DTYPE = {
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float64": "fp64",
    "float8_e4m3fn": "fp8-e4m3",
    "int8": "int8",
}


FLOATS = ("bf16", "f16", "f32", "fp16", "fp32")  # types of files too, and nothing tells them from a checkpoint


def storage(model: Model, requested: str | None) -> Storage:
    """What the user asked for, else what the headers say, else what the config says."""
    return _storage(model, requested)


def is_gguf_type(stored: Storage) -> bool:
    """Whether the weights are in a GGUF file of quantised tensors."""
    return stored.name in FILE_TYPES and stored.name not in FLOATS


def is_mlx(stored: Storage) -> bool:
    """Whether the weights are in files of MLX, which its own engine alone loads."""
    return stored.name.startswith("mlx-")


def takes_adapters_alone(stored: Storage) -> bool:
    """Whether weights are quantised to integers or nf4 in a way that frameworks train only adapters on."""
    return stored.name.startswith(("awq", "gptq", "mlx-", "nf4", "fp4", "bnb", *OWN_FORMATS))


def loaded_storage(model: Model, plan: ServingPlan) -> Storage:
    """How the engine holds the weights: as stored, in 16 bits where it halves those of 32, or in the model's own
    type where it dequantises GGUF files when it loads them.
    """
    stored = storage(model, plan.weights)
    if stored.name == "fp32" and not plan.weights and serving_runtime(plan.engine, plan.engine_version).halves:
        return storage(model, "fp16")
    if not is_gguf_type(stored) or not serving_runtime(plan.engine, plan.engine_version).dequantizes_gguf:
        return stored
    return storage(model, {"float32": "fp32", "float16": "fp16"}.get(model.dtype or "", "bf16"))


@lru_cache(maxsize=64)
def _storage(model: Model, requested: str | None) -> Storage:
    return _placed(model, _requested(model, requested) if requested else _as_published(model))


def _placed(model: Model, stored: Storage) -> Storage:
    return replace(stored, ops=_op_places(model), blocks=_block_places(model))


def stored_bytes(model: Model, requested: str | None = None, drafts: bool = True, towers: bool = True) -> float:
    """Bytes of all weights. `drafts`: with the multi-token-prediction layers, which a checkpoint holds and a server
    need not load; `towers`: with vision and audio.
    """
    left = (() if drafts else ("draft",)) + (() if towers else ("vision", "audio"))
    stored = storage(model, requested)
    return sum(branch_bytes(model, stored, branch) for branch in model.branches if branch.kind not in left)


def gguf_bytes(model: Model, file_type: FileType, imatrix: bool) -> float:
    """Bytes of a GGUF file's tensors: without towers and drafts. Its metadata (the vocabulary, a few MB) come on
    top.
    """
    stored = _placed(model, gguf_storage(model, file_type, _own(model), GGUF, imatrix))
    return sum(branch_bytes(model, stored, b) for b in model.branches if b.kind not in ("draft", "vision", "audio"))


def _op_places(model: Model) -> dict[Op, WeightPlace]:
    """Loose ops of towers and drafts; those of the language model are outside of its layers."""
    others = [branch for branch in model.branches if branch.kind in ("vision", "audio", "draft")]
    return {op: _place(branch) for branch in others for op in branch.before + branch.after}


def _block_places(model: Model) -> dict[Block, tuple[WeightPlace, ...]]:
    return {
        block: tuple(
            _place(branch, layer) for layer, index in enumerate(branch.layers) if branch.blocks[index] is block
        )
        for branch in model.branches
        for block in branch.blocks
    }


def _place(branch: Branch, layer: int = 0) -> WeightPlace:
    if branch.kind in ("vision", "audio", "draft"):
        return WeightPlace(branch.kind, layer)
    return WeightPlace("layer", layer)


def _as_published(model: Model) -> Storage:
    if model.tensors is not None and model.tensors.num_parameters:
        return _from_headers(model)
    config = _quantization(model)
    if own := _own_file_type(model):
        return gguf_storage(model, file_type(own), _own(model), "the file's own type")
    if config:
        return _from_layout(model, _layout(model, config))
    if model.dtype is None:
        return replace(
            _plain(model, _own(model), "16 bits are assumed where the config names no dtype"), origin="default"
        )
    return _plain(model, _own(model), "the checkpoint's dtype")


def _own(model: Model) -> Precision:
    """What the checkpoint stores what is not quantised in."""
    plain = precision(_DTYPE.get(model.dtype or "", "bf16"))
    return precision("bf16") if plain.element_bits < 16 and _quantization(model) else plain


def _quantization(model: Model) -> Mapping[str, Any] | None:
    """The checkpoint's quantization_config, or what MLX writes in its place."""
    config = model.quantization or model.config.get("quantization")
    return config if isinstance(config, Mapping) else None


def _own_file_type(model: Model) -> str | None:
    """The type of the GGUF file that the model was read from; None: of none, or of one that has no name."""
    config = _quantization(model) or {}
    if config.get("quant_method") != "gguf" or config.get("file_type") in (None, "", "mixed"):
        return None
    return file_type(str(config["file_type"])[:40]).name


def _plain(model: Model, chosen: Precision, source: str) -> Storage:
    return Storage(chosen.name, source, lambda weight, place: chosen.bytes(weight.rows, weight.columns, weight.copies))


def _requested(model: Model, name: str) -> Storage:
    """A precision for the matrix products, or a GGUF file type, which is a mixture over roles and layers.

    A name that fits what the checkpoint is in changes nothing. Floats of 16 bits and more hold for all weights.
    """
    chosen = asked_for(name)
    if isinstance(chosen, FileType):
        return (
            _as_published(model)
            if chosen.name == _own_file_type(model)
            else gguf_storage(model, chosen, _own(model), GGUF)
        )
    if _is_stored_so(model, name):
        return _as_published(model)
    if chosen.kind == "float" and chosen.element_bits >= 16:
        return _plain(model, chosen, chosen.source)
    return _from_layout(model, tool_layout(name, chosen), chosen.source)


def _is_stored_so(model: Model, name: str) -> bool:
    """Whether most of the quantised parameters are in what the user names."""
    config = _quantization(model)
    if not config:
        return False
    try:
        stored_layout = _layout(model, config)
    except TonnageError:  # what the checkpoint is in cannot be told, so it is converted to what is asked for
        return False
    held: dict[str, int] = {}
    for used, count in _quantised(model, stored_layout):
        held[used.name] = held.get(used.name, 0) + count
    most = max(stored_layout.used, key=lambda used: held.get(used.name, 0), default=None)
    return most is not None and is_meant(name, most)


def _quantised(model: Model, stored_layout: Layout) -> Iterator[tuple[Precision, int]]:
    """Quantised weights of the first layer of each kind, with their parameters in all such layers."""
    for block, places in _block_places(model).items():
        for weight in block.weights():
            used = _used(stored_layout, weight, places[0], model.num_layers) if places else None
            if used:
                yield used, weight.num_parameters * len(places)


def _from_headers(model: Model) -> Storage:
    """Each part's own bytes per parameter: scales are in, and so are types that differ between parts."""
    tensors = model.tensors
    assert tensors is not None  # the caller looked
    sizes, counts = tensors.bytes_by_part, tensors.parameters_by_part
    mean_bytes = {part: sizes[part] / count for part, count in counts.items() if count}
    mean = tensors.total_bytes / tensors.num_parameters
    types = "+".join(sorted({group.dtype.lower() for group in tensors.groups if group.role == "weight"}))

    def bytes_of(weight: Weight, place: WeightPlace) -> float:
        part = place.kind if place.kind in ("vision", "audio", "draft") else weight.part
        return weight.num_parameters * mean_bytes.get(part, mean)

    return Storage(types, "the headers of the model's files", bytes_of)


def _layout(model: Model, config: Mapping[str, Any]) -> Layout:
    """The layout of this model's checkpoint: what the publisher's tool does and no quantization_config says."""
    stored_layout = layout(config, _SCALE_BITS.get(model.family, 32))
    if model.config.get("expert_dtype") == "fp4" and stored_layout.experts is None:  # DeepSeek-V4
        stored_layout = replace(stored_layout, experts=precision("mxfp4"))
    if config.get("quant_method") == "bitsandbytes" and _major(model.config.get("transformers_version")) >= 5:
        stored_layout = replace(stored_layout, keeps_experts=True)  # since then experts are no longer Linear modules
    return stored_layout


def _major(version: Any) -> int:
    first = str(version or "").partition(".")[0]
    return int(first) if first.isdecimal() else 0


# How wide the scales of fp8 blocks are where they are not fp32, by the dtypes that the Hub counts.
_SCALE_BITS = {"qwen3": 16, "qwen3_moe": 16, "qwen3_next": 16, "qwen3_5": 16, "qwen3_vl": 16, "deepseek_v4": 8}


def _from_layout(model: Model, stored_layout: Layout, source: str = "the checkpoint's quantization_config") -> Storage:
    plain, wide, layers = _own(model), precision("fp32"), model.num_layers

    def bytes_of(weight: Weight, place: WeightPlace) -> float:
        used = _used(stored_layout, weight, place, layers)
        if weight.name.startswith(COPIED_TABLE):  # the head of a tied model
            used = used or stored_layout.head
        used = used or (wide if weight.name.endswith(_FP32) else plain)
        return used.bytes(weight.rows, weight.columns, weight.copies)

    return Storage(
        "+".join(stored.name for stored in stored_layout.used), source, bytes_of, by_layer=stored_layout.by_layer
    )


# Matrices that no quantiser touches though no config says so: DeepSeek-V3.2's indexer and DeepSeek-V4's compressors
# (transformers 5.23, _keep_in_fp32_modules of models/deepseek_v32 and deepseek_v4: "ship in BF16"); Kimi K3's
# projections around its experts, which the Hub counts as BF16.
_NEVER = (
    "indexer.weights_proj.weight",
    "compressor.wkv.weight",
    "compressor.wgate.weight",
    "routed_expert_down_proj.weight",
    "routed_expert_up_proj.weight",
)
# What is fp32 beside BF16: routers' corrections (the Hub's count of DeepSeek-V3, transformers), Kimi K3's convolutions,
# decays and norms (the Hub's count), DeepSeek-V4's mixers of residual streams (its inference/model.py).
_FP32 = (
    "e_score_correction_bias",
    "_conv1d.weight",
    "self_attn.dt_bias",
    "self_attn.A_log",
    "self_attn.o_norm.weight",
    "hc_attn_fn",
    "hc_ffn_fn",
    "hc_head_fn",
)
_NOT_LINEAR = ("patch_embed", "conv", "embedding", "in_proj_weight", "input_projection")  # of towers


def _used(stored_layout: Layout, weight: Weight, place: WeightPlace, layers: int) -> Precision | None:
    """What a quantised weight is in; None where no quantiser touches it."""
    if place.kind in ("vision", "audio"):
        linear = stored_layout.towers and weight.linear and not any(word in weight.name for word in _NOT_LINEAR)
        return stored_layout.matrices if linear else None
    if place.kind == "draft" and weight.part == "other":  # joins hidden state and embedding
        return None
    return (
        None if weight.name.endswith(_NEVER) else stored_layout.precision_of(weight, modules_of(weight, place, layers))
    )


def modules_of(weight: Weight, place: WeightPlace, layers: int) -> tuple[Module, ...]:
    """The names that a checkpoint can give a weight's module."""
    name = weight.name.removesuffix(".weight")
    if place.kind == "outside":
        return (Module(name),)
    if place.kind == "draft":
        behind = Module(name, layers + place.layer)
        return behind, Module(f"mtp.layers.{place.layer}.{name}"), Module(f"mtp.{name}")
    if place.kind != "layer":
        return (Module(f"{place.kind}.{name}"),)
    if weight.part == "experts" and ".experts." in f".{name}":
        bare = name.replace("moe.experts.", "moe.", 1)  # Step's own name for them
        names = dict.fromkeys((name.replace("experts.", "experts.0.", 1), name, bare))
        return tuple(Module(candidate, place.layer) for candidate in names)
    return (Module(name, place.layer),)


@lru_cache(maxsize=256)
def block_sizes(model: Model, requested: str | None) -> Mapping[str, int]:
    """Weights of the language model's layers that share a scale by blocks of rows and columns: name -> rows of a
    block.
    """
    if requested:
        chosen = asked_for(requested)
        if isinstance(chosen, FileType):
            return {}
    config = _quantization(model)
    as_checkpoint = not requested or _is_stored_so(model, requested)
    if as_checkpoint and (not config or model.tensors is not None or _own_file_type(model)):
        return {}
    if as_checkpoint and config:
        stored_layout = _layout(model, config)
    else:
        stored_layout = Layout(matrices=asked_for(requested or ""))  # type: ignore[arg-type]
    sizes: dict[str, int] = {}
    for block, places in _block_places(model).items():
        for weight in block.weights():
            used = _used(stored_layout, weight, places[0], model.num_layers) if places else None
            rows = max((scale.rows for scale in used.scales if scale.columns), default=0) if used else 0
            if rows > 1:
                sizes[weight.name] = rows
    return sizes
