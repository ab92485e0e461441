"""How many parameters, part by part: the count as a breakdown, and the figures that people quote."""

from collections.abc import Callable

from tonnage.architectures import Branch, Model
from tonnage.formulas.memory import layers_on_rank
from tonnage.formulas.parameters import tensor_parameters
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.ops import Op, Weight

Pick = Callable[[Weight], int]  # copies of a weight that count


def parameters(model: Model) -> Term:
    """All parameters as transformers loads them, branch by branch down to tensors."""
    parts = [_branch(branch, lambda weight: weight.copies) for branch in model.branches if branch.kind != "draft"]
    return Term.sum("parameters", *parts, unit="parameters")


def draft_parameters(model: Model) -> Term:
    """Multi-token-prediction layers, which the checkpoint holds beside the model."""
    parts = [_branch(branch, lambda weight: weight.copies) for branch in model.branches if branch.kind == "draft"]
    return Term.sum("multi-token prediction", *parts, unit="parameters")


def active_parameters(model: Model) -> Term:
    """Parameters that one token of text passes through: of routed experts those chosen, of towers none; tables and
    head too.
    """
    parts = [_branch(branch, _active) for branch in model.branches if branch.kind in ("decoder", "encoder")]
    return Term.sum("active parameters", *parts, unit="parameters")


def embedding_parameters(model: Model) -> Term:
    """Tables in and an untied head out."""
    return _of_parts(model, "embedding parameters", lambda weight: weight.part in ("embedding", "head"))


def non_embedding_parameters(model: Model) -> Term:
    """Everything but tables and head."""
    return _of_parts(model, "non-embedding parameters", lambda weight: weight.part not in ("embedding", "head"))


def _of_parts(model: Model, name: str, wanted: Callable[[Weight], bool]) -> Term:
    def pick(weight: Weight) -> int:
        return weight.copies if wanted(weight) else 0

    return Term.sum(
        name, *(_branch(branch, pick) for branch in model.branches if branch.kind != "draft"), unit="parameters"
    )


def _active(weight: Weight) -> int:
    return weight.copies if weight.active is None else weight.active


def _branch(branch: Branch, pick: Pick) -> Term:
    parts = [term for op in branch.before for term in _op(op, pick)]
    for block, count in zip(branch.blocks, branch.counts(), strict=True):
        one = Term.sum("one layer", *(term for op in block.ops for term in _op(op, pick)), unit="parameters")
        if count and one.value:
            parts.append(
                Term.product(
                    Message("{block}s", block=block.name), "parameters", Term.of("layers", layers_on_rank, l=count), one
                )
            )
    parts += [term for op in branch.after for term in _op(op, pick)]
    return Term.sum(branch.name, *parts, unit="parameters")


def _op(op: Op, pick: Pick) -> list[Term]:
    return [
        Term.of(weight.name, tensor_parameters, n_out=weight.rows, n_in=weight.columns, n_copies=pick(weight))
        for weight in op.weights()
        if pick(weight)
    ]
