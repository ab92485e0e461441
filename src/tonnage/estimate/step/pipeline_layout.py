"""Layers of the chunks of a pipeline: those that are said, and those of the runtime's own split."""

import re
from functools import lru_cache

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.plan.rule import divisors, near, near_sizes
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.step.rank import Stage, split_layers
from tonnage.kernel.errors import InvalidPlan, NotApplicable, shown
from tonnage.kernel.message import Message, joined, option_name
from tonnage.ops import Embedding
from tonnage.runtimes import TrainingRuntime, runtimes_with
from tonnage.runtimes.parts.megatron.pipeline import Chunk, even_layout, parsed_layout
from tonnage.spec import TrainingPlan

# ---- Releases of frameworks, as a user names them in `runtime_version`: "transformers 4.39.3", "4.39" or "4.39,
# accelerate 0.29".

Release = tuple[int, int]


def release_of(text: str, name: str, newest: Release) -> Release:
    """The release of `name`, or of what is named first without a name; `newest` where none is."""
    match = re.search(rf"{name}[ =-]*v?(\d+)\.(\d+)", text, re.IGNORECASE) or re.match(r"\s*v?(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else newest


# ---- Layers of multi-token prediction on the stages of a pipeline.


@lru_cache(maxsize=256)
def with_predictions(split_stages: tuple[Stage, ...], model: Model, depths: int) -> tuple[Stage, ...]:
    """The stages with `depths` prediction layers on the last one, and there a copy of the embedding if it is another
    than the first.

    Even splits leave them out: the last stage has its decoder layers and all of them (Megatron-core,
    multi_token_prediction.py, get_mtp_num_layers_to_build). A tied head beside such a copy has its own weight all the
    same (gpt_model.py: its allocation is skipped on the first stage alone).
    """
    if not depths:
        return split_stages
    from tonnage.runtimes.parts.megatron.prediction import FinalNorm, final_norm, prediction

    last, layer, norm = split_stages[-1], prediction(model), final_norm(model)
    first = (FinalNorm(norm.name, (norm,)),) if norm is not None else ()
    table = (
        ()
        if last.rank == 0
        else (
            Embedding(
                name="embed_tokens (copy for multi-token prediction)",
                num_embeddings=model.vocab_size,
                width=model.hidden_size,
            ),
        )
    )
    with_layers = replace(
        last,
        before=last.before + table,
        layers=(*last.layers, *((block, 1) for block in first), (layer, depths)),
        order=(*last.order, *first, *(layer,) * depths),
        after=tuple(op for op in last.after if op is not norm),
    )
    return (*split_stages[:-1], with_layers)


ACCOUNTS = ("account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split")
LONGEST = 4096  # characters of a layout
MAX_CHUNKS = 4096  # chunks


def takes_unequal_chunks(runtime: TrainingRuntime, layers: int, chunks: int, o: TrainingOptions) -> bool:
    """Whether what is said, or the runtime's own split, gives each chunk a number of layers that need not be the
    same.
    """
    if "pipeline_layout" in runtime.options:
        return o.pipeline_layout is not None or any(getattr(o, name) for name in ACCOUNTS) or _says_ends(o)
    return runtime.splits_chunks and layers >= chunks


def said_chunks(model: Model, runtime: TrainingRuntime, sizes: dict[str, int], o: TrainingOptions) -> tuple[int, ...]:
    """Layers of each virtual stage, in the order in which a token passes them; empty where the runtime splits by
    itself.

    Sources: Megatron-core, transformer_block.py: get_num_layers_to_build; pipeline_parallel_layer_layout.py.
    """
    p, v = sizes["pipeline_parallel_size"], sizes["virtual_pipeline_size"]
    declared = {name: getattr(o, name) for name in ("pipeline_layout", *ACCOUNTS) if getattr(o, name)}
    name, value = next(((name, value) for name, value in declared.items() if name not in runtime.options), ("", None))
    if name:
        raise NotApplicable(
            Message(
                "runtime {runtime} has no {name}: leave it out. {runtimes_with} has it. Got {value}.",
                runtime=runtime.name,
                name=option_name(name),
                runtimes_with=runtimes_with(name),
                value=shown(value),
            ),
            name,
            ("runtime",),
        )
    if declared and p == 1:
        name = next(iter(declared))
        raise NotApplicable(
            Message(
                "{name} is of a pipeline: {@pipeline_parallel_size} must be above 1. Got 1.", name=option_name(name)
            ),
            name,
            ("pipeline_parallel_size",),
        )
    if o.pipeline_layout:
        return _of_layout(model, p, v, o)
    if declared or (v > 1 and runtime.split == "even" and _says_ends(o)):
        return _in_order(_even(model, sizes, o))
    return ()


def chunk_layers(model: Model, runtime: TrainingRuntime, plan: TrainingPlan) -> tuple[int, ...]:
    """Layers of each virtual stage of a plan: as it says, or as the runtime splits ranks or, where it deals them out,
    chunks.

    The chunks of a rank are alike in an even split, as Megatron-core has it (transformer_block.py:
    get_num_layers_to_build).
    """
    if plan.layout.chunk_layers:
        return plan.layout.chunk_layers
    p, v = plan.pipeline_parallel_size, plan.virtual_pipeline_size
    ends = plan.layout.first_stage_layers, plan.layout.last_stage_layers
    if runtime.splits_chunks or plan.pipeline_schedule == "dualpipe":
        return split_layers(model, p * v, runtime.split, *ends)
    per_rank = split_layers(model, p, runtime.split, *ends)
    return tuple(size // v for size in per_rank) * v if runtime.split == "even" else per_rank


def _says_ends(o: "TrainingOptions") -> bool:
    return o.first_stage_layers is not None or o.last_stage_layers is not None


def _even(model: Model, sizes: dict[str, int], o: TrainingOptions) -> tuple[tuple[Chunk, ...], ...]:
    """As Megatron splits what the ends leave; the error says which size to change, and the nearest that can be
    split.
    """
    p, v = sizes["pipeline_parallel_size"], sizes["virtual_pipeline_size"]
    with_embedding, with_loss = (bool(getattr(o, name)) for name in ACCOUNTS)
    layers = {"first": o.first_stage_layers, "last": o.last_stage_layers}

    def rows(stages: int, **ends: int | None) -> tuple[tuple[Chunk, ...], ...]:
        return even_layout(
            model.num_layers, stages, v, **layers | ends, with_embedding=with_embedding, with_loss=with_loss
        )

    def splits(stages: int, **ends: int | None) -> bool:
        try:
            return all(chunk.layers >= 0 for row in rows(stages, **ends) for chunk in row)
        except InvalidPlan:
            return False

    try:
        return rows(p)
    except InvalidPlan as error:
        ends = {end: size for end, size in layers.items() if size is not None}
        of_ends = range(1, model.num_layers + 1)
        for some_ends in [*({end: size} for end, size in ends.items()), *([ends] if len(ends) > 1 else [])]:
            if nearest := near_sizes(some_ends, of_ends, lambda some: splits(p, **some)):
                names = joined(" x ", (option_name(f"{end}_stage_layers") for end in some_ends))
                values = " x ".join(map(str, some_ends.values()))
                raise InvalidPlan(
                    "{names} {values}: {error} Nearest: {nearest}.",
                    names=names,
                    values=values,
                    error=error,
                    nearest=nearest,
                ) from None
        stages = [n for n in divisors(p * sizes["data_parallel_size"]) if 1 < n <= model.num_layers and splits(n)]
        nearest = near(p, stages) if stages else "a number of accelerators that such stages divide"
        raise InvalidPlan(
            "{@pipeline_parallel_size} {p}: {error} Nearest: {nearest}.", p=p, error=error, nearest=nearest
        ) from None


def _of_layout(model: Model, p: int, v: int, o: TrainingOptions) -> tuple[int, ...]:
    text = str(o.pipeline_layout)
    if _says_ends(o) or any(getattr(o, name) for name in ACCOUNTS):
        raise InvalidPlan(
            Message(
                "{@pipeline_layout} says all: leave out {@first_stage_layers}, {@last_stage_layers} and account_for_*."
            )
        )
    if len(text) > LONGEST or any(int(number) > MAX_CHUNKS for number in _numbers(text)):
        raise InvalidPlan(
            "{@pipeline_layout} has at most {longest:,} characters and {most:,} chunks. Got {text}.",
            longest=LONGEST,
            most=MAX_CHUNKS,
            text=shown(text),
        )
    rows = parsed_layout(text, p)
    chunks = _in_order(rows)
    if len(rows[0]) != v:
        raise InvalidPlan(
            "{@virtual_pipeline_size} must be {count} for the {count2} stages of {@pipeline_layout} "
            "over {p} ranks. Got {v}.",
            count=len(rows[0]),
            count2=len(chunks),
            p=p,
            v=v,
        )
    if sum(chunks) != model.num_layers:
        raise InvalidPlan(
            "{@pipeline_layout} must have the {num_layers} layers of {model}, a t for each. Got {made}.",
            num_layers=model.num_layers,
            model=model.name,
            made=sum(chunks),
        )
    drafts = sum(chunk.draft_layers for row in rows for chunk in row)
    if drafts != (o.mtp_layers or 0):
        raise InvalidPlan(
            "{@pipeline_layout} must have an m for each of {@mtp_layers}, {mtp_layers}. Got {drafts}.",
            mtp_layers=o.mtp_layers or 0,
            drafts=drafts,
        )
    if not rows[0][0].embedding or not rows[-1][-1].loss:
        raise InvalidPlan(
            "{@pipeline_layout} must begin with the embedding E and end with the loss L. Got {text}.",
            text=shown(text),
        )
    return chunks


def _in_order(rows: tuple[tuple[Chunk, ...], ...]) -> tuple[int, ...]:
    return tuple(row[index].layers for index in range(len(rows[0])) for row in rows)


def _numbers(text: str) -> list[str]:
    return "".join(letter if letter.isascii() and letter.isdigit() else " " for letter in text).split()
