"""Layers of Megatron-core on the tape, against sums written by hand from its modules."""

from collections import Counter

import pytest
from msgspec.structs import replace

from tape.megatron_rank import Run, model_of, on_tape, setting_of, total, total_kept

H, Q, KV, HEADS, F = 8192, 8192, 1024, 64, 28672  # Llama 3.1 70B
DENSE = 8 * H + 4 * Q + 4 * KV + 4 * HEADS + 6 * F + 8  # bytes a token that a layer keeps
LLAMA = Run(model="llama-3.1-70b", layers=1)
V2 = Run(model="deepseek-v2", layers=1)


def blocks(run):
    return model_of(run.model).decoder.blocks


def made(run, block=0, **options):
    model = model_of(run.model)
    return on_tape(model.decoder.blocks[block], setting_of(run, **options), model.hidden_size)[0]


def kept(tape):
    """Bytes by unit and what cuts them."""
    found = Counter()
    for each in tape.kept:
        found[each.key.extent.unit, each.key.extent.split] += each.bytes
    return found


def moment(tape, name, is_forward=False):
    """Bytes of the one moment of this name."""
    (found,) = [each for each in tape.moments if each.name.endswith(name) and each.forward == is_forward]
    account = Counter()
    for key, amount in found.live.items():
        account[key.kind, key.extent.unit, key.extent.split] += amount
    return account


def test_a_dense_layer_keeps_the_closed_form():
    assert total_kept(made(LLAMA), LLAMA) / LLAMA.tokens == DENSE


def test_tensor_and_sequence_parallelism_cut_all_that_a_dense_layer_keeps():
    run = replace(LLAMA, tensor=8)
    assert total_kept(made(run), run) / run.tokens == DENSE / 8


def test_without_sequence_parallelism_the_stream_stays_whole():
    found = kept(made(LLAMA))
    assert found["token", "whole"] == 8 * H + 8
    assert found["token", "tensor"] == DENSE - 8 * H - 8


def test_the_activation_s_backward_is_the_peak_of_a_dense_layer():
    """All that is kept up to the activation, its gradient and that of its input, and the gradient of the stream."""
    tape = made(LLAMA)
    peak = max(total(each.live, LLAMA) for each in tape.moments if not each.forward)
    assert peak / LLAMA.tokens == DENSE - 2 * F + 3 * 2 * F + 2 * H


def test_a_column_parallel_product_gathers_its_input_and_makes_the_whole_input_gradient():
    tape = made(replace(LLAMA, tensor=2))
    found = moment(tape, "linear_fc1.mm")
    assert (
        found["temporary", "token", "gathered"] == 2 * 2 * H
    )  # the normalised input again, and the gradient before it is scattered
    assert found["temporary", "token", "whole"] == 2 * 2 * H  # its shard, and the gradient of the stream
    assert found["temporary", "token", "tensor"] == 2 * 2 * F


def test_a_row_parallel_product_gathers_the_gradient_of_its_output():
    found = moment(made(replace(LLAMA, tensor=2)), "linear_fc2.mm")
    assert found["temporary", "token", "gathered"] == 2 * H
    assert found["temporary", "token", "tensor"] == 2 * F


def test_weight_gradients_take_no_memory_of_their_own_when_their_sum_is_fused():
    def transient(tape):
        return max(
            amount
            for each in tape.moments
            for key, amount in each.live.items()
            if key.extent == ("parameter", "tensor", 0)
        )

    with pytest.raises(ValueError, match="empty"):
        transient(made(LLAMA))
    assert transient(made(LLAMA, gradient_accumulation_fusion=False)) == 2 * 2 * F * H


def test_latent_attention_keeps_the_closed_form():
    q_lora, kv_lora, heads, nope, rope, v, h, f = 1536, 512, 128, 128, 64, 128, 5120, 12288
    attention = 4 * h + 4 * q_lora + 4 * kv_lora + 2 * heads * (2 * (nope + rope) + 2 * v) + 4 * heads + 12
    assert total_kept(made(V2), V2) / V2.tokens == attention + 4 * h + 6 * f + 4


def test_positions_that_are_not_fused_keep_cosines_and_sines_for_all_heads_of_a_token():
    assert kept(made(V2, rope_fusion=False))["token", "gathered"] == 8 * 64
    assert kept(made(LLAMA, rope_fusion=False))["token", "gathered"] == 8 * 128


ROUTED = {"core": (0, 14), "score": "softmax", "router_pre_softmax": True, "router_groups": True, "capacity": True}


def test_a_mixture_keeps_the_closed_form():
    experts, k, h, f, shared = 160, 6, 5120, 1536, 3072
    sparse, dense = kept(made(V2, 1, **ROUTED)), kept(made(V2, 0, **ROUTED))
    router = 4 * experts + 4 * experts + experts + experts + 8 * k + 2 * experts
    assert sparse["token", "whole"] - dense["token", "whole"] == router + 4 * (2 * experts + 1)
    assert sparse["token", "tensor"] - dense["token", "tensor"] == 6 * shared - 6 * 12288
    assert sparse["row", "whole"] == 2 * h + 2
    assert sparse["row", "expert"] == 3 * 2 * f


def test_when_tokens_come_back_from_their_experts_four_copies_of_them_are_named():
    tape = made(V2, 1, **ROUTED)
    found, stays = moment(tape, "unpermute", is_forward=True), kept(tape)
    assert found["activation", "row", "whole"] == stays["row", "whole"] + 4 * 2 * 5120
    assert found["activation", "token", "whole"] == stays["token", "whole"] + 2 * 2 * 5120


def test_from_core_0_16_on_one_copy_is_gone_before_tokens_are_put_in_order():
    tape = made(V2, 1, **{**ROUTED, "core": (0, 16)})
    found, stays = moment(tape, "unpermute", is_forward=True), kept(tape)
    assert found["activation", "row", "whole"] == stays["row", "whole"] + 3 * 2 * 5120
    exchange = moment(tape, "combine", is_forward=True)
    assert exchange["activation", "row", "whole"] == stays["row", "whole"] + 4 * 2 * 5120
    assert exchange["activation", "token", "whole"] == stays["token", "whole"] + 2 * 5120


def test_a_single_expert_rank_sends_nothing_and_holds_less():
    found = moment(made(V2, 1, **ROUTED, expert_parallel=False), "unpermute", is_forward=True)
    one = 2 * 5120
    assert found["activation", "row", "whole"] == 2 + one + one  # what experts were given, and what they gave


DROPPED = [
    ("core_attn", 1, {("token", "tensor"): 4 * 128}),
    ("layernorm", 1, {("token", "whole"): 2 * (2 * 5120 + 4)}),
    ("layernorm", 0, {("token", "whole"): 2 * 5120 + 4}),
    (
        "mla_up_proj",
        1,
        {("token", "tensor"): 2 * 128 * (2 * 192 + 128), ("token", "whole"): 2 * 1536 + 2 * 512 - 2 * 64 + 8},
    ),
    ("mlp", 0, {("token", "tensor"): 6 * 12288, ("token", "whole"): 2 * 5120 + 4}),
    ("mlp", 1, {}),
    ("moe_act", 1, {("row", "expert"): 2 * 1536}),
    ("shared_experts", 1, {("token", "tensor"): 6 * 3072}),
]


@pytest.mark.parametrize(("module", "block", "dropped"), DROPPED)
def test_recomputing_a_module_frees_what_it_made(module, block, dropped):
    all_kept, left = kept(made(V2, block)), kept(made(V2, block, recompute="selective", recompute_modules=(module,)))
    assert {key: all_kept[key] - left[key] for key in all_kept if all_kept[key] != left[key]} == dropped


def test_recomputing_a_mixture_keeps_its_normed_input_alone_and_its_peak_comes_again_in_backward():
    tape = made(V2, 1, recompute="selective", recompute_modules=("moe",))
    assert not [each for each in tape.kept if each.key.extent.unit == "row"]
    again = moment(tape, "unpermute")
    assert again["activation", "row", "whole"] == 2 + 2 * 5120 + 3 * 2 * 5120
    assert again["temporary", "token", "whole"] == 2 * 5120


def test_full_recomputation_keeps_the_input():
    tape = made(LLAMA, recompute="full")
    assert kept(tape) == {("token", "whole"): 2 * H}
    peak = max(total(each.live, LLAMA) for each in tape.moments)
    assert peak / LLAMA.tokens == DENSE - 2 * F + 3 * 2 * F + 2 * H


def test_before_core_0_17_what_is_made_again_is_there_twice():
    def peak(core):
        tape = made(V2, 1, core=core, recompute="selective", recompute_modules=("mla_up_proj",))
        return moment(tape, "core_attention.attention")["activation", "token", "tensor"]

    assert peak((0, 16)) - peak((0, 17)) == 2 * 128 * (2 * 192 + 128)


def test_the_paper_s_layer_of_selective_recomputation():
    """Korthikanti et al., equation 2: 34 bytes and 5 a/h for each key, with dropout; statistics of norms are left
    out there.
    """
    run = Run(model="gpt3-175b", layers=1)
    h, heads = model_of(run.model).hidden_size, 96
    found = kept(made(replace(run, tensor=1), dropout=True, attention_dropout=True))
    assert found["token", "whole"] + found["token", "tensor"] == 34 * h + 16 + 4 * heads
    model = model_of(run.model)
    setting = replace(setting_of(run, dropout=True, attention_dropout=True), attention="eager")
    found = kept(on_tape(model.decoder.blocks[0], setting, h)[0])
    assert found["token", "whole"] == 10 * h + 16
    assert found["token", "tensor"] == 24 * h
    assert found["pair", "tensor"] == 5 * heads


def test_fp8_products_keep_their_inputs_in_one_byte():
    plain, narrow = kept(made(LLAMA)), kept(made(LLAMA, fp8="tensorwise"))
    assert plain["token", "whole"] - narrow["token", "whole"] == 2 * H  # both normed inputs
    assert (
        plain["token", "tensor"] - narrow["token", "tensor"] == F
    )  # the activation's output; attention's stays in 16 bit
    assert kept(made(LLAMA, fp8="delayed"))["token", "tensor"] - narrow["token", "tensor"] == Q


def test_all_to_all_context_parallelism_keeps_attention_s_output_twice():
    run = replace(LLAMA, context=4)
    assert kept(made(run))["token", "tensor"] - kept(made(LLAMA))["token", "tensor"] == 2 * Q
    assert kept(made(run, engine=(2, 7))) == kept(made(LLAMA))


def test_expert_tensor_ranks_gather_rows_and_cut_the_inner_width():
    found = kept(made(V2, 1, expert_tensor_parallel=True))
    assert found["row", "expert"] == 3 * 2 * 1536
    assert found["row", "whole"] == 2 * 5120 + 2
