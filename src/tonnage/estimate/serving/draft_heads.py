"""Heads that draft, as models of their own: EAGLE, EAGLE-3, Medusa, P-EAGLE and DFlash.

Structure: SafeAILab/EAGLE, eagle/model/cnets.py and vLLM, vllm/model_executor/models/llama_eagle.py, llama_eagle3.py,
medusa.py and qwen3_dflash.py. Their sizes follow those of the model that checks the drafts.
"""

from functools import lru_cache
from typing import Any

from msgspec import Struct

from tonnage.architectures import Block, Branch, Model
from tonnage.kernel.errors import InvalidPlan
from tonnage.kernel.message import Message
from tonnage.ops import MLP, Attention, Embedding, Head, Linear, Norm, Op, Parameter

HIDDEN_STATES = 3  # EAGLE-3 reads those of a low, a middle and a high layer
DRAFT_VOCABULARY = 32_000  # yuhuili/EAGLE3-LLaMA3.1-Instruct-8B, config.json: draft_vocab_size
P_EAGLE_LAYERS = 4  # amazon/gpt-oss-120b-p-eagle, README.md: 4 layers, with a table and an output head of their own
DFLASH_LAYERS = DFLASH_STATES = 5  # z-lab/Qwen3.6-27B-DFlash, config.json: num_hidden_layers, target_layer_ids
HEAD_DIM = 128
DTYPE = "bfloat16"


class Widths(Struct, frozen=True, kw_only=True):
    """Widths of a head: of hidden states, of attention, of the feed-forward layer, of the model's vocabulary."""

    hidden_size: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int


def widths_of(model: Model) -> Widths:
    """Those of a head for this model: its attention, and the width of its dense layers."""
    hidden = model.hidden_size
    found = [op for block in model.decoder.blocks for op in block.ops if isinstance(op, Attention)]
    dense = [op for block in model.decoder.blocks for op in block.ops if isinstance(op, MLP)]
    text: Any = model.config.get("text_config") or model.config
    said = text.get("intermediate_size") if isinstance(text, dict) else None
    # Touvron2023, sec. 2.2: two thirds of 4 h in a gated layer, which models without a dense layer have no width of
    width = 8 * hidden // 3
    if dense:
        width = dense[0].intermediate_size
    elif isinstance(said, int) and said > hidden:
        width = said
    plain = max(hidden // HEAD_DIM, 1)
    return Widths(
        hidden_size=hidden,
        heads=found[0].heads if found else plain,
        kv_heads=found[0].kv_heads if found else plain,
        head_dim=found[0].head_dim if found else HEAD_DIM,
        intermediate_size=int(width),
        vocab_size=model.vocab_size,
    )


@lru_cache(maxsize=64)
def head(model: Model, method: str, tokens: int, *, shared: bool = False) -> Model:
    """The head of a method. `tokens`: drafted in each step, each with a head of its own in Medusa; `shared`: with the
    output head that it uses of the model, which takes time and no memory.
    """
    if not model.vocab_size or not any(branch.kind == "decoder" for branch in model.branches):
        raise InvalidPlan(
            "{@speculative} {method} drafts tokens, and {model} generates none.", method=method, model=model.name
        )
    return of_widths(widths_of(model), method, tokens, shared=shared)


def of_widths(widths: Widths, method: str, tokens: int, *, shared: bool = False) -> Model:
    """The head of these widths, see `head`."""
    if method == "medusa":
        return _model(method, widths, _medusa(widths, tokens))
    if method == "p-eagle":
        return _p_eagle(widths)
    if method == "dflash":
        return _dflash(widths, shared=shared)
    return _model(method, widths, _eagle(widths, three=method == "eagle3", shared=shared))


def _eagle(w: Widths, *, three: bool, shared: bool) -> tuple[Block, tuple[Op, ...]]:
    h = w.hidden_size
    fused = Linear(name="fc", in_features=(HIDDEN_STATES if three else 2) * h, out_features=h)
    ops: tuple[Op, ...] = (fused,)
    if three:  # attention reads the token's embedding beside the hidden state: queries, keys and values of 2 h
        wide = (w.heads + 2 * w.kv_heads) * w.head_dim
        embedded = Linear(
            name="midlayer.self_attn.embedded", in_features=h, out_features=wide, split="tensor", part="attention"
        )
        ops += (Norm(name="input_layernorm", width=h), Norm(name="hidden_norm", width=h), embedded)
    attention = Attention(hidden_size=h, heads=w.heads, kv_heads=w.kv_heads, head_dim=w.head_dim)
    feed = MLP(hidden_size=h, intermediate_size=w.intermediate_size)
    ops += (attention, Norm(name="post_attention_layernorm", width=h), feed)
    if not three:
        return Block("EAGLE layer", ops), (Head(width=h, vocab_size=w.vocab_size),) if shared else ()
    vocabulary = min(DRAFT_VOCABULARY, w.vocab_size)
    tables = (Parameter(name="d2t", elements=vocabulary), Parameter(name="t2d", elements=w.vocab_size))
    return Block("EAGLE-3 layer", ops), (*tables, Norm(name="norm", width=h), Head(width=h, vocab_size=vocabulary))


def _medusa(w: Widths, tokens: int) -> tuple[Block, tuple[Op, ...]]:
    h = w.hidden_size
    blocks = tuple(
        Linear(name=f"blocks.{number}", in_features=h, out_features=h, bias=True, split="tensor")
        for number in range(tokens)
    )
    heads = tuple(Head(name=f"lm_heads.{number}", width=h, vocab_size=w.vocab_size) for number in range(tokens))
    return Block("Medusa heads", blocks), heads


def _plain(w: Widths, *, head_norm: bool) -> Block:
    """A decoder layer of these widths."""
    h = w.hidden_size
    heads = [Norm(name=f"{name}_norm", width=w.head_dim) for name in ("q", "k")] if head_norm else []
    attention = Attention(hidden_size=h, heads=w.heads, kv_heads=w.kv_heads, head_dim=w.head_dim)
    norms = (Norm(name="input_layernorm", width=h), Norm(name="post_attention_layernorm", width=h))
    return Block(
        "decoder layer",
        (norms[0], attention, *heads, norms[1], MLP(hidden_size=h, intermediate_size=w.intermediate_size)),
    )


def _p_eagle(w: Widths) -> Model:
    """EAGLE-3 with more layers, a token table and the whole vocabulary."""
    first, after = _eagle(w, three=True, shared=False)
    after = (
        *(op for op in after if not isinstance(op, Head | Parameter)),
        Head(width=w.hidden_size, vocab_size=w.vocab_size),
    )
    table = Embedding(num_embeddings=w.vocab_size, width=w.hidden_size)
    blocks, layers = (first, _plain(w, head_norm=False)), (0, *[1] * (P_EAGLE_LAYERS - 1))
    return _model("p-eagle", w, (first, after), before=(table,), blocks=blocks, layers=layers)


def _dflash(w: Widths, *, shared: bool) -> Model:
    """Layers of Qwen3 that see keys and values of the model's hidden states, which `fc` joins; the model's table and
    output head.
    """
    h, block = w.hidden_size, _plain(w, head_norm=True)
    joins = (
        Linear(name="fc", in_features=DFLASH_STATES * h, out_features=h),
        Norm(name="hidden_norm", width=h),
    )
    after = (Norm(name="norm", width=h), *((Head(width=h, vocab_size=w.vocab_size),) if shared else ()))
    return _model("dflash", w, (block, after), before=joins, layers=(0,) * DFLASH_LAYERS)


def _model(
    method: str,
    w: Widths,
    parts: tuple[Block, tuple[Op, ...]],
    *,
    before: tuple[Op, ...] = (),
    blocks: tuple[Block, ...] = (),
    layers: tuple[int, ...] = (0,),
) -> Model:
    block, after = parts
    branch = Branch(
        name="decoder",
        kind="decoder",
        hidden_size=w.hidden_size,
        blocks=blocks or (block,),
        layers=layers,
        before=before,
        after=after,
    )
    return Model(
        name=Message("{method} head", method=method),
        family="",
        architecture="",
        hidden_size=w.hidden_size,
        vocab_size=w.vocab_size,
        context=None,
        branches=(branch,),
        dtype=DTYPE,
    )
