"""What links reach of their datasheets, and what NCCL's latencies over them are: links.toml, made by
scripts/fit_links.py.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from tonnage.estimate.hardware import nccl
from tonnage.estimate.hardware.nccl import Steps
from tonnage.kernel.formula import Number
from tonnage.kernel.prepared import tables
from tonnage.spec import Link

FAST = 1e30  # bytes a second of a link that is not used: finite, so that nothing times it is a number


class LinkKind(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Links of one generation, by how their names begin.

    `share`: of the datasheet's bytes a second, that collectives reach in large messages; `pair`: that two ranks reach,
    0 where it is the same; `direct`: that one copy to one place reaches;
    `in_network`: that an all-reduce reaches which the switch sums, 0 where no switch does. `latency`: NCCL's latencies
    of LL and LL128 times this; `chunks`: those of Simple and of NVLS. `copy`: of the link's bytes a second, at which a
    rank of an all-to-all sends itself its own part, by the kernels that send to others; 0: as in a ring. `step`:
    seconds from one rank to the next, in libraries other than NCCL. `delay`: seconds that the network adds to each of
    NCCL's steps between nodes; `gap`: seconds that each further rank of a collective costs, however little is sent.
    """

    share: float
    direct: float
    step: float
    pair: float = 0.0
    in_network: float = 0.0
    latency: float = 1.0
    chunks: float = 1.0
    copy: float = 0.0
    delay: float = 0.0
    gap: float = 0.0
    is_measured: bool = True


class Links(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that collectives are fitted with.

    NCCL: `base`: what starting takes of LL and LL128, as a multiple of what the steps take; `ramp`: share of a latency
    that each doubling of a message of Simple pays again; `tree`, `trees`: of their bandwidth, that trees of LL and
    LL128 reach on two nodes and on more. Other libraries: `start`: seconds of a collective that sends nothing;
    `pipelining`: share of a latency that each chunk pays again. Both: `peer`: seconds for each rank that an all-to-all
    writes to; `copy`: a rank's copies of its own part, as a multiple of its links' bytes a second; `local`: of its
    memory's bytes a second, that a copy inside of it reaches. `kinds`: by the beginning of a link's name. `inside` and
    `outside`: of what nobody measured.
    """

    base: float
    ramp: float
    tree: float
    trees: float
    start: float
    peer: float
    pipelining: float
    copy: float
    local: float
    kinds: Mapping[str, LinkKind]
    inside: LinkKind
    outside: LinkKind

    def of(self, link: Link, *, inside: bool) -> LinkKind:
        """The kind of a link: the longest beginning that fits its name."""
        fitting = [name for name in self.kinds if _begins(link.name, name)]
        if fitting:
            return self.kinds[max(fitting, key=len)]
        return self.inside if inside else self.outside


def _begins(name: str, with_: str) -> bool:
    """NVLink 1 does not begin NVLink 12."""
    return name == with_ or name.startswith(with_ + " ")


@cache
def links() -> Links:
    """The constants that ship."""
    shipped: Links = tables(str(Path(__file__).with_name("links.toml")), Links)
    return shipped


class Level:
    """One level of links: bytes a second of each rank, by what is sent, and what kind of link it is. `steps`: NCCL's
    latencies over it, whose starts are `base` times theirs; None where another library talks over it, or none of
    NCCL's tables has it.
    """

    def __init__(self, link: Link | None, kind: LinkKind, base: float | None):
        self.link, self.kind, self.step = link, kind, kind.step
        self.sums = kind.in_network > 0 and link is not None and not link.joins  # a bridge has no switch
        rate = link.bytes_per_second if link else FAST
        self.ring, self.direct = rate * kind.share, rate * kind.direct
        self.pair = rate * (kind.pair or kind.share)
        self.in_network = rate * kind.in_network
        self.plain = rate
        self.steps = None if base is None else _steps(link, kind, base)
        self.ll_most = nccl.LL_MOST.get(link.name, FAST) if link else FAST


@cache
def _steps(link: Link | None, kind: LinkKind, base: float) -> Steps | None:
    """NCCL's latencies over a link inside of a node, as this kind of link has them."""
    if link is None:
        return nccl.NVLINK
    if not _begins(link.name, "PCIe") and not link.name.startswith("NVLink "):
        return None
    table = nccl.PCIE if _begins(link.name, "PCIe") else nccl.NVLINK
    first, each, chunks = kind.latency * base, kind.latency, kind.chunks
    starts, steps = (first, first, chunks), (each, each, chunks)
    return Steps(
        _times(table.ring_base, starts),
        _times(table.ring, steps),
        _times(table.tree_base, starts),
        _times(table.tree, steps),
    )


def _times(seconds: nccl.ByProtocol, factors: nccl.ByProtocol) -> nccl.ByProtocol:
    first, second, third = (one * factor for one, factor in zip(seconds, factors, strict=True))
    return first, second, third


class Inside(NamedTuple):
    """What a level inside of a node is to one group, or to an array of them."""

    ring: Number
    direct: Number
    plain: Number
    step: Number
    ll_most: Number
    steps: Steps | None


def mixed(share: Number, near: Inside, far: Inside) -> Inside:
    """`near` where the share is 1, `far` where it is 0."""

    def mix(one: Number, other: Number) -> Number:
        return share * one + (1 - share) * other

    def mix_row(one: nccl.ByProtocol, other: nccl.ByProtocol) -> nccl.ByProtocol:
        first, second, third = map(mix, one, other)
        return first, second, third

    steps = None
    if near.steps is not None and far.steps is not None:
        steps = Steps(*map(mix_row, near.steps, far.steps))
    ring, direct, plain, step, ll_most = map(mix, near[:-1], far[:-1])
    return Inside(ring, direct, plain, step, ll_most, steps)
