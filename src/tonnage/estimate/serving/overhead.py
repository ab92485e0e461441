"""What is on an accelerator beside weights, cache and activations of a served model, or must stay free there."""

from tonnage.architectures import Model
from tonnage.estimate.serving.static_share import memory_share
from tonnage.estimate.step.rank import Stage
from tonnage.formulas import engines as e
from tonnage.formulas import memory as f
from tonnage.formulas import serving as g
from tonnage.kernel.formula import Number
from tonnage.kernel.term import Term
from tonnage.ops import MoE
from tonnage.runtimes import ServingRuntime
from tonnage.spec import Accelerator, ServingPlan

NO_CONTEXT = ("cpu", "apple")  # kinds of accelerators on which a process holds nothing beside its tensors


class Overhead:
    """Of each rank of a replica."""

    def __init__(self, model: Model, engine: ServingRuntime, plan: ServingPlan, accelerator: Accelerator | None):
        self.engine, self.plan, self.accelerator = engine, plan, accelerator
        self.share = memory_share(engine, plan, model, accelerator)
        self.tensor = plan.tensor_parallel_size * plan.attention_data_parallel_size

    def beside(self, stage: Stage, weights: Term, activations: Term) -> Term:
        """Fixed amounts, and what the engine leaves free."""
        engine = self.engine
        captured = self._captured(stage)
        parts = [
            *self._measured("libraries of the process", 0 if self._has_no_context() else engine.process),
            *self._measured("communicators", self._communicators()),
            *self._measured("captured graphs", captured if engine.graphs_in_share else 0),
        ]
        outside = self._measured("captured graphs", 0 if engine.graphs_in_share else captured)
        fixed = sum(part.value for part in parts)
        return Term.sum(
            "runtime overhead", *parts, *self._left_free(fixed, outside, weights, activations), unit="bytes"
        )

    def _measured(self, name: str, size: int) -> list[Term]:
        if not size:
            return []
        return [Term.of(name, f.fixed_bytes, basis="measured", source=self.engine.overhead_source, M=size)]

    def _has_no_context(self) -> bool:
        """llama.cpp: on the processor and on Apple's chips nothing."""
        own = self.engine.cells is not None and self.engine.cells.host_table
        return own and self.accelerator is not None and self.accelerator.kind in NO_CONTEXT

    def _communicators(self) -> int:
        if self.tensor == 1:
            return 0
        return self.engine.communicators + (self.tensor - 2) * self.engine.each_peer

    def _captured(self, stage: Stage) -> int:
        """What captured graphs take for the layers of a stage."""
        if self.plan.enforce_eager:
            return 0
        each, more = self.engine.graph_layers
        mixed = sum(count for block, count in stage.layers if any(isinstance(op, MoE) for op in block.ops))
        alone = self.tensor * self.plan.pipeline_parallel_size == 1
        layers = each * sum(count for _, count in stage.layers) + more * mixed
        return self.engine.graphs[0 if alone else 1] + layers

    def _left_free(self, fixed: Number, outside: list[Term], weights: Term, activations: Term) -> list[Term]:
        """What the engine leaves free of an accelerator, by how its share is meant; `outside`: what it takes beside
        that share.
        """
        engine, share = self.engine, self.share
        if self.accelerator is None or share is None:
            return outside
        usable = self.accelerator.memory.usable_bytes - (self.plan.reserve_bytes if engine.share_of != "total" else 0)
        if engine.share_of == "static":
            dynamic = e.dynamic_bytes
            rest = Term.of("outside of the static part", dynamic, source=engine.source, U=usable - fixed, u=share)
            return [Term.of("reserved beyond activations", e.reserve_left_bytes, U=rest.value, M=activations.value)]
        if engine.share_of == "free":
            taken = fixed + weights.value + activations.value
            return [Term.of("left by the cache", e.unshared_bytes, source=engine.source, U=usable, u=share, M=taken)]
        beyond = g.unclaimed_bytes
        rest = Term.of(
            "beyond the engine's share", beyond, source=engine.source, U=usable, u=share, M=self.plan.reserve_bytes
        )
        context = Term.of(
            "accelerator context", f.fixed_bytes, basis="measured", source=engine.overhead_source, M=engine.context
        )
        inside = [context] if engine.context_in_share else []
        outside = ([] if engine.context_in_share else [context]) + outside
        if len(outside) > 1:
            outside = [Term.sum("beside the engine's share", *outside, unit="bytes")]
        return [*inside, Term.max("left free by the engine", rest, *outside)]
