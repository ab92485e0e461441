"""`tonnage check` and `tonnage export` of llama.cpp's commands."""

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
    read_text,
    round_trip,
    signs_of,
)

from every_row import every_row
from tonnage.interchange.check import understood
from tonnage.interchange.formats import format_of
from tonnage.interchange.parts.engines import llama_cpp_options
from tonnage.interchange.parts.engines.gguf_names import parted
from tonnage.interchange.reading import Asker
from tonnage.interchange.source import command_source, file_source
from tonnage.kernel.errors import InvalidInput

ENGINE = {"engine": "llama.cpp"}
GOLDEN = {
    "four_slots.sh": Golden(
        on="rtx-4090",
        question={
            **ENGINE,
            "model": "Meta-Llama-3.1-8B-Instruct",
            "weights": "q4_k_m",
            "kv_cache": "q8_0",
            "concurrency": 4,
            "context": 8192,
            "on": "rtx-4090",
        },
        assumed="fit",
    ),
    "hf.sh": Golden(
        on="rtx-4090",
        question={
            **ENGINE,
            "model": "ggml-org/gpt-oss-20b-GGUF:MXFP4",
            "max_num_batched_tokens": 2048,
            "expert_layers_on_host": 12,
            "on": "rtx-4090",
        },
        assumed="gpu-layers parallel fit",
    ),
    "cli_offloaded.sh": Golden(
        on="2xrtx-4090",
        question={
            **ENGINE,
            "model": "Llama-3.1-70B-Instruct",
            "weights": "q4_k_m",
            "layers_on_accelerator": 40,
            "context": 8192,
            "on": "2xrtx-4090",
        },
        assumed="parallel fit",
    ),
    "env.sh": Golden(
        on="rtx-4090",
        question={
            **ENGINE,
            "model": "Qwen3-8B",
            "weights": "q8_0",
            "concurrency": 2,
            "context": 8192,
            "on": "rtx-4090",
        },
        assumed="fit",
    ),
    "draft.sh": Golden(
        on="rtx-4090",
        question={
            **ENGINE,
            "model": "Qwen3-32B",
            "weights": "q4_k_m",
            "tensor_parallel_size": 2,
            "pipeline_parallel_size": 1,
            "context": 16384,
            "draft_model": "Qwen3-0.6B",
            "draft_tokens": 8,
            "lora_adapters": 1,
            "on": "2xrtx-4090",
        },
        assumed="gpu-layers parallel fit",
        unclear="lora|override-tensor",
    ),
    "docker.sh": Golden(
        on="rtx-4090",
        question={
            **ENGINE,
            "model": "gemma-3-27b-it",
            "weights": "q4_k_m",
            "pipeline_parallel_size": 1,
            "context": 8192,
            "on": "1xrtx-4090",
        },
        assumed="gpu-layers parallel fit",
        unclear="mmproj",
    ),
}


@every_row(("name", "golden"), GOLDEN.items(), at_least=6)
def test_a_file_asks_exactly_its_question(name, golden):
    check_golden("llama-cpp", name, golden)


QWEN = "llama-server -m Qwen3-8B-Q4_K_M.gguf"
COMMANDS = [
    ("-c 8192", {"context": 8192}),
    ("-c 8192 -np 1", {"context": 8192, "concurrency": 1}),
    ("-c 8192 --parallel 2 --kv-unified", {"context": 4096, "concurrency": 2}),
    ("-np 2", {"context": 20480, "concurrency": 2}),  # half of the model's own
    ("-np -1", {}),
    ("-ngl 0", {"layers_on_accelerator": 0}),
    ("-ngl 20", {"layers_on_accelerator": 20}),
    ("-ngl 36", {"layers_on_accelerator": 36}),
    ("-ngl 37", {}),  # with the head all of its 36
    ("-ngl all", {}),
    ("--n-gpu-layers auto", {}),
    ("-ub 1024", {"max_num_batched_tokens": 1024}),
    ("-b 256", {"max_num_batched_tokens": 256}),
    ("-b 1024 -ub 2048", {"max_num_batched_tokens": 1024}),
    ("-ctk f16 -ctv f16", {"kv_cache": "fp16"}),
    ("-ctk q8_0 -ctv q8_0", {"kv_cache": "q8_0"}),
    ("-fa", {}),
    ("-fa auto", {}),
    ("-dev CUDA0,CUDA1", {"pipeline_parallel_size": 2, "on": "2xh100"}),
    ("-ts 1,1,1", {"pipeline_parallel_size": 3, "on": "3xh100"}),
    ("--spec-type ngram-simple", {"draft_tokens": 3, "speculative": "ngram"}),
    ("--mlock --no-mmap --numa distribute --rope-scaling yarn --jinja --metrics", {}),
]


@every_row(("words", "said"), COMMANDS, at_least=22)
def test_an_option_says_what_it_means(words, said):
    found = read_command(f"{QWEN} {words}")
    base = {**ENGINE, "model": "Qwen3-8B", "weights": "q4_k_m", "on": "h100"}
    assert dict(found.question) == base | said
    assert found.document.is_sure, keys(found, "not understood")


UNCLEAR = [
    ("-fa off", "flash-attn"),
    ("-ctk q8_0", "cache-type-k"),
    ("-nkvo", "no-kv-offload"),
    ("--no-kv-offload", "no-kv-offload"),
    ("--swa-full", "swa-full"),
    ("-ot exps=CPU", "override-tensor"),
    ("-ts 3,1", "tensor-split"),
    ("--rpc 10.0.0.2:50052", "rpc"),
    ("--lora a.gguf,b.gguf", "lora"),
    ("--embeddings", "embeddings"),
    ("--moe-cache-mib 512", "moe-cache-mib"),
    ("--ctx-sise 4096", "ctx-sise"),
]


@every_row(("words", "key"), UNCLEAR, at_least=12)
def test_what_may_change_memory_or_time_and_is_not_estimated_makes_the_verdict_unsure(words, key):
    found = read_command(f"{QWEN} {words}")
    written = {llama_cpp_options.SHORT.get(name, name) for name in keys(found, "not understood")}
    assert written == {key}


WRONG = [
    ("-c x", "c must be a number. Got 'x'."),
    ("-ctk fp8 -ctv fp8", "ctk must be one of"),
    ("-ngl many", "ngl must be a number."),
    ("-sm diagonal", "sm must be one of"),
    ("-ts a,b", "ts must be proportions such as 3,1."),
    ("-np 0", "np must be a whole number from 1 on."),
]


@every_row(("words", "text"), WRONG, at_least=6)
def test_a_wrong_value_is_refused_with_its_key(words, text):
    with pytest.raises(InvalidInput) as error:
        read_command(f"{QWEN} {words}")
    assert text in str(error.value)


NAMED = [
    ("Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf", ("Meta-Llama-3.1-8B-Instruct", "q4_k_m")),
    ("qwen2.5-7b-instruct-q8_0.gguf", ("qwen2.5-7b-instruct", "q8_0")),
    ("DeepSeek-V3-UD-Q2_K_XL-00001-of-00005.gguf", ("DeepSeek-V3", "q2_k_xl")),
    ("gpt-oss-20b-mxfp4.gguf", ("gpt-oss-20b", "mxfp4")),
    ("Llama-3.2-1B.IQ4_XS.gguf", ("Llama-3.2-1B", "iq4_xs")),
    ("model-f16.gguf", ("model", "f16")),
    ("model.gguf", ("model", "")),
]


@every_row(("file", "expected"), NAMED, at_least=7)
def test_the_name_of_a_file_says_its_model_and_the_type_of_its_weights(file, expected):
    assert parted(file) == expected


def test_types_that_a_publisher_deals_out_are_not_sure():
    found = read_command("llama-server -m Qwen3-8B-UD-Q4_K_XL.gguf")
    assert (found.question["model"], found.question["weights"]) == ("Qwen3-8B", "q4_k_m")
    assert [key.why for key in found.document.keys if key.status == "not understood"] == [
        "its layers have types of their own: the bytes are those of Q4_K_M"
    ]


MODELS = [
    ("-hf unsloth/Qwen3-8B-GGUF:Q8_0", "unsloth/Qwen3-8B-GGUF:Q8_0"),
    ("-hf unsloth/Qwen3-8B-GGUF -hff Qwen3-8B-Q6_K.gguf", "unsloth/Qwen3-8B-GGUF:Q6_K"),
    ("-mu https://huggingface.co/a/b-GGUF/resolve/main/b-Q5_K_M.gguf?download=true", "a/b-GGUF:Q5_K_M"),
    ("-m C:\\models\\Qwen3-8B-Q4_0.gguf", "Qwen3-8B"),
]


@every_row(("words", "model"), MODELS, at_least=4)
def test_the_model_is_found_however_it_is_named(words, model):
    import shlex

    assert read_command(shlex.join(["llama-server", *words.split(" ")])).question["model"] == model


def test_words_of_the_command_are_stronger_than_its_variables():
    text = f"LLAMA_ARG_CTX_SIZE=4096 LLAMA_ARG_N_GPU_LAYERS=3 LLAMA_ARG_NO_MMAP=1 {QWEN} -c 8192\n"
    found = read_text(text, "a.sh")
    assert (found.question["context"], found.question["layers_on_accelerator"]) == (8192, 3)
    assert found.document.is_sure


def test_variables_that_are_false_count():
    found = read_text(f"LLAMA_ARG_KV_OFFLOAD=false LLAMA_ARG_CONT_BATCHING=1 {QWEN} -c 8192\n", "a.sh")
    assert keys(found, "not understood") == {"kv-offload"}


def test_old_builds_put_no_layer_on_the_accelerator_by_themselves():
    found = read_command(f"{QWEN} -c 4096", version="b4000")
    assert (found.question["layers_on_accelerator"], found.question["engine_version"]) == (0, "b4000")


def test_experts_of_all_layers_stay_on_the_host():
    found = read_command("llama-server -m Qwen3-30B-A3B-Q4_K_M.gguf -cmoe")
    assert found.question["expert_layers_on_host"] == 48


def test_it_is_recognised_by_its_program():
    assert set(signs_of(command_source([f"./build/bin/{QWEN}"], None))) == {"llama-cpp"}
    assert not signs_of(command_source(["llama-bench -m a.gguf"], None))


QUESTIONS = [
    {"model": "llama-3.1-8b", "on": "rtx-4090", "weights": "q4_k_m", "concurrency": 4, "context": 8192},
    {"model": "qwen3-8b", "on": "rtx-4090", "weights": "q8_0", "kv_cache": "q8_0", "max_num_batched_tokens": 1024},
    {"model": "llama-3.1-70b", "on": "2xrtx-4090", "weights": "q4_k_m", "layers_on_accelerator": 40, "context": 4096},
    {"model": "qwen3-30b-a3b", "on": "rtx-4090", "weights": "q4_k_m", "expert_layers_on_host": 20, "context": 16384},
    {"model": "llama-3.1-8b", "on": "2xrtx-4090", "weights": "q4_k_m", "tensor_parallel_size": 2, "context": 8192},
    {
        "model": "qwen3-32b",
        "on": "l40s",
        "weights": "q4_k_m",
        "draft_model": "qwen3-0.6b",
        "draft_tokens": 4,
        "acceptance": 0.6,
        "lora_adapters": 2,
        "lora_rank": 8,
        "context": 8192,
    },
    {"model": "llama-3.1-8b", "on": "m2-ultra", "context": 8192, "weights": "q4_k_m"},
]


@every_row("question", QUESTIONS, at_least=7)
def test_what_is_written_asks_for_the_same_again(question):
    round_trip("llama-cpp", question)


test_any_words_are_understood_or_refused = odd_words("llama-server", format_of("llama-cpp").known())
test_any_short_words_are_understood_or_refused = odd_words("llama-cli", llama_cpp_options.SHORT, dashes="-")
OF_FILES = {name: values for name, values in OPTIONS.items() if name in HERE} | OF_GGUF
test_any_question_is_written_and_read_again = odd_round_trips("llama-cpp", OF_FILES, ("rtx-4090", "2xrtx-4090", "h100"))


def test_a_file_that_is_there_is_read_itself(tmp_path):
    (tmp_path / "Qwen3-8B-Q4_K_M.gguf").write_bytes(b"GGUF")
    (tmp_path / "run.sh").write_text(f"{QWEN} -c 4096\n")
    found = understood(file_source(str(tmp_path / "run.sh")), Asker(on="h100"))
    assert found.question["model"] == str(tmp_path / "Qwen3-8B-Q4_K_M.gguf")
    assert "weights" not in found.question


def test_a_pass_of_more_tokens_than_a_logical_batch_says_both():
    text, _ = round_trip(
        "llama-cpp", {"model": "qwen3-8b", "on": "h100", "max_num_batched_tokens": 4096, "weights": "q8_0"}
    )
    assert "-b 4096 -ub 4096" in text
