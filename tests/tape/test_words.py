"""What each word of the tape keeps, and what its derivative holds."""

import pytest

from tonnage.tape import TENSOR, TOKEN, Code, Extent, Held, Router, Setting, Style, Types, layer
from tonnage.tape.kernels import chosen_kernel, shows_shared_heads

H = 64  # numbers a token that come in, 2 bytes each
PAIR = Extent("pair", "tensor")


def made(run, *, width=2, **setting):
    """The layer that `run(code, x)` writes, of H numbers a token."""
    code = Code(Setting(**setting))
    return layer(code, lambda x: run(code, x), H, width)


def kept(run, **setting):
    """Bytes a token of each tensor that is kept."""
    return [each.bytes for each in made(run, **setting).kept if each.key.extent.unit == "token"]


def peak(run, **setting):
    """The most bytes a token that are alive in backward."""
    moments = made(run, **setting).moments
    return max(sum(size for key, size in each.live.items() if key.extent.unit == "token") for each in moments)


def weight(elements, bias=False):
    return Held(elements, "replicated", 0, bias)


def test_a_product_keeps_its_input_for_the_weight_s_gradient():
    assert kept(lambda code, x: code.linear("q", x, [weight(H * H)], H)) == [2 * H]


def test_a_product_of_a_frozen_weight_keeps_nothing_of_a_token():
    assert kept(lambda code, x: code.linear("q", x, [weight(H * H)], H), trains=False) == []


def test_two_products_of_one_input_keep_it_once():
    def run(code, x):
        return code.add(code.linear("q", x, [weight(H * H)], H), code.linear("k", x, [weight(H * H)], H))

    assert kept(run) == [2 * H]


def test_autocast_keeps_a_cast_input_for_each_product_and_the_cast_weight():
    mixed = Types(4, 2, True)

    def run(code, x):
        return code.add(code.linear("q", x, [weight(H * H)], H), code.linear("k", x, [weight(H * H)], H))

    assert kept(run, types=mixed, width=4) == [2 * H, 2 * H]
    weights = [each.bytes for each in made(run, types=mixed, width=4).kept if each.key.extent.unit == "parameter"]
    assert weights == [2 * H * H, 2 * H * H]


def test_an_addition_keeps_nothing_and_a_product_of_numbers_keeps_both():
    assert kept(lambda code, x: code.add(x, x)) == []
    assert kept(lambda code, x: code.mul(x, code.mapped("neg", x))) == [2 * H, 2 * H]


def test_an_activation_keeps_its_input_or_its_output():
    assert kept(lambda code, x: code.activation(x)) == [2 * H]  # silu: its input
    assert kept(lambda code, x: code.activation(code.mapped("neg", x)), style=Style(activation="relu")) == [2 * H]


def test_gelu_written_out_keeps_four_tensors():
    assert kept(lambda code, x: code.activation(x), style=Style(activation="gelu_new")) == [2 * H] * 4


def test_layer_norm_keeps_its_input_a_mean_and_a_root():
    assert kept(lambda code, x: code.layer_normed(x, [weight(H), weight(H)])) == [2 * H, 4, 4]


def test_rms_norm_as_llama_keeps_an_fp32_copy_the_root_and_what_the_weight_multiplies():
    assert kept(lambda code, x: code.rms_norm(x, code.weight(H, "replicated"))) == [4 * H, 4, 2 * H]


@pytest.mark.parametrize(
    ("norm", "bytes_kept"),
    [
        ("wide", [4 * H, 4, 4 * H]),
        ("gemma", [4 * H, 4, 4 * H]),
        ("cast", [4 * H, 4, 4 * H]),
        ("gemma4", [4 * H, 4, 4, 4 * H]),
        ("narrow", [4 * H, 4, 2 * H, 2 * H]),
    ],
)
def test_other_ways_to_write_a_norm_keep_other_copies(norm, bytes_kept):
    assert kept(lambda code, x: code.rms_norm(x, code.weight(H, "replicated")), style=Style(norm=norm)) == bytes_kept


def test_layer_norm_in_fp32_keeps_an_fp32_copy():
    assert kept(lambda code, x: code.layer_normed(x, []), style=Style(layer_norm="wide")) == [4 * H, 4, 4]


def test_dropout_keeps_a_byte_a_number():
    assert kept(lambda code, x: code.dropped(x), dropout=True) == [H]
    assert kept(lambda code, x: code.dropped(x)) == []


def test_parts_of_one_projection_keep_the_whole():
    def run(code, x):
        whole = code.linear("qkv", x, [weight(3 * H * H)], 3 * H)
        q, k, v = code.parts(whole, [H, H, H])
        return code.mul(code.mul(q, k), v)

    assert kept(run) == [2 * H, 6 * H, 2 * H]


def test_what_is_copied_piece_by_piece_copies_its_whole_gradient_for_each_piece():
    """Keys of latent attention: gradient of the whole, one copy of it, the piece, and zeros of the piece."""

    def run(code, x):
        first, second = code.parts(x, [H / 2, H / 2])
        return code.filled([first, second])

    assert peak(run) == 2 * H + 2 * H + H + H


def test_rows_picked_by_an_index_keep_the_index():
    assert kept(lambda code, x: code.summed(code.gathered(x, 2 * H, TOKEN, 16), H, TOKEN)) == [16]


def test_clamping_keeps_its_input_and_makes_a_mask_for_each_side():
    assert kept(lambda code, x: code.clamped(x, sides=2)) == [2 * H]
    assert peak(lambda code, x: code.clamped(x, sides=2)) == 2 * H + 2 * H + 2 * H + 2 * H


def attending(code, x, heads=4, kv_heads=4, value=None, **options):
    """Queries, keys and values of width 16 a head, and attention."""
    value = value or 16 * kv_heads
    q = code.linear("q", x, [weight(H * 16 * heads)], 16 * heads, TENSOR)
    k = code.linear("k", x, [weight(H * 16 * kv_heads)], 16 * kv_heads, TENSOR)
    v = code.linear("v", x, [weight(H * value)], value, TENSOR)
    return code.attend(q, k, v, heads, value * heads / kv_heads, kv_heads=kv_heads, **options)


def test_fused_attention_keeps_queries_keys_values_output_and_a_sum_a_head():
    assert kept(attending) == [2 * H, 2 * H, 2 * H, 2 * H, 2 * H, 4 * 4]


def test_shared_heads_are_kept_once_where_the_kernel_knows_them():
    assert sum(kept(lambda code, x: attending(code, x, kv_heads=2))) == 2 * H + 2 * H + 2 * (H // 2) * 2 + 2 * H + 16


def test_shared_heads_are_copied_for_each_query_head_where_it_does_not():
    found = kept(lambda code, x: attending(code, x, kv_heads=2), attention="eager")
    assert found.count(2 * H) == 4  # input, queries, keys, values


def test_eager_attention_keeps_its_softmax_in_fp32_and_cast():
    pairs = [each.bytes for each in made(attending, attention="eager").kept if each.key.extent.unit == "pair"]
    assert pairs == [4 * 4, 2 * 4]


def test_dropout_of_scores_keeps_a_mask_and_what_is_left_of_them():
    pairs = [
        each.bytes
        for each in made(attending, attention="eager", attention_dropout=True).kept
        if each.key.extent.unit == "pair"
    ]
    assert pairs == [4 * 4, 4, 2 * 4]


def test_a_mask_is_kept_as_numbers_by_each_layer_and_shared_heads_are_copied():
    tape = made(lambda code, x: attending(code, x, kv_heads=2, is_masked=True))
    assert [each.bytes for each in tape.kept if each.key.extent.unit == "pair"] == [2]
    assert [each.bytes for each in tape.kept if each.key.extent.unit == "token"].count(2 * H) == 5


def test_in_fp32_shared_heads_fall_to_separate_products():
    """No flash and no cuDNN for fp32, and the efficient kernel knows no shared heads."""
    tape = made(lambda code, x: attending(code, x, kv_heads=2), types=Types(4, 4), width=4)
    assert [each.bytes for each in tape.kept if each.key.extent.unit == "pair"] == [4 * 4]


def test_sinks_are_a_column_that_softmax_keeps():
    tape = made(lambda code, x: attending(code, x, sinks=True), style=Style(has_sdpa=False, upcasts_softmax=False))
    assert [each.bytes for each in tape.kept if each.key.extent.unit == "pair"] == [2 * 4]


def test_flash_attention_pads_narrower_values():
    found = kept(lambda code, x: attending(code, x, value=32), attention="flash")
    assert sorted(found, reverse=True) == [2 * H, 2 * H, 2 * H, 2 * H, 2 * H, 16]  # the copied half is nobody's


@pytest.mark.parametrize(
    ("width", "value", "bytes_each", "shared", "masked", "kernel"),
    [
        (128, 128, 2, False, False, "cudnn"),
        (192, 128, 2, False, False, "cudnn"),
        (128, 128, 2, True, True, "cudnn"),
        (512, 512, 2, False, False, "efficient"),
        (512, 512, 2, True, False, "math"),
        (100, 100, 2, False, False, "flash"),
        (100, 100, 2, False, True, "math"),
        (128, 128, 4, False, False, "efficient"),
        (128, 128, 4, True, False, "math"),
    ],
)
def test_the_first_kernel_that_can_is_taken(width, value, bytes_each, shared, masked, kernel):
    assert chosen_kernel(width, value, bytes_each, is_shared=shared, is_masked=masked) == kernel


def test_transformers_copies_shared_heads_where_a_mask_or_widths_would_stop_the_kernels():
    assert shows_shared_heads(128, 128, False)
    assert not shows_shared_heads(128, 128, True)
    assert not shows_shared_heads(192, 128, False)
    assert not shows_shared_heads(512, 512, False)


def test_a_router_in_fp32_keeps_its_input_in_fp32():
    def run(code, x):
        return code.wide_linear("gate", x, [weight(8 * H)], 8)

    assert kept(run, style=Style(router=Router(wide=True))) == [4 * H]


def test_rotary_positions_keep_nothing_unless_a_layer_makes_its_tables():
    def run(code, x):
        return code.rotary(x, 16)

    assert kept(run) == []
    assert kept(run, style=Style(tables=1)) == [2 * 16, 2 * 16]
