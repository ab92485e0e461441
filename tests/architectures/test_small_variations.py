"""Families that vary another one a little.

Counts, with draft layers where there are some, are safetensors totals of the Hub as llmfit 1.1.17 records them, except:
ERNIE-4.5-300B-A47B (the totals of its Base-PT, without drafts, and of its Paddle form, with them), AFM-4.5B (of
AFM-4.5B-Base; its own has 5120 more), K-EXAONE (528,513,280 more, a draft layer that transformers leaves out),
Solar-Open-100B (6144 less, the correction biases) and MiniCPM3-4B (no total that fits): the classes of transformers
5.23 confirm these. Counts without drafts are those of the classes.
"""

import pytest

from architectures.reading import billions, cache_bytes, model, ops
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import MLP, Attention, KimiDeltaAttention, LatentAttention, MoE


@pytest.mark.parametrize(
    ("name", "count", "drafts", "active"),
    [
        ("baidu/ERNIE-4.5-0.3B-PT", 360_748_032, 360_748_032, 0),
        ("baidu/ERNIE-4.5-21B-A3B-PT", 21_825_437_888, 21_948_655_808, 3),
        ("baidu/ERNIE-4.5-300B-A47B-PT", 299_484_163_264, 300_474_051_776, 48),
        ("tencent/Hunyuan-7B-Instruct", 7_504_568_320, 7_504_568_320, 8),
        ("tencent/Hunyuan-A13B-Instruct", 80_393_183_232, 80_393_183_232, 13),
        ("tencent/Hy3", 295_033_543_488, 298_786_155_776, 21),
        ("ByteDance-Seed/Seed-OSS-36B-Base", 36_151_104_512, 36_151_104_512, 36),
        ("rednote-hilab/dots.llm1.base", 142_774_381_696, 142_774_381_696, 14),
        ("arcee-ai/AFM-4.5B", 4_619_184_640, 4_619_184_640, 5),
        ("arcee-ai/Trinity-Large-Preview", 398_635_286_016, 398_635_286_016, 13),
        ("LGAI-EXAONE/EXAONE-4.0-1.2B", 1_279_391_488, 1_279_391_488, 1),
        ("LGAI-EXAONE/EXAONE-4.0-32B", 32_003_216_384, 32_003_216_384, 32),
        ("LGAI-EXAONE/K-EXAONE-236B-A23B", 236_571_156_352, 236_571_156_352, 24),
        ("upstage/Solar-Open-100B", 102_651_799_552, 102_651_799_552, 12),
        ("inclusionAI/Ling-3.0-flash", 124_414_211_552, 127_486_405_600, 6),
        ("meituan-longcat/LongCat-Flash-Chat", 560_664_980_480, 561_862_880_256, 32),
        ("openbmb/MiniCPM3-4B", 4_073_875_968, 4_073_875_968, 4),
        ("tencent/Youtu-LLM-2B", 1_961_560_064, 1_961_560_064, 2),
    ],
)
def test_they_have_the_published_parameters(name: str, count: int, drafts: int, active: int):
    made = model(name)
    assert (made.num_parameters(), made.num_parameters(drafts=True)) == (count, drafts)
    assert billions(made.num_active_parameters()) == active


def windows(name: str, **changes: object) -> dict[int | None, int]:
    found: dict[int | None, int] = {}
    for op, count in ops(model(name, **changes)):
        if isinstance(op, Attention):
            found[op.window] = found.get(op.window, 0) + count
    return found


def test_three_of_four_layers_of_exaone_4_and_of_trinity_slide():
    assert windows("LGAI-EXAONE/EXAONE-4.0-32B") == {4096: 48, None: 16}
    assert windows("arcee-ai/Trinity-Large-Preview") == {4096: 45, None: 15}
    assert windows("LGAI-EXAONE/EXAONE-4.0-1.2B") == {None: 30}


def test_exaones_pattern_is_letters_or_a_number():
    assert windows("LGAI-EXAONE/EXAONE-4.0-32B", layer_types=None) == {4096: 48, None: 16}
    assert windows("LGAI-EXAONE/EXAONE-4.0-32B", layer_types=None, sliding_window_pattern=2) == {4096: 32, None: 32}
    with pytest.raises(InvalidInput, match="sliding_window_pattern"):
        windows("LGAI-EXAONE/EXAONE-4.0-32B", layer_types=None, sliding_window_pattern="LXG")


def test_layers_of_dots_llm1_slide_from_max_window_layers_on():
    assert windows("rednote-hilab/dots.llm1.base", sliding_window=4096, max_window_layers=60) == {None: 60, 4096: 2}


def test_ernies_mixtures_may_come_at_intervals():
    feeds = {
        type(op): count
        for op, count in ops(model("baidu/ERNIE-4.5-21B-A3B-PT", moe_layer_interval=2))
        if isinstance(op, MLP | MoE)
    }
    assert feeds == {MLP: 14, MoE: 14}


def test_hunyuan_may_give_a_number_for_each_layer_if_all_are_equal():
    assert (
        model("tencent/Hunyuan-A13B-Instruct", moe_topk=8).num_active_parameters()
        == model("tencent/Hunyuan-A13B-Instruct").num_active_parameters()
    )
    with pytest.raises(InvalidInput, match="moe_topk"):
        model("tencent/Hunyuan-A13B-Instruct", moe_topk=[8] * 31 + [4])


def test_arcees_feed_forward_has_no_gate():
    feed = next(op for op, _ in ops(model("arcee-ai/AFM-4.5B")) if isinstance(op, MLP))
    assert {weight.name for weight in feed.weights()} == {"mlp.up_proj.weight", "mlp.down_proj.weight"}


def test_trinity_gates_its_attention_through_a_matrix_of_its_own():
    mixer = next(op for op, _ in ops(model("arcee-ai/Trinity-Large-Preview")) if isinstance(op, Attention))
    assert [weight.rows for weight in mixer.weights() if "gate_proj" in weight.name] == [48 * 128]


def test_ling_3_caches_latents_in_one_layer_of_six():
    made = model("inclusionAI/Ling-3.0-flash")
    assert cache_bytes(made, 1000) == 7 * 576 * 2 * 1000
    assert sum(count for op, count in ops(made) if isinstance(op, KimiDeltaAttention)) == 35


def test_longcat_caches_two_latents_a_layer_and_its_idle_experts_have_no_weights():
    made = model("meituan-longcat/LongCat-Flash-Chat")
    assert cache_bytes(made, 1000) == 2 * 28 * 576 * 2 * 1000
    experts = next(op for op, _ in ops(made) if isinstance(op, MoE))
    assert experts.num_experts == 512
    assert (
        model("meituan-longcat/LongCat-Flash-Chat", num_nextn_predict_layers=0).num_parameters(drafts=True)
        == made.num_parameters()
    )


def test_minicpm3_takes_the_width_of_values_from_the_hidden_size():
    mixer = next(op for op, _ in ops(model("openbmb/MiniCPM3-4B")) if isinstance(op, LatentAttention))
    assert mixer.v_head_dim == 64
    assert model("openbmb/MiniCPM3-4B").tied
