"""Folding, on models of transformers: the events are those of the whole trace."""

import pytest
import torch
from torch import nn

from tonnage import read
from tonnage.trace.fold import fold_recordings, short_layers
from tonnage.trace.profiles import profile
from tonnage.trace.program import Program
from tonnage.trace.record import huggingface
from tonnage.trace.record.fake.environment import recording
from tonnage.trace.record.folded import record_folded
from tonnage.trace.record.layers import kinds
from tonnage.trace.record.train import train
from tonnage.trace.replay import replay

PROFILE = profile("torch-2.13-h100")
OPTIMIZERS = {
    "AdamW foreach": lambda parameters: torch.optim.AdamW(parameters, lr=1e-4),
    "AdamW loop": lambda parameters: torch.optim.AdamW(parameters, lr=1e-4, foreach=False),
    "SGD momentum": lambda parameters: torch.optim.SGD(parameters, lr=1e-4, momentum=0.9),
}
SIZES = {
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 512,
}


def llama(count):
    return {"model_type": "llama", "architectures": ["LlamaForCausalLM"], **SIZES, "num_hidden_layers": count}


def qwen_moe(count, **more):
    return {
        "model_type": "qwen3_moe",
        "architectures": ["Qwen3MoeForCausalLM"],
        **SIZES,
        "num_hidden_layers": count,
        "moe_intermediate_size": 32,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "decoder_sparse_step": 1,
        "experts_implementation": "grouped_mm",
        **more,
    }


def gpt2(count):
    sizes = {"n_embd": 64, "n_head": 4, "n_positions": 128, "vocab_size": 512, "bos_token_id": 1, "eos_token_id": 2}
    return {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], **sizes, "n_layer": count}


def gemma3(count, period=6):
    pattern = ["full_attention" if i % period == period - 1 else "sliding_attention" for i in range(count)]
    return {
        "model_type": "gemma3_text",
        "architectures": ["Gemma3ForCausalLM"],
        **SIZES,
        "sliding_window": 16,
        "num_hidden_layers": count,
        "layer_types": pattern,
    }


def maker(config, optimizer="AdamW foreach", recompute="none", front_end="meta", sequence_length=32, **more):
    """A program of a config, by its number of layers."""

    def make(count):
        model = huggingface.build(config, num_layers=count)
        if front_end == "cuda":
            model = model.to("cuda")
        return huggingface.training_program(
            model,
            sequence_length=sequence_length,
            micro_batch_size=1,
            optimizer=OPTIMIZERS[optimizer],
            recompute=recompute,
            **more,
        )

    return make


def whole(make, count, front_end="meta"):
    with recording(front_end, PROFILE) as recorder:
        program = make(count)
        train(recorder, program, 2)
    return recorder.recording()


def folded(make, count, front_end="meta"):
    made = record_folded(make, count, profile=PROFILE, front_end=front_end)
    assert made.notes[0].startswith("Folded from traces with")
    return made


def assert_same(made, traced):
    """Every event, every count, and what the allocator makes of it."""
    assert made.events == traced.events
    for name in ("operations", "overlays", "answers", "attention", "unmodelled", "profile", "front_end", "torch"):
        assert getattr(made, name) == getattr(traced, name), name
    ours, theirs = replay(made.events), replay(traced.events)
    assert (ours.peak_reserved_bytes, ours.peak_allocated_bytes) == (
        theirs.peak_reserved_bytes,
        theirs.peak_allocated_bytes,
    )
    assert ours.stages == theirs.stages


# Each kind of layer with and without layers that run again. Of the two other optimizers one with, one without them: the
# other way round they run below, where two kinds of layers take turns.
STEPS = [
    (config, "AdamW foreach", recompute) for config in (llama, qwen_moe, gpt2) for recompute in ("none", "full")
] + [
    (llama, "AdamW loop", "full"),
    (llama, "SGD momentum", "none"),
]


@pytest.mark.parametrize(("config", "optimizer", "recompute"), STEPS)
def test_two_folded_steps_are_the_two_steps(config, optimizer, recompute):
    make = maker(config(10), optimizer, recompute)
    assert_same(folded(make, 10), whole(make, 10))


def test_five_sliding_layers_and_a_full_one_fold_as_one_period():
    make = maker(gemma3(26), "AdamW foreach", "full")
    traces = {count: whole(make, count) for count in (8, 14, 20, 26)}
    assert_same(fold_recordings([traces[count] for count in (8, 14, 20)], (8, 14, 20), 26), traces[26])


@pytest.mark.parametrize(
    ("optimizer", "recompute"), [("AdamW foreach", "full"), ("AdamW loop", "none"), ("SGD momentum", "full")]
)
def test_a_sliding_layer_and_a_full_one_fold_as_one_period(optimizer, recompute):
    make = maker(gemma3(9, period=2), optimizer, recompute)
    traces = {count: whole(make, count) for count in (3, 5, 7, 9)}
    assert_same(fold_recordings([traces[count] for count in (3, 5, 7)], (3, 5, 7), 9), traces[9])


def test_llama_8b_folded_is_llama_8b():
    make = maker(read("llama-3.1-8b").config, sequence_length=4096)
    assert_same(folded(make, 32), whole(make, 32))


@pytest.mark.parametrize(
    "more",
    [
        {"num_microbatches": 3},
        {"clip_grad_norm": 1.0},
        {"clip_grad_norm": 1.0, "num_microbatches": 2, "optimizer": "AdamW loop"},
    ],
)
def test_microbatches_and_clipping_fold(more):
    make = maker(llama(10), **more)
    assert_same(folded(make, 10), whole(make, 10))


def test_fake_cuda_tensors_fold():
    make = maker(llama(10), recompute="full", front_end="cuda")
    assert_same(folded(make, 10, "cuda"), whole(make, 10, "cuda"))


@pytest.mark.parametrize(
    ("count", "more"),
    [(16, {"mlp_only_layers": [0, 1]}), (24, {"decoder_sparse_step": 2})],
    ids=["dense layers first", "every other layer"],
)
def test_dense_layers_among_experts_fold(count, more):
    make = maker(qwen_moe(count, **more))
    assert_same(folded(make, count), whole(make, count))


def test_a_model_whose_last_layer_is_of_another_kind_is_traced_whole():
    make = maker(qwen_moe(10, mlp_only_layers=[9]))
    made = record_folded(make, 10, profile=PROFILE)
    assert made.notes == ("Traced with all 10 layers: they do not repeat often enough to fold.",)
    assert made.events == whole(make, 10).events


class Growing(nn.Module):
    """Each layer sees what all before it made: the layers are of one kind, and their memory is not."""

    def __init__(self, count):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(count))

    def forward(self, x):
        seen = [x]
        for layer in self.layers:
            seen.append(layer(torch.cat(seen).mean(0, keepdim=True)))
        return seen[-1].mean()


def test_layers_that_need_ever_more_are_traced_whole_and_the_stage_is_named():
    def make(count):
        return Program(
            model=Growing(count), inputs=torch.ones(1, 16), loss=lambda y: y, optimizer=OPTIMIZERS["AdamW loop"]
        )

    made = record_folded(make, 14, profile=PROFILE)
    assert made.notes[0].startswith("Traced with all 14 layers: stage 'After forward': ")
    assert made.events == whole(make, 14).events


def test_a_program_that_gives_other_layers_when_short_is_traced_whole():
    def make(count):
        layers = [nn.Linear(16, 16, bias=count > 4) for _ in range(count)]
        return Program(model=nn.Sequential(*layers), inputs=torch.ones(1, 16), loss=lambda y: y.mean())

    made = record_folded(make, 12, profile=PROFILE)
    assert made.notes == ("Traced with all 12 layers: with 2 of them the program has other kinds of layers.",)


def test_a_program_that_needs_its_layers_is_traced_whole():
    def make(count):
        layers = [nn.Linear(16, 16) for _ in range(count)]
        model = nn.Sequential(*layers)
        model.register_buffer("scale", torch.ones(layers[9].in_features))
        return Program(model=model, inputs=torch.ones(1, 16), loss=lambda y: y.mean())

    made = record_folded(make, 12, profile=PROFILE)
    assert made.notes[0].startswith("Traced with all 12 layers: with 2 of them the program fails: IndexError")
    assert made.events == whole(make, 12).events


def test_a_layer_number_is_no_difference_of_kind_and_a_window_is_one():
    def layer(number, window):
        made = nn.Linear(4, 4)
        made.layer_idx, made.window = number, window
        return made

    def found(windows):
        return kinds(nn.Sequential(*(layer(i, window) for i, window in enumerate(windows))), len(windows))

    assert len(set(found([8] * 12))) == 1
    assert short_layers(found([8] * 12)) == (2, 3, 4)
    assert short_layers(found([8, 8, None] * 7)) == (3, 6, 9)


def test_cutting_layers_leaves_the_callers_config_alone():
    config = {"text_config": {"num_hidden_layers": 4, "layer_types": list("abab")}}
    assert huggingface.with_layers(config, 2)["text_config"] == {"num_hidden_layers": 2, "layer_types": list("ab")}
    assert config == {"text_config": {"num_hidden_layers": 4, "layer_types": list("abab")}}
