"""The peak of one forward pass of an engine: a full batch of tokens through the widest layer, then the sampler on
every request.
"""

from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

from tonnage.architectures import Block, Model
from tonnage.estimate.step.rank import Shares, Stage
from tonnage.formulas import memory as f
from tonnage.formulas import serving as g
from tonnage.kernel.formula import Number
from tonnage.kernel.term import Term
from tonnage.ops import Head, Kernels, MoE
from tonnage.runtimes import BatchLimit, ServingRuntime
from tonnage.spec import Accelerator, Media, ServingPlan

# ---- The widest operation of a layer: what one forward pass of an engine holds at once.


@lru_cache(maxsize=4096)
def widest(block: Block, kernels: Kernels) -> float:
    """Numbers a token inside the widest operation of a layer: what it keeps that tensor parallelism cuts."""
    inner = 0.0
    for op in block.ops:
        inner = max(
            inner, sum(saved.elements for saved in op.saved(kernels) if saved.split != "whole" and not saved.core)
        )
    return inner


# ---- Numbers of an image that stand behind one token of it, as a vision tower takes them in.

COLOURS = 3


def image_numbers(model: Model) -> int:
    """Pixels a token, in all colours; 0 where the config does not say how many an image token stands for."""
    vision = model.config.get("vision_config")
    if not isinstance(vision, Mapping):
        return 0
    tokens, size = model.config.get("mm_tokens_per_image"), vision.get("image_size")
    if isinstance(tokens, int) and isinstance(size, int) and tokens > 0:
        return COLOURS * size * size // tokens
    patch = vision.get("patch_size")
    merge = vision.get("spatial_merge_size") or vision.get("merge_kernel_size")
    side = merge[0] if isinstance(merge, list | tuple) and merge else merge
    frames = vision.get("temporal_patch_size", 1)
    if all(isinstance(number, int) for number in (patch, side, frames)):
        return COLOURS * patch * patch * side * side * frames  # type: ignore[operator]
    return 0


# ---- How much an engine takes on at once: tokens of one forward pass, and requests.


class Limits(Struct, frozen=True):
    """`tokens` of one forward pass; `requests` that run at once, and that the sampler sees."""

    tokens: int
    requests: int


def batch_limits(engine: ServingRuntime, plan: ServingPlan, accelerator: Accelerator | None) -> Limits:
    """What the plan says, else the engine's defaults on this accelerator, bounded as vLLM bounds them: no pass is
    larger than all requests at full length, and no more requests run than a pass has tokens.
    """
    limit = next(candidate for candidate in engine.limits if _holds(candidate, accelerator, plan.context))
    ranks = plan.tensor_parallel_size * plan.pipeline_parallel_size if limit.each_rank else 1
    requests = plan.max_num_seqs or limit.requests * ranks or plan.concurrency
    tokens = plan.max_num_batched_tokens
    if tokens is None:
        full = requests * plan.context
        tokens = plan.context if limit.one_prompt else min(limit.tokens * ranks or full, full)
        if limit.whole_context:
            tokens = max(limit.tokens, plan.context)
    if plan.chunked_prefill is False:
        tokens = max(tokens, plan.context)  # a prompt is one pass
    if engine.cells is not None:
        return Limits(tokens, requests)
    return Limits(tokens, requests if plan.max_num_seqs else min(requests, tokens))


def _holds(limit: BatchLimit, accelerator: Accelerator | None, context: int) -> bool:
    if limit.up_to_context and context > limit.up_to_context:
        return False
    if accelerator is None:
        return not (limit.kind or limit.named or limit.memory_bytes)
    name = accelerator.name.lower()
    return (
        limit.kind in ("", accelerator.kind)
        and limit.named in name
        and not any(word in name for word in limit.but_named)
        and accelerator.memory.usable_bytes >= limit.memory_bytes
    )


# Inference frees the gate when it is activated, so that gate, up and product never are more than three.
_KERNELS = Kernels(attention="flash", fused_norm=True, fused_activation=True)


class ForwardPass:
    """One pass of `limits` on the ranks of a stage; `width`: bytes of an activation, `weights`: what they are stored
    in, `sampled`: requests that the sampler sees.
    """

    def __init__(
        self,
        model: Model,
        engine: ServingRuntime,
        limits: Limits,
        shares: Shares,
        width: int,
        weights: str,
        sampled: Number,
        media: Media | None = None,
    ):
        self.model, self.engine, self.limits, self.shares, self.width = model, engine, limits, shares, width
        self.sampled, self.media = sampled, media
        self.keeps_experts = engine.keeps_expert_workspace and not any(name in weights for name in engine.bare_experts)

    def peak(self, stage: Stage, accelerator: Accelerator | None = None) -> Term:
        """What is alive at the worst moment, beside what stays from its first pass on."""
        moments = [self._layer(stage)]
        head = next((op for op in stage.ops if isinstance(op, Head)), None)
        if head is not None and stage.is_last:
            moments.append(self._sampler(head))
        if stage.towers and self.media is not None:
            moments += self._encoders(self.media)
        return Term.sum(
            "activations",
            Term.max("peak of a forward pass", *moments),
            *self._staying(stage, accelerator),
            unit="bytes",
        )

    def _encoders(self, media: Media) -> list[Term]:
        """The towers at work on as many images as one pass takes in, before the pass of the language model: as many as
        its budget of tokens has room for (vllm/multimodal/encoder_budget.py), at least one.
        """
        moments = []
        towers = {"vision": ((media.image, media.images), (media.video, 1)), "audio": ((media.audio, 1),)}
        of_branches = [(branch, *item) for branch in self.model.branches for item in towers.get(branch.kind, ())]
        for branch, encoded, each in of_branches:
            if encoded is None:
                continue
            items = each
            if self.engine.queues:
                room = self.limits.tokens // max(encoded.tokens, encoded.rows)
                items = min(max(room, 1), each * self.limits.requests)
            patches = items * encoded.sequences * encoded.patches
            inner = max((widest(block, _KERNELS) for block in branch.blocks), default=0.0)
            moments.append(
                Term.sum(
                    "image encoder" if branch.kind == "vision" else "audio encoder",
                    Term.of(
                        "residual stream and its copies",
                        g.batch_bytes,
                        x=self.engine.streams * branch.hidden_size,
                        w=self.width,
                        T=patches,
                    ),
                    Term.of(
                        "inside the operation", g.split_batch_bytes, x=inner, w=self.width, T=patches, t=self.shares.t
                    ),
                    unit="bytes",
                )
            )
        return moments

    def _batch(self, name: str, numbers: Number, *, cut: bool = False) -> Term:
        if cut:
            return Term.of(name, g.split_batch_bytes, x=numbers, w=self.width, T=self.limits.tokens, t=self.shares.t)
        return Term.of(name, g.batch_bytes, x=numbers, w=self.width, T=self.limits.tokens)

    def _layer(self, stage: Stage) -> Term:
        parts = [self._batch("residual stream and its copies", self.engine.streams * self.model.hidden_size)]
        inner = max((self._inner(block) for block, _ in stage.layers), default=0.0)
        parts.append(self._batch("inside the operation", inner, cut=True))
        if self.engine.autotuner:
            parts.append(_fixed("buffer of the autotuner", self.engine.autotuner, self.engine.source, "rule"))
        return Term.sum("widest layer", *parts, unit="bytes")

    def _inner(self, block: Block) -> float:
        """Numbers a token inside the widest operation; what experts work in is counted apart where it stays."""
        if not self.keeps_experts or not any(isinstance(op, MoE) for op in block.ops):
            return widest(block, _KERNELS)
        rest = Block(block.name, tuple(op for op in block.ops if not isinstance(op, MoE)))
        shared = [3.0 * op.shared_size for op in block.ops if isinstance(op, MoE)]
        return max(widest(rest, _KERNELS), *shared)

    def _sampler(self, head: Head) -> Term:
        engine, sampled, h = self.engine, self.sampled, self.model.hidden_size
        parts = [
            self._batch("hidden states of the batch", h * (1 if engine.sampled_streams else 2)),
            Term.of(
                "logits, probabilities and noise", g.sampler_bytes, V=head.vocab_size, R=sampled, w=engine.logits_bytes
            ),
        ]
        if engine.sampled_streams:
            parts.append(
                Term.of(
                    "hidden states that are sampled",
                    g.batch_bytes,
                    x=engine.sampled_streams * h,
                    w=self.width,
                    T=sampled,
                )
            )
        if engine.sampler_rows:
            parts.append(
                Term.of(
                    "rows of the top-k and top-p kernel",
                    g.sampler_row_bytes,
                    V=head.vocab_size,
                    R=sampled,
                    n=engine.sampler_rows,
                )
            )
        return Term.sum("sampler", *parts, unit="bytes")

    def _staying(self, stage: Stage, accelerator: Accelerator | None) -> list[Term]:
        """What is allocated in the first pass and not freed: workspaces, and what a pass over images leaves for the
        profile.
        """
        terms = []
        size = workspace_bytes(self.engine, accelerator)
        if size:
            terms.append(_fixed("GEMM workspace", size, "PyTorch, aten/src/ATen/cuda/CublasHandlePool.cpp", "rule"))
        if self.keeps_experts:
            mixtures = [op for block, _ in stage.layers for op in block.ops if isinstance(op, MoE)]
            numbers = max((self._expert_workspace(op) for op in mixtures), default=0)
            if numbers:
                terms.append(self._batch("expert workspace", numbers))
        if self.engine.keeps_expert_workspace and stage.towers:
            terms.append(self._batch("what images became", self.model.hidden_size))
            if pixels := image_numbers(self.model):
                terms.append(self._batch("images of a full batch", pixels))
        return terms

    def _expert_workspace(self, op: MoE) -> Number:
        """vLLM, vllm/model_executor/layers/fused_moe/fused_moe.py, TritonExperts.workspace_shapes: two tensors of
        each chosen expert's widest input and output.
        """
        h = op.latent_size or op.hidden_size
        inside = op.intermediate_size / self.shares.q
        return op.top_k * (max(inside, h) + max(inside * (2 if op.gated else 1), h))


def workspace_bytes(engine: ServingRuntime, accelerator: Accelerator | None) -> int:
    """Bytes of the workspace of matrix products, by the accelerator's generation."""
    sizes = engine.workspace
    generation = accelerator.generation.lower() if accelerator is not None else ""
    return sizes.get(generation, sizes.get("", 0))


def _fixed(name: str, size: int, source: str, basis: str) -> Term:
    return Term.of(name, f.fixed_bytes, source=source, basis=basis, M=size)  # type: ignore[arg-type]
