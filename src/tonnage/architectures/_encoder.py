"""Pieces of the encoders: tables with a norm after them, post-norm layers, heads by class name."""

from collections.abc import Mapping, Sequence
from typing import Any

from tonnage.architectures._classic import head_width
from tonnage.architectures._config import Config
from tonnage.architectures._model import Block, Branch, Model
from tonnage.architectures._parts import model, norm
from tonnage.architectures._registry import class_name, num_labels
from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.message import listed
from tonnage.ops import MLP, Attention, Embedding, Head, Linear, Norm, Op

# endings of class names; of two that both fit the longer comes first
KINDS = (
    "ForMaskedLM",
    "ForCausalLM",
    "LMHeadModel",
    "ForPreTraining",
    "ForNextSentencePrediction",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForMultipleChoice",
    "Model",
)
Heads = Mapping[str, tuple[Op, ...]]


def kind_of(c: Config) -> str:
    """The task of the class, by its ending; "Model" where the config names no class."""
    name = class_name(c)
    return next((kind for kind in KINDS if name.endswith(kind)), "Model")


def tables(c: Config, width: int, positions: int, types: int, name: str = "embeddings") -> tuple[Op, ...]:
    """Embedding tables of words, and of positions and token types where they have rows."""
    rows = {"word_embeddings": c.size("vocab_size"), "position_embeddings": positions, "token_type_embeddings": types}
    return tuple(
        Embedding(
            name=f"{name}.{table}",
            num_embeddings=count,
            width=width,
            split="vocab" if table == "word_embeddings" else "replicated",
        )
        for table, count in rows.items()
        if count
    )


def attention(c: Config, **options: Any) -> Attention:
    """Attention in both directions, unless the config makes the encoder a decoder."""
    h, heads = c.size("hidden_size", "dim", "n_embd"), c.size("num_attention_heads", "n_heads", "n_head")
    options.setdefault("bias", True)
    options.setdefault("causal", c.flag("is_decoder", default=False))
    width = c.size("attention_head_size", default=None) or head_width(c, h, heads)
    return Attention(hidden_size=h, heads=heads, kv_heads=heads, head_dim=width, **options)


def mlp(c: Config, up: str, down: str) -> MLP:
    """Two matrices with biases."""
    h, inner = c.size("hidden_size", "dim"), c.size("intermediate_size", "hidden_dim")
    return MLP(name="", hidden_size=h, intermediate_size=inner, gated=False, bias=True, names=("", up, down))


def post_norm(name: str, mixer: Op, first: str, feed: Op, second: str, width: int) -> Block:
    """A layer that normalises after each sublayer."""
    return Block(name, (mixer, layer_norm(first, width), feed, layer_norm(second, width)))


def layer_norm(name: str, width: int) -> Norm:
    return norm(name, width, "layer")


def dense(name: str, width: int, out: int | None = None) -> Linear:
    """A linear layer with a bias, to the same width unless `out` says."""
    return Linear(name=name, in_features=width, out_features=out or width, bias=True)


def labels(c: Config, name: str, width: int, count: int | None = None) -> Linear:
    """A classifier."""
    return Linear(name=name, in_features=width, out_features=count or num_labels(c), bias=True, part="head")


def language(c: Config, width: int, narrow: int, names: tuple[str, str, str]) -> tuple[Op, ...]:
    """The masked-language-model head: a transform, a norm, and a projection with a bias that uses the word table."""
    transform, after, decoder = names
    tied = c.flag("tie_word_embeddings", default=True)
    head = Head(name=decoder, width=narrow, vocab_size=c.size("vocab_size"), bias=True, tied=tied)
    return dense(transform, width, narrow), layer_norm(after, narrow), head


def heads(
    c: Config,
    width: int,
    *,
    pooler: tuple[Op, ...] = (),
    spoken: tuple[Op, ...],
    classify: tuple[Op, ...],
    choose: tuple[Op, ...] = (),
) -> dict[str, tuple[Op, ...]]:
    """The heads that most encoders have; `spoken` is the language head."""
    return {
        "Model": pooler,
        "ForMaskedLM": spoken,
        "ForCausalLM": spoken,
        "LMHeadModel": spoken,
        "ForSequenceClassification": classify,
        "ForTokenClassification": (labels(c, "classifier", width),),
        "ForQuestionAnswering": (labels(c, "qa_outputs", width),),
        "ForMultipleChoice": choose,
    }


def encoder(
    c: Config,
    family: str,
    before: Sequence[Op],
    blocks: Sequence[Block],
    layers: Sequence[int],
    known: Heads,
    *,
    width: int,
    context: int | None,
    final: Sequence[Op] = (),
) -> Model:
    """The Model with the head of `known` for its class name."""
    kind = kind_of(c)
    if kind not in known:
        raise MissingDatum(
            "{where}: the head of {class_name} is not described. Known: {known}.",
            where=c.where,
            class_name=class_name(c),
            known=listed(known),
        )
    head = known[kind]
    tied = any(isinstance(op, Head) and op.tied for op in head)
    main = Branch(
        name="encoder",
        kind="encoder",
        hidden_size=width,
        before=tuple(before),
        blocks=tuple(blocks),
        layers=tuple(layers),
        after=(*final, *head),
    )
    return model(c, family, main, tied=tied, context=context)
