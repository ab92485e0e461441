"""tonnage calibrate, and answers that own runs correct."""

import json
import sqlite3

import pytest

import tonnage
from tonnage.calibration.kept import add, document
from tonnage.cli import main
from tonnage.estimate.site import stored
from tonnage.kernel.errors import InvalidInput, MissingDatum
from tonnage.validation import read, row_of, validate
from web import postgres

QUESTION = ("llama-3.1-8b", "--on", "8xH100-SXM-80GB", "--seq", "4k", "--recompute", "full", "--runtime", "fsdp2")


def asked(**options):
    return tonnage.train(
        "llama-3.1-8b", on="8xH100-SXM-80GB", sequence_length=4096, micro_batch_size=1, recompute="full",
        runtime="fsdp2", advice=False, **options,
    )  # fmt: skip


def test_a_step_takes_as_much_longer_as_own_runs_did_and_says_so(rows):
    add(rows)
    before, after = asked(), asked(calibrated=True)
    ratio = after.step_time.value / before.step_time.value
    assert ratio == pytest.approx(1.25, rel=0.03)
    assert after.step_time.basis == "calibrated"
    part = after.step_time.child("calibration by own runs")
    assert part.basis == "calibrated"
    assert part.value == pytest.approx(ratio)
    assert after.step_time.child("time of a step before calibration").value == pytest.approx(before.step_time.value)
    assert after.run.tokens_per_second.value == pytest.approx(before.run.tokens_per_second.value / ratio)
    assert after.question["calibrated"].value is True
    assert "own runs correct the time of a step by 1.2" in " ".join(after.warnings)
    low, high = after.run.step_time_band
    assert low < after.step_time.value < high


def test_runs_that_correct_nothing_are_said_to(rows):
    add(rows[:3])
    answer = asked(calibrated=True)
    assert "no correction by own runs" in " ".join(answer.warnings)
    assert answer.step_time.value == asked().step_time.value


def test_nothing_is_corrected_that_nobody_asked_for(rows):
    before = asked()
    add(rows)
    assert asked().step_time.value == before.step_time.value
    assert "calibrated" not in asked().question


def test_what_a_step_waits_for_adds_up_to_the_corrected_step(rows):
    add(rows)
    answer = asked(calibrated=True)
    pieces = answer.pieces
    assert sum(work.seconds for work in pieces.work) == pytest.approx(answer.step_time.value, rel=1e-6)


def test_suggestions_are_corrected_like_the_answer(rows):
    add(rows)
    options = {"sequence_length": 32768, "micro_batch_size": 8, "as_is": True}
    before, after = (
        tonnage.train("llama-3.1-8b", on="8xH100-SXM-80GB", calibrated=calibrated, **options)
        for calibrated in (None, True)
    )
    assert after.advice
    factor = after.step_time.value / before.step_time.value
    changes = {str(move.change): move for move in before.advice}
    both = [(changes[str(move.change)], move) for move in after.advice if str(move.change) in changes]
    assert both
    for estimated, corrected in both:
        assert corrected.step_seconds / estimated.step_seconds == pytest.approx(factor, rel=0.1)


def test_memory_is_corrected_by_a_part_of_its_own(rows):
    heavy = []
    for number, row in enumerate(rows):
        estimated = validate([row_of({**row, "measured": {"quantity": "process_memory", "value": 1, "unit": "GiB"}})])
        value = estimated.rows[0].predicted * (1.1 + 0.002 * (-1) ** number)
        heavy.append({**row, "measured": {"quantity": "process_memory", "value": value, "unit": "GiB"}})
    add(heavy)
    before, after = asked(), asked(calibrated=True)
    assert after.needed_bytes / before.needed_bytes == pytest.approx(1.1, rel=0.03)
    part = after.memory.child("calibration by own runs")
    assert part.basis == "calibrated"
    assert sum(child.value for child in after.memory.children) == pytest.approx(after.memory.value)


def test_times_of_serving_are_corrected_and_fit_each_other():
    rows = []
    for number, users in enumerate((1, 2, 4, 8, 16, 32, 64, 128)):
        question = {"model": "llama-3.1-8b", "on": "H100-SXM-80GB", "engine": "vllm", "concurrency": users}
        question |= {"input_tokens": 1000, "output_tokens": 200, "context": 1200}
        one = {"quantity": "tpot", "value": 1, "unit": "s"}, {"quantity": "ttft", "value": 1, "unit": "s"}
        row = {"id": f"served-{number}", "verb": "serve", "question": question, "measured": one[0], "also": [one[1]]}
        row |= {"source": "ours", "date": "2026-11-20", "completeness": "full"}
        tpot, ttft = (line.predicted for line in validate([row_of(row)]).rows)
        wobble = 1 + 0.01 * (-1) ** number
        row["measured"] = {**one[0], "value": tpot * 1.3 * wobble}
        row["also"] = [{**one[1], "value": ttft * 0.8 * wobble}]
        rows.append(row)
    add(rows)
    before, after = (
        tonnage.serve(
            "llama-3.1-8b", on="H100-SXM-80GB", engine="vllm", concurrency=16, input_tokens=1000, output_tokens=200,
            advice=False, calibrated=calibrated,
        )
        for calibrated in (None, True)
    )  # fmt: skip
    serving = after.serving
    assert serving.tpot_seconds.value / before.serving.tpot_seconds.value == pytest.approx(1.3, rel=0.05)
    assert serving.ttft_seconds.value / before.serving.ttft_seconds.value == pytest.approx(0.8, rel=0.1)
    whole = serving.ttft_seconds.value + 199 * serving.tpot_seconds.value
    assert serving.end_to_end_seconds.value == pytest.approx(whole)
    assert serving.tokens_per_second.value == pytest.approx(
        before.serving.tokens_per_second.value * before.serving.end_to_end_seconds.value / whole
    )
    assert serving.tpot_seconds.basis == "calibrated"
    low, high = serving.tpot_band
    assert low < serving.tpot_seconds.value < high


def test_without_runs_the_answer_says_how_to_keep_some():
    with pytest.raises(MissingDatum, match="tonnage reconcile LOG --keep"):
        asked(calibrated=True)


def test_runs_that_another_version_compared_are_compared_again_first(rows, monkeypatch):
    add(rows)
    for module in (stored, tonnage.calibration.kept):
        monkeypatch.setattr(module, "__version__", "99.0")
    with pytest.raises(MissingDatum, match="8 of 8 runs were compared with another version"):
        asked(calibrated=True)
    assert main(["calibrate", "compare"]) == 0
    assert asked(calibrated=True).step_time.basis == "calibrated"


@pytest.mark.parametrize(
    "words",
    [
        ("plan", "llama-3.1-8b", "--on", "h100", "--calibrated"),
        ("plan", "--serve", "llama-3.1-8b", "--on", "h100", "--calibrated"),
        ("max", "context", "llama-3.1-8b", "--on", "h100", "--calibrated"),
    ],
)
def test_a_search_says_that_it_compares_estimates_alone(words, rows, capsys):
    add(rows)
    assert main(list(words)) == 64
    assert "--calibrated is of train, serve and compare" in capsys.readouterr().err


def test_rows_are_added_shown_shared_and_removed(rows_file, tmp_path, capsys, monkeypatch):
    assert main(["calibrate", "add", str(rows_file)]) == 0
    out = capsys.readouterr()
    assert "8 runs kept" in out.err
    assert out.out.startswith("8 runs in ")
    assert "step time" in out.out
    assert main(["train", *QUESTION, "--calibrated"]) in (0, 2)
    capsys.readouterr()
    assert main(["calibrate", "share", str(tmp_path / "shared.yaml")]) == 0
    assert len(read([str(tmp_path / "shared.yaml")])) == 8
    monkeypatch.setenv(stored.PLACE, str(tmp_path / "elsewhere.db"))
    assert main(["calibrate", "add", str(tmp_path / "shared.yaml")]) == 0
    assert main(["calibrate", "remove", "run-0", "run-1"]) == 0
    capsys.readouterr()
    assert main(["calibrate", "show", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [run["id"] for run in shown["runs"]] == [f"run-{number}" for number in range(2, 8)]
    assert shown["quantities"][0]["runs"] == 6


def test_an_id_that_is_not_kept_is_named_with_the_nearest(rows, capsys):
    add(rows)
    assert main(["calibrate", "remove", "run-11"]) == 64
    assert "run-1" in capsys.readouterr().err
    assert len(document().runs) == 8


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("add",), "needs names: files of rows"),
        (("show", "x"), "takes no name"),
        (("share",), "takes one file"),
        (("share", "rows.yaml"), "has no runs to share"),
        (("--minutes", "nan"), "--minutes must be more than 0"),
    ],
)
def test_what_an_action_does_not_take_is_said(words, what, capsys):
    assert main(["calibrate", *words]) == 64
    assert what in capsys.readouterr().err


def test_without_a_gpu_the_measurement_says_what_is_missing(capsys, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["calibrate"]) == 64
    assert "sees none here" in capsys.readouterr().err


def test_rows_that_say_nothing_that_is_corrected_are_refused(rows):
    other = {"quantity": "activation_memory", "value": 3, "unit": "GiB"}
    with pytest.raises(InvalidInput, match="none of the 8 rows says what is corrected"):
        add([{**row, "measured": other} for row in rows])


@pytest.mark.parametrize("text", ["mysql://host/runs", "http://host"])
def test_a_place_of_another_kind_is_refused(text, monkeypatch):
    monkeypatch.setenv(stored.PLACE, text)
    with pytest.raises(InvalidInput, match="TONNAGE_RUNS is a path"):
        stored.kept()


def test_a_file_that_is_no_data_base_is_refused(own_runs):
    own_runs.write_text("not a data base" * 100)
    with pytest.raises(InvalidInput, match="cannot be read or kept"):
        stored.kept()


def test_a_run_that_was_asked_with_corrections_is_compared_with_the_estimate_alone(rows):
    add(rows)
    again = {**rows[0], "id": "again", "question": {**rows[0]["question"], "calibrated": True}}
    (plain,) = (run for run in stored.kept() if run.id == "run-0")
    (corrected,) = add([again])
    assert corrected.compared[0].error == pytest.approx(plain.compared[0].error)


def test_a_run_that_is_damaged_is_named(rows, own_runs):
    add(rows[:1])
    with sqlite3.connect(own_runs) as connection:
        connection.execute("UPDATE tonnage_runs SET compared = 'x'")
    with pytest.raises(InvalidInput, match=r"the run 'run-0' in .* is damaged"):
        stored.kept()


def test_a_password_is_not_shown(monkeypatch):
    monkeypatch.setenv(stored.PLACE, "postgresql://ann:secret@host/runs")
    assert stored.shown_place() == "postgresql://host/runs"


@pytest.mark.skipif(not postgres.PROGRAMS, reason=postgres.WHY_NOT)
def test_a_team_keeps_its_runs_in_postgresql(rows, monkeypatch):
    with postgres.server() as server:
        monkeypatch.setenv(stored.PLACE, server.url)
        add(rows)
        add(rows[:1])
        assert len(stored.kept()) == 8
        assert asked(calibrated=True).step_time.basis == "calibrated"
        stored.remove(["run-0"])
        assert len(stored.kept()) == 7


def test_a_run_of_a_log_is_kept_by_reconcile(capsys):
    log = "tests/interchange/logs/torchtitan.log"
    assert main(["reconcile", "--keep", log, "train", "llama-3.1-8b", "--on", "8xh100", "--seq", "8k"]) == 0
    (run,) = stored.kept()
    assert {one.quantity for one in run.compared} == {"step_time", "training_memory"}
