"""The catalogue against the real classes of transformers, built from the same fields on the meta device."""

import pytest
from transformers import CONFIG_MAPPING

from every_row import every_row
from oracles.transformers_count import count, known
from tonnage.architectures import build
from tonnage.catalogue import toml_files
from tonnage.catalogue.models import ModelFile, load

# Classes that live in the model's own repository, not in transformers 5.23.
ELSEWHERE = {
    "ArcticForCausalLM",
    "BaiChuanForCausalLM",
    "BaichuanForCausalLM",
    "BailingMoeForCausalLM",
    "BailingMoeV2ForCausalLM",
    "ChatGLMModel",
    "DeciLMForCausalLM",
    "DeepseekForCausalLM",
    "DeepseekVLV2ForCausalLM",
    "DreamModel",
    "GenericDecoder",
    "Grok1ForCausalLM",
    "Grok1ModelForCausalLM",
    "InternLM2ForCausalLM",
    "InternLMForCausalLM",
    "InternLM3ForCausalLM",
    "KimiK25ForConditionalGeneration",
    "KimiK3ForConditionalGeneration",
    "KimiVLForConditionalGeneration",
    "LLaDA2MoeModelLM",
    "LLaDAModelLM",
    "MPTForCausalLM",
    "MiMoForCausalLM",
    "MiniCPMForCausalLM",
    "MiniCPMV",
    "MistralLarge3ForCausalLM",
    "MolmoForCausalLM",
    "MoonshotKimiaForCausalLM",
    "Phi3VForCausalLM",
    "Phi4MMForCausalLM",
    "QWenLMHeadModel",
    "Step3p5ForCausalLM",
    "Step3p7FlashForCausalLM",
    "UltravoxModel",
}
# Its vision tower needs timm and pillow.
NEEDS_TIMM = {"Gemma3nForConditionalGeneration"}
# transformers 5.23 allocates rows for the 256 experts that do nothing; the released files have none.
ZERO_EXPERTS = {"LongcatFlashForCausalLM"}
# transformers 5.23 ties the head of T5 1.1 and mT5; the released files have one of its own.
UNTIED = {"T5ForConditionalGeneration", "MT5ForConditionalGeneration"}
# No window is known of these: their sources print widths, layers, heads and context alone, and the class has a default
# of 4096.
UNSAID = {
    "bge-en-icl",
    "codestral-22b-v0.1",
    "devstral-small-2505",
    "ministral-8b-instruct-2410",
    "mistral-7b-instruct-v0.2",
    "mistral-large-instruct-2407",
    "mistral-large-instruct-2411",
    "mistral-nemo-minitron-8b-base",
    "mistral-small-24b-instruct-2501",
}


def entries() -> dict[str, ModelFile]:
    return {name: load(toml_files.HERE / "models" / f"{name}.toml") for name in toml_files.names("models")}


def of_class(form: ModelFile) -> str:
    return form.config["architectures"][0]


def own_head(form: ModelFile) -> bool:
    return of_class(form) in UNTIED and not form.config["tie_word_embeddings"]


ALL = entries()
APART = ELSEWHERE | NEEDS_TIMM | ZERO_EXPERTS
COMPARED = [name for name, form in ALL.items() if of_class(form) not in APART and not own_head(form)]


def oracle(form: ModelFile) -> int:
    """Of the thinker alone, where a model speaks too: it is what is counted of it."""
    return count(dict(form.config.get("thinker_config") or form.config))


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


def defaults(kind: str) -> dict[str, int | float]:
    """The numbers that a class of transformers takes for fields which a config.json may also give as null."""
    found = CONFIG_MAPPING[kind]
    hints = {name: str(hint) for base in found.__mro__ for name, hint in vars(base).get("__annotations__", {}).items()}
    values = {name: getattr(found, name, None) for name, hint in hints.items() if "None" in hint}
    return {
        name: value for name, value in values.items() if isinstance(value, int | float) and not isinstance(value, bool)
    }


def blocks_of(fields: dict) -> str:
    return repr([branch.blocks for branch in build(fields, "a model").branches])


@every_row(
    "name", [name for name, form in ALL.items() if form.config.get("model_type") in CONFIG_MAPPING], at_least=350
)
def test_what_an_entry_leaves_out_means_the_same_as_its_class_takes_it_for(name):
    fields = ALL[name].config
    own = blocks_of(fields)
    others = {field: value for field, value in defaults(fields["model_type"]).items() if field not in fields}
    changing = [field for field, value in others.items() if blocks_of({**fields, field: value}) != own]
    assert changing == (["sliding_window"] if name in UNSAID else [])


@pytest.mark.parametrize("name", sorted(ELSEWHERE))
def test_a_class_that_is_left_out_is_not_in_transformers(name):
    assert not known({"architectures": [name]})
