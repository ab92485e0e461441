"""`tonnage check` and `tonnage export` of Ollama's Modelfiles and scripts."""

import pytest
from engine_cases import (
    HERE,
    OF_GGUF,
    OPTIONS,
    Golden,
    check_golden,
    keys,
    odd_round_trips,
    odd_words,
    read_command,
    read_file,
    read_text,
    round_trip,
    signs_of,
    tried,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from every_row import every_row
from tonnage.interchange.formats import format_of
from tonnage.interchange.source import command_source, text_source
from tonnage.kernel.errors import InvalidInput

ENGINE = {"engine": "ollama", "on": "rtx-4090"}
TYPE = "type of the weights"


GOLDEN = {
    "Modelfile.gguf": Golden(
        on="rtx-4090",
        question={
            **ENGINE,
            "model": "Qwen3-30B-A3B",
            "weights": "q4_k_m",
            "context": 16384,
            "layers_on_accelerator": 24,
            "max_num_batched_tokens": 1024,
        },
        assumed="OLLAMA_NUM_PARALLEL",
    ),
    "run.sh": Golden(
        on="rtx-4090",
        question={
            **ENGINE,
            "model": "llama3.1:70b",
            "weights": "q5_k_m",
            "context": 8192,
            "concurrency": 4,
            "kv_cache": "q8_0",
        },
        assumed="num_gpu",
    ),
    "create.sh": Golden(
        on="rtx-4090",
        question={
            **ENGINE,
            "model": "bartowski/Llama-3.2-3B-Instruct-GGUF:Q6_K",
            "context": 8192,
            "reserve": 2**30,
            "lora_adapters": 1,
        },
        assumed="num_gpu OLLAMA_NUM_PARALLEL",
        unclear="adapter",
    ),
    "gpt_oss.sh": Golden(
        on="rtx-4090",
        question={**ENGINE, "model": "gpt-oss:20b"},
        assumed="num_ctx num_gpu OLLAMA_NUM_PARALLEL",
    ),
}


@every_row(("name", "golden"), GOLDEN.items(), at_least=4)
def test_a_file_asks_exactly_its_question(name, golden):
    check_golden("ollama", name, golden)


LIBRARY = [
    ("Modelfile", {"model": "llama3.2", "context": 4096}, set()),
    ("draft.modelfile", {"model": "qwen3:8b"}, {"draft_num_predict"}),
]


@every_row(("name", "said", "unclear"), LIBRARY, at_least=2)
def test_a_model_of_the_library_is_taken_in_4_bits(name, said, unclear):
    found = read_file("ollama", name, on="rtx-4090")
    assert dict(found.question) == {**ENGINE, "weights": "q4_k_m", **said}
    assert TYPE in keys(found, "assumed")
    assert keys(found, "not understood") == unclear


NAMES = [
    ("llama3.1", "llama3.1", "q4_k_m"),
    ("llama3.1:latest", "llama3.1", "q4_k_m"),
    ("llama3.1:8b", "llama3.1:8b", "q4_k_m"),
    ("llama3.1:8b-instruct-q8_0", "llama3.1:8b", "q8_0"),
    ("llama3.1:70b-instruct-fp16", "llama3.1:70b", "f16"),
    ("qwen2.5:14b-instruct-q4_K_M", "qwen2.5:14b", "q4_k_m"),
    ("gpt-oss:20b", "gpt-oss:20b", None),
    ("hf.co/unsloth/Qwen3-8B-GGUF:Q8_0", "unsloth/Qwen3-8B-GGUF:Q8_0", None),
]


@every_row(("name", "model", "weights"), NAMES, at_least=8)
def test_names_of_the_library_are_read(name, model, weights):
    found = read_command(f"ollama run {name}", on="rtx-4090")
    assert (found.question["model"], found.question.get("weights")) == (model, weights)


BASE = "FROM ./Qwen3-8B-Q4_K_M.gguf\n"
LINES = [
    ("PARAMETER num_ctx 8192", {"context": 8192}),
    ("parameter NUM_CTX 8192", {"context": 8192}),
    ("PARAMETER num_gpu -1", {}),
    ("PARAMETER num_gpu 99", {}),
    ("PARAMETER num_gpu 20", {"layers_on_accelerator": 20}),
    ("PARAMETER num_gpu 0", {"layers_on_accelerator": 0}),
    ("PARAMETER num_batch 256", {"max_num_batched_tokens": 256}),
    ('PARAMETER stop "FROM here"', {}),
    ("PARAMETER temperature 0.2\nPARAMETER top_p 0.9\nPARAMETER use_mlock true", {}),
]


@every_row(("line", "said"), LINES, at_least=9)
def test_a_parameter_says_what_it_means(line, said):
    found = read_text(f"{BASE}{line}\n", "Modelfile", on="rtx-4090")
    assert dict(found.question) == {**ENGINE, "model": "Qwen3-8B", "weights": "q4_k_m", **said}
    assert found.document.is_sure, keys(found, "not understood")


def test_num_gpu_is_said_to_be_layers():
    found = read_text(f"{BASE}PARAMETER num_gpu 20\n", "Modelfile", on="rtx-4090")
    assert [key.why for key in found.document.keys if key.key == "num_gpu"] == ["layers, not accelerators"]


VARIABLES = [
    ("OLLAMA_NUM_PARALLEL=2", {"concurrency": 2, "context": 32768}, True),
    ("OLLAMA_CONTEXT_LENGTH=4096", {"context": 4096}, True),
    ("OLLAMA_CONTEXT_LENGTH=0", {}, True),
    ("OLLAMA_KV_CACHE_TYPE=q4_0 OLLAMA_FLASH_ATTENTION=1", {"kv_cache": "q4_0"}, True),
    ("OLLAMA_KV_CACHE_TYPE=q4_0 OLLAMA_FLASH_ATTENTION=0", {}, False),
    ("OLLAMA_KV_CACHE_TYPE=f16", {}, True),
    ("OLLAMA_GPU_OVERHEAD=536870912", {"reserve": 2**29}, True),
    ("OLLAMA_KEEP_ALIVE=-1 OLLAMA_MAX_LOADED_MODELS=3", {}, True),
    ("OLLAMA_FROBNICATE=1", {}, False),
]


@every_row(("variables", "said", "is_sure"), VARIABLES, at_least=9)
def test_a_variable_says_what_it_means(variables, said, is_sure):
    found = read_text(f"export {variables}\nollama serve &\n", "a.sh", on="rtx-4090", model="qwen3-8b")
    assert dict(found.question) == {**ENGINE, "model": "qwen3-8b", **said}
    assert found.document.is_sure == is_sure


WRONG = [
    ("PARAMETER num_ctx many", "num_ctx must be a number. Got 'many'."),
    ("PARAMETER num_ctx 0", "num_ctx must be a whole number from 1 on."),
    ("PARAMETER num_gpu all", "num_gpu must be a number."),
]


@every_row(("line", "text"), WRONG, at_least=3)
def test_a_wrong_value_is_refused_with_its_key(line, text):
    with pytest.raises(InvalidInput) as error:
        read_text(f"{BASE}{line}\n", "Modelfile", on="rtx-4090")
    assert text in str(error.value)


def test_an_unknown_parameter_is_not_understood():
    found = read_text(f"{BASE}PARAMETER num_ctxx 4096\n", "Modelfile", on="rtx-4090")
    assert [key.why for key in found.document.keys if key.status == "not understood"] == [
        "no such key is known; did you mean num_ctx?"
    ]


def test_a_dockerfile_is_no_modelfile():
    assert not signs_of(text_source("FROM python:3.12\nRUN pip install vllm\nCMD python app.py\n", "Dockerfile"))
    assert not signs_of(text_source("FROM python:3.12\n", "Dockerfile"))
    assert set(signs_of(text_source("FROM llama3.2\n", "Modelfile"))) == {"ollama"}
    assert set(signs_of(command_source(["ollama run llama3.2"], None))) == {"ollama"}
    assert not signs_of(command_source(["ollama list"], None))


def test_releases_had_other_default_contexts():
    found = read_command("ollama run llama3.1:8b", on="rtx-4090", version="0.11")
    assert found.question["engine_version"] == "0.11"


QUESTIONS = [
    {"model": "llama-3.1-8b", "on": "rtx-4090", "weights": "q4_k_m", "concurrency": 4, "context": 8192},
    {"model": "qwen3-8b", "on": "rtx-4090", "weights": "q8_0", "kv_cache": "q8_0", "context": 16384},
    {"model": "qwen3-30b-a3b", "on": "rtx-4090", "weights": "q4_k_m", "layers_on_accelerator": 24, "context": 8192},
    {"model": "llama-3.1-8b", "on": "2xrtx-4090", "weights": "q4_k_m", "max_num_batched_tokens": 1024},
    {"model": "llama-3.1-8b", "on": "l40s", "weights": "q4_k_m", "lora_adapters": 1, "lora_rank": 8},
    {"model": "llama-3.1-8b", "on": "rtx-4090", "weights": "q4_k_m"},
]


@every_row("question", QUESTIONS, at_least=6)
def test_what_is_written_asks_for_the_same_again(question):
    round_trip("ollama", question)


KNOWN = sorted(name for name in format_of("ollama").known() if name.islower())
test_any_words_are_understood_or_refused = odd_words("ollama run", KNOWN)


@settings(max_examples=150)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["PARAMETER", "FROM", "ADAPTER", "SYSTEM", "MESSAGE", "parameter"]),
            st.one_of(st.sampled_from(KNOWN), st.text(max_size=6)),
            st.one_of(st.text(max_size=6), st.sampled_from(["1", "-1", "0", "8192", "q8_0", '"""', "1e400", "true"])),
        ),
        max_size=6,
    )
)
def test_any_modelfile_is_understood_or_refused(lines):
    text = "".join(f"{' '.join(line)}\n" for line in lines)
    tried(lambda: read_text(text, "Modelfile", on="rtx-4090", model="qwen3-8b", tool="ollama"))


OF_FILES = {name: values for name, values in OPTIONS.items() if name in HERE} | OF_GGUF
test_any_question_is_written_and_read_again = odd_round_trips("ollama", OF_FILES, ("rtx-4090", "2xrtx-4090", "h100"))
