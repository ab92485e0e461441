"""`tonnage validate`: every published count from the row's own hyper-parameters, and rows that cannot be predicted say why."""

import json
from pathlib import Path

import pytest

from tonnage.errors import InvalidInput
from tonnage.validation import read, validate
from tonnage.validation._hparams import config

ROWS = Path(__file__).parents[1] / "validation"
PARAMS = list(read([str(ROWS / "params.yaml")]))


@pytest.mark.parametrize("row", [row for row in PARAMS if row.completeness_class == "full"], ids=lambda row: row.id)
def test_a_published_count_is_recounted_exactly(row):
    (line,) = validate([row])["rows"]
    assert line["predicted"] == line["measured"], line["skipped"]
    assert line["relative_error"] == 0


def test_partial_rows_are_within_their_rounding_or_say_why_not():
    lines = {
        line["id"]: line for line in validate([row for row in PARAMS if row.completeness_class == "partial"])["rows"]
    }
    for name in ("params-bloom-176b", "params-gpt-3-175b", "params-kimi-k2"):
        assert abs(lines[name]["relative_error"]) < 3e-5
    # the published total holds a vision tower that the row's hyper-parameters do not describe
    assert lines["params-llama-4-scout"]["relative_error"] == pytest.approx(-871_932_416 / 108_641_793_536)
    assert "no model is called" in lines["params-hymba-1.5b"]["skipped"]


def test_the_summary_counts_rows_coverage_and_error_by_source():
    document = validate(PARAMS)
    whole = next(entry for entry in document["summary"] if entry["completeness"] == "full" and entry["source"] == "all")
    assert whole["rows"] == whole["covered"] == 62
    assert whole["mean_abs"] == whole["median_abs"] == whole["p90_abs"] == whole["bias"] == 0
    by_source = [entry for entry in document["summary"] if entry["source"] != "all"]
    assert sum(entry["rows"] for entry in by_source) == len(PARAMS)


def test_a_row_without_hyper_parameters_takes_those_of_the_row_that_it_names_then_the_catalogues(tmp_path):
    path = tmp_path / "rows.yaml"
    path.write_text(json.dumps([
        {"id": "a", "kind": "params", "model": {"ref": "mine"}, "measured": {"metric": "parameters", "value": 1}},
        {"id": "params-mine", "kind": "params", "model": {"id": "mine", "hparams": {"hidden": 64, "layers": 2, "heads": 4, "vocab": 100}},
         "measured": {"metric": "parameters", "value": 1}},
        {"id": "b", "kind": "params", "model": {"name": "meta-llama/Llama-3.1-8B"}, "measured": {"metric": "parameters", "value": 1}},
    ]))  # fmt: skip
    lines = {line["id"]: line["predicted"] for line in validate(read([str(path)]))["rows"]}
    assert lines["a"] == lines["params-mine"] > 0
    assert lines["b"] == 8_030_261_248


def test_kinds_that_are_not_predicted_yet_are_skipped_with_the_reason():
    lines = validate(read([str(ROWS / "vllm_memory_h100.yaml")]))["rows"]
    assert lines and all("not predicted yet" in line["skipped"] for line in lines)


def test_learned_positions_without_a_length_are_refused_not_guessed():
    with pytest.raises(InvalidInput, match="does not say how many"):
        config({"hidden": 64, "pos_emb": "learned"}, "somewhere")


def test_opts_offset_rows_count_unless_the_source_leaves_them_out():
    hparams = {"hidden": 64, "context": 2048, "pos_emb": "learned (2048+2 offset)"}
    assert config(hparams, "the checkpoint")["position_offset"] == 2
    assert "position_offset" not in config(hparams, "keras-team/keras-hub presets")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not YAML"), ("a: b", "must hold a list"), ("- 3", "row 1"), ("- {id: x}", "row 'x'"), ("- {id: x, kind: params, measured: {value: 1}}", "metric"),
        ("- &a [*a]", "row 1"), ("- {id: x, kind: params, measured: {metric: m, value: 1}}\n- {id: x, kind: params, measured: {metric: m, value: 1}}", "unique"),
        ("- !!python/object/apply:os.system ['true']", "not YAML"),
    ],
)  # fmt: skip
def test_files_of_another_form_are_refused_with_file_and_row(tmp_path, text, message):
    path = tmp_path / "rows.yaml"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=message) as error:
        read([str(path)])
    assert "rows.yaml" in str(error.value)
