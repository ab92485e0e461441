"""Host memory as a choice: what of a job must stay there for the rest to fit, asked of the estimator until it does,
with the time that this takes.
"""

from collections.abc import Iterator
from math import ceil

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.answer.answers import serve
from tonnage.estimate.answer.form import Answer
from tonnage.estimate.inputs import Question
from tonnage.estimate.load.options import LoadOptions
from tonnage.estimate.memory import training_memory
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.serving.options import ServingOptions
from tonnage.kernel.errors import InvalidPlan, MissingDatum
from tonnage.kernel.units import MIB
from tonnage.runtimes import serving_runtime
from tonnage.search.pool.parts import Kind
from tonnage.spec import Cluster

ROUNDS = 4  # of asking again for what was still missing
STEP = 64 * MIB


def served_from_host(
    model: Model, kind: Kind, width: int, options: ServingOptions, load: LoadOptions, plain: Answer
) -> tuple[Answer, ServingOptions, int] | None:
    """The replica with only as many weights in host memory as it needs to fit with the high end of the error band, and
    their bytes on each rank; None where host memory does not help.
    """
    if kind.accelerator.host_link is None:
        return None
    room = (kind.node.host_memory_bytes or 0) // kind.node.accelerators
    entry = plain.question.get("engine")
    engine = str(entry.value) if entry else ""
    if engine and "expert_layers_on_host" in serving_runtime(engine, options.engine_version or "").settings:
        return _layers_on_host(model, kind, width, options, load, room)
    away = 0
    answer = plain
    for _ in range(ROUNDS):
        highest = answer.band[1] if answer.band else answer.needed_bytes
        away += ceil(max(highest - answer.usable_bytes, 0) / STEP) * STEP
        if away > room:
            return None
        settings = replace(options, weights_on_host=away)
        answer = serve(model, kind.cluster(1, width), settings, load, reserve_bytes=kind.reserve, advise=False)
        if answer.fits:
            return answer, settings, away
    return None


def _layers_on_host(
    model: Model, kind: Kind, width: int, options: ServingOptions, load: LoadOptions, room: int
) -> tuple[Answer, ServingOptions, int] | None:
    """llama.cpp: the most layers on the accelerators that fit there (-ngl). Without the host's bandwidth nobody
    knows the time.
    """
    low, high, best = 0, model.num_layers + 1, None
    while low < high:
        middle = (low + high + 1) // 2
        settings = replace(options, layers_on_accelerator=middle)
        answer = serve(model, kind.cluster(1, width), settings, load, reserve_bytes=kind.reserve, advise=False)
        if answer.fits:
            low, best = middle, (answer, settings)
        else:
            high = middle - 1
    if best is None:
        return None
    held = best[0].serving.host_memory
    away = ceil(held.value / width) if held else 0
    return (*best, away) if away <= room else None


ON_HOST = {
    "optimizer on the host": {"offload_optimizer": "cpu"},
    "optimizer and activations on the host": {"offload_optimizer": "cpu", "offload_activations": "cpu"},
    "optimizer and parameters on the host": {"offload_optimizer": "cpu", "offload_parameters": "cpu"},
    "optimizer and parameters on NVMe": {"offload_optimizer": "nvme", "offload_parameters": "nvme"},
}


def trained_with_host(
    model: Model, kind: Kind, cluster: Cluster, options: TrainingOptions
) -> Iterator[tuple[TrainingOptions, str]]:
    """The training run with more and more of it away from the accelerators, as far as its runtime has that and the
    rest fits; and what is away.
    """
    for name, away in ON_HOST.items():
        settings = replace(options, **away)
        try:
            plan = training_plan(model, cluster, settings, Question())
            if training_memory(model, plan, cluster).needed <= kind.free:
                yield settings, name
        except (InvalidPlan, MissingDatum):
            continue
