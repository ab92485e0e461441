"""Blocks of pinned host memory."""

from tonnage.formulas import host as h
from tonnage.kernel.term import Term


def pinned(*blocks: Term) -> list[Term]:
    """Pinned blocks, each with what its size is rounded up by."""
    made: list[Term] = []
    for block in blocks:
        made += [block, Term.of(f"{block.name}: rounding of pinned memory", h.pinned_rounding, M=block.value)]
    return made
