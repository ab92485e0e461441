"""A comparison is the answers of serve and train beside each other: the same numbers, the fewest accelerators, no
cell that stops another.
"""

import csv
import io
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tonnage
from tonnage.kernel.errors import InvalidInput, UnknownName
from tonnage.models import read
from tonnage.search.compare import compare
from tonnage.search.compare.axes import MAX_CELLS, axis
from tonnage.search.compare.columns import columns

# What a row of serve or train says -> where an answer has it.
OF_SERVING = {
    "requests_that_fit": "concurrency",
    "kv_capacity_tokens": "kv_capacity_tokens",
    "longest_context_tokens": "longest_context",
    "ttft_seconds": "ttft_seconds",
    "tpot_seconds": "tpot_seconds",
    "tokens_per_second": "tokens_per_second",
    "tokens_per_second_per_user": "tokens_per_second_per_user",
    "usd_per_million_tokens": "cost_per_million_tokens",
    "usd_per_million_output_tokens": "cost_per_million_output_tokens_all",
}


def _value(document, name):
    entry = document.get(name)
    return None if entry is None else entry["value"]


def provider_of(row):
    """The provider whose prices a table took, as an option: a single answer takes the cheapest of all."""
    return {"provider": row["price"].split()[0]} if row["price"] else {}


@pytest.mark.parametrize(
    ("model", "on", "options"),
    [
        (
            "llama-3.1-70b",
            ["8xh100", "4xmi300x", "2xrtx-4090"],
            {"weights": [None, "fp8", "awq"], "context": [8192, 131072], "concurrency": [1, 64]},
        ),
        ("deepseek-v3", ["8xh200", "2x8xh100"], {"context": [4096, 163840], "pipeline_parallel_size": [None, 2]}),
        (
            "gpt-oss-120b",
            ["h200", "rtx-5090"],
            {"engine": ["vllm", "sglang"], "input_tokens": [512], "output_tokens": [1, 512]},
        ),
        (
            "qwen3-32b",
            ["rtx-3090", "2xrtx-4090", "m3-max"],
            {"weights": ["q4_k_m", "q8_0"], "context": [8192], "kv_cache": [None, "q8_0"]},
        ),
        (
            "mixtral-8x7b",
            ["2xh100"],
            {"ttft": ["10ms", "10s"], "concurrency": [8], "context": [4096], "weights": ["fp8"]},
        ),
    ],
)
def test_every_cell_says_what_serve_says(model, on, options):
    made = tonnage.compare(model, on, count=1, **options)
    cells = list(
        product(on, *(values for name, values in options.items() if name != "context"), options.get("context", [None]))
    )
    names = [*(name for name in options if name != "context"), "context"]
    assert len(made.rows()) == len(cells)
    for (where, *said), row in zip(cells, made.rows(), strict=True):
        given_ = {name: value for name, value in zip(names, said, strict=True) if value is not None}
        answer = tonnage.serve(model, where, as_is=True, **provider_of(row), **given_)
        document = answer.summary()
        assert (row["needed_bytes"], row["usable_bytes"], row["on"]) == (
            answer.needed_bytes,
            answer.usable_bytes,
            document["question"]["on"]["value"],
        )
        assert {name: row[name] for name in OF_SERVING} == {
            name: _value(document.get("serving", {}), key) for name, key in OF_SERVING.items()
        }
        assert row["usd_per_hour"] == _value(document, "cost")
        assert row["weights_stored"] == document["question"]["weights"]["value"]
        assert made.status == 0 or row["verdict"] != "fits"
        assert {"fits": 0, "not served": 3, "does not fit": 3}[row["verdict"]] == answer.status


@pytest.mark.parametrize(
    ("model", "on", "options"),
    [
        (
            "llama-3.1-8b",
            ["8xh100", "8xmi300x"],
            {"precision": ["bf16-mixed", "bf16"], "sequence_length": [4096, 16384], "recompute": ["none", "full"]},
        ),
        (
            "mixtral-8x7b",
            ["4x8xh100"],
            {"runtime": ["megatron"], "tensor_parallel_size": [2, 4], "expert_parallel_size": [1, 8]},
        ),
        ("llama-3.1-8b", ["rtx-4090"], {"method": ["qlora", "lora"], "sequence_length": [2048]}),
    ],
)
def test_every_cell_says_what_train_says(model, on, options):
    made = tonnage.compare(model, on, train=True, count=1, **options)
    names = sorted(options, key=lambda name: name == "sequence_length")
    cells = list(product(on, *(options[name] for name in names)))
    assert len(made.rows()) == len(cells)
    for (where, *said), row in zip(cells, made.rows(), strict=True):
        given = dict(zip(names, said, strict=True))
        answer = tonnage.train(model, where, as_is=True, **provider_of(row), **given)
        document = answer.summary()
        run = document.get("run", {})
        assert (row["needed_bytes"], row["usable_bytes"]) == (answer.needed_bytes, answer.usable_bytes)
        assert {"fits": 0, "tight": 2, "does not fit": 3}[row["verdict"]] == answer.status
        assert (row["step_seconds"], row["mfu"]) == (_value(document, "step_time"), _value(run, "mfu"))
        assert row["tokens_per_second"] == _value(run, "tokens_per_second")
        assert row["usd_per_step"] == pytest.approx(_value(document, "cost"), rel=1e-12)
        tokens = row["sequence_length"] * row["global_batch_size"]
        assert row["usd_per_billion_tokens"] == pytest.approx(row["usd_per_step"] / tokens * 1e9, rel=1e-9)


def test_a_run_has_its_time_and_price_and_a_step_keeps_its_own():
    options = {"sequence_length": 8192, "recompute": "full", "price_per_accelerator_hour": 2.0}
    row, longer = tonnage.compare("llama-3.1-8b", "8xh100", train=True, tokens=["1T", "15T"], **options).rows()
    answer = tonnage.train("llama-3.1-8b", "8xh100", tokens="1T", **options).summary()
    step = tonnage.train("llama-3.1-8b", "8xh100", **options).summary()
    assert row["run_seconds"] == answer["run"]["seconds"]["value"]
    assert row["run_usd"] == answer["cost"]["value"]
    assert row["run_accelerator_hours"] == answer["run"]["accelerator_hours"]["value"]
    assert row["usd_per_step"] == longer["usd_per_step"] == pytest.approx(step["cost"]["value"], rel=1e-12)
    assert longer["run_seconds"] > 10 * row["run_seconds"]
    assert (row["usd_per_hour"], row["price"], row["accelerators_paid"]) == (16, "given", 8)


@pytest.mark.parametrize("weights", [None, "fp8", "awq"])
@pytest.mark.parametrize("context", [8192, 131072])
def test_the_fewest_hold_the_model_and_half_as_many_do_not(weights, context):
    (row,) = tonnage.compare("llama-3.1-70b", "h100", weights=weights, context=context).rows()
    said = {"weights": weights, "context": context}
    assert row["verdict"] == "fits"
    assert tonnage.serve("llama-3.1-70b", row["on"], **said).needed_bytes == row["needed_bytes"]
    if row["accelerators"] > 1:
        assert tonnage.serve("llama-3.1-70b", f"{row['accelerators'] // 2}xh100", **said).status in (
            2,
            3,
        )  # tight is not held


def test_machines_that_do_not_hold_a_model_alone_each_take_a_part_of_its_layers():
    (row,) = tonnage.compare("deepseek-v3", "h100", weights="bf16", context=4096).rows()
    assert row["nodes"] == row["pipeline_parallel_size"] > 1
    said = {"weights": "bf16", "context": 4096}
    same = tonnage.serve("deepseek-v3", row["on"], **said, pipeline_parallel_size=row["pipeline_parallel_size"])
    assert (same.status, same.needed_bytes) == (0, row["needed_bytes"])
    one_fewer = row["nodes"] - 1
    assert tonnage.serve("deepseek-v3", f"{one_fewer}x8xh100", **said, pipeline_parallel_size=one_fewer).status == 3


def test_more_requests_than_a_machine_holds_get_replicas():
    (row,) = tonnage.compare("llama-3.1-8b", "h100", context=32768, concurrency=300).rows()
    assert (row["verdict"], row["pipeline_parallel_size"], row["replicas"]) == ("fits", 1, row["nodes"])
    assert row["nodes"] > 1
    said = {"context": 32768, "concurrency": 300, "as_is": True}
    assert tonnage.serve("llama-3.1-8b", f"{row['nodes'] - 1}x8xh100", **said).status == 3


def test_training_takes_the_fewest_machines_to_the_one():
    (row,) = tonnage.compare("llama-3.1-70b", "h100", train=True, sequence_length=4096, recompute="full").rows()
    assert (row["verdict"], row["nodes"]) == ("fits", 3)  # between two and four, which are doubled to
    said = {"sequence_length": 4096, "recompute": "full", "as_is": True}
    assert tonnage.train("llama-3.1-70b", "2x8xh100", **said).status == 3


def test_where_none_hold_it_the_nearest_is_shown():
    (row,) = tonnage.compare("deepseek-v3", "rtx-4090").rows()
    assert (row["verdict"], row["accelerators"]) == ("does not fit", 8)
    assert row["needed_bytes"] == tonnage.serve("deepseek-v3", "8xrtx-4090").needed_bytes
    (row,) = tonnage.compare("deepseek-v3", "m3-max").rows()
    assert row["accelerators"] == 1  # of which people have one


def test_a_name_that_says_how_many_and_a_count_are_kept():
    rows = tonnage.compare("llama-3.1-8b", ["8xh100", "h100", "dgx-h100"], count=[2, "fewest"], context=8192).rows()
    assert [row["accelerators"] for row in rows] == [8, 8, 2, 1, 8, 8]


def test_what_a_cell_is_refused_for_is_its_verdict_and_stops_no_other():
    rows = tonnage.compare("llama-3.1-8b", "8xh100", tensor_parallel_size=[8, 16], context=8192).rows()
    with pytest.raises(tonnage.TonnageError) as refused:
        tonnage.serve("llama-3.1-8b", "8xh100", tensor_parallel_size=16, context=8192)
    assert [(row["verdict"], row["reason"]) for row in rows] == [("fits", ""), ("cannot be", str(refused.value))]
    assert rows[1]["needed_bytes"] is rows[1]["tpot_seconds"] is None
    assert rows[1]["tensor_parallel_size"] == 16


@pytest.mark.parametrize(
    ("models", "options", "says"),
    [
        ("llama-3.1-8c", {}, "no model is called 'llama-3.1-8c'"),
        ("llama-3.1-8b", {"wieghts": "fp8"}, "Did you mean 'weights'"),
        ("llama-3.1-8b", {"weights": ["fp8", "q4kk"]}, "Did you mean 'q4_k'"),
        ("llama-3.1-8b", {"engine": "vlm"}, "Did you mean 'vllm'"),
        ("llama-3.1-8b", {"concurrency": 4, "request_rate": 1.0}, "concurrency"),
        ("llama-3.1-8b", {"sort": "csot"}, "Did you mean 'cost'"),
        ("llama-3.1-8b", {"count": "all"}, "'fewest'"),
        ("llama-3.1-8b", {"context": []}, "context has no value"),
        ("llama-3.1-8b", {"keep_checkpoints": 3}, "of a training run"),
    ],
)
def test_what_is_wrong_with_all_cells_is_an_error(models, options, says):
    with pytest.raises(tonnage.TonnageError, match=says):
        tonnage.compare(models, ["h100", "8xh200"], **options)


def test_a_machine_that_nobody_knows_is_an_error_among_others_too():
    with pytest.raises(UnknownName, match="h10o"):
        tonnage.compare("llama-3.1-8b", ["h100", "h10o"])


def test_a_price_that_nobody_publishes_is_not_there_and_the_rest_of_the_row_is():
    known, unknown = tonnage.compare("llama-3.1-8b", ["h100", "mi300x"], provider="Lambda", context=8192).rows()
    plain = tonnage.serve("llama-3.1-8b", "mi300x", context=8192).summary()
    assert known["usd_per_million_tokens"] > 0
    assert (unknown["verdict"], unknown["tpot_seconds"]) == ("fits", plain["serving"]["tpot_seconds"]["value"])
    assert {unknown[name] for name in unknown if "usd" in name or name in ("price", "accelerators_paid")} == {None}
    assert "no price of MI300X is known" in unknown["reason"]


def test_a_run_without_a_price_has_its_days_and_no_dollars():
    said = {"train": True, "tokens": "1T", "sequence_length": 2048, "recompute": "full"}
    known, unknown = tonnage.compare("llama-3.1-8b", ["8xh100", "8xmi300x"], provider="Lambda", **said).rows()
    assert known["run_usd"] > 0 and known["usd_per_step"] > 0
    assert unknown["run_seconds"] > 0 and unknown["mfu"] > 0
    assert {unknown[name] for name in unknown if "usd" in name} == {None}


def test_a_part_of_a_machine_says_how_much_of_it_is_paid():
    (row,) = tonnage.compare("llama-3.1-70b", "2xmi355x", context=8192).rows()
    said = tonnage.serve("llama-3.1-70b", "2xmi355x", context=8192).warnings
    assert any(f"{row['accelerators_paid']} are paid for 2 that are used" in warning for warning in said)


@pytest.mark.parametrize(
    ("on", "options", "status"),
    [
        (["rtx-4060-ti", "8xh200"], {"context": 8192}, 0),
        (["rtx-4060-ti"], {"context": 8192}, 3),
        (["8xh100"], {"context": 8192, "ttft": "1us"}, 3),
        (["8xh100"], {"tensor_parallel_size": [16, 32]}, 64),
    ],
)
def test_the_status_is_that_of_the_best_cell(on, options, status):
    assert tonnage.compare("llama-3.1-70b", on, count=1, **options).status == status


def test_tight_is_the_status_where_nothing_fits_for_sure():
    sizes = list(range(1024, 40000, 512))
    made = tonnage.compare("llama-3.1-8b", "8xh100", train=True, sequence_length=sizes)
    tight = [row["sequence_length"] for row in made.rows() if row["verdict"] == "tight"]
    assert tight
    alone = tonnage.compare("llama-3.1-8b", "8xh100", train=True, sequence_length=tight[0])
    assert alone.status == 2 == tonnage.train("llama-3.1-8b", "8xh100", sequence_length=tight[0]).status


def test_the_best_of_each_column_are_of_rows_that_fit():
    made = tonnage.compare(
        "llama-3.1-70b", ["rtx-4090", "h100", "h200"], count=[1, 4], weights=["fp8", "awq"], context=8192
    )
    fitting = [row for row in made.rows() if row["verdict"] == "fits"]
    assert 0 < len(fitting) < len(made.rows())
    for name, best in (("usd_per_million_tokens", min), ("tpot_seconds", min), ("tokens_per_second", max)):
        wanted = best(row[name] for row in fitting)
        assert {made.rows()[number][name] for number in made.best[name]} == {wanted}


@pytest.mark.parametrize(
    ("sort", "name", "falls"),
    [
        ("cost", "usd_per_million_tokens", False),
        ("speed", "tokens_per_second", True),
        ("TPOT", "tpot_seconds", False),
        ("needed_bytes", "needed_bytes", False),
    ],
)
def test_rows_are_sorted_by_verdict_and_then_by_the_figure(sort, name, falls):
    made = tonnage.compare(
        "llama-3.1-70b",
        ["rtx-4090", "8xrtx-4090", "h100", "8xh200"],
        count=1,
        weights=[None, "awq"],
        context=8192,
        sort=sort,
    )
    fit = [row["verdict"] == "fits" for row in made.rows()]
    assert fit == sorted(fit, reverse=True)
    figures = [row[name] for row in made.rows() if row["verdict"] == "fits"]
    assert figures == sorted(figures, reverse=falls)
    assert len(figures) > 2


def test_none_is_the_option_left_out():
    own, left_out = (
        tonnage.compare("llama-3.1-8b", "h100", context=4096, **said).rows() for said in ({"weights": None}, {})
    )
    assert own == left_out


def test_every_model_is_read_once_and_every_change_of_it():
    asked = []

    def counting(name, changes):
        asked.append((name, tuple(changes.items())))
        return read(name, overrides=changes)

    axes = [
        axis("model", ["llama-3.1-8b", "qwen3-8b"]),
        axis("on", ["h100", "h200"]),
        axis("num_hidden_layers", [None, 8]),
        axis("context", [1024, 2048, 4096]),
    ]
    made = compare("serve", axes, counting, of_model={"num_hidden_layers"})
    assert len(made.cells) == 24
    assert sorted(asked) == sorted(
        (name, changes) for name in ("llama-3.1-8b", "qwen3-8b") for changes in ((), (("num_hidden_layers", 8),))
    )
    half = {row["num_hidden_layers"]: row["needed_bytes"] for row in made.rows() if row["model"] == "llama-3.1-8b"}
    assert half[8] < half[None]


@pytest.mark.parametrize(("said", "noted"), [({}, True), ({"concurrency": 4}, False), ({"request_rate": 0.1}, False)])
def test_prices_of_one_user_alone_are_said_to_be_that(said, noted):
    made = tonnage.compare("llama-3.1-8b", "h100", context=4096, **said)
    assert any("one user on each replica" in warning for warning in made.to_dict()["warnings"]) == noted


def test_more_cells_than_can_be_looked_at_are_refused_before_any_is_asked():
    with pytest.raises(InvalidInput, match=r"at most 10,000 cells.*101 concurrency x 100 context = 10,100"):
        tonnage.compare("llama-3.1-8b", "h100", context=list(range(1000, 1100)), concurrency=list(range(1, 102)))
    assert MAX_CELLS == 10_000


def test_what_is_said_twice_is_one_value():
    assert len(tonnage.compare("llama-3.1-8b", ["h100", "h100"], context=[8192, 8192, 4096]).rows()) == 2


def test_models_and_clusters_of_ones_own_are_compared_too():
    machine, model = tonnage.cluster("4xh100"), tonnage.read("llama-3.1-8b")
    (row,) = tonnage.compare([model], [machine], context=8192).rows()
    assert (row["model"], row["accelerators"]) == ("llama-3.1-8b", 4)


@settings(max_examples=20)
@given(
    st.lists(st.sampled_from(["h100", "8xh100", "rtx-4090", "2xl40s"]), min_size=1, max_size=3, unique=True),
    st.lists(st.sampled_from([None, "fp8", "awq", "q4_k_m"]), min_size=1, max_size=3, unique=True),
    st.lists(st.integers(128, 131072), min_size=1, max_size=3, unique=True),
)
def test_every_row_has_every_column_and_the_csv_has_its_values(on, weights, contexts):
    made = tonnage.compare("qwen3-8b", on, weights=weights, context=contexts)
    names = [column.name for column in made.columns]
    assert names == [column.name for column in columns("serve", made.axes)]
    assert len(made.rows()) == len(on) * len(weights) * len(contexts)
    read_back = list(csv.DictReader(io.StringIO(made.to_csv())))
    for row, line in zip(made.rows(), read_back, strict=True):
        assert list(row) == names == list(line)
        assert row["context"] in contexts
        for column in made.columns:
            value, text = row[column.name], line[column.name]
            kind = {"text": str, "whole": int, "number": float, "truth": bool}[column.kind]
            own = type(value) is kind or (kind is str and isinstance(value, str))  # a Message is a text, too
            assert (text == "" and value in (None, "")) or (own and kind(text) == value)
