"""Heads that draft, as models of their own: EAGLE, EAGLE-3 and Medusa.

Structure: SafeAILab/EAGLE, eagle/model/cnets.py and vLLM, vllm/model_executor/models/llama_eagle.py, llama_eagle3.py
and medusa.py. Their sizes follow those of the model that checks the drafts.
"""

from functools import lru_cache
from typing import Any

from msgspec import Struct

from tonnage.architectures import Block, Branch, Model
from tonnage.kernel.errors import InvalidPlan
from tonnage.kernel.message import Message
from tonnage.ops import MLP, Attention, Head, Linear, Norm, Op, Parameter

HIDDEN_STATES = 3  # EAGLE-3 reads those of a low, a middle and a high layer
DRAFT_VOCABULARY = 32_000  # yuhuili/EAGLE3-LLaMA3.1-Instruct-8B, config.json: draft_vocab_size
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


def _model(method: str, w: Widths, parts: tuple[Block, tuple[Op, ...]]) -> Model:
    block, after = parts
    branch = Branch(
        name="decoder", kind="decoder", hidden_size=w.hidden_size, blocks=(block,), layers=(0,), after=after
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
