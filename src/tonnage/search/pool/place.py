"""What is asked of a pool decides how it is answered: one model as a pipeline or as replicas, or the jobs of the
inventory.
"""

from pathlib import Path
from typing import Any

from tonnage.architectures import Model
from tonnage.estimate.load.options import LoadOptions
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.serving.options import ServingOptions
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import option_name
from tonnage.kernel.registry import unknown
from tonnage.search.pool.highs import Effort
from tonnage.search.pool.inventory import Inventory, inventory_of, read_inventory
from tonnage.search.pool.one_model import serve_pipeline, train_pipeline
from tonnage.search.pool.packing import pack
from tonnage.search.pool.parts import Pool
from tonnage.search.pool.placement import Placement
from tonnage.search.pool.replicas import replicas, runs_on_one_node

SPLITS = ("auto", "pipeline", "replicas")


def place(
    inventory: str | Path | Inventory | dict[str, Any],
    model: Model | None = None,
    options: ServingOptions | TrainingOptions | None = None,
    load: LoadOptions | None = None,
    *,
    split: str = "auto",
    objective: str = "throughput",
    offload: bool = False,
    stages: int | None = None,
    leave: tuple[str, ...] = (),
    join: tuple[str, ...] = (),
    time_limit: float | None = None,
    gap: float = 0.0,
) -> Placement:
    """The placement. Without a model the jobs of the inventory; `options` of training make it a training run."""
    effort = Effort(Effort.USUAL if time_limit is None else time_limit, gap)
    read = read_inventory(inventory) if isinstance(inventory, str | Path) else inventory_of(inventory)
    pool = Pool(read, leave=leave, join=join)
    if split not in SPLITS:
        raise unknown("split", split, SPLITS)
    if model is None:
        _only_jobs(split, objective, offload=offload, stages=stages)
        return pack(pool, effort=effort)
    if leave or join:
        raise InvalidInput(
            "{@leave} and {@join} say what becomes of the jobs of an inventory: leave out MODEL. Got both."
        )
    if stages is not None and not 1 <= stages <= model.num_layers:
        raise InvalidInput(
            "{@stages} must be from 1 to the {num_layers} layers of {model}. Got {stages}.",
            num_layers=model.num_layers,
            model=model.name,
            stages=stages,
        )
    if isinstance(options, TrainingOptions):
        if split == "replicas" or objective != "throughput":
            raise InvalidInput(
                "{@split} and {@objective} are of serving: a training run is one pipeline, the fastest there is."
            )
        return train_pipeline(pool, model, options, effort=effort, offload=offload, stages=stages)
    settings, demanded = options or ServingOptions(), load or LoadOptions()
    alone = split == "replicas" or (
        split == "auto"
        and objective == "throughput"
        and stages is None
        and settings.pipeline_parallel_size is None
        and runs_on_one_node(pool, model, settings, demanded)
    )
    if alone:
        return replicas(pool, model, settings, demanded, effort=effort, offload=offload)
    return serve_pipeline(
        pool, model, settings, demanded, effort=effort, objective=objective, offload=offload, stages=stages
    )


def _only_jobs(split: str, objective: str, *, offload: bool, stages: int | None) -> None:
    """Options of one model that have no meaning for jobs."""
    is_given = {
        "split": split != "auto",
        "objective": objective != "throughput",
        "offload": offload,
        "stages": stages is not None,
    }
    for name, is_said in is_given.items():
        if is_said:
            where = ": write it to the job" if name == "offload" else ""
            raise InvalidInput("{name} is of one model, and none is named{where}.", name=option_name(name), where=where)
