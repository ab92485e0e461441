"""Collectives over links of two levels: what they send, how long they take, and what can never be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tonnage.catalogue import cluster, node
from tonnage.estimate.hardware import nccl
from tonnage.estimate.hardware.links import links
from tonnage.estimate.hardware.network import PASSES, Network
from tonnage.estimate.hardware.routing import Routing, routing_of
from tonnage.kernel.errors import MissingDatum
from tonnage.spec import Link, StatedLinks

KINDS = sorted(PASSES)
NAMES = ("8xH100-SXM-80GB", "16xdgx-h100", "8xdgx-a100", "4xp5.48xlarge", "2xgb200-nvl72", "8xL40S", "4x8xMI300X")
NETWORKS = {name: Network(cluster(name)) for name in NAMES}
GB, MIB = 10**9, 1 << 20

sizes = st.integers(1, 1 << 36)
kinds = st.sampled_from(KINDS)
networks = st.sampled_from(NAMES).map(NETWORKS.__getitem__)
groups = st.sampled_from((2, 4, 8, 16, 32))


def busbw(name: str, kind: str, size: int, group: int, algorithm=None) -> float:
    """GB/s as nccl-tests counts them."""
    made = NETWORKS[name].collective(kind, size, group, algorithm=algorithm)
    return made.sent / made.seconds / GB


@pytest.mark.parametrize("group", [2, 4, 8, 16, 128])
def test_a_rank_sends_twice_n_less_one_over_n_of_an_all_reduce_and_half_of_that_of_the_others(group):
    network = NETWORKS["16xdgx-h100"]
    assert network.collective("all_reduce", GB, group).sent == pytest.approx(2 * (group - 1) / group * GB)
    for kind in ("all_gather", "reduce_scatter", "all_to_all"):
        assert network.collective(kind, GB, group).sent == pytest.approx((group - 1) / group * GB)


@given(kinds, networks, sizes)
def test_one_rank_alone_sends_nothing_and_takes_no_time(kind, network, size):
    assert network.collective(kind, size, 1) == (0, 0)


@given(kinds, networks, sizes, sizes, groups)
def test_more_bytes_are_never_faster(kind, network, size, more, group):
    assert network.collective(kind, size + more, group).seconds >= network.collective(kind, size, group).seconds


@given(kinds, networks, sizes, groups)
def test_bytes_are_never_faster_than_the_links_of_the_datasheet(kind, network, size, group):
    """But for a switch that sums, where a rank sends less than round a ring: at most twice as fast."""
    made = network.collective(kind, size, min(group, network.cluster.size))
    limit = network.inside.plain * (2 if kind == "all_reduce" else 1)
    assert made.sent / made.seconds <= limit


@given(kinds, networks, sizes)
def test_more_nodes_are_never_faster(kind, network, size):
    per_node = network.per_node
    counts = [nodes for nodes in (1, 2, 4, 8, 16) if nodes <= network.cluster.num_nodes]
    times = [network.collective(kind, size, nodes * per_node).seconds for nodes in counts]
    assert times == sorted(times)


@given(kinds, networks, st.lists(sizes, min_size=1, max_size=4), groups, st.sampled_from((1, 2, 8, 64)))
def test_an_array_of_messages_takes_what_each_takes(kind, network, many, group, stride):
    at_once = network.collective(kind, np.array(many, float), np.full(len(many), group), np.full(len(many), stride))
    for index, size in enumerate(many):
        alone = network.collective(kind, size, group, stride)
        assert at_once.seconds[index] == pytest.approx(alone.seconds, rel=1e-9)
        assert at_once.sent[index] == pytest.approx(alone.sent, rel=1e-9)


@given(networks, sizes, sizes, st.sampled_from((1, 2, 8, 64)))
def test_a_message_between_two_ranks_takes_longer_for_more_bytes_and_for_another_node(network, size, more, stride):
    assert network.send(size + more, stride) >= network.send(size, stride)
    assert network.send(size, network.per_node) >= network.send(size, 1) or network.cluster.num_nodes == 1
    array = network.send(np.array([size, more], float), np.array([stride, 1]))
    assert array[0] == pytest.approx(network.send(size, stride))


@given(networks, sizes, groups)
def test_the_fastest_algorithm_is_taken(network, size, group):
    best = network.collective("all_reduce", size, group).seconds
    named = [
        network.collective("all_reduce", size, group, algorithm=each).seconds for each in ("ring", "tree", "in_network")
    ]
    assert best == pytest.approx(min(named))


def test_a_switch_that_sums_beats_a_ring_among_eight_and_not_among_two():
    assert busbw("8xH100-SXM-80GB", "all_reduce", 8 << 30, 8) > 1.2 * busbw(
        "8xH100-SXM-80GB", "all_reduce", 8 << 30, 8, "ring"
    )
    assert busbw("8xH100-SXM-80GB", "all_reduce", 8 << 30, 2) == busbw(
        "8xH100-SXM-80GB", "all_reduce", 8 << 30, 2, "ring"
    )


def as_nccl_has_it(name: str) -> Network:
    """A network whose latencies and trees are those of NCCL's tables, not fitted."""
    fitted = links()
    kinds = {kind: replace(one, latency=1.0, chunks=1.0) for kind, one in fitted.kinds.items()}
    return Network(cluster(name), constants=replace(fitted, base=1.0, tree=1.0, trees=1.0, kinds=kinds))


@pytest.mark.parametrize("size", [8, 1 << 10, 64 << 10, MIB])
def test_nccl_sends_up_to_a_mebibyte_round_a_ring_by_ll_on_eight_h100(size):
    """NVIDIA/nccl-tests issue 309: "8B~1MB: uses Algo RING proto LL", as NCCL_DEBUG_SUBSYS=TUNING printed."""
    assert as_nccl_has_it("8xH100-SXM-80GB").chosen("all_reduce", size, 8) == ("ring", "LL")


@pytest.mark.parametrize("size", [4 * MIB, 64 * MIB, 1 << 30, 16 << 30])
def test_nccl_sends_more_through_the_switch_on_eight_h100(size):
    """The same: "2MB~16GB uses Algo NVLS proto SIMPLE"; here from 4 MiB on."""
    assert as_nccl_has_it("8xH100-SXM-80GB").chosen("all_reduce", size, 8) == ("in_network", "Simple")


def test_nccl_sums_large_messages_of_two_nodes_by_nvls_and_a_tree_and_small_ones_by_a_tree():
    """The same issue, an engineer of NVIDIA: "NVLS being used with single-node runs, NVLSTree with multi-node"."""
    network = as_nccl_has_it("16xdgx-h100")
    assert network.chosen("all_reduce", 16 << 30, 16) == ("in_network", "Simple")
    assert network.chosen("all_reduce", 1 << 10, 16) == ("tree", "LL")


def test_what_has_no_switch_that_sums_and_no_nvlink_uses_neither_nvls_nor_ll128():
    for name in ("8xL40S", "8xdgx-a100"):
        network = as_nccl_has_it(name)
        ways = network.ways("all_reduce", 8, 1).ways
        assert {way.algorithm for way in ways} == {"ring"}, name
        assert (nccl.LL128 in {way.protocol for way in ways}) == (name != "8xL40S")


@pytest.mark.parametrize(("nodes", "measured"), [(2, 26.65e-6), (4, 37.1e-6)])
def test_a_kibibyte_climbs_nodes_by_their_logarithm_as_nccls_tables_say(nodes, measured):
    """NVIDIA/nccl-tests issue 309, eight H100 a node over InfiniBand: 26.65 and 37.10 us of a KiB."""
    network = as_nccl_has_it("16xdgx-h100")
    assert network.collective("all_reduce", 1 << 10, 8 * nodes).seconds == pytest.approx(measured, rel=0.1)


@given(st.integers(1, 1 << 36), st.integers(0, 1 << 36), st.sampled_from(range(3)))
def test_a_trees_share_never_makes_more_bytes_faster_and_is_the_same_in_an_array(size, more, protocol):
    here, there = nccl.tree_share(protocol, size), nccl.tree_share(protocol, size + more)
    assert 0.4 <= here <= 1
    assert (size + more) / there >= size / here * (1 - 1e-12)
    assert nccl.tree_share(protocol, np.array([float(size)]))[0] == pytest.approx(here, rel=1e-12)


@given(kinds, networks, sizes, st.sampled_from((2, 4, 8)))
def test_a_network_remembers_the_ways_of_a_group_and_says_the_same_again(kind, network, size, group):
    groups = np.full(2, float(group))
    first = network.collective(kind, float(size), groups)
    assert list(network.collective(kind, float(size), groups).seconds) == list(first.seconds)
    others = network.collective(kind, float(size), np.full(2, 1.0))
    assert list(others.seconds) == [0, 0]


def test_stated_bandwidths_take_the_place_of_the_catalogues():
    machine = cluster("16xdgx-h100")  # 8 x 400 Gb/s a node, NVLink 4
    catalogued = Network(machine)
    same = Network(machine, stated=StatedLinks(inter_node_bandwidth=400e9, intra_node_bandwidth=450e9))
    slower = Network(machine, stated=StatedLinks(inter_node_bandwidth=100e9))
    crowded = Network(machine, stated=StatedLinks(intra_node_bandwidth=225e9))
    far, near = (128, 1), (8, 1)
    for group, stride in (far, near):
        one = catalogued.collective("all_gather", GB, group, stride).seconds
        assert same.collective("all_gather", GB, group, stride).seconds == pytest.approx(one)
    assert (
        slower.collective("all_gather", 8 * GB, *far).seconds
        > 3 * catalogued.collective("all_gather", 8 * GB, *far).seconds
    )
    assert slower.collective("all_gather", GB, *near) == catalogued.collective("all_gather", GB, *near)
    assert (
        crowded.collective("all_gather", GB, *near).seconds
        > 1.8 * catalogued.collective("all_gather", GB, *near).seconds
    )


def test_a_stated_network_stands_where_the_catalogue_knows_none():
    machine = cluster("2x8xH100-SXM-80GB")
    bare = replace(machine, node=replace(machine.node, outside=None))
    with pytest.raises(MissingDatum):
        Network(bare)
    assert Network(bare, stated=StatedLinks(inter_node_bandwidth=400e9)).collective("all_reduce", GB, 16).seconds > 0


def test_a_tree_beats_a_ring_for_short_messages_among_many_nodes():
    ring, tree = (
        NETWORKS["8xdgx-a100"].collective("all_reduce", MIB, 64, algorithm=each).seconds for each in ("ring", "tree")
    )
    assert tree < ring


def test_a_network_whose_switches_sum_sends_half_between_nodes():
    machine = cluster("16xdgx-a100")
    sums = Link(
        name="InfiniBand HDR", bytes_per_second=machine.node.outside.bytes_per_second, topology="fat tree, SHARP"
    )
    summing = Network(replace(machine, node=replace(machine.node, outside=sums)))
    plain = Network(machine)
    # one rank in each node: nothing is sent inside
    assert (
        summing.collective("all_reduce", GB, 16, stride=8).seconds
        < 0.6 * plain.collective("all_reduce", GB, 16, stride=8).seconds
    )


def test_ranks_a_node_apart_share_no_links_inside_and_those_beside_each_other_use_no_network():
    network = NETWORKS["16xdgx-h100"]
    apart, beside = (network.collective("all_gather", GB, 8, stride).seconds for stride in (8, 1))
    assert apart > 5 * beside
    assert beside == pytest.approx(NETWORKS["8xH100-SXM-80GB"].collective("all_gather", GB, 8).seconds)


def test_large_messages_reach_what_machines_were_measured_at():
    """validation/collectives.yaml has the sources."""
    assert busbw("8xH100-SXM-80GB", "all_reduce", 8 << 30, 8) == pytest.approx(476, rel=0.05)
    assert busbw("8xH100-SXM-80GB", "all_gather", 16 << 30, 8) == pytest.approx(361.4, rel=0.05)
    assert busbw("16xdgx-h100", "all_reduce", 16 << 30, 16) == pytest.approx(472, rel=0.05)
    assert busbw("8xdgx-a100", "all_reduce", 8 << 30, 16) == pytest.approx(238, rel=0.05)


def test_a_cluster_without_a_link_is_refused_with_what_to_name():
    machine = cluster("2x8xH100-SXM-80GB")
    with pytest.raises(MissingDatum, match="16xdgx-h100"):
        Network(replace(machine, node=None))


def test_a_link_is_of_the_longest_kind_that_begins_its_name_and_others_are_not_measured():
    constants = links()
    assert constants.of(Link(name="NVLink 4", bytes_per_second=1), inside=True) is constants.kinds["NVLink 4"]
    assert constants.of(Link(name="EFA 3200 Gb/s", bytes_per_second=1), inside=False).gap > 0
    unknown = constants.of(Link(name="NVLink 45", bytes_per_second=1), inside=True)
    assert unknown is constants.inside and not unknown.is_measured


def test_no_link_is_faster_than_its_datasheet():
    constants = links()
    for kind in (*constants.kinds.values(), constants.inside, constants.outside):
        assert 0 < kind.share <= 1 and 0 < kind.direct <= 1 and 0 <= kind.in_network <= 1
        assert 1e-7 < kind.step < 1e-4 and kind.gap < 1e-4


@pytest.mark.parametrize(
    ("few", "many"), [("4xtpu-v5p", "8xtpu-v5p"), ("8xtpu-v5e", "64xtpu-v5e"), ("4xtpu-v4", "256xtpu-v4")]
)
def test_the_torus_of_a_slice_goes_on_through_its_hosts(few, many):
    host, slice_ = Network(cluster(few)), Network(cluster(many))
    assert slice_.cluster.num_nodes > 1
    assert slice_.outside.link is None
    here = host.collective("all_gather", GB, host.cluster.size)
    there = slice_.collective("all_gather", GB, slice_.cluster.size)
    assert there.sent / there.seconds > 0.8 * here.sent / here.seconds


def test_beyond_a_pod_chips_talk_over_the_network_of_the_data_centre():
    network = Network(cluster("512xtpu-v5e"))
    assert network.outside.link.name == "data centre network"
    assert network.per_node == 256
    inside, between = (network.collective("all_gather", GB, 2, stride=stride) for stride in (128, 256))
    assert between.seconds > 3 * inside.seconds


@pytest.mark.parametrize(
    ("host", "pod"),
    [
        ("tpu-v4-host", "tpu-v4-pod"),
        ("tpu-v5e-8", "tpu-v5e-pod"),
        ("tpu-v5p-host", "tpu-v5p-pod"),
        ("tpu-v6e-8", "tpu-v6e-pod"),
        ("tpu-v7-host", "tpu-v7-pod"),
    ],
)
def test_a_hosts_torus_joins_as_many_chips_as_its_pod_has(host, pod):
    assert node(host).inside.joins == node(pod).accelerators


@pytest.mark.parametrize(
    ("name", "joins"),
    [("8xH100-NVL-94GB", 2), ("8xA100-PCIe-80GB", 2), ("8xA40", 2), ("8x3090", 2), ("8xH200-NVL-141GB", 4)],
)
def test_groups_larger_than_a_bridge_talk_over_pcie(name, joins):
    network = Network(cluster(name))
    assert network.inside.link.name.startswith("PCIe")
    near, far = (network.collective("all_gather", GB, group) for group in (joins, 2 * joins))
    assert near.sent / near.seconds > 1.5 * far.sent / far.seconds
    apart = network.collective("all_gather", GB, 2, stride=joins)  # no two of them share a bridge
    assert apart.seconds > network.collective("all_gather", GB, 2).seconds
    assert network.send(GB, joins) > network.send(GB, 1)
    both = network.collective("all_gather", GB, np.array([joins, 2 * joins]))
    assert list(both.seconds) == pytest.approx([near.seconds, far.seconds])


def test_cards_in_pairs_in_machines_of_two_have_their_bridge_and_the_network():
    network = Network(cluster("4x2xH100-NVL-94GB"))
    assert (network.bridge, network.inside.link.name, network.cluster.num_nodes) == (None, "NVLink 4", 4)
    assert network.outside.link.name.startswith("Ethernet")


@pytest.mark.parametrize(
    ("name", "shares"),
    [
        ("8xMI300X", {2: 1 / 7, 4: 3 / 7, 8: 1}),
        ("mi355x-platform", {2: 1 / 7, 8: 1}),
        ("gaudi3-server", {2: 1 / 7, 8: 1}),
        ("hgx-a100-4", {2: 1 / 3, 4: 1}),
        ("hgx-h100-4", {2: 1 / 3, 4: 1}),
        ("dgx-1", {2: 1 / 3, 4: 2 / 3, 8: 1}),
        ("8xH100-SXM-80GB", {2: 1, 4: 1, 8: 1}),
    ],
)
def test_ranks_of_a_mesh_use_the_links_between_them_alone(name, shares):
    network = Network(cluster(name))
    most = max(shares)
    for ranks, share in shares.items():
        assert network.rate_inside(ranks) == pytest.approx(share * network.rate_inside(most))
        made = network.collective("all_reduce", 64 * GB, ranks)
        if not network.inside.sums:
            assert made.sent / made.seconds <= share * network.inside.plain
    many = np.array(list(shares))
    assert network.rate_inside(many) * np.ones(len(many)) == pytest.approx([network.rate_inside(n) for n in shares])


@pytest.mark.parametrize("name", ["8xMI300X", "2x8xMI300X", "8xGaudi3"])
def test_one_rank_of_a_mesh_sends_nothing_and_takes_no_time(name):
    """The arrays of a search hold groups of one rank too: beside others their rate must be a number."""
    network = Network(cluster(name))
    for kind in ("all_reduce", "all_gather", "all_to_all"):
        assert network.collective(kind, GB, 1).seconds == 0
        assert np.isfinite(network.collective(kind, GB, np.array([1.0, 2.0, 8.0])).seconds).all()


def test_one_accelerator_of_a_mesh_sends_to_another_over_one_link():
    one, plain = Network(cluster("8xMI300X")), Network(cluster("8xH100-SXM-80GB"))
    assert GB / one.send(GB, 1) <= one.inside.plain / 7
    assert GB / plain.send(GB, 1) > plain.inside.plain / 2


def test_a_rank_of_an_all_to_all_sends_itself_its_part_by_the_kernels_that_send_to_others():
    """aiconfigurator-core's tables of 2 and 8 ranks at 512 MiB: two ranks of an H100, half of whose bytes stay, take
    less for each byte of the link than two of a B200, whose link outruns the copies.
    """
    slow, fast = (Network(cluster(name)) for name in ("8xB200-SXM-180GB", "8xH100-SXM-80GB"))

    def over_link(network, ranks):
        return network.collective("all_to_all", 512 * MIB, ranks).seconds * network.inside.plain

    of_two, of_eight = (over_link(slow, ranks) / over_link(fast, ranks) for ranks in (2, 8))
    assert of_two > 1.2 and 1 < of_eight < 0.95 * of_two


def test_a_token_reaches_the_places_of_its_experts_which_are_all_different():
    assert Routing(8, 2).places(8) == pytest.approx(2)  # an expert each
    assert Routing(256, 8).places(1) == pytest.approx(1)
    assert Routing(4, 4).places(2) == pytest.approx(2)
    pairs = [{one // 4, other // 4} for one in range(8) for other in range(one)]
    assert Routing(8, 2).places(2) == pytest.approx(sum(map(len, pairs)) / len(pairs))


def test_a_token_of_deepseek_v3_goes_to_less_than_four_of_eight_nodes_as_its_router_opens_four_of_eight_groups():
    """DeepSeek2024V3, sec. 2.1.2 and 3.2.2: at most four nodes, of 3.2 experts each at the most."""
    limited, free = Routing(256, 8, groups=8, allowed=4), Routing(256, 8)
    assert 3.5 < limited.places(8) < 4 < free.places(8)
    assert limited.places(4) < free.places(4) and limited.places(64) < free.places(64)
    assert Routing(256, 8, groups=8, allowed=8).places(8) == pytest.approx(free.places(8), rel=0.01)


def test_experts_that_a_benchmark_deals_out_in_turn_lie_side_by_side():
    """The experts of NeMo AutoModel's FakeBalancedGate and of Primus: token i has those from i * top-k on."""
    for experts, chosen, places in ((128, 8, 8), (256, 8, 64), (384, 8, 32), (32, 4, 8), (128, 6, 8), (16, 16, 4)):
        held, tokens = experts // places, range(experts)
        counted = [{(chosen * token + at) % experts // held for at in range(chosen)} for token in tokens]
        exact = sum(map(len, counted)) / len(counted)
        routing = routing_of({"n_group": 8, "topk_group": 4}, experts, chosen, in_turn=True)
        assert routing.places(places) == pytest.approx(exact)
        assert routing.places(1) == 1


@given(st.sampled_from((1, 2, 4, 8, 16, 32, 64)), st.sampled_from(((1, 1), (8, 4), (8, 3), (4, 2))))
def test_a_token_never_reaches_more_places_than_experts_or_places(places, groups):
    found = Routing(128, 6, *groups).places(places)
    assert 1 - 1e-9 <= found <= min(places, 6) + 1e-9
    assert Routing(128, 6, *groups).places(np.array([places]))[0] == pytest.approx(found)


def test_what_travels_along_pays_for_its_bytes_alone():
    network, routing = NETWORKS["16xdgx-h100"], Routing(128, 8)
    own, along = (network.dispatch(MIB, 64, 1, routing, is_along) for is_along in (False, True))
    assert along.sent == own.sent and 0 < along.seconds < own.seconds
    twice = network.dispatch(2 * MIB, 64, 1, routing, True)
    assert twice.seconds == pytest.approx(2 * along.seconds)


@pytest.mark.parametrize("odd", ["x", None, True, -3, 2.5, 0, 10**9])
def test_groups_that_are_no_number_are_one_group(odd):
    routing = routing_of({"n_group": odd, "topk_group": odd}, 64, 6)
    assert 1 - 1e-9 <= routing.places(8) <= 6
