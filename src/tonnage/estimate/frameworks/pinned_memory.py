"""Blocks of pinned host memory."""

from tonnage.formulas import host as h
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term


def pinned(*blocks: Term) -> list[Term]:
    """Pinned blocks, each with what its size is rounded up by."""
    made: list[Term] = []
    for block in blocks:
        made += [
            block,
            Term.of(Message("{block}: rounding of pinned memory", block=block.name), h.pinned_rounding, M=block.value),
        ]
    return made
