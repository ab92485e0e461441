"""KV caches of prefixes that are kept beside the accelerators: in host memory, on the disks of a node, or in a store
that nodes reach over the network. How many tokens they hold, how long a hit takes to come back, and whether that is
sooner than computing it again.
"""

from typing import Literal, cast

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.documents.question import Origin
from tonnage.documents.serving import KVOffloadDocument
from tonnage.estimate.hardware.links import links
from tonnage.estimate.hardware.network import Network
from tonnage.estimate.host.storage import DRIVE_SOURCE, drives_of
from tonnage.estimate.inputs import Question
from tonnage.estimate.load.options import ReplicaLoad
from tonnage.estimate.serving.memory import ServingMemory
from tonnage.estimate.serving_time.forward_pass import PassTime
from tonnage.estimate.serving_time.load_time import READ_RATE
from tonnage.estimate.serving_time.work import Work
from tonnage.formulas import host as f
from tonnage.formulas.time import transfer_seconds
from tonnage.kernel.errors import InvalidPlan, MissingDatum
from tonnage.kernel.formula import Number, maximum, minimum
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.kernel.units import human
from tonnage.spec import Cluster, ServingPlan

# SGLang, sglang/srt/arg_groups/fields/memory.py: hicache_ratio. vLLM, docs/features/kv_offloading_usage.md: larger than
# the cache of all GPUs, or it only mirrors that; it has no default.
RATIO = 2.0
RATIO_SOURCE = "twice the KV cache of the GPUs, as SGLang's --hicache-ratio"
HOST_PART = 0.5  # of a node's memory that a default takes at most
LOADED = {
    "host": "KV cache loaded from host memory",
    "disk": "KV cache loaded from disk",
    "store": "KV cache loaded from the store",
}


def cache_bytes(works: tuple[Work, ...], tokens: Number, plan: ServingPlan) -> Number:
    """Bytes of the cache of a prefix of `tokens` tokens on a rank, the mean of its stages."""
    held: Number = sum(work.state_bytes / 2 for work in works)
    for work in works:
        for attending in work.attending:
            kept = tokens if attending.window is None else minimum(tokens, attending.window)
            held = held + attending.layers * attending.bytes * kept
    return held / plan.pipeline_parallel_size


def load_seconds(passes: PassTime, cached: Number) -> Number:
    """Seconds in which the cache of so many tokens comes back to a replica of a plan with such a tier; 0 without one.
    All ranks load at the same time, and disks and the network are read while the host's link copies.
    """
    if not passes.plan.tier.kv_offload:
        return 0.0
    held = cache_bytes(passes.works, cached, passes.plan)
    return held / bandwidth(passes.plan, passes.network.cluster)


def bandwidth(plan: ServingPlan, cluster: Cluster) -> Number:
    """Bytes a second at which a rank's part of a cache comes back. MissingDatum where no source gives a link."""
    rate: Number = _link(cluster)
    if plan.tier.kv_offload == "disk":
        rate = minimum(rate, _disks(plan, cluster) / ranks_on_node(plan, cluster))
    if plan.tier.kv_offload == "store":
        rate = minimum(rate, _network(plan, cluster))
    return rate


def ranks_on_node(plan: ServingPlan, cluster: Cluster) -> int:
    """Ranks of a replica that share a node's disks and memory."""
    ranks = plan.tensor_parallel_size * plan.pipeline_parallel_size * plan.attention_data_parallel_size
    return int(min(ranks, cluster.accelerators_per_node))


def _link(cluster: Cluster) -> float:
    link = cluster.accelerator.host_link
    if link is None:
        raise MissingDatum(
            "no source gives the host link of {name}: KV caches from outside of it cross it.",
            name=cluster.accelerator.name,
        )
    return float(link.bytes_per_second * links().of(link, inside=True).direct)


def _disks(plan: ServingPlan, cluster: Cluster) -> float:
    if plan.tier.kv_read_bandwidth is not None:
        return float(plan.tier.kv_read_bandwidth)
    local = drives_of(cluster.node) if cluster.node is not None else None
    if local is None:
        raise MissingDatum(
            "no source says how fast the disks of {cluster} are: {@kv_offload} disk needs {@storage_read_bandwidth}.",
            cluster=cluster.name,
        )
    return local.count * READ_RATE


def _network(plan: ServingPlan, cluster: Cluster) -> Number:
    of_two = cluster if cluster.num_nodes > 1 else replace(cluster, num_nodes=2)
    return Network(of_two, stated=plan.links).outside.direct


# ---- How much it holds.


def sized_plan(
    model: Model, plan: ServingPlan, cluster: Cluster, memory: ServingMemory, pool: int | None, question: Question
) -> ServingPlan:
    """The plan with the bytes of its tier, for each replica: as given, else twice the cache of its GPUs in host memory,
    or the replica's part of the disks. `pool`: tokens of cache of a replica's GPUs. InvalidPlan where a node cannot
    hold them.
    """
    if not plan.tier.kv_offload:
        return plan
    origin: Origin = "given"
    size, why = plan.tier.kv_offload_bytes, ""
    copies = max(cluster.accelerators_per_node // ranks_on_node(plan, cluster), 1)
    room = cluster.node.host_memory_bytes if cluster.node is not None and plan.tier.kv_offload == "host" else None
    if size is None:
        size, why = _default_size(plan, cluster, memory, pool, room, copies)
        origin = "default"
    elif room is not None and size * copies > room:
        raise InvalidPlan(
            "{@kv_offload_size} is of each replica, and those on a node need {needed} of host memory: "
            "{node} has {room}. Got {got}. Nearest: {nearest}.",
            needed=human(size * copies, "bytes"),
            node=cluster.node.name if cluster.node is not None else cluster.name,
            room=human(room, "bytes"),
            got=human(size, "bytes"),
            nearest=human(room // copies, "bytes"),
        )
    question.put("kv_offload_size", size, origin, why)
    return replace(plan, tier=replace(plan.tier, kv_offload_bytes=size))


def _default_size(
    plan: ServingPlan,
    cluster: Cluster,
    memory: ServingMemory,
    pool: int | None,
    room: int | None,
    copies: int,
) -> tuple[int, str]:
    if plan.tier.kv_offload == "host" and pool:
        twice = round(RATIO * pool * token_bytes(plan, memory))
        if room is None or twice * copies <= room * HOST_PART:
            return twice, RATIO_SOURCE
        return int(room * HOST_PART / copies), Message(
            "half of the node's memory, for {copies} replicas", copies=copies
        )
    drives = drives_of(cluster.node) if cluster.node is not None and plan.tier.kv_offload == "disk" else None
    if drives is None:
        raise MissingDatum(
            "{@kv_offload} {place} needs {@kv_offload_size}: no source says how much there is.",
            place=plan.tier.kv_offload,
        )
    share = ranks_on_node(plan, cluster) / cluster.accelerators_per_node
    return int(drives.count * drives.capacity_bytes * share), drives.source


def token_bytes(plan: ServingPlan, memory: ServingMemory) -> float:
    """Bytes of the cache of a token on all ranks that keep it."""
    return float(sum(rank.per_token.value for rank in memory.ranks) * plan.tensor_parallel_size)


# ---- What an answer says of it.


def offload_figures(
    passes: PassTime, plan: ServingPlan, memory: ServingMemory, cached: float, recomputed: float
) -> KVOffloadDocument[Term]:
    """`cached`: tokens of a prompt that come from the tier; `recomputed`: seconds in which an idle replica computes
    them.
    """
    each = token_bytes(plan, memory)
    size = float(plan.tier.kv_offload_bytes or 0)
    capacity = Term.of("tokens of KV cache in the tier", f.tier_tokens, U=size, M=each or 1.0)
    figures = KVOffloadDocument(
        place=cast(Literal["host", "disk", "store"], plan.tier.kv_offload), capacity_tokens=capacity
    )
    if not cached:
        return figures
    held = float(cache_bytes(passes.works, cached, passes.plan))
    source = DRIVE_SOURCE if plan.tier.kv_offload == "disk" and plan.tier.kv_read_bandwidth is None else ""
    rate = float(bandwidth(plan, passes.network.cluster))
    loading = Term.of(_load_name(plan), transfer_seconds, source=source, M=held, W=rate)
    again = Term.by(
        "computing it again",
        recomputed,
        "seconds",
        basis="analytic",
        source="the prompt's pass with and without the cached tokens, on an idle replica",
        procedure="walk of the kernels of a pass (estimate.inference)",
        version="1",
        tokens=cached,
    )
    least = Term.of("bandwidth from which loading is faster", f.break_even_bandwidth, M=held, tau=recomputed)
    return replace(
        figures,
        load_seconds=loading,
        recompute_seconds=again,
        break_even_bandwidth=least,
        faster=loading.value < recomputed,
    )


def check_tier(
    figures: KVOffloadDocument[Term], plan: ServingPlan, memory: ServingMemory, wanted: ReplicaLoad, question: Question
) -> None:
    """InvalidPlan where a tier holds less than one cached prefix; a note where it holds fewer than there are users."""
    cached, users = int(wanted.load.cached_tokens), int(wanted.load.concurrency or 0)
    held = int(figures.capacity_tokens.value)
    if cached > held:
        size = token_bytes(plan, memory)
        raise InvalidPlan(
            "{@kv_offload_size} must hold the {cached:,} cached tokens of a prompt, {needed}. Got {got}, {held:,} "
            "tokens. Nearest: {needed}.",
            cached=cached,
            needed=human(cached * size, "bytes"),
            got=human(plan.tier.kv_offload_bytes or 0, "bytes"),
            held=held,
        )
    if cached and held // cached < users:
        question.warn(
            Message(
                "the tier of a replica holds the cached tokens of {held:,} of its {users:,} users: such a hit rate "
                "needs prefixes that users share, or a larger {@kv_offload_size}.",
                held=held // cached,
                users=users,
            ),
            first=True,
        )


def _load_name(plan: ServingPlan) -> str:
    return LOADED[plan.tier.kv_offload]


def wait_seconds(rate: Number, seconds: Number) -> Number:
    """Wait for the links that load other requests' caches at so many a second, each for so many seconds."""
    from tonnage.formulas.load import queue_wait_seconds

    return queue_wait_seconds.evaluate(load=minimum(maximum(rate, 0) * seconds, 0.99), tau=seconds, cv2=0)
