"""What NCCL's tuner knows: latencies of its algorithms and protocols, and what they reach of the bandwidth.

NVIDIA/nccl 2.28.3, src/graph/tuning.cc (ncclTunerConstantsDefaults, ncclTopoTuneModel, treeCorrectionFactor), read on
2026-11-25. Seconds and bytes a second here; microseconds and GB/s there. For a call NCCL takes the algorithm and the
protocol with the least time by these figures. Left out: caps by channel (they bind where a GPU has few channels, as
over one NIC), CollNet and NVLS of reduce-scatter and all-gather (both are off unless asked for), PAT (one GPU a node).
"""

from typing import NamedTuple

from tonnage.kernel.formula import Number, log2, maximum

US = 1e-6
NEVER = 1e3  # seconds of what NCCL does not use: finite, so that a share of it that is 0 is 0

# Three protocols: LL sends a flag with every 4 bytes, LL128 with every 120, Simple waits for whole chunks.
LL, LL128, SIMPLE = range(3)
PROTOCOLS = ("LL", "LL128", "Simple")

# What a protocol's messages carry of a link's bytes: in a ring; in a tree of one node and of several.
RING_PAYLOAD = (0.5, 0.92, 1.0)
TREE_PAYLOAD = (1 / 3.8, 120 / 128, 1.0)


ByProtocol = tuple[Number, Number, Number]


class Steps(NamedTuple):
    """Seconds of the start of a ring and of a tree, and of each of their steps."""

    ring_base: ByProtocol
    ring: ByProtocol
    tree_base: ByProtocol
    tree: ByProtocol


def _us(first: float, second: float, third: float) -> ByProtocol:
    return first * US, second * US, third * US


RING_BASE, TREE_BASE = _us(6.6, 14.0, 8.4), _us(6.8, 14.0, 8.4)
NVLINK = Steps(RING_BASE, _us(0.6, 1.9, 3.4), TREE_BASE, _us(0.6, 1.25, 4.0))
# LL128 relies on stores of 128 bytes arriving whole, which NVLink promises and PCIe does not.
PCIE = Steps(_us(6.6, NEVER / US, 8.4), _us(1.0, 2.5, 5.7), _us(6.8, NEVER / US, 8.4), _us(1.0, 1.9, 4.0))
NET_RING, NET_TREE = _us(2.7, 4.0, 14.0), _us(5.0, 8.5, 14.0)
# Each step of a ring between nodes has the network post a message, too: 1 us on Intel, three times that for chunks.
NET_POST = _us(1.0, 1.0, 3.0)
NVLS, NVLS_TREE_NET, NVLS_SHARP_NET = 25 * US, 14 * US, 18 * US  # NVLink SHARP inside; a tree, or SHARP, between nodes
CHAIN, CHAIN_NET = 2.8 * US, 30 * US  # CollNet's chain inside, SHARP between nodes

# Bytes a second that LL reaches at the most on one node, by generation of NVLink; over two nodes and over more.
LL_MOST = {"NVLink 2": 39e9, "NVLink 3": 87.7e9, "NVLink 4": 141e9, "NVLink 5": 282e9}
LL_TWO_NODES, LL_NODES = 39e9, 20.4e9

# Percent that trees reach of their bandwidth, by the logarithm of bytes: from 64 B on, each twice the one before.
TREE_PERCENT = (
    (100, 100, 100, 100, 90, 80, 70, 70, 70, 70, 60, 50, 40, 40, 50, 60, 70, 80, 90, 100, 100, 100, 100, 100),
    (100, 100, 100, 100, 100, 90, 80, 80, 80, 70, 60, 60, 60, 60, 60, 60, 80, 90, 90, 90, 90, 100, 100, 100),
    (90, 90, 90, 90, 90, 90, 90, 80, 70, 60, 60, 50, 50, 50, 50, 60, 70, 80, 70, 70, 80, 90, 90, 100),
)
FIRST_SIZE = 6  # the logarithm of 64


def tree_share(protocol: int, size: Number) -> Number:
    """The share of its bandwidth that a tree reaches for a message of `size` bytes: NCCL's steps, joined by lines, so
    that more bytes never take less time.
    """
    percent = TREE_PERCENT[protocol]
    place = log2(maximum(size, 1)) - FIRST_SIZE
    if hasattr(place, "ndim"):
        import numpy as np

        return np.interp(place, range(len(percent)), percent) / 100
    place = min(max(place, 0.0), len(percent) - 1.0)
    low = min(int(place), len(percent) - 2)
    return (percent[low] + (place - low) * (percent[low + 1] - percent[low])) / 100
