"""Memory snapshots of PyTorch beside the estimate: peaks of totals, and parts where stack frames tell them."""

import json
import os
import pickle
import subprocess
import sys

import pytest

import tonnage
from tonnage.cli import main
from tonnage.interchange.logs import figures_of
from tracing.foreign.files import (
    BASE,
    ENGINE,
    FORWARD,
    LOAD,
    STEP,
    ZERO,
    Trace,
    as_json,
    as_pickle,
    block,
    segment,
    snapshot,
)

TRAIN = ("train", "llama-3.2-1b", "--on", "h100", "--seq", "2048")
GIB = 2**30
PARAMETERS = 1_235_814_400  # of llama-3.2-1b, its embedding tied
WEIGHTS, GRADIENTS, OPTIMIZER, ACTIVATIONS = 4 * PARAMETERS, 4 * PARAMETERS, 8 * PARAMETERS, 6 * GIB
FIRST, SECOND, THIRD, FOURTH = (BASE + number * 16 * GIB for number in range(4))


def one_step():
    """A step of mixed precision with AdamW, as PyTorch records it: the states of the optimizer come last."""
    trace = (
        Trace()
        .add("segment_alloc", FIRST, 64 * GIB)
        .alloc(FIRST, WEIGHTS, LOAD)
        .alloc(SECOND, ACTIVATIONS, FORWARD)
        .alloc(THIRD, GRADIENTS, ENGINE)
        .free(SECOND, ACTIVATIONS, ENGINE)
        .alloc(FOURTH, OPTIMIZER, STEP)
        .free(THIRD, GRADIENTS, ZERO)
    )
    return snapshot(trace, [segment(FIRST, [block(FIRST, WEIGHTS), block(FOURTH, OPTIMIZER)])])


def asked(capsys, *words):
    status = main(["reconcile", *map(str, words)])
    out = capsys.readouterr()
    return status, out.out, out.err


def found(capsys, file):
    status, out, _ = asked(capsys, file, "--", *TRAIN, "--json")
    assert status == 0
    return {one["quantity"] or one["metric"]: one for one in json.loads(out)["figures"]}


def test_totals_and_parts_of_a_snapshot_stand_beside_the_estimate(capsys, tmp_path):
    figures = found(capsys, as_pickle(tmp_path / "snapshot.pickle", one_step()))
    sizes = {name: one["measured"] for name, one in figures.items()}
    assert sizes == pytest.approx(
        {
            "allocated_memory": (WEIGHTS + GRADIENTS + OPTIMIZER) / GIB,
            "reserved_memory": 64,
            "weights_memory": WEIGHTS / GIB,
            "gradient_memory": GRADIENTS / GIB,
            "optimizer_memory": OPTIMIZER / GIB,
            "forward_memory": 6,
        },
        abs=1e-3,
    )
    for part in ("weights_memory", "gradient_memory", "optimizer_memory"):
        assert figures[part]["relative_error"] == pytest.approx(0, abs=1e-3)
    answer = tonnage.train("llama-3.2-1b", on="h100", sequence_length=2048)
    states = sum(figures[part]["predicted"] for part in ("weights_memory", "gradient_memory", "optimizer_memory"))
    assert states * GIB <= answer.memory.value


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_every_protocol_of_pickle_and_json_say_the_same(capsys, tmp_path, protocol):
    pickled = found(capsys, as_pickle(tmp_path / "snapshot.pickle", one_step(), protocol))
    written = found(capsys, as_json(tmp_path / "snapshot.json", one_step()))
    packed = found(capsys, as_json(tmp_path / "snapshot.json.gz", one_step(), packed=True))
    assert pickled == written == packed


def test_pasted_json_of_a_snapshot_is_read_as_a_log():
    assert list(figures_of(json.dumps(one_step()))) == ["PyTorch memory snapshot"]
    assert figures_of('{"segments": 3}') == {}


def test_without_frames_the_totals_stand_alone(capsys, tmp_path):
    trace = Trace().add("segment_alloc", BASE, 8 * GIB).alloc(BASE, 6 * GIB)
    data = snapshot(trace, [segment(BASE, [block(BASE, 6 * GIB), block(BASE + 6 * GIB, 2 * GIB, state="inactive")])])
    assert set(found(capsys, as_pickle(tmp_path / "s.pickle", data))) == {"allocated_memory", "reserved_memory"}


def test_without_a_history_nothing_is_taken_for_a_peak(capsys, tmp_path):
    data = snapshot([], [segment(BASE, [block(BASE, 6 * GIB)])])
    figures = found(capsys, as_pickle(tmp_path / "s.pickle", data))
    assert figures["allocated at the end"]["predicted"] is None
    assert figures["reserved_memory"]["metric"] == "reserved at the end"
    assert any("no actions were recorded" in note for note in figures["allocated at the end"]["notes"])


class Runs:
    def __reduce__(self):
        return os.system, ("true",)


def test_a_pickle_that_carries_code_is_refused_and_not_run(capsys, tmp_path):
    file = tmp_path / "snapshot.pickle"
    file.write_bytes(pickle.dumps({"segments": [], "device_traces": [Runs()]}))
    status, out, err = asked(capsys, file, "--", *TRAIN)
    assert (status, out) == (64, "")
    assert "system" in err


def test_a_snapshot_is_no_measurement_of_a_server(capsys, tmp_path):
    file = as_pickle(tmp_path / "s.pickle", one_step())
    status, _, err = asked(capsys, file, "--", "serve", "llama-3.2-1b", "--on", "h100")
    assert status == 64
    assert "ask the other verb" in err


def test_torch_is_not_imported_for_a_snapshot(tmp_path):
    file = as_pickle(tmp_path / "s.pickle", one_step())
    code = (
        "import sys; from tonnage.interchange.reconcile import file_measurements;"
        f"file_measurements({str(file)!r}); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
