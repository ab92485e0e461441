"""Options of offloading, checked against what each runtime can move, and where to."""

from typing import Any

from tonnage.estimate.frameworks.base import framework_of
from tonnage.estimate.inputs import Question
from tonnage.estimate.options.run_options import rate
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.kernel.errors import InvalidPlan, NotApplicable
from tonnage.kernel.message import Message, joined, listed, option_name
from tonnage.kernel.registry import unknown
from tonnage.runtimes import PLACES, TrainingRuntime, training_runtime, training_runtimes
from tonnage.runtimes.parts.megatron.offload import MODULES

OFFLOADS = ("offload_optimizer", "offload_parameters", "offload_activations")


def offload_options(runtime: TrainingRuntime, stage: int, o: TrainingOptions, q: Question) -> dict[str, Any]:
    """The fields of a plan that say what lives in host memory, or behind it."""
    fields: dict[str, Any] = {name: _place(name, runtime, o, q) for name in OFFLOADS}
    if runtime.offloads_together:
        _of_fsdp2(fields, stage, o, q)
    framework_of(runtime).check_offload(fields, stage)
    fields["optimizer_offload_fraction"] = _fraction(fields, runtime, stage, o, q)
    fields["host_update_bandwidth"] = _update_bandwidth(fields, o, q)
    fields["offload_modules"] = _modules(fields, runtime, o, q)
    fields["data_loader_workers"] = _workers(o, q)
    return fields


def _place(name: str, runtime: TrainingRuntime, o: TrainingOptions, q: Question) -> str:
    wanted: str | None = getattr(o, name)
    if wanted is not None and wanted not in PLACES:
        raise unknown(Message("place for {name}", name=name), wanted, PLACES)
    if wanted in (None, "none"):
        return "none"
    able: tuple[str, ...] = getattr(runtime, name)
    if wanted not in able:
        others = [other for other in training_runtimes() if wanted in getattr(training_runtime(other), name)]
        where = joined(" or ", able)
        raise InvalidPlan(
            "{name} must be {where} with runtime {runtime}. Got {said}. Runtimes that have it: {others}.",
            name=option_name(name),
            where=where,
            runtime=runtime.name,
            said=wanted,
            others=listed(others) or "none",
        )
    return str(q.put(name, wanted, "given"))


def _of_fsdp2(fields: dict[str, Any], stage: int, o: TrainingOptions, q: Question) -> None:
    """CPUOffloadPolicy moves shards of weights, gradients and optimizer states together."""
    pair = {name: fields[name] for name in ("offload_optimizer", "offload_parameters")}
    for name, place in pair.items():
        if place != "none" and stage < 2:
            raise InvalidPlan(
                "{name} is a policy of FSDP2: {@zero_stage} must be 2 or 3. Got {stage}.",
                name=option_name(name),
                stage=stage,
            )
    if len(set(pair.values())) == 1:
        return
    left = next(name for name, place in pair.items() if place == "none")
    if getattr(o, left) is not None:
        raise InvalidPlan(
            "FSDP2's CPUOffloadPolicy moves weights, gradients and optimizer together: {left} must be "
            "cpu as well. Got none.",
            left=left,
        )
    fields[left] = q.put(left, "cpu", "runtime", "FSDP2's CPUOffloadPolicy moves both")


def _fraction(fields: dict[str, Any], runtime: TrainingRuntime, stage: int, o: TrainingOptions, q: Question) -> float:
    wanted = o.optimizer_offload_fraction
    able = stage >= runtime.offload_fraction_from
    if wanted is not None and (fields["offload_optimizer"] != "cpu" or not able):
        raise NotApplicable(
            Message(
                "{@optimizer_offload_fraction} belongs to {@offload_optimizer} cpu with megatron, or "
                "with deepspeed and ZeRO stage 3. Got {said} with runtime {runtime}.",
                said=wanted,
                runtime=runtime.name,
            ),
            "optimizer_offload_fraction",
            ("offload_optimizer", "runtime", "zero_stage"),
        )
    if wanted is not None and not 0 <= wanted <= 1:
        raise InvalidPlan("{@optimizer_offload_fraction} must be from 0 to 1. Got {said}.", said=wanted)
    if fields["offload_optimizer"] != "cpu" or not able:
        return 1
    return float(
        q.take("optimizer_offload_fraction", wanted, 1.0, "runtime", Message("{runtime}'s own", runtime=runtime.name))
    )


def _update_bandwidth(fields: dict[str, Any], o: TrainingOptions, q: Question) -> float | None:
    """No default: what published updates reach lies a factor of thirty apart."""
    bandwidth = rate("host_update_bandwidth", o.host_update_bandwidth)
    if bandwidth is None:
        return None
    if fields["offload_optimizer"] == "none":
        raise NotApplicable(
            Message(
                "{@host_update_bandwidth} belongs to {@offload_optimizer} cpu or nvme. Got {said:g} with none.",
                said=bandwidth,
            ),
            "host_update_bandwidth",
            ("offload_optimizer",),
        )
    return float(q.put("host_update_bandwidth", bandwidth, "given"))


def _modules(fields: dict[str, Any], runtime: TrainingRuntime, o: TrainingOptions, q: Question) -> str:
    if "offload_modules" not in runtime.options or fields["offload_activations"] == "none":
        if o.offload_modules is not None:
            raise NotApplicable(
                (
                    Message(
                        "{@offload_modules} belong to {@offload_activations} cpu of megatron. Got "
                        "{offload_modules} with runtime {runtime}.",
                        offload_modules=o.offload_modules,
                        runtime=runtime.name,
                    )
                ),
                "offload_modules",
                ("offload_activations", "runtime"),
            )
        return ""
    modules = str(
        q.take("offload_modules", o.offload_modules, ",".join(MODULES), "default", "all that Megatron-core knows")
    )
    names = [part.strip() for part in modules.split(",") if part.strip()]
    for name in names:
        if name not in MODULES:
            raise unknown("module to offload", name, MODULES)
    return ",".join(names)


def _workers(o: TrainingOptions, q: Question) -> int:
    workers = o.data_loader_workers
    if workers is not None and not 0 <= workers <= 4096:
        raise InvalidPlan("{@data_loader_workers} must be from 0 to 4,096. Got {said:,}.", said=workers)
    return int(q.take("data_loader_workers", workers, 0, "default", "torch's own: the process loads its data itself"))
