"""Seconds of a step of reinforcement learning, or of preference training with a reference, as a tree: rollouts, weights
to the engine, forward passes of the policy and of the models beside it, updates.
"""

from functools import cached_property
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.documents.run import RunDocument
from tonnage.estimate.hardware.links import links
from tonnage.estimate.hardware.network import Network
from tonnage.estimate.hardware.rates import Rates, rates
from tonnage.estimate.memory import Step, TrainingMemory, training_memory
from tonnage.estimate.post_training.lengths import completions, packed
from tonnage.estimate.post_training.measured import OVERHEADS
from tonnage.estimate.post_training.overheads import REFERENCE_PEAK, Overheads
from tonnage.estimate.post_training.rollout import Rollouts, whole_cluster
from tonnage.estimate.step.method import model_flops
from tonnage.estimate.step.objective import OBJECTIVES, TIMED, sequences_of_sample
from tonnage.estimate.step.rollout_options import generates
from tonnage.estimate.step_time.step import StepTime
from tonnage.estimate.step_time.time import check_timed_runtime
from tonnage.estimate.step_time.traffic import traffic
from tonnage.formulas import memory
from tonnage.formulas import post_training as f
from tonnage.formulas import time as t
from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.spec import Cluster, TrainingPlan

# Objectives whose loss compares with the probabilities that the policy gave before the update: NeMo RL,
# nemo_rl/algorithms/grpo.py, and veRL, verl/trainer/ppo/ray_trainer.py, compute them in a pass of their own.
KEEPS_OLD = ("grpo", "dapo", "rloo", "ppo")
# Part of a step in which no phase runs: the median of 7.0, 3.0, 3.0 and 2.8 % of the colocated runs of veRL,
# docs/advance/fully_async.md (commit b178a3cd): 790.1, 365.3, 356.3 and 497.9 s less their phases.
BETWEEN = 0.03
HELD = ("weights", "optimizer")  # what training keeps between steps
WEIGHT = 2  # bytes of a weight that goes to the engine
HOST_SOURCE = "veRL, its documentation and code: training states leave the accelerator while the engine generates"
SYNC_SOURCE = (
    "veRL, its documentation and code: each rank of the engine gathers its weights from the shards of training"
)


class Batch(Struct, frozen=True):
    """Rows of a step as the update sees them. `rows`: of prompts with one completion, or pairs; `tokens`: of a row that
    are trained on, of one sequence; `plan`: one optimizer step, of sequences as long as they are computed.
    """

    rows: int
    tokens: float
    plan: TrainingPlan


class PostTrainingStep:
    """One step of an objective that is not sft. Raises MissingDatum where no time is known. `held`: the memory of the
    plan, where somebody has it.
    """

    def __init__(
        self,
        model: Model,
        plan: TrainingPlan,
        cluster: Cluster,
        held: TrainingMemory | None = None,
        chosen: Rates | None = None,
        overheads: Overheads = OVERHEADS,
    ):
        objective = plan.post_training.objective
        if objective not in TIMED:
            raise MissingDatum("the time of objective {objective} is not estimated.", objective=objective)
        check_timed_runtime(plan.runtime)
        self.model, self.plan, self.cluster = model, plan, cluster
        self.rates = chosen or rates()
        self._memory, self.overheads = held, overheads
        self.generates = generates(objective)
        self.beside = tuple(name for name, _ in plan.post_training.models_beside)
        self.critic = OBJECTIVES[objective].critic

    # ---- rollouts ----

    @cached_property
    def held_bytes(self) -> float:
        """Weights and optimizer states of the fullest rank, which training keeps while the engine generates. Where they
        leave for the host, those of models beside the policy are there anyway, as in NeMo RL and with veRL's
        ref.param_offload.
        """
        without = self.beside if self.plan.rollout.rollout_offload else ()
        return max(_held(phase, without) for phase in self.memory.fullest.phases)

    @cached_property
    def memory(self) -> TrainingMemory:
        """Of the training step alone."""
        return self._memory or training_memory(self.model, self.plan, self.cluster)

    @cached_property
    def rollouts(self) -> Rollouts:
        return Rollouts(self.model, self.plan, self.cluster, self.held_bytes, self.overheads)

    # ---- what the update sees ----

    @cached_property
    def batch(self) -> Batch:
        """The rows of a step, padded to the longest or packed."""
        plan, rollout = self.plan, self.plan.rollout
        if not self.generates:
            return Batch(int(plan.global_batch_size), float(plan.sequence_length), plan)
        sequences = sequences_of_sample(plan)
        drawn = rollout.prompts_per_step * rollout.num_generations
        lengths = round(rollout.prompt_length) + completions(rollout, min(drawn, 1 << 16))
        mean, rows = float(lengths.mean()), drawn // sequences
        if not rollout.sequence_packing:
            return Batch(rows, mean, plan.with_fields(sequence_length=int(lengths.max())))
        own = int(plan.micro_batch_size * plan.num_microbatches)  # rows of a replica in an update
        room = int(plan.micro_batch_size * plan.sequence_length)
        count = packed(round(rollout.prompt_length) + completions(rollout, own * sequences), room * sequences)
        width = own / count
        if plan.pipeline_parallel_size > 1:  # stages hand on tensors of one size: NeMo RL, models/megatron/common.py
            width = room / mean
        packing = plan.with_fields(sequence_length=round(mean), micro_batch_size=width, num_microbatches=count)
        return Batch(rows, mean, packing)

    @cached_property
    def walk(self) -> StepTime:
        """One optimizer step."""
        return StepTime(Step(self.model, self.batch.plan, self.cluster), self.rates)

    @cached_property
    def updates(self) -> Term:
        """Optimizer steps of one step."""
        plan, name = self.plan, "updates of a step"
        return Term.of(
            name,
            f.updates_per_step,
            R=self.batch.rows,
            n_epochs=plan.rollout.ppo_epochs,
            b=plan.micro_batch_size,
            m=plan.num_microbatches,
            d=plan.data_parallel_size,
        )

    def _update(self, name: str) -> Term:
        """The updates of a step. What the host does after each takes what it takes elsewhere."""
        walk, factor = self.walk, self._loop(self.overheads.update_factor(self.plan.runtime) if self.generates else 1.0)
        if walk.update is None:
            return Term.product(name, "seconds", self.updates, walk.term.named("one update"), *factor)
        computed = Term.product("on accelerators", "seconds", walk.on_accelerators.named("kernels and links"), *factor)
        return Term.product(name, "seconds", self.updates, walk.with_update(computed).named("one update"))

    @property
    def host_seconds(self) -> float:
        """Seconds of the updates of a step in which only the host works."""
        update = self.walk.update
        return 0.0 if update is None else (1 + self.critic) * float(self.updates.value * update.value)

    def _loop(self, factor: float) -> list[Term]:
        """The factor of a phase inside the loop, where there is any."""
        if factor == 1:
            return []
        name, kernels = "in the loop of a step", self.walk.kernels
        peak = kernels.chip.peak(kernels.wide)
        return [Term.of(name, f.loop_factor, kappa_loop=factor, P=peak, P_ref=REFERENCE_PEAK)]

    def _forward(self, name: str, larger: float = 1) -> Term:
        """One pass over all rows without gradients. `larger`: parameters of the model that runs over those of the one
        that trains: it takes as much longer.
        """
        plan, walk = self.batch.plan, self.walk
        epochs = self.plan.rollout.ppo_epochs
        slowest = larger * max(float(p.computing("forward") + p.sending("forward")) for p in walk.kinds)
        passes = Term.of(
            name,
            f.forward_only_seconds,
            tau_f=slowest,
            m=plan.num_microbatches * self.updates.value / epochs,
            p=plan.pipeline_parallel_size,
            rho=walk.factor,
        )
        factor = self._loop(self.overheads.forward_factor if self.generates else 1.0)
        return Term.product(name, "seconds", passes.named("kernels and links"), *factor) if factor else passes

    @cached_property
    def passes(self) -> list[Term]:
        """Forward passes over all rows before the update."""
        names = []
        if self.plan.post_training.objective in KEEPS_OLD:
            names.append("log-probabilities of the policy")
        names += [_forward_of(name) for name in self.beside if name != "teacher"]
        if self.plan.post_training.objective in ("dpo", "online-dpo") and not self.beside:
            names.append(_forward_of("reference model"))  # the model without its adapters
        if self.critic:
            names.append(_forward_of("critic"))
        taught = [
            self._forward(_forward_of(name), count / self.model.num_parameters())
            for name, count in self.plan.post_training.models_beside
            if name == "teacher"
        ]
        return [*taught, *(self._forward(name) for name in names)]

    @cached_property
    def training(self) -> list[Term]:
        """What training does in a step, one after the other."""
        updates = [self._update("update")]
        if self.critic:
            updates.append(self._update("update of the critic"))
        return [*self.passes, *updates]

    # ---- weights and states that move ----

    @cached_property
    def sync(self) -> Term:
        """Seconds until the engine has the new weights."""
        plan, size = self.plan, self.model.num_parameters() * WEIGHT
        ranks = int(plan.tensor_parallel_size * plan.pipeline_parallel_size * plan.expert_parallel_size)
        if plan.zero_stage == 3 or self.walk.gathers:
            ranks = plan.world_size
        ranks = min(ranks, plan.world_size)
        network = Network(self.cluster, self.rates, stated=plan.links)
        gathered = float(network.collective("all_gather", size, ranks).seconds)
        parts = [self._moved("gathered from the shards of training", gathered, size, SYNC_SOURCE)]
        ranks_of_engine = self.rollouts.served[0].tensor_parallel_size
        bandwidth = self.rollouts.passes.bandwidth
        if not self.rollouts.is_colocated:
            joint = whole_cluster(plan.rollout, self.cluster)
            away = self.cluster.accelerators_per_node
            sent = float(Network(joint, self.rates, stated=plan.links).send(size, away))
            source = "OpenRLHF, openrlhf/trainer/ray/ppo_actor.py: rank 0 broadcasts each weight to all engines"
            parts.append(self._moved("broadcast to the engines", sent, size, source))
        parts.append(
            Term.of(
                "written by the engine",
                t.memory_seconds,
                M=2 * size / ranks_of_engine,
                W=bandwidth,
                u=self.rates.memory,
            )
        )
        if each := self.overheads.tensor_seconds:
            count = sum(weight.copies * layers for weight, layers in self.model.weighted())
            parts.append(Term.of("tensor by tensor", f.tensor_by_tensor_seconds, n_tensors=count, tau=each))
        return Term.sum("weights to the engine", *parts)

    @cached_property
    def leaving(self) -> float:
        """Bytes of training states that leave the accelerator while the engine generates, of the fullest rank."""
        if not self.generates or not self.rollouts.is_colocated:
            return 0.0
        if self.plan.rollout.rollout_offload:
            return self.held_bytes
        if self.plan.rollout.rollout_offload is False:
            return 0.0
        usable = self.cluster.accelerator.memory.usable_bytes
        return max(
            float(f.leaving_bytes.evaluate(M=self.held_bytes, u=self.rollouts.taken, U=usable)),
            0.0,
        )

    @cached_property
    def moved_to_host(self) -> Term | None:
        """Seconds of what leaves for the host before the rollouts and comes back after them; None where all fits."""
        if not self.leaving:
            return None
        host = self.cluster.accelerator.host_link
        if host is None:
            raise MissingDatum(
                "no source gives the host link of {accelerator}: the time of offloading needs it.",
                accelerator=self.cluster.accelerator.name,
            )
        rate = host.bytes_per_second * links().of(host, inside=True).direct
        if measured := self.overheads.host_bytes_per_second:
            rate = min(rate, measured)
        return Term.of(
            "training states to the host and back",
            t.transfer_seconds,
            source=HOST_SOURCE,
            M=2 * self.leaving,
            W=rate,
        )

    @cached_property
    def rollout_memory(self) -> Term | None:
        """Bytes of an accelerator that trains while the engine generates on it; None where it generates apart."""
        if not self.rollouts.is_colocated:
            return None
        usable, u = self.cluster.accelerator.memory.usable_bytes, self.rollouts.taken
        engine = Term.of("engine that generates", memory.engine_bytes, U=usable, u=u)
        if self.leaving:
            held = (
                []
                if self.plan.rollout.rollout_offload
                else [Term.of("training states that stay", f.staying_bytes, u=u, U=usable)]
            )
        else:
            phase = max(self.memory.fullest.phases, key=lambda phase: _held(phase, ()))
            held = [child for child in phase.children if child.name in HELD]
        return Term.sum("memory during the rollout", *held, engine)

    def _moved(self, name: str, seconds: float, size: float, source: str) -> Term:
        return Term.by(
            name,
            seconds,
            "seconds",
            basis="analytic",
            source=source,
            version="1",
            procedure="all weights in 16 bit, at the bandwidth of the links",
            bytes=size,
        )

    # ---- the step ----

    @cached_property
    def term(self) -> Term:
        """Seconds of a step, with everything that spends them."""
        if not self.generates:
            return Term.sum("time of a step", *self.training)
        rollout, moved = self.rollouts.term, [self.moved_to_host] if self.moved_to_host else []
        if self.plan.rollout.async_steps:
            both = Term.max("rollout and training, side by side", rollout, Term.sum("training", *self.training))
            return self._with_gaps(both, self.sync)
        return self._with_gaps(rollout, self.sync, *moved, *self.training)

    def _with_gaps(self, *phases: Term) -> Term:
        """A step of these phases, and what passes between them."""
        total = sum(float(phase.value) for phase in phases)
        gaps = Term.of("between the phases", f.between_phases_seconds, tau=total, share_gap=BETWEEN)
        return Term.sum("time of a step", *phases, gaps)

    @property
    def seconds(self) -> float:
        return float(self.term.value)

    @property
    def parts(self) -> dict[str, Term]:
        """What a step does one after the other, or side by side, by name."""
        if not self.generates:
            return {part.name: part for part in self.training}
        found = {"rollout": self.rollouts.term, self.sync.name: self.sync}
        if self.moved_to_host and not self.plan.rollout.async_steps:
            found[self.moved_to_host.name] = self.moved_to_host
        return found | {part.name: part for part in self.training}

    @property
    def bound_by(self) -> str:
        """The part that takes longest."""
        updating = [part for name, part in self.parts.items() if name.startswith("update")]
        seconds = {
            "rollout": float(self.rollouts.term.value) if self.generates else 0.0,
            "forward passes": sum(float(part.value) for part in self.passes),
            "updates": sum(float(part.value) for part in updating),
        }
        if self.generates:
            seconds["weights to the engine"] = float(self.sync.value)
            if self.moved_to_host:
                seconds["links, to the host"] = float(self.moved_to_host.value)
        return max(seconds, key=lambda name: seconds[name])

    @property
    def pieces(self) -> None:
        """No picture is drawn of a step with several phases."""
        return

    @cached_property
    def traffic(self) -> Term:
        """Bytes that an accelerator of the fullest stage sends in one update."""
        return traffic(self.walk)

    @property
    def accelerators(self) -> int:
        """Those that train, and those that generate apart from them."""
        return self.cluster.size + self.plan.rollout.rollout_accelerators

    @cached_property
    def counted_plan(self) -> TrainingPlan:
        """A plan that has the tokens of a whole step, and all accelerators: the length of a run is counted with it."""
        plan, batch = self.plan, self.batch
        sequences = sequences_of_sample(plan)
        more = self.accelerators / self.cluster.size
        data = plan.data_parallel_size * more
        return plan.with_fields(
            sequence_length=batch.tokens * sequences,
            data_parallel_size=int(data) if data.is_integer() else data,
            num_microbatches=batch.rows / (plan.micro_batch_size * data),
        )

    @cached_property
    def flops(self) -> float:
        """FLOP of the model in the updates of a step: what MFU counts."""
        plan = self.plan
        tokens = plan.with_fields(sequence_length=self.batch.tokens) if self.generates else plan
        sequences = sequences_of_sample(plan)
        return float(model_flops(self.model, tokens, self.walk.step).value * self.updates.value * sequences)

    def figures(self) -> RunDocument[Term]:
        """What the document has of a step."""
        peaks: dict[str, Any] = {
            "tau": self.term.value,
            "n": self.accelerators,
            "P": self.walk.kernels.chip.peak(self.walk.kernels.wide),
        }
        sequences = sequences_of_sample(self.plan)
        trained = f.trained_tokens.evaluate(R=self.batch.rows * sequences, s=self.batch.tokens)
        ranks = self.plan.world_size / self.plan.pipeline_parallel_size
        done = sum(spent.flops for stage in self.walk.stages for spent in stage.kernels.values())
        forward = sum(
            spent.flops for stage in self.walk.stages for (when, _), spent in stage.kernels.items() if when == "forward"
        )
        epochs = self.plan.rollout.ppo_epochs
        count = self.batch.plan.num_microbatches * ranks * self.updates.value
        every = count * (done * (1 + self.critic) + forward * len(self.passes) / epochs)
        figures = RunDocument(
            bound_by=self.bound_by,
            mfu=Term.of("MFU", t.flops_utilization, C=self.flops * (1 + self.critic), **peaks),
            hfu=Term.of("HFU", t.flops_utilization, C=every, **peaks),
            tokens_per_second=Term.of("tokens per second", t.tokens_per_second, D=trained, tau=self.term.value),
        )
        if not self.generates:
            return figures
        share = Term.of("share of the rollout", f.rollout_share, tau=self.rollouts.term.value, tau_step=self.term.value)
        return replace(figures, rollout_share=share, rollout_memory=self.rollout_memory or UNSET)


def _held(phase: Term, without: tuple[str, ...]) -> float:
    held = [child for child in phase.children if child.name in HELD]
    beside = sum(float(each.value) for child in held for each in child.children if each.name in without)
    return sum(float(child.value) for child in held) - beside


def _forward_of(name: str) -> Message:
    return Message("forward pass, {name}", name=name)
