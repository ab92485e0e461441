"""Of a training run: its batches, and how the model is divided over the accelerators."""

from typing import Annotated

from tonnage.question.forms import length, ranged, size, whole, word
from tonnage.question.option import Options, option


class Parallelism(Options, frozen=True, kw_only=True):
    """Batches and parallel sizes: the first part of TrainingOptions."""

    sequence_length: Annotated[
        int | None,
        option(
            "tokens of a sequence; 32k is 32768",
            length,
            short=("--seq",),
            unit="tokens",
            default="the model's context, at most 4096",
        ),
    ] = None
    micro_batch_size: Annotated[
        int | None,
        option("sequences of one forward pass of one replica", size, short=("--mbs",), unit="sequences", default="1"),
    ] = None
    global_batch_size: Annotated[
        int | None, option("sequences of one step of all replicas", size, short=("--gbs",), unit="sequences")
    ] = None
    num_microbatches: Annotated[
        int | None,
        option("micro-batches of one replica in a step", size, unit="micro-batches", default="pipeline stages"),
    ] = None
    tensor_parallel_size: Annotated[
        int | None, option("ranks that share each matrix", size, short=("--tp",), unit="ranks", default="1")
    ] = None
    sequence_parallel: Annotated[
        bool | None, option("cut norms and residuals over tensor ranks", default="on with tensor parallelism")
    ] = None
    pipeline_parallel_size: Annotated[
        int | None, option("pipeline stages", size, short=("--pp",), unit="ranks", default="1")
    ] = None
    virtual_pipeline_size: Annotated[
        int | None, option("interleaved chunks on each stage", size, short=("--vpp",), unit="chunks", default="1")
    ] = None
    pipeline_schedule: Annotated[
        str | None,
        option(
            "gpipe, 1f1b, interleaved-1f1b, interleaved-zero-bubble, zbv or dualpipev, as the runtime has them",
            word,
            unit="name",
            default="1f1b, interleaved with several chunks",
            choices=(
                "gpipe",
                "1f1b",
                "interleaved-1f1b",
                "interleaved-zero-bubble",
                "zbv",
                "dualpipev",
                "zb-h1",
                "dualpipe",
            ),
        ),
    ] = None
    context_parallel_size: Annotated[
        int | None, option("ranks that share a sequence", size, short=("--cp",), unit="ranks", default="1")
    ] = None
    expert_parallel_size: Annotated[
        int | None, option("ranks that share a layer's experts", size, short=("--ep",), unit="ranks", default="1")
    ] = None
    expert_tensor_parallel_size: Annotated[
        int | None,
        option(
            "ranks that share an expert",
            size,
            short=("--etp",),
            unit="ranks",
            default="tensor_parallel_size, or 1 with experts spread",
        ),
    ] = None
    data_parallel_size: Annotated[
        int | None,
        option(
            "replicas that see different sequences",
            size,
            short=("--dp",),
            unit="ranks",
            default="the rest of the cluster",
        ),
    ] = None
    zero_stage: Annotated[
        int | None,
        option(
            "what data-parallel ranks shard: 0 nothing, 1 optimizer, 2 and gradients, 3 and weights",
            ranged(whole, "from 0 to 3"),
            short=("--zero",),
            unit="stage",
            default="the runtime's own",
        ),
    ] = None
