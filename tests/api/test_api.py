"""The Python face: options are checked by type, answers are short to look at and print as the command line does."""

import json
from pathlib import Path

import numpy as np
import pytest

import tonnage
from tonnage.cli import main
from tonnage.documents.question import Entry
from tonnage.kernel.errors import InvalidInput, InvalidPlan, UnknownName

ON = "8xH100-SXM-80GB"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"micro_batch_size": "4"}, r"micro_batch_size takes a whole number, or None for its default. Got '4' \(str\)"),
        ({"micro_batch_size": 1.5}, r"Got 1.5 \(float\)"),
        ({"micro_batch_size": 4.0}, r"Got 4.0 \(float\)"),
        ({"micro_batch_size": True}, r"Got True \(bool\)"),
        ({"micro_batch_size": [1]}, r"Got \[1\] \(list\)"),
        ({"sequence_parallel": 1}, "sequence_parallel takes True or False"),
        ({"sequence_parallel": "yes"}, "sequence_parallel takes True or False"),
        ({"recompute": 1}, "recompute takes a name"),
        ({"reserve_bytes": float("nan")}, "reserve_bytes takes a finite number"),
        ({"reserve_bytes": float("inf")}, "reserve_bytes takes a finite"),
        ({"reserve_bytes": -1}, "at least 0. Got -1"),
        ({"reserve_bytes": "1GB"}, r"Got '1GB' \(str\)"),
        ({"reserve_bytes": True}, "reserve_bytes takes"),
        (
            {"reserve_bytes": 80 * 2**30},
            "reserve must leave some of the 79.* GiB that H100-SXM-80GB has. Got 80.00 GiB",
        ),
    ],
    ids=str,
)
def test_an_option_of_the_wrong_type_is_named_with_its_value_and_what_it_takes(options, message):
    with pytest.raises(InvalidInput, match=message):
        tonnage.train("llama-3.1-8b", on=ON, **options)


@pytest.mark.parametrize("ask", [tonnage.train, tonnage.serve])
def test_a_model_or_a_cluster_of_the_wrong_type_is_bad_input(ask):
    with pytest.raises(InvalidInput, match=r"model takes a name, a path or a Model. Got 5 \(int\)"):
        ask(5, on=ON)
    with pytest.raises(InvalidInput, match=r"on takes a name such as 8xH100-SXM-80GB, or a Cluster. Got 8 \(int\)"):
        ask("llama-3.1-8b", on=8)
    with pytest.raises(UnknownName, match="no option is called 'contxt'"):
        ask("llama-3.1-8b", on=ON, contxt=1)
    with pytest.raises(InvalidInput, match="reserve must leave"):
        ask("llama-3.1-8b", on=ON, reserve_bytes=10**12)


def test_serving_checks_its_options_too():
    with pytest.raises(InvalidInput, match="concurrency takes a whole number"):
        tonnage.serve("llama-3.1-8b", on=ON, concurrency="many")
    with pytest.raises(InvalidPlan, match="concurrency must be from 1 to"):
        tonnage.serve("llama-3.1-8b", on=ON, concurrency=0)


def test_integers_of_numpy_none_and_paths_are_welcome(tmp_path):
    plain = tonnage.train("llama-3.1-8b", on=ON, micro_batch_size=2)
    assert (
        tonnage.train("llama-3.1-8b", on=ON, micro_batch_size=np.int64(2), recompute=None).to_dict() == plain.to_dict()
    )
    (tmp_path / "config.json").write_text(
        '{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "num_hidden_layers": 2, '
        '"num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100, "max_position_embeddings": 512}'
    )
    assert tonnage.train(Path(tmp_path), on="rtx-4090").fits


def test_amounts_are_taken_as_the_command_line_takes_them(capsys):
    """A whole number as a float, a text with its unit, a number for a grid; the documents are the same."""
    words = [
        "--tokens",
        "1e9",
        "--grid",
        "56.0",
        "--checkpoint-interval",
        "30min",
        "--budget",
        "9k",
        "--deadline",
        "30d",
    ]
    main(["train", "llama-3.1-8b", "--on", ON, "--gbs", "512", *words, "--json"])
    printed = json.loads(capsys.readouterr().out)
    for tokens, interval, grid in ((1e9, "30min", 56.0), (10**9, 1800, "56"), ("1B", 1800.0, 56)):
        options = {"tokens": tokens, "checkpoint_interval": interval, "grid": grid, "budget": 9000, "deadline": "30d"}
        answer = tonnage.train("llama-3.1-8b", on=ON, global_batch_size=512, **options)
        assert json.loads(json.dumps(answer.to_dict())) == printed
        assert "carbon" in printed


@pytest.mark.parametrize(
    "ask",
    [
        lambda on: tonnage.compare("llama-3.1-8b", on, context=2048),
        lambda on: tonnage.plan_serving("llama-3.1-8b", on, context=2048, max_accelerators=1),
        lambda on: tonnage.plan_training("llama-3.2-1b", on, sequence_length=2048, runtime="fsdp2"),
    ],
    ids=["compare", "plan_serving", "plan_training"],
)
def test_machines_are_a_list_or_names_with_commas_between_as_on_the_command_line(ask):
    parted, listed = ask("1xh100, 1xa100"), ask(["1xh100", "1xa100"])
    assert parted.rows() and json.dumps(parted.to_dict()) == json.dumps(listed.to_dict())
    for empty in ("h100,,a100", ","):
        with pytest.raises(InvalidInput, match=r"names? with commas between|name, or names"):
            ask(empty)


def test_models_of_a_comparison_are_named_with_commas_too_unless_they_are_one_file(tmp_path):
    names = [row["model"] for row in tonnage.compare("llama-3.2-1b,llama-3.1-8b", "h100", context=2048).rows()]
    assert names == ["llama-3.2-1b", "llama-3.1-8b"]
    folder = tmp_path / "a,b"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(dict(tonnage.read("llama-3.2-1b").config)))
    assert len(tonnage.compare(str(folder / "config.json"), "h100", context=2048).rows()) == 1


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["--context", "8k,32k"], {"context": [8192, 32768]}),
        (["--context", "8192,32768"], {"context": [8192, 32768]}),
        (["--gpu-memory-utilization", "0.90,.8"], {"gpu_memory_utilization": [0.9, 0.8]}),
        (["--count", "1,2"], {"count": [1, 2]}),
        (
            ["--train", "--tokens", "1T,1500B", "--seq", "4k"],
            {"train": True, "tokens": ["1T", 1.5e12], "sequence_length": 4096},
        ),
        (
            ["--train", "--tokens", "1T", "--checkpoint-interval", "30min,1h", "--seq", "4k"],
            {"train": True, "tokens": 1e12, "checkpoint_interval": [1800, "60min"], "sequence_length": 4096},
        ),
    ],
    ids=str,
)
def test_a_number_of_a_comparison_is_written_in_one_way_however_it_was_typed(words, options, capsys):
    machine = "h100" if "count" in options else "8xh100"
    main(["compare", "llama-3.2-1b", "--on", machine, *words, "--json"])
    printed = json.loads(capsys.readouterr().out)
    made = json.loads(json.dumps(tonnage.compare("llama-3.2-1b", machine, **options).to_dict()))
    assert made["axes"] == printed["axes"] and made["workloads"] == printed["workloads"]
    assert made["question"] == printed["question"]


def test_a_deadline_without_a_unit_is_refused_as_on_the_command_line():
    with pytest.raises(InvalidInput, match=r"deadline needs a unit, such as 30d or 2w, .* Got '30'\."):
        tonnage.train("llama-3.1-8b", on=ON, tokens=1e9, deadline=30)
    with pytest.raises(InvalidInput, match=r"tokens takes a whole number, .* Got 1.5 \(float\)"):
        tonnage.train("llama-3.1-8b", on=ON, tokens=1.5)


@pytest.mark.parametrize("reserve", [10 * 2**30, 10.0 * 2**30])
def test_a_reserve_is_whole_bytes_of_the_question(reserve):
    answer = tonnage.serve("llama-3.1-8b", on=ON, context=4096, reserve_bytes=reserve)
    assert answer.question["reserve_bytes"] == Entry(10 * 2**30, "given")
    assert isinstance(answer.usable_bytes, int)


def test_the_command_line_refuses_to_reserve_all_memory_too(capsys):
    assert main(["train", "llama-3.1-8b", "--on", ON, "--reserve", "80GiB"]) == 64
    assert "reserve must leave" in capsys.readouterr().err


def test_an_answer_looks_short_and_prints_what_the_command_line_prints(capsys):
    answer = tonnage.train("llama-3.1-8b", on=ON)
    assert isinstance(answer, tonnage.Answer)
    assert (
        repr(answer).startswith("<Answer train llama-3.1-8b on 8xH100-SXM-80GB: fits, needs ")
        and len(repr(answer)) < 120
    )
    main(["train", "llama-3.1-8b", "--on", ON])
    assert capsys.readouterr().out == f"{answer}\n" == f"{answer.text()}\n"
    main(["train", "llama-3.1-8b", "--on", ON, "--formulas"])
    assert capsys.readouterr().out == answer.text(formulas=True) + "\n"
    assert "does not fit" in repr(tonnage.train("llama-3.1-70b", on="rtx-4090"))


@pytest.mark.parametrize(
    ("verb", "name", "meant"),
    [
        (tonnage.train, "gpus", "on"),
        (tonnage.serve, "user", "concurrency"),
        (tonnage.compare, "user", "concurrency"),
        (tonnage.train, "reserve", "reserve_bytes"),
        (tonnage.serve, "isl", "input_tokens"),
    ],
)
def test_an_option_that_there_is_not_suggests_what_is_meant(verb, name, meant):
    with pytest.raises(UnknownName, match=f"no option is called '{name}'. Did you mean '{meant}'"):
        verb("llama-3.1-8b", on="8xh100", **{name: 3})


def test_second_names_of_the_command_line_are_meant_in_python_too():
    from tonnage.question.verbs import form_of
    from tonnage.spelling import short_names

    options = (*form_of("train").options.values(), *form_of("serve").options.values())
    short = {(option.name, flag.lstrip("-").replace("-", "_")) for option in options for flag in option.short}
    assert short <= {(name, word) for name, words in short_names().items() for word in words}


def test_a_comparison_refuses_a_list_of_columns_and_a_figure_in_words():
    made = tonnage.compare("gpt2", ["h100", "a100"])
    with pytest.raises(InvalidInput, match="a column is given by its name"):
        made.to_polars(["on", "tpot_seconds"])
    with pytest.raises(InvalidInput, match="a comparison is a table and has no figure 'ranks'"):
        made.figure("ranks")


def test_a_list_of_breakdowns_is_refused_in_words():
    with pytest.raises(InvalidInput, match="a breakdown is given by its name"):
        tonnage.serve("gpt2", on="h100").rows(["memory"])


@pytest.mark.parametrize("name", ["weights", "engine", "engine_version", "draft_model"])
def test_an_empty_text_is_no_value(name):
    with pytest.raises(InvalidInput, match=f"{name} is empty: give it a value, or leave the option out"):
        tonnage.serve("llama-3.1-8b", on="h100", **{name: " "})
