"""A sweep's plans as numbers, cut into chunks: all by arithmetic, so that a sweep of any length is described in a few
hundred bytes.

A plan's number is written in mixed radix: models first, then clusters, then the outer options, then the inner sizes,
the last of which runs fastest. The plans that agree in all but inner sizes are a block; a chunk is a part of a block,
or a few whole blocks.
"""

from collections.abc import Iterator
from math import prod

import numpy as np
from msgspec import Struct

from tonnage.search.sweep.spec import Spec

MAX_BLOCKS = 64  # of a chunk: each is walked by itself, and takes a time of its own


class Part(Struct, frozen=True):
    """Plans `start` to `stop` (without it) of one block, whose digits these are: model, cluster, outer options."""

    digits: tuple[int, ...]
    block: int
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


class Tasks:
    """The chunks of a sweep, numbered from 0."""

    def __init__(self, spec: Spec):
        self.outer = (len(spec.models), len(spec.clusters), *(len(axis.values) for axis in spec.outer))
        self.inner = tuple(len(axis.values) for axis in spec.inner)
        self.block = prod(self.inner)
        self.blocks = prod(self.outer)
        self.plans = self.block * self.blocks
        self.pieces = -(-self.block // spec.chunk_plans)  # of a block
        self.together = 1 if self.pieces > 1 else min(spec.chunk_plans // self.block, MAX_BLOCKS)
        if spec.kind == "serve":  # a question is no array: as many as were asked for
            self.together = spec.chunk_plans
        self.count = self.blocks * self.pieces if self.pieces > 1 else -(-self.blocks // self.together)

    def parts(self, number: int) -> Iterator[Part]:
        """The blocks of a chunk, or its part of one."""
        if not 0 <= number < self.count:
            raise IndexError(number)
        if self.pieces > 1:
            block, piece = divmod(number, self.pieces)
            edges = (self.block * piece // self.pieces, self.block * (piece + 1) // self.pieces)
            yield Part(digits(block, self.outer), block, *edges)
            return
        for block in range(number * self.together, min((number + 1) * self.together, self.blocks)):
            yield Part(digits(block, self.outer), block, 0, self.block)

    def plans_of(self, number: int) -> int:
        """The number of plans in a chunk."""
        if self.pieces > 1:
            return sum(map(len, self.parts(number)))
        return (min((number + 1) * self.together, self.blocks) - number * self.together) * self.block

    def sizes(self, part: Part) -> list[np.ndarray]:
        """For each inner axis the positions of its values, one for each plan of the part."""
        rest = np.arange(part.start, part.stop, dtype=np.int64)
        digits_of_axes = []
        for length in reversed(self.inner):
            rest, digit = np.divmod(rest, length)
            digits_of_axes.append(digit)
        return digits_of_axes[::-1]

    def numbers(self, part: Part) -> np.ndarray:
        """The number of each plan of a part: it names the plan in the whole sweep."""
        return part.block * self.block + np.arange(part.start, part.stop, dtype=np.int64)


def digits(number: int, lengths: tuple[int, ...]) -> tuple[int, ...]:
    """A number in mixed radix, the last digit runs fastest.

    >>> digits(5, (2, 3))
    (1, 2)
    """
    reversed_digits = []
    for length in reversed(lengths):
        number, digit = divmod(number, length)
        reversed_digits.append(digit)
    return tuple(reversed(reversed_digits))
