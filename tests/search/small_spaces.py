"""Small spaces of training plans: every plan one by one through the scalar path, as an oracle of the search."""

import numpy as np
from msgspec.structs import replace

import tonnage
from tonnage.catalogue import cluster
from tonnage.estimate.bands import highest
from tonnage.estimate.inputs import Question
from tonnage.estimate.memory import training_memory
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.step_time.time import Timing
from tonnage.kernel.errors import InvalidPlan, MissingDatum
from tonnage.search.training.space import Space

MODELS = {name: tonnage.read(name) for name in ("llama-3.2-1b", "qwen3-30b-a3b", "deepseek-v2-lite")}


def scalar(model, machine, options, said):
    """(high end of bytes, seconds, tokens) of one plan, or None where the scalar path refuses it."""
    try:
        plan = training_plan(model, machine, replace(options, **said), Question())
        made = training_memory(model, plan, machine)
        seconds = Timing(model, plan, machine).seconds
    except (InvalidPlan, MissingDatum):
        return None
    return highest(plan, machine, made.memory.value), float(seconds), plan.tokens_per_step


def every_plan(space):
    """All options of all plans of a space, each machine with all sizes: more than the search makes, for what it
    leaves out must be invalid.
    """
    for choices in space.choices:
        for group in space.groups():
            if group.choices is choices or dict(group.choices) == choices:
                for row in range(group.rows):
                    sizes = {name: int(values[row]) for name, values in group.inner.items()}
                    for machine in space.machines:
                        yield (
                            machine,
                            {
                                **choices,
                                **sizes,
                                "pipeline_parallel_size": group.stages,
                                "virtual_pipeline_size": group.chunks,
                            },
                        )


def brute_force(space, usable):
    """Seconds of a token of the best plan of each machine, one by one."""
    best = [np.inf] * len(space.machines)
    for machine, said in every_plan(space):
        found = scalar(space.model, machine, space.options, said)
        if found is None:
            continue
        high, seconds, tokens = found
        at = [each.name for each in space.machines].index(machine.name)
        if high <= usable:
            best[at] = min(best[at], seconds / tokens)
    return best


def small_space(name, on, **options):
    """Few sizes, so that brute force is possible."""
    vary = {"micro_batch_size": (1, 4), "context_parallel_size": (1, 2)}
    if options.get("runtime") == "megatron":  # whose layers are dealt out in several ways for each number of chunks
        vary["virtual_pipeline_size"] = (1, 2)
    vary = {key: values for key, values in vary.items() if key not in options}
    given = TrainingOptions(**({"sequence_length": 2048, "global_batch_size": 32} | options))
    return Space(MODELS[name], [cluster(each) for each in on], given, vary)
