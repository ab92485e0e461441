"""Images in the sequences of a training run: tokens, the vision tower's memory, FLOPs and time, and what is refused."""

import pytest

import tonnage
from tonnage.estimate.memory import training_memory
from tonnage.kernel.errors import InvalidInput, InvalidPlan, MissingDatum, NotApplicable
from tonnage.models import read
from tonnage.spec import TrainingPlan, Vision

VLM = "qwen2.5-vl-7b-instruct"
TOWER = 676_550_144  # parameters of the tower and its merger: tonnage models qwen2.5-vl-7b-instruct


def train(model=VLM, on="8xh100", **options):
    return tonnage.train(model, on=on, advice=False, as_is=True, **options)


def value(answer, name):
    return answer.question[name].value


def terms(answer, name):
    return [term for _, term in answer.memory.walk() if str(term.name) == name]


def test_tokens_of_images_are_among_those_of_the_sequence():
    answer = train(images=2, image_size="1024x768")
    # 1036 x 756 is 37 x 27 groups of four patches
    assert value(answer, "image_tokens") == 2 * 37 * 27
    assert value(answer, "sequence_length") == 4096
    assert "1,998 image tokens a sequence, vision tower trained" in " ".join(str(answer).split())


def test_a_trained_tower_multiplies_three_times_as_much_as_it_does_to_serve():
    served = tonnage.serve(VLM, on="h100", advice=False, images=2, input_tokens=8, output_tokens=8)
    part = next(term for _, term in served.serving.ttft_seconds.walk() if term.name == "image and audio encoder")
    forward = part.children[0].method["parameters"]["flops"]
    for state, passes in (("trained", 3), ("frozen", 1)):
        flops = train(images=2, vision_tower=state).flops
        tower = next(term for term in flops.children if term.name == "vision tower")
        assert tower.value == pytest.approx(passes * 8 * forward, rel=1e-9)  # a sequence on each of eight GPUs


def test_a_frozen_tower_has_no_gradients_and_no_states():
    trained, frozen = (train(vision_tower=state, runtime="ddp") for state in ("trained", "frozen"))
    for name, width in (("optimizer", 8), ("gradients", 4)):
        before, after = (
            next(term for _, term in phase.walk() if term.name == name)
            for phase in (
                next(phase for phase in answer.phases if phase.name == "optimizer step") for answer in (trained, frozen)
            )
        )
        assert before.value - after.value == width * TOWER
    assert next(iter(terms(frozen, "frozen vision tower"))).value > 0


def test_a_frozen_tower_keeps_pixels_alone_and_takes_less_time():
    trained, frozen = (train(images=2, vision_tower=state) for state in ("trained", "frozen"))
    assert terms(trained, "windowed vision layers")
    assert not terms(frozen, "windowed vision layers")
    # 2 x 5,476 patches of 3 x 2 x 14 x 14 numbers in fp32
    assert terms(frozen, "pixels")[0].value == 2 * 5476 * 1176 * 4
    assert frozen.step_time.value < trained.step_time.value
    assert frozen.needed_bytes < trained.needed_bytes


def test_adapters_leave_the_tower_frozen():
    answer = train(images=1, method="lora", on="h100")
    assert value(answer, "vision_tower") == "frozen"
    assert not terms(answer, "windowed vision layers")
    with pytest.raises(InvalidPlan, match="vision_tower"):
        train(images=1, method="lora", vision_tower="trained")


@pytest.mark.parametrize("tool", ["llama-factory", "ms-swift"])
def test_tools_freeze_the_tower_as_they_do(tool):
    # LLaMA-Factory, hparams/finetuning_args.py: freeze_vision_tower; ms-swift, tuner_args.py: freeze_vit
    assert value(train(images=1, runtime=tool), "vision_tower") == "frozen"
    assert value(train(images=1, runtime=tool, vision_tower="trained"), "vision_tower") == "trained"


def test_twice_the_images_keep_twice_as_much():
    one, two = (terms(train(images=count), "vision tower")[0].value for count in (1, 2))
    assert two == pytest.approx(2 * one)


def test_the_tower_is_on_the_first_stage_alone():
    vision = Vision(images=1, image_tokens=256, image_sequences=1, image_patches=1024, image_rows=256)
    plan = TrainingPlan.of_fields(
        sequence_length=4096, pipeline_parallel_size=2, num_microbatches=4, zero_stage=1, runtime="megatron"
    )
    model = read(VLM)
    without, images = training_memory(model, plan), training_memory(model, plan.with_fields(vision=vision))
    assert images.ranks[0].needed > without.ranks[0].needed
    assert images.ranks[1].needed == without.ranks[1].needed


def test_a_search_estimates_what_train_answers():
    options = {"images": 2, "image_size": "1024x768", "sequence_length": 4096, "global_batch_size": 8}
    row = tonnage.plan_training(VLM, "8xh100", runtime="fsdp2", top=1, **options).to_dict()["plans"][0]
    again = tonnage.train(VLM, row["on"], **row["options"])
    assert value(again, "images") == 2
    assert (again.needed_bytes, again.step_time.value) == (row["needed_bytes"], pytest.approx(row["step_seconds"]))


def test_images_that_leave_no_text_are_refused_with_the_number_that_fits():
    with pytest.raises(InvalidPlan, match=r"3 images of 1,369 tokens.*Nearest: 2"):
        train(images=3)


def test_the_longest_sequence_begins_beyond_its_images():
    found = tonnage.maximum("sequence_length", VLM, on="8xh100", images=2)
    assert found.value > 2 * 1369


def test_what_is_not_estimated_is_refused():
    with pytest.raises(InvalidInput, match="takes no images"):
        train("llama-3.1-8b", images=1)
    with pytest.raises(MissingDatum, match="layers of its own"):
        train("llama-3.2-11b-vision-instruct", images=1)
    with pytest.raises(MissingDatum, match="tower of convolutions"):
        train("gemma-3n-e4b", images=1)
    with pytest.raises(InvalidPlan, match="objective sft, dpo"):
        train(images=1, objective="contrastive")
    with pytest.raises(NotApplicable, match="image_size"):
        train(image_size="640x480")
    with pytest.raises(InvalidPlan, match="trained or frozen"):
        train(vision_tower="none")


def test_llama_factory_shrinks_images_before_the_processor():
    # LLaMA-Factory, hparams/model_args.py: image_max_pixels 768 * 768; 1024 x 1024 becomes 768 x 768, 27 x 27 groups
    large, small = (train(images=1, runtime="llama-factory", image_size=size) for size in ("1024x1024", "560x560"))
    assert value(large, "image_tokens") == 27 * 27
    assert any("589,824 pixels at most: they are of 768x768" in note for note in large.warnings)
    assert value(small, "image_tokens") == 20 * 20
