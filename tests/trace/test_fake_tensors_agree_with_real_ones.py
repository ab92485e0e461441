"""The recorder on real CPU tensors, on fake ones, and on meta tensors: the same events, one by one."""

from contextlib import nullcontext

import pytest
import torch
import transformers
from torch._subclasses.fake_tensor import FakeTensorMode

from tonnage.trace.profiles import profile
from tonnage.trace.record._recorder import Recorder

SMALL = {"vocab_size": 1000, "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 3, "num_attention_heads": 8,
         "num_key_value_heads": 4, "attn_implementation": "eager"}  # fmt: skip
MODELS = {
    "llama": ("Llama", SMALL),
    "qwen3": ("Qwen3", {**SMALL, "head_dim": 16}),
    "gpt2": ("GPT2", {"vocab_size": 1000, "n_embd": 128, "n_layer": 3, "n_head": 8, "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0,
                      "attn_implementation": "eager"}),
}  # fmt: skip
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
    with FakeTensorMode() if tensors == "fake" else nullcontext(), recorder, torch.device(device):
        made = model(name).train()
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
    return list(recorder.events.sequence())


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", MODELS)
def test_fake_tensors_come_and_go_as_real_ones(name, optimizer, recompute):
    real = events("real", name, optimizer, recompute)
    assert len(real) > 1000
    assert events("fake", name, optimizer, recompute) == real


@pytest.mark.parametrize("name", MODELS)
def test_meta_tensors_come_and_go_as_real_ones_but_for_counters_on_the_cpu(name):
    real, meta = ([e for e in events(each, name, "momentum", False) if e[1] > 8] for each in ("real", "meta"))
    assert meta == real
