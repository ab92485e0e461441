"""Embedding models, rerankers and speech: what is answered, what is refused, and how one figure follows another."""

import pytest
from msgspec import UNSET

import tonnage
from tonnage.estimate.serving_time.encoding import Pass, encoder, host_of
from tonnage.estimate.serving_time.encoding_rates import encoding_rates
from tonnage.estimate.serving_time.speech import speech, windows_of
from tonnage.kernel.errors import InvalidPlan, NotApplicable
from tonnage.models import read
from tonnage.models.purpose import is_encoder, purpose
from tonnage.spec import ServingPlan


def encoded(model, on="l4", **options):
    return tonnage.serve(model, on=on, **options).serving.encoded


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("bge-m3", "embed"),
        ("qwen3-embedding-8b", "embed"),
        ("gte-qwen2-7b-instruct", "embed"),
        ("bge-en-icl", "embed"),
        ("gte-modernbert-base", "embed"),
        ("bge-reranker-v2-m3", "rerank"),
        ("qwen3-reranker-0.6b", "rerank"),
        ("whisper-large-v3", "transcribe"),
        ("distil-large-v3", "transcribe"),
        ("llama-3.1-8b", "generate"),
        ("qwen3-8b", "generate"),
        ("t5-base", "generate"),
    ],
)
def test_what_a_model_is_for(name, found):
    model = read(name)
    assert purpose(model) == found
    assert is_encoder(model) == (name.startswith(("bge-m3", "bge-reranker", "gte-modernbert")))


def test_tokens_and_money_follow_from_documents_a_second():
    answer = tonnage.serve("bge-m3", on="l4", engine="tei", input_tokens=256, documents=10_000_000)
    figures = answer.serving.encoded
    rate = figures.per_second.value
    assert figures.tokens_per_second.value == pytest.approx(256 * rate)
    assert figures.total_seconds.value == pytest.approx(1e7 / rate)
    hour = answer.bill.cost.value
    assert answer.serving.cost_per_million_tokens.value == pytest.approx(hour / 3600 / (256 * rate) * 1e6)
    assert figures.total_cost.value == pytest.approx(hour * 1e7 / rate / 3600)
    assert figures.cost_per_million.value == pytest.approx(hour / 3600 / rate * 1e6)
    assert figures.at_once == 16384 // 256


def test_an_encoder_holds_no_cache_and_has_no_tokens_of_answers():
    answer = tonnage.serve("bge-m3", on="l4")
    assert answer.serving.kv_bytes_per_token.value == 0
    assert "output_tokens" not in answer.question
    assert not answer.serving.tpot_seconds and not answer.serving.ttft_seconds


def test_longer_documents_take_longer_and_fewer_pass():
    short, long = (encoded("bge-m3", input_tokens=tokens) for tokens in (128, 2048))
    assert short.per_second.value > 10 * long.per_second.value
    assert short.seconds.value < long.seconds.value


def test_replicas_share_what_one_accelerator_holds():
    one, eight = (encoded("qwen3-reranker-0.6b", on) for on in ("h100", "8xh100"))
    assert eight.per_second.value == pytest.approx(8 * one.per_second.value, rel=1e-6)


def test_a_rate_beyond_what_is_done_is_not_served():
    slow, fast = (tonnage.serve("bge-m3", on="l4", request_rate=rate) for rate in (10, 10_000))
    assert slow.serving.encoded.busy.value < 1 and not slow.unserved
    assert fast.unserved == "the queue grows without end"


def test_speech_is_times_real_time():
    answer = tonnage.serve("whisper-large-v3", on="t4", audio_seconds="1h", documents=1000)
    figures = answer.serving.encoded
    assert figures.item == "files" and answer.question["engine"].value == "faster-whisper"
    assert figures.seconds.value == pytest.approx(3600 / figures.per_second.value)
    assert figures.total_seconds.value == pytest.approx(1000 * figures.seconds.value)
    assert figures.band[0] < figures.per_second.value < figures.band[1]


def test_more_windows_at_once_write_more_speech_down():
    one, many = (encoded("whisper-large-v3", "a100-80gb", concurrency=users) for users in (1, 16))
    assert many.per_second.value > 2 * one.per_second.value


def test_a_smaller_whisper_is_faster():
    rates = [encoded(f"whisper-{size}", "t4").per_second.value for size in ("tiny", "small", "medium", "large-v3")]
    assert rates == sorted(rates, reverse=True)


def test_weights_of_32_bits_are_halved_where_the_engine_does_so():
    halved, whole = (
        tonnage.serve("bge-large-en-v1.5", on="l4", engine=engine) for engine in ("vllm", "sentence-transformers")
    )
    assert halved.question["weights"].value == "fp16" and whole.question["weights"].value == "fp32"


@pytest.mark.parametrize(
    ("model", "options", "said"),
    [
        ("bge-m3", {"output_tokens": 4}, "output_tokens is not of bge-m3, which embeds documents"),
        ("bge-m3", {"audio_seconds": 60}, "audio_seconds is not of bge-m3"),
        ("whisper-large-v3", {"input_tokens": 4}, "input_tokens is not of whisper-large-v3, which writes speech down"),
        ("llama-3.1-8b", {"documents": 4}, "documents is not of llama-3.1-8b, which generates text"),
    ],
)
def test_options_of_other_kinds_of_models_are_refused(model, options, said):
    with pytest.raises(NotApplicable, match=said):
        tonnage.serve(model, on="h100", **options)


@pytest.mark.parametrize(
    ("model", "engine", "said"),
    [
        ("bge-m3", "tgi", "serves no models that embed documents.*Engines that do: vllm, .*tei"),
        ("llama-3.1-8b", "tei", "serves no models that generate text"),
        ("whisper-small", "sglang", "serves no models that write speech down.*faster-whisper"),
    ],
)
def test_an_engine_that_does_not_serve_the_kind_names_those_that_do(model, engine, said):
    with pytest.raises(InvalidPlan, match=said):
        tonnage.serve(model, on="h100", engine=engine)


def test_what_nobody_published_has_no_speed_and_says_why():
    answer = tonnage.serve("whisper-large-v3", on="h100", engine="vllm")
    assert not answer.serving.encoded
    assert any("no published rows say how fast vllm writes speech down" in note for note in answer.warnings)


def test_scores_in_memory_cost_time_that_fused_attention_saves():
    rates = encoding_rates()
    plan = ServingPlan.of_fields(
        context=512, concurrency=8, engine="transformers", weights="fp16", tensor_parallel_size=1
    )
    from tonnage.catalogue import cluster

    one, load = encoder(read("bge-m3"), plan, cluster("l4")), Pass(tokens=8 * 512, keys=512)
    assert one.seconds(load, rates.encoders["unfused"]) > one.seconds(load, rates.encoders["eager"])


@pytest.mark.parametrize(
    "options",
    [
        {"speculative": "ngram"},
        {"draft_tokens": 4},
        {"acceptance": 0.5},
        {"kv_offload": "host"},
        {"lora_adapters": 4},
        {"prefill_replicas": 2},
        {"kv_transfer": "nixl"},
    ],
)
def test_options_of_decoding_are_refused_where_nothing_is_decoded(options):
    (name,) = options
    with pytest.raises(NotApplicable, match=f"{name} is not of bge-m3, which embeds documents"):
        tonnage.serve("bge-m3", on="l4", **options)


def test_adapters_of_a_decoder_that_embeds_take_time():
    plain, adapted = (encoded("qwen3-embedding-8b", "h100", lora_adapters=held) for held in (None, 4))
    assert adapted.per_second.value < plain.per_second.value


def test_max_num_seqs_bounds_the_documents_of_a_pass():
    assert encoded("bge-m3", max_num_seqs=1).at_once == 1
    assert encoded("bge-m3", max_num_seqs=2, concurrency=64).at_once == 2
    assert encoded("bge-m3", max_num_seqs=1000).at_once == encoded("bge-m3").at_once


def test_one_window_at_a_time_names_what_a_batch_of_windows_gives():
    one = tonnage.serve("whisper-large-v3", on="l4", audio_seconds="1h", documents=10_000)
    many = encoded("whisper-large-v3", audio_seconds="1h", documents=10_000, concurrency=16)
    (note,) = [note for note in one.warnings if "one window at a time" in note]
    assert "--users 16" in note and f"-> {many.total_cost.value:.0f} USD" in note
    given = tonnage.serve("whisper-large-v3", on="l4", audio_seconds="1h", concurrency=1)
    short = tonnage.serve("whisper-large-v3", on="l4", audio_seconds=30)
    assert not any("one window at a time" in note for note in (*given.warnings, *short.warnings))


def test_the_start_line_imports_the_batched_pipeline_where_it_is_used():
    one, many = (
        tonnage.serve("whisper-large-v3", on="l4", audio_seconds="1h", concurrency=users).serving.launch
        for users in (1, 16)
    )
    assert "BatchedInferencePipeline" not in one and many.count("BatchedInferencePipeline") == 2


def test_vllm_takes_no_more_windows_than_fit():
    answer = tonnage.serve("whisper-large-v3", on="l4", engine="vllm", audio_seconds="1h", advice=False)
    at_once = answer.question["concurrency"].value
    more = tonnage.serve("whisper-large-v3", on="l4", engine="vllm", concurrency=at_once + 1, advice=False)
    assert answer.band[1] <= answer.usable_bytes < more.band[1]


@pytest.mark.parametrize(
    ("on", "host"), [("rtx-4090", "desktop"), ("h100", "server"), ("t4", "small server"), ("a10", "server")]
)
def test_the_host_of_an_accelerator(on, host):
    from tonnage.catalogue import cluster

    assert host_of(cluster(on).accelerator) == host


def test_windows_of_a_file_that_overlap_are_more():
    assert (windows_of(10), windows_of(30), windows_of(90), windows_of(90, advance=20)) == (1, 1, 3, 4)


def test_a_batch_of_windows_decodes_until_its_longest_text_ends():
    from tonnage.catalogue import cluster

    plan = ServingPlan.of_fields(
        context=448, concurrency=1, engine="faster-whisper", weights="fp16", tensor_parallel_size=1
    )
    one = speech(read("whisper-large-v3"), plan, cluster("a100-80gb"))
    rates = encoding_rates().speech["faster-whisper"]
    assert one.steps(1, 100, rates) == 100 < one.steps(2, 100, rates) < one.steps(16, 100, rates)
    assert one.encode_seconds(1, rates.fused()) < one.encode_seconds(1, rates)
    greedy, beams = (one.step_seconds(1, count, 100, rates) for count in (1, 5))
    assert greedy < beams < 2 * greedy


def test_engines_of_too_few_rows_have_no_band():
    answer = encoded("whisper-large-v3", "a100-80gb", engine="transformers", audio_seconds="1h")
    one = encoded("whisper-large-v3", "a100-80gb", engine="openai-whisper", audio_seconds="1h")
    assert answer.band is UNSET and one.band[0] < one.per_second.value < one.band[1]


def test_layers_of_an_encoder_on_several_accelerators_take_as_long_as_on_one():
    """llama.cpp puts layers on all accelerators, which a document passes one after the other."""
    one, eight = (tonnage.serve("bert-base-uncased", on, engine="llama.cpp", advice=False) for on in ("T4G", "8xT4G"))
    assert eight.serving.encoded.per_second.value == pytest.approx(one.serving.encoded.per_second.value, rel=0.01)
