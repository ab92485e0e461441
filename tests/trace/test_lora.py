"""LoRA by peft, on whole and on quantised bases: adapters, stored bytes and temporaries."""

import pytest
import torch
from torch import nn

from tonnage.kernel.errors import InvalidInput, UnknownName
from tonnage.numerics.precisions import PRECISIONS
from tonnage.trace.profiles import profile
from tonnage.trace.record import huggingface as hf
from tonnage.trace.record.fake.bitsandbytes import Linear4bit, Linear8bit
from tonnage.trace.record.fake.environment import recording
from tonnage.trace.record.optimizers import factory
from tonnage.trace.record.peft import BASES, notes, quantised, with_lora
from tonnage.trace.record.train import train
from tonnage.trace.replay import replay

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "tie_word_embeddings": True,
}
LINEAR = [(256, 256), (128, 256), (128, 256), (256, 256), (512, 256), (512, 256), (256, 512)] * 2
RANK = 8


def lora(base=None, *, front_end="meta", recompute="none", dropout=0.0, tied=True, upcast=False, length=128):
    config = {**LLAMA, "tie_word_embeddings": tied}
    with recording(front_end, profile("h100")) as recorder, torch.device(front_end):
        model = hf.build(config) if base is None else quantised(recorder, lambda: hf.build(config), base)
        model = with_lora(model, rank=RANK, dropout=dropout, upcast=upcast)
        program = hf.training_program(
            model, sequence_length=length, micro_batch_size=1, optimizer=factory("adamw"), recompute=recompute
        )
        train(recorder, program)
    return recorder, model


def alive(recorder, *, category=None, operation=None):
    made = [recorder.events.allocations[i] for i in recorder.events.live_at(len(recorder.events))]
    return sum(each.bytes for each in made if category in (None, each.category) and operation in (None, each.operation))


def test_adapters_are_fp32_and_so_are_their_gradients_and_states():
    recorder, model = lora()
    trained = [each for each in model.parameters() if each.requires_grad]
    adapters = sum(RANK * (rows + columns) * 4 for rows, columns in LINEAR)
    assert {each.dtype for each in trained} == {torch.float32}
    assert alive(recorder, category="gradient") == adapters
    assert alive(recorder, category="optimizer") == 2 * adapters
    assert all(each.dtype == torch.bfloat16 for each in model.parameters() if not each.requires_grad)


@pytest.mark.parametrize("base", BASES)
def test_a_quantised_base_stores_what_the_precision_says(base):
    with recording("meta", profile("h100")) as recorder:
        model = quantised(recorder, lambda: hf.build(LLAMA), base)
        layers = [each for each in model.modules() if isinstance(each, Linear4bit | Linear8bit)]
        stored = [sum(t.numel() * t.element_size() for t in (*m.parameters(), *m.buffers())) for m in layers]
        held = alive(recorder)
        rest = {
            id(t): t.numel() * t.element_size()
            for m in model.modules()
            if m not in layers
            for t in (*m.parameters(recurse=False), *m.buffers(recurse=False))
        }
        recorder.keep(model)
    assert stored == [PRECISIONS[base].bytes(rows, columns) for rows, columns in LINEAR]
    assert held == sum(stored) + sum(rest.values())


@pytest.mark.parametrize("tied", [True, False])
def test_the_head_stays_whole_and_tied_to_the_embedding_where_it_was(tied):
    _, model = lora("nf4", tied=tied)
    head, embedding = model.get_output_embeddings(), model.get_input_embeddings()
    assert type(head) is nn.Linear
    assert head.weight.dtype == torch.bfloat16
    assert (head.weight is embedding.weight) == tied


@pytest.mark.parametrize("base", ["nf4-double", "int8"])
def test_a_loader_never_holds_the_whole_base(base):
    recorder, _ = lora(base)
    whole = 2 * sum(rows * columns for rows, columns in [*LINEAR, (1000, 256)])
    assert replay(recorder.events).stages[0].peak_allocated_bytes < whole


def whole_weights(recorder, phase):
    shape = 512 * 256 * 2
    return sum(
        each.phase.startswith(phase) and each.bytes == shape and each.operation == "aten.empty.memory_format"
        for each in recorder.events.allocations
    )


@pytest.mark.parametrize(("recompute", "forwards"), [("none", 1), ("full", 2)])
def test_a_4_bit_weight_is_whole_for_a_moment_in_each_pass_over_it(recompute, forwards):
    recorder, _ = lora("nf4", recompute=recompute)
    layers, steps = 3 * 2, 2  # gate, up and down of two layers have that size
    assert whole_weights(recorder, "forward") == layers * steps
    again = layers * steps * (forwards - 1)
    assert whole_weights(recorder, "backward") == layers * steps + again


def test_checkpointing_keeps_of_a_layer_little_but_its_input():
    kept = {}
    for recompute in ("none", "full"):
        recorder, _ = lora("nf4-double", recompute=recompute)
        forward = recorder.events.marks[1]
        made = [recorder.events.allocations[i] for i in recorder.events.live_at(forward.position)]
        kept[recompute] = sum(
            each.bytes for each in made if each.category == "activation" and ".layers." in each.module
        )
    assert kept["none"] > 10 * kept["full"]
    assert kept["full"] == 128 * 256 * 2  # the first layer's output; the second's goes on into the norm


def test_dropout_keeps_a_mask_of_a_byte_for_each_adapter_whose_input_needs_a_gradient():
    after_loss, initial = 2, 0
    grown = []
    for dropout in (0.0, 0.05):
        stages = replay(lora(dropout=dropout)[0].events).stages
        grown.append(stages[after_loss].allocated_bytes - stages[initial].allocated_bytes)
    inputs = sum(columns for _, columns in LINEAR) - 3 * 256  # the first layer's q, k and v read the frozen embedding
    assert grown[1] - grown[0] == inputs * 128


def test_peft_can_turn_what_is_not_quantised_to_fp32_first():
    _, plain = lora("nf4")
    _, upcast = lora("nf4", upcast=True)
    assert plain.get_input_embeddings().weight.dtype == torch.bfloat16
    assert upcast.get_input_embeddings().weight.dtype == torch.float32


@pytest.mark.parametrize("base", [None, "nf4-double", "int8"])
def test_both_front_ends_see_the_same_lora(base):
    first, second = (trained_part(lora(base, front_end=each, dropout=0.1)[0]) for each in ("meta", "cuda"))
    assert first == second


def trained_part(recorder):
    """The events from the first step on: on meta tensors, peft leaves out that it moves its adapters."""
    return list(recorder.events.sequence())[recorder.events.marks[0].position :]


def test_wrong_options_of_lora_are_refused():
    with recording("meta", profile("h100")) as recorder:
        model = hf.build(LLAMA)
        with pytest.raises(UnknownName, match="q_proj"):
            with_lora(model, targets=["q_prj"])
        with pytest.raises(InvalidInput, match="rank"):
            with_lora(model, rank=0)
        with pytest.raises(InvalidInput, match="nf4-double"):
            quantised(recorder, lambda: model, "mxfp4")


def test_a_recording_says_what_a_quantised_base_assumes():
    assert "outlier" in notes("int8")[0]
    assert notes("nf4") == notes("nf4-double") != notes("int8")
