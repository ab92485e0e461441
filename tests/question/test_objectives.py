"""Training with other models beside: reference, reward model, critic, teacher; an engine that generates."""

import json

import pytest

import tonnage
from tonnage.kernel.errors import InvalidPlan
from tonnage.models import read

GIB = 2**30
N = read("llama-3.2-1b").num_parameters()


def parts(**said):
    answer = tonnage.train("llama-3.2-1b", on="H200-SXM-141GB", sequence_length=1024, precision="bf16", **said)
    return {child.name: child for child in answer.memory.children}


def names(term):
    return [child.name for child in term.children]


def test_preference_training_holds_a_reference_and_takes_pairs():
    plain, pairs = parts(), parts(objective="dpo")
    assert "reference model" in names(pairs["weights"])
    assert pairs["weights"].value == plain["weights"].value + 2 * N
    rows = parts(objective="grpo", micro_batch_size=2)  # whose loss is as a preference's
    assert pairs["activations"].value == pytest.approx(rows["activations"].value)


def test_adapters_that_are_switched_off_are_their_own_reference():
    assert "reference model" not in names(parts(objective="dpo", method="lora")["weights"])


def test_a_critic_is_trained_beside_the_policy():
    plain, ppo = parts(), parts(objective="ppo")
    assert names(ppo["weights"])[-3:] == ["reference model", "reward model", "critic"]
    assert ppo["optimizer"].value == 2 * plain["optimizer"].value


def test_a_teacher_stands_beside_the_student():
    teacher = read("llama-3.1-8b").num_parameters()
    made = parts(objective="distillation", teacher="llama-3.1-8b")
    assert made["weights"].value == parts()["weights"].value + 2 * teacher


def test_a_teacher_of_gkd_stands_beside_the_student_and_both_logits_are_held():
    teacher = read("llama-3.1-8b").num_parameters()
    tiled, whole = (parts(objective="gkd", teacher="llama-3.1-8b", loss=loss) for loss in ("tiled", None))
    assert tiled["weights"].value == whole["weights"].value == parts()["weights"].value + 2 * teacher
    assert whole["activations"].value > 10 * tiled["activations"].value


def test_an_engine_that_generates_takes_its_share_of_the_memory():
    without, made = parts(objective="grpo"), parts(objective="grpo", engine_memory_share=0.3)
    usable = tonnage.train("llama-3.2-1b", on="H200-SXM-141GB").usable_bytes
    assert made["runtime overhead"].value - without["runtime overhead"].value == pytest.approx(0.3 * usable)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"method": "grpo"}, "grpo is an objective: give objective grpo."),
        ({"objective": "lora"}, "lora is a method: give method lora."),
        ({"objective": "distillation"}, "needs a teacher"),
        ({"objective": "dpo", "teacher": "llama-3.1-8b"}, "belongs to objectives distillation, gkd"),
        ({"engine_memory_share": 0.3}, "objectives that generate"),
        ({"objective": "grpo", "engine_memory_share": 1.5}, "below 1"),
        ({"objective": "distillation", "teacher": "no-such-model"}, "teacher: "),
    ],
)
def test_what_does_not_go_together_is_refused(said, words):
    with pytest.raises(InvalidPlan, match=words):
        parts(**said)


@pytest.mark.parametrize("objective", ["dpo", "grpo", "ppo", "distillation"])
@pytest.mark.parametrize(
    ("model", "words"), [("bert-base-uncased", "which only encodes"), ("t5-small", "an encoder with a decoder")]
)
def test_only_a_language_model_of_decoders_has_an_objective_of_its_own(objective, model, words):
    said = {"teacher": model} if objective == "distillation" else {}
    with pytest.raises(InvalidPlan, match=f"objective {objective} trains a language model.* Got {model}, {words}"):
        tonnage.train(model, on="H200-SXM-141GB", objective=objective, sequence_length=512, **said)


def test_a_model_without_a_head_has_no_next_token(tmp_path):
    config = {
        "model_type": "llama",
        "architectures": ["LlamaModel"],
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "vocab_size": 1000,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(InvalidPlan, match=r"objective grpo .* no head over its vocabulary"):
        tonnage.train(str(tmp_path), on="H200-SXM-141GB", objective="grpo", sequence_length=512)


@pytest.mark.parametrize(
    ("teacher", "words"),
    [
        ("qwen2.5-0.5b", "teacher qwen2.5-0.5b has 151,936 tokens, llama-3.2-1b has 128,256"),
        ("bert-base-uncased", "which only encodes, with a vocabulary of 30,522 beside the 128,256 of llama-3.2-1b"),
    ],
)
def test_a_teacher_speaks_the_student_s_vocabulary(teacher, words):
    with pytest.raises(InvalidPlan, match=words):
        parts(objective="distillation", teacher=teacher)


def test_what_grpo_assumes_is_said():
    question = tonnage.train("llama-3.2-1b", on="H200-SXM-141GB", objective="grpo").question
    assert question["models_beside"].value == "none" and "beta is 0.0" in question["models_beside"].why
    assert question["num_generations"].value == 8
    assert question["engine_memory_share"].value == 0 and "0.3" in question["engine_memory_share"].why


def test_adapters_that_are_the_reference_are_said_to_be():
    question = tonnage.train("llama-3.2-1b", on="H200-SXM-141GB", objective="dpo", method="lora").question
    assert "without its adapters" in question["models_beside"].why


def test_unsloth_trains_one_model_on_its_own():
    with pytest.raises(InvalidPlan, match="must be sft"):
        tonnage.train("llama-3.1-8b", on="H200-SXM-141GB", runtime="unsloth", objective="dpo")
