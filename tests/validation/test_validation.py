"""`tonnage validate`: every published count from the row's own hyper-parameters, files from anyone, and rows that
cannot be predicted say why.
"""

import json
from pathlib import Path

import msgspec
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from source_rows import read as read_sources
from source_rows import validate as validate_sources

import tonnage
from every_row import every_row
from rows.hparams import config
from tonnage.cli import main
from tonnage.documents.document import builtins
from tonnage.documents.schema import ValidationDocument
from tonnage.kernel.encoding import encode
from tonnage.kernel.errors import InvalidInput, TonnageError, UnknownName
from tonnage.validation import of_kind, read, row_of, validate

ROWS = Path(__file__).parents[2] / "validation"
PARAMS = list(read([str(ROWS / "params.yaml")]))


@every_row("row", [row for row in PARAMS if row.completeness_class == "full"], ids=lambda row: row.id, at_least=60)
def test_a_published_count_is_recounted_exactly(row):
    (line,) = builtins(validate([row]))["rows"]
    assert line["predicted"] == line["measured"], line["skipped"]
    assert line["relative_error"] == 0


def test_partial_rows_are_within_their_rounding_or_say_why_not():
    lines = {
        line["id"]: line
        for line in builtins(validate([row for row in PARAMS if row.completeness_class == "partial"]))["rows"]
    }
    for name in ("params-bloom-176b", "params-gpt-3-175b", "params-kimi-k2"):
        assert abs(lines[name]["relative_error"]) < 3e-5
    # the published total holds a vision tower that the row's hyper-parameters do not describe
    assert lines["params-llama-4-scout"]["relative_error"] == pytest.approx(-871_932_416 / 108_641_793_536)
    assert "no model is called" in lines["params-hymba-1.5b"]["skipped"]


def test_the_summary_counts_rows_coverage_and_error_by_source():
    document = builtins(validate(PARAMS))
    whole = next(entry for entry in document["summary"] if entry["completeness"] == "full" and entry["source"] == "all")
    assert whole["rows"] == whole["covered"] == 62
    assert whole["mean_abs"] == whole["median_abs"] == whole["p90_abs"] == whole["bias"] == 0
    by_source = [entry for entry in document["summary"] if entry["source"] != "all"]
    assert sum(entry["rows"] for entry in by_source) == len(PARAMS)


def test_a_row_without_hyper_parameters_takes_those_of_the_row_that_it_names_then_the_catalogues(tmp_path):
    path = tmp_path / "rows.yaml"
    path.write_text(
        json.dumps(
            [
                {
                    "id": "a",
                    "kind": "params",
                    "model": {"ref": "mine"},
                    "measured": {"metric": "parameters", "value": 1},
                },
                {
                    "id": "params-mine",
                    "kind": "params",
                    "model": {"id": "mine", "hparams": {"hidden": 64, "layers": 2, "heads": 4, "vocab": 100}},
                    "measured": {"metric": "parameters", "value": 1},
                },
                {
                    "id": "b",
                    "kind": "params",
                    "model": {"name": "meta-llama/Llama-3.1-8B"},
                    "measured": {"metric": "parameters", "value": 1},
                },
            ]
        )
    )
    lines = {line["id"]: line["predicted"] for line in builtins(validate_sources(read_sources([str(path)])))["rows"]}
    assert lines["a"] == lines["params-mine"] > 0
    assert lines["b"] == 8_030_261_248


def test_kinds_that_are_not_predicted_yet_are_skipped_with_the_reason():
    lines = builtins(validate(read([str(ROWS / "allocator_reserve.yaml")])))["rows"]
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
        ("{", "not YAML"),
        ("a: b", "must hold a list"),
        ("- 3", "row 1"),
        ("- {id: x}", "row 'x'"),
        ("- {id: x, verb: models, measured: {unit: m}}", "value"),
        ("- &a [*a]", "row 1"),
        (
            (
                "- {id: x, skipped: y, measured: {metric: m, value: 1}}\n- {id: x, skipped: y, measured: "
                "{metric: m, value: 1}}"
            ),
            "unique",
        ),
        ("- !!python/object/apply:os.system ['true']", "row 1: YAML tags are not read"),
    ],
)
def test_files_of_another_form_are_refused_with_file_and_row(tmp_path, text, message):
    path = tmp_path / "rows.yaml"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=message) as error:
        read([str(path)])
    assert "rows.yaml" in str(error.value)


SIZES = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 100,
    "intermediate_size": 128,
}


def row(**changes: object) -> dict:
    """A row of a count that is recounted."""
    made = {
        "id": "x",
        "kind": "params",
        "verb": "models",
        "question": {"model": {"name": "mine", "config": SIZES}},
        "measured": {"quantity": "parameters", "value": 1, "unit": "count"},
        "source": "a",
    }
    return made | changes


def trained(**question: object) -> dict:
    """A row of a run of training."""
    asked = {"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB", "runtime": "fsdp2", **question}
    measured = {"quantity": "reserved_memory", "value": 40, "unit": "GiB"}
    return row(kind="train_memory", verb="train", question=asked, measured=measured)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (row(mesured=1), "'mesured' is no field of a row. Did you mean 'measured'"),
        (row(verb="trian"), "verb 'trian' is not known for a row. Did you mean 'train'"),
        (row(verb=""), "verb is missing"),
        (row(config={}), "has `config`, as rows in the words of their source have: `python scripts/rows FILE`"),
        (
            row(measured={"quantity": "parameter", "value": 1, "unit": "count"}),
            "measured.quantity 'parameter' is not known for models. Did you mean 'parameters'",
        ),
        (
            row(measured={"quantity": "parameters", "value": 1, "unit": "GB"}),
            "measured.unit 'GB' is not known for parameters. Known: count",
        ),
        (
            row(measured={"quantity": "parameters", "valeu": 1, "unit": "count"}),
            "measured: 'valeu' is no field of a row. Did you mean 'value'",
        ),
        (
            row(also=[{"quantity": "weights", "value": 1, "unit": "GiB"}]),
            r"also\[0\].quantity 'weights' is not known for models",
        ),
        (
            trained(sequnce_length=4096),
            "question 'sequnce_length' is not known for train. Did you mean 'sequence_length'",
        ),
        (row(completeness="fulll"), "completeness must begin with full, partial or indicative. Got 'fulll'"),
        (row(id=""), "id must have from 1 to 200 characters"),
    ],
    ids=range(11),
)
def test_a_field_that_is_wrong_is_named_with_its_value_and_the_nearest_that_is_right(tmp_path, given, message):
    with pytest.raises(InvalidInput, match=message) as error:
        read([written(tmp_path, [given])])
    assert "rows.yaml, row" in str(error.value)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (trained(on="8xH1000"), "no accelerator"),
        (trained(model="llama-3.1-8c"), "llama-3.1-8b"),
        (trained(sequence_length="long"), "question: Expected `int | null`, got `str` - at `$.sequence_length`"),
        (trained(runtime="fsdp3"), "fsdp2"),
        (trained(on={"accelerator": "H100-SXM-80GB", "gpus": 8}), "question.on has no 'gpus'"),
        (
            trained(on={"accelerator": "H100-SXM-80GB", "nodes": 0}),
            "question.on.nodes must be a whole number from 1 on. Got 0",
        ),
        (trained(model={"config": 3}), "question.model.config must map fields"),
        (trained(unchecked={"no_field": 1}), "question.unchecked must map fields of a plan"),
    ],
    ids=range(8),
)
def test_a_question_that_cannot_be_answered_says_why_and_the_others_are_compared(tmp_path, given, reason):
    lines = builtins(validate(read([written(tmp_path, [row(id="good"), given])])))["rows"]
    assert lines[0]["predicted"] and reason in lines[1]["skipped"], lines[1]["skipped"]


def test_a_row_of_ones_own_run_is_the_ordinary_answer(tmp_path):
    """What `tonnage train` says of memory and of a step is what the row is compared with."""
    given = trained(sequence_length=4096, micro_batch_size=1, recompute="full")
    given["also"] = [
        {"quantity": "process_memory", "value": 45, "unit": "GiB"},
        {"quantity": "step_time", "value": 1.5, "unit": "s"},
        {"quantity": "tokens_per_second", "value": 3000, "unit": "tokens/s/GPU"},
    ]
    del given["kind"]
    (made,) = read([written(tmp_path, [given])])
    _, process, step, rate = builtins(validate([made]))["rows"]
    answer = tonnage.train(
        "llama-3.1-8b", "8xH100-SXM-80GB", runtime="fsdp2", sequence_length=4096, micro_batch_size=1, recompute="full"
    )
    assert made.kind == "train_memory"
    assert process["predicted"] == pytest.approx(answer.memory.value / 2**30)
    assert step["predicted"] == pytest.approx(answer.step_time.value)
    assert rate["predicted"] == pytest.approx(4096 / answer.step_time.value)


def test_a_bare_on_in_yaml_is_the_name_of_the_input_and_not_true(tmp_path):
    path = tmp_path / "rows.yaml"
    path.write_text(
        "- id: x\n  verb: train\n  question: {model: llama-3.1-8b, on: 8xh100-sxm-80gb}\n"
        "  measured: {quantity: reserved_memory, value: 1, unit: GiB}\n"
    )
    assert read([str(path)])[0].question["on"] == "8xh100-sxm-80gb"


def test_what_is_implied_or_guessed_is_in_the_notes_of_the_line(tmp_path):
    given = trained() | {
        "implied": {"runtime": "its README"},
        "guessed": {"layout": "not said"},
        "remarks": ["on a shared network"],
    }
    (line,) = builtins(validate(read([written(tmp_path, [given])])))["rows"]
    assert line["notes"] == ["layout: guessed: not said", "runtime fsdp2: its README", "on a shared network"]


def written(tmp_path: Path, rows: object) -> str:
    path = tmp_path / "rows.yaml"
    path.write_text(yaml.safe_dump(rows), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), -float("inf"), -1, -0.5, 10**400, "7 GB", "oom", [1], None, {"a": 1}]
)
def test_a_value_that_no_measurement_has_is_refused_with_file_row_and_field(tmp_path: Path, value: object):
    for field, changes in (
        ("measured", {"measured": {"quantity": "parameters", "unit": "count", "value": value}}),
        (
            "also",
            {"also": [{"metric": "m", "value": 1, "skipped": "s"}, {"metric": "m", "value": [value], "skipped": "s"}]},
        ),
    ):
        with pytest.raises(InvalidInput, match=f"rows.yaml, row 'x'.*{field}") as error:
            read([written(tmp_path, [row(**changes)])])
        assert "value" in str(error.value)


@pytest.mark.parametrize("value", [0, 1, 2.5, "OOM"])
def test_a_number_or_oom_is_a_value(tmp_path: Path, value: object):
    assert (
        read([written(tmp_path, [row(measured={"quantity": "parameters", "unit": "count", "value": value})])])[
            0
        ].measured.value
        == value
    )


def test_a_metric_of_a_source_with_a_figure_for_each_rank_is_as_many_metrics(tmp_path: Path):
    also = [{"metric": "peak", "value": {0: 1.5, "1": 2}, "unit": "MiB"}, {"metric": "time", "value": 3}]
    given = {
        "id": "x",
        "kind": "params",
        "model": {"name": "gpt2"},
        "measured": {"metric": "m", "value": 1},
        "also": also,
    }
    lines = builtins(validate_sources(read_sources([written(tmp_path, [given])])))["rows"]
    assert [(line["metric"], line["measured"], line["unit"]) for line in lines[1:]] == [
        ("peak [0]", 1.5, "MiB"),
        ("peak [1]", 2, "MiB"),
        ("time", 3, ""),
    ]


def test_rows_without_a_source_are_summed_up_once(tmp_path: Path):
    for source in ("",):
        summary = builtins(validate(read([written(tmp_path, [row(source=source), row(id="y", source=source)])])))[
            "summary"
        ]
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
        ([row(skipped="nothing predicts it")], "none of the 1 rows could be compared: nothing predicts it"),
        (
            [row(question={"model": "no-such-model-anywhere"})],
            "none of the 1 rows could be compared: no model is called",
        ),
        ([row(measured={"quantity": "parameters", "value": 0, "unit": "count"})], "no row has a value to compare with"),
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
        (
            "- &a0 [x]\n" + "".join(f"- &a{i} [{BOMB.replace('{}', str(i - 1))}]\n" for i in range(1, 40)),
            "more than 1,000,000 values",
        ),
        (
            "- &a0 {k: 1}\n" + "".join(f"- &a{i} {{<<: [{BOMB.replace('{}', str(i - 1))}]}}\n" for i in range(1, 40)),
            "more than 1,000,000 values",
        ),
        ("- {id: x, question: &a {b: *a}}", "row 1: 'a' refers to itself"),
        ("- id: x\n  question: " + "[" * 500, "nested more than 32 deep"),
        # libyaml 0.2.6 has a limit of its own, of 1,000
        ("- id: x\n  question: " + "[" * 100_000, "nested more than 32 deep|exceeded maximum nesting depth"),
        ("- " * 100_000, "nested more than 32 deep"),
        ("- 3", "row 1 must be a mapping"),
        ("- [1, 2]", "row 1 must be a mapping"),
        ("- {id: a}\n- null", "row 'a'"),
        ("- null", "row 1 must be a mapping"),
        ("- {id: '', skipped: y, measured: {metric: m, value: 1}}", "id must have from 1 to 200 characters"),
        (
            "- {id: x, skipped: y, completeness: fulll, measured: {metric: m, value: 1}}",
            "must begin with full, partial or indicative. Got 'fulll'",
        ),
        ("- {id: x, skipped: y, measured: {metric: m, value: " + "9" * 5000 + "}}", "must be a finite number"),
        ("a: 1\n---\nb: 2", "several YAML documents"),
    ],
)
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
MODELS = st.fixed_dictionaries(
    {},
    optional={
        "like": st.sampled_from(["gpt2", "a"]) | VALUES,
        "name": VALUES,
        "config": st.dictionaries(st.sampled_from([*SIZES, "head_dim"]), VALUES, max_size=8) | VALUES,
        "dtype": VALUES,
    },
)
QUESTION = st.fixed_dictionaries(
    {},
    optional={
        "model": MODELS | st.sampled_from(["gpt2"]) | VALUES,
        "on": st.sampled_from(["h100"])
        | st.fixed_dictionaries(
            {}, optional={"accelerator": st.sampled_from(["h100"]) | VALUES, "nodes": VALUES, "node": VALUES}
        )
        | VALUES,
    },
)
MEASURED = st.fixed_dictionaries(
    {"value": st.floats(0, 1e12) | VALUES},
    optional={
        "quantity": st.sampled_from(["parameters", "reserved_memory", "step_time"]) | VALUES,
        "unit": st.sampled_from(["count", "GiB", "s"]) | VALUES,
        "metric": st.text(max_size=4),
    },
)
ROW = st.fixed_dictionaries(
    {
        "id": st.sampled_from("abc"),
        "verb": st.sampled_from(["models", "train", "x"]),
        "question": QUESTION,
        "measured": MEASURED,
    },
    optional={
        "source": VALUES,
        "completeness": st.sampled_from(["full", "partial: x"]) | VALUES,
        "also": st.lists(MEASURED | VALUES, max_size=2),
        "note": VALUES,
    },
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ROW | VALUES, max_size=3) | VALUES)
def test_any_rows_give_a_document_or_a_clear_error(tmp_path: Path, rows: object):
    try:
        document = builtins(validate(read([written(tmp_path, rows)])))
    except TonnageError as error:
        assert "rows.yaml" in str(error)
    else:
        msgspec.convert(json.loads(encode(document)), ValidationDocument)


def test_a_folder_is_its_files_of_rows(tmp_path):
    with pytest.raises(InvalidInput, match=r"holds no \*\.yaml"):
        read([str(tmp_path)])
    path = written(tmp_path, [row()])
    (tmp_path / "README.md").write_text("no rows")
    assert read([str(tmp_path)]) == read([path])


def test_rows_with_inputs_from_what_was_measured_are_listed_and_summed_up_apart():
    asked = {"verb": "models", "question": {"model": "llama-3.1-8b"}, "source": "a log", "completeness": "full"}
    measured = {"quantity": "parameters", "value": 8e9, "unit": "count"}
    plain = row_of(asked | {"id": "plain", "measured": measured})
    taken = row_of(asked | {"id": "taken", "measured": measured, "from_measured": {"model": "it fits the figure"}})
    document = builtins(validate([plain, taken]))
    assert [line["completeness"] for line in document["rows"]] == ["full", "full"]
    of_all = [group for group in document["summary"] if group["source"] == "all"]
    assert {(group["completeness"], group["rows"]) for group in of_all} == {("full", 1), ("indicative", 1)}
