"""The process that joins Ray is not the one that answers the user: whatever ends it, the sweep says so and how to go
on.
"""

import os
import signal

import pytest

from search import _sweeps
from search._sweeps import TEXT, digests, holds_every_plan_once, small, when
from tonnage.cli import main
from tonnage.kernel.errors import InvalidInput
from tonnage.search.sweep import on_ray
from tonnage.search.sweep.drive import sweep
from tonnage.search.sweep.work import Lost

pytest.importorskip("pyarrow")


@pytest.fixture
def driver(monkeypatch):
    """Says what the process does in place of Ray."""
    return lambda does: monkeypatch.setattr(on_ray, "drive", does)


def test_chunks_come_from_the_process_of_the_driver(driver, tmp_path, children):
    driver(_sweeps.drives_alone)
    done = sweep(small(), tmp_path / "ray", ray="")
    assert done.made == done.chunks == 32 and holds_every_plan_once(tmp_path / "ray", small())
    sweep(small(), tmp_path / "local", workers=1)
    assert digests(tmp_path / "ray") == digests(tmp_path / "local")
    assert not children()


@pytest.mark.parametrize(
    ("does", "how"),
    [
        (_sweeps.is_killed_after_three, "Ray is lost on this node: the process that joined it ended with status 1."),
        (_sweeps.loses_the_cluster, "Ray is lost: ConnectionError: failed to connect to GCS"),
    ],
    ids=["its agent dies", "the head dies"],
)
def test_a_ray_that_is_lost_is_said_with_how_to_go_on(does, how, driver, tmp_path, capsys):
    driver(does)
    (tmp_path / "sweep.yaml").write_text(TEXT)
    words = ["sweep", str(tmp_path / "sweep.yaml"), "--out", str(tmp_path / "out")]
    assert main([*words, "--ray"]) == 4
    said = capsys.readouterr().err
    assert how in said and "is whole: run again with --resume" in said and "Traceback" not in said
    assert 1 <= len(digests(tmp_path / "out")) < 32
    assert main([*words, "--workers", "2", "--resume"]) == 0
    assert holds_every_plan_once(tmp_path / "out", small())


def test_a_ray_that_cannot_be_joined_is_bad_input_as_before(driver, tmp_path):
    driver(_sweeps.cannot_join)
    with pytest.raises(InvalidInput, match="--ray nowhere:1: nothing answers there"):
        sweep(small(), tmp_path / "out", ray="nowhere:1")


def test_workers_that_never_live_say_how_to_go_on_too(tmp_path, monkeypatch):
    monkeypatch.setattr("tonnage.search.sweep.local.reports.__defaults__", (_sweeps.never_lives,))
    with pytest.raises(Lost, match=r"no worker stays alive.*is whole: run again with --resume"):
        sweep(small(), tmp_path / "out", workers=1)


def test_ctrl_c_ends_the_process_of_the_driver(driver, tmp_path, capsys, monkeypatch, children):
    driver(_sweeps.waits_for_ever)
    (tmp_path / "sweep.yaml").write_text(TEXT)
    stop = when(1, lambda: os.kill(os.getpid(), signal.SIGTERM))
    monkeypatch.setattr("tonnage.search.sweep.drive.sweep.__kwdefaults__", {**sweep.__kwdefaults__, "progress": stop})
    assert main(["sweep", str(tmp_path / "sweep.yaml"), "--out", str(tmp_path / "out"), "--ray"]) == 130
    assert "--resume --ray" in capsys.readouterr().err and not children()
