"""Counts and lengths that `serve`, `serve --for-my-machine` and `max` give for the same limit are one number, which
holds while one more does not.
"""

import shlex

import pytest

import tonnage
from tonnage.catalogue import cluster
from tonnage.documents.question import Entry
from tonnage.estimate.answer.my_machine import my_machine
from tonnage.estimate.bands import serving_band
from tonnage.estimate.serving.options import ServingOptions
from tonnage.models import read

PLANS = [
    ("llama-3.2-11b-vision-instruct", "8xrtx-5090", {"weights": "fp8", "context": 2048, "engine": "transformers"}),
    ("baichuan-7b", "rtx-3060", {"weights": "awq", "context": 1024}),
    ("glm-4-9b-chat", "8xm3-ultra", {"weights": "fp8", "context": 2048}),
    ("llama-3.1-8b", "h100", {"weights": "fp8", "context": 2048}),
    ("llama-3.1-8b", "h100", {"context": 2048, "engine": "sglang"}),
    ("llama-3.1-8b", "h100", {"context": 2048, "engine": "tensorrt-llm"}),
    ("llama-3.1-8b", "h100", {"context": 2048, "engine": "generic"}),
    ("llama-3.1-8b", "rtx-4090", {"context": 4096, "engine": "llama.cpp"}),
    ("llama-3.1-8b", "rtx-4090", {"context": 4096, "engine": "llama.cpp", "engine_version": "b4000"}),
    ("llama-3.1-8b", "rtx-4090", {"context": 4096, "engine": "ollama"}),
    ("gemma-3-12b-it", "2xa100-80gb", {"context": 8192, "engine": "vllm"}),
    (
        "deepseek-v3",
        "8xh200",
        {
            "context": 8192,
            "engine": "vllm",
            "attention_data_parallel_size": 8,
            "tensor_parallel_size": 1,
            "expert_parallel_size": 8,
        },
    ),
    ("llama-3.1-8b", "2xh100", {"context": 8192, "engine": "vllm", "tensor_parallel_size": 1}),
    ("qwen3-32b", "rtx-4090", {"context": 1024, "engine": "transformers", "weights": "q4_k_m"}),
]


def ask(model, on, options, requests):
    return tonnage.serve(model, on=on, concurrency=requests, as_is=True, **options)


@pytest.mark.parametrize(("model", "on", "options"), PLANS)
def test_the_concurrent_requests_of_serve_fit_and_one_more_does_not(model, on, options):
    answer = tonnage.serve(model, on=on, as_is=True, **options)
    count = int(answer.serving.concurrency.value)
    replicas = (
        answer.question["replicas"].value
        * answer.question.get("attention_data_parallel_size", Entry(1, "default")).value
    )
    if count:
        assert ask(model, on, options, count).needed_bytes <= answer.usable_bytes
        assert ask(model, on, options, count).serving.concurrency.value == count
    more = ask(model, on, options, count + replicas)
    waits = any("the others queue" in text for text in more.warnings)
    assert more.needed_bytes > answer.usable_bytes or waits


@pytest.mark.parametrize(("model", "on", "options"), PLANS)
def test_serve_and_max_say_the_same_numbers_of_requests(model, on, options):
    found = tonnage.maximum("users", model, on=on, advice=False, **options).to_dict()
    serving = tonnage.serve(model, on=on, as_is=True, **options).serving
    by_estimate = int(serving.concurrency.value)
    safe = int(serving.safe_concurrency.value) if serving.safe_concurrency else by_estimate
    assert safe == (found["value"] or 0)
    if found["estimate_value"] is not None:
        assert by_estimate == found["estimate_value"]


@pytest.mark.parametrize(("model", "on", "options"), PLANS)
def test_serve_and_max_say_the_same_longest_context(model, on, options):
    serving = tonnage.serve(model, on=on, as_is=True, **options).serving
    rest = {name: value for name, value in options.items() if name != "context"}
    replicas = tonnage.serve(model, on=on, **options).question["replicas"].value
    found = tonnage.maximum("context", model, on=on, advice=False, concurrency=replicas, **rest).to_dict()
    assert int(serving.longest_context.value) == (found["value"] or 0)


@pytest.mark.parametrize(
    ("model", "on", "context"),
    [
        ("qwen3-32b", "rtx-4090", 8192),
        ("gemma-4-26b-a4b-it", "rtx-4090", 16384),
        ("llama-3.1-8b", "h100", 8192),
        ("gemma-3-12b-it", "m3-max-64gb", 8192),
    ],
)
def test_the_longest_context_on_my_machine_is_that_of_max(model, on, context):
    rows = my_machine(cluster(on), [(model, "", read(model))], ServingOptions(context=context)).runs
    assert rows
    for row in rows:
        options = {"weights": row.option} if row.option else {}
        found = tonnage.maximum("context", model, on=on, engine=row.engine, advice=False, **options).to_dict()
        assert row.longest_context == found["value"], row.option


def test_serve_and_max_say_in_the_same_words_which_number_is_the_estimates(capsys):
    from tonnage.cli import main

    def lines(line):
        main(shlex.split(line))
        return capsys.readouterr().out

    rest = "llama-3.1-8b --on h100 --weights fp8 --context 2k"
    words = "245 requests by the estimate, 237 requests at the high end of the error band"
    assert serving_band("vllm", cluster("h100").accelerator)
    assert f"concurrent requests: {words}" in lines(f"serve {rest} -v --lang en")
    assert words in lines(f"max users {rest} -v --lang en")


def test_a_checkpoint_in_4_bits_is_listed_as_it_is():
    rows = my_machine(cluster("rtx-4090"), [("gpt-oss-20b", "", read("gpt-oss-20b"))]).runs
    assert [row.option for row in rows] == [""]
    assert rows[0].weights.startswith("mxfp4")


def test_no_precision_on_my_machine_is_larger_than_a_checkpoint_that_runs_there():
    for model in ("gpt-oss-20b", "qwen3-8b", "deepseek-r1-distill-llama-8b"):
        rows = my_machine(cluster("rtx-4090"), [(model, "", read(model))]).runs
        own = [row.download_bytes for row in rows if not row.option]
        assert not own or max(row.download_bytes for row in rows) == own[0]


@pytest.mark.parametrize(
    "line",
    [
        "gpt-oss-20b --on rtx-3060 --engine ollama",
        "qwen3-32b --on rtx-3060 --engine ollama --weights q4_k_m",
        "llama-3.1-8b --on 2xrtx-3060 --engine ollama --weights q8_0 --users 4",
    ],
)
def test_the_figures_of_a_suggestion_are_those_of_its_own_command_line(line, capsys):
    import json

    from tonnage.cli import main

    def answer(more=""):
        main(shlex.split(f"serve {line} {more} --json"))
        return json.loads(capsys.readouterr().out)

    moves = answer()["advice"]
    assert moves
    for move in moves:
        assert answer(move["text"])["verdict"]["needed_bytes"] == move["needed_bytes"], move["text"]
