"""Options of a training run: what is kept and recomputed, what the runtime does, and in which numbers."""

from typing import Annotated

from tonnage.question.choices import optimizers, training_recipes
from tonnage.question.forms import count, length, number, ranged, size, whole, word
from tonnage.question.option import MEMORY, PARALLELISM, TRAINING, Options, Usual, option

# ---- Of a training run: its batches, and how the model is divided over the accelerators.


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
            usual=Usual(TRAINING, "tokens per sequence", "TOKENS", "the model's, at most 4096"),
        ),
    ] = None
    micro_batch_size: Annotated[
        int | None,
        option(
            "sequences of one forward pass of one replica",
            size,
            short=("--mbs",),
            unit="sequences",
            default="1",
            usual=Usual(TRAINING, "sequences per forward pass of a replica", "N"),
        ),
    ] = None
    global_batch_size: Annotated[
        int | None,
        option(
            "sequences of one step of all replicas",
            size,
            short=("--gbs",),
            unit="sequences",
            usual=Usual(TRAINING, "sequences per step", "N", "micro-batches x DP"),
        ),
    ] = None
    num_microbatches: Annotated[
        int | None,
        option("micro-batches of one replica in a step", size, unit="micro-batches", default="pipeline stages"),
    ] = None
    tensor_parallel_size: Annotated[
        int | None,
        option(
            "ranks that share each matrix",
            size,
            short=("--tp",),
            unit="ranks",
            default="1",
            usual=Usual(PARALLELISM, "ranks that share each matrix (--tp)", "N"),
        ),
    ] = None
    sequence_parallel: Annotated[
        bool | None, option("cut norms and residuals over tensor ranks", default="on with tensor parallelism")
    ] = None
    pipeline_parallel_size: Annotated[
        int | None,
        option(
            "pipeline stages",
            size,
            short=("--pp",),
            unit="ranks",
            default="1",
            usual=Usual(PARALLELISM, "pipeline stages (--pp)", "N"),
        ),
    ] = None
    virtual_pipeline_size: Annotated[
        int | None, option("interleaved chunks on each stage", size, short=("--vpp",), unit="chunks", default="1")
    ] = None
    pipeline_schedule: Annotated[
        str | None,
        option(
            "gpipe, 1f1b, interleaved-1f1b, interleaved-zero-bubble, zb-h1, zb-h2, zbv, dualpipe or dualpipev, as the "
            "runtime has them",
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
                "zb-h2",
                "dualpipe",
            ),
        ),
    ] = None
    context_parallel_size: Annotated[
        int | None,
        option(
            "ranks that share a sequence",
            size,
            short=("--cp",),
            unit="ranks",
            default="1",
            usual=Usual(PARALLELISM, "ranks that share a sequence (--cp)", "N"),
        ),
    ] = None
    expert_parallel_size: Annotated[
        int | None,
        option(
            "ranks that share a layer's experts",
            size,
            short=("--ep",),
            unit="ranks",
            default="1",
            usual=Usual(PARALLELISM, "ranks that share a layer's experts (--ep)", "N"),
        ),
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
            usual=Usual(MEMORY, "what DP ranks shard, 0 to 3", "STAGE", "the runtime's", place=1),
        ),
    ] = None


class Numerics(Parallelism, frozen=True, kw_only=True):
    """Recomputation, kernels, precision, optimizer and objective: the second part of TrainingOptions."""

    recompute: Annotated[
        str | None,
        option(
            (
                "activations: none, selective (attention's core), selective-op (torchtitan's, by operation) or "
                "full are recomputed"
            ),
            word,
            unit="policy",
            default="none",
            choices=("none", "selective", "selective-op", "full"),
            usual=Usual(MEMORY, "none, selective, full", "POLICY"),
        ),
    ] = None
    attention: Annotated[
        str | None,
        option(
            (
                "kernel: flash, sdpa (as PyTorch chooses), efficient (its memory-efficient kernel alone, with "
                "repeated keys and values) or eager"
            ),
            word,
            unit="kernel",
            default="the runtime's own",
            choices=("flash", "sdpa", "efficient", "eager"),
        ),
    ] = None
    dropout: Annotated[
        bool | None,
        option(
            "dropout after attention and feed-forward layers, and inside attention",
            default="as the model's config says",
        ),
    ] = None
    recompute_modules: Annotated[
        str | None,
        option(
            (
                "with recompute selective in megatron: core_attn, layernorm, mla_up_proj, mlp, moe, moe_act, "
                "shared_experts"
            ),
            word,
            unit="names",
            default="core_attn",
        ),
    ] = None
    context_parallel_method: Annotated[
        str | None,
        option(
            "how context ranks share a sequence (megatron, fsdp2, deepspeed): p2p (ring), a2a (Ulysses) or allgather",
            word,
            unit="name",
            default="p2p; a2a with deepspeed",
        ),
    ] = None
    expert_capacity_factor: Annotated[
        float | None,
        option(
            "tokens an expert has room for, over the mean; megatron pads to it and drops the rest",
            number,
            unit="factor",
            default="no limit",
        ),
    ] = None
    expert_imbalance: Annotated[
        float | None,
        option(
            "tokens of the fullest expert rank over the mean (megatron, several expert ranks)",
            number,
            unit="factor",
            default="1, balanced",
        ),
    ] = None
    straggler_slowdown: Annotated[
        float | None,
        option(
            (
                "how many times longer a slow node takes for a step (time alone); large jobs on a shared cluster "
                "were delayed 1.34 times on average (Wu2024)"
            ),
            number,
            unit="factor",
            default="none is slow",
        ),
    ] = None
    straggler_share: Annotated[
        float | None,
        option(
            "share of nodes that are slow: the more nodes, the likelier one of them is",
            number,
            unit="share",
            default="1, one is in any case",
        ),
    ] = None
    product_share: Annotated[
        float | None,
        option(
            (
                "share of the 16-bit peak that products of large matrices reach on your machine, where you "
                "measured it (time alone): power limits differ"
            ),
            number,
            unit="share",
            default="what published runs on its generation reach",
        ),
    ] = None
    calibrated: Annotated[
        bool | None,
        option("correct time and memory by your own runs, which `tonnage calibrate` lists", default="off"),
    ] = None
    cuda_graph: Annotated[
        str | None,
        option(
            (
                "megatron: full where graphs replay a whole step, so that kernels do not wait for the host, or "
                "modules that they replay, such as attn,moe_router (time alone)"
            ),
            word,
            unit="kind",
            default="none",
        ),
    ] = None
    tp_comm_overlap: Annotated[
        bool | None, option("megatron: tensor ranks send while they compute (time alone)", default="off")
    ] = None
    overlap_moe_expert_parallel_comm: Annotated[
        bool | None, option("megatron: expert ranks send while they compute (time alone)", default="off")
    ] = None
    moe_token_dispatcher_type: Annotated[
        str | None,
        option(
            "megatron, fsdp2: alltoall, or flex (DeepEP, HybridEP), which sends a token once to a node (time alone)",
            word,
            unit="name",
            default="alltoall",
        ),
    ] = None
    mtp_layers: Annotated[
        int | None,
        option(
            (
                "layers of multi-token prediction that megatron trains (--mtp-num-layers), whatever "
                "num_nextn_predict_layers of the config says"
            ),
            ranged(count, "from 0 to 1,099,511,627,776"),
            unit="layers",
            default="0, as Megatron's own is unset",
        ),
    ] = None
    runtime_version: Annotated[
        str | None,
        option(
            "releases that the runtime runs, such as 'core 0.14, TE 2.11', or 0.1 of torchtitan",
            word,
            unit="text",
            default="the newest known",
        ),
    ] = None
    loss: Annotated[
        str | None,
        option(
            (
                "full: all logits at once; chunked: parts of the sequence, one after the other (fsdp2); fused: "
                "Transformer Engine's (megatron); tiled: TRL's, the default with objectives dpo, grpo and "
                "distillation; full-entropy: of grpo and ppo, with the entropy of each token (fsdp2)"
            ),
            word,
            unit="kind",
            default="full",
            usual=Usual(MEMORY, "full, chunked, fused: how logits are held", "KIND", place=2),
        ),
    ] = None
    precision: Annotated[
        str | None,
        option(
            "training recipe, such as bf16-mixed, bf16, fp32, fp8-te",
            word,
            unit="recipe",
            default="bf16-mixed",
            choices=training_recipes,
            usual=Usual(TRAINING, "bf16-mixed, bf16, fp32, fp8-te, ...", "RECIPE", place=1),
        ),
    ] = None
    optimizer: Annotated[
        str | None,
        option(
            "adamw, adamw-8bit, sgd-momentum, adafactor, lion, muon, ...",
            word,
            unit="name",
            default="adamw",
            choices=optimizers,
            usual=Usual(TRAINING, "adamw, adamw-8bit, adafactor, muon, ...", "NAME", place=1),
        ),
    ] = None
    optimizer_implementation: Annotated[
        str | None,
        option(
            "of torch: fused, foreach (copies of all parameters in the step) or for-loop",
            word,
            unit="kind",
            default="fused",
        ),
    ] = None
    objective: Annotated[
        str | None,
        option(
            "what training is for: sft (or pre-training), dpo, online-dpo, grpo, dapo, rloo, ppo, distillation, "
            "gkd (distillation on what the student generates) or contrastive (embeddings)",
            word,
            unit="name",
            default="sft",
            choices=("sft", "dpo", "online-dpo", "grpo", "dapo", "rloo", "ppo", "distillation", "gkd", "contrastive"),
            usual=Usual(TRAINING, "sft, dpo, grpo, ppo, distillation, ...", "NAME", place=1),
        ),
    ] = None
    negatives: Annotated[
        int | None,
        option(
            "hard negatives of a sample, beside a text and its match (objective contrastive)",
            count,
            unit="sequences",
            default="0",
        ),
    ] = None
    cached_embeddings: Annotated[
        bool | None,
        option(
            "GradCache: embeddings of the whole batch are made first, then each micro-batch runs again with gradients "
            "(objective contrastive)",
            default="off",
        ),
    ] = None
    teacher: Annotated[str | None, option("the model that distillation and gkd learn from", word, unit="model")] = None
    engine_memory_share: Annotated[
        float | None,
        option(
            "part of the memory that an engine takes which generates on the same accelerators (grpo, ppo, ...)",
            number,
            unit="share",
            default="0",
        ),
    ] = None
