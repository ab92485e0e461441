"""A user's own script that makes process groups and meshes, as it is, inside a recording."""

import os

import pytest
import torch
import torch.distributed as dist
from distributed_programs import PROFILE
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from tonnage.kernel.errors import InvalidInput, InvalidPlan
from tonnage.trace.distributed import World
from tonnage.trace.record.fake.environment import recording


def test_a_script_is_told_its_rank_as_a_launcher_would():
    before = {name: os.environ.get(name) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    with recording("cuda", PROFILE, world=World(size=16, rank=13)):
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
        assert (dist.get_rank(), dist.get_world_size(), torch.cuda.current_device()) == (13, 16, 5)
        assert torch.empty(1, device="cuda").device == torch.device("cuda", 5)
    assert {name: os.environ.get(name) for name in before} == before
    assert not dist.is_initialized()


def test_a_script_may_name_its_world_itself(monkeypatch):
    with recording("cuda", PROFILE):
        dist.init_process_group("gloo", rank=2, world_size=5)
        assert (dist.get_rank(), dist.get_world_size()) == (2, 5)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "3")
    with recording("cuda", PROFILE):
        dist.init_process_group()
        assert (dist.get_rank(), dist.get_world_size()) == (1, 3)


def test_meshes_are_real_tables_of_ranks():
    with recording("cuda", PROFILE, world=World(size=8, rank=6)):
        dist.init_process_group("nccl")
        mesh = init_device_mesh("cuda", (2, 4), mesh_dim_names=("data", "tensor"))
        assert mesh.get_coordinate() == (1, 2)
        assert mesh["tensor"].get_local_rank() == 2
        assert mesh.mesh.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
        assert DeviceMesh("cuda", [[0, 2, 4, 6], [1, 3, 5, 7]]).get_coordinate() == (0, 3)
        assert DeviceMesh("cuda", torch.arange(8).view(4, 2)).get_coordinate() == (3, 0)


def test_collectives_return_and_objects_are_what_this_rank_sends():
    with recording("cuda", PROFILE, world=World(size=4, rank=1)) as recorder:
        dist.init_process_group("nccl")
        half = dist.new_group([0, 1], backend="nccl")
        tensor = torch.ones(256, device="cuda")
        dist.barrier()
        dist.all_reduce(tensor, group=half)
        gathered = [torch.empty_like(tensor) for _ in range(4)]
        dist.all_gather(gathered, tensor)
        objects = [None] * 4
        dist.all_gather_object(objects, {"loss": 1})
        assert objects == [{"loss": 1}] * 4
    assert [each.bytes for each in recorder.events.allocations].count(1024) == 5


def test_hybrid_sharding_clips_and_steps():
    from torch.distributed.fsdp import fully_shard

    with recording("cuda", PROFILE, world=World(size=8, rank=3)) as recorder:
        dist.init_process_group("nccl")
        mesh = init_device_mesh("cuda", (2, 4), mesh_dim_names=("replicate", "shard"))
        model = nn.Sequential(*[nn.Linear(64, 64, bias=False, device="cuda") for _ in range(3)])
        fully_shard(model, mesh=mesh)
        recorder.sort(model.parameters(), "parameter")
        optimizer = torch.optim.AdamW(model.parameters())
        model(torch.randn(8, 64, device="cuda")).sum().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        states = sum(
            each.numel() * 4 for state in optimizer.state.values() for name, each in state.items() if name != "step"
        )
        assert states == 2 * 3 * 64 * 64 * 4  # whole sizes: DTensors say what they are part of
    assert (
        sum(each.bytes for each in recorder.events.allocations if each.category == "parameter") == 3 * 64 * 64 * 4 // 4
    )


def test_streams_are_numbered_anew_in_each_recording_and_by_priority():
    for _ in range(2):
        with recording("cuda", PROFILE):
            plain, high = [torch.cuda.Stream() for _ in range(33)], torch.cuda.Stream(priority=-1)
            assert [each.stream_id for each in plain] == [*range(1, 33), 1]  # CUDA has 32 of each priority
            assert high.stream_id == 33


def test_a_group_that_exists_already_is_not_taken_over():
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    try:
        with pytest.raises(InvalidPlan, match="a process group exists already"), recording("cuda", PROFILE):
            pass
        assert dist.is_initialized()
    finally:
        dist.destroy_process_group()


def test_a_world_needs_fake_cuda_tensors():
    with (
        pytest.raises(InvalidInput, match=r"needs the front end 'cuda'\. Got 'meta'"),
        recording("meta", PROFILE, world=World(size=2)),
    ):
        pass
