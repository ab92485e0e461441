"""Registries refuse duplicates and suggest names."""

import random
import string

import pytest

from every_row import every_row
from tonnage.catalogue import accelerator_names, model_names, node_names, toml_files
from tonnage.cli import VERBS
from tonnage.kernel.errors import UnknownName
from tonnage.kernel.formula import FORMULAS
from tonnage.kernel.registry import MAX_SUGGESTIONS, Registry, nearest, unknown
from tonnage.models import read
from tonnage.numerics.optimizers import OPTIMIZERS
from tonnage.numerics.precisions import PRECISIONS, TRAINING_RECIPES

MODELS = (*model_names(), *toml_files.aliases("models"))
MACHINES = (*accelerator_names(), *node_names(), *toml_files.aliases("accelerators"), *toml_files.aliases("nodes"))
# What people type -> what is meant by it.
MEANT = {
    "lama-3.1-8b": "llama-3.1-8b",
    "llama-3.1-8c": "llama-3.1-8b",
    "llama 3.1 8b": "llama-3.1-8b",
    "llama3": "llama3",
    "deepseekv3": "deepseek-v3",
    "deepseek_v3": "deepseek-v3",
    "deepseek-r2": "deepseek-r1",
    "mistral7b": "mistral-7b",
    "mixtral": "mixtral",
    "gema-2-9b": "gemma-2-9b",
    "qwen3-32": "qwen3-32b",
    "Qwen3-33B": "qwen3-32b",
    "phi3": "phi3",
    "falcon40": "falcon-40b",
    "Qwen/Qwen3-33B": "qwen/qwen3-32b",
    "bert": "bert-base",
    "gpt-os": "gpt-oss",
    "h1000": "h100",
    "rtx4091": "rtx4090",
    "4090ti": "4090",
    "h100sxm": "h100-sxm",
    "v10032gb": "v100-32gb",
    "gb200nvl": "gb200-nvl-72",
    "tpuv5": "tpu-v5",
    "a100-80": "a100-80g",
    "trian": "train",
    "adam-w": "adamw",
    "bf16mixed": "bf16-mixed",
    "fp8_e4m": "fp8-e4m3",
    "kv_cash_bytes": "kv_cache_bytes",
}


def test_a_name_is_registered_once():
    things: Registry[int] = Registry("thing")
    things.add("one", 1)
    with pytest.raises(ValueError, match="'one' is already registered"):
        things.add("one", 2)


def _letters(name):
    return "".join(filter(str.isalnum, name.lower()))


def _everything():
    from tonnage.cli.explain import load_formulas

    load_formulas()
    return (*MODELS, *MACHINES, *VERBS, *OPTIMIZERS, *PRECISIONS, *TRAINING_RECIPES, *FORMULAS)


@every_row("typed", MEANT, at_least=30)
def test_a_misspelt_name_is_answered_with_the_one_that_is_meant(typed):
    for names in (MODELS, MACHINES, _everything()):
        if MEANT[typed] in names:
            found = nearest(typed, names)
            assert _letters(MEANT[typed]) in map(_letters, found) and len(found) <= MAX_SUGGESTIONS
            break
    else:
        pytest.fail(f"{MEANT[typed]} is not a name")


def test_where_no_name_is_near_examples_and_the_command_that_lists_all_are_said():
    with pytest.raises(
        UnknownName, match=rf"Examples: llama-3.1-8b, qwen3-32b; `tonnage models` lists all {len(model_names())}"
    ):
        read("xyzzy-0000")
    assert str(unknown("part", "q", [f"p{i}" for i in range(50)])).endswith("50 names are known.")


def test_what_resembles_no_name_gets_no_suggestion():
    names = _everything()
    letters = random.Random(20261121)
    words = ["".join(letters.choices(string.ascii_lowercase, k=letters.randint(5, 14))) for _ in range(200)]
    absurd = {
        word: found
        for word in [*words, "foobar", "hello", "banana", "", "-", "....", "通义", "x" * 5000]
        if (found := nearest(word, names))
    }
    assert absurd == {}


def test_a_name_is_suggested_once_whatever_its_owner():
    found = nearest("llama-3.1-8b-instrukt", MODELS)
    assert found[0] == "llama-3.1-8b-instruct"
    assert not any(other.endswith("/llama-3.1-8b-instruct") for other in found[1:])


def test_an_unknown_name_is_answered_with_the_nearest_ones():
    things: Registry[int] = Registry("optimizer")
    for name in ("adamw", "adamw-8bit", "sgd-momentum"):
        things.add(name, 0)
    with pytest.raises(UnknownName, match=r"no optimizer is called 'adam'\. Did you mean 'adamw', 'adamw-8bit'"):
        things["adam"]
    with pytest.raises(UnknownName, match="Known: adamw, adamw-8bit, sgd-momentum"):
        things["zzzzzz"]
