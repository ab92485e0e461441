"""train_many and serve_many: any kind of table in, the same kind out."""

import subprocess
import sys

import numpy as np
import pytest

import tonnage

ON = "8xH100-SXM-80GB"
MODELS = ["llama-3.1-8b", "llama-3.1-70b", "no such model"]
NEEDED = [tonnage.train(name, on=ON, micro_batch_size=2).needed_bytes for name in MODELS[:2]] + [None]
STATUSES = [2, 3, 64]  # inside the error band, beyond it, bad input


def test_a_frame_of_polars_comes_back_with_its_columns_first_and_nulls():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(
        {"id": [7, 8, 9], "model": MODELS, "micro_batch_size": [2, 2, None], "precision": [None, None, None]}
    )
    table = tonnage.train_many(frame, on=ON, keep=["id"])
    assert isinstance(table, polars.DataFrame)
    assert table.columns[:5] == ["id", "model", "micro_batch_size", "precision", "fits"]
    assert table.select(frame.columns).equals(frame)
    assert table["needed_bytes"].to_list() == NEEDED and table["status"].to_list() == STATUSES
    assert table["needed_bytes"].dtype == polars.Int64 and table["step_seconds"].dtype == polars.Float64
    assert table["fits"].to_list() == [None, False, None] and table["error"].to_list()[:2] == [None, None]
    assert "no such model" in table["error"][2]


def test_a_frame_of_pandas_keeps_its_index_and_takes_whole_numbers_beside_missing_ones():
    pandas = pytest.importorskip("pandas")
    index = ["b", "a", "a"]
    frame = pandas.DataFrame({"model": MODELS, "micro_batch_size": [2.0, 2.0, float("nan")]}, index=index)
    frame["fits already"] = pandas.array([True, None, None], dtype="boolean")
    before = frame.copy()
    table = tonnage.train_many(frame, on=ON, keep="fits already")
    assert list(table.index) == index and list(table.columns[:3]) == list(frame.columns)
    assert [None if pandas.isna(size) else size for size in table["needed_bytes"]] == NEEDED
    assert str(table["needed_bytes"].dtype) == "Int64" and str(table["fits"].dtype) == "boolean"
    pandas.testing.assert_frame_equal(frame, before)


def test_columns_are_lists_tuples_arrays_or_one_value_for_all():
    table = tonnage.train_many({"model": tuple(MODELS[:2]), "on": ON, "micro_batch_size": np.array([2, 2])})
    assert table["needed_bytes"] == NEEDED[:2] and table["on"] == [ON, ON] and table["model"] == tuple(MODELS[:2])
    one = tonnage.train_many({"model": MODELS[0], "on": ON, "micro_batch_size": 2})
    assert one["needed_bytes"] == NEEDED[:1]
    assert type(one["needed_bytes"][0]) is int
    short = tonnage.train_many({"model": MODELS[0], "on": ON, "sequence_length": 512})
    assert short["fits"] == [True] and type(short["fits"][0]) is bool


def test_a_list_of_mappings_comes_back_as_one_with_what_a_row_lacks_not_given():
    rows = [{"model": MODELS[0], "micro_batch_size": 2}, {"model": MODELS[0], "sequence_length": 1024, "note": "short"}]
    table = tonnage.train_many(rows, on=ON, keep=["note"])
    assert [row["needed_bytes"] for row in table] == [
        NEEDED[0],
        tonnage.train(MODELS[0], on=ON, sequence_length=1024).needed_bytes,
    ]
    assert table[1]["note"] == "short" and "note" not in table[0] and "fits" not in rows[0]


def test_models_and_clusters_stand_in_cells_and_for_all_rows():
    model, cluster = tonnage.read(MODELS[0]), tonnage.cluster(ON)
    expected = tonnage.serve(model, on=cluster, concurrency=4)
    table = tonnage.serve_many({"model": [model, model], "concurrency": [4, 5]}, on=cluster)
    assert table["needed_bytes"][0] == expected.needed_bytes
    assert tonnage.serve_many({"on": [cluster], "concurrency": [4]}, model=model)["needed_bytes"] == [
        expected.needed_bytes
    ]


@pytest.mark.parametrize("table", [[], {"model": [], "on": []}])
def test_an_empty_table_has_no_rows(table):
    answer = tonnage.train_many(table, **({} if table else {"model": MODELS[0], "on": ON}))
    assert answer == [] or (answer["fits"] == [] and answer["error"] == [])


@pytest.mark.parametrize(
    ("table", "more", "words"),
    [
        ({"modl": ["a"], "on": ON}, {}, "'modl'. Did you mean 'model'"),
        ({"model": ["a"], "on": ON, "id": [1]}, {}, "'id'"),
        ({"model": ["a"], "on": ON, "fits": [1]}, {"keep": ["fits"]}, "fits is a column of the answer"),
        ({"model": ["a"], "on": ON}, {"keep": ["id"]}, "Got 'id'"),
        (
            {"model": ["a"], "on": ON, "tensor_parallel_size": [1]},
            {"tensor_parallel_size": 2},
            "tensor_parallel_size is given twice",
        ),
        ({"model": ["a", "b"], "on": [ON]}, {}, "model: 2"),
        ({"model": np.array([["a"]]), "on": ON}, {}, "dimensions"),
        ({"model": ["a"]}, {}, "needs on"),
        ("model,on", {}, "Got str"),
        ([1, 2], {}, "Got list"),
    ],
)
def test_a_table_that_is_wrong_as_a_whole_is_bad_input(table, more, words):
    with pytest.raises(tonnage.TonnageError, match=words.replace("(", "\\(")):
        tonnage.train_many(table, **more)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("micro_batch_size", 2.5, "whole number"),
        ("micro_batch_size", True, "whole number"),
        ("micro_batch_size", [1], "whole number"),
        ("recompute", 1, "a name"),
        ("model", None, "no model"),
        ("on", 8, "a Cluster"),
        ("reserve_bytes", -1.0, "at least 0"),
    ],
)
def test_a_bad_cell_is_the_error_of_its_row_alone(name, value, words):
    good = {"model": MODELS[0], "on": ON, "micro_batch_size": 2}
    table = tonnage.train_many([good, good | {name: value}, good])
    assert [row["status"] for row in table] == [2, 64, 2]
    assert words in table[1]["error"] and table[1]["fits"] is None
    assert table[0]["needed_bytes"] == table[2]["needed_bytes"] == NEEDED[0]


def test_neither_polars_nor_pandas_is_imported_for_plain_columns():
    code = (
        "import sys, tonnage;"
        f"tonnage.train_many({{'model': ['gpt2'], 'on': ['{ON}']}});"
        f"tonnage.serve_many([{{'model': 'gpt2', 'on': '{ON}'}}]);"
        "print({'polars', 'pandas', 'narwhals', 'pyarrow'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
