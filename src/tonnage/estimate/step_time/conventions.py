"""FLOP that a token of training takes, as those count it who publish TFLOPS and MFU: never mixed, each by its name.

All count a forward pass and a backward pass of twice that; they differ in the parameters that multiply, in whether the
half of attention that a causal mask takes out counts, and in whether recomputation does.
"""

from collections.abc import Callable

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.estimate.layers.layers import training_flops
from tonnage.formulas import flops as f
from tonnage.kernel.registry import Registry
from tonnage.kernel.term import Term
from tonnage.ops import Embedding


class Convention(Struct, frozen=True, kw_only=True):
    """How a source counts: `of` gives FLOP of one token of a model at a length; `recomputes`: a second forward pass
    counts too.
    """

    name: str
    text: str
    source: str
    of: Callable[[Model, int], float]
    recomputes: bool = False


CONVENTIONS: Registry[Convention] = Registry("FLOP convention")


def flops_per_token(model: Model, length: int, convention: str) -> float:
    """FLOP of a token in a sequence of `length`, forward and backward, as `convention` counts them."""
    return CONVENTIONS[convention].of(model, length)


def _halved(model: Model, length: int) -> float:
    """Products with active parameters, the head's too, and the half of attention that a causal mask leaves."""
    return float(training_flops(model, 1, length).value)


def _whole(model: Model, length: int) -> float:
    """Products with active parameters, and attention over all pairs of tokens: the masked half is added."""
    return _halved(model, length) + sum(_masked(term, length) for _, term in training_flops(model, 1, length).walk())


def _masked(term: Term, length: int) -> float:
    """FLOP of one token that a causal core leaves out, backward included: it sees (s + 1) / 2 keys of s on average."""
    if term.formula is not f.causal_attention_flops:
        return 0.0
    return 3 * float(term.value) * ((length - 1) / (length + 1))


def _tables(model: Model) -> int:
    """Parameters that are looked up and not multiplied; a tied table is the head's as well, and is multiplied there."""
    tables = [op for op in model.decoder.before if isinstance(op, Embedding)]
    looked_up = [op for op in tables if not (model.tied and op.num_embeddings == model.vocab_size)]
    return sum(weight.num_parameters for op in looked_up for weight in op.weights())


def _palm(model: Model, length: int) -> float:
    """6N + 12LHQT with all N parameters: products of active parameters, the table as if it were multiplied, all
    pairs.
    """
    return _whole(model, length) + 6 * _tables(model)


def _kaplan(model: Model, length: int) -> float:
    """6N, whatever the length."""
    return 6.0 * model.num_parameters()


def _narayanan(passes: int) -> Callable[[Model, int], float]:
    """`passes`: 3 forward and backward, 4 with a second forward."""

    def of(model: Model, length: int) -> float:
        sizes = {"L": model.num_layers, "h": model.hidden_size, "V": model.vocab_size}
        return float(f.gpt_training_flops(x=passes, T=1, s=length, **sizes))

    return of


for _made in (
    Convention(
        name="megatron",
        text="6N of active parameters with the head, causal attention halved",
        of=_halved,
        source="Megatron-LM, megatron/training/training.py: num_floating_point_operations",
    ),
    Convention(
        name="torchtitan",
        text="6N of active parameters without the table, and 12LHs: attention not halved",
        of=_whole,
        source="torchtitan, torchtitan/models/utils.py: get_dense_model_nparams_and_flops",
    ),
    Convention(
        name="kaplan", text="6N with all parameters, nothing for attention", of=_kaplan, source="Kaplan2020, sec. 2.1"
    ),
    Convention(
        name="palm",
        text="6N + 12LHQT with all parameters: attention not halved",
        of=_palm,
        source="Chowdhery2022, appendix B",
    ),
    Convention(
        name="mosaicml",
        text="3 (2NT + 4LdT^2) a sequence: attention not halved",
        of=_palm,
        source="llm-foundry, scripts/train/benchmarking/README.md",
    ),
    Convention(
        name="narayanan",
        text="72BslH^2 (1 + s/6H + V/12lH): attention not halved",
        of=_narayanan(3),
        source="Narayanan2021, appendix",
    ),
    Convention(
        name="narayanan hardware",
        text="96BslH^2 (1 + s/6H + V/16lH): with full recomputation",
        of=_narayanan(4),
        source="Narayanan2021, sec. 5.1, eq. 3",
        recomputes=True,
    ),
):
    CONVENTIONS.add(_made.name, _made)
