"""The options of a training run that have names, and the values of each that a search tries: one place to add
another.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from tonnage.architectures import Model
from tonnage.estimate.options.lighter import lighter_kernels
from tonnage.estimate.options.plans import RECOMPUTE
from tonnage.estimate.plan.rule import expert_counts
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.kernel.errors import InvalidPlan, MissingDatum
from tonnage.kernel.message import joined, listed
from tonnage.ops import LatentAttention
from tonnage.runtimes import USUAL_ALONE, USUAL_ON_SEVERAL, training_runtime
from tonnage.spec import Cluster

SEVERAL = ("megatron", USUAL_ON_SEVERAL)  # tried on several accelerators: those that can cut a model in every way
ALONE = (USUAL_ALONE,)
# options whose values are searched as numbers, not as combinations of names
SIZES = (
    "sequence_length",
    "global_batch_size",
    "micro_batch_size",
    "num_microbatches",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "virtual_pipeline_size",
    "context_parallel_size",
    "expert_parallel_size",
    "expert_tensor_parallel_size",
    "data_parallel_size",
)
OWN = ("full", "lora", "dora", "qlora", "ia3", "freeze")


def choices_of(
    model: Model, machines: Sequence[Cluster], options: TrainingOptions, vary: Mapping[str, Sequence[Any]]
) -> Iterator[dict[str, Any]]:
    """Combinations of names, the simplest first. Sizes are not among them."""
    _check_offload(options, vary)
    names = [name for name in vary if name not in SIZES and name not in ("runtime", "zero_stage", "recompute")]
    runtimes = runtimes_of(machines, options, vary)
    _check_zero(runtimes, _tried("zero_stage", options, vary, ()))
    for runtime in runtimes:
        own = training_runtime(runtime).zero_stages
        zero = [stage for stage in _tried("zero_stage", options, vary, own) if stage in own]
        policies, kernels = _recompute(model, runtime, options, vary), _kernels(model, runtime, options, vary)
        for stage, again, fused in product(zero, policies, kernels):
            for values in product(*(vary[name] for name in names)):
                varied = dict(zip(names, values, strict=True))
                yield {"runtime": runtime, "zero_stage": stage, **again, **fused, **varied}


def _check_zero(runtimes: Sequence[str], stages: Sequence[int]) -> None:
    """Each stage that is asked for must be one of some runtime that is tried."""
    known = {stage for name in runtimes for stage in training_runtime(name).zero_stages}
    for stage in stages:
        if stage not in known:
            which = "; ".join(
                joined(": ", (name, ", ".join(map(str, training_runtime(name).zero_stages)))) for name in runtimes
            )
            raise InvalidPlan(
                "{@zero_stage} must be one that a runtime has ({which}). Got {stage}.", which=which, stage=stage
            )


def _check_offload(options: TrainingOptions, vary: Mapping[str, Sequence[Any]]) -> None:
    """An update on the host has no time without a rate that only the user knows: said at once where no plan could be
    timed.
    """
    places = set(_tried("offload_optimizer", options, vary, ("none",)))
    if "none" not in places and options.host_update_bandwidth is None and "host_update_bandwidth" not in vary:
        raise MissingDatum(
            "plans with {@offload_optimizer} cannot be timed without {@host_update_bandwidth}, the "
            "bytes a second that a node's processors read and write while they update: published "
            "runs got 2GB/s to 54GB/s. Got {@offload_optimizer} {places} alone.",
            places=listed(sorted(map(str, places))),
        )


def _tried(
    name: str, options: TrainingOptions, vary: Mapping[str, Sequence[Any]], usual: Sequence[Any]
) -> Sequence[Any]:
    fixed_value = getattr(options, name)
    return (fixed_value,) if fixed_value is not None else vary.get(name, usual)


def runtimes_of(
    machines: Sequence[Cluster], options: TrainingOptions, vary: Mapping[str, Sequence[Any]]
) -> Sequence[str]:
    """The runtimes that are tried on machines of one accelerator, or of several."""
    usual_several = [name for name in SEVERAL if _trains(name, options)] or [USUAL_ON_SEVERAL]
    usual = ALONE if machines[-1].size == 1 else usual_several
    tried = _tried("runtime", options, vary, usual)
    if machines[-1].size == 1:
        return tried
    several = ((name, training_runtime(name).on_several) for name in tried)
    return [other.runtime if other is not None else name for name, other in several]


def _trains(runtime: str, options: TrainingOptions) -> bool:
    """Whether a search tries it unasked: adapters where TRL's command starts them."""
    framework = training_runtime(runtime)
    return options.method in (None, "full") or (options.method in framework.trains and bool(framework.trl_config))


def _recompute(
    model: Model, runtime: str, options: TrainingOptions, vary: Mapping[str, Sequence[Any]]
) -> list[dict[str, Any]]:
    """Policies, and with Megatron the modules that one of them runs again."""
    framework = training_runtime(runtime)
    code = options.model_code
    by_operation = (
        framework.own is not None if code is None else framework.selective_op and code == framework.model_codes[0]
    )
    usual = [
        name for name in RECOMPUTE if name != "selective-op" or (by_operation and options.method in (None, "full"))
    ]
    policies: list[dict[str, Any]] = []
    for policy in _tried("recompute", options, vary, usual):
        policies += [
            {"recompute": policy, **more}
            for more in (_modules(model, runtime, options, vary) if policy == "selective" else [{}])
        ]
    return policies


def _kernels(
    model: Model, runtime: str, options: TrainingOptions, vary: Mapping[str, Sequence[Any]]
) -> list[dict[str, Any]]:
    """Without and with the kernels of Liger, where nobody says which and the runtime has them for this model: an answer
    to `train` chooses them too where a run does not fit.
    """
    if options.liger is not None or "liger" in vary:
        return [{}]
    has_liger = "liger" in dict(lighter_kernels(runtime)) and _takes_liger(model, runtime)
    return [{}, {"liger": True}] if has_liger else [{}]


def _takes_liger(model: Model, runtime: str) -> bool:
    return model.config.get("model_type") in training_runtime(runtime).liger


def _modules(
    model: Model, runtime: str, options: TrainingOptions, vary: Mapping[str, Sequence[Any]]
) -> list[dict[str, Any]]:
    if (
        "recompute_modules" not in training_runtime(runtime).options
        or options.recompute_modules is not None
        or "recompute_modules" in vary
    ):
        return [{}]
    ops = [op for block in model.decoder.blocks for op in block.ops]
    latent = ("mla_up_proj",) if any(isinstance(op, LatentAttention) for op in ops) else ()
    if expert_counts(model):
        cheap, dear = ("layernorm", *latent, "moe_act"), ("layernorm", *latent, "moe")
    else:
        cheap, dear = latent, (*latent, "mlp")  # norms are in the products after them, and keep nothing of their own
    return [{"recompute_modules": ",".join(names)} for names in (("core_attn",), cheap, dear) if names]
