"""Options of other tools as their newest packages define them, against the keys that `tonnage check` reads.

tests/interchange/published has what scripts/record_arguments.py read in the packages, with version and date. Two things
hold of each: no option of the tool is unknown here, and a run that says every default is the run that says none.
"""

import ast
import importlib.util
from pathlib import Path

import pytest
from published_cases import CASES, figures, known, published, reading, record, statuses

from every_row import every_row
from tonnage.interchange.formats import format_of
from tonnage.interchange.parts.hugging_face.hf_model import TARGETS
from tonnage.kernel.errors import TonnageError

# Defaults that are not said, each with its reason: option -> why.
LEFT_OUT = {
    ("trl", "RLOOConfig"): {
        "beta": "RLOO holds a reference model by default, which its trainer is not sure of already"
    },
    ("trl", "ModelConfig"): {"dtype": "the source of these cases says bfloat16"},
    ("vllm", "EngineArgs"): {"model": "the model of the case is another"},
    ("sglang", "ServerArgs"): {},
    ("verl", "ppo_trainer"): {
        "actor_rollout_ref.model.path": "the model of the case is another",
        "critic.model.path": "the model of the case is another",
    },
    ("torchtitan", "training"): {
        "seq_len": "the config llama3_8b says another",
        "local_batch_size": "the config llama3_8b says another",
        "steps": "the config llama3_8b says another",
    },
    ("deepspeed", "zero_optimization"): {
        "stage3_gather_fp16_weights_on_model_save": "the older name of one that is said too"
    },
    ("llama-cpp", "arguments"): {"parallel": "llama-server has -1, which is auto, in place of common's 1"},
}
# Sections whose names are open here: any name in them is read.
OPEN = {
    "verl": (".profiler.", ".checkpoint.", ".qat.", ".turbo_config.", "_target_"),
    "axolotl": ("mixlora_",),
}
# Records whose version is not that of the format: read in another package.
VERSION_OF_ANOTHER = {"llama-cpp", "peft"}


def said(case):
    """Key -> default of what is said in a case."""
    left_out = LEFT_OUT.get((case.tool, case.section), {})
    return {
        case.key(name): default
        for name, default in published(case).items()
        if default is not None and not isinstance(default, dict) and name not in left_out and name not in case.more
    }


@every_row("case", CASES, at_least=35)
def test_every_option_of_the_package_is_known(case):
    names = [*published(case), *record(case.tool)["computed"][case.section]]
    is_open = OPEN.get(case.tool, ())
    doubtful = [key for key in map(case.key, names) if key not in known(case.tool)]
    unknown = [key for key in doubtful if not any(part in key for part in is_open) and not is_read(case, key)]
    assert not unknown


def is_read(case, key):
    """Whether a key that misspelled ones are not compared with means something: it is used, ignored, named as one that
    is not estimated, or its value is refused.
    """
    try:
        found = reading(case, {key: "x"})
    except TonnageError:
        return True
    reasons = {one.key: one.why for one in found.document().keys if one.status == "not understood"}
    return reasons.get(key, "read") != ""


@every_row("case", CASES, at_least=35)
def test_a_run_that_says_every_default_is_the_run_that_says_none(case):
    alone, explicit = reading(case, {}), reading(case, said(case))
    before, after = statuses(alone), statuses(explicit)
    assert {key for key, status in after.items() if status == "not understood"} == {
        key for key, status in before.items() if status == "not understood"
    }
    assert figures(explicit) == figures(alone)


@every_row("case", CASES, at_least=35)
def test_a_default_that_is_assumed_is_the_published_one(case):
    found = reading(case, {})
    defaults = {case.key(name): default for name, default in published(case).items() if default is not None}
    left_out = {case.key(name) for name in LEFT_OUT.get((case.tool, case.section), {})}
    for key in found.document(found.known()).keys:
        if key.status == "assumed" and key.key in defaults and key.key not in left_out:
            assert plain(key.value) == plain(defaults[key.key]), key.key


def plain(value):
    text = str(value).lower().strip("[]'\"").replace("'", "")
    try:
        return float(text)
    except ValueError:
        return {"true": 1.0, "on": 1.0, "false": 0.0}.get(text, text)


@every_row("tool", [case.tool for case in CASES], at_least=35)
def test_a_record_is_of_the_release_that_the_format_names(tool):
    kept = record(tool)
    assert kept["as_of"] >= "2026-11-28"
    if tool not in VERSION_OF_ANOTHER:
        assert f"{kept['version']}.".startswith(f"{format_of(tool).version.removeprefix('v')}.")


def test_defaults_of_adapters_are_those_of_peft():
    options = record("peft")["options"]["LoraConfig"]
    assert (options["r"], options["lora_dropout"], options["target_modules"]) == (8, 0.0, None)
    assert options["init_lora_weights"] is True
    assert not options["use_dora"]


# Families of peft/utils/constants.py whose default layers are those of our table.
MODELS = {
    "llama": "llama-3.1-8b",
    "qwen2": "qwen2.5-7b",
    "qwen3": "qwen3-8b",
    "mistral": "mistral-7b-v0.3",
    "gemma2": "gemma-2-9b",
    "falcon": "falcon-7b",
    "bloom": "bloom-7b1",
    "gpt_neox": "pythia-6.9b",
    "gpt2": "gpt2",
    "phi": "phi-2",
    "chatglm": "chatglm3-6b",
}


@every_row(("family", "model"), MODELS.items(), at_least=11)
def test_the_layers_that_get_adapters_by_default_are_those_of_peft(family, model):
    found = next(targets for words, targets in TARGETS if any(word in model for word in words))
    assert set(found.split(",")) == set(record("peft")["options"]["targets"][family])


# ---- Against the packages that are installed.

INSTALLED = {"transformers": ("TrainingArguments", "training_args.py"), "peft": ("LoraConfig", "tuners/lora/config.py")}


@pytest.mark.parametrize("package", INSTALLED)
def test_a_record_is_that_of_an_installed_package_of_its_release(package):
    """Where the package is not installed or is of another release, the record alone counts."""
    spec = importlib.util.find_spec(package)
    section, file = INSTALLED[package]
    if spec is None or not spec.origin:
        return
    from importlib.metadata import version

    if version(package) != record(package)["version"]:
        return
    tree = ast.parse((Path(spec.origin).parent / file).read_text())
    node = next(one for one in ast.walk(tree) if isinstance(one, ast.ClassDef) and one.name == section)
    fields = {
        line.target.id
        for line in node.body
        if isinstance(line, ast.AnnAssign) and "init=False" not in ast.unparse(line)
    }
    kept = {*record(package)["options"][section], *record(package)["computed"][section]}
    assert {name for name in fields if not name.startswith("_")} == kept
