"""Options of Megatron-core that other runtimes do not have: checked, with its own defaults."""

from collections.abc import Mapping
from typing import Any

from tonnage.architectures import Model
from tonnage.estimate.inputs import Question
from tonnage.estimate.plan.checks import LARGEST
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.kernel.errors import InvalidPlan, NotApplicable
from tonnage.kernel.message import Message, option_name
from tonnage.kernel.registry import unknown
from tonnage.kernel.units import counted
from tonnage.ops import Embedding, Head

# recompute_modules of Megatron-core (transformer_config.py)
MODULES = ("core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts")
METHODS = ("p2p", "a2a", "allgather")  # cp_comm_type
# Of what changes time alone, Megatron's own defaults come first: --cuda-graph-impl, --moe-token-dispatcher-type.
GRAPHS, DISPATCHERS = ("none", "full"), ("alltoall", "flex")
SCOPES = ("attn", "mamba", "mlp", "moe", "moe_router", "moe_preprocess")  # --cuda-graph-scope


def megatron_options(model: Model, sizes: Mapping[str, Any], o: TrainingOptions, q: Question) -> dict[str, Any]:
    """The fields of a plan that they decide."""
    made: dict[str, Any] = {}
    if o.recompute == "selective" or o.recompute_modules is not None:
        made["recompute_modules"] = _modules(
            q.take("recompute_modules", o.recompute_modules, "core_attn", "runtime", "megatron's own"), o
        )
    if sizes["context_parallel_size"] > 1:
        method = q.take("context_parallel_method", o.context_parallel_method, "p2p", "runtime", "--cp-comm-type")
        if method not in METHODS:
            raise unknown("method of context parallelism", method, METHODS)
        made["context_parallel_method"] = method
    if o.expert_capacity_factor is not None:
        if not 0 < o.expert_capacity_factor < 1e6:
            raise InvalidPlan(
                "{@expert_capacity_factor} must be above 0 and below 1,000,000. Got {expert_capacity_factor:g}.",
                expert_capacity_factor=o.expert_capacity_factor,
            )
        made["expert_capacity_factor"] = q.take("expert_capacity_factor", o.expert_capacity_factor, None)
    made["mtp_layers"] = _predictions(model, o, q)
    return made | _timing(sizes, o, q)


def _timing(sizes: Mapping[str, Any], o: TrainingOptions, q: Question) -> dict[str, Any]:
    """What changes time alone: noted where it is given, or has something to change."""
    made: dict[str, Any] = {}
    for name, choices in (("cuda_graph", GRAPHS), ("moe_token_dispatcher_type", DISPATCHERS)):
        if (value := getattr(o, name)) is not None:
            parts = ",".join(part.strip() for part in value.split(","))
            if value not in choices and (name != "cuda_graph" or not set(parts.split(",")) <= set(SCOPES)):
                raise unknown(name, value, (*choices, *(SCOPES if name == "cuda_graph" else ())))
            made[name] = q.take(name, parts, choices[0])
    for name, size in (
        ("tp_comm_overlap", "tensor_parallel_size"),
        ("overlap_moe_expert_parallel_comm", "expert_parallel_size"),
    ):
        if (value := getattr(o, name)) is not None:
            if value and sizes[size] == 1:
                raise NotApplicable(
                    Message(
                        "{name} needs {size} above 1: there is nothing to overlap. Got {size} 1.",
                        name=option_name(name),
                        size=option_name(size),
                    ),
                    name,
                    (size,),
                )
            made[name] = q.take(name, value, False)
    return made


def _predictions(model: Model, o: TrainingOptions, q: Question) -> int:
    """Layers of multi-token prediction: none unless told, and of models that Megatron gives them to alone."""
    drafts = sum(branch.num_layers for branch in model.branches if branch.kind == "draft")
    if o.mtp_layers is None and not drafts:
        return 0
    why = (
        Message("--mtp-num-layers is unset; the checkpoint has {drafts}", drafts=counted(drafts, "layers"))
        if drafts
        else "--mtp-num-layers is unset"
    )
    count: int = q.take("mtp_layers", o.mtp_layers, 0, "runtime", why)
    if not 0 <= count <= LARGEST:
        raise InvalidPlan("{@mtp_layers} must be from 0 to {largest:,}. Got {count:,}.", largest=LARGEST, count=count)
    main = model.decoder
    if count and sum(isinstance(op, Embedding) for op in main.before) != 1:
        raise InvalidPlan(
            "multi-token prediction of megatron has rotary positions or none: {@mtp_layers} must be "
            "0 with {model}, which has a table of them. Got {count}.",
            model=model.name,
            count=count,
        )
    if count and not any(isinstance(op, Head) for op in main.after):
        raise InvalidPlan(
            "{@mtp_layers} must be 0 with {model}, which has no head. Got {count}.", model=model.name, count=count
        )
    return count


def _modules(text: str, o: TrainingOptions) -> str:
    named = tuple(part.strip() for part in text.split(",") if part.strip())
    for name in named:
        if name not in MODULES:
            raise unknown("module to recompute", name, MODULES)
    if o.recompute not in (None, "selective"):
        raise NotApplicable(
            Message(
                "{@recompute_modules} belong to recompute selective. Got {text} with recompute {recompute}.",
                text=text,
                recompute=o.recompute,
            ),
            "recompute_modules",
            ("recompute",),
        )
    return ",".join(named)
