"""Tensor-parallel plans for models of transformers: their own plan of columns and rows, as DTensor's styles."""

import re
from typing import Any

from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_module
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

from tonnage.kernel.errors import InvalidPlan, MissingDatum
from tonnage.kernel.message import joined

# transformers' names of styles that DTensor has too; experts and split inputs have none.
_COLUMNS, _GATHERED, _ROWS = ("colwise",), ("colwise_gather_output", "colwise_rep"), ("rowwise",)
_REPLICATED = ("replicated_with_grad_allreduce",)
_TABLE = "embedding_rowwise"
_NORMS = ("input_layernorm", "post_attention_layernorm", "norm")  # of a layer, and the model's last


class Replicated(ParallelStyle):
    """Replicates weights as DTensors, because an optimizer that updates all parameters at once needs them of one
    kind.
    """

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        def inward(_: nn.Module, inputs: Any, mesh: DeviceMesh) -> Any:
            return tuple(DTensor.from_local(tensor, mesh, [Replicate()], run_check=False) for tensor in inputs)

        return distribute_module(module, device_mesh, None, inward, lambda _, output, __: output.to_local())


def tensor_parallel(model: Any, mesh: DeviceMesh, sequence_parallel: bool) -> None:
    """Shard a model of transformers over a mesh of one dimension. Raises InvalidPlan, MissingDatum."""
    check(model.config, mesh.size())
    plan = {name: _style(kind, name, model) for name, kind in _kinds(model).items() if kind != _TABLE}
    plan |= _unsplit_styles(model, sequence_parallel)
    parallelize_module(model, mesh, plan)
    if getattr(model.config, "tie_word_embeddings", False):
        model.tie_weights()


def check(config: Any, width: int) -> None:
    """Check that heads and vocabulary divide among ranks, as the model's own code splits by heads."""
    for name in ("num_attention_heads", "num_key_value_heads", "intermediate_size", "vocab_size"):
        count = getattr(config, name, None)
        if isinstance(count, int) and count % width:
            raise InvalidPlan(
                "{@tensor_parallel_size} must divide {name} {count}. Got {width}.",
                name=name,
                count=count,
                width=width,
            )


def _kinds(model: Any) -> dict[str, str]:
    """transformers' plan by module name, with its patterns expanded."""
    patterns = dict(getattr(model, "_tp_plan", None) or {})
    if not patterns:
        raise MissingDatum("transformers has no plan of tensor parallelism for {type}.", type=type(model).__name__)
    compiled = [(re.compile(re.escape(glob).replace(r"\*", r"\d+") + "$"), kind) for glob, kind in patterns.items()]
    styles = {}
    for name, _ in model.named_modules():
        for pattern, kind in compiled:
            if pattern.match(name):
                styles[name] = kind
    return styles


def _style(kind: str, name: str, model: Any) -> ParallelStyle:
    if kind in _COLUMNS:
        return ColwiseParallel()
    if kind in _GATHERED:
        return ColwiseParallel(output_layouts=Replicate())
    if kind in _ROWS:
        return RowwiseParallel()
    if kind in _REPLICATED:
        return Replicated()
    raise MissingDatum(
        "{type} splits {name} as {kind!r}, for which DTensor has no style.",
        type=type(model).__name__,
        name=name,
        kind=kind,
    )


def _unsplit_styles(model: Any, sequence_parallel: bool) -> dict[str, ParallelStyle]:
    """Styles of table and norms, and, under sequence parallelism, of the modules that gather and scatter
    activations.
    """
    plan: dict[str, ParallelStyle] = {}
    norms = [name for name, module in model.named_modules() if _is_norm(name, module)]
    table = next(name for name, module in model.named_modules() if module is model.get_input_embeddings())
    if not sequence_parallel:
        plan |= dict.fromkeys(norms, Replicated())
        plan[table] = RowwiseParallel(input_layouts=Replicate())
        return plan
    plan[table] = RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1))
    for name in norms:
        if not _inside_attention(name) and name.rsplit(".", 1)[-1] not in _NORMS:
            raise MissingDatum(
                "the plan of sequence parallelism is for layers with {norms}. {type} has {name}.",
                norms=joined(" and ", _NORMS[:2]),
                type=type(model).__name__,
                name=name,
            )
        plan[name] = Replicated() if _inside_attention(name) else SequenceParallel()
    for name, module in model.named_modules():
        if name.endswith(("self_attn",)):
            plan[name] = PrepareModuleInput(
                input_kwarg_layouts={"hidden_states": Shard(1)},
                desired_input_kwarg_layouts={"hidden_states": Replicate()},
            )
        elif name.endswith(".mlp"):
            plan[name] = PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),))
        elif name.endswith((".o_proj", ".down_proj")):
            plan[name] = RowwiseParallel(output_layouts=Shard(1))
        elif module is model.get_output_embeddings():
            plan[name] = ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())
    return plan


def _is_norm(name: str, module: nn.Module) -> bool:
    return name.rsplit(".", 1)[-1].endswith("norm") and sum(1 for _ in module.parameters(recurse=False)) > 0


def _inside_attention(name: str) -> bool:
    return ".self_attn." in name
