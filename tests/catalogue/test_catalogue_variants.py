"""Another checkpoint of a file's shape is answered with its own fields, under its own name."""

import json
import re
from datetime import date
from pathlib import Path

import pytest

from every_row import every_row
from tonnage import catalogue
from tonnage.architectures import build
from tonnage.catalogue import toml_files
from tonnage.catalogue.models import load, model_file
from tonnage.cli import main
from tonnage.estimate.serving.weights.storage import storage, stored_bytes
from tonnage.kernel.errors import InvalidInput, UnknownName
from tonnage.kernel.units import GB
from tonnage.models import read

FOLDER = toml_files.HERE / "models"
NAMES = toml_files.names("models")
VARIANTS = [(name, variant) for name in NAMES for variant in load(FOLDER / f"{name}.toml").variants]
SIZES = {"vocab_size"}  # fields of which the number of parameters depends
OTHER_PRECISION = re.compile(
    r"(?<![a-z0-9])(fp8|fp4|nvfp4|mxfp4|int4|int8|awq|gptq|gguf|bnb|qat|w4a16|w8a8|w8a16|4bit|8bit|mlx|exl2)(?![a-z0-9])"
)


def names_of(name: str, variant: str) -> list[str]:
    """Every alias that means this variant."""
    form = load(FOLDER / f"{name}.toml")
    also = form.variants[variant].also
    return [alias for alias in form.aliases if alias in also or alias.rpartition("/")[2] == variant]


def put(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


@every_row(("name", "variant"), VARIANTS, at_least=46)
def test_every_name_of_a_variant_is_answered_with_its_own_fields_and_the_rest_of_the_file(name, variant):
    form = load(FOLDER / f"{name}.toml")
    own = form.variants[variant]
    names = names_of(name, variant)
    assert variant in names
    for asked in names:
        model = read(asked, offline=True)
        assert model.name == variant and model.source == f"catalogue entry {name}, variant {variant}"
        for field, value in own.config.items():
            found = model.config[field]
            assert value.items() <= found.items() if isinstance(value, dict) else found == value, field
        for field, value in form.config.items():
            assert field in own.config or model.config[field] == value, field
        if "max_position_embeddings" in own.config:
            assert model.context == own.config["max_position_embeddings"]


@every_row(("name", "variant"), VARIANTS, at_least=46)
def test_a_variant_has_a_source_and_a_date_and_counts_what_was_published_for_it(name, variant):
    form = load(FOLDER / f"{name}.toml")
    own = form.variants[variant]
    assert len(own.source) > 10 and date.fromisoformat(own.as_of) >= date(2017, 6, 1)
    assert own.hub.lower().replace("_", "-").rpartition("/")[2] == variant
    count = build(model_file(variant).config, variant).num_parameters()
    if SIZES & own.config.keys():
        assert [published.parameters for published in own.published] == [count]
    else:
        assert count == build(form.config, name).num_parameters()


def test_an_instruct_model_has_the_context_of_its_own_config_and_the_base_model_keeps_its_own():
    contexts = {
        "qwen2.5-7b": 131_072,
        "qwen2.5-7b-instruct": 32_768,
        "Qwen/Qwen2.5-7B-Instruct": 32_768,
        "qwen2.5:7b": 32_768,
        "qwen2.5-coder-32b-instruct": 32_768,
        "qwen2.5-math-7b": 4096,
        "qwen2-72b-instruct": 32_768,
        "qwen3-8b": 40_960,
        "qwen3-8b-base": 32_768,
        "Qwen/Qwen3-30B-A3B-Base": 32_768,
        "qwq-32b-preview": 32_768,
        "deepseek-r1-0528-qwen3-8b": 131_072,
        "nemotron-h-8b-reasoning-128k": 131_072,
        "glm-4-9b": 8192,
        "mistral-7b-instruct-v0.1": 32_768,
        "phi-3-mini-128k-instruct": 131_072,
        "llama-3-8b-instruct": 8192,
    }
    assert {name: read(name, offline=True).context for name in contexts} == contexts


@every_row("name", NAMES, at_least=380)
def test_no_alias_has_a_word_of_another_precision(name):
    form = load(FOLDER / f"{name}.toml")
    for alias in form.aliases:
        assert set(OTHER_PRECISION.findall(alias)) <= set(OTHER_PRECISION.findall(name)), alias


def test_the_pattern_of_precisions_finds_them_in_names():
    for alias in ("qwen/qwen3-8b-fp8", "x-awq", "nvidia/deepseek-r1-0528-nvfp4", "gemma-3-4b-it-qat", "m:7b-int4"):
        assert OTHER_PRECISION.search(alias), alias
    assert not OTHER_PRECISION.search("qwen1.5-14b-chat")


def test_a_checkpoint_that_was_released_quantised_is_answered_with_its_own_layout_and_its_sibling_with_another():
    stored = {
        "moonshotai/Kimi-K2-Thinking": "int4-32g",
        "moonshotai/Kimi-K2-Instruct-0905": "fp8-block",
        "ministral-3-8b": "fp8-e4m3",
        "ministral-3-8b-base-2512": "bf16",
        "ministral-3-14b-reasoning-2512": "bf16",
        "mistralai/Ministral-3-3B-Instruct-2512": "fp8-e4m3",
        "ministral-3-3b-base-2512": "bf16",
        "deepseek-v4-flash": "fp8-block+mxfp4",
        "deepseek-ai/DeepSeek-V4-Flash-Base": "fp8-block",
        "gpt-oss-20b": "mxfp4",
    }
    assert {name: storage(read(name, offline=True), None).name for name in stored} == stored


def test_kimi_k2_thinking_takes_the_594_gb_of_its_repository():
    assert stored_bytes(read("kimi-k2-thinking")) / GB == pytest.approx(594, abs=3)


def test_a_name_whose_layout_nobody_published_is_refused_with_the_name_of_its_sibling():
    with pytest.raises(UnknownName, match="nvidia-nemotron-3-super-120b-a12b-bf16"):
        read("nvidia-nemotron-3-super-120b-a12b-fp8", offline=True)


def test_a_name_whose_context_nobody_published_is_refused_with_names_that_are_known():
    with pytest.raises(UnknownName, match=re.escape("qwen2.5-math-7b")):
        read("qwen2.5-math-72b", offline=True)


def test_the_names_of_a_variant_are_not_shown_as_names_of_its_file(capsys):
    shown = {}
    for name in ("qwen2.5-7b", "qwen2.5-7b-instruct"):
        assert main(["models", name, "--json"]) == 0
        shown[name] = json.loads(capsys.readouterr().out)
    base, instruct = shown.values()
    assert (base["name"], base["hub"], base["context"]) == ("qwen2.5-7b", "Qwen/Qwen2.5-7B", 131_072)
    assert (instruct["name"], instruct["hub"], instruct["context"]) == (
        "qwen2.5-7b-instruct",
        "Qwen/Qwen2.5-7B-Instruct",
        32_768,
    )
    assert "qwen2.5:7b" in instruct["aliases"] and not set(base["aliases"]) & set(instruct["aliases"])
    assert "llmfit" in instruct["sources"]["variant"]["source"]


MINE = """
name = "mine"
aliases = ["mine-chat", "me/mine-chat", "chatty"]
[config]
architectures = ["LlamaForCausalLM"]
hidden_size = 64
text_config = { a = 1, b = 2 }
quantization_config = { quant_method = "fp8", fmt = "e4m3" }
"""
VARIANT = '[variants.mine-chat]\nsource = "me"\nas_of = "2026-11-21"\n'


def test_a_section_keeps_the_fields_that_a_variant_does_not_name_and_quantization_is_taken_whole(tmp_path):
    given = 'config = { text_config = { b = 3 }, quantization_config = { quant_method = "awq" } }'
    form = catalogue.models.named(load(put(tmp_path, f"{MINE}{VARIANT}also = ['chatty']\n{given}")), "chatty")
    assert form.config["text_config"] == {"a": 1, "b": 3}
    assert form.config["quantization_config"] == {"quant_method": "awq"}
    assert form.config["hidden_size"] == 64 and form.name == "mine-chat"


@pytest.mark.parametrize(
    ("variant", "says"),
    [
        (VARIANT + "config = {}", "names the fields that differ"),
        (VARIANT + "config = { hidden_size = 64 }", "hidden_size is what the file says already: 64"),
        (VARIANT + "config = { text_config = { a = 1 } }", "text_config.a is what the file says already"),
        (VARIANT.replace("mine-chat", "theirs") + "config = { hidden_size = 1 }", "must be one of mine-chat"),
        (VARIANT + "also = ['theirs']\nconfig = { hidden_size = 1 }", "must be one of mine-chat"),
        (VARIANT.replace("2026-11-21", "yesterday") + "config = { hidden_size = 1 }", "must be a date"),
        (VARIANT.replace('"me"', '" "') + "config = { hidden_size = 1 }", "source is empty"),
        (VARIANT.replace('source = "me"\n', "") + "config = { hidden_size = 1 }", "`source`"),
        (VARIANT + "config = { hidden_size = 1 }\ncontext = 2", "`context`"),
    ],
)
def test_a_variant_that_says_nothing_new_or_names_no_alias_is_refused(tmp_path, variant, says):
    with pytest.raises(InvalidInput, match=re.escape(says)):
        load(put(tmp_path, MINE + variant))


def test_a_short_name_starts_the_checkpoint_of_the_model_that_answers():
    assert read("qwen2-audio-7b").place == "Qwen/Qwen2-Audio-7B-Instruct"
    assert read("qwen2-vl-7b").place == "Qwen/Qwen2-VL-7B-Instruct"
    assert read("llama-3.1-8b-instruct").place == "meta-llama/llama-3.1-8b-instruct"  # an alias of its own
