"""Reinforcement learning and preference training with images and videos: lengths, the tower in each phase, refusals."""

import pytest

import tonnage
from every_row import every_row
from tonnage.catalogue import cluster
from tonnage.estimate.inputs import Question
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.post_training.step import PostTrainingStep
from tonnage.estimate.step.method import images_flops
from tonnage.kernel.errors import InvalidInput, InvalidPlan, MissingDatum, NotApplicable
from tonnage.models import read

VLM = "qwen2.5-vl-7b-instruct"
PATCHES = 5476  # of a picture of 1024x1024: 74 x 74 of 14 pixels, four of which are a token
BASE = {
    "objective": "grpo",
    "recompute": "full",
    "prompt_length": 128,
    "max_completion_length": 512,
    "mean_completion_length": 256,
    "global_batch_size": 64,
}
PICTURE = {"images": 1, "image_size": "1024x1024"}


def train(model=VLM, on="8xh100", **options):
    asked = {name: value for name, value in {**BASE, **options}.items() if value is not None}
    return tonnage.train(model, on=on, advice=False, as_is=True, **asked)


def step(**options):
    machine, model = cluster("8xh100"), read(VLM)
    asked = {name: value for name, value in {**BASE, **options}.items() if value is not None}
    return PostTrainingStep(model, training_plan(model, machine, TrainingOptions(**asked), Question()), machine)


def value(answer, name):
    return answer.question[name].value


def test_tokens_of_images_come_on_top_of_the_text_of_a_prompt():
    answer = train(**PICTURE)
    assert value(answer, "image_tokens") == PATCHES // 4
    assert value(answer, "sequence_length") == 128 + PATCHES // 4 + 512
    assert value(answer, "prompt_length") == 128


def test_without_lengths_pictures_come_on_top_of_the_usual_sequence():
    answer = train(**PICTURE, prompt_length=None, max_completion_length=None, mean_completion_length=None)
    assert value(answer, "sequence_length") == 4096 + PATCHES // 4


def test_a_stated_sequence_leaves_the_rest_to_text():
    answer = train(**PICTURE, sequence_length=4096, prompt_length=None, max_completion_length=None)
    assert value(answer, "prompt_length") + value(answer, "max_completion_length") == 4096 - PATCHES // 4


def test_the_engine_sees_a_picture_once_for_all_completions_of_its_prompt():
    seen, text = step(**PICTURE).rollouts, step(prompt_length=128 + PATCHES // 4).rollouts
    encoding = seen.passes.encoding
    assert encoding is not None and text.passes.encoding is None
    # 64 rows are 8 prompts on 8 replicas: one prompt each, whose other completions are in the prefix cache
    more = float(seen.term.value) - float(text.term.value)
    assert more == pytest.approx(encoding.spent.seconds, rel=0.2)


def test_without_a_prefix_cache_every_completion_sees_its_picture():
    seen = step(**PICTURE, rollout_engine="hf").rollouts
    text = step(prompt_length=128 + PATCHES // 4, rollout_engine="hf").rollouts
    more = float(seen.term.value) - float(text.term.value)
    assert more == pytest.approx(8 * seen.passes.encoding.spent.seconds, rel=0.2)


def test_the_tower_runs_for_each_row_of_the_update():
    """TRL, grpo_trainer.py: pixel_values of every row; veRL: multi_modal_inputs of every row."""
    with_picture, text = step(**PICTURE), step(prompt_length=128 + PATCHES // 4)
    tower = with_picture.walk.tower
    assert tower is not None and text.walk.tower is None
    assert float(with_picture.training[-1].value) > float(text.training[-1].value)
    rows = images_flops(with_picture.model, with_picture.plan, 64)  # forward; backward is twice as much
    assert with_picture.flops - text.flops == pytest.approx(3 * rows.value)


def test_forward_passes_beside_the_policy_see_the_pictures_too():
    seen, text = (step(**options, beta=0.01) for options in (PICTURE, {"prompt_length": 128 + PATCHES // 4}))
    assert [str(part.name) for part in seen.passes] == [
        "log-probabilities of the policy",
        "forward pass, reference model",
    ]
    for one, other in zip(seen.passes, text.passes, strict=True):
        assert float(one.value) > 1.1 * float(other.value)


def test_a_frozen_tower_has_no_backward_and_keeps_pixels_alone():
    trained, frozen = train(**PICTURE), train(**PICTURE, vision_tower="frozen")
    assert frozen.needed_bytes < trained.needed_bytes
    assert frozen.step_time.value < trained.step_time.value


def test_chosen_and_rejected_have_the_pictures_of_their_prompt_each():
    """TRL, dpo_trainer.py: pixel_values of a batch stand twice, for chosen and rejected."""
    rows = {name: None for name in BASE if name not in ("objective", "recompute")}
    pair, single = (train(**PICTURE, **rows | {"objective": objective}) for objective in ("dpo", "sft"))

    def pixels(answer):
        return next(term.value for _, term in answer.memory.walk() if str(term.name) == "pixels")

    assert pixels(pair) == 2 * pixels(single) == 2 * PATCHES * 1176 * 4


@pytest.mark.parametrize("objective", ["dapo", "rloo", "ppo", "online-dpo"])
def test_every_objective_that_generates_takes_pictures(objective):
    seen, text = (train(**options, objective=objective) for options in (PICTURE, {"prompt_length": 128 + PATCHES // 4}))
    assert seen.step_time.value > text.step_time.value
    assert value(seen, "sequence_length") == value(text, "sequence_length")


def test_a_video_is_frames_by_the_processors_rule():
    answer = train(video_seconds="16s", video_fps=2, image_size="448x448")
    # 32 frames in pairs, each 16 x 16 tokens of four patches of 14 pixels
    assert (value(answer, "video_frames"), value(answer, "video_tokens")) == (32, 16 * 16 * 16)
    assert value(answer, "sequence_length") == 128 + 4096 + 512
    assert "4,096 video tokens a sequence, vision tower trained" in " ".join(str(answer).split())


def test_a_video_of_a_sequence_that_is_trained_on_is_among_its_tokens():
    asked = {"advice": False, "as_is": True, "video_seconds": 16, "image_size": "448x448"}
    answer = tonnage.train(VLM, on="8xh100", sequence_length=8192, **asked)
    assert (value(answer, "sequence_length"), value(answer, "video_tokens")) == (8192, 4096)
    with pytest.raises(InvalidPlan, match="32 frames of a video take 4,096 tokens"):
        tonnage.train(VLM, on="8xh100", sequence_length=4096, **asked)


def test_images_that_leave_no_text_name_the_shortest_sequence_that_holds_them():
    asked = {"on": "8xh100", "images": 4, "advice": False, "as_is": True}
    with pytest.raises(InvalidPlan, match="Nearest: 1, or a longer sequence_length, from 10,249 on"):
        tonnage.train("internvl3-8b", **asked)
    assert tonnage.train("internvl3-8b", **asked, sequence_length=10_249).question["images"].value == 4


@every_row(
    "options, error, words",
    [
        ({"images": 1, "video_seconds": 5}, InvalidPlan, "leave one out"),
        ({"video_fps": 2.0}, NotApplicable, "is of video_seconds"),
        ({"image_size": "512x512"}, NotApplicable, "is of images and video_seconds"),
        ({"video_seconds": 5, "video_fps": 100.0}, InvalidInput, "at most 60"),
        ({**PICTURE, "sequence_length": 1370, "max_completion_length": None}, InvalidPlan, "leave no text"),
        ({**PICTURE, "objective": "gkd", "teacher": VLM}, InvalidPlan, "are estimated with"),
        ({**PICTURE, "model": "llama-3.2-11b-vision-instruct"}, MissingDatum, "not estimated"),
        ({"video_seconds": 5, "model": "qwen2.5-7b"}, InvalidInput, "takes no video"),
    ],
)
def test_what_holds_no_room_or_no_tower_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        train(**options)


def test_the_search_keeps_the_pictures():
    found = tonnage.plan_training(VLM, "8xh100", **BASE, **PICTURE, top=1)
    assert found.plans[0].answer.question["image_tokens"].value == PATCHES // 4


def test_frames_are_shrunk_and_counted_as_llama_factory_does():
    """LLaMA-Factory, hparams/model_args.py: video_max_pixels 256 * 256, video_fps 2.0, video_maxlen 128."""
    asked = {"runtime": "llama-factory", "advice": False, "as_is": True, "sequence_length": 16384}
    answer = tonnage.train(VLM, on="8xh100", video_seconds="300s", **asked)
    assert (value(answer, "image_size"), value(answer, "video_frames")) == ("256x256", 128)
    assert value(tonnage.train(VLM, on="8xh100", video_seconds="8s", **asked), "video_frames") == 16


def test_larger_pictures_are_shrunk_as_easyr1_does():
    """EasyR1, examples/config.yaml: max_pixels 4194304."""
    assert value(train(images=1, image_size="4000x3000", runtime="easyr1"), "image_size") == "2364x1773"
