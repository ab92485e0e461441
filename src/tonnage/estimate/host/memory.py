"""Host memory of a node in training: what its processes hold while they load, train and save.

Pages of files that are mapped (safetensors) are left out: the kernel takes them back when it needs the room.
"""

from typing import TYPE_CHECKING

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.estimate.step.communication import copies, width_of
from tonnage.estimate.step.offload import leaving, offloaded
from tonnage.estimate.step.pieces import largest_weights
from tonnage.formulas import host as h
from tonnage.formulas import memory as f
from tonnage.kernel.formula import Number, is_any
from tonnage.kernel.term import Term
from tonnage.runtimes import TrainingRuntime, training_runtime
from tonnage.spec import Cluster, TrainingPlan

if TYPE_CHECKING:
    from tonnage.estimate.memory import TrainingMemory
    from tonnage.estimate.step.stage import StageMemory

PROCESS, WORKER = 2_056_600 * 1024, 322_040 * 1024
PROCESS_SOURCE = (
    "PyTorch, issue 113326: maximum resident set of a process with a CUDA context (torch 2.2), 2,056,600 kB"
)
WORKER_SOURCE = "PyTorch, issue 113326: maximum resident set of a process that imported torch, 322,040 kB"
# DeepSpeed, deepspeed/runtime/zero/offload_config.py
PARAMETER_BUFFERS, PARAMETER_BUFFER, MOST_IN_MEMORY, OPTIMIZER_BUFFERS = 5, 100_000_000, 1_000_000_000, 4
ON_ACCELERATOR = ("torchtitan", "nanotron", "megatron")  # whose code makes the model there
SHARD_OF_FILE = 50 * 10**9  # max_shard_size of transformers' save_pretrained


class HostMemory(Struct, frozen=True, eq=False):
    """`memory`: of the fullest node; `storage`: what it keeps on NVMe, None: nothing; `capacity`: of a node, where the catalogue knows it."""

    memory: Term
    storage: Term | None
    capacity: int | None


def host_memory(model: Model, plan: TrainingPlan, cluster: Cluster, made: "TrainingMemory") -> HostMemory:
    """The largest of loading, training and saving. Every rank of a node is taken for the stage that keeps most on the host."""
    ranks = [_Rank(rank.stage) for rank in made.candidates]
    most = max(ranks, key=lambda rank: rank.states.value + rank.activations.value)
    on_node = Term.of("ranks of a node", h.ranks_on_node, ranks=cluster.accelerators_per_node)
    runtime = training_runtime(plan.runtime)
    process = Term.of("process: Python, torch, CUDA", f.fixed_bytes, basis="measured", source=PROCESS_SOURCE, M=PROCESS)
    first = made.ranks[0].stage
    phases = [
        Term.sum("while loading", *_loading(model, first, runtime, on_node), _on_all(on_node, process)),
        Term.sum("while training", _on_all(on_node, most.states), _on_all(on_node, most.activations), _on_all(on_node, _data(plan)),
                 _on_all(on_node, process)),
        Term.sum("while saving", *_saving(model, most, runtime, on_node), _on_all(on_node, most.states), _on_all(on_node, _data(plan)),
                 _on_all(on_node, process)),
    ]  # fmt: skip
    storage = _on_all(on_node, most.storage) if most.storage.value else None
    capacity = cluster.node.host_memory_bytes if cluster.node else None
    return HostMemory(Term.max("host memory of a node", *phases), storage, capacity)


def _on_all(ranks: Term, one: Term) -> Term:
    return Term.product(one.name, "bytes", ranks, one)


# ---- loading and saving ----


def _loading(model: Model, rank: "StageMemory", runtime: TrainingRuntime, ranks: Term) -> list[Term]:
    """transformers, modeling_utils.py: every rank a whole copy, or with ZeRO-3 rank 0 alone; a base that is quantised is loaded weight by
    weight. torchtitan and Megatron make the model on the accelerator, and read checkpoints tensor by tensor."""
    width = rank.step.setting.types.parameter
    whole = copies("whole model", width, Term.of("parameters", f.whole_parameters, N=model.num_parameters(), z=1))
    if runtime.code in ON_ACCELERATOR or rank.plan.base_weights:
        return [_on_all(ranks, copies("one weight at a time", width, largest_weights(rank.stage, rank.step.whole)))]
    if runtime.name == "deepspeed" and rank.plan.zero_stage == 3:
        return [whole.named("whole model, on the node of rank 0")]
    return [_on_all(ranks, whole.named("a whole model on every rank"))]


def _saving(model: Model, rank: "_Rank", runtime: TrainingRuntime, ranks: Term) -> list[Term]:
    """transformers: a file's weights at a time, on rank 0; DeepSpeed: all 16-bit weights on rank 0, if it gathers them; Megatron: each
    rank's shard (dist_checkpointing/strategies/filesystem_async.py); torchtune all weights (gather_cpu_state_dict); others write tensor by tensor."""
    stage = rank.stage
    recipe, plan = stage.step.recipe, stage.plan
    if runtime.name == "megatron":
        return [_on_all(ranks, Term.sum("shards to be saved", stage.weights, stage.optimizer))]
    if plan.method in ("lora", "dora"):
        return []
    whole = Term.of("parameters", f.whole_parameters, N=model.num_parameters(), z=1)
    if runtime.name == "deepspeed" and plan.zero_stage == 3:
        gathers = plan.stage3_gather_16bit_weights_on_model_save
        return [copies("gathered weights, on the node of rank 0", recipe.compute_bytes, whole)] if gathers else []
    if runtime.name == "torchtune":
        return [copies("gathered weights, on the node of rank 0", stage.step.setting.types.parameter, whole)]
    if runtime.code in ON_ACCELERATOR:
        largest = largest_weights(stage.stage, stage.step.whole)
        return [_on_all(ranks, copies("one weight at a time", stage.step.setting.types.parameter, largest))]
    every = copies("weights", stage.step.setting.types.parameter, whole)
    return [Term.of("weights of one file, on the node of rank 0", h.saved_shard_bytes, M=every.value, U=SHARD_OF_FILE)]


def _data(plan: TrainingPlan) -> Term:
    """Batches that wait, and the processes that make them."""
    workers = plan.data_loader_workers
    batches = Term.of(
        "batches", h.loader_batch_bytes, s=plan.sequence_length, b=plan.micro_batch_size, n_copies=2 * workers + 1
    )
    processes = Term.of(
        "processes", h.loader_processes_bytes, basis="measured", source=WORKER_SOURCE, M=WORKER, n_copies=workers
    )
    return Term.sum("data loaders", batches, *([processes] if workers else []))


# ---- what a rank offloads ----


class _Rank:
    """What one rank keeps on the host; `storage`: on NVMe."""

    def __init__(self, stage: "StageMemory"):
        self.stage, self.plan, self.step = stage, stage.plan, stage.step
        self._host: list[Term] = []
        self._stored: list[Term] = []
        {"deepspeed": self._of_deepspeed, "megatron": self._of_megatron}.get(self.plan.runtime, self._of_fsdp2)()
        self.activations = self._activations()
        self.states = Term.sum("offloaded states", *self._host, unit="bytes")
        self.storage = Term.sum("on NVMe", *self._stored, unit="bytes")

    def _of_fsdp2(self) -> None:
        """torch, distributed/fsdp/_fully_shard/_fsdp_api.py: CPUOffloadPolicy, pinned by default."""
        if self.plan.offload_parameters == "none":
            return
        weights, gradients = self.stage.every_weight.named("weights"), self.stage.every_gradient.named("gradients")
        self._host += [*self._pinned(weights), gradients, self.stage.every_state]

    def _of_megatron(self) -> None:
        """Megatron-core, optimizer/cpu_offloading/hybrid_optimizer.py: an fp32 copy, its gradient and the moments."""
        share = offloaded(self.plan, "optimizer")
        if self.plan.offload_optimizer == "none":
            return
        gradient = copies("gradients", width_of("gradient", self.step.updates), self.stage.trained_shard)
        self._host += [leaving(self.stage.every_state, share), *self._pinned(leaving(gradient, share))]

    def _of_deepspeed(self) -> None:
        """DeepSpeed, deepspeed/runtime/zero/{stage_1_and_2,stage3}.py and swap_tensor."""
        stage, plan, updates = self.stage, self.plan, self.step.updates
        held, narrow = stage.trained_shard, width_of("compute", updates)
        place = plan.offload_optimizer
        gradients = copies("gradients in the master's type", width_of("master", updates), held)
        if place != "none" and plan.zero_stage < 3:
            self._host += [
                stage.every_state,
                *self._pinned(gradients),
                *self._pinned(copies("updated weights in 16 bit", narrow, held)),
            ]
            if is_any(plan.num_microbatches > 1):
                self._host.append(copies("gradients that are accumulated", narrow, held))
            self._host += self._pinned(
                copies("gradient on its way", narrow, largest_weights(stage.stage, self.step.whole))
            )
        if place != "none" and plan.zero_stage == 3:
            self._host += self._pinned(copies("gradients that are accumulated", narrow, held))
            share = offloaded(plan, "optimizer")
            if place == "cpu":
                self._host += [leaving(stage.every_state, share), *self._pinned(leaving(gradients, share))]
            else:
                self._stored += [stage.every_state, gradients]
                group = Term.of("elements", f.bucket_parameters, N=held.value, x=plan.sub_group_size)
                self._host.append(
                    self._swap(
                        "buffers of optimizer states", OPTIMIZER_BUFFERS, group.value, width_of("master", updates)
                    )
                )
        self._parameters_of_deepspeed()

    def _parameters_of_deepspeed(self) -> None:
        stage, plan, wide = self.stage, self.plan, self.step.recipe.compute_bytes
        if plan.offload_parameters == "none":
            return
        if is_any(plan.zero_hpz_partition_size > 1):
            part = Term.of("parameters", f.whole_parameters, N=stage.whole.value, z=plan.zero_hpz_partition_size)
            self._host += self._pinned(copies("second shard of ZeRO++", wide, part))
        if plan.offload_parameters == "cpu":
            self._host += self._pinned(stage.every_weight.named("weights"))
            return
        beyond = Term.of("parameters beyond max_in_cpu", f.parameters_beyond, N=stage.shard.value, xi=MOST_IN_MEMORY)
        self._stored.append(copies("weights", wide, beyond))
        near = Term.of("parameters that stay in memory", f.bucket_parameters, N=stage.shard.value, x=MOST_IN_MEMORY)
        self._host += self._pinned(copies("weights in memory, max_in_cpu", wide, near))
        self._host.append(self._swap("buffers of weights", PARAMETER_BUFFERS, PARAMETER_BUFFER, wide))

    def _swap(self, name: str, buffers: int, elements: Number, width: float) -> Term:
        return Term.of(name, h.swap_buffer_bytes, n_copies=buffers, x=elements, w=width)

    def _pinned(self, *blocks: Term) -> list[Term]:
        """Pinned blocks, each with what its size is rounded up by."""
        made: list[Term] = []
        for block in blocks:
            made += [block, Term.of(f"{block.name}: rounding of pinned memory", h.pinned_rounding, M=block.value)]
        return made

    def _activations(self) -> Term:
        """Tensors that layers keep, pinned one by one; on NVMe two layers' are in memory, on their way."""
        name, place = "offloaded activations", self.plan.offload_activations
        if place == "none":
            return Term.sum(name, unit="bytes")
        counts, leaves = self.stage.counts, self.stage.tensors.leaves
        layers = [Term.product(f"{block.name}s", "bytes", Term.of("layers on this rank", f.layers_on_rank, l=count), self.stage.in_flight,
                               Term.sum("one layer", leaves[block], self._rounding(leaves[block]))) for block, count in counts.items()]  # fmt: skip
        if place == "cpu":
            return Term.sum(name, *layers, unit="bytes")
        self._stored += layers
        two = Term.of("layers on their way", f.layers_on_rank, l=min(2, sum(counts.values())))
        largest = Term.max("the largest layer", *(leaves[block] for block in counts))
        return Term.sum(name, Term.product("layers on their way", "bytes", two, largest))

    def _rounding(self, layer: Term) -> Term:
        tensors = layer.children or (layer,)
        parts = [
            Term.of(tensor.name, h.pinned_rounding, M=tensor.value) for tensor in tensors if tensor.value is not None
        ]
        return Term.sum("rounding of pinned memory", *parts, unit="bytes")
