"""What programs do to save memory or to train in fewer bits, and what that does to the bytes."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from tonnage.trace.profiles import profile
from tonnage.trace.program import Program
from tonnage.trace.record.fake.environment import recording
from tonnage.trace.record.train import train
from tonnage.trace.record.user import record_file

WIDTH, INNER, ROWS, LAYERS = 256, 1024, 64, 3
NARROW, WIDE = ROWS * WIDTH * 4, ROWS * INNER * 4  # bytes of activations in fp32
WEIGHTS = LAYERS * 2 * WIDTH * INNER  # without biases


class Net(nn.Module):
    """Blocks of Linear, GELU, Linear, run through `around`."""

    def __init__(self, around=lambda block, x: block(x)):
        super().__init__()
        self.around = around
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, INNER, bias=False), nn.GELU(), nn.Linear(INNER, WIDTH, bias=False))
            for _ in range(LAYERS)
        )

    def forward(self, x):
        for block in self.blocks:
            x = self.around(block, x)
        return x


def traced(around=None, front_end="meta", steps=1, **fields):
    """A recorder after training; torch 1.13's profile keeps no workspace."""
    with recording(front_end, profile("torch-1.13-a100")) as recorder, torch.device(front_end):
        model = Net() if around is None else Net(around)
        fields = {"loss": torch.sum, "optimizer": partial(torch.optim.SGD, momentum=0.9), **fields}
        train(recorder, Program(model=model, inputs=torch.zeros(ROWS, WIDTH), **fields), steps)
    return recorder


def held(recorder, mark, category):
    """Bytes of a category that are alive at a mark."""
    position = next(each.position for each in recorder.events.marks if each.name == mark)
    made = recorder.events.allocations
    return sum(made[i].bytes for i in recorder.events.live_at(position) if made[i].category == category)


def kept(recorder):
    """Activations after forward, the output of the last block among them."""
    return held(recorder, "After forward", "activation")


PLAIN = LAYERS * (2 * WIDE + NARROW)  # before and after GELU, and the block's output


@pytest.mark.parametrize("front_end", ["meta", "cuda"])
@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpointed_block_keeps_its_output_alone(reentrant, front_end):
    def around(block, x):
        if reentrant and not x.requires_grad:
            x = x.detach().requires_grad_()  # as transformers' enable_input_require_grads
        return checkpoint(block, x, use_reentrant=reentrant, preserve_rng_state=False)

    assert kept(traced()) == PLAIN
    assert kept(traced(around, front_end)) == LAYERS * NARROW


def test_selective_checkpointing_keeps_what_its_policy_names():
    def policy(context, operation, *_, **__):
        matrices = operation == torch.ops.aten.mm.default
        return CheckpointPolicy.MUST_SAVE if matrices else CheckpointPolicy.PREFER_RECOMPUTE

    def around(block, x):
        contexts = partial(create_selective_checkpoint_contexts, policy)
        return checkpoint(block, x, use_reentrant=False, context_fn=contexts, preserve_rng_state=False)

    assert kept(traced(around)) == PLAIN - LAYERS * WIDE  # what GELU gives is computed again


def test_offloaded_activations_leave_the_device():
    def around(block, x):
        with torch.autograd.graph.save_on_cpu():
            return block(x)

    recorder = traced(around, "cuda")
    assert kept(recorder) == NARROW  # the output, which the program holds
    assert held(recorder, "After backward", "gradient") == WEIGHTS * 4


@pytest.mark.parametrize("count", [1, 3])
def test_accumulated_gradients_are_kept_once(count):
    recorder = traced(num_microbatches=count)
    last = [each.position for each in recorder.events.marks if each.name == "After backward"]
    assert len(last) == count
    made = recorder.events.allocations
    alive = [made[i] for i in recorder.events.live_at(last[-1])]
    assert sum(each.bytes for each in alive if each.category == "gradient") == WEIGHTS * 4


def test_clipping_takes_a_number_for_each_weight_and_no_copy_of_a_gradient():
    extra = {}
    for clip in (None, 1.0):
        recorder = traced(clip_grad_norm=clip)
        extra[clip] = sum(each.bytes for each in recorder.events.allocations if each.phase == "optimizer step")
    numbers, rest = 2 * (2 * LAYERS), 5  # each norm, and again in one vector; then the total and what is made of it
    assert extra[1.0] - extra[None] == 4 * (numbers + rest)


@pytest.mark.parametrize("autocast", ["bf16", "fp16"])
def test_autocast_keeps_narrow_copies_of_weights_and_inputs_for_backward(autocast):
    recorder = traced(front_end="cuda", autocast=autocast)
    first = WIDTH * INNER * 2  # its input needs no gradient: only autocast holds it, and until its end
    copies = WEIGHTS * 2 - first + NARROW // 2  # of all other weights and of the input
    assert kept(recorder) == copies + PLAIN // 2
    assert held(recorder, "After forward", "temporary") == first
    assert held(recorder, "After backward", "gradient") == WEIGHTS * 4


SCALED = """
import torch

def program(mark):
    model = torch.nn.Linear(512, 512, bias=False, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(2):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(torch.randn(8, 512, device="cuda")).float().sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    mark("Trained")
    return model, optimizer, scaler
"""


def test_a_scaled_step_is_taken_and_the_recording_says_what_was_assumed(tmp_path):
    file = tmp_path / "scaled.py"
    file.write_text(SCALED)
    made = record_file(f"{file}:program", profile="torch-1.13-a100")
    assert made.front_end == "cuda"
    alive = [made.events.allocations[i] for i in made.events.live_at(made.events.marks[0].position)]
    assert {each.category: each.bytes for each in alive if each.bytes > 4096} == {
        "parameter": 2**20,
        "optimizer": 2**20,
    }
    assert [each.answer for each in made.answers if each.dtype == "torch.float32"] == ["0.0"]


@pytest.mark.parametrize("front_end", ["meta", "cuda"])
@pytest.mark.parametrize("activation", [nn.SiLU, nn.Mish])
def test_an_activation_function_has_one_kernel_backward_on_a_gpu(front_end, activation):
    with recording(front_end, profile("torch-1.13-a100")) as recorder, torch.device(front_end):
        model = nn.Sequential(nn.Linear(WIDTH, INNER, bias=False), activation(), nn.Linear(INNER, WIDTH, bias=False))
        train(recorder, Program(model=model, inputs=torch.zeros(ROWS, WIDTH), loss=torch.sum, optimizer=None), 1)
    made = [each for each in recorder.events.allocations if each.phase == "backward" and each.bytes == WIDE]
    assert len(made) == 2  # the gradients of the function's output and of its input


class _TwoWays(nn.Module):
    """Its input goes two ways; `residual`: one of them passes the incoming gradient on as it is."""

    def __init__(self, residual: bool):
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH, bias=False)
        self.residual = residual

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layer(x)
        return (x + x * 2) * 3 if self.residual else x * 3 + x * 2


@pytest.mark.parametrize("front_end", ["meta", "cuda"])
@pytest.mark.parametrize("residual", [False, True])
def test_gradients_that_meet_are_added_in_place_as_autograd_does_when_nobody_watches(residual, front_end):
    with recording(front_end, profile("torch-2.13-h100")) as recorder, torch.device(front_end):
        model = _TwoWays(residual)
        train(recorder, Program(model=model, inputs=torch.zeros(ROWS, WIDTH), loss=torch.sum, optimizer=None), 1)
    sums = [
        each for each in recorder.events.allocations if each.operation == "aten.add.Tensor" and each.phase == "backward"
    ]
    assert sums == []
