"""A prefix cache by its hit rate: as tokens of the prompt, with what the KV cache keeps beside the running requests."""

import pytest

import tonnage
from every_row import every_row
from tonnage.kernel.errors import InvalidInput, InvalidPlan
from tonnage.runtimes import serving_runtime, serving_runtimes

SAID = {"input_tokens": 8000, "output_tokens": 400, "concurrency": 16}


def ask(**options):
    return tonnage.serve("llama-3.1-8b", on="h100", **{**SAID, **options})


def times(answer):
    serving = answer.serving
    return [getattr(serving, name).value for name in ("ttft_seconds", "tpot_seconds", "tokens_per_second")]


def test_a_hit_rate_is_that_share_of_the_prompts_tokens():
    by_rate, by_tokens = ask(cache_hit_rate=0.6), ask(cached_tokens=4800)
    assert by_rate.question["cached_tokens"].value == 4800
    assert times(by_rate) == pytest.approx(times(by_tokens))


def test_more_hits_mean_a_shorter_wait_and_more_tokens_a_second():
    waits, rates = [], []
    for rate in (0, 0.3, 0.6, 0.9):
        ttft, _, throughput = times(ask(cache_hit_rate=rate))
        waits.append(ttft)
        rates.append(throughput)
    assert waits == sorted(waits, reverse=True)
    assert rates == sorted(rates)
    assert times(ask(cache_hit_rate=0)) == pytest.approx(times(ask()))


def test_the_last_token_of_a_prompt_is_always_computed():
    assert ask(input_tokens=10, cache_hit_rate=0.99999).question["cached_tokens"].value == 9


def test_a_note_says_how_many_prefixes_stay_cached():
    def kept(**options):
        (note,) = (each for each in ask(cache_hit_rate=0.6, **options).warnings if "prefixes of 4,800 tokens" in each)
        return int(note.partition("keeps ")[2].partition(" ")[0].replace(",", ""))

    assert kept(concurrency=4) > kept(concurrency=16) > 0


REFUSED = [
    ({"cache_hit_rate": 1.0}, InvalidInput, "less than 1"),
    ({"cache_hit_rate": -0.1}, InvalidInput, "at least 0"),
    ({"cache_hit_rate": 0.5, "cached_tokens": 100}, InvalidInput, "give one"),
    ({"cache_hit_rate": 0.5, "engine": "transformers"}, InvalidPlan, "caches no prefixes by default"),
    ({"cache_hit_rate": 0.5, "engine_version": "0.6.4"}, InvalidPlan, "caches no prefixes by default"),
]


@every_row(("options", "kind", "text"), REFUSED, at_least=5)
def test_what_is_no_hit_rate_is_refused(options, kind, text):
    with pytest.raises(kind, match=text):
        ask(**options)


def test_engines_that_cache_prefixes_say_where_that_stands():
    having = [name for name in serving_runtimes() if serving_runtime(name).prefix_caching]
    assert {"vllm", "sglang", "tensorrt-llm", "llama.cpp", "ollama"} <= set(having)
    assert not {"transformers", "gpt-fast"} & set(having)
