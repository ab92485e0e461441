"""Arithmetic of a forward pass and of a step, against closed forms and known counts."""

import pytest

import tonnage
from tonnage import read
from tonnage.estimate.layers.layers import forward_flops, training_flops
from tonnage.formulas import flops as f


def test_a_step_of_a_dense_model_is_6_n_d_and_attention():
    model, tokens, length = read("llama-3.1-8b"), 8192, 4096
    multiplied = model.num_parameters() - 128_256 * 4096 - 65 * 4096  # without the input table and the norms
    attention = 3 * 4 * 32 * 4096 * (length + 1) / 2 * tokens
    assert training_flops(model, tokens, length).value == 6 * multiplied * tokens + attention


def test_a_mixture_computes_with_its_active_parameters():
    model = read("mixtral-8x7b")
    assert forward_flops(model, 1, 1).value == pytest.approx(
        2 * (model.num_active_parameters() - 32_000 * 4096), rel=1e-3
    )


def test_a_tied_head_is_multiplied_though_it_has_no_parameters_of_its_own():
    model = read("qwen3-0.6b")
    head = next(node for _, node in forward_flops(model, 1, 1).walk() if node.name == "lm_head")
    assert head.value == 2 * 151_936 * 1024


def test_a_window_sees_what_is_in_it():
    assert f.windowed_attention_flops(y=1, L=1, T=10, s=10, r=3) == 1 + 2 + 8 * 3
    assert (
        f.windowed_attention_flops(y=1, L=1, T=10, s=10, r=99) == f.causal_attention_flops(y=1, L=1, T=10, s=10) == 55
    )


def test_an_encoder_sees_every_token():
    model = read("bert-base-uncased")
    scores = [node for _, node in forward_flops(model, 512, 512).walk() if node.formula is f.full_attention_flops]
    assert scores and sum(node.value for node in scores) == 12 * 4 * 768 * 512 * 512


def test_recurrent_layers_cost_the_same_at_every_length():
    model = read("mamba-2.8b")
    assert forward_flops(model, 1000, 1000).value == forward_flops(model, 1000, 100_000).value


# ---- where not all weights train ----


@pytest.mark.parametrize("name", ["llama-3.1-8b", "mixtral-8x7b", "gemma-3-4b-pt", "mamba2-1.3b"])
def test_freezing_nothing_leaves_out_only_the_heads_weights_and_the_first_inputs(name):
    model, tokens, length = read(name, offline=True), 4096, 4096
    whole = training_flops(model, tokens, length).value
    freeze = training_flops(model, tokens, length, method="freeze", trainable_layers=model.num_layers).value
    head = sum(
        2 * op_weight.num_active_parameters * tokens
        for op in model.decoder.after
        for op_weight in op.weights()
        if op_weight.linear
    )
    assert freeze <= whole
    assert freeze >= whole * (1 - 1.05 / model.num_layers) - max(
        head, 2 * model.vocab_size * model.hidden_size * tokens
    )


def test_freezing_all_but_one_layer_is_little_more_than_forward():
    model = read("llama-3.1-8b")
    forward, layers = forward_flops(model, 1, 4096).value, model.num_layers
    last = training_flops(model, 1, 4096, method="freeze", trainable_layers=1).value
    head = 2 * 128_256 * 4096
    one = (forward - head) / layers
    attention = 4 * 4096 * (4096 + 1) / 2
    # the layer's gradients of weights, attention's two derivatives, the head's gradient of its input
    assert last == pytest.approx(forward + head + (one - attention) + 2 * attention)


def test_adapters_take_two_thirds_of_full_training_and_their_own_arithmetic():
    model, tokens, length = read("llama-3.1-8b"), 2048, 2048
    whole = training_flops(model, tokens, length).value
    without, with_some = (
        training_flops(model, tokens, length, method="lora", adapters=count).value for count in (0, 10**8)
    )
    attention = 3 * 4 * 32 * 4096 * (length + 1) / 2 * tokens
    assert without == pytest.approx(attention + (whole - attention) * 2 / 3, rel=0.02)
    assert with_some - without == pytest.approx(6 * 10**8 * tokens)


@pytest.mark.parametrize(
    "more",
    [
        {"method": "lora"},
        {"method": "lora", "lora_rank": 256, "lora_targets": "q_proj,v_proj"},
        {"method": "dora"},
        {"method": "qlora"},
        {"method": "freeze", "trainable_layers": 2},
        {"method": "freeze", "trainable_layers": 16},
        {"method": "full"},
    ],
)
@pytest.mark.parametrize(
    ("runtime", "machine"),
    [
        ("transformers", "H200-SXM-141GB"),
        ("ddp", "8xH200-SXM-141GB"),
        ("deepspeed", "8xH200-SXM-141GB"),
        ("fsdp2", "8xH100-SXM-80GB"),
    ],
)
@pytest.mark.parametrize("recompute", ["none", "full"])
def test_hardware_does_at_least_what_every_method_needs(more, runtime, machine, recompute):
    if runtime == "fsdp2" and more["method"] == "qlora":
        pytest.skip("FSDP2 shards no 4-bit base")
    made = tonnage.train("llama-3.2-1b", machine, runtime=runtime, recompute=recompute, **more)
    mfu, hfu = made.run.mfu.value, made.run.hfu.value
    assert 0 < mfu <= hfu
    if (
        recompute == "none"
    ):  # the same arithmetic, but for scores that attention makes again and the ends of the first layer
        assert hfu < 1.3 * mfu


def test_experts_adapters_count_as_often_as_a_token_passes_them():
    model = read("mixtral-8x7b")
    made = tonnage.train(model, "8xH200-SXM-141GB", runtime="deepspeed", method="lora", lora_rank=16)
    assert 0 < made.run.mfu.value <= made.run.hfu.value
