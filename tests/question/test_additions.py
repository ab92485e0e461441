"""Adding one of each kind, as CONTRIBUTING.md shows it: its examples are written into a copy of the source, and the
faces answer with what was added.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# A line that ends in a path, a colon, and the block of what stands in that file.
EXAMPLE = re.compile(r"`(src/tonnage/[\w./-]+)`:\n\n```(?:python|toml)\n(.*?)^```$", re.S | re.M)
EXAMPLES = EXAMPLE.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
KINDS = (
    "catalogue/accelerators",
    "numerics/optimizers",
    "architectures",
    "runtimes",
    "estimate/frameworks",
    "interchange/formats",
)
QUESTIONS = """
import contextlib, io, json

import tonnage
from tonnage.documents.document import builtins
from tonnage.verbs.ask import ask
from tonnage.cli import main
from tonnage.web.schema import options_table
from tonnage.interchange.json_questions import checked


def printed(*words):
    told = io.StringIO()
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
        main(list(words))
    return told.getvalue()


def plan(document):
    return {name: entry["value"] for name, entry in document["question"].items()}


def document(verb, question):
    return builtins(ask(verb, question).document)


def part(document, *names):
    node = document["memory"]
    for name in names:
        node = next(child for child in node["children"] if child["name"] == name)
    return node["value"]


PELICAN = {"family": "pelican", "hidden_size": 1024, "num_layers": 16, "num_attention_heads": 16,
           "intermediate_size": 4096, "vocab_size": 32000}
MODEL = {"model": "llama-3.2-1b"}
adan = document("train", MODEL | {"on": "3070-ti-laptop", "optimizer": "adan"})
adamw = document("train", MODEL | {"on": "3070-ti-laptop"})
heron = document("train", MODEL | {"on": "h100", "runtime": "heron", "method": "lora", "precision": "bf16"})
ddp = document("train", MODEL | {"on": "h100", "runtime": "ddp", "method": "lora", "precision": "bf16"})
osprey = document("serve", MODEL | {"on": "3070-ti-laptop", "engine": "osprey", "context": 4096})
vllm = document("serve", MODEL | {"on": "3070-ti-laptop", "engine": "vllm", "context": 4096})
pelican = document("train", PELICAN | {"on": "3070-ti-laptop"})
llama = document("train", PELICAN | {"family": "llama", "on": "3070-ti-laptop"})
print(json.dumps({
    "where": tonnage.__file__,
    "accelerators": printed("accelerators", "3070-ti-laptop"),
    "usable": adan["verdict"]["usable_bytes"],
    "optimizer": [part(adan, "optimizer"), part(adamw, "optimizer")],
    "adapters": [part(heron, "optimizer"), part(ddp, "optimizer")],
    "parameters": [plan(pelican)["parameters"], plan(llama)["parameters"]],
    "runtime": plan(heron)["runtime"],
    "engine": plan(osprey)["engine"],
    "memory_share": [plan(osprey)["gpu_memory_utilization"], plan(vllm)["gpu_memory_utilization"]],
    "launch": printed("serve", "llama-3.2-1b", "--on", "3070-ti-laptop", "--engine", "osprey", "--context", "4k"),
    "help": {verb: printed(verb, "--help-all") for verb in ("train", "serve")},
    "choices": {verb: {row.name: row.choices for row in options_table.table(verb)} for verb in ("train", "serve")},
    "families": printed("models", "--family", "pelican", "--hidden-size", "1024", "--num-layers", "16",
                        "--num-attention-heads", "16", "--intermediate-size", "4096", "--vocab-size", "32000"),
    "nearest": printed("train", "llama-3.2-1b", "--on", "h100", "--runtime", "herron"),
    "checked": builtins(checked({
        "text": json.dumps({"egret": True, "base": "llama-3.2-1b", "seq": 2048, "lr": 1e-4, "sqe": 1}), "on": "h100"
    }).document),
    "compared": printed("compare", "llama-3.2-1b", "--on", "3070-ti-laptop,l4", "--engine", "osprey",
                        "--context", "4k"),
}))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What a copy of the source answers that has the examples in it."""
    copy = tmp_path_factory.mktemp("source") / "src" / "tonnage"
    shutil.copytree(ROOT / "src" / "tonnage", copy, ignore=shutil.ignore_patterns("__pycache__"))
    for path, text in EXAMPLES:
        file = copy.parents[1] / path
        file.write_text((file.read_text() if file.exists() else "") + text)
    environment = {**os.environ, "PYTHONPATH": str(copy.parent), "TONNAGE_LANG": "en", "COLUMNS": "200"}
    words = [sys.executable, "-c", QUESTIONS]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment, cwd=copy.parent)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["where"].startswith(str(copy))
    return found


def test_contributing_shows_one_of_each_kind():
    paths = [path for path, _ in EXAMPLES]
    assert [kind for kind in KINDS if not any(kind in path for path in paths)] == []
    new = [path for path in paths if not (ROOT / path).exists()]
    assert len(new) == len(paths) - 1, "only an optimizer is an entry in a file that exists"


def test_an_accelerator_is_shown_with_its_sources(answers):
    assert answers["accelerators"].startswith("RTX-3070-Ti-Laptop (NVIDIA, Ampere)")
    assert "448.00 GB/s" in answers["accelerators"] and "nvidia-smi" in answers["accelerators"]
    assert answers["usable"] == 8192 * 2**20


def test_an_optimizer_counts_its_states_and_can_be_chosen(answers):
    states, of_adamw = answers["optimizer"]
    assert states == 2 * of_adamw
    assert "adan" in answers["choices"]["train"]["optimizer"]


def test_a_family_is_counted_and_can_be_named(answers):
    pelican, llama = answers["parameters"]
    assert pelican - llama == 16 * 4 * 1024  # biases of four projections in each layer
    assert "pelican" in answers["families"]


def test_a_training_runtime_uses_its_framework_and_is_listed(answers):
    assert answers["runtime"] == "heron"
    states, of_ddp = answers["adapters"]
    assert 2 * states == of_ddp  # adapters in bf16
    assert "heron" in answers["help"]["train"] and "heron" in answers["choices"]["train"]["runtime"]
    assert "Did you mean 'heron'?" in answers["nearest"]


def test_a_format_of_another_tool_is_recognised_and_its_keys_are_read(answers):
    read, question = answers["checked"]["read"], answers["checked"]["question"]
    assert (read["tool"], read["is_sure"]) == ("Egret", False)
    assert {key["key"]: key["status"] for key in read["keys"]} == {
        "sqe": "not understood",
        "base": "used",
        "egret": "used",
        "seq": "used",
        "batch": "assumed",
        "lr": "ignored",
    }
    assert (question["sequence_length"]["value"], question["micro_batch_size"]["value"]) == (2048, 4)


def test_a_serving_engine_uses_its_facts_and_is_started_by_its_command(answers):
    assert answers["engine"] == "osprey"
    share, of_vllm = answers["memory_share"]
    assert (share, of_vllm) == (0.8, 0.92)
    assert "osprey serve" in answers["launch"]
    assert "osprey" in answers["help"]["serve"] and "osprey" in answers["choices"]["serve"]["engine"]
    assert "RTX-3070-Ti-Laptop" in answers["compared"]
