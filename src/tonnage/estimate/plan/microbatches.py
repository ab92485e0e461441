"""How many micro-batches a pipeline schedule takes: predicates for the rules of estimate.plan.validity.

Sources: Megatron-LM, megatron/core/pipeline_parallel/schedules.py: forward_backward_pipelining_with_interleaving, whose
group of micro-batches (--microbatch-group-size-per-virtual-pipeline-stage, the pipeline size unless it is given) must
be from the pipeline size to the number of micro-batches; PyTorch, torch/distributed/pipelining/schedules.py:
Schedule1F1B, ScheduleInterleaved1F1B, ScheduleDualPipeV; nanotron, parallel/pipeline_parallel/engine.py:
OneForwardOneBackwardPipelineEngine.
"""

from collections.abc import Callable

from msgspec import Struct

from tonnage.kernel.formula import Number, maximum
from tonnage.runtimes import TrainingRuntime


class MicrobatchRule(Struct, frozen=True):
    """`sentence`: what num_microbatches must be; `holds`: whether m micro-batches on p stages are, of numbers or
    arrays.
    """

    sentence: str
    holds: Callable[[Number, Number], Number]


def microbatches_per_round(m: Number, p: Number) -> Number:
    """Micro-batches that pass one chunk of a stage before the next chunk: at least p where there are so many.

    >>> [microbatches_per_round(m, 4) for m in (1, 4, 10, 16)]
    [1, 4, 5, 4]
    """
    return m // maximum(m // p, 1)


RULES = {
    "multiple of stages": MicrobatchRule(
        "num_microbatches must be a multiple of pipeline_parallel_size", lambda m, p: m % p == 0
    ),
    "equal rounds": MicrobatchRule(
        "num_microbatches must be a multiple of num_microbatches // pipeline_parallel_size, the number of rounds",
        lambda m, p: m % maximum(m // p, 1) == 0,
    ),
    "one per stage": MicrobatchRule("num_microbatches must be at least pipeline_parallel_size", lambda m, p: m >= p),
    "stages less one": MicrobatchRule(
        "num_microbatches must be at least pipeline_parallel_size - 1", lambda m, p: m >= p - 1
    ),
    "two per stage": MicrobatchRule(
        "num_microbatches must be at least 2 x pipeline_parallel_size", lambda m, p: m >= 2 * p
    ),
}


def microbatch_rule(runtime: TrainingRuntime, schedule: str) -> MicrobatchRule | None:
    """The rule of a runtime's schedule; None: any number will do."""
    name = runtime.microbatch_rules.get(schedule)
    return RULES[name] if name else None
