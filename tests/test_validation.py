"""`tonnage validate`: every published count from the row's own hyper-parameters, and rows that cannot be predicted say why."""

import json
from pathlib import Path

import msgspec
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tonnage.cli import main
from tonnage.documents.schema import ValidationDocument
from tonnage.kernel.errors import InvalidInput, TonnageError, UnknownName
from tonnage.validation import of_kind, read, validate
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
    lines = validate(read([str(ROWS / "allocator_reserve.yaml")]))["rows"]
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
        ("- !!python/object/apply:os.system ['true']", "row 1: YAML tags are not read"),
    ],
)  # fmt: skip
def test_files_of_another_form_are_refused_with_file_and_row(tmp_path, text, message):
    path = tmp_path / "rows.yaml"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=message) as error:
        read([str(path)])
    assert "rows.yaml" in str(error.value)


def row(**changes: object) -> dict:
    """A row of a count that is recounted exactly."""
    sizes = {"hidden": 64, "layers": 2, "heads": 4, "vocab": 100}
    made = {
        "id": "x",
        "kind": "params",
        "model": {"hparams": sizes},
        "measured": {"metric": "parameters", "value": 1},
        "source": "a",
    }
    return made | changes


def written(tmp_path: Path, rows: object) -> str:
    path = tmp_path / "rows.yaml"
    path.write_text(yaml.safe_dump(rows), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), -float("inf"), -1, -0.5, 10**400, "7 GB", "oom", [1], None, {"a": 1}]
)
def test_a_value_that_no_measurement_has_is_refused_with_file_row_and_field(tmp_path: Path, value: object):
    for field, changes in (("measured", {"measured": {"metric": "m", "value": value}}),
                           ("also", {"also": [{"metric": "m", "value": 1}, {"metric": "m", "value": [value]}]})):  # fmt: skip
        with pytest.raises(InvalidInput, match=f"rows.yaml, row 'x'.*{field}") as error:
            read([written(tmp_path, [row(**changes)])])
        assert "value" in str(error.value)


@pytest.mark.parametrize("value", [0, 1, 2.5, "OOM"])
def test_a_number_or_oom_is_a_value(tmp_path: Path, value: object):
    assert read([written(tmp_path, [row(measured={"metric": "m", "value": value})])])[0].measured.value == value


def test_a_metric_with_a_figure_for_each_rank_is_as_many_metrics(tmp_path: Path):
    also = [{"metric": "peak", "value": {0: 1.5, "1": 2}, "unit": "MiB"}, {"metric": "time", "value": 3}]
    lines = validate(read([written(tmp_path, [row(also=also)])]))["rows"]
    assert [(line["metric"], line["measured"], line["unit"]) for line in lines[1:]] == [
        ("peak [0]", 1.5, "MiB"), ("peak [1]", 2, "MiB"), ("time", 3, "")]  # fmt: skip


def test_rows_without_a_source_are_summed_up_once(tmp_path: Path):
    for source in ("", "  ", {"value": ""}, {}):
        summary = validate(read([written(tmp_path, [row(source=source), row(id="y", source=source)])]))["summary"]
        assert [(entry["source"], entry["rows"]) for entry in summary] == [("all", 2)]


def test_a_kind_that_no_row_has_is_refused_with_those_that_they_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    rows = read([written(tmp_path, [row(), row(id="y", kind="train_memory")])])
    assert [each.id for each in of_kind(rows, "params")] == ["x"]
    assert len(of_kind(rows, None)) == 2
    with pytest.raises(UnknownName, match=r"no row is of kind 'parms'. These rows are of params, train_memory"):
        of_kind(rows, "parms")
    for option in ("--kind=parms", "--kind="):
        assert main(["validate", rows[0].file, option]) == 64
        assert "params" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([], "holds no rows"),
        ([row(kind="serve_speed")], "none of the 1 rows could be compared: kind 'serve_speed' is not predicted yet"),
        ([row(model={"name": "no-such-model-anywhere"})], "none of the 1 rows could be compared: no model is called"),
        ([row(measured={"metric": "parameters", "value": 0})], "no row has a value to compare with"),
    ],
)
def test_a_file_of_which_nothing_can_be_compared_fails_with_the_reason(tmp_path: Path, capsys, rows: list, says: str):
    path = written(tmp_path, rows)
    assert main(["validate", path]) == 64
    assert says in capsys.readouterr().err
    assert main(["validate", path, "--json"]) == 64
    printed = capsys.readouterr()
    assert says in printed.err
    document = json.loads(printed.out)
    assert "error" in document or len(document["rows"]) == len(rows)


BOMB = ", ".join(["*a{}"] * 10)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- &a0 [x]\n" + "".join(f"- &a{i} [{BOMB.replace('{}', str(i - 1))}]\n" for i in range(1, 40)), "more than 1,000,000 values"),
        ("- &a0 {k: 1}\n" + "".join(f"- &a{i} {{<<: [{BOMB.replace('{}', str(i - 1))}]}}\n" for i in range(1, 40)), "more than 1,000,000 values"),
        ("- {id: x, config: &a {b: *a}}", "row 1: 'a' refers to itself"),
        ("- id: x\n  config: " + "[" * 100_000, "nested more than 32 deep"),
        ("- " * 100_000, "nested more than 32 deep"),
        ("- 3", "row 1 must be a mapping"), ("- [1, 2]", "row 1 must be a mapping"), ("- {id: a}\n- null", "row 'a'"), ("- null", "row 1 must be a mapping"),
        ("- {id: '', kind: params, measured: {metric: m, value: 1}}", "id and kind must not be empty"),
        ("- {id: x, kind: params, completeness: fulll, measured: {metric: m, value: 1}}", "must begin with full, partial or indicative. Got 'fulll'"),
        ("- {id: x, kind: params, measured: {metric: m, value: " + "9" * 5000 + "}}", "must be a finite number"),
        ("a: 1\n---\nb: 2", "several YAML documents"),
    ],
)  # fmt: skip
def test_a_file_that_would_unfold_nest_or_hold_no_rows_is_refused_quickly(tmp_path: Path, text: str, says: str):
    path = tmp_path / "rows.yaml"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=says) as error:
        read([str(path)])
    assert "rows.yaml" in str(error.value) and len(str(error.value)) < 800


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
HPARAMS = st.dictionaries(
    st.sampled_from([
        "hidden", "layers", "heads", "kv_heads", "head_dim", "intermediate", "vocab", "context", "experts", "mlp", "norm", "bias", "pos_emb",
        "qk_norm", "norms", "sliding_window", "kv_lora_rank", "state_size", "hidden_size", "num_hidden_layers", "hybrid_override_pattern",
    ]),
    st.sampled_from([64, 2, 4, 100, "learned", "learned (2048+" + "9" * 5000 + " offset)", "full", True]) | VALUES, max_size=8,
)  # fmt: skip
ROW = st.fixed_dictionaries(
    {"id": st.sampled_from("abc"), "kind": st.sampled_from(["params", "train_memory", "x"]), "measured": st.fixed_dictionaries({"metric": st.text(max_size=4), "value": st.floats(0, 1e12) | VALUES})},
    optional={"model": st.fixed_dictionaries({}, optional={"hparams": HPARAMS | VALUES, "ref": st.sampled_from("abc") | VALUES, "name": VALUES, "id": VALUES}) | VALUES,
              "source": VALUES, "completeness": st.sampled_from(["full", "partial: x"]) | VALUES, "also": st.lists(VALUES, max_size=2), "note": VALUES},
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ROW | VALUES, max_size=3) | VALUES)
def test_any_rows_give_a_document_or_a_clear_error(tmp_path: Path, rows: object):
    try:
        document = validate(read([written(tmp_path, rows)]))
    except TonnageError as error:
        assert "rows.yaml" in str(error)
    else:
        msgspec.convert(json.loads(msgspec.json.encode(document)), ValidationDocument)


def test_a_folder_is_its_files_of_rows(tmp_path):
    with pytest.raises(InvalidInput, match=r"holds no \*\.yaml"):
        read([str(tmp_path)])
    path = written(tmp_path, [row()])
    (tmp_path / "README.md").write_text("no rows")
    assert read([str(tmp_path)]) == read([path])
