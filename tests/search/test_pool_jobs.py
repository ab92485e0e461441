"""Jobs on a pool: as many as can be by priority, what runs stays or moves as little as can be, as a walk through all
placements finds it.
"""

from itertools import product
from math import ceil
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tonnage
from tonnage.catalogue import accelerator
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.units import GIB, human
from tonnage.search.pool.highs import Effort
from tonnage.search.pool.inventory import Job, inventory_of
from tonnage.search.pool.jobs import Way, Ways, ways_of
from tonnage.search.pool.packing_program import Packing
from tonnage.search.pool.parts import Kind, Pool
from tonnage.spec import Node

CHIPS = ("A100-SXM-80GB", "H100-SXM-80GB")


def kind_of(number: int, each: int, nodes: int) -> Kind:
    names = tuple(f"{number}-{at}" for at in range(nodes))
    node = Node(name=f"{number}", accelerator=CHIPS[number], accelerators=each)
    return Kind(
        group=f"{number}",
        accelerator=accelerator(CHIPS[number]),
        each=each,
        free=80 * GIB,
        node=node,
        price=1.0 + number,
        parts=names,
        nodes=names,
    )


@st.composite
def packings(draw) -> Packing:
    kinds = tuple(
        kind_of(number, draw(st.integers(1, 4)), draw(st.integers(1, 2))) for number in range(draw(st.integers(1, 2)))
    )
    jobs = []
    for number in range(draw(st.integers(1, 3))):
        ways = [
            Way(kind=kind, width=draw(st.integers(1, kind.each)), needed=40 * GIB, copied=float(GIB))
            for kind in kinds
            if draw(st.booleans())
        ]
        running = draw(st.booleans()) and bool(ways)
        where = tuple(draw(st.sampled_from(ways[0].kind.nodes)) for _ in range(1)) if running else ()
        job = Job(
            name=f"job{number}",
            model="any",
            priority=float(draw(st.integers(1, 4))),
            replicas=draw(st.integers(1, 2)),
            runs_on=where,
        )
        jobs.append(Ways(job=job, ways=ways, refused=[]))
    return Packing(SimpleNamespace(kinds=kinds, inventory=None), jobs)


def every_placement(packing: Packing):
    """For each job nothing, or a (way, node) for each replica; only those that the nodes have room for."""
    choices = []
    for each in packing.jobs:
        spots = [(way, node) for way in each.ways for node in way.kind.nodes]
        choices.append([None, *product(spots, repeat=each.job.replicas)])
    for placed in product(*choices):
        room = {node: kind.each for kind in packing.pool.kinds for node in kind.nodes}
        for spots in placed:
            for way, node in spots or ():
                room[node] -= way.width
        if min(room.values()) >= 0:
            yield placed


def worth(packing: Packing, placed) -> tuple[float, float, float]:
    """Priority, replicas that stay, and dollars."""
    priority = sum(each.job.priority for each, spots in zip(packing.jobs, placed, strict=True) if spots)
    stays = 0
    for each, spots in zip(packing.jobs, placed, strict=True):
        nodes = [node for _, node in spots or ()]
        for node in each.job.runs_on:
            if node in nodes:
                nodes.remove(node)
                stays += 1
    cost = sum(way.cost for spots in placed for way, _ in spots or ())
    return priority, stays, -cost


@given(packing=packings())
@settings(max_examples=50)
def test_jobs_are_placed_as_well_as_can_be_then_moves_then_cost(packing):
    best = max(worth(packing, placed) for placed in every_placement(packing))
    effort = Effort()
    priority = -packing.most(packing.priority(), effort).objective
    stays = -packing.most(packing.running(), effort).objective if packing.kept else 0.0
    cost = -packing.most(packing.thrift(), effort).objective
    assert (priority, stays) == pytest.approx(best[:2], abs=1e-6)
    assert cost == pytest.approx(
        best[2], abs=0.01
    )  # prices are whole dollars; what decides between equal nodes is less


POOL = {
    "nodes": [
        {"name": "a", "accelerator": "A100-SXM-80GB", "count": 4, "nodes": 2, "price": 1.5, "outside": "25GB/s"},
        {"name": "l", "accelerator": "L40S", "count": 4, "nodes": 2, "price": 0.8, "outside": "25GB/s"},
    ],
    "spare": [{"name": "h", "accelerator": "H100-SXM-80GB", "count": 8, "price": 2.5, "outside": "50GB/s"}],
}
SMALL = {"model": "llama-3.1-8b", "options": {"context": "8k", "concurrency": 8}}
LARGE = {
    "model": "llama-3.1-70b",
    "options": {"context": "8k", "concurrency": 16},
}  # four A100 hold it, and four L40S do not


def placed(jobs: list[dict], **more):
    return tonnage.place(POOL | {"jobs": jobs}, **more).document


def test_what_runs_stays_though_elsewhere_is_cheaper():
    found = placed([{"name": "one", "runs_on": ["a-2"], **SMALL}, {"name": "two", **SMALL}])
    assert [(row.job, row.state, row.nodes[0][0]) for row in found.jobs] == [("one", "stays", "a"), ("two", "new", "l")]


def test_every_job_fits_by_the_estimator():
    found = placed([{"name": "one", "replicas": 3, **SMALL}, {"name": "two", **LARGE}])
    assert found.verdict.placed and found.verdict.optimal
    for row in found.jobs:
        options = {
            "context": 8192,
            "concurrency": 8 if row.job == "one" else 16,
            "tensor_parallel_size": row.accelerators,
        }
        answer = tonnage.serve(
            SMALL["model"] if row.job == "one" else LARGE["model"],
            on=f"{row.accelerators}x{row.accelerator}",
            **options,
        )
        assert answer.fits and answer.needed_bytes == row.needed_bytes <= row.usable_bytes


def test_a_node_that_leaves_moves_no_job_that_need_not_move():
    jobs = [
        {"name": "one", "runs_on": ["a-1"], **SMALL},
        {"name": "two", "runs_on": ["a-2"], **SMALL},
        {"name": "three", "runs_on": ["l-1"], **SMALL},
    ]
    empty = placed(jobs, leave=["l-2"])
    assert not empty.moves and {row.state for row in empty.jobs} == {"stays"}
    one = placed(jobs, leave=["a-1"])
    assert [(move.job, move.leaves) for move in one.moves] == [("one", "a-1")]
    (move,) = one.moves
    assert move.copied_bytes == pytest.approx(16.06e9, rel=0.01) and move.seconds == pytest.approx(
        move.copied_bytes / 25e9
    )


def test_a_small_job_makes_room_where_the_large_one_can_go_nowhere_else():
    """Four A100 of one node hold the large one; the small one goes to the L40S."""
    jobs = [
        {"name": "large", "priority": 5, "runs_on": ["a-1"], **LARGE},
        {"name": "small", "runs_on": ["a-2"], **SMALL},
    ]
    found = placed(jobs, leave=["a-1"])
    assert {(move.job, move.goes_to[0]) for move in found.moves} == {("large", "a-2"), ("small", "l-1")} or {
        (move.job, move.goes_to[0]) for move in found.moves
    } == {("large", "a-2"), ("small", "l-2")}
    assert found.verdict.placed


def test_a_group_that_joins_takes_what_had_no_place_and_moves_nothing():
    jobs = [
        {"name": "running", "runs_on": ["a-1"], "priority": 3, **LARGE},
        {"name": "waiting", "replicas": 3, **LARGE},
    ]
    before = placed(jobs)
    assert [row.state for row in before.jobs if row.job == "waiting"] == ["unplaced"] * 3 and not before.verdict.placed
    assert "room for" in before.binding
    after = placed(jobs, join=["h"])
    assert after.verdict.placed and not after.moves


def test_priority_decides_who_is_placed():
    jobs = [{"name": f"job{number}", "priority": number, **LARGE} for number in (1, 2, 3, 4, 5)]
    found = placed(jobs)
    assert {row.job for row in found.jobs if row.state == "unplaced"} == {"job1", "job2", "job3"}


def test_a_job_that_no_node_can_hold_says_what_it_lacks_most_nearly():
    found = placed([{"name": "huge", "model": "llama-3.1-405b", "options": {"context": "4k"}}])
    assert not found.verdict.placed
    assert "no node holds it" in found.binding and "short by" in found.nearest_miss and "4xA100" in found.nearest_miss


def test_jobs_that_share_an_accelerator_fit_it_together():
    job = {
        "model": "llama-3.1-8b",
        "shares": True,
        "options": {"context": "2k", "weights": "fp8", "gpu_memory_utilization": 0.3},
    }
    found = placed([{"name": "small", "replicas": 6, **job}])
    assert found.verdict.placed and found.figures["accelerators"] == 2
    assert all(3 * row.needed_bytes <= row.usable_bytes for row in found.jobs)


def test_what_others_hold_is_not_given_away():
    nodes = [
        {
            "name": "n",
            "accelerator": "L40S",
            "count": 4,
            "held": [{"job": "theirs", "accelerators": 3}, {"accelerators": 1, "memory": "15GiB"}],
        }
    ]
    (kind,) = Pool(inventory_of({"nodes": nodes})).kinds
    assert (kind.each, kind.free) == (1, accelerator("L40S").memory.usable_bytes - 15 * GIB)
    found = tonnage.place({"nodes": nodes, "jobs": [{"name": "mine", "replicas": 2, **SMALL}]}).document
    assert not found.verdict.placed
    alone = tonnage.place({"nodes": nodes, "jobs": [{"name": "mine", **SMALL}]}).document
    assert alone.verdict.placed and alone.jobs[0].usable_bytes == kind.free


def test_a_training_job_takes_several_nodes_where_one_is_too_small():
    job = {
        "name": "tune",
        "kind": "train",
        "model": "llama-3.1-8b",
        "options": {"sequence_length": 4096, "recompute": "full"},
    }
    found = tonnage.place(
        {
            "nodes": [{"name": "l", "accelerator": "L40S", "count": 2, "nodes": 4, "outside": "25GB/s", "price": 0.8}],
            "jobs": [job],
        }
    ).document
    (row,) = found.jobs
    assert found.verdict.placed and len(row.nodes) >= 2 and row.accelerators == 2 * len(row.nodes)


def test_host_memory_is_used_where_the_job_says_it_may():
    nodes = [{"name": "d", "accelerator": "rtx-4090", "count": 1, "host_memory": "128GiB"}]
    job = {"name": "big", "model": "qwen3-14b", "options": {"context": "4k"}}
    assert not tonnage.place({"nodes": nodes, "jobs": [job]}).placed
    (row,) = tonnage.place({"nodes": nodes, "jobs": [job | {"offload": True}]}).document.jobs
    assert (
        row.state == "new"
        and row.host_bytes > 0
        and "on the host" in row.offload
        and row.needed_bytes <= row.usable_bytes
    )


def test_an_option_that_no_job_has_is_named_with_its_job():
    pool = Pool(inventory_of(POOL))
    with pytest.raises(
        InvalidInput, match=r"job bad: options.contxt: no option is called 'contxt'. Did you mean 'context'"
    ):
        ways_of(Job(name="bad", model="llama-3.1-8b", options={"contxt": 1}), pool)
    with pytest.raises(InvalidInput, match=r"job bad: options.context"):
        ways_of(Job(name="bad", model="llama-3.1-8b", options={"context": "long"}), pool)
    with pytest.raises(InvalidInput, match=r"job bad: options.context takes a whole number"):
        ways_of(Job(name="bad", model="llama-3.1-8b", options={"context": [1]}), pool)
    with pytest.raises(InvalidInput, match=r"job bad: options.deadline is of a whole run"):
        ways_of(Job(name="bad", kind="train", model="llama-3.1-8b", options={"deadline": "6h"}), pool)


def test_a_training_job_takes_as_many_accelerators_as_its_deadline_needs():
    job = {
        "name": "tune",
        "kind": "train",
        "model": "llama-3.2-1b",
        "options": {"sequence_length": 4096, "tokens": "1B", "global_batch_size": 64},
    }
    pool = {"nodes": [{"name": "h", "accelerator": "H100-SXM-80GB", "count": 8, "price": 2.0}]}

    def width(**more) -> int:
        return tonnage.place(pool | {"jobs": [job | {"options": job["options"] | more}]}).document.jobs[0].accelerators

    leisurely, hurried = width(), width(deadline="6h")
    assert leisurely < hurried
    late = tonnage.place(pool | {"jobs": [job | {"options": job["options"] | {"deadline": "1min"}}]}).document
    assert not late.verdict.placed and "the deadline is 60.00 s" in late.nearest_miss


def test_what_is_away_from_a_training_job_must_fit_the_host():
    job = {
        "name": "t",
        "kind": "train",
        "model": "llama-3.1-8b",
        "offload": True,
        "options": {"sequence_length": 2048, "recompute": "full", "runtime": "fsdp2"},
    }
    node = {"name": "l", "accelerator": "L40S", "count": 2, "price": 1.0}
    (row,) = tonnage.place({"nodes": [node | {"host_memory": "512GiB"}], "jobs": [job]}).document.jobs
    assert row.state == "new" and "on the host" in row.offload and 0 < row.host_bytes <= 512 * GIB
    small = tonnage.place({"nodes": [node | {"host_memory": "16GiB"}], "jobs": [job]}).document
    assert not small.verdict.placed and "of host memory, a node has 16.00 GiB" in small.nearest_miss


def test_accelerators_that_replicas_share_are_paid_for_whole():
    job = {
        "name": "small",
        "model": "llama-3.1-8b",
        "replicas": 3,
        "shares": True,
        "options": {"context": "2k", "weights": "fp8", "gpu_memory_utilization": 0.4},
    }
    found = placed([job])
    assert found.figures["accelerators"] == 2 and found.usd_per_hour == pytest.approx(2 * 0.8)
    assert sorted(row.usd_per_hour for row in found.jobs) == pytest.approx([0.4, 0.4, 0.8])
    assert any("paid for whole" in each for each in found.warnings)


def test_a_job_whose_limit_nothing_keeps_names_it_with_the_least_that_there_is():
    job = {"name": "fast", "model": "llama-3.1-8b", "options": {"context": "2k", "tpot": "1ms"}}
    found = placed([job])
    least = min(
        tonnage.serve(
            "llama-3.1-8b", on=on, context=2048, concurrency=1, tensor_parallel_size=int(on[0])
        ).serving.tpot_seconds.value
        for on in ("4xA100-SXM-80GB", "4xL40S")
    )
    assert not found.verdict.placed
    assert f"tpot is {human(least, 'seconds')}, and 1.00 ms is asked for" in found.nearest_miss


def test_a_job_of_a_rate_needs_the_memory_of_the_requests_that_run_at_once():
    options = {"context": 2048, "request_rate": 1.5}
    (row,) = placed([{"name": "rate", "model": "llama-3.1-8b", "options": options}]).jobs
    on, width = f"{row.accelerators}x{row.accelerator}", row.accelerators
    running = tonnage.serve("llama-3.1-8b", on=on, tensor_parallel_size=width, **options).serving.running.value
    held = tonnage.serve("llama-3.1-8b", on=on, tensor_parallel_size=width, context=2048, concurrency=ceil(running))
    assert running > 1 and row.needed_bytes == held.needed_bytes


def test_what_leaves_is_in_the_pool():
    with pytest.raises(InvalidInput, match=r"h is spare and not in the pool.*--join h"):
        placed([{"name": "one", **SMALL}], leave=["h"])
    assert "h" in placed([{"name": "one", **SMALL}], leave=["h"], join=["h"]).pool.left
    with pytest.raises(InvalidInput, match=r"Known: a, a-1, a-2, l, l-1, l-2\.$"):
        placed([{"name": "one", **SMALL}], leave=["nope"])
    alone = {"nodes": [{"name": "n", "accelerator": "L40S"}], "jobs": [{"name": "one", **SMALL}]}
    with pytest.raises(InvalidInput, match=r"Known: n\.$"):  # a node whose group has its name is named once
        tonnage.place(alone, leave=["zzz"])
