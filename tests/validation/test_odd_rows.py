"""Nothing that a row of `tonnage validate` contains ends the run: a row that cannot be predicted is skipped with its
reason.
"""

import json
import math
import warnings
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import source_rows
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from odd_rows import OF_SOURCES, ROWS, SOURCES, odd_rows, real_rows

from tonnage.cli import main
from tonnage.documents.document import builtins
from tonnage.documents.schema import ValidationDocument
from tonnage.kernel.encoding import encode
from tonnage.validation import FAILED, Malformed, read, validate

KINDS = ("params", "train_memory", "train_speed", "infer_memory", "infer_speed", "collective")
GOOD = {"id": "good", "kind": "params", "model": {"name": "gpt2"}, "measured": {"metric": "parameters", "value": 1}}
OWN = {
    "id": "good",
    "verb": "models",
    "question": {"model": "gpt2"},
    "measured": {"quantity": "parameters", "value": 1, "unit": "count"},
}


@pytest.fixture(scope="module")
def rows() -> Iterator[dict]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield real_rows(ROWS)


@pytest.fixture(scope="module")
def sources() -> Iterator[dict]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield real_rows(SOURCES)


def validated(folder: Path, listed: list) -> dict:
    """The document of rows of sources in a file, which a reader takes and `validate` compares."""
    path = folder / "rows.yaml"
    path.write_text(yaml.safe_dump(listed, allow_unicode=True), encoding="utf-8")
    malformed: list = []
    found = source_rows.read([str(path)], malformed)
    known = source_rows.references_of(found)
    return checked(builtins(validate([source_rows.own(row, known) for row in found], malformed)), listed)


def compared(folder: Path, listed: list) -> dict:
    """The document of rows in our own form in a file."""
    path = folder / "rows.yaml"
    path.write_text(yaml.safe_dump(listed, allow_unicode=True), encoding="utf-8")
    malformed: list[Malformed] = []
    return checked(builtins(validate(read([str(path)], malformed), malformed)), listed)


def checked(document: dict, listed: list) -> dict:
    """The document: its form, no fault of ours, no number that is none."""
    msgspec.convert(json.loads(encode(document)), ValidationDocument)
    assert len({line["id"] for line in document["rows"] if line["main"]}) <= len(listed)
    for line in document["rows"]:
        assert not (line["skipped"] or "").startswith(FAILED), line
        assert line["skipped"] is not None or line["predicted"] is not None or line["agrees"] is not None, line
        assert line["predicted"] is None or (math.isfinite(line["predicted"]) and line["predicted"] >= 0), line
    return document


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32))
@pytest.mark.parametrize("kind", KINDS)
def test_odd_rows_of_every_kind_are_predicted_or_skipped_with_their_reason(tmp_path, rows, kind, seed):
    compared(tmp_path, odd_rows(kind, rows[kind], 5, seed))


def test_a_link_has_one_way_or_two(tmp_path, rows):
    of_a_link = next(row for row in rows["collective"] if "ways" in row["question"])
    for ways in (-1, 0, 3, "two", None):
        odd = {**of_a_link, "question": {**of_a_link["question"], "ways": ways}}
        (line,) = [line for line in compared(tmp_path, [odd])["rows"] if line["main"]]
        assert line["skipped"].startswith("question.ways must be 1 or 2."), line


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32))
@pytest.mark.parametrize("kind", KINDS)
def test_odd_rows_of_sources_are_read_or_skipped_with_their_reason(tmp_path, sources, kind, seed):
    validated(tmp_path, odd_rows(kind, sources[kind], 5, seed, OF_SOURCES))


@pytest.mark.soak
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32))
@pytest.mark.parametrize("kind", KINDS)
def test_thousands_of_odd_rows_of_every_kind_are_predicted_or_skipped_with_their_reason(tmp_path, rows, kind, seed):
    compared(tmp_path, odd_rows(kind, rows[kind], 50, seed))


@pytest.mark.soak
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32))
@pytest.mark.parametrize("kind", KINDS)
def test_thousands_of_odd_rows_of_sources_are_read_or_skipped_with_their_reason(tmp_path, sources, kind, seed):
    validated(tmp_path, odd_rows(kind, sources[kind], 50, seed, OF_SOURCES))


def speed(**config: object) -> dict:
    given_ = {"gpu": "A100 80GB", "gpus": 8, "micro_batch": 1, "seq_len": 2048, "framework": "DeepSpeed"}
    return {
        "id": "odd",
        "kind": "train_speed",
        "model": {"name": "llama-2-7b"},
        "config": {**given_, **config},
        "measured": {"metric": "iteration time", "value": 1, "unit": "s"},
        "source": "DeepSpeed",
    }


def served(kind: str, **config: object) -> dict:
    given_ = {"gpu": "A100-SXM4-40GB", "gpus": 1, "batch": 1, "dtype": "bf16-true", "framework": "LitGPT 8641822"}
    return {
        "id": "odd",
        "kind": kind,
        "model": {"name": "phi-1.5"},
        "config": {**given_, **config},
        "measured": {"metric": "torch.cuda.max_memory_allocated", "value": 2.86, "unit": "GB (1e9)"},
        "source": "Lightning-AI/litgpt",
    }


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (3, "must be a mapping"),
        ({"id": "odd"}, "kind"),
        (GOOD, "ids must be unique"),
        ({**GOOD, "id": "odd", "measured": {"metric": "parameters", "value": -1}}, "finite number"),
        ({**GOOD, "id": "odd", "config": {"gpus": 10**40}}, "config.gpus must be a number of at most 1e"),
        ({**GOOD, "id": "odd", "config": {"gpus": 10**4000}}, "config.gpus must be a number of at most 1e"),
        ({**GOOD, "id": "odd", "config": {"a": [float("nan")]}}, r"config.a[0] must be a number"),
        ({**GOOD, "id": "odd", "model": {"name": "gpt2-" + "9" * 31}}, "more than 30 digits"),
        (served("infer_memory", pp=10**9), "pipeline_parallel_size must be from 1 to the 24 layers"),
        (served("infer_memory", total_memory_gib=-1), "must be above 0"),
        (served("infer_speed", framework="no such engine"), ""),
    ],
    ids=range(11),
)
def test_a_row_that_cannot_be_read_is_listed_with_its_reason_and_the_others_are_compared(tmp_path, row, reason):
    document = validated(tmp_path, [GOOD, row])
    by_place = [line for line in document["rows"] if line["main"]]
    assert len(by_place) == 2 and by_place[0]["predicted"] and reason in by_place[1]["skipped"]


def test_the_time_of_an_optimizer_on_the_host_is_skipped_where_nobody_said_how_fast_it_updates(tmp_path):
    """It was a TypeError of formulas/host.py."""
    document = validated(tmp_path, [GOOD, speed(zero_stage=2, offload_optimizer="cpu")])
    assert "host_update_bandwidth" in document["rows"][1]["skipped"]


def test_the_command_prints_all_rows_and_ends_well_beside_malformed_ones(tmp_path, capsys):
    path = tmp_path / "rows.yaml"
    path.write_text(yaml.safe_dump([OWN, 3, {"id": "odd"}]))
    assert main(["validate", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "row 2" in printed and "odd" in printed and "must be a mapping" in printed
    path.write_text("- 3\n")
    assert main(["validate", str(path)]) == 64
    assert "none of the 1 rows could be compared" in capsys.readouterr().err
