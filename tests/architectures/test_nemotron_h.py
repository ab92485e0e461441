"""Counts: the Hub's of the released weights, without the correction biases of the routers, which the Hub lists as F32.

Nemotron-3-Nano 31,577,937,344 (BF16) and 31,577,940,288 (parameters of its GGUF), Nemotron-3.5-Lightning 32,913,263,168
(BF16) and 3072 (F32), Nemotron-3-Super 123,611,012,096 (with its draft layers), Nemotron-Nano-9B-v2 8,888,227,328.
Published sizes: Nano 31.6B, 3.2B active, 3.6B with embeddings (arXiv:2512.20848); Super 120.6B, 12.7B active
(arXiv:2604.12374, both cut, not rounded: 120.67 and 12.77); Ultra 550B, 55B active.
"""

import pytest

from architectures.reading import GIB, billions, cache_bytes, model, ops, without_table
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import Attention, Mamba2, MoE, Op, StateCache

NINE = "nvidia/NVIDIA-Nemotron-Nano-9B-v2"
NANO = "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"
LIGHTNING = "nvidia/NVIDIA-Nemotron-3.5-Lightning-30B-A3B-BF16"
SUPER = "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16"
ULTRA = "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16"


def first(name: str, kind: type[Op]) -> Op:
    return next(op for op, _ in ops(model(name)) if isinstance(op, kind))


@pytest.mark.parametrize(
    ("name", "count", "drafts"),
    [
        (NINE, 8_888_227_328, 8_888_227_328),
        ("nvidia/Nemotron-H-56B-Base-8K", 56_324_350_464, 56_324_350_464),
        (NANO, 31_577_940_288, 31_577_940_288),
        (LIGHTNING, 31_577_940_288, 32_913_266_240),
        (SUPER, 120_668_707_840, 123_611_033_088),
        (ULTRA, 549_308_993_536, 560_524_603_904),
    ],
)
def test_nemotron_h_has_the_published_parameters(name: str, count: int, drafts: int):
    made = model(name)
    assert (made.num_parameters(), made.num_parameters(drafts=True)) == (count, drafts)


@pytest.mark.parametrize(
    ("name", "bf16", "mixtures", "experts"),
    [(NANO, 31_577_937_344, 23, 128), (LIGHTNING, 32_913_263_168, 24, 128), (SUPER, 123_611_012_096, 41, 512)],
)
def test_the_hubs_count_is_ours_with_the_draft_layers_less_the_correction_biases(
    name: str, bf16: int, mixtures: int, experts: int
):
    assert model(name).num_parameters(drafts=True) - bf16 == mixtures * experts


def test_active_parameters_are_the_published_ones():
    assert billions(without_table(model(NANO)), 1) == 3.2
    assert billions(model(NANO).num_active_parameters(), 1) == 3.6
    assert model(SUPER).num_active_parameters() == 12_770_237_440
    assert billions(without_table(model(ULTRA))) == 55


def test_nano_keeps_0_75_gib_of_131072_tokens_and_0_046_gib_of_state():
    made = model(NANO)
    assert cache_bytes(made, 131_072) == 6 * 2 * 2 * 128 * 2 * 131_072 == 0.75 * GIB
    recurrent = 23 * 64 * 64 * 128 * 4
    convolution = 23 * 3 * (64 * 64 + 2 * 8 * 128) * 2
    assert cache_bytes(made, 131_072, StateCache) == recurrent + convolution
    assert (recurrent + convolution) / GIB == pytest.approx(0.046, abs=0.0005)


@pytest.mark.parametrize(("kind", "width"), [("float32", 4), ("bfloat16", 2), (None, 4)])
def test_the_recurrent_state_has_the_type_that_the_config_names(kind: str | None, width: int):
    state = cache_bytes(model(NANO, mamba_ssm_cache_dtype=kind), 1, StateCache, "recurrent state")
    assert state == 23 * 64 * 64 * 128 * width


def test_letters_and_names_of_layers_say_the_same():
    letters = model(NANO)
    names = model(LIGHTNING, num_nextn_predict_layers=None)
    assert letters.decoder.layers == names.decoder.layers
    assert letters.num_parameters() == names.num_parameters()


def test_nano_has_23_mamba_layers_23_mixtures_and_6_of_attention():
    counts = {type(op): count for op, count in ops(model(NANO)) if isinstance(op, Mamba2 | MoE | Attention)}
    assert counts == {Mamba2: 23, MoE: 23, Attention: 6}


def test_experts_of_super_work_in_a_latent_width():
    shapes = {weight.name: (weight.rows, weight.columns, weight.copies) for weight in first(SUPER, MoE).weights()}
    assert shapes["mixer.experts.up_proj.weight"] == (2688, 1024, 512)
    assert shapes["mixer.shared_experts.up_proj.weight"] == (5376, 4096, 1)
    assert {name for name in shapes if "latent" in name} == {
        "mixer.fc1_latent_proj.weight",
        "mixer.fc2_latent_proj.weight",
    }


def test_draft_layers_share_table_and_head_and_end_in_a_norm():
    draft = model(SUPER).branch("multi-token prediction")
    assert draft is not None and draft.kind == "draft"
    assert [len(block.ops) for block in draft.blocks] == [5, 3]
    names = [weight.name for weight, _ in draft.weighted()]
    assert names[:3] == ["enorm.weight", "hnorm.weight", "eh_proj.weight"]
    assert names[-1] == "final_layernorm.weight"
    assert not {weight.part for weight, _ in draft.weighted()} & {"embedding", "head"}


def test_a_draft_of_two_steps_has_its_layers_twice():
    once, twice = (model(SUPER, num_nextn_predict_layers=steps) for steps in (1, 2))
    main = once.num_parameters()
    assert twice.num_parameters(drafts=True) - main == 2 * (once.num_parameters(drafts=True) - main)


def test_the_attention_head_of_nemotron_h_56b_has_a_name_of_its_own():
    assert cache_bytes(model("nvidia/Nemotron-H-56B-Base-8K"), 8192) == 10 * 2 * 8 * 128 * 2 * 8192


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        (NINE, {"hybrid_override_pattern": "MX" * 28}, r"hybrid_override_pattern may hold M, \*, -, E. Got 'X'"),
        (NINE, {"hybrid_override_pattern": "M-"}, "num_hidden_layers is 56, but the pattern has 2 layers"),
        (NINE, {"hybrid_override_pattern": None}, "lacks hybrid_override_pattern or layers_block_type"),
        (LIGHTNING, {"layers_block_type": ["mamba"] * 51 + ["conv"]}, "layers_block_type may hold .*Got 'conv'"),
        (LIGHTNING, {"mtp_layers_block_type": ["E"]}, "mtp_layers_block_type may hold .*Got 'E'"),
        (NANO, {"mamba_ssm_cache_dtype": "fp32"}, "mamba_ssm_cache_dtype must be one of float32"),
        (NANO, {"mlp_bias": True}, "mlp_bias with experts"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(name: str, changes: dict[str, object], message: str):
    with pytest.raises(InvalidInput, match=message):
        model(name, **changes)
