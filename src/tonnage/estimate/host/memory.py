"""Host memory of a node in training: what its processes hold while they load, train and save.

Pages of files that are mapped (safetensors) are left out: the kernel takes them back when it needs the room.
"""

from typing import TYPE_CHECKING

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.estimate.step.communication import copies
from tonnage.estimate.step.rank import largest_weights
from tonnage.formulas import host as h
from tonnage.formulas import memory as f
from tonnage.kernel.message import Message
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
SHARD_OF_FILE = 50 * 10**9  # max_shard_size of transformers' save_pretrained


class HostMemory(Struct, frozen=True, eq=False):
    """`memory`: of the fullest node; `storage`: what it keeps on NVMe, None: nothing; `capacity`: of a node, where
    the catalogue knows it.
    """

    memory: Term
    storage: Term | None
    capacity: int | None

    @property
    def suffices(self) -> bool:
        """Whether a node has it, as far as is known."""
        return self.capacity is None or self.memory.value <= self.capacity


def host_memory(model: Model, plan: TrainingPlan, cluster: Cluster, memory: "TrainingMemory") -> HostMemory:
    """The largest of loading, training and saving. Every rank of a node is taken for the stage that keeps most on
    the host.
    """
    ranks = [_Rank(rank.stage) for rank in memory.candidates]
    most = max(ranks, key=lambda rank: rank.states.value + rank.activations.value)
    on_node = Term.of("ranks of a node", h.ranks_on_node, ranks=cluster.accelerators_per_node)
    runtime = training_runtime(plan.runtime)
    process = Term.of("process: Python, torch, CUDA", f.fixed_bytes, basis="measured", source=PROCESS_SOURCE, M=PROCESS)
    first = memory.ranks[0].stage
    phases = [
        Term.sum("while loading", *_loading(model, first, runtime, on_node), _on_all(on_node, process)),
        Term.sum(
            "while training",
            _on_all(on_node, most.states),
            _on_all(on_node, most.activations),
            _on_all(on_node, _data(plan)),
            _on_all(on_node, process),
        ),
        Term.sum(
            "while saving",
            *_saving(model, most, runtime, on_node),
            _on_all(on_node, most.states),
            _on_all(on_node, _data(plan)),
            _on_all(on_node, process),
        ),
    ]
    storage = _on_all(on_node, most.storage) if most.storage.value else None
    capacity = cluster.node.host_memory_bytes if cluster.node else None
    return HostMemory(Term.max("host memory of a node", *phases), storage, capacity)


def _on_all(ranks: Term, one: Term) -> Term:
    return Term.product(one.name, "bytes", ranks, one)


# ---- loading and saving ----


def _loading(model: Model, rank: "StageMemory", runtime: TrainingRuntime, ranks: Term) -> list[Term]:
    """transformers, modeling_utils.py: every rank a whole copy, or with ZeRO-3 rank 0 alone; a base that is
    quantised is loaded weight by weight. torchtitan and Megatron make the model on the accelerator, and read
    checkpoints tensor by tensor.
    """
    width = rank.step.setting.types.parameter
    all_parameters = copies(
        "whole model", width, Term.of("parameters", f.whole_parameters, N=model.num_parameters(), z=1)
    )
    if runtime.makes_on_accelerator or rank.plan.tuning.base_weights:
        return [_on_all(ranks, copies("one weight at a time", width, largest_weights(rank.stage, rank.step.whole)))]
    if rank.step.framework.loads_on_first_rank:
        return [all_parameters.named("whole model, on the node of rank 0")]
    return [_on_all(ranks, all_parameters.named("a whole model on every rank"))]


def _saving(model: Model, rank: "_Rank", runtime: TrainingRuntime, ranks: Term) -> list[Term]:
    """Each rank's shard (Megatron-core, dist_checkpointing/strategies/filesystem_async.py), what rank 0 gathers,
    tensor by tensor where the model is made on the accelerator, else as transformers does: a file's weights at a
    time, on rank 0.
    """
    stage, plan = rank.stage, rank.plan
    if runtime.saves_shards:
        return [_on_all(ranks, Term.sum("shards to be saved", stage.weights, stage.optimizer))]
    if plan.tuning.has_adapters:
        return []
    all_parameters = Term.of("parameters", f.whole_parameters, N=model.num_parameters(), z=1)
    gathered = stage.step.framework.gathered_to_save(all_parameters)
    if gathered is not None:
        return [gathered] if gathered.value else []
    if runtime.makes_on_accelerator:
        largest = largest_weights(stage.stage, stage.step.whole)
        return [_on_all(ranks, copies("one weight at a time", stage.step.setting.types.parameter, largest))]
    every = copies("weights", stage.step.setting.types.parameter, all_parameters)
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
        host, self._stored = self.step.framework.host_states(stage)
        self.activations = self._activations()
        self.states = Term.sum("offloaded states", *host, *stage.paged_states, unit="bytes")
        self.storage = Term.sum("on NVMe", *self._stored, unit="bytes")

    def _activations(self) -> Term:
        """Tensors that layers keep, pinned one by one; on NVMe two layers' are in memory, on their way."""
        name, place = "offloaded activations", self.plan.offload.offload_activations
        if place == "none":
            return Term.sum(name, unit="bytes")
        counts, leaves = self.stage.counts, self.stage.tensors.leaves
        layers = [
            Term.product(
                Message("{block}s", block=block.name),
                "bytes",
                Term.of("layers on this rank", f.layers_on_rank, l=count),
                self.stage.in_flight,
                Term.sum("one layer", leaves[block], self._rounding(leaves[block])),
            )
            for block, count in counts.items()
        ]
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
