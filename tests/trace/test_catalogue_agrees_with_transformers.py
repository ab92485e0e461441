"""The catalogue against the real classes of transformers, built from the same fields on the meta device."""

import pytest

from oracles.transformers_count import count, known
from tonnage.architectures import build
from tonnage.catalogue import _files
from tonnage.catalogue.models import ModelFile, load

# Classes that live in the model's own repository, not in transformers 5.23.
ELSEWHERE = {
    "ArcticForCausalLM", "BaiChuanForCausalLM", "BaichuanForCausalLM", "ChatGLMModel", "DeciLMForCausalLM", "DeepseekForCausalLM",
    "Grok1ModelForCausalLM", "InternLM2ForCausalLM", "InternLM3ForCausalLM", "KimiK25ForConditionalGeneration",
    "KimiK3ForConditionalGeneration", "MPTForCausalLM", "MiMoForCausalLM", "QWenLMHeadModel", "Step3p7FlashForCausalLM",
}  # fmt: skip
# Its vision tower needs timm and pillow.
NEEDS_TIMM = {"Gemma3nForConditionalGeneration"}
# transformers 5.23 allocates rows for the 256 experts that do nothing; the released files have none.
ZERO_EXPERTS = {"LongcatFlashForCausalLM"}
# transformers 5.23 ties the head of T5 1.1 and mT5; the released files have one of its own.
UNTIED = {"T5ForConditionalGeneration", "MT5ForConditionalGeneration"}
# What a config.json says by null, which TOML cannot hold, and where the class has another default.
NULLS = {"deepseek_v2": "q_lora_rank", "deepseek_v3": "q_lora_rank", "kimi_k2": "q_lora_rank"}


def entries() -> dict[str, ModelFile]:
    return {name: load(_files.HERE / "models" / f"{name}.toml") for name in _files.names("models")}


def of_class(form: ModelFile) -> str:
    return form.config["architectures"][0]


def own_head(form: ModelFile) -> bool:
    return of_class(form) in UNTIED and not form.config["tie_word_embeddings"]


ALL = entries()
APART = ELSEWHERE | NEEDS_TIMM | ZERO_EXPERTS
COMPARED = [name for name, form in ALL.items() if of_class(form) not in APART and not own_head(form)]


def oracle(form: ModelFile) -> int:
    fields = dict(form.config)
    if null := NULLS.get(fields["model_type"]):
        fields.setdefault(null, None)
    return count(fields)


@pytest.mark.parametrize("name", COMPARED)
def test_a_model_has_as_many_parameters_as_its_class_in_transformers(name):
    assert build(ALL[name].config, name).num_parameters() == oracle(ALL[name])


@pytest.mark.parametrize("name", [name for name, form in ALL.items() if own_head(form)])
def test_a_t5_with_a_head_of_its_own_has_that_more_than_the_class_in_transformers(name):
    form = ALL[name]
    head = form.config["vocab_size"] * form.config["d_model"]
    assert build(form.config, name).num_parameters() == oracle(form) + head


def test_the_comparison_covers_40_models_of_25_classes():
    assert len(COMPARED) >= 40
    assert len({of_class(ALL[name]) for name in COMPARED}) >= 25


@pytest.mark.parametrize("name", sorted(ELSEWHERE))
def test_a_class_that_is_left_out_is_not_in_transformers(name):
    assert not known({"architectures": [name]})
