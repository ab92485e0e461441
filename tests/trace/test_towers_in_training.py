"""What layers of a vision tower keep for backward, against the real classes of transformers on a CPU."""

import pytest
from msgspec.structs import replace

from tonnage.estimate.memory import training_memory
from tonnage.models import read
from tonnage.spec import TrainingPlan, Vision

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


def saved_bytes(model, *inputs) -> int:
    """Bytes of what autograd saves in a forward pass, without parameters; storages are counted once."""
    parameters = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor) or tensor, lambda tensor: tensor):
        output = model(*inputs)
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in kept}
    assert output is not None
    return sum(size for pointer, size in storages.items() if pointer not in parameters)


def qwen3_vl(config, depth: int) -> int:
    from transformers.models.qwen3_vl.configuration_qwen3_vl import Qwen3VLVisionConfig
    from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLVisionModel

    own = Qwen3VLVisionConfig(**config | {"depth": depth, "deepstack_visual_indexes": []})
    own._attn_implementation = "sdpa"
    tower = Qwen3VLVisionModel(own).to(torch.bfloat16)
    return saved_bytes(tower, torch.randn(256, 3 * 2 * 16 * 16, dtype=torch.bfloat16), torch.tensor([[1, 16, 16]]))


def of_one_size(name: str):
    def run(config, depth: int) -> int:
        kept = {key: value for key, value in config.items() if key not in ("model_type", "vision_use_head")}
        own = getattr(transformers, f"{name}VisionConfig")(**kept | {"num_hidden_layers": depth})
        own._attn_implementation = "sdpa"
        tower = getattr(transformers, f"{name}VisionModel")(own).to(torch.bfloat16)
        return saved_bytes(tower, torch.randn(1, 3, config["image_size"], config["image_size"], dtype=torch.bfloat16))

    return run


@pytest.mark.parametrize(
    ("name", "run", "patches", "within"),
    [
        ("qwen3-vl-8b-instruct", qwen3_vl, 256, 0.001),
        ("llava-1.5-7b-hf", of_one_size("CLIP"), 577, 0.03),
        ("gemma-3-4b-pt", of_one_size("Siglip"), 4096, 0.03),
    ],
)
def test_a_layer_of_a_tower_keeps_what_autograd_saves(name, run, patches, within):
    asked = read(name)
    plan = TrainingPlan.of_fields(
        sequence_length=8192,
        runtime="transformers",
        model_code="transformers",
        zero_stage=0,
        precision="bf16",
        attention="sdpa",
        vision=Vision(images=1, image_tokens=64, image_sequences=1, image_patches=patches, image_rows=patches // 4),
    )
    tower = training_memory(asked, plan).step.tower
    (block,) = tower.layers
    config = asked.config["vision_config"]
    one = run(config, 2) - run(config, 1)
    assert tower.kept[block].value == pytest.approx(one, rel=within)


def test_two_sequences_of_patches_keep_twice_as_much():
    asked = read("qwen2.5-vl-7b-instruct")
    vision = Vision(images=1, image_tokens=64, image_sequences=1, image_patches=1024, image_rows=256)
    plan = TrainingPlan.of_fields(sequence_length=4096, vision=vision)
    twice = replace(plan, vision=replace(vision, image_sequences=2, image_rows=512))
    one, two = (training_memory(asked, each).step.tower for each in (plan, twice))
    for before, after in zip(one.kept.values(), two.kept.values(), strict=True):
        assert after.value == 2 * before.value
