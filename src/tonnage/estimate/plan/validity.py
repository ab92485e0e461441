"""What the sizes of a plan must hold, as a list of rules (estimate.plan.rule): each is one predicate with its message.

A single answer raises the error of the first broken rule (`check`); `plan`, `sweep` and `max` ask which plans hold
each rule (`reasons`, `mask`). A framework adds rules of its own: `Framework.rules`.
"""

from collections.abc import Mapping
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

from tonnage.architectures import Model
from tonnage.estimate.plan.rule import (
    Facts,
    Rule,
    Sizes,
    check_has_experts,
    divisors,
    expert_counts,
    mask,
    near,
    near_divisors,
    near_multiples,
    near_sizes,
)
from tonnage.kernel.errors import InvalidPlan
from tonnage.kernel.formula import Number, is_any, maximum
from tonnage.kernel.message import Message, joined, option_name
from tonnage.kernel.units import counted
from tonnage.ops import Attention, LatentAttention

if TYPE_CHECKING:
    from tonnage.estimate.plan.pipeline_boxes import MicrobatchRule

OF_A_REPLICA = ("tensor_parallel_size", "pipeline_parallel_size", "context_parallel_size")


# ---- accelerators ----


def _replica(sizes: Sizes) -> Number:
    """Accelerators of one replica."""
    return prod(sizes[name] for name in OF_A_REPLICA)


def _divides_cluster(facts: Facts, sizes: Sizes) -> Number:
    return sizes["accelerators"] % _replica(sizes) == 0


def _does_not_divide_cluster(facts: Facts, sizes: Sizes) -> InvalidPlan:
    """Of what is above 1: the sizes, and the nearest that divide the accelerators, the heads, the layers and the
    sequence as well.
    """
    sizes_of_replica = {name: sizes[name] for name in OF_A_REPLICA if sizes[name] > 1}
    world, data = sizes["accelerators"], facts.said("data_parallel_size")

    def holds(some: Mapping[str, int]) -> bool:
        tried = {**dict.fromkeys(OF_A_REPLICA, 1), **some}
        tried |= {"accelerators": world, "sequence_length": sizes["sequence_length"]}
        return bool(mask(facts, tried, (ACCELERATORS, HEADS, LAYERS, CONTEXT)))

    def with_data(some: Mapping[str, int]) -> bool:
        return holds(some) and prod(some.values()) * (data or 0) == world

    nearest = near_sizes(sizes_of_replica, divisors(world), with_data) or near_sizes(
        sizes_of_replica, divisors(world), holds
    )
    names, values = joined(" x ", map(option_name, sizes_of_replica)), " x ".join(map(str, sizes_of_replica.values()))
    return InvalidPlan(
        "{names} must divide the cluster's {world}. Got {values}. Nearest: {nearest}.",
        names=names,
        world=counted(world, "accelerators"),
        values=values,
        nearest=nearest,
    )


def _uses_cluster(facts: Facts, sizes: Sizes) -> Number:
    return sizes["data_parallel_size"] * _replica(sizes) == sizes["accelerators"]


def _does_not_use_cluster(facts: Facts, sizes: Sizes) -> InvalidPlan:
    world, used = sizes["accelerators"], _replica(sizes)
    return InvalidPlan(
        "{@data_parallel_size} must be {world} to use the cluster's {world2}, as "
        "{@tensor_parallel_size} x {@pipeline_parallel_size} x {@context_parallel_size} is "
        "{used}. Got {data_parallel_size}.",
        world=world // used,
        world2=counted(world, "accelerators"),
        used=used,
        data_parallel_size=sizes["data_parallel_size"],
    )


ACCELERATORS = Rule(
    lambda facts: "tensor x pipeline x context parallel sizes divide the accelerators",
    _divides_cluster,
    _does_not_divide_cluster,
)
WHOLE_CLUSTER = Rule(
    lambda facts: "tensor x pipeline x context x data parallel sizes are the accelerators of the cluster",
    _uses_cluster,
    _does_not_use_cluster,
    lambda facts, sizes: facts.said("data_parallel_size") is not None,
)


# ---- heads, layers, experts ----


@lru_cache(maxsize=256)
def _heads(model: Model) -> tuple[tuple[int, int], ...]:
    """(query heads, key/value heads or 0) of every kind of attention, in the order of the layers."""
    head_counts: dict[tuple[int, int], None] = {}
    for block in model.decoder.blocks:
        for op in block.ops:
            if isinstance(op, Attention | LatentAttention):
                head_counts[op.heads, op.kv_heads if isinstance(op, Attention) else 0] = None
    return tuple(head_counts)


def _is_shared(query: int, heads: int, t: Number) -> Number:
    """Whether t ranks share so many query and key/value heads (0: as many as query heads)."""
    shared = query % t == 0
    if heads:
        shared = shared & ((heads % t == 0) | (t % heads == 0))
    return (t == 1) | shared


def shares_heads(model: Model, t: Number) -> Number:
    """Whether t tensor ranks share the heads: they divide query heads, and divide or are a multiple of key/value
    heads.
    """
    held: Number = t >= 1
    for query, heads in _heads(model):
        held = held & _is_shared(query, heads, t)
    return held


def _room(sizes: Sizes, *others: str) -> int:
    """Accelerators that are left for a size beside these others."""
    return int(sizes["accelerators"] // prod(sizes.get(name, 1) for name in (*others, "attention_data_parallel_size")))


def _does_not_share_heads(facts: Facts, sizes: Sizes) -> InvalidPlan:
    model, t = facts.model, sizes["tensor_parallel_size"]
    query, heads = next(counts for counts in _heads(model) if not _is_shared(*counts, t))
    among = divisors(_room(sizes, "pipeline_parallel_size", "context_parallel_size"))
    nearest = near(t, [n for n in among if shares_heads(model, n)])
    if query % t:
        return InvalidPlan(
            "{@tensor_parallel_size} must divide {@num_attention_heads} of {model} ({query}). Got "
            "{t}. Nearest: {nearest}.",
            model=model.name,
            query=query,
            t=t,
            nearest=nearest,
        )
    return InvalidPlan(
        "{@tensor_parallel_size} must divide {@num_key_value_heads} of {model} ({heads}) or be a "
        "multiple of it. Got {t}. Nearest: {nearest}.",
        model=model.name,
        heads=heads,
        t=t,
        nearest=nearest,
    )


HEADS = Rule(
    lambda facts: Message("{@tensor_parallel_size} divides the heads of {model}", model=facts.model.name),
    lambda facts, sizes: shares_heads(facts.model, sizes["tensor_parallel_size"]),
    _does_not_share_heads,
)


def _too_few_layers(facts: Facts, sizes: Sizes) -> InvalidPlan:
    p, layers = sizes["pipeline_parallel_size"], facts.model.num_layers
    room = divisors(_room(sizes, "tensor_parallel_size", "context_parallel_size"))
    return InvalidPlan(
        "{@pipeline_parallel_size} must be from 1 to the {layers} of {model}. Got {p}. Nearest: {near}.",
        layers=counted(layers, "layers"),
        model=facts.model.name,
        p=p,
        near=near(p, [n for n in room if n <= layers]),
    )


LAYERS = Rule(
    lambda facts: "there is a layer for each pipeline stage",
    lambda facts, sizes: sizes["pipeline_parallel_size"] <= facts.model.num_layers,
    _too_few_layers,
    of_pipelines=True,
)


def _deals_chunks(facts: Facts, sizes: Sizes) -> Number:
    p, v = sizes["pipeline_parallel_size"], sizes["virtual_pipeline_size"]
    evenly = facts.model.num_layers % (p * v) == 0
    return (v == 1) | ((p > 1) & (evenly | facts.unequal_chunks(p * v)))


def _does_not_deal_chunks(facts: Facts, sizes: Sizes) -> InvalidPlan:
    layers, (p, v) = facts.model.num_layers, (sizes["pipeline_parallel_size"], sizes["virtual_pipeline_size"])
    has_layout = "pipeline_layout" in facts.runtime.options
    hint = " Or give pipeline_layout, as Megatron's --pipeline-model-parallel-layout." if has_layout else ""
    room = divisors(_room(sizes, "tensor_parallel_size", "context_parallel_size"))

    def holds(some: Mapping[str, int]) -> bool:
        named = {"pipeline_parallel_size": some["p"], "virtual_pipeline_size": some["v"]}
        return some["p"] in room and bool(_deals_chunks(facts, named))

    nearest = near_sizes({"v": v, "p": p}, sorted({*divisors(layers), *room, v}), holds)
    return InvalidPlan(
        "{@virtual_pipeline_size} x {@pipeline_parallel_size} must divide the {layers} of "
        "{model}, with more than one pipeline stage. Got {v} x {p}. Nearest: {nearest}.{hint}",
        layers=counted(layers, "layers"),
        model=facts.model.name,
        v=v,
        p=p,
        nearest=nearest,
        hint=hint,
    )


CHUNKS = Rule(
    lambda facts: "virtual_pipeline_size x pipeline_parallel_size divides the layers",
    _deals_chunks,
    _does_not_deal_chunks,
    of_pipelines=True,
)


def _expert_sizes(sizes: Sizes) -> tuple[Number, Number, Number]:
    """Expert ranks, tensor ranks of an expert, and the ranks of a pipeline stage."""
    names = ("data_parallel_size", "context_parallel_size", "tensor_parallel_size", "attention_data_parallel_size")
    ranks = prod(sizes.get(name, 1) for name in names)
    return sizes["expert_parallel_size"], sizes.get("expert_tensor_parallel_size", 1), ranks


def _dealt_counts(facts: Facts, sizes: Sizes) -> frozenset[int]:
    """Experts that ranks hold of each kind of layer, with the copies that an engine makes."""
    copies = int(sizes.get("redundant_experts", 0))
    return frozenset(count + copies for count in expert_counts(facts.model))


def _deals_experts(facts: Facts, sizes: Sizes) -> Number:
    return _are_dealt(_dealt_counts(facts, sizes), *_expert_sizes(sizes))


def _are_dealt(counts: frozenset[int], e: Number, q: Number, ranks: Number) -> Number:
    held = (ranks % (e * q) == 0) & bool(counts)
    for count in counts:
        held = held & (count % e == 0)
    return held | ((e == 1) & (q == 1))


def _does_not_deal_experts(facts: Facts, sizes: Sizes) -> InvalidPlan:
    e, q, ranks = _expert_sizes(sizes)
    check_has_experts(facts.model, e, q)
    counts, copies = _dealt_counts(facts, sizes), int(sizes.get("redundant_experts", 0))
    for count in counts:
        if count % e:
            nearest = near(e, [n for n in divisors(count) if _are_dealt(counts, n, 1, ranks)])
            if copies:
                return InvalidPlan(
                    "{@expert_parallel_size} must divide the {experts} of {model} with {@redundant_experts} together "
                    "({count}). Got {e}. Nearest: {nearest}.",
                    model=facts.model.name,
                    experts=counted(count - copies, "experts"),
                    count=count,
                    e=e,
                    nearest=nearest,
                )
            return InvalidPlan(
                "{@expert_parallel_size} must divide {@num_experts} of {model} ({count}). Got {e}. Nearest: {nearest}.",
                model=facts.model.name,
                count=count,
                e=e,
                nearest=nearest,
            )
    if q == 1:
        nearest = near(e, [n for n in divisors(ranks) if _are_dealt(counts, n, 1, ranks)])
        return InvalidPlan(
            "{@expert_parallel_size} must divide the {ranks} of a pipeline stage. Got {e}. Nearest: {nearest}.",
            ranks=counted(ranks, "ranks"),
            e=e,
            nearest=nearest,
        )
    nearest = near_sizes(
        {"e": e, "q": q}, divisors(ranks), lambda some: bool(_are_dealt(counts, some["e"], some["q"], ranks))
    )
    return InvalidPlan(
        "{@expert_parallel_size} x {@expert_tensor_parallel_size} must divide the {ranks} of a "
        "pipeline stage. Got {e} x {q}. Nearest: {nearest}.",
        ranks=counted(ranks, "ranks"),
        e=e,
        q=q,
        nearest=nearest,
    )


EXPERTS = Rule(
    lambda facts: "experts are dealt out evenly, to the ranks of a pipeline stage",
    _deals_experts,
    _does_not_deal_experts,
    lambda facts, sizes: bool(expert_counts(facts.model)) or is_any(prod(_expert_sizes(sizes)[:2]) > 1),
)


# ---- sequences and batches ----


def _context_does_not_divide(facts: Facts, sizes: Sizes) -> InvalidPlan:
    length, context = sizes["sequence_length"], sizes["context_parallel_size"]
    fits = [n for n in divisors(context * sizes["data_parallel_size"]) if length % n == 0]
    return InvalidPlan(
        "{@context_parallel_size} must divide {@sequence_length} ({length}). Got {context}. "
        "Nearest: {near}; or a {@sequence_length} of {near_multiples}.",
        length=length,
        context=context,
        near=near(context, fits),
        near_multiples=near_multiples(length, context),
    )


CONTEXT = Rule(
    lambda facts: "context_parallel_size divides sequence_length",
    lambda facts, sizes: sizes["sequence_length"] % sizes["context_parallel_size"] == 0,
    _context_does_not_divide,
)


def sequence_parts(t: Number, c: Number, sequence_parallel: bool | None) -> Number:
    """Into how many equal parts ranks cut a sequence: two for each of several context ranks (megatron/core/utils.py:
    get_batch_on_this_cp_rank; torchtitan, distributed/parallel_dims.py: seq_len_divisor), each scattered over the
    tensor ranks unless `sequence_parallel` is off.

    >>> sequence_parts(4, 2, None)
    16
    """
    return (1 + (c > 1)) * c * (1 if sequence_parallel is False else t)


def _cuts_evenly(facts: Facts, sizes: Sizes) -> Number:
    t, c = sizes["tensor_parallel_size"], sizes["context_parallel_size"]
    return sizes["sequence_length"] % sequence_parts(t, c, facts.said("sequence_parallel")) == 0


EVEN_PARTS = Rule(lambda facts: "sequences are dealt out to context and tensor ranks in equal parts", _cuts_evenly)


def _cuts_loss(facts: Facts, sizes: Sizes) -> Number:
    return sizes["sequence_length"] // sizes["context_parallel_size"] % facts.runtime.loss_chunks == 0


def _does_not_cut_loss(facts: Facts, sizes: Sizes) -> InvalidPlan:
    length, chunks = sizes["sequence_length"], facts.runtime.loss_chunks
    return InvalidPlan(
        "{@sequence_length}: a chunked loss cuts the sequence of a rank into {chunks} equal "
        "parts. Got {length}. Nearest: {near_multiples}.",
        chunks=chunks,
        length=length,
        near_multiples=near_multiples(length, chunks * sizes["context_parallel_size"]),
    )


LOSS_CHUNKS = Rule(
    lambda facts: Message(
        "a chunked loss cuts the sequence of a rank into {loss_chunks} equal parts",
        loss_chunks=facts.runtime.loss_chunks,
    ),
    _cuts_loss,
    _does_not_cut_loss,
    lambda facts, sizes: (
        facts.said("loss") == "chunked" and facts.runtime.equal_chunks and facts.runtime.loss_chunks > 0
    ),
)


def _divides_batch(facts: Facts, sizes: Sizes) -> Number:
    """A global batch of 0 is as large as the micro-batches make it."""
    per_step = maximum(sizes["micro_batch_size"] * sizes["data_parallel_size"], 1)
    return sizes["global_batch_size"] % per_step == 0


def _does_not_divide_batch(facts: Facts, sizes: Sizes) -> InvalidPlan:
    per_step, batch = sizes["micro_batch_size"] * sizes["data_parallel_size"], sizes["global_batch_size"]
    return InvalidPlan(
        "{@global_batch_size} must be a multiple of {@micro_batch_size} x {@data_parallel_size} "
        "= {each}. Got {batch}. Nearest: {near_multiples}.",
        each=per_step,
        batch=batch,
        near_multiples=near_multiples(batch, per_step),
    )


BATCH = Rule(
    lambda facts: "micro_batch_size x data_parallel_size divides global_batch_size",
    _divides_batch,
    _does_not_divide_batch,
    lambda facts, sizes: "global_batch_size" in sizes,
)
MICROBATCHES = Rule(
    lambda facts: Message("{@num_microbatches} is {said:,}, as given", said=facts.said("num_microbatches")),
    lambda facts, sizes: sizes["num_microbatches"] == facts.said("num_microbatches"),
    lambda facts, sizes: InvalidPlan(
        "{@num_microbatches} must be {num_microbatches} for {@global_batch_size} {global_batch_size}. Got {said}.",
        num_microbatches=sizes["num_microbatches"],
        global_batch_size=sizes["global_batch_size"],
        said=facts.said("num_microbatches"),
    ),
    lambda facts, sizes: facts.said("num_microbatches") is not None and "global_batch_size" in sizes,
)


# ---- groups of data-parallel ranks ----

REPLICAS = Rule(
    lambda facts: "replicate_size divides data_parallel_size",
    lambda facts, sizes: sizes["data_parallel_size"] % facts.said("replicate_size") == 0,
    lambda facts, sizes: InvalidPlan(
        "{@replicate_size} must divide {@data_parallel_size} {data_parallel_size}. Got {said}. "
        "Nearest: {near_divisors}.",
        data_parallel_size=sizes["data_parallel_size"],
        said=facts.said("replicate_size"),
        near_divisors=near_divisors(sizes["data_parallel_size"], facts.said("replicate_size")),
    ),
    lambda facts, sizes: facts.runtime.replicates and bool(facts.said("replicate_size")),
)


# ---- micro-batches of pipeline schedules ----


def _schedule_rule(chunks: int) -> Rule:
    """The rule of a schedule on one chunk of each stage, or on several. Schedules are imported for training alone:
    serving shares the other rules.
    """

    def name(facts: Facts) -> str:
        from tonnage.estimate.plan.schedule import runtime_schedule

        return runtime_schedule(facts.runtime, facts.said("pipeline_schedule"), chunks).name

    def found(facts: Facts) -> "MicrobatchRule | None":
        from tonnage.estimate.plan.pipeline_boxes import microbatch_rule

        return microbatch_rule(facts.runtime, name(facts))

    def asked(facts: Facts) -> "MicrobatchRule":
        rule = found(facts)
        assert rule is not None
        return rule

    def holds(facts: Facts, sizes: Sizes) -> Number:
        p, v = sizes["pipeline_parallel_size"], sizes["virtual_pipeline_size"]
        is_other = v > 1 if chunks == 1 else v == 1
        return (p == 1) | is_other | asked(facts).holds(sizes["num_microbatches"], p)

    def error(facts: Facts, sizes: Sizes) -> InvalidPlan:
        rule, p, m = asked(facts), sizes["pipeline_parallel_size"], sizes["num_microbatches"]
        nearest = near(m, [n for n in range(max(m - p, 1), m + 2 * p + 1) if rule.holds(n, p)])
        return InvalidPlan(
            "{sentence} with {@pipeline_schedule} {name} of {runtime}. Got {m} on {p} stages. Nearest: {nearest}.",
            sentence=rule.sentence,
            name=name(facts),
            runtime=facts.runtime.name,
            m=m,
            p=p,
            nearest=nearest,
        )

    def applies(facts: Facts, sizes: Sizes) -> bool:
        return found(facts) is not None

    return Rule(lambda facts: asked(facts).sentence, holds, error, applies)


SCHEDULES = (_schedule_rule(1), _schedule_rule(2))

# What training asks of sizes, in the order in which a search counts what each takes away.
OF_LAYOUT = (ACCELERATORS, WHOLE_CLUSTER, LAYERS, CHUNKS, HEADS)
OF_SEQUENCES = (CONTEXT, EVEN_PARTS, LOSS_CHUNKS)
RULES = (*OF_LAYOUT, *OF_SEQUENCES, EXPERTS, REPLICAS, BATCH, MICROBATCHES, *SCHEDULES)
