"""Options of the load of a served model, and of its service level."""

from typing import Annotated

from tonnage.question.forms import count, length, number, ranged, size, timed, word
from tonnage.question.option import LOAD, Options, Usual, described, option


@described
class LoadOptions(Options, frozen=True, kw_only=True):
    """Options of the load on a served model; None is the default, which `answer.question` names.

    `concurrency` (users) is an option of serving: give it or a rate.
    """

    input_tokens: Annotated[
        int | None,
        option(
            "tokens of a prompt",
            length,
            short=("--input", "--input-len"),
            unit="tokens",
            default="1024, at most 3/4 of the context",
            usual=Usual(LOAD, "tokens of a prompt", "TOKENS", "1024, or 3/4 of the context"),
        ),
    ] = None
    output_tokens: Annotated[
        int | None,
        option(
            "tokens of an answer",
            length,
            short=("--output", "--output-len"),
            unit="tokens",
            default="1024, at most what the context leaves",
            usual=Usual(LOAD, "tokens of an answer", "TOKENS", "1024, or what is left"),
        ),
    ] = None
    images: Annotated[
        int | None,
        option(
            "images of each request; their tokens come on top of --input-tokens, by the model's own rule",
            size,
            unit="images",
            default="none",
        ),
    ] = None
    image_size: Annotated[
        str | None,
        option(
            "pixels of each image and of each frame of a video, width x height, such as 1920x1080",
            word,
            unit="WxH",
            default="1024x1024",
        ),
    ] = None
    video_seconds: Annotated[
        float | str | None,
        option(
            "video of each request, such as 60s, of frames of --image-size; its tokens come on top of --input-tokens, "
            "by the model's own rule. Its sound is --audio-seconds",
            timed,
            short=("--video",),
            unit="time",
            default="none",
        ),
    ] = None
    video_fps: Annotated[
        float | None,
        option(
            "frames a second that the model sees of the video",
            number,
            unit="frames/s",
            default="the processor's: 2 of Qwen-VL and GLM-4V, 32 frames in all of others",
        ),
    ] = None
    documents: Annotated[
        int | None,
        option(
            "documents to embed, pairs to score or files of speech to write down, such as 10M: time and price of all",
            size,
            short=("--pairs", "--files"),
            unit="documents",
        ),
    ] = None
    audio_seconds: Annotated[
        float | str | None,
        option(
            "sound of each request, such as 30s, whose tokens come on top of --input-tokens; of a speech model the "
            "length of a file",
            timed,
            short=("--audio",),
            unit="time",
            default="none; 600 of a speech model",
        ),
    ] = None
    request_rate: Annotated[
        float | None,
        option(
            "requests that arrive by themselves at all replicas together, instead of --concurrency",
            number,
            short=("--rate",),
            unit="requests/s",
            usual=Usual(LOAD, "requests a second, instead of --users", "N"),
        ),
    ] = None
    cached_tokens: Annotated[
        int | None,
        option(
            "of a prompt that the engine has already (prefix caching)",
            ranged(count, "from 0 to 1,099,511,627,776"),
            short=("--cached",),
            unit="tokens",
            default="0",
        ),
    ] = None
    cache_hit_rate: Annotated[
        float | None,
        option(
            "share of the tokens of prompts that the prefix cache has already, instead of --cached-tokens",
            number,
            short=("--prefix-cache-hit-rate",),
            unit="0 to 1",
            default="0",
        ),
    ] = None
    prefill_replicas: Annotated[
        int | None,
        option(
            "of the replicas, those that compute prompts alone, whose caches go to the others (disaggregated)",
            size,
            unit="replicas",
            default="all do both",
        ),
    ] = None
    kv_transfer: Annotated[
        str | None,
        option(
            "what carries caches from prefill to decode replicas: nixl, mooncake, mori, ucx, mpi",
            word,
            unit="name",
            default="the engine's own: nixl of vllm and tensorrt-llm, mooncake of sglang",
            known=("nixl", "mooncake", "mori", "ucx", "mpi"),
        ),
    ] = None
    spread: Annotated[
        float | None,
        option(
            "lengths are uniform from (1 - spread) of --input-tokens and --output-tokens to these",
            number,
            unit="0 to 1",
            default="alike on average; 0: all alike, as of a benchmark whose users stay in step",
        ),
    ] = None
    burstiness: Annotated[
        float | None,
        option(
            "of arrivals, as of `vllm bench serve`: 1 is Poisson's, less comes in bursts, more comes evenly",
            number,
            unit="factor",
            default="1",
        ),
    ] = None
    trace: Annotated[
        str | None,
        option(
            "requests of a file, CSV or JSON lines: when each came, and how long it is; they are simulated",
            word,
            unit="file",
        ),
    ] = None
    ttft: Annotated[
        float | str | None,
        option(
            "highest TTFT allowed (time to first token), such as 500ms",
            timed,
            unit="time",
            usual=Usual(LOAD, "the longest time to first token, such as 500ms", "TIME"),
        ),
    ] = None
    tpot: Annotated[
        float | str | None,
        option(
            "highest TPOT allowed (time per output token), such as 30ms",
            timed,
            unit="time",
            usual=Usual(LOAD, "the longest time per output token, such as 30ms", "TIME"),
        ),
    ] = None
    percentile: Annotated[
        str | None,
        option(
            "of the requests that must keep within --ttft and --tpot: mean, p50, p90 or p99",
            word,
            unit="name",
            default="mean; others are simulated",
            choices=("mean", "p50", "p90", "p99"),
        ),
    ] = None
    simulate: Annotated[bool | None, option("request by request, with percentiles", default="off")] = None
    num_requests: Annotated[
        int | None,
        option(
            "requests of the simulation",
            size,
            short=("--num-prompts",),
            unit="requests",
            default="ten for each user, at least 100; 10,000 that arrive by themselves",
        ),
    ] = None
    seed: Annotated[
        int | None,
        option(
            "of the simulation's lengths and arrivals",
            ranged(count, "from 0 to 4,294,967,295"),
            unit="number",
            default="0",
        ),
    ] = None
    price_per_accelerator_hour: Annotated[
        float | None,
        option("price of one accelerator for one hour", number, unit="USD", default="the cheapest offer known"),
    ] = None
