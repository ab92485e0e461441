"""Proof that a runtime is its own files alone: LitGPT's, read from outside of the package under another name, give
the same documents.
"""

import sys
from pathlib import Path

import msgspec
import pytest

import tonnage
from tonnage.estimate.frameworks.plug_ins import Framework, add_training_runtime, remove_training_runtime
from tonnage.kernel.encoding import encode
from tonnage.kernel.errors import InvalidPlan, UnknownName
from tonnage.runtimes import TRAINING_RUNTIMES, model_codes, training_runtime, training_runtimes
from tonnage.tape import CODES

PACKAGE = Path(tonnage.__file__).parent
OUTSIDE = "litgpt_outside"
# The files of LitGPT in this package, and what they are called in the plug-in.
FILES = {
    "layers": "runtimes/parts/litgpt.py",
    "facts": "runtimes/litgpt.py",
    "framework": "estimate/frameworks/litgpt.py",
}


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    """A package of its own with LitGPT's files, imported, and forgotten behind the tests."""
    folder = tmp_path_factory.mktemp("plug_in") / OUTSIDE
    folder.mkdir()
    (folder / "__init__.py").touch()
    for name, path in FILES.items():
        text = (PACKAGE / path).read_text("utf-8").replace("tonnage.runtimes.parts.litgpt", f"{OUTSIDE}.layers")
        (folder / f"{name}.py").write_text(text.replace('"litgpt"', f'"{OUTSIDE}"'), encoding="utf-8")
    sys.path.insert(0, str(folder.parent))
    try:
        __import__(f"{OUTSIDE}.facts")
        __import__(f"{OUTSIDE}.framework")
        yield training_runtime(OUTSIDE)
    finally:
        remove_training_runtime(OUTSIDE)
        CODES.pop(OUTSIDE)
        sys.path.remove(str(folder.parent))
        for name in ("", ".layers", ".facts", ".framework"):
            sys.modules.pop(OUTSIDE + name, None)


def document(runtime, model, machine, **said):
    """Its text, the runtime called the same in both."""
    answer = tonnage.train(model, on=machine, runtime=runtime, **said)
    return msgspec.json.format(encode(answer.to_dict()), indent=1).decode().replace(OUTSIDE, "litgpt")


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"micro_batch_size": 4, "recompute": "full"},
        {"method": "lora"},
        {"method": "lora", "precision": "bf16"},
        {"method": "qlora"},
        {"sequence_length": 1024, "optimizer": "adamw-8bit"},
    ],
    ids=str,
)
@pytest.mark.parametrize(("model", "machine"), [("llama-3.2-1b", "H100-SXM-80GB"), ("llama-3.1-8b", "RTX-4090")])
def test_it_gives_the_same_document(outside, model, machine, said):
    assert document(OUTSIDE, model, machine, **said) == document("litgpt", model, machine, **said)


@pytest.mark.parametrize("said", [{}, {"method": "lora", "global_batch_size": 32}], ids=str)
def test_it_gives_the_same_document_on_several_accelerators(outside, said):
    said = {"model": "llama-3.2-1b", "machine": "4xH100-SXM-80GB", **said}
    assert document(OUTSIDE, **said) == document("litgpt", **said)


def test_it_is_listed_behind_those_of_the_package(outside):
    assert OUTSIDE in training_runtimes() and OUTSIDE in model_codes()


def test_it_is_refused_what_the_package_own_is_refused(outside):
    with pytest.raises(InvalidPlan, match=f"runtime {OUTSIDE} has no tensor_parallel_size"):
        tonnage.train("llama-3.2-1b", on="8xH100-SXM-80GB", runtime=OUTSIDE, tensor_parallel_size=2)


class Wide(Framework):
    """A framework of which only the width of adapters differs."""

    @property
    def adapter_precision(self):
        return "bf16"


def test_a_runtime_can_be_added_in_a_few_lines_and_removed():
    facts = msgspec.structs.replace(training_runtime("transformers"), name="mine", framework="wide", on_several=None)
    add_training_runtime(facts, Wide)
    try:
        said = {"on": "H100-SXM-80GB", "method": "lora", "precision": "bf16"}
        mine, theirs = (tonnage.train("llama-3.2-1b", runtime=name, **said) for name in ("mine", "transformers"))
        assert 2 * mine.memory.child("optimizer").value == theirs.memory.child("optimizer").value
    finally:
        remove_training_runtime("mine")
    assert "mine" not in TRAINING_RUNTIMES
    with pytest.raises(UnknownName, match="no training runtime is called 'mine'"):
        tonnage.train("llama-3.2-1b", on="H100-SXM-80GB", runtime="mine")


def test_a_framework_that_no_facts_name_is_refused():
    facts = msgspec.structs.replace(training_runtime("ddp"), name="nameless", framework="")
    with pytest.raises(TypeError, match="must name its framework"):
        add_training_runtime(facts, Wide)
