"""Generation and mixtures of experts of transformers under the recorder."""

from contextlib import contextmanager

import pytest
import torch

from architectures.reading import caches
from tonnage import read
from tonnage.estimate.serving.memory import serving_memory
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import StateCache
from tonnage.spec import ServingPlan
from tonnage.trace.profiles import profile
from tonnage.trace.record import huggingface as hf
from tonnage.trace.record.fake.environment import recording
from tonnage.trace.record.fake.policies import BALANCED
from tonnage.trace.record.inference import generate, notes
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
    "max_position_embeddings": 4096,
}
A_TOKEN = 2 * 2 * 64 * 2 * 2  # layers x heads x head_dim x (keys and values) x bytes
MOE = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "head_dim": 32,
    "moe_intermediate_size": 64,
    "num_experts": 8,
    "num_experts_per_tok": 2,
}


def generated(config, *, cache="dynamic", batch=2, prompt=300, new_tokens=5, front_end="meta"):
    with placed(front_end) as recorder:
        generate(recorder, hf.build(config), batch=batch, prompt=prompt, new_tokens=new_tokens, cache=cache)
    return recorder


@contextmanager
def placed(front_end="meta"):
    with recording(front_end, profile("torch-2.13-a100")) as recorder, torch.device(front_end):
        yield recorder


def cached(recorder, position=None):
    """Bytes of the cache that are alive, by the last word of their name."""
    found = {}
    events = recorder.events
    for number in events.live_at(len(events) if position is None else position):
        made = events.allocations[number]
        if made.module.startswith("past_key_values"):
            assert made.category == "buffer"
            name = made.module.rpartition(".")[2]
            found[name] = found.get(name, 0) + made.bytes
    return found


@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("name", ["llama-3.2-1b", "qwen3-0.6b", "gemma-3-1b-pt"])
def test_the_traced_cache_is_the_one_that_the_estimate_counts(name, cache):
    model, prompt, new_tokens, batch = read(name), 700, 8, 2  # Gemma's window is 512
    plan = ServingPlan(context=prompt + new_tokens - 1, engine="transformers")
    counted = serving_memory(model, plan).fullest.kept.value
    recorder = generated(model.config, cache=cache, batch=batch, prompt=prompt, new_tokens=new_tokens)
    assert sum(cached(recorder).values()) == batch * counted


@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_a_hybrid_keeps_states_beside_its_cache_as_counted(cache):
    name = "granite-4.0-h-tiny"
    model, batch = read(name), 2
    counted = serving_memory(model, ServingPlan(context=40, engine="transformers")).fullest.kept.value
    columns = sum(
        count * each.elements
        for each, count in caches(model)
        if isinstance(each, StateCache) and "convolution" in each.name
    )
    held = cached(generated(model.config, cache=cache, batch=batch, prompt=36, new_tokens=5))
    # transformers keeps four columns of a convolution, in bf16; three in fp32 are counted
    assert held.pop("conv_states") == batch * columns // 3 * 4 * 2
    assert sum(held.values()) == batch * (counted - columns * 4)


def test_stages_grow_a_dynamic_cache_and_find_a_static_one_whole():
    tokens = {}
    for cache in ("dynamic", "static"):
        recorder = generated(LLAMA, cache=cache, batch=1, prompt=300, new_tokens=5)
        assert [mark.name for mark in recorder.events.marks] == ["Model", "Prefill", "First decode", "Last decode"]
        held = [sum(cached(recorder, mark.position).values()) for mark in recorder.events.marks]
        tokens[cache] = [each / A_TOKEN for each in held]
    assert tokens == {"dynamic": [0, 300, 301, 304], "static": [0, 304, 304, 304]}


def test_the_jump_to_the_last_step_leaves_what_running_every_step_would():
    jumped = replay(generated(LLAMA, prompt=300, new_tokens=9).events).stages[-1]
    whole = replay(generated(LLAMA, prompt=307, new_tokens=2).events).stages[-1]
    assert jumped.allocated_bytes == whole.allocated_bytes


def test_a_recording_says_that_a_dynamic_cache_was_put_to_its_last_length_at_once():
    assert "at once" in notes("dynamic", 9)[0]
    assert notes("static", 9) == notes("dynamic", 3) == ()


def test_a_window_keeps_the_whole_prompt_alive_until_the_next_token():
    config = {
        **LLAMA,
        "architectures": ["MistralForCausalLM"],
        "model_type": "mistral",
        "sliding_window": 64,
        "head_dim": 64,
    }
    recorder = generated(config, batch=1, prompt=300, new_tokens=5)
    held = [sum(cached(recorder, mark.position).values()) / A_TOKEN for mark in recorder.events.marks]
    assert held == [0, 300, 64, 64]  # what is kept is a view of the whole


@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_both_front_ends_see_the_same_generation(cache):
    first, second = (generated(LLAMA, cache=cache, front_end=each) for each in ("meta", "cuda"))
    assert list(first.events.sequence()) == list(second.events.sequence())
    assert first.attention.chosen == second.attention.chosen


def test_a_static_cache_is_read_with_a_mask_and_a_dynamic_one_without():
    assert generated(LLAMA, cache="dynamic").attention.chosen == {"flash_attention": 6}
    assert generated(LLAMA, cache="static").attention.chosen == {"flash_attention": 2, "efficient_attention": 4}


@pytest.mark.parametrize("wrong", [{"batch": 0}, {"prompt": 0}, {"new_tokens": 0}, {"cache": "paged"}])
def test_a_generation_that_cannot_be_is_refused(wrong):
    with pytest.raises(InvalidInput, match=f"{next(iter(wrong))} must be"):
        generated(LLAMA, **wrong)


def experts(implementation):
    with placed() as recorder:
        model = hf.build(MOE, experts=implementation)
        program = hf.training_program(model, sequence_length=256, micro_batch_size=1, optimizer=None)
        train(recorder, program, 1)
    return recorder, model


def inputs_of_experts(recorder):
    """Bytes of forward activations that the experts make."""
    return sum(
        each.bytes
        for each in recorder.events.allocations
        if each.module.endswith("experts") and each.category == "activation"
    )


def test_experts_are_multiplied_in_groups_unless_asked_otherwise():
    recorder, model = experts(None)
    assert model.config._experts_implementation == "grouped_mm"
    assert recorder.calls["aten._grouped_mm.default"] > 0
    assert not any("nonzero" in operation for operation, *_ in recorder.answers)


def test_one_expert_after_the_other_gets_an_equal_share_of_tokens_and_the_recording_says_so():
    grouped, one_by_one = experts("grouped_mm")[0], experts("eager")[0]
    assert 0.5 < inputs_of_experts(one_by_one) / inputs_of_experts(grouped) < 2
    answers = {each.answer: each.times for each in one_by_one.recording().answers}
    assert answers["every expert"] == 2
    assert answers[BALANCED] == 2 * 8
