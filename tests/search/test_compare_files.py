"""A comparison for other tools: Parquet that says its types, units and question; and what is said without pyarrow."""

import csv
import json

import pytest

import tonnage
from tonnage.kernel.errors import InvalidInput
from tonnage.render import compare_files

TYPES = {"text": "string", "whole": "int64", "number": "double", "truth": "bool"}


def _made():
    return tonnage.compare(
        "llama-3.1-8b",
        ["h100", "8xrtx-4060-ti", "8xh100"],
        weights=[None, "fp8"],
        tensor_parallel_size=[None, 16],
        enforce_eager=[True, False],
        gpu_memory_utilization=0.9,
        context=8192,
    )


def test_parquet_has_a_row_a_cell_with_types_units_and_nulls(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    made = _made()
    made.to_parquet(tmp_path / "cells.parquet")
    table = parquet.read_table(tmp_path / "cells.parquet")
    assert table.to_pylist() == made.rows()
    assert {field.name: str(field.type) for field in table.schema} == {
        each.name: TYPES[each.kind] for each in made.columns
    }
    assert {"bool", "double", "int64", "string"} == {str(field.type) for field in table.schema}
    assert table.schema.field("needed_bytes").metadata == {b"unit": b"bytes"}
    assert table.schema.field("tpot_seconds").metadata == {b"unit": b"seconds"}
    assert table.column("needed_bytes").null_count == sum(row["needed_bytes"] is None for row in made.rows()) > 0


def test_parquet_carries_its_question_and_the_version_of_the_schema(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    made = _made()
    made.to_parquet(tmp_path / "cells.parquet")
    about = parquet.read_schema(tmp_path / "cells.parquet").metadata
    assert (about[b"tonnage.schema"], about[b"tonnage.verb"]) == (b"tonnage/2", b"serve")
    assert json.loads(about[b"tonnage.question"]) == made.to_dict()["question"]


def test_columns_without_any_value_keep_their_types(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    made = tonnage.compare("llama-3.1-8b", "8xh100", tensor_parallel_size=[16, 32])
    made.to_parquet(tmp_path / "none.parquet")
    table = parquet.read_table(tmp_path / "none.parquet")
    assert str(table.schema.field("tpot_seconds").type) == "double"
    assert table.column("tpot_seconds").null_count == 2


def test_a_table_of_arrow_is_the_same():
    pytest.importorskip("pyarrow")
    made = _made()
    assert made.to_arrow().to_pylist() == made.rows()


def test_without_pyarrow_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(compare_files, "find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"pip install tonnage\[cluster\]"):
        tonnage.compare("llama-3.1-8b", "h100").to_parquet(tmp_path / "cells.parquet")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_said(tmp_path):
    pytest.importorskip("pyarrow")
    with pytest.raises(InvalidInput, match="cannot be written"):
        tonnage.compare("llama-3.1-8b", "h100").to_parquet(tmp_path / "no" / "cells.parquet")


def test_csv_names_units_and_writes_numbers_whole_and_without_a_locale():
    made = tonnage.compare("llama-3.1-8b", "h100", context=[8192, 32768])
    header, *lines = made.to_csv().splitlines()
    assert {"needed_bytes", "ttft_seconds", "usd_per_million_tokens"} <= set(header.split(","))
    row = next(csv.DictReader([header, lines[0]]))
    assert row["needed_bytes"] == str(made.rows()[0]["needed_bytes"])
    assert row["tpot_seconds"] == repr(made.rows()[0]["tpot_seconds"])


def test_every_column_stands_once():
    for train, options in ((False, {}), (True, {"tokens": "1B"})):
        header = (
            tonnage.compare("llama-3.2-1b", on=["8xH100-SXM-80GB"], train=train, **options)
            .to_csv()
            .splitlines()[0]
            .split(",")
        )
        assert len(set(header)) == len(header)
