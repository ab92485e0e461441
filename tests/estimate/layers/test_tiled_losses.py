"""TRL's losses by tiles: what ChunkedLogProbFunction and ChunkedDivergenceFunction hold, with the arithmetic spelled
out.

The figures of `MEASURED` are what TRL 1.16's own functions held of CPU tensors, by every operation's storages (its
Triton kernels and fp32 sums, which allocate nothing on a GPU, left out), beside the weights and what came in.
"""

import pytest

import tonnage
from tonnage.estimate.layers.losses import LOSSES, divergence, log_probabilities
from tonnage.estimate.memory import training_memory
from tonnage.estimate.plan_columns import needed_bytes
from tonnage.kernel.errors import InvalidPlan
from tonnage.models import read
from tonnage.spec import TrainingPlan
from tonnage.tape import TOKEN, Code, Held, Setting, Types, layer

H, TEACHER, V = 64, 128, 100_000
TILE = 32_768  # logits
LAST = V - 3 * TILE


def moments(loss, tokens, width, compute):
    """(forward, kept, backward): bytes of the fullest moments, and of what stays between them."""
    code = Code(Setting(types=Types(width, compute, width != compute)))
    made = layer(code, lambda x: loss(code, x, [Held(V * H, "vocab")], TEACHER), H, width)
    forward, backward = (
        max(total(each.live, tokens) for each in made.moments if each.forward is which) for which in (True, False)
    )
    return forward, sum(each.bytes for each in made.kept) * tokens, backward


def total(live, tokens):
    times = {"token": tokens, "tile": min(tokens, 4096), "gradient": 0, "parameter": 1}
    return sum(size * times[key.extent.unit] for key, size in live.items())


def test_log_probabilities_keep_the_scored_states_and_a_few_numbers_a_token():
    states, mask, targets, results = 2 * H, 1, 8, 2 * 4
    assert moments(log_probabilities, 512, 2, 2)[1] == 512 * (states + mask + targets + results)


def test_backward_sums_in_fp32_and_casts_beside_one_tile():
    tile, kept = 512 * TILE * 2, 512 * (2 * H + 17)
    of_states, of_head = 512 * H * (4 + 2), V * H * (4 + 2)
    assert moments(log_probabilities, 512, 2, 2)[2] == kept + tile + of_states + of_head


def test_no_more_tokens_than_a_tile_has_are_at_work():
    short, long = (moments(log_probabilities, tokens, 2, 2)[2] for tokens in (4096, 8192))
    assert long - short == 4096 * (2 * H + 17 + H * (4 + 2))  # what is kept and its gradients, but no wider tile


def test_under_autocast_two_slices_of_the_head_are_cast():
    tile, states, slices = 512 * TILE * 2, 512 * H * 2, 2 * TILE * H * 2
    kept, sums = 512 * (4 * H + 17), (512 * H + V * H) * 4
    assert moments(log_probabilities, 512, 4, 2)[2] == kept + sums + tile + states + slices


def test_a_divergence_holds_fp32_tiles_of_student_and_teacher_and_two_of_gradients():
    tiles, gradients = 2 * 512 * TILE * 4, 2 * 512 * TILE * 2
    kept, sums = 512 * (2 * (H + TEACHER) + 1 + 3 * 4), (512 * H + V * H) * 4
    assert moments(divergence, 512, 2, 2)[2] == kept + sums + tiles + gradients


# (loss, tokens, bytes of a weight, of a product): forward, kept, backward
MEASURED = {
    (log_probabilities, 512, 2, 2): (33_712_256, 75_776, 72_226_824),
    (log_probabilities, 5000, 4, 2): (275_894_304, 1_380_000, 305_608_360),
    (log_probabilities, 5000, 4, 4): (539_691_168, 1_380_000, 565_130_720),
    (divergence, 512, 2, 2): (134_640_000, 202_752, 227_262_472),
    (divergence, 5000, 2, 2): (1_077_862_208, 1_980_000, 1_639_492_744),
    (divergence, 5000, 4, 2): (1_091_564_064, 3_900_000, 1_642_985_608),
}


@pytest.mark.parametrize(("asked", "measured"), MEASURED.items())
def test_the_tape_agrees_with_the_functions_of_trl(asked, measured):
    forward, kept, backward = moments(*asked)
    assert (forward, backward) == pytest.approx((measured[0], measured[2]), rel=1e-3)
    assert kept == pytest.approx(measured[1], rel=0.03)  # results of a few bytes a token, which the caller holds


# ---- losses of logits that are all there ----


def loss_of(name, tokens, width=2):
    """(forward, kept, backward) of one of LOSSES of V logits a token, whose own type is of this width, beyond them."""
    code = Code(Setting(types=Types(width, width, False)))

    def run(x):
        return LOSSES[name](code, code.linear("head", x, [Held(V * H, "vocab")], V, TOKEN, is_module=False))

    made = layer(code, run, H, width)
    forward, backward = (
        max((total(each.live, tokens) for each in made.moments if each.forward is which), default=0)
        for which in (True, False)
    )
    return forward, sum(each.bytes for each in made.kept) * tokens, backward


def test_gradients_take_the_place_of_verl_s_logits():
    tokens, logits, own = 512, 512 * V * 2, 512 * 2 * H
    _, kept, backward = loss_of("gradient in logits", tokens)
    assert kept == logits + own + 3 * 4 * tokens
    assert logits < backward < 1.5 * logits


def test_an_entropy_keeps_the_logits_beside_two_gradients():
    # torch 2.13, torch.compile of verl 0.9.1's entropy_from_logits under autocast: of its saved tensors only the
    # logits, in bf16, are as wide as the vocabulary.
    tokens, logits = 512, 512 * V * 2
    _, kept, backward = loss_of("gradients beside logits", tokens)
    assert kept == loss_of("gradient in logits", tokens)[1]
    assert 3 * logits < backward < 3.1 * logits


def test_openrlhf_keeps_logits_in_fp32():
    tokens, logits = 512, 512 * V * 4
    _, kept, backward = loss_of("wide log-probabilities", tokens)
    assert logits < kept < 1.01 * logits
    assert 2 * logits < backward < 2.1 * logits


def test_a_generalized_divergence_holds_seventeen_copies_of_the_logits():
    # torch 2.13, torch.distributed._tools.mem_tracker over TRL 1.16's generalized_jsd_loss, beta 0.5: bytes a logit
    tokens, logit = 512, 512 * V
    forward, kept, backward = loss_of("generalized divergence", tokens)
    assert forward / logit == pytest.approx(68 + 2, rel=0.01)  # and the logits in 16 bit, which the tape holds on to
    assert kept / logit == pytest.approx(28, rel=0.01)
    assert backward / logit == pytest.approx(48, rel=0.01)


# ---- in an answer ----


def loss_phase(on="H200-SXM-141GB", **said):
    answer = tonnage.train("llama-3.2-1b", on=on, precision="bf16", **said)
    assert answer.question["loss"].value == "tiled"
    return next(each for each in answer.phases if each.name == "loss")


def test_only_tiles_of_the_logits_are_held():
    made = loss_phase(objective="grpo", sequence_length=8192)
    assert sum(each.value for each in find(made, "for a tile of tokens")) == 4096 * TILE * 2


def test_a_tile_is_as_small_as_its_tokens_and_a_pair_has_two_rows():
    made = loss_phase(objective="dpo", sequence_length=1024)
    assert sum(each.value for each in find(made, "for a tile of tokens")) == 2 * 1024 * TILE * 2


def test_a_head_s_gradient_is_in_fp32_and_cast_at_once():
    vocabulary, hidden = 128_256, 2048
    made = loss_phase(objective="grpo", sequence_length=1024)
    assert sum(each.value for each in find(made, "for parameters")) == vocabulary * hidden * (4 + 2)


def find(term, words):
    found = [term] if term.name.startswith(words) and not term.children else []
    return [*found, *(each for child in term.children for each in find(child, words))]


@pytest.mark.parametrize(
    "said",
    [
        {"runtime": "transformers"},
        {"runtime": "transformers", "liger": True},
        {"runtime": "ddp", "on": "2xH200-SXM-141GB"},
        {"runtime": "deepspeed", "zero_stage": 2, "on": "2xH200-SXM-141GB"},
        {"runtime": "fsdp2", "on": "2xH200-SXM-141GB"},
    ],
)
def test_every_runtime_of_trl_takes_its_losses_by_tiles(said):
    made = loss_phase(objective="grpo", sequence_length=1024, **said)
    assert sum(each.value for each in find(made, "for a tile of tokens")) == 1024 * TILE * 2


def test_a_wider_teacher_has_wider_states():
    hidden, more = 1024 * 2, read("llama-3.1-8b").hidden_size - read("llama-3.2-1b").hidden_size
    small, large = (
        loss_phase(objective="distillation", teacher=name, sequence_length=1024)
        for name in ("llama-3.2-1b", "llama-3.1-8b")
    )
    assert large.child("activations").value - small.child("activations").value == hidden * more


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"objective": "grpo", "loss": "full"}, "must be tiled. Got full"),
        ({"loss": "tiled"}, "a tiled loss is TRL's"),
        ({"objective": "ppo", "loss": "tiled"}, "of objectives contrastive, dpo, online-dpo, grpo, dapo, rloo, distil"),
    ],
)
def test_a_loss_by_tiles_is_trl_s_alone(said, words):
    with pytest.raises(InvalidPlan, match=words):
        tonnage.train("llama-3.2-1b", on="H200-SXM-141GB", **said)


def test_many_plans_at_once_have_the_tiles_of_each():
    model, lengths = read("llama-3.2-1b"), (1024, 16_384)
    names = {"objective": "grpo", "loss": "tiled", "runtime": "transformers", "zero_stage": 0, "precision": "bf16"}
    together = needed_bytes(model, {"sequence_length": lengths}, **names)
    alone = [training_memory(model, TrainingPlan.of_fields(sequence_length=each, **names)).needed for each in lengths]
    assert list(together) == pytest.approx(alone)
