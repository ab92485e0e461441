"""How much the benchmarks run: the full sizes, whose figures are published, and small ones with which tests run
every benchmark in seconds.
"""

from msgspec import Struct


class Sizes(Struct, frozen=True, kw_only=True):
    """`repeats`: at most so many runs of one figure; `cases`: questions of each benchmark; `models`: of the catalogue;
    `nodes`: machines of a search of training plans, `lengths`: its sequence lengths, and its batches;
    `accelerators`: of searches of serving plans, for their speed and, two of them, for their memory."""

    repeats: int = 1000
    cases: int = 10
    models: int = 10_000
    plans: int = 100_000
    requests: int = 100_000
    loads: int = 10_000
    points: int = 1024
    nodes: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128, 256)
    lengths: int = 4
    accelerators: tuple[int, int, int] = (64, 32, 256)


FULL = Sizes()
SMALL = Sizes(
    repeats=1,
    cases=1,
    models=10,
    plans=1000,
    requests=200,
    loads=100,
    points=4,
    nodes=(1,),
    lengths=1,
    accelerators=(2, 1, 2),
)
