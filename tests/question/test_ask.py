"""The door of the faces that speak JSON: a question is a command line, and may read no more than it is allowed."""

import json
import subprocess
import sys

import pytest

from tonnage.cli import VERBS
from tonnage.kernel.encoding import encode
from tonnage.kernel.errors import InvalidInput, TonnageError, UnknownName, Unreachable
from tonnage.kernel.reach import Reach
from tonnage.verbs.ask import ANSWERED, ask, line, words_of

NOTHING = Reach(files=None, hubs=False, machine=False)
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 2048,
    "num_hidden_layers": 4,
    "num_attention_heads": 16,
    "intermediate_size": 8192,
    "vocab_size": 32000,
}
POOL = {"nodes": [{"name": "a", "accelerator": "RTX-4090", "count": 2}]}


def test_every_verb_that_answers_is_one_of_the_command_line():
    assert set(ANSWERED) <= set(VERBS)


@pytest.mark.parametrize(
    ("verb", "question", "words"),
    [
        (
            "train",
            {"model": "llama-3.1-8b", "on": "8xh100", "sequence_length": 8192},
            "train llama-3.1-8b --on=8xh100 --sequence-length=8192",
        ),
        (
            "train",
            {"model": "m", "tokens": 1e12, "price_per_accelerator_hour": 2.5},
            "train m --tokens=1000000000000 --price-per-accelerator-hour=2.5",
        ),
        (
            "train",
            {"model": "m", "sequence_parallel": False, "packing": True, "recompute": None},
            "train m --no-sequence-parallel --packing",
        ),
        ("max", {"model": "llama-3.1-8b", "what": "context"}, "max context llama-3.1-8b"),
        (
            "compare",
            {"model": ["a", "b"], "weights": [None, "fp8"], "context": [8192, "32k"]},
            "compare a,b --weights=own,fp8 --context=8192,32k",
        ),
        (
            "compare",
            {"model": "a", "packing": [True, False], "train": True},
            "compare a --packing --no-packing --train",
        ),
        (
            "compare",
            {"model": "a", "lora_targets": ["q_proj,v_proj", "all-linear"]},
            "compare a --lora-targets=q_proj,v_proj;all-linear",
        ),
        (
            "plan",
            {"model": "a", "train": True, "vary": {"packing": [True, False], "precision": ["bf16-mixed"]}},
            "plan a --train --vary=packing=on,off --vary=precision=bf16-mixed",
        ),
        (
            "plan",
            {"model": "a", "serve": True, "train": False, "inventory": POOL},
            "plan a --serve --inventory=inventory.json",
        ),
        ("rules", {"names": ["A6", "B1b"]}, "rules A6 B1b"),
        ("explain", {"name": "kv_cache_bytes"}, "explain kv_cache_bytes"),
    ],
)
def test_a_question_is_a_command_line(verb, question, words):
    assert " ".join(words_of(verb, question)) == words


def test_a_command_line_is_shown_as_a_person_types_it():
    asked = words_of("train", {"model": "my model", "on": "8xh100", "pipeline_layout": "Et*3|L"})
    assert line(asked) == "tonnage train 'my model' --on 8xh100 --pipeline-layout 'Et*3|L'"


def test_the_document_is_that_of_the_command_line_and_so_is_the_status():
    asked = ask("train", {"model": "llama-3.1-8b", "on": "8xh100", "sequence_length": "16k", "as_is": True}, NOTHING)
    done = subprocess.run([sys.executable, "-m", "tonnage", *asked.words, "--json"], capture_output=True, check=False)
    assert done.returncode == asked.status == 3
    assert json.loads(done.stdout) == json.loads(encode(asked.document))


def test_the_content_of_a_config_is_a_model():
    asked = ask("train", {"model": CONFIG | {"_name_or_path": "me/small"}, "on": "h100"}, NOTHING)
    assert asked.document.question["model"].value == "small"
    assert asked.words[1] == "config.json"
    named = ask("compare", {"model": CONFIG, "on": "h100,a100", "context": 2048}, NOTHING)
    assert len(named.document.cells) == 2


def test_the_line_of_contents_asks_the_same_of_files_that_hold_them(tmp_path, monkeypatch):
    """Each content has a file of its own name, of a kind that the command reads."""
    pytest.importorskip("highspy")
    asked = ask("plan", {"model": CONFIG, "inventory": POOL, "context": 2048}, NOTHING)
    assert line(asked.words) == "tonnage plan config.json --inventory inventory.json --context 2048"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "inventory.json").write_text(json.dumps(POOL))
    question = {"model": "./config.json", "inventory": "./inventory.json", "context": 2048}
    assert ask("plan", question, Reach(files=tmp_path)).document.stages == asked.document.stages


def test_the_content_of_an_inventory_is_a_pool():
    pytest.importorskip("highspy")
    found = ask("plan", {"model": CONFIG, "inventory": POOL, "context": 2048}, NOTHING)
    assert found.status == 0, found.document


@pytest.mark.parametrize(
    ("question", "error"),
    [
        ({"model": "/etc/passwd"}, InvalidInput),
        ({"model": "../../x/config.json"}, InvalidInput),
        ({"model": "~root"}, InvalidInput),
        ({"model": "owner/name"}, Unreachable),
        ({"model": "https://huggingface.co/owner/name"}, Unreachable),
        ({"model": "modelscope:owner/name"}, Unreachable),
        ({"on": "local"}, InvalidInput),
        ({"on": "/root/machine.toml"}, InvalidInput),
        ({"teacher": "./x", "objective": "distillation"}, TonnageError),
    ],
)
def test_what_may_not_be_read_is_not_read(question, error):
    with pytest.raises(error):
        ask("train", {"model": "llama-3.1-8b", "on": "8xh100"} | question, NOTHING)


def test_a_trace_and_an_inventory_are_files_too():
    for verb, question in (
        ("serve", {"trace": "/etc/passwd", "on": "h100"}),
        ("plan", {"inventory": "/etc/pool.yaml"}),
    ):
        with pytest.raises(InvalidInput, match="files of the machine"):
            ask(verb, {"model": "llama-3.1-8b"} | question, NOTHING)


def test_of_a_folder_of_models_what_lies_in_it_is_read(tmp_path):
    (tmp_path / "models" / "mine").mkdir(parents=True)
    (tmp_path / "models" / "mine" / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    within = Reach(files=tmp_path / "models", hubs=False)
    assert ask("train", {"model": "./mine", "on": "h100"}, within).status == 0
    for outside in ("../config.json", str(tmp_path / "config.json"), "./mine/../../config.json"):
        with pytest.raises(InvalidInput, match="outside"):
            ask("train", {"model": outside, "on": "h100"}, within)
    (tmp_path / "models" / "link").symlink_to(tmp_path)
    with pytest.raises(InvalidInput, match="outside"):
        ask("train", {"model": "./link/config.json", "on": "h100"}, within)


@pytest.mark.parametrize(
    ("verb", "question", "says"),
    [
        ("trian", {}, "Did you mean 'train'"),
        ("train", [], "an object"),
        ("train", {"model": "--help"}, "no dash"),
        ("train", {"model": "llama-3.1-8b", "json": True}, "leave it out"),
        ("train", {"model": "llama-3.1-8b", "plot": "x.html"}, "leave it out"),
        ("compare", {"model": "llama-3.1-8b", "on": "h100", "parquet": "/tmp/x.parquet"}, "leave it out"),
        (
            "train",
            {"model": "llama-3.1-8b", "on": "h100", "micro_batch_sise": 2},
            "no field 'micro_batch_sise'. Did you mean 'micro_batch_size'",
        ),
        ("train", {"model": "llama-3.1-8b", "on": "h100", "a b": 2}, "underscores"),
        ("train", {"model": "llama-3.1-8b", "on": {"a": 1}}, "on takes"),
        ("train", {"model": "llama-3.1-8b", "on": "h100", "micro_batch_size": "many"}, "^micro_batch_size must be"),
        ("explain", {"what": "kv_cache"}, "a question to explain has no field 'what'. Did you mean 'name'?"),
        ("explain", {"lora": 1}, "Known: name."),
        ("train", {"qqqq": 1}, "has no field 'qqqq'. `tonnage train --help-all` lists them"),
        ("max", {"model": "llama-3.1-8b", "on": "h100"}, "what is needed: .* context, input"),
        (
            "serve",
            {"model": "llama-3.1-8b", "on": "h100", "enforce_eager": "yes"},
            "enforce_eager is true or false. Got 'yes'",
        ),
        (
            "serve",
            {"model": "llama-3.1-8b", "on": "h100", "context": True},
            "context takes a value, and is not true or false. Got true.",
        ),
        (
            "compare",
            {"model": "llama-3.1-8b", "on": "h100", "train": True, "packing": ["yes"]},
            r"packing is true or false. Got \['yes'\]",
        ),
        (
            "serve",
            {"model": "llama-3.1-8b", "on": "h100", "users": 3, "concurrency": 2},
            "users and concurrency are two names of one field: give one. Got 3 and 2.",
        ),
        ("train", {"model": "nosuch"}, "no model is called 'nosuch'.* on is needed"),
        ("serve", {"dp": 2}, "-dp is an option of vLLM. Here replicas"),
        (
            "train",
            {"model": "gpt2", "on": "h100", "sequence_length": [1, 2]},
            r"^sequence_length takes one value, and no list; .* Got \[1, 2\]",
        ),
        ("train", {"model": ["gpt2"], "on": "h100"}, "^model takes one value"),
        ("serve", {"model": "gpt2", "on": "h100", "users": "1,2"}, "^users takes one value"),
        ("serve", {"model": "gpt2", "on": "h1000"}, "^on: no accelerator or node is called 'h1000'"),
        ("serve", {"model": "gpt2", "on": "h100", "weights": "fp9"}, "^weights: no precision"),
        (
            "plan",
            {"model": "gpt2", "on": "h100", "train": True, "serve": True},
            "^train and serve are two questions: give one. Got both.$",
        ),
        ("train", {"model": {"a": [[[]]]}, "on": "h100"}, "config"),
        ("train", {"model": 7, "on": "h100"}, "7"),
    ],
)
def test_a_wrong_question_is_an_error_that_names_the_field(verb, question, says):
    with pytest.raises(TonnageError, match=says):
        ask(verb, question, NOTHING)


@pytest.mark.parametrize(
    ("verb", "field", "meant"),
    [
        ("train", "gpus", "'on'"),
        ("serve", "num_gpus", "'on'"),
        ("plan", "gpu", "'on'"),
        ("serve", "seq_len", "'context' or 'input_tokens'"),
        ("train", "seq_len", "'sequence_length'"),
        ("serve", "batch_size", "'concurrency'"),
        ("train", "tp_size", "'tensor_parallel_size'"),
        ("serve", "isl", "'input_tokens'"),
        ("max", "quantization_bits", ""),
        ("rules", "name", "'names'"),
    ],
)
def test_a_field_that_there_is_not_is_answered_with_the_one_that_is_meant(verb, field, meant):
    with pytest.raises(UnknownName, match=f"a question to {verb} has no field '{field}'") as error:
        ask(verb, {field: 8, **({"what": "context"} if verb == "max" else {})}, NOTHING)
    assert f"Did you mean {meant}?" in str(error.value) if meant else "--pue" not in str(error.value)


def test_an_unknown_verb_is_an_unknown_name():
    with pytest.raises(UnknownName):
        ask("launch", {}, NOTHING)


def test_names_of_an_option_that_takes_several_may_be_a_list():
    question = {"model": "llama-3.1-8b", "on": "h100", "method": "lora", "lora_targets": ["q_proj", "v_proj"]}
    assert "--lora-targets=q_proj,v_proj" in ask("train", question, NOTHING).words
