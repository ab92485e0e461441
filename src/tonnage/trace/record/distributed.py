"""One rank of a distributed training program of transformers, on a fake process group: FSDP2, DDP, tensor parallelism.

A collective costs its tensors' memory. Missing is only what NCCL takes outside the allocator.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from tonnage.kernel.errors import InvalidPlan
from tonnage.trace.distributed import Distributed
from tonnage.trace.profiles import Profile
from tonnage.trace.program import Program
from tonnage.trace.record import huggingface
from tonnage.trace.record.fake.environment import recording
from tonnage.trace.record.fake.recorder import Recorder
from tonnage.trace.record.train import Progress, train
from tonnage.trace.recording import Recording

_FSDP2 = (2, 4)  # PyTorch 2.4, torch/distributed/_composable/fsdp
_HELD_UNTIL_WAIT = (2, 8)  # TORCH_NCCL_AVOID_RECORD_STREAMS is the default (pytorch/torchtitan, pull request 1088)
Optimizer = Callable[[Iterable[torch.Tensor]], torch.optim.Optimizer]


def adamw(parameters: Iterable[torch.Tensor]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=1e-4)


def distributed(
    config: Mapping[str, Any],
    plan: Distributed,
    profile: Profile,
    optimizer: Optimizer = adamw,
    progress: Progress = lambda stage: None,
) -> Recording:
    """Record one rank's allocations in `plan.steps` steps. Raises InvalidPlan, InvalidInput, MissingDatum.

    The process group, patches and caches of DTensor are removed afterwards, whatever happened.
    """
    _check(plan, profile)
    # Also imports transformers: what of it is first imported inside asks whether it is traced, and takes another path.
    huggingface.configuration(config, plan.num_layers)
    with warnings.catch_warnings(), recording("cuda", profile, world=plan.world) as recorder:
        warnings.simplefilter("ignore")  # PyTorch's and transformers' warnings are about our own program
        torch.distributed.init_process_group("nccl")
        progress("model")
        program = _program(recorder, config, plan, optimizer)
        train(recorder, program, plan.steps, progress)
    return recorder.recording(plan.program, _notes(plan, profile))


def _check(plan: Distributed, profile: Profile) -> None:
    if "fsdp2" in plan.kind and profile.torch < _FSDP2:
        raise InvalidPlan("FSDP2 came with torch 2.4. Got the profile {profile}.", profile=profile.name)


def _program(recorder: Recorder, config: Mapping[str, Any], plan: Distributed, optimizer: Optimizer) -> Program:
    if plan.kind == "ddp":
        with torch.device("cuda"):
            model = _model(config, plan)
        wrapped: nn.Module = _replicated(model, plan)
    else:
        with torch.device("meta"), recorder.pause():
            model = _model(config, plan)
        wrapped = model
    recorder.modules.name(model)
    program = huggingface.training_program(
        model,
        sequence_length=plan.sequence_length,
        micro_batch_size=plan.micro_batch_size,
        optimizer=optimizer,
        recompute=plan.recompute,
        num_microbatches=plan.num_microbatches,
        clip_grad_norm=plan.clip_grad_norm,
        autocast=_autocast(plan),
    )
    if plan.kind != "ddp":
        _shard(recorder, model, plan)
    if plan.sequence_parallel:
        # The model derives positions from its embeddings' size, and each rank has only a part of them.
        program.inputs["position_ids"] = torch.arange(plan.sequence_length, device="cuda").unsqueeze(0)
    program.model = wrapped
    return program


def _model(config: Mapping[str, Any], plan: Distributed) -> Any:
    chosen = {} if plan.attention is None else {"attention": plan.attention}
    return huggingface.build(config, plan.dtype, num_layers=plan.num_layers, **chosen)


def _autocast(plan: Distributed) -> str | None:
    """The autocast type: FSDP2 casts by itself; elsewhere a program with wide weights computes under autocast."""
    return plan.param_dtype if plan.kind in ("ddp", "tp") and plan.param_dtype != plan.dtype else None


def _replicated(model: nn.Module, plan: Distributed) -> nn.Module:
    return nn.parallel.DistributedDataParallel(
        model,
        device_ids=[torch.cuda.current_device()],
        bucket_cap_mb=None if plan.bucket_cap_mb == 25 else plan.bucket_cap_mb,
        gradient_as_bucket_view=plan.gradient_as_bucket_view,
    )


def _shard(recorder: Recorder, model: Any, plan: Distributed) -> None:
    """Shard a model of meta tensors before giving it memory."""
    data, tensor = device_meshes(plan)
    with recorder.pause():
        if tensor is not None:
            from tonnage.trace.record.tensor_parallel import tensor_parallel

            tensor_parallel(model, tensor, plan.sequence_parallel)
        if data is not None:
            fully_sharded(model, data, plan)
            model.register_forward_hook(lambda *_: recorder.sort(gathered(model), "buffer"))
    model.to_empty(device="cuda")


def device_meshes(plan: Distributed) -> tuple[DeviceMesh | None, DeviceMesh | None]:
    """The meshes for FSDP2 and for tensor parallelism; ranks of one tensor group are neighbours."""
    if plan.kind == "fsdp2":
        return init_device_mesh("cuda", (plan.world_size,)), None
    if plan.kind == "tp":
        return None, init_device_mesh("cuda", (plan.world_size,))
    width = plan.tensor_width
    both = init_device_mesh("cuda", (plan.world_size // width, width), mesh_dim_names=("data", "tensor"))
    return both["data"], both["tensor"]


def fully_sharded(model: Any, mesh: DeviceMesh, plan: Distributed) -> None:
    """Make each layer an FSDP unit, and the rest, tables and head, another."""
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    dtypes = huggingface.DTYPES
    policy = MixedPrecisionPolicy(
        param_dtype=None if plan.param_dtype == plan.dtype else dtypes[plan.param_dtype],
        reduce_dtype=dtypes[plan.reduce_dtype],
    )
    for layer in layers(model):
        fully_shard(layer, mesh=mesh, mp_policy=policy, reshard_after_forward=plan.reshard_after_forward)
    # PyTorch keeps the root gathered by default: backward begins with it.
    rest: dict[str, Any] = {} if plan.reshard_after_forward else {"reshard_after_forward": False}
    fully_shard(model, mesh=mesh, mp_policy=policy, **rest)


def gathered(model: nn.Module) -> Iterator[torch.Tensor]:
    """The tensors into which FSDP2 gathers weights; empty while they are sharded."""
    from torch.distributed.fsdp import FSDPModule

    for module in model.modules():
        group = module._get_fsdp_state()._fsdp_param_group if isinstance(module, FSDPModule) else None
        for parameter in group.fsdp_params if group is not None else ():
            yield from getattr(parameter, "all_gather_outputs", ())


def layers(model: nn.Module) -> list[nn.Module]:
    """The repeated layers: those that transformers would wrap, or the modules of the model's longest lists."""
    names = set(getattr(model, "_no_split_modules", None) or ())
    units = [module for module in model.modules() if type(module).__name__ in names]
    if units:
        return units
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
    return max((list(module_list) for module_list in lists), key=len, default=[])


def _notes(plan: Distributed, profile: Profile) -> tuple[str, ...]:
    notes = ["NCCL buffers lie outside the allocator and are not counted"]
    if profile.torch < _HELD_UNTIL_WAIT:
        notes.append(
            "before torch 2.8 the allocator reuses what a collective took only when the host has seen it "
            "end, so more is reserved"
        )
    if plan.kind == "ddp":
        notes.append("buckets are the allocator's; with DDP_DISABLE_COMM_MEM=0 they lie in a pool of NCCL's own")
    return tuple(notes)
