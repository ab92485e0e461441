"""The recorder on real CPU tensors, on fake ones, and on meta tensors: the same events, one by one."""

from contextlib import ExitStack

import pytest
import torch
import transformers
from torch._subclasses.fake_tensor import FakeTensorMode

from tonnage.trace.profiles import profile
from tonnage.trace.record.fake.environment import hide_tracing as answers_of_transformers
from tonnage.trace.record.fake.recorder import Recorder

SMALL = {
    "vocab_size": 1000,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "attn_implementation": "eager",
}
MODELS = {
    "llama": ("Llama", SMALL),
    "qwen3": ("Qwen3", {**SMALL, "head_dim": 8}),
    "gpt2": (
        "GPT2",
        {
            "vocab_size": 1000,
            "n_embd": 64,
            "n_layer": 2,
            "n_head": 8,
            "resid_pdrop": 0,
            "embd_pdrop": 0,
            "attn_pdrop": 0,
            "attn_implementation": "eager",
        },
    ),
}
OPTIMIZERS = {
    "loop": lambda parameters: torch.optim.AdamW(parameters, foreach=False),
    "foreach": lambda parameters: torch.optim.AdamW(parameters, foreach=True),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, foreach=True),
}


def model(name):
    kind, fields = MODELS[name]
    config = getattr(transformers, f"{kind}Config")(**fields)
    head = "GPT2LMHeadModel" if kind == "GPT2" else f"{kind}ForCausalLM"
    return getattr(transformers, head)(config)


def events(tensors, name, optimizer, recompute):
    device = "meta" if tensors == "meta" else "cpu"
    recorder = Recorder(device, profile("torch-1.12-a100"))
    recorder._overlays = {}  # what kernels take on a GPU, they do not take here
    with ExitStack() as stack:
        model(name)  # so that its module is imported
        answers_of_transformers(stack)
        if tensors == "fake":
            stack.enter_context(FakeTensorMode())
        stack.enter_context(recorder)
        stack.enter_context(torch.device(device))
        made = model(name).train()
        recorder.mark("built")  # initial values are drawn differently
        made.config.use_cache = False
        if recompute:
            made.activation_checkpointing_enable({"use_reentrant": False})
        steps = OPTIMIZERS[optimizer](made.parameters())
        for _ in range(2):
            ids = torch.zeros((2, 64), dtype=torch.long)
            loss = made(input_ids=ids, labels=ids).loss
            loss.backward()
            steps.step()
            steps.zero_grad()
        recorder.keep(made, steps, ids, loss)
    return list(recorder.events.sequence())[recorder.events.marks[0].position :]


@pytest.mark.parametrize(
    ("name", "optimizer", "recompute"),
    [
        ("llama", "loop", False),
        ("llama", "foreach", True),
        ("qwen3", "momentum", False),
        ("gpt2", "foreach", False),
        ("gpt2", "loop", True),
    ],
)
def test_fake_tensors_come_and_go_as_real_ones(name, optimizer, recompute):
    real = events("real", name, optimizer, recompute)
    assert len(real) > 500
    assert events("fake", name, optimizer, recompute) == real


@pytest.mark.parametrize("name", MODELS)
def test_meta_tensors_come_and_go_as_real_ones_but_for_counters_on_the_cpu(name):
    real, meta = ([e for e in events(each, name, "momentum", False) if e[1] > 8] for each in ("real", "meta"))
    assert meta == real
