"""Pipelines that a search tries: stages, chunks of each stage, and how Megatron deals out the layers to them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.step.pipeline_layout import ACCOUNTS
from tonnage.estimate.step.rank import split_layers
from tonnage.kernel.errors import InvalidPlan
from tonnage.kernel.formula import ceil_div
from tonnage.runtimes import TrainingRuntime
from tonnage.runtimes.parts.megatron.pipeline import even_layout, parsed_layout

ENDS = ("first_stage_layers", "last_stage_layers")
LAYOUTS = ("pipeline_layout", *ENDS, *ACCOUNTS)  # options that deal out layers
FEWER_CHUNKS = 2  # that the first stage may have less of than the stages between


class Pipeline(Struct, frozen=True):
    """`layout`: the options that deal out the layers; none where the runtime does it by itself."""

    stages: int
    chunks: int
    layout: Mapping[str, Any] = {}


def pipelines(
    model: Model, runtime: TrainingRuntime, o: TrainingOptions, stages: Iterable[int], chunks: Iterable[int] | None
) -> Iterator[Pipeline]:
    """All pipelines on `stages` that a runtime can build. `chunks`: those that are given (None: all); `o`: with the
    names of the choice.

    Chunks belong to several stages: where other numbers of stages are tried too, one stage has one chunk, whatever is
    given.
    """
    stages, every = tuple(stages), None if chunks is None else tuple(chunks)
    searched = "pipeline_layout" in runtime.options and all(getattr(o, name) is None for name in LAYOUTS)
    for p in stages:
        chunk_counts = (1,) if every and p == 1 and max(stages) > 1 else every
        most = (model.num_layers + len(ACCOUNTS)) // p if p > 1 else 1
        for v in chunk_counts or range(1, max(most, 1) + 1):
            if chunk_counts or _is_built(model, runtime, o, p, v):
                yield Pipeline(p, v)
            if searched and p > 1:
                yield from (Pipeline(p, v, layout) for layout in megatron_layouts(model, p, v))


def _is_built(model: Model, runtime: TrainingRuntime, o: TrainingOptions, p: int, v: int) -> bool:
    """Whether a stage can have so many chunks, with the layers as `o` or the runtime deals them out."""
    layers = model.num_layers
    if v == 1:
        return True
    if "pipeline_layout" not in runtime.options or all(getattr(o, name) is None for name in LAYOUTS):
        return p * v <= layers and (layers % (p * v) == 0 or (runtime.splits_chunks and v & (v - 1) == 0))
    if o.pipeline_layout:
        try:
            return len(parsed_layout(o.pipeline_layout, p)[0]) == v
        except InvalidPlan:
            return False
    return _even(layers, p, v, {name: value for name in LAYOUTS if (value := getattr(o, name)) is not None}) is not None


def megatron_layouts(model: Model, p: int, v: int) -> list[dict[str, Any]]:
    """Options that deal out layers in another way than Megatron does by itself, each way once, the simplest first.

    Table and head counted as a layer (--account-for-embedding/loss-in-pipeline-split): each, and both. Or fewer layers
    in the first and the last stage (--decoder-first/last-pipeline-num-layers): those between have from their even share
    of the layers up to their even share when the head counts as the layers that its weights are worth; the first has as
    many, or one or two chunks fewer; the last has the rest.
    """
    layers, layouts = model.num_layers, dict[tuple[int, ...], dict[str, Any]]()
    own = _even(layers, p, v, {}) or (split_layers(model, p) if v == 1 else None)
    for layout in (*_accounted(), *_shorter_ends(model, p, v)):
        layers_of_stages = _even(layers, p, v, layout)
        if layers_of_stages is not None and layers_of_stages != own:
            layouts.setdefault(layers_of_stages, layout)
    return list(layouts.values())


def _accounted() -> Iterator[dict[str, Any]]:
    embedding, loss = ACCOUNTS
    yield {embedding: True}
    yield {loss: True}
    yield {embedding: True, loss: True}


def _shorter_ends(model: Model, p: int, v: int) -> Iterator[dict[str, Any]]:
    layers = model.num_layers
    least, most = (ceil_div(count, p * v) * v for count in (layers, layers + head_layers(model)))
    for middle in range(least, most + 1, v):
        for fewer in range(0, FEWER_CHUNKS * v + 1, v):
            first = middle - fewer
            last = layers - first - (p - 2) * middle
            if first >= v and v <= last <= middle:
                sizes = zip(ENDS, (first, last), strict=True)
                yield {name: size for name, size in sizes if size != middle or (p == 2 and name == ENDS[0])}


def head_layers(model: Model) -> int:
    """Layers that the output layer is worth: its weights over those of a layer that one token passes, rounded up."""
    main = model.decoder
    every = zip(main.blocks, main.counts(), strict=True)
    weights = sum(weight.num_active_parameters * count for block, count in every for weight in block.weights())
    return int(ceil_div(model.vocab_size * main.hidden_size * main.num_layers, max(weights, 1)))


def chunks_of(model: Model, p: int, v: int, o: TrainingOptions) -> tuple[int, ...] | None:
    """Layers of each virtual stage where options of Megatron deal them out; None where they do not, or cannot."""
    layout = {name: value for name in (*ENDS, *ACCOUNTS) if (value := getattr(o, name)) is not None}
    return _even(model.num_layers, p, v, layout) if layout and o.pipeline_layout is None else None


def _even(layers: int, p: int, v: int, layout: Mapping[str, Any]) -> tuple[int, ...] | None:
    """Layers of each virtual stage in the order in which a token passes them; None where Megatron cannot split them
    so.
    """
    first, last = (layout.get(name) for name in ENDS)
    embedding, loss = (bool(layout.get(name)) for name in ACCOUNTS)
    try:
        rows = even_layout(layers, p, v, first, last, embedding, loss)
    except InvalidPlan:
        return None
    layers_of_chunks = tuple(row[index].layers for index in range(v) for row in rows)
    return layers_of_chunks if min(layers_of_chunks) >= 0 and sum(layers_of_chunks) == layers else None


def with_choices(options: TrainingOptions, choices: Mapping[str, Any]) -> TrainingOptions:
    """The options that were given, with the names of a choice."""
    return replace(options, **choices)
