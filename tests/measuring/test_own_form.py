"""A row of `tonnage measure` is a question of `tonnage train`, with what was measured beside it."""

from tonnage.documents.document import builtins
from tonnage.measure.programs import Training
from tonnage.measure.rows import in_own_form
from tonnage.validation import row_of, validate

ENVIRONMENT = {
    "gpu": "NVIDIA H100 80GB HBM3",
    "gpus": 1,
    "torch": "2.11.0+cu130",
    "allocator": "default",
    "date": "2026-11-23",
}
ALSO = [
    {"metric": "max_memory_allocated", "value": 20e9, "unit": "bytes"},
    {"metric": "peak reserved", "value": {"After forward": 1, "After backward": 2}, "unit": "bytes"},
    {"metric": "process memory, as the driver counts it (NVML or nvidia-smi)", "value": 25e9, "unit": "bytes"},
    {"metric": "step time", "value": 0.4, "unit": "s"},
]


def measured(value: object = 22e9, **changes: object) -> dict:
    """A row as the document of `measure` has it."""
    training = Training(sequence_length=2048, recompute="full")
    return {
        "id": "x",
        "kind": "train_memory",
        "model": {"name": "llama-3.2-1b"},
        "config": {**training.config(), "steps": 2, **ENVIRONMENT},
        "measured": {"metric": "max_memory_reserved", "value": value, "unit": "bytes"},
        "also": ALSO,
        "source": "own measurement",
        "completeness": "full",
    } | changes


def test_every_figure_that_train_answers_is_compared():
    row = row_of(in_own_form(measured()))
    assert row.question["recompute"] == "full" and row.labels["torch"] == "2.11.0+cu130" and row.date == "2026-11-23"
    lines = builtins(validate([row]))["rows"]
    compared = [line["metric"] for line in lines if line["predicted"]]
    assert compared == ["max_memory_reserved", "max_memory_allocated", ALSO[2]["metric"], "step time"], lines
    assert [line["metric"] for line in lines if line["skipped"]] == [
        "peak reserved [After forward]",
        "peak reserved [After backward]",
    ]


def test_changed_sizes_and_a_run_that_ran_out_are_asked_as_they_were():
    given = measured("OOM", model={"name": "llama-3.2-1b", "overrides": {"num_hidden_layers": 4}})
    (line, *_) = builtins(validate([row_of(in_own_form(given))]))["rows"]
    assert line["agrees"] is False and line["predicted"] > 0


def test_a_program_in_a_file_is_no_question():
    row = row_of(in_own_form(measured(config={"program": "a.py:f", **ENVIRONMENT})))
    assert "no question" in row.skipped and row.measured.value == 22e9
