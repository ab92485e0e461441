"""What collectives send, and how long it takes over links of two levels: inside of a node, and between nodes."""

from tonnage.kernel.formula import formula, log2, minimum


@formula(unit="bytes", source="Thakur2005, sec. 4.1 and 4.4; nccl-tests, doc/PERFORMANCE.md")
def ring_bytes(M, n):
    """What one of n ranks sends of M bytes that pass round a ring."""
    return M * (n - 1) / n


@formula(
    unit="bytes",
    source=(
        "nccl-tests, doc/PERFORMANCE.md: an all-reduce in the network has (n+1)/(n-1) times the bandwidth of one "
        "without"
    ),
    assumes="a switch that adds and multicasts: each rank sends all of it, and gets back what others send to its share",
)
def in_network_bytes(M, n):
    """What one link carries of an all-reduce of M bytes that the switch of n ranks sums."""
    return M * (n + 1) / n


@formula(
    unit="bytes",
    source="NCCL, src/graph/tuning.cc: a double binary tree; Thakur2005, sec. 4.4",
    assumes="n ranks of each node have a link each to other nodes and share the load evenly",
)
def tree_bytes(M, n, nodes):
    """What one rank sends to other nodes of an all-reduce of M bytes among all nodes."""
    return 2 * M * (nodes - 1) / nodes / n


@formula(
    unit="seconds",
    source="nccl-tests, doc/PERFORMANCE.md: each rank sends to all others; Thakur2005: alpha + n beta",
    assumes=(
        "n ranks in each of some nodes, which send at W inside and at W_out each to other nodes, one after the other"
    ),
)
def hierarchical_exchange_seconds(M, n, nodes, W, W_out):
    """Time of an all-to-all in which a rank has M bytes for all ranks together."""
    return M / nodes * (n - 1) / n / W + M * (nodes - 1) / nodes / W_out


@formula(
    unit="seconds",
    source="nccl-tests, src/all_gather.cu: out of place, so that a rank copies its own part",
    assumes="while it copies, a rank does not send",
)
def own_part_seconds(M, n, W_copy):
    """Time in which a rank puts its own part of M bytes in its place."""
    return M / n / W_copy


@formula(unit="steps", source="NCCL, src/graph/tuning.cc: nsteps less nInterSteps")
def ring_steps_inside(n_pass, n, nodes):
    """Steps inside of nodes of a message that goes round a ring of n ranks."""
    return n_pass * (n - nodes)


@formula(unit="steps", source="NCCL, src/graph/tuning.cc: nInterSteps")
def ring_steps_between(n_pass, nodes):
    """Steps between nodes of a message that goes round a ring."""
    return n_pass * (nodes - 1)


@formula(
    unit="steps",
    source="NCCL, src/graph/tuning.cc: a chain inside each node, a tree between nodes",
    assumes="n ranks in each node",
)
def tree_steps_inside(n):
    """Steps inside of nodes of an all-reduce up and down a tree of nodes."""
    return 2 * (n - 1)


@formula(unit="steps", source="NCCL, src/graph/tuning.cc: a chain inside each node, a tree between nodes")
def tree_steps_between(nodes):
    """Steps between nodes of an all-reduce up and down a tree of nodes."""
    return 2 * log2(nodes)


@formula(unit="seconds", source="NCCL, src/graph/tuning.cc: steps inside and between nodes")
def steps_latency(lat_base, n_inner, n_across, lat_in, lat_out):
    """Time of a collective's start and of its steps, whatever is sent."""
    return lat_base + n_inner * lat_in + n_across * lat_out


@formula(unit="seconds", source="NCCL, src/graph/tuning.cc: NVLS inside of a node, a tree between nodes")
def nvls_latency(nodes, lat_in, lat_out):
    """Time of an all-reduce that the switch of each node sums, and a tree between nodes, whatever is sent."""
    return lat_in + 2 * log2(nodes) * lat_out


@formula(
    unit="seconds",
    source="NCCL, src/graph/tuning.cc: CollNet, a chain inside each node, one sum between nodes",
    assumes="n ranks in each node, whose network sums",
)
def in_network_latency(n, lat_in, lat_out):
    """Time of the steps of an all-reduce that switches between nodes sum."""
    return 2 * (n - 1) * lat_in + lat_out


@formula(
    unit="bytes",
    source="NCCL, src/graph/tuning.cc and trees.cc: a double binary tree, in which each node is a leaf once",
    assumes="n ranks of each node have a link each to other nodes and share the load evenly",
)
def busiest_tree_bytes(M, n, nodes):
    """What one rank of the busiest node sends to other nodes of an all-reduce of M bytes among all nodes."""
    return M * minimum(nodes - 1, 2) / n


@formula(unit="seconds", source="Thakur2005: alpha + n beta")
def message_seconds(lat, tau):
    """Time of a message that takes tau on the wire behind a latency."""
    return lat + tau


@formula(
    unit="seconds",
    source=(
        "aiconfigurator-core 0.12.0, nccl_perf: what messages of NCCL's protocol Simple take beyond latency and wire "
        "grows by as much with each doubling of their bytes"
    ),
    assumes="a share of the latency again for each doubling beyond where wire and latency are alike",
)
def ramped_seconds(lat, tau, kappa):
    """Time of a message of whole chunks that takes tau on the wire behind a latency."""
    return lat + tau + kappa * lat * log2(1 + tau / lat)


@formula(unit="seconds", source="Thakur2005: each message pays alpha", assumes="one rank's messages leave one by one")
def messages_seconds(n, lat_gap):
    """Time that a rank's messages to or from n - 1 others take for being many."""
    return (n - 1) * lat_gap


@formula(
    unit="seconds",
    source="Thakur2005: alpha + n beta, with the number of chunks that makes the sum least",
    assumes="a message travels in chunks, each of which pays a share of the latency again",
)
def pipelined_seconds(lat, tau, kappa):
    """Time of a message that takes tau on the wire behind a latency."""
    return lat + tau + 2 * (kappa * lat * tau) ** 0.5


@formula(
    unit="seconds",
    source=(
        "nccl-tests, logs of 16 GPUs in validation/collectives.yaml: the fourth power, between the sum and the "
        "larger of the two"
    ),
    assumes=(
        "both levels work at once on different parts of a message and get in each other's way where they need as long"
    ),
)
def overlapped_seconds(tau_in, tau_out):
    """Time of a message that passes two levels of links at once."""
    return (tau_in**4 + tau_out**4) ** 0.25


@formula(
    unit="",
    source=(
        "ROCm, MI300X system: one link between each pair; NVIDIA2020, four links to each of three others on a "
        "board of four"
    ),
    assumes="as many links lead to each of the others",
)
def full_mesh_share(n, k):
    """The share of its links to k others that a rank uses among n ranks."""
    return minimum((n - 1) / k, 1)


@formula(
    unit="",
    source="NVIDIA2017, sec. 3.1: hybrid cube mesh",
    assumes="ranks are chosen well: pairs with two links, fours that are all joined",
)
def cube_mesh_share(n, k):
    """The share of its k links that a rank uses among n ranks of a hybrid cube mesh."""
    return minimum(n / k, 1)
