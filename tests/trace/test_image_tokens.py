"""Tokens of images, videos and sounds against the functions of transformers' own processors.

The processors need torchvision; their functions of sizes do not, so that they are taken out of the installed source.
"""

import ast
import math
import re
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tonnage.architectures import Model
from tonnage.estimate.media import image_rules, images, sounds, videos

SIZES = (
    (1024, 1024),
    (1080, 1920),
    (480, 640),
    (448, 448),
    (28, 28),
    (3000, 200),
    (4000, 4000),
    (777, 1333),
    (560, 560),
)


def of_transformers(module: str, *names: str, **known):
    """Functions of a file of transformers, or methods of its classes, without its imports."""
    root = Path(find_spec("transformers").origin).parent
    tree = ast.parse((root / "models" / f"{module}.py").read_text())
    found = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in names}
    space = {"math": math, "np": np, "lru_cache": lambda **_: lambda function: function, **known}
    for name in names:
        node = found[name]
        node.decorator_list = []
        node.returns = None
        for argument in (*node.args.args, *node.args.kwonlyargs):
            argument.annotation = None
        exec(compile(ast.Module([node], []), module, "exec"), space)
    return [space[name] for name in names]


def model(architecture: str, **config) -> Model:
    family = config.pop("family", "")
    return Model(
        name="asked",
        family=family,
        architecture=architecture,
        hidden_size=8,
        vocab_size=8,
        context=None,
        branches=(),
        config=config,
    )


def tokens(asked: Model, height: int, width: int) -> int:
    return image_rules.image_rule(asked)(asked, height, width).tokens


@pytest.mark.parametrize(("height", "width"), SIZES)
def test_qwen_counts_patches_of_its_smart_resize(height, width):
    (resize,) = of_transformers("qwen2_vl/image_processing_qwen2_vl", "smart_resize")
    for name, side, least, most in (
        ("Qwen2_5_VLForConditionalGeneration", 14, 3136, 12_845_056),
        ("Qwen3VLForConditionalGeneration", 16, 65_536, 16_777_216),
    ):
        high, wide = resize(height, width, side * 2, least, most)
        expected = (high // side) * (wide // side) // 4
        assert tokens(model(name, vision_config={"patch_size": side}), height, width) == expected


@pytest.mark.parametrize(("height", "width"), SIZES)
def test_glm_counts_two_frames_of_an_image(height, width):
    (resize,) = of_transformers("glm4v/image_processing_glm4v", "smart_resize")
    high, wide = resize(2, height, width, min_pixels=112 * 112, max_pixels=9_633_792)
    assert tokens(model("Glm4vForConditionalGeneration"), height, width) == (high // 14) * (wide // 14) // 4


@pytest.mark.parametrize(("height", "width"), SIZES)
def test_pixtral_ends_each_row_with_a_token(height, width):
    known = {"get_image_size": lambda image, _: image, "ImageInput": object, "ChannelDimension": object}
    counted, resize = of_transformers(
        "pixtral/image_processing_pixtral", "_num_image_tokens", "get_resize_output_image_size", **known
    )
    for side, longest, merge, family in ((16, 1024, 1, "llava"), (14, 1540, 2, "mistral3")):
        high, wide = resize((height, width), longest, side * merge)
        config = {"vision_config": {"model_type": "pixtral", "patch_size": side, "image_size": longest}}
        name = "LlavaForConditionalGeneration" if merge == 1 else "Mistral3ForConditionalGeneration"
        expected = (wide // (side * merge) + 1) * (high // (side * merge))
        assert tokens(model(name, family=family, **config), height, width) == expected
    assert counted is not None


@pytest.mark.parametrize(("height", "width"), SIZES)
def test_internvl_cuts_tiles_and_adds_a_thumbnail(height, width):
    all_sizes, canvas = of_transformers(
        "got_ocr2/image_processing_got_ocr2", "get_all_supported_aspect_ratios", "get_optimal_tiled_canvas"
    )
    assert len(all_sizes(1, 12)) == 35
    wide, high = canvas((height, width), (448, 448), 1, 12)
    tiles = wide * high + (wide * high > 1)
    assert tokens(model("InternVLForConditionalGeneration"), height, width) == 2 + 256 * tiles


@pytest.mark.parametrize(("height", "width"), SIZES)
def test_gemma_4_fills_its_budget_of_patches(height, width):
    (resize,) = of_transformers("gemma4/image_processing_gemma4", "get_aspect_ratio_preserving_size")
    high, wide = resize(height, width, 16, 280 * 9, 3)
    assert tokens(model("Gemma4ForConditionalGeneration"), height, width) == (high // 16) * (wide // 16) // 9


@pytest.mark.parametrize(("height", "width"), SIZES)
def test_kimi_pads_what_it_scales_to_its_limit(height, width):
    (resize,) = of_transformers("kimi_k25/image_processing_kimi_k25", "navit_resize")
    _, (high, wide) = resize(height, width, 14, 2, 16_384, 512)
    assert tokens(model("KimiK25ForConditionalGeneration"), height, width) == (high // 28) * (wide // 28)


@pytest.mark.parametrize(("height", "width"), SIZES)
def test_llava_next_cuts_the_padding_of_its_canvas(height, width):
    class Processor:
        num_additional_image_tokens, patch_size, num_image_tokens, vision_aspect_ratio = 1, 14, 729, "anyres_max_9"

    (best,) = of_transformers("../image_processing_utils", "select_best_resolution")
    for module, name, side, points in (
        ("llava_next", "LlavaNextForConditionalGeneration", 336, images.PINPOINTS),
        (
            "llava_onevision",
            "LlavaOnevisionForConditionalGeneration",
            384,
            [[384 * i, 384 * j] for i in range(1, 7) for j in range(1, 7)],
        ),
    ):
        counted, unpadded = of_transformers(
            f"{module}/processing_{module}",
            "_get_number_of_features",
            "_get_unpadded_features",
            select_best_resolution=best,
        )
        asked = Processor()
        asked.image_processor = type("Settings", (), {"image_grid_pinpoints": points})
        asked._get_unpadded_features = lambda *sizes, unpadded=unpadded, asked=asked: unpadded(asked, *sizes)
        expected = counted(asked, height, width, side, side) - (module == "llava_next")
        config = {"image_grid_pinpoints": points, "vision_config": {"image_size": side}}
        assert tokens(model(name, **config), height, width) == expected


def test_llama_4_separates_tiles_and_adds_the_whole_image():
    # transformers 5.24, models/llama4/processing_llama4.py, _prompt_split_image, of 2 x 2 tiles of 144 tokens: start,
    # image and end, a separator between two tiles of a row and one behind each row
    assert tokens(model("Llama4ForConditionalGeneration"), 672, 672) == 3 + 2 * (2 * 144 + 1 + 1) + 144
    assert tokens(model("Llama4ForConditionalGeneration"), 336, 336) == 3 + 144


def test_images_of_one_size_have_as_many_tokens_whatever_they_are():
    llava = model("LlavaForConditionalGeneration", vision_config={"model_type": "clip_vision_model", "image_size": 336})
    gemma = model("Gemma3ForConditionalGeneration", mm_tokens_per_image=256)
    assert {tokens(llava, *size) for size in SIZES} == {576}
    assert {tokens(gemma, *size) for size in SIZES} == {256}


def test_phi_3_5_vision_counts_144_tokens_a_tile():
    # its own example: a square image of 336 is one tile and the whole: processing_phi3_v.py, (1 + 1) * 144 + 1 + 2 * 12
    # is that of num_crops 1; 16 crops make 4 x 4 tiles
    assert tokens(model("Phi3VForCausalLM"), 1000, 1000) == (16 + 1) * 144 + 1 + 5 * 12


def test_phi_4_counts_what_its_mask_leaves():
    # transformers 5.24, models/phi4_multimodal/image_processing_phi4_multimodal.py: one tile of 448 x 448
    assert tokens(model("Phi4MultimodalForCausalLM"), 448, 448) == 256 + 1 + 256 + 16 + 16
    # 3 x 3 tiles of 448 for 1024 x 1024, none of it padded
    assert tokens(model("Phi4MultimodalForCausalLM"), 1024, 1024) == 256 + 1 + 48 * 48 + 48 + 16


@pytest.mark.parametrize("seconds", [0.05, 1, 2.5, 10, 30])
def test_sounds_are_counted_as_the_encoders_count_them(seconds):
    frames = math.ceil(round(seconds * 16_000) / 160)
    (qwen2,) = of_transformers("qwen2_audio/modeling_qwen2_audio", "_get_feat_extract_output_lengths")
    (qwen3,) = of_transformers("qwen3_omni_moe/modeling_qwen3_omni_moe", "_get_feat_extract_output_lengths")
    asked = model("Qwen2AudioForConditionalGeneration")
    assert sounds.qwen2_audio(asked, seconds).tokens == max(qwen2(None, frames)[1], 1)
    assert sounds.qwen3_omni(asked, seconds).tokens == qwen3(frames)
    assert sounds.voxtral(asked, seconds).tokens == 375


@pytest.mark.parametrize("seconds", [0.5, 1, 2.5, 10, 30])
def test_sounds_of_speech_models_are_counted_as_their_processors_count_them(seconds):
    frames = math.ceil(round(seconds * 16_000) / 160)
    (flamingo,) = of_transformers("audioflamingo3/processing_audioflamingo3", "_get_audio_token_length")
    (glm,) = of_transformers("glmasr/processing_glmasr", "_get_audio_token_length")
    (granite,) = of_transformers("granite_speech/feature_extraction_granite_speech", "_get_num_audio_features")
    extractor = SimpleNamespace(
        melspec_kwargs={"hop_length": 160}, projector_window_size=15, projector_downsample_rate=5
    )
    asked = model("GraniteSpeechForConditionalGeneration")
    assert sounds.audio_flamingo(asked, seconds).tokens == flamingo(None, frames)
    assert sounds.glm_asr(asked, seconds).tokens == max(glm(None, frames), 1)
    assert [sounds.granite_speech(asked, seconds).tokens] == granite(extractor, [round(seconds * 16_000)])


def test_ten_tokens_a_second_of_granite_and_12_5_of_voxtral_realtime():
    """Model cards of granite-speech-3.3-8b (10 Hz) and Voxtral-Mini-4B-Realtime-2602 (a token is 80 ms)."""
    assert sounds.granite_speech(model("GraniteSpeechForConditionalGeneration"), 30).tokens == 300
    assert sounds.voxtral_realtime(model("VoxtralRealtimeForConditionalGeneration"), 30).tokens == 375


def test_ultravox_stacks_eight_positions_to_a_token_in_windows_of_30_seconds():
    """vllm-project/vllm, vllm/model_executor/models/ultravox.py: encoder_ds_factor 2, stack_factor 8."""
    asked = model("UltravoxModel")
    assert sounds.ultravox(asked, 30).tokens == math.ceil(3000 / 16)
    assert sounds.ultravox(asked, 45).tokens == math.ceil(3000 / 16) + math.ceil(1500 / 16)


@pytest.mark.parametrize(("height", "width"), SIZES)
def test_smolvlm_makes_four_tiles_of_the_longest_side(height, width):
    (resize,) = of_transformers("idefics3/image_processing_idefics3", "_resize_output_size_rescale_to_max_len")
    high, wide = resize(height, width, max_len=4 * 512)
    rows, columns = math.ceil(high / 512), math.ceil(wide / 512)
    eye = {"image_size": 512, "patch_size": 16}
    made = tokens(model("SmolVLMForConditionalGeneration", vision_config=eye, scale_factor=4), height, width)
    assert made == (rows * columns + 1) * (64 + 2) + rows + 2


@pytest.mark.parametrize(("height", "width"), SIZES)
def test_command_a_vision_takes_the_canvas_of_its_processor(height, width):
    canvas, _ = of_transformers(
        "cohere2_vision/image_processing_cohere2_vision", "get_optimal_tiled_canvas", "get_all_supported_aspect_ratios"
    )
    wide, high = canvas((height, width), (512, 512), 1, 12)
    tiles = wide * high + (wide * high > 1)
    eye = {"image_size": 512, "patch_size": 16}
    made = tokens(model("Cohere2VisionForConditionalGeneration", vision_config=eye), height, width)
    assert made == tiles * (256 + 1) + 2


def test_minicpm_v_makes_640_tokens_of_1_8_million_pixels():
    """openbmb/MiniCPM-V-2_6, model card: 640 tokens of an image of 1.8M pixels (1344 x 1344), without its marks."""
    asked = model("MiniCPMV", query_num=64)
    made = image_rules.image_rule(asked)(asked, 1344, 1344)
    assert made.sequences * 64 == 640
    assert made.tokens == 640 + 2 * 10 + 3 + 2


def test_molmo_pools_windows_that_overlap():
    """allenai/Molmo-7B-D-0924, image_preprocessing_molmo.py: 224 pixels a window, margins of 56 on each side."""
    # one window and the whole image of 336 pixels: 12 x 12 tokens each
    assert tokens(model("MolmoForCausalLM"), 336, 336) == 2 * (2 + 12 * 13)


def test_deepseek_vl2_adds_the_whole_image():
    """deepseek-ai/DeepSeek-VL2, processing_deepseek_vl_v2.py: 14 x 14 tokens a tile of 384, one behind each row."""
    assert tokens(model("DeepseekVLV2ForCausalLM"), 384, 768) == 14 * 15 + 1 + 14 * (28 + 1)


def test_a_second_of_gemma_4_is_25_tokens():
    assert sounds.gemma4(model("Gemma4ForConditionalGeneration"), 10).tokens == 250
    assert sounds.gemma4(model("Gemma4ForConditionalGeneration"), 30).tokens == 750


VIDEOS = ((1, None), (10, None), (61, 1), (90, 2), (600, None), (7.3, 4), (2000, 0.5))


class Metadata:
    """What a processor knows of a video of 30 frames a second."""

    def __init__(self, seconds: float):
        self.fps, self.duration = 30, seconds
        self.total_num_frames = round(seconds * 30)


class Torch:
    """The functions of torch that sample_frames calls, of numpy."""

    @staticmethod
    def arange(*bounds):
        return type("Indices", (), {"int": lambda self: np.arange(*bounds).astype(int)})()


def video(asked: Model, seconds: float, fps: float | None, height: int, width: int) -> tuple[int, int]:
    """Frames and tokens of a video."""
    rule = videos.VIDEO_RULES[asked.architecture]
    frames = rule.frames_of(seconds, fps)
    return frames, rule.encode(asked, frames, seconds, height, width).tokens


def processor(**settings):
    return type("Processor", (), {"num_frames": None, "temporal_patch_size": 2, "merge_size": 2, **settings})()


@pytest.mark.parametrize(("seconds", "fps"), VIDEOS)
@pytest.mark.parametrize(("height", "width"), SIZES[:4])
def test_qwen_2_takes_pairs_of_frames_each_within_its_pixels(seconds, fps, height, width):
    sample, resize = of_transformers(
        "qwen2_vl/video_processing_qwen2_vl", "sample_frames", "smart_resize", torch=Torch, VideoMetadata=object
    )
    own = processor(min_frames=4, max_frames=768, fps=2)
    frames = len(sample(own, Metadata(seconds), fps=fps))
    for name, side, least, most in (
        ("Qwen2_5_VLForConditionalGeneration", 14, 3136, 12_845_056),
        ("Qwen2_5OmniForConditionalGeneration", 14, 128 * 28 * 28, 768 * 28 * 28),
        ("Qwen3OmniMoeForConditionalGeneration", 16, 128 * 32 * 32, 768 * 32 * 32),
    ):
        high, wide = resize(height, width, side * 2, least, most)
        expected = -(-frames // 2) * (high // side) * (wide // side) // 4
        asked = model(name, vision_config={"patch_size": side})
        assert video(asked, seconds, fps, height, width) == (frames, expected)


@pytest.mark.parametrize(("seconds", "fps"), VIDEOS)
@pytest.mark.parametrize(("height", "width"), SIZES[:4])
def test_qwen_3_shares_its_pixels_among_frames_and_says_their_time(seconds, fps, height, width):
    sample, resize = of_transformers(
        "qwen3_vl/video_processing_qwen3_vl", "sample_frames", "smart_resize", VideoMetadata=object
    )
    (times,) = of_transformers("qwen3_vl/processing_qwen3_vl", "_calculate_timestamps")
    own = processor(min_frames=4, max_frames=768, fps=2)
    indices = sample(own, Metadata(seconds), fps=fps)
    high, wide = resize(len(indices), height, width, 2, 32, 4096, 25_165_824)
    # the pieces into which the expression of Qwen's tokenizer cuts the words, and a start and an end of each pair
    words = re.compile(r"[^\r\n\w]?[A-Za-z]+|\d| ?[^\s\w]+|\s+")
    text = sum(len(words.findall(f"<{time:.1f} seconds>")) + 2 for time in times(own, indices.tolist(), 30))
    expected = -(-len(indices) // 2) * (high // 16) * (wide // 16) // 4 + text
    asked = model("Qwen3VLForConditionalGeneration", vision_config={"patch_size": 16})
    assert video(asked, seconds, fps, height, width) == (len(indices), expected)


@pytest.mark.parametrize(("seconds", "fps"), VIDEOS)
def test_glm_takes_the_frames_of_five_minutes(seconds, fps):
    sample, resize = of_transformers(
        "glm4v/video_processing_glm4v", "sample_frames", "smart_resize", VideoMetadata=object
    )
    own = processor(max_duration=300, fps=2)
    indices = sample(own, Metadata(seconds), fps=fps)
    high, wide = resize(len(indices), 720, 1280, 2, 28, 112 * 112, 47_040_000)
    text = sum(2 + -(-len(str(int(index / 30))) // 3) for index in indices[::2])
    expected = len(indices) // 2 * (high // 14) * (wide // 14) // 4 + text
    assert video(model("Glm4vForConditionalGeneration"), seconds, fps, 720, 1280) == (len(indices), expected)


def test_qwen_3_counts_as_many_tokens_as_were_measured():
    # huggingface/transformers, issue 48062: 1080p with 469,762,048 pixels for all frames: 183,600 tokens of 180 frames
    encode = videos.all_frames(16, 4096, 469_762_048, lambda seconds, frames: 0)
    asked = model("Qwen3VLForConditionalGeneration", vision_config={"patch_size": 16})
    assert encode(asked, 180, 90, 1080, 1920).tokens == 183_600
    assert encode(asked, 768, 600, 1080, 1920).tokens == 221_184
    # QwenLM/Qwen3-VL, issue 1795: 61 s of 720 x 1280 at one frame a second under vLLM, which took 60 frames: a prompt
    # of 11,981 tokens, of which some 15 are of the question and of the chat
    rule = videos.VIDEO_RULES["Qwen3VLForConditionalGeneration"]
    assert 0 < 11_981 - rule.encode(asked, 60, 61, 720, 1280).tokens < 20


def test_frames_of_one_size_have_as_many_tokens_each():
    (counted,) = of_transformers("llava_onevision/processing_llava_onevision", "replace_video_token")
    asked = processor(num_image_tokens=729, video_token="v")
    text = counted(asked, {"pixel_values_videos": [np.zeros((32, 1))]}, 0)
    assert video(model("LlavaOnevisionForConditionalGeneration"), 10, None, 720, 1280) == (32, len(text))
    (labelled,) = of_transformers("internvl/processing_internvl", "replace_video_token")
    asked = processor(image_seq_length=256, start_image_token="<", end_image_token=">", image_token="i")
    text = labelled(asked, {"pixel_values_videos": [np.zeros((12, 1))]}, 0)
    pieces = re.findall(r"Frame|\d|[:<>i \n]", text)
    assert video(model("InternVLForConditionalGeneration"), 6, 2, 720, 1280) == (12, len(pieces))


def test_gemma_4_takes_32_frames_of_70_tokens_at_most():
    (resize,) = of_transformers("gemma4/video_processing_gemma4", "get_aspect_ratio_preserving_size")
    (labelled,) = of_transformers("gemma4/processing_gemma4", "replace_video_token")
    high, wide = resize(720, 1280, 16, 70 * 9, 3)
    asked = processor(boi_token="<", eoi_token=">", video_token="v")
    metadata = Metadata(100)
    metadata.timestamps = [100 / 31 * index for index in range(32)]
    each = (high // 16) * (wide // 16) // 9
    text = labelled(asked, {"num_soft_tokens_per_video": [each], "video_metadata": [metadata]}, 0)
    assert video(model("Gemma4ForConditionalGeneration"), 100, None, 720, 1280) == (32, len(text))
