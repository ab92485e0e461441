"""Command lines that the brute force found, kept as they were printed."""

import shlex

import pytest

import tonnage
from brute.check import run_case

FOUND = [
    # a prompt's share of a pass was taken off a context that is shorter: a cache of -4,095 tokens
    ("serve llama-3.1-8b --on apple-m5-16gb --max-num-batched-tokens 4096 --weights tf32 --json --no-advice", 3),
    # the prompt is longer than any context that is tried: an IndexError
    ("max context --serve roberta-base --on 2x8xmi355x --engine ollama --kv-cache nvfp4 --input-tokens 2147483648", 64),
    ("max context --serve llama-3.1-8b --on rtx-4090 --input-tokens 2147483648", 3),
    # more weights in host memory than there are: the difference is named
    ("serve t5-large --on apple-m3-max-64gb --engine vllm --weights-on-host 1GiB --no-advice --json", 0),
]


@pytest.mark.parametrize(("line", "status"), FOUND)
def test_what_was_found_ends_without_a_fault(line, status):
    outcome = run_case(tuple(shlex.split(line)))
    assert (outcome.status, outcome.faults) == (status, [])


def test_a_pass_that_may_take_more_tokens_than_the_context_has_needs_no_less_cache():
    """The answers' part of the cache is nothing then, not less than nothing."""
    for tokens in (512, 2048, 8192):
        answer = tonnage.serve(
            "llama-3.1-8b",
            on="H100-SXM-80GB",
            engine="transformers",
            context=1024,
            max_num_batched_tokens=tokens,
            concurrency=2,
        )
        activations = answer.memory.child("activations").value
        assert activations >= 0
    assert activations > 0


@pytest.mark.parametrize("tokens", [2**30, 2**31])
def test_the_longest_context_beside_a_prompt_that_is_longer_than_any_is_told_to_not_fit(tokens):
    found = tonnage.maximum("context", "llama-3.1-8b", on="rtx-4090", input_tokens=tokens, advice=False).to_dict()
    assert found["value"] is None
    assert found["beyond"]["value"] > tokens
