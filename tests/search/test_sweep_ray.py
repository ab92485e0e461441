"""A sweep on a real Ray cluster of three nodes on this machine, one of which is lost in the midst of it."""

import os
import signal

import pytest

from search._sweeps import TEXT, digests, holds_every_plan_once, small, when
from tonnage.cli import main
from tonnage.search.sweep.drive import sweep

ray = pytest.importorskip("ray")
pytest.importorskip("pyarrow")
pytestmark = [pytest.mark.soak, pytest.mark.filterwarnings("ignore")]  # Ray's own warnings are not ours


@pytest.fixture
def cluster(monkeypatch):
    """A head that computes nothing, and two nodes of one processor each."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    made = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "include_dashboard": False, "object_store_memory": 100 * 2**20},
    )
    yield made
    made.shutdown()


def test_a_node_that_is_lost_loses_nothing_and_nothing_comes_twice(cluster, tmp_path):
    nodes = [cluster.add_node(num_cpus=1, object_store_memory=100 * 2**20) for _ in range(2)]
    cluster.wait_for_nodes()
    lost = []

    def lose():
        cluster.remove_node(nodes[0], allow_graceful=False)
        lost.append(nodes[0])

    done = sweep(small(), tmp_path / "ray", ray=cluster.address, progress=when(3, lose))
    assert lost and done.made == done.chunks == 32 and not done.failed
    assert holds_every_plan_once(tmp_path / "ray", small())
    alone = sweep(small(), tmp_path / "local", workers=1)
    assert alone.summary == done.summary
    assert digests(tmp_path / "ray") == digests(tmp_path / "local")


def test_a_driver_that_is_told_to_end_is_gone_on_with_on_ray(cluster, tmp_path, capsys, monkeypatch):
    cluster.add_node(num_cpus=2, object_store_memory=100 * 2**20)
    cluster.wait_for_nodes()

    (tmp_path / "sweep.yaml").write_text(TEXT)
    words = ["sweep", str(tmp_path / "sweep.yaml"), "--out", str(tmp_path / "out"), "--ray", cluster.address]
    stop = when(4, lambda: os.kill(os.getpid(), signal.SIGTERM))  # as a scheduler does; Ray itself would abort
    monkeypatch.setattr(sweep, "__kwdefaults__", {**sweep.__kwdefaults__, "progress": stop})
    assert main(words) == 130
    assert "--resume" in capsys.readouterr().err
    monkeypatch.undo()
    done = sweep(small(), tmp_path / "out", ray=cluster.address, resume=True)
    assert done.lay >= 4 and done.made == 32 - done.lay
    assert holds_every_plan_once(tmp_path / "out", small())


def test_agents_that_die_end_the_sweep_in_words_with_how_to_go_on(cluster, tmp_path, capfd, monkeypatch):
    """Ray's library ends the process that joined it, with status 1, when the agent of its node is gone."""
    cluster.add_node(num_cpus=1, object_store_memory=100 * 2**20)
    cluster.wait_for_nodes()

    def lose():
        for node in cluster.list_all_nodes():
            node.kill_raylet(check_alive=False)
        cluster.head_node.kill_gcs_server(check_alive=False)

    (tmp_path / "sweep.yaml").write_text(TEXT)
    words = ["sweep", str(tmp_path / "sweep.yaml"), "--out", str(tmp_path / "out")]
    monkeypatch.setattr(sweep, "__kwdefaults__", {**sweep.__kwdefaults__, "progress": when(3, lose)})
    assert main([*words, "--ray", cluster.address]) == 4
    assert "Ray is lost" in (said := capfd.readouterr().err) and "is whole: run again with --resume" in said
    monkeypatch.undo()
    assert main([*words, "--workers", "2", "--resume"]) == 0
    assert holds_every_plan_once(tmp_path / "out", small())
