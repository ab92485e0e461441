"""What of its kernels a run may change so that it needs less memory, and keeps workload, numerics and parallelism: the
one list that an answer to `train` chooses from. A search for plans tries the losses and Liger's kernels of it.
"""

from collections.abc import Iterator

from tonnage.runtimes import training_runtime

LEAST_ATTENTION = "flash"


def lighter_kernels(runtime: str) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Options of a runtime's kernels, each with the values that need less memory than its default, the mildest
    first. A fused attention is among them: the default, sdpa, may have no fused kernel for the model's heads.
    """
    own = training_runtime(runtime)
    yield "attention", (LEAST_ATTENTION,)
    if len(own.losses) > 1:
        yield "loss", own.losses[1:]
    if own.liger:
        yield "liger", (True,)
