"""The same programs under PyTorch's own MemTracker and FSDPMemTracker: the same to the byte, or the difference by name.

Both count tensors in blocks of 512 bytes and see no kernel's inside, so overlays are left out, and then named.
"""

import pytest
import torch
import torch.distributed as dist
from distributed_programs import LLAMA, PROFILE, peak
from torch import nn
from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
from torch.distributed._tools.mem_tracker import MemTracker

from tonnage.kernel.units import MIB
from tonnage.trace.distributed import Distributed
from tonnage.trace.profiles import profile
from tonnage.trace.record import huggingface
from tonnage.trace.record.distributed import adamw, device_meshes, fully_sharded
from tonnage.trace.record.fake.environment import recording

pytestmark = pytest.mark.filterwarnings("ignore")
huggingface.configuration(LLAMA)  # imports transformers before anything is recorded


def total(tracker):
    """Bytes at the tracker's peak on the accelerator."""
    found = {device.type: parts["Total"] for device, parts in tracker.get_tracker_snapshot("peak").items()}
    return found["cuda"]


def step(model, program, optimizer):
    model(**program.inputs).loss.backward()
    optimizer.step()


def program_of(model, recompute):
    return huggingface.training_program(
        model, sequence_length=64, micro_batch_size=2, optimizer=None, recompute=recompute
    )


@pytest.mark.parametrize("recompute", ["none", "full"])
def test_a_step_of_llama_peaks_where_memtracker_says(recompute):
    with recording("cuda", PROFILE) as recorder:
        with torch.device("cuda"):
            model = huggingface.build(LLAMA, "bf16")
        program, optimizer = program_of(model, recompute), adamw(model.parameters())
        tracker = MemTracker()
        tracker.track_external(model, optimizer, *program.inputs.values())
        with tracker:
            step(model, program, optimizer)
    assert peak(recorder.events) == total(tracker)
    # cuBLAS workspaces, of forward's thread and then of backward's, and attention's scratch are what it does not see.
    unseen = {each.name: each.bytes for each in recorder.fired.values()}
    assert unseen["cuBLAS workspace"] == 2 * 32 * MIB
    assert set(unseen) == {"cuBLAS workspace", "cuDNN attention backward"}
    most = peak(recorder.events, overlays=True)
    assert total(tracker) + 32 * MIB <= most <= total(tracker) + sum(unseen.values())


@pytest.mark.parametrize(("ranks", "rank"), [(8, 0), (5, 4)])
@pytest.mark.parametrize("recompute", ["none", "full"])
def test_a_step_of_fsdp2_peaks_where_fsdpmemtracker_says(recompute, ranks, rank):
    plan = Distributed(world_size=ranks, rank=rank)
    with recording("cuda", PROFILE, world=plan.world) as recorder:
        dist.init_process_group("nccl")
        with torch.device("meta"):
            model = huggingface.build(LLAMA, "fp32")
        program = program_of(model, recompute)
        fully_sharded(model, device_meshes(plan)[0], plan)
        model.to_empty(device="cuda")
        optimizer = adamw(model.parameters())
        # Once without the tracker: it takes shapes that DTensor infers in an operation's first call for memory.
        step(model, program, optimizer)
        optimizer.zero_grad()
        start = len(recorder.events)
        tracker = FSDPMemTracker(model, optimizer)
        tracker.track_inputs(tuple(program.inputs.values()))
        with tracker:
            step(model, program, optimizer)
    assert peak(recorder.events, start) == total(tracker)


def test_what_fsdpmemtracker_counts_too_much_on_a_first_step_is_shapes_that_dtensor_infers():
    plan = Distributed(world_size=8)
    with recording("cuda", PROFILE, world=plan.world) as recorder:
        dist.init_process_group("nccl")
        with torch.device("meta"):
            model = huggingface.build(LLAMA, "fp32")
        program = program_of(model, "full")
        fully_sharded(model, device_meshes(plan)[0], plan)
        model.to_empty(device="cuda")
        optimizer = adamw(model.parameters())
        model(**program.inputs).loss.backward()
        start = len(recorder.events)
        tracker = FSDPMemTracker(model, optimizer)
        with tracker:
            optimizer.step()
    whole = sum(each.numel() * 4 for each in model.parameters())
    assert (
        total(tracker) - peak(recorder.events, start) > whole
    )  # it holds whole tensors, of which this rank has an eighth


def test_what_a_mean_loss_keeps_is_the_difference_on_twelve_linear_layers():
    """MemTracker sees 4 bytes of the scalar loss; on the device its storage is as large as the prediction."""
    with recording("cuda", profile("torch-1.13-a100")) as recorder:
        layers = nn.ModuleList([nn.Linear(1024, 1024, device="cuda") for _ in range(12)])
        optimizer = torch.optim.Adam(layers.parameters(), foreach=False)
        inputs, target = torch.randn(32, 1024, device="cuda"), torch.randn(32, 1024, device="cuda")
        tracker = MemTracker()
        tracker.track_external(layers, optimizer, inputs, target)
        with tracker:
            kept = []
            found = inputs
            for layer in layers:
                found = layer(found).relu()
                kept.append(found)
            loss = nn.functional.mse_loss(found, target)
            loss.backward()
            optimizer.step()
    assert peak(recorder.events) - total(tracker) == 32 * 1024 * 4 - 512
    assert recorder.fired["loss of full size"].calls == 1
