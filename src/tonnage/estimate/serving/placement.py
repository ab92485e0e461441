"""Where a replica's layers are: on which accelerator, or in host memory; with drafts where the model makes its own."""

from functools import lru_cache
from itertools import pairwise

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.step.rank import Stage, stages
from tonnage.kernel.errors import InvalidPlan
from tonnage.kernel.units import counted
from tonnage.ops import Embedding, Head
from tonnage.runtimes import ServingRuntime
from tonnage.spec import Accelerator, ServingPlan

DRAFT, OWN_LAYERS, LOOKUP, SUFFIX = "draft", "mtp", "ngram", "suffix"
WEIGHTLESS = (LOOKUP, SUFFIX)  # what was written before says what follows
# weights of their own that read the model's hidden states; the last three guess all tokens in one pass
HEADS = ("eagle3", "eagle", "medusa", "p-eagle", "dflash")
AT_ONCE = HEADS[2:]


def way_to_draft(model: Model, speculative: str | None, draft_model: str | None) -> str:
    """The method: as it is said, else what the model has."""
    if speculative:
        return speculative
    if draft_model:
        return DRAFT
    return OWN_LAYERS if has_own_layers(model) else LOOKUP


def has_own_layers(model: Model) -> bool:
    """Whether it has layers of multi-token prediction."""
    return any(branch.kind == "draft" for branch in model.branches)


def uses_own_layers(model: Model, plan: ServingPlan) -> bool:
    """Whether the model's own layers draft in this plan."""
    drafting = plan.drafting
    return (
        drafting.draft_tokens > 0
        and has_own_layers(model)
        and way_to_draft(model, drafting.speculative, drafting.draft_model) == OWN_LAYERS
    )


def has_host(engine: ServingRuntime, accelerator: Accelerator | None) -> bool:
    """Whether the engine keeps the token table in host memory, beside an accelerator that has its own."""
    return engine.cells is not None and engine.cells.host_table and (accelerator is None or accelerator.kind != "cpu")


def placed(
    model: Model, plan: ServingPlan, engine: ServingRuntime, accelerator: Accelerator | None
) -> tuple[tuple[Stage, ...], Stage | None]:
    """The stages of the accelerators, and what is in host memory: layers that do not fit, and the token table under
    llama.cpp.
    """
    host = has_host(engine, accelerator)
    placed_stages = _stages(
        model, plan.pipeline_parallel_size, engine.split, host, plan.host.layers_on_accelerator, plan.chunk_layers
    )
    devices = placed_stages[1:] if host else placed_stages
    if uses_own_layers(model, plan):
        devices = (*devices[:-1], _with_drafts(devices[-1], model))
    return devices, placed_stages[0] if host else None


def drafting(model: Model, plan: ServingPlan, *, shared: bool = False) -> Model | None:
    """The draft model of a plan, or the head that drafts; nothing where the model's own layers or n-grams do.

    `shared`: with the output head that it uses of the model, which takes time and no memory.
    """
    tokens, method, name = plan.drafting.draft_tokens, plan.drafting.speculative, plan.drafting.draft_model
    if tokens and method in HEADS:
        from tonnage.estimate.serving.draft_heads import head

        return head(model, method, tokens, shared=shared)
    return draft_model(name) if name and method in ("", DRAFT) else None


@lru_cache(maxsize=16)
def draft_model(name: str) -> Model:
    """The draft model of this name."""
    from tonnage.models import read

    return read(name)


@lru_cache(maxsize=256)
def _stages(
    model: Model, ranks: int, split: str, host: bool, on_accelerator: int | None, chunks: tuple[int, ...]
) -> tuple[Stage, ...]:
    if ranks > model.num_layers:
        raise InvalidPlan(
            "{@pipeline_parallel_size} must be from 1 to the {num_layers} of {model}. Got {ranks}.",
            num_layers=counted(model.num_layers, "layers"),
            model=model.name,
            ranks=ranks,
        )
    if host:
        return _with_host(model, ranks, on_accelerator, chunks)
    if chunks:
        return stages(model, ranks, chunks)
    count = model.num_layers
    if split == "rest last" and count % ranks:
        fewest, more = divmod(count, ranks)
        return stages(model, ranks, tuple(fewest + (rank >= ranks - more) for rank in range(ranks)))
    return stages(model, ranks)


def _with_host(model: Model, ranks: int, on_accelerator: int | None, chunks: tuple[int, ...]) -> tuple[Stage, ...]:
    """llama.cpp, src/llama-model.cpp, load_tensors: the head counts as one more layer, the last ones are on the
    accelerators, in even parts; the token table is never, and a tied head has a copy of it. `chunks`: of each
    accelerator, as --tensor-split says.
    """
    count = model.num_layers
    slots = count + 1 if on_accelerator is None else min(on_accelerator, count + 1)
    start = count + 1 - slots
    ends = [min(start - (-rank * slots // ranks), count) for rank in range(ranks + 1)]
    dealt = (0, *chunks) if chunks else (start, *(last - first for first, last in pairwise(ends)))
    dealt_stages = stages(model, ranks + 1, dealt)
    host, first = dealt_stages[0], dealt_stages[1]
    main = replace(
        first, towers=host.towers, tower_ops=host.tower_ops
    )  # a projector's file goes to the first accelerator
    shifted = [replace(stage, rank=stage.rank - 1) for stage in (main, *dealt_stages[2:])]
    return (replace(host, towers=(), tower_ops=()), *shifted)


@lru_cache(maxsize=256)
def _with_drafts(stage: Stage, model: Model) -> Stage:
    """The last stage with the layers of multi-token prediction, which use the model's table and head."""
    branches = [branch for branch in model.branches if branch.kind == "draft"]
    layers = tuple(
        (block, count)
        for branch in branches
        for block, count in zip(branch.blocks, branch.counts(), strict=True)
        if count
    )
    loose = tuple(
        op for branch in branches for op in branch.before + branch.after if not isinstance(op, Embedding | Head)
    )
    return replace(stage, layers=stage.layers + layers, before=stage.before + loose)


def host_experts(stage: Stage, plan: ServingPlan) -> dict[object, int]:
    """Layers of each kind whose experts stay in host memory: of the model's first ones."""
    counts: dict[object, int] = {}
    for number, block in enumerate(stage.order, stage.first_layer):
        if number < plan.host.expert_layers_on_host:
            counts[block] = counts.get(block, 0) + 1
    return counts
