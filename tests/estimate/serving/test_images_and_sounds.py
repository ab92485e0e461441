"""Images and sounds in the requests of a served model: their tokens, what they take, and what is refused."""

import pytest

import tonnage
from tonnage.architectures._registry import ARCHITECTURES, find
from tonnage.estimate.media import image_rules, sounds, videos
from tonnage.kernel.errors import InvalidInput, MissingDatum, NotApplicable
from tonnage.models import read

VLM = "qwen2.5-vl-7b-instruct"


def serve(model=VLM, on="h100", **options):
    return tonnage.serve(model, on=on, advice=False, **options)


def value(answer, name):
    return answer.question[name].value


def text_of(answer):
    return " ".join(str(answer).split())


@pytest.mark.parametrize(
    ("model", "counted"),
    [
        # sgl-project/sgl-cookbook docs/autoregressive: vision tokens of 20 and 200 images of 1280 x 720; the benchmark
        # counts the two tokens around each image of Qwen
        ("qwen3-vl-235b-a22b-instruct", 17_640 / 20 - 2),
        ("qwen2.5-vl-72b-instruct", 23_960 / 20 - 2),
        ("llama-4-scout-17b-16e-instruct", 377_440 // 200),
    ],
)
def test_sglang_counts_as_many_tokens_of_an_image(model, counted):
    asked = read(model)
    assert image_rules.image_rule(asked)(asked, 720, 1280).tokens == counted


def test_sglang_counts_as_many_tokens_for_560_pixels():
    # SGLang, pull request 14422: 102,912 vision tokens of 256 images of 560 x 560, each with a start and an end
    asked = read(VLM)
    assert image_rules.image_rule(asked)(asked, 560, 560).tokens == 102_912 / 256 - 2


def test_every_class_with_a_rule_is_read_by_an_architecture():
    for name in {*image_rules.IMAGE_RULES, *sounds.SOUND_RULES, *videos.VIDEO_RULES} - {
        "PixtralForConditionalGeneration"
    }:
        find(ARCHITECTURES, name)


def test_tokens_of_images_come_on_top_of_the_text():
    text, both = serve(input_tokens=100, output_tokens=50), serve(input_tokens=100, output_tokens=50, images=3)
    assert value(both, "image_tokens") == 3 * 1369  # 1024 x 1024 is resized to 1036 x 1036: 37 x 37 groups of patches
    assert value(both, "input_tokens") == value(text, "input_tokens") == 100
    assert value(both, "context") == value(text, "context") + 3 * 1369
    assert both.serving.ttft_seconds.value > text.serving.ttft_seconds.value


def test_the_towers_time_is_a_part_of_the_prefill_with_its_flops():
    answer = serve(input_tokens=100, output_tokens=50, images=2)
    part = next(term for _, term in answer.serving.ttft_seconds.walk() if term.name == "image and audio encoder")
    assert part.value == pytest.approx(sum(child.value for child in part.children))
    # 676 million parameters of the tower, of which 631 in its layers, over 10,952 patches, and the core of attention
    assert part.children[0].method["parameters"]["flops"] == pytest.approx(1.55e13, rel=0.06)


def test_an_encoded_prefix_takes_no_time_of_the_tower():
    whole = serve(input_tokens=100, output_tokens=50, images=2)
    cached = serve(input_tokens=100, output_tokens=50, images=2, cached_tokens=2000)
    assert cached.serving.ttft_seconds.value < whole.serving.ttft_seconds.value


def test_large_images_of_many_requests_are_the_peak_of_the_activations():
    small, large = serve(images=1, image_size="560x560"), serve(model="gemma-3-27b-pt", images=1)
    names = {term.name for _, term in large.memory.walk()}
    assert "image encoder" in names
    assert "image encoder" in {term.name for _, term in small.memory.walk()}


def test_sounds_have_tokens_and_time():
    answer = serve("gemma-4-e4b-it", audio_seconds=10.0, input_tokens=20, output_tokens=20)
    assert value(answer, "audio_tokens") == 250


@pytest.mark.parametrize("size", ["0x10", "10x0", "1x100000", "1024", "axb", "1x1000"])
def test_a_size_that_no_image_has_is_refused(size):
    with pytest.raises(InvalidInput, match="image_size"):
        serve(images=1, image_size=size)


def test_models_without_towers_take_neither_images_nor_sounds():
    for options in ({"images": 1}, {"audio_seconds": 1.0}):
        with pytest.raises(InvalidInput, match=r"llama-3\.1-8b takes no"):
            serve("llama-3.1-8b", **options)


def test_a_family_without_a_described_rule_is_refused_by_name():
    with pytest.raises(MissingDatum, match=r"KimiK3ForConditionalGeneration.*Qwen2-VL"):
        serve("kimi-k3", on="64xh200", images=1)


def test_a_size_without_images_means_nothing():
    with pytest.raises(NotApplicable):
        serve(image_size="640x480")


def test_images_beyond_the_context_are_refused_with_the_number_that_fits():
    with pytest.raises(InvalidInput, match="Nearest: 93"):
        serve(images=200)


def test_vllm_profiles_with_images_of_this_size():
    limit = '--limit-mm-per-prompt \'{"image": {"count": 2, "width": 640, "height": 480}}\''
    assert limit in serve(images=2, image_size="640x480").serving.launch
    assert "'{\"image\": 2}'" in serve(images=2, engine_version="0.8.5").serving.launch


def test_the_note_on_towers_says_which_options_add_them():
    assert any("--images" in note or "images" in note for note in serve().warnings)
    assert not any("text alone" in note for note in serve(images=1).warnings)


def test_tokens_of_a_video_come_on_top_of_text_and_images():
    text = serve(input_tokens=100, output_tokens=50)
    both = serve(input_tokens=100, output_tokens=50, images=1, video_seconds=10, image_size="560x560")
    # 560 x 560 is 20 x 20 groups of patches, and two frames of the 20 are one
    assert value(both, "video_frames") == 20
    assert value(both, "video_tokens") == 10 * 400
    assert value(both, "image_tokens") == 400
    assert value(both, "context") == value(text, "context") + 11 * 400
    assert both.serving.ttft_seconds.value > text.serving.ttft_seconds.value
    assert "400 image and 4,000 video tokens" in text_of(both)


def test_more_frames_a_second_are_more_tokens_and_time():
    slow, fast = (serve("qwen3-vl-8b-instruct", video_seconds="30s", video_fps=fps) for fps in (0.5, 4))
    assert value(slow, "video_frames") == 15
    assert value(fast, "video_frames") == 120
    assert fast.serving.ttft_seconds.value > slow.serving.ttft_seconds.value


def test_frames_do_not_see_each_other_in_the_tower():
    # 40 pairs of frames of 1,600 patches: the products of as many patches of 40 images
    video = serve(video_seconds=40, image_size="560x560", input_tokens=8, output_tokens=8)
    images = serve(images=40, image_size="560x560", input_tokens=8, output_tokens=8)
    flops = [
        next(term for _, term in answer.serving.ttft_seconds.walk() if term.name == "image and audio encoder")
        .children[0]
        .method["parameters"]["flops"]
        for answer in (video, images)
    ]
    assert flops[0] == pytest.approx(flops[1])


def test_a_model_takes_video_and_sound_at_once():
    answer = serve("gemma-4-e4b-it", video_seconds=60, audio_seconds=30)
    assert value(answer, "audio_tokens") == 750
    assert value(answer, "video_frames") == 32
    assert "video and 750 audio tokens" in text_of(answer)


def test_models_without_video_are_refused_with_those_that_take_it():
    for name in ("llama-3.1-8b", "gemma-3-27b-pt"):
        with pytest.raises(InvalidInput, match=r"takes no video.*Qwen2-VL"):
            serve(name, video_seconds=10)
    with pytest.raises(MissingDatum, match=r"of a video is not described.*InternVL"):
        serve("kimi-k2.5", on="8xh200", video_seconds=10)


def test_frames_a_second_mean_nothing_without_a_video_or_where_they_are_fixed():
    with pytest.raises(NotApplicable, match="video_seconds"):
        serve(video_fps=2)
    with pytest.raises(InvalidInput, match="32 frames of every video"):
        serve("gemma-4-e4b-it", video_seconds=10, video_fps=1)


@pytest.mark.parametrize("options", [{"video_seconds": 0}, {"video_seconds": 10, "video_fps": 0}])
def test_a_video_of_no_length_or_rate_is_refused(options):
    with pytest.raises(InvalidInput, match="must be more than 0"):
        serve(**options)


def test_a_video_beyond_the_context_is_refused():
    with pytest.raises(InvalidInput, match=r"768 frames.*525,696 tokens.*128,000"):
        serve(video_seconds=600)


def test_engines_are_started_for_the_frames_of_the_video():
    launch = serve(video_seconds=60, image_size="640x480").serving.launch
    assert '"video": {"count": 1, "num_frames": 120, "width": 640, "height": 480}' in launch
    assert '--media-io-kwargs \'{"video": {"num_frames": 120}}\'' in launch
    assert "--limit-mm-data-per-request '{\"video\": 1}'" in serve(video_seconds=60, engine="sglang").serving.launch


def test_the_first_lines_name_sounds_of_models_that_answer():
    assert "text and 250 audio tokens in" in text_of(serve("gemma-4-e4b-it", audio_seconds=10))


def test_sglang_says_that_it_shrinks_large_frames():
    # sgl-project/sglang, python/sglang/srt/multimodal/processors/qwen_vl.py: VIDEO_MAX_PIXELS, 768 * 28 * 28
    large, small = (serve(video_seconds=10, engine="sglang", image_size=size) for size in ("1920x1080", "640x480"))
    assert any("602,112 pixels" in note for note in large.warnings)
    assert not any("602,112 pixels" in note for note in small.warnings)
