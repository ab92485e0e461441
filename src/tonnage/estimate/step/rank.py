"""The share of one rank: which parameters a pipeline stage holds, cut by tensor, expert and ZeRO ranks."""

from collections.abc import Hashable, Iterable, Mapping
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple, replace

from tonnage.architectures import Block, Branch, Model
from tonnage.formulas import memory as f
from tonnage.kernel.formula import SCALARS, Number
from tonnage.kernel.term import Term
from tonnage.ops import Embedding, Op, Weight

COPIED_TABLE = "lm_head (copy of the tied embedding)"


class Group(Struct, frozen=True):
    """Parameters of a block that are cut in the same way: (split, heads) and how many there are."""

    split: str
    heads: int
    count: int


class Stage(Struct, frozen=True, eq=False):
    """One pipeline stage: its rank, the layers of each kind that it holds, and the loose ops `before` and `after` them.

    `table` is the tied table, which the head uses as well where both are on this stage. `towers` and `tower_ops` are
    those of
    vision and audio: they hold weights, and see images and sounds, not the tokens. `order`: the layers as they run,
    `first_layer` the number of the first.
    """

    rank: int
    layers: tuple[tuple[Block, int], ...]
    before: tuple[Op, ...]
    after: tuple[Op, ...]
    table: tuple[Op, ...]
    towers: tuple[tuple[Block, int], ...]
    tower_ops: tuple[Op, ...]
    is_last: bool
    order: tuple[Block, ...] = ()
    first_layer: int = 0

    @property
    def ops(self) -> tuple[Op, ...]:
        return self.before + self.after

    @property
    def contents(self) -> tuple[Hashable, ...]:
        """A key that is equal for stages that hold the same, wherever they are in the pipeline, so that their
        numbers are computed once.
        """
        loose = (self.before, self.after, self.table, self.tower_ops)
        return (self.layers, self.towers, *(tuple(map(id, ops)) for ops in loose), self.is_last)


def layer_bounds(num_layers: int, stages: int, first: int | None = None, last: int | None = None) -> list[int]:
    """First layer of each stage, and the end: as even as can be, the earlier stages with one more; `first`, `last`:
    of those stages.
    """
    fixed = {0: first, stages - 1: last}
    free = [rank for rank in range(stages) if fixed.get(rank) is None]
    fewest, more = divmod(num_layers - sum(size or 0 for size in fixed.values()), len(free) or 1)
    bounds = [0]
    for rank in range(stages):
        size = fixed.get(rank)
        bounds.append(bounds[-1] + (fewest + (1 if free.index(rank) < more else 0) if size is None else size))
    return bounds


def _rest_later(model: Model, pipeline: int) -> list[int]:
    """torchtitan until 2024, parallelisms/pipelining_utils.py: the rest goes to the stages after the first."""
    return layer_bounds(model.decoder.num_layers, pipeline, model.decoder.num_layers // pipeline)


def _ends_weigh(model: Model, pipeline: int) -> list[int]:
    """torchtitan, distributed/pipeline_parallel.py: table and head count as a layer each."""
    fewest, more = divmod(model.decoder.num_layers + 2, pipeline)
    return layer_bounds(model.decoder.num_layers, pipeline, fewest - 1 + (more > 0), fewest - 1)


def _by_cost(model: Model, pipeline: int) -> list[int]:
    """nanotron, models/base.py: a stage takes blocks until it has more than its part of the products; the head is
    one.
    """
    main = model.decoder
    costs = [
        sum(weight.num_parameters for weight in main.blocks[kind].weights() if weight.linear) for kind in main.layers
    ]
    total = sum(costs) + model.vocab_size * main.hidden_size
    bounds, done = [0], 0
    for number, cost in enumerate(costs, 1):
        done += cost
        if len(bounds) < pipeline and done > total * (len(bounds) / pipeline):
            bounds.append(number)
    return [*bounds, *[main.num_layers] * (pipeline + 1 - len(bounds))]


SPLITS = {
    "even": lambda model, pipeline: layer_bounds(model.decoder.num_layers, pipeline),
    "rest later": _rest_later,
    "ends weigh": _ends_weigh,
    "cost": _by_cost,
}


@lru_cache(maxsize=256)
def split_layers(
    model: Model, count: int, split: str = "even", first: int | None = None, last: int | None = None
) -> tuple[int, ...]:
    """Layers of each of `count` stages; `split`: how they are dealt out where neither `first` nor `last` says."""
    if first is None and last is None and count > 1:
        bounds = SPLITS[split](model, count)
    else:
        bounds = layer_bounds(model.decoder.num_layers, count, first, last)
    return tuple(end - start for start, end in pairwise(bounds))


@lru_cache(maxsize=256)
def stages(model: Model, ranks: int, chunks: tuple[int, ...] = (), *, v_shaped: bool = False) -> tuple[Stage, ...]:
    """What each rank of a pipeline has. Towers and encoders other than the main branch run on the first.

    `chunks`: layers of each virtual stage, in the order in which a token passes them; left out: an even split over the
    ranks. A rank has every so-manyth of them; of a V one of the first half, and the one as far from the end.
    """
    chunks = chunks or split_layers(model, ranks)
    count = len(chunks)
    dealt = [
        (rank, count - 1 - rank) if v_shaped and count > ranks else tuple(range(rank, count, ranks))
        for rank in range(ranks)
    ]
    return tuple(_stage(model, chunks, rank, own) for rank, own in enumerate(dealt))


def _stage(model: Model, chunks: tuple[int, ...], rank: int, own: tuple[int, ...]) -> Stage:
    """What a rank has. `own`: the numbers of its virtual stages, of which the first has the table and the last the
    head.
    """
    main, ends = model.decoder, [0, *accumulate(chunks)]
    runs = [(ends[index], ends[index + 1]) for index in own]
    order: tuple[Block, ...] = tuple(main.blocks[kind] for start, end in runs for kind in main.layers[start:end])
    counts = [sum(run_counts) for run_counts in zip(*(main.counts(start, end) for start, end in runs), strict=True)]
    layers = tuple((block, count) for block, count in zip(main.blocks, counts, strict=True) if count)
    is_first, is_last = 0 in own, len(chunks) - 1 in own
    before: tuple[Op, ...] = ()
    after: tuple[Op, ...] = ()
    towers: list[Branch] = []
    if is_first:
        others = [branch for branch in model.branches if branch is not main and branch.kind != "draft"]
        towers = [branch for branch in others if branch.kind in ("vision", "audio")]
        for branch in others:
            if branch not in towers:
                layers += _counted(branch)
                order = (*(branch.blocks[kind] for kind in branch.layers), *order)
                before += branch.before + branch.after
        before += main.before
    if is_last:
        after = main.after + ((_copied_table(model, main),) if model.tied and not is_first else ())
    table = tuple(op for op in before if isinstance(op, Embedding)) if after and model.tied else ()
    held = tuple(pair for branch in towers for pair in _counted(branch))
    tower_ops = tuple(op for branch in towers for op in branch.before + branch.after)
    return Stage(rank, layers, before, after, table, held, tower_ops, is_last, order, runs[0][0])


def _counted(branch: Branch) -> tuple[tuple[Block, int], ...]:
    return tuple((block, count) for block, count in zip(branch.blocks, branch.counts(), strict=True) if count)


def _copied_table(model: Model, main: Branch) -> Op:
    """A tied head on another rank than the embedding needs its own copy of the table."""
    return Embedding(name=COPIED_TABLE, num_embeddings=model.vocab_size, width=main.hidden_size)


@lru_cache(maxsize=4096)
def groups(block: Block) -> tuple[Group, ...]:
    """A block's parameters by how they are cut."""
    return _grouped(block.weights())


def _grouped(weights: Iterable[Weight]) -> tuple[Group, ...]:
    totals: dict[tuple[str, int], int] = {}
    for weight in weights:
        cut = (weight.split, weight.heads if weight.split == "kv" else 0)
        totals[cut] = totals.get(cut, 0) + weight.num_parameters
    return tuple(Group(split, heads, count) for (split, heads), count in totals.items())


class Shares(Struct, frozen=True, eq=False):
    """Sizes that cut parameters. `z` shards dense parameters (ZeRO), `ze` those of experts; `multiple`: of rows of a
    table on one rank.
    """

    t: Number = 1
    e: Number = 1
    q: Number = 1
    z: Number = 1
    ze: Number = 1
    multiple: int = 1

    @property
    def is_of_numbers(self) -> bool:
        """Whether no size is an array: what follows from them is then found once."""
        return (
            type(self.t) in SCALARS
            and type(self.e) in SCALARS
            and type(self.q) in SCALARS
            and type(self.z) in SCALARS
            and type(self.ze) in SCALARS
        )


_NAMES = {
    "replicated": "whole on every tensor rank",
    "tensor": "cut by tensor parallelism",
    "kv": "key and value projections",
    "expert": "routed experts",
    "vocab": "cut over the vocabulary",
}
# On one tensor rank nothing is cut: what the groups are made of.
_ALONE = {"replicated": "norms, routers and biases", "tensor": "matrices", "vocab": "over the vocabulary"}


def share(group: Group, shares: Shares) -> Term:
    """One group's parameters on one rank."""
    alone = not hasattr(shares.t, "ndim") and shares.t == 1
    name = (alone and _ALONE.get(group.split)) or _NAMES[group.split]
    if group.split == "expert":
        return Term.of(name, f.expert_parameters, N=group.count, e=shares.e, q=shares.q, z=shares.ze)
    if group.split == "kv":
        return Term.of(name, f.kv_parameters, N=group.count, t=shares.t, k=group.heads, z=shares.z)
    if group.split == "replicated":
        return Term.of(name, f.whole_parameters, N=group.count, z=shares.z)
    return Term.of(name, f.split_parameters, N=group.count, t=shares.t, z=shares.z)


def block_parameters(block: Block, shares: Shares) -> Term:
    """One layer's parameters on one rank."""
    if shares.is_of_numbers:
        return _block_parameters(block, *astuple(shares))
    return Term.sum("one layer", *(share(group, shares) for group in groups(block)))


@lru_cache(maxsize=4096, typed=True)
def _block_parameters(block: Block, *sizes: Any) -> Term:
    shares = Shares(*sizes)
    return Term.sum("one layer", *(share(group, shares) for group in groups(block)))


def expert_parameters(block: Block, shares: Shares) -> Number:
    """The parameters of a layer's routed experts on one rank."""
    return sum(share(group, shares).value for group in groups(block) if group.split == "expert")


def op_parameters(op: Op, shares: Shares) -> list[Term]:
    """The parameters of an op outside the layers (table, norm, head) on one rank."""
    return _known_op_parameters(op, *astuple(shares)) if shares.is_of_numbers else _op_parameters(op, shares)


@lru_cache(maxsize=4096, typed=True)
def _known_op_parameters(op: Op, *sizes: Any) -> list[Term]:
    return _op_parameters(op, Shares(*sizes))


def _op_parameters(op: Op, shares: Shares) -> list[Term]:
    terms = []
    for weight in op.weights():
        if weight.split == "vocab" and weight.columns > 1:
            terms.append(
                Term.of(
                    weight.name,
                    f.vocabulary_parameters,
                    V=weight.rows,
                    h=weight.columns,
                    t=shares.t,
                    z=shares.z,
                    mu=shares.multiple,
                )
            )
        else:
            split = "tensor" if weight.split == "vocab" else weight.split
            terms.append(share(Group(split, weight.heads, weight.num_parameters), shares).named(weight.name))
    return terms


def rank_parameters(stage: Stage, shares: Shares, per_block: Mapping[Block, Term]) -> Term:
    """All parameters of one rank: loose ops, and each kind of layer as often as the stage has it."""
    parts = []
    for op in stage.ops + stage.tower_ops:
        parts += op_parameters(op, shares)
    for block, count in stage.layers + stage.towers:
        parts.append(repeated(block.name, count, per_block[block]))
    return Term.sum("parameters of this rank", *parts, unit="parameters")


def repeated(name: str, count: Number, one: Term) -> Term:
    """`count` layers of one kind."""
    return Term.product(name, one.unit, layer_count(count), one)


def layer_count(count: Number) -> Term:
    """A leaf that says how many layers."""
    return Term.of("layers on this rank", f.layers_on_rank, l=count)


def first_of(value: Number) -> Number:
    """One entry of an array of plans that agree in what is asked."""
    return value.flat[0] if hasattr(value, "flat") else value


FIRST = "first layer"  # the name of the layer below which nothing trains


@lru_cache(maxsize=256)
def with_first_apart(split_stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """The stages with the model's first layer as a kind of its own: where embeddings do not train, its input has no
    gradient.
    """
    stage = split_stages[0]
    if not stage.order:
        return split_stages
    old = stage.order[0]
    new = Block(FIRST, old.ops)
    layers = [(new, 1)] + [(block, count - 1 if block is old else count) for block, count in stage.layers]
    first_stage = replace(stage, layers=tuple(pair for pair in layers if pair[1]), order=(new, *stage.order[1:]))
    return (first_stage, *split_stages[1:])


# ---- Single parameters of a stage: the largest ones, and those below a size. A module's hooks work on one at a time.

PLACES = ("before", "layers", "after")


def largest_weight(stage: Stage, shares: Shares, places: tuple[str, ...]) -> Term:
    """The largest parameter of these places, on one rank; experts of a layer are one parameter."""
    weights = [weight for place in places if (weight := _largest(stage, place)) is not None]
    weight = max(weights, key=lambda weight_size: weight_size.num_parameters, default=None)
    if weight is None:
        return Term.sum("no parameter", unit="parameters")
    split = "tensor" if weight.split == "vocab" else weight.split
    return share(Group(split, weight.heads, weight.num_parameters), shares).named("largest parameter")


def largest_weights(stage: Stage, shares: Shares) -> Term:
    """The largest parameter of the stage."""
    return largest_weight(stage, shares, PLACES)


@lru_cache(maxsize=4096)
def _largest(stage: Stage, place: str) -> Weight | None:
    return max(_weights(stage, place), key=lambda weight: weight.num_parameters, default=None)


def _weights(stage: Stage, place: str) -> Iterable[Weight]:
    ops: tuple[Op, ...] = {"before": stage.before, "after": stage.after + stage.table}.get(place, ())
    for op in ops:
        yield from op.weights()
    if place == "layers":
        for block, _ in stage.layers:
            yield from block.weights()


def small_parameters(stage: Stage, limit: Number) -> Number:
    """Parameters of the stage in tensors of at most `limit` elements."""
    total: Number = 0
    for size, count in _sizes(stage):
        total = total + (size <= limit) * size * count
    return total


@lru_cache(maxsize=1024)
def _sizes(stage: Stage) -> tuple[tuple[int, int], ...]:
    """(elements, number of such tensors), of the whole stage."""
    counted: dict[int, int] = {}
    for op in (*stage.ops, *stage.tower_ops):
        for weight in op.weights():
            counted[weight.num_parameters] = counted.get(weight.num_parameters, 0) + 1
    for block, count in (*stage.layers, *stage.towers):
        for weight in block.weights():
            counted[weight.num_parameters] = counted.get(weight.num_parameters, 0) + count
    return tuple(counted.items())
