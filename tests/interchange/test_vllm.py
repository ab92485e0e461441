"""`tonnage check` and `tonnage export` of vLLM's commands and files."""

import pytest
from engine_cases import (
    ODD,
    Golden,
    check_golden,
    keys,
    odd_round_trips,
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
from tonnage.interchange.export import export
from tonnage.interchange.formats import format_of
from tonnage.interchange.parts.engines import vllm_options
from tonnage.interchange.source import command_source, text_source
from tonnage.kernel.errors import InvalidInput

ALONE = {"engine": "vllm", "tensor_parallel_size": 1}
GOLDEN = {
    "serve_llama_70b.sh": Golden(
        on="h100",
        question={
            "engine": "vllm",
            "model": "meta-llama/Llama-3.1-70B-Instruct",
            "context": 32000,
            "weights": "fp8",
            "kv_cache": "fp8",
            "tensor_parallel_size": 4,
            "max_num_seqs": 256,
            "gpu_memory_utilization": 0.95,
            "on": "4xh100",
        },
    ),
    "deepseek_two_nodes.sh": Golden(
        on="h200",
        question={
            **ALONE,
            "model": "deepseek-ai/DeepSeek-V3",
            "context": 16384,
            "attention_data_parallel_size": 16,
            "expert_parallel_size": 16,
            "max_num_batched_tokens": 4096,
            "on": "2x8xh200",
        },
        assumed="tensor-parallel-size gpu-memory-utilization",
        unclear="all2all-backend",
    ),
    "old_api_server.sh": Golden(
        on="h100",
        question={
            **ALONE,
            "model": "mistralai/Mistral-7B-Instruct-v0.3",
            "context": 8192,
            "weights": "fp16",
            "draft_tokens": 5,
            "speculative": "ngram",
            "on": "1xh100",
        },
        assumed="tensor-parallel-size gpu-memory-utilization",
    ),
    "server.yaml": Golden(
        on="h100",
        question={
            "engine": "vllm",
            "model": "Qwen/Qwen3-30B-A3B",
            "context": 40960,
            "tensor_parallel_size": 2,
            "expert_parallel_size": 2,
            "gpu_memory_utilization": 0.9,
            "on": "2xh100",
        },
    ),
    "with_config.sh": Golden(
        on="h100",
        question={
            "engine": "vllm",
            "model": "Qwen/Qwen3-30B-A3B",
            "context": 40960,
            "tensor_parallel_size": 4,
            "gpu_memory_utilization": 0.9,
            "on": "4xh100",
        },
    ),
    "prefill_and_decode.sh": Golden(
        on="h100",
        question={
            **ALONE,
            "model": "meta-llama/Llama-3.1-8B-Instruct",
            "context": 8192,
            "prefill_replicas": 1,
            "on": "2xh100",
        },
        assumed="tensor-parallel-size gpu-memory-utilization",
    ),
    "docker.sh": Golden(
        on="h100",
        question={
            **ALONE,
            "engine_version": "0.11.0",
            "model": "Qwen/Qwen3-8B",
            "weights_on_host": "2GiB",
            "enforce_eager": True,
            "lora_adapters": 4,
            "lora_rank": 32,
            "on": "1xh100",
        },
        assumed="tensor-parallel-size gpu-memory-utilization",
        version="0.11.0",
    ),
}


@every_row(("name", "golden"), GOLDEN.items(), at_least=7)
def test_a_file_asks_exactly_its_question(name, golden):
    check_golden("vllm", name, golden)


QWEN = "vllm serve Qwen/Qwen3-8B"
COMMANDS = [
    # words behind it, options of ours that come of them
    ("--max-model-len 8k", {"context": 8000}),
    ("--max-model-len 8K", {"context": 8192}),
    ("--max_model_len=4096", {"context": 4096}),
    ("-tp 2 -pp 2", {"tensor_parallel_size": 2, "pipeline_parallel_size": 2, "on": "4xh100"}),
    ("-dp 4", {"on": "4xh100"}),
    ("--enable-eplb", {}),
    ('--limit-mm-per-prompt \'{"image": {"count": 4, "width": 512, "height": 512}}\'', {}),
    ("--limit-mm-per-prompt image=4", {}),
    ("--tensor-parallel-size 8 --nnodes 2 --node-rank 1", {"tensor_parallel_size": 8, "on": "2x4xh100"}),
    ("--dtype float16", {"weights": "fp16"}),
    ("--dtype auto", {}),
    ("--quantization awq", {}),
    ("-q fp8_per_block", {"weights": "fp8-block"}),
    ("--kv-cache-dtype auto", {}),
    ("--kv-cache-dtype fp8_e5m2", {"kv_cache": "fp8_e5m2"}),
    ("--no-enforce-eager", {"enforce_eager": False}),
    ("--cpu-offload-gb 0", {}),
    ("--enable-lora", {"lora_adapters": 1, "lora_rank": 16}),
    ("--max-loras 4", {}),
    (
        '--speculative-config \'{"method": "ngram", "num_speculative_tokens": 4}\'',
        {"draft_tokens": 4, "speculative": "ngram"},
    ),
    (
        '--speculative-config \'{"method": "eagle3", "model": "a/eagle3-head", "num_speculative_tokens": 3}\'',
        {"draft_tokens": 3, "speculative": "eagle3", "draft_model": "a/eagle3-head"},
    ),
    (
        "-sc.method eagle3 -sc.model a/head -sc.num_speculative_tokens 5 -sc.parallel_drafting true",
        {"draft_tokens": 5, "speculative": "p-eagle", "draft_model": "a/head"},
    ),
    ("-sc.method mtp -sc.num_speculative_tokens 2", {"draft_tokens": 2}),
    (
        "--speculative-config.model Qwen/Qwen3-0.6B --speculative-config.num-speculative-tokens 3",
        {"draft_model": "Qwen/Qwen3-0.6B", "draft_tokens": 3},
    ),
    ("--spec-model Qwen/Qwen3-0.6B --spec-tokens 2", {"draft_model": "Qwen/Qwen3-0.6B", "draft_tokens": 2}),
    ('--compilation-config \'{"cudagraph_mode": "NONE"}\'', {"enforce_eager": True}),
    ("-O0", {"enforce_eager": True}),
    ("-O 3", {}),
    ("-cc.mode 3", {}),
    ('--hf-overrides \'{"num_hidden_layers": 4, "rope_theta": 10000}\'', {"num_hidden_layers": 4}),
    ("--enable-expert-parallel -tp 2", {"tensor_parallel_size": 2, "on": "2xh100"}),
    ("--no-enable-prefix-caching --seed 3 --async-scheduling", {}),
    ("--eplb-config.num_redundant_experts 0", {}),
]


@every_row(("words", "said"), COMMANDS, at_least=25)
def test_an_option_says_what_it_means(words, said):
    found = read_command(f"{QWEN} {words}")
    assert (
        dict(found.question)
        == {"engine": "vllm", "model": "Qwen/Qwen3-8B", "tensor_parallel_size": 1, "on": "1xh100"} | said
    )
    assert found.document.is_sure, keys(found, "not understood")


UNCLEAR = [
    ("--kv-cache-memory-bytes 10G", "kv-cache-memory-bytes"),
    ("--max-model-len auto", "max-model-len"),
    ("--max-model-len -1", "max-model-len"),
    ("--no-async-scheduling", "async-scheduling"),
    ("--no-enable-chunked-prefill", "enable-chunked-prefill"),
    ("--block-size 32", "block-size"),
    ("--quantization torchao", "quantization"),
    ("--kv-cache-dtype turboquant_k8v4", "kv-cache-dtype"),
    ("--dtype float32", "dtype"),
    ("--attention-backend TRITON_ATTN", "attention-backend"),
    ("--cudagraph-capture-sizes 1 2 4", "cudagraph-capture-sizes"),
    (
        '--compilation-config \'{"pass_config": {"fuse_norm_quant": true}}\'',
        "compilation-config.pass_config.fuse_norm_quant",
    ),
    ('--hf-overrides \'{"vision_config": {"depth": 4}}\'', "hf-overrides.vision_config.depth"),
    (
        '--kv-transfer-config \'{"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"}\'',
        "kv-transfer-config.kv_connector",
    ),
    ('--kv-transfer-config \'{"kv_role": "kv_producer"}\'', "kv-transfer-config.kv_role"),
    ('--speculative-config \'{"method": "suffix", "num_speculative_tokens": 8}\'', "speculative-config.method"),
    ("another", "word 2"),
    ("--enforce-eagr", "enforce-eagr"),
]


@every_row(("words", "key"), UNCLEAR, at_least=18)
def test_what_may_change_memory_or_time_and_is_not_estimated_makes_the_verdict_unsure(words, key):
    found = read_command(f"{QWEN} {words}")
    assert keys(found, "not understood") == {key}
    assert not found.document.is_sure


def test_a_misspelled_option_gets_the_nearest():
    found = read_command(f"{QWEN} --max-model-length 4096")
    assert [key.why for key in found.document.keys if key.key == "max-model-length"] == [
        "no such key is known; did you mean max-model-len?"
    ]


WRONG = [
    ("--tensor-parallel-size two", "tensor-parallel-size must be a number. Got 'two'."),
    ("--tensor-parallel-size 0", "tensor-parallel-size must be a whole number from 1 on. Got '0'."),
    ("-tp 1.5", "tp must be a whole number. Got '1.5'."),
    ("--max-model-len -5", "max-model-len must be a number of tokens, or auto."),
    ("--dtype int8", "dtype must be one of"),
    ("--quantization fp9", "quantization must be one of fp8"),
    ("--kv-cache-dtype fp8_e4m4", "kv-cache-dtype must be one of fp8_e4m3"),
    ("--cpu-offload-gb -1", "cpu-offload-gb must be GiB of each accelerator from 0 on."),
    ("--speculative-config ngram", "speculative-config must be an object of JSON."),
    ('--speculative-config \'{"model": "a"}\'', "speculative-config needs num_speculative_tokens"),
    ("--speculative-config '{\"model\": '", "is not JSON"),
    ("--hf-overrides x", "hf-overrides must be an object of JSON."),
    ("--enforce-eager=maybe", "enforce-eager must be true or false."),
    (
        "-tp 3 --nnodes 2",
        "3 accelerators (tensor x pipeline x data parallel) are not shared evenly by the 2 nodes of nnodes.",
    ),
]


@every_row(("words", "text"), WRONG, at_least=12)
def test_a_wrong_value_is_refused_with_its_key(words, text):
    with pytest.raises(InvalidInput) as error:
        read_command(f"{QWEN} {words}")
    assert text in str(error.value)


def test_more_accelerators_than_there_are_is_refused_and_fewer_is_said():
    with pytest.raises(InvalidInput, match=r"takes 8 accelerators \(tensor-parallel-size\), and 4xh100 has 4"):
        read_command(f"{QWEN} -tp 8", on="4xh100")
    found = read_command(f"{QWEN} -tp 2", on="8xh100")
    assert "takes 2 of the 8 accelerators of 8xh100" in found.notes[0]
    assert found.question["on"] == "8xh100"


def test_a_node_that_is_named_keeps_its_own_number():
    assert read_command(f"{QWEN} -tp 8", on="dgx-h100").question["on"] == "dgx-h100"


def test_the_asker_is_stronger_than_the_file():
    found = read_file("vllm", "serve_llama_70b.sh", model="llama-3.1-8b", on="8xa100")
    assert (found.question["model"], found.question["on"]) == ("llama-3.1-8b", "8xa100")
    assert not found.origins.get("model")


def test_quantised_checkpoints_stay_as_they_are():
    found = read_command("vllm serve deepseek-ai/DeepSeek-V3 --quantization fp8 --dtype bfloat16 -tp 8")
    assert "weights" not in found.question
    assert keys(found, "ignored") == {"quantization", "dtype"}


def test_a_checkpoint_in_32_bits_is_loaded_in_16(tmp_path):
    import json

    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "float32"}
    sizes = {"hidden_size": 512, "num_hidden_layers": 2, "num_attention_heads": 8, "intermediate_size": 1024}
    more = {"vocab_size": 1000, "max_position_embeddings": 2048}
    (tmp_path / "config.json").write_text(json.dumps(config | sizes | more))
    found = read_command(f"vllm serve {tmp_path}")
    assert (found.question["weights"], found.question["kv_cache"]) == ("bf16", "bf16")
    assert "dtype" in keys(found, "assumed")


def test_data_parallel_ranks_of_a_mixture_share_its_experts_and_of_others_are_copies():
    mixture = read_command("vllm serve Qwen/Qwen3-30B-A3B -dp 4 -tp 2 --enable-expert-parallel")
    assert mixture.question["attention_data_parallel_size"] == 4
    assert mixture.question["expert_parallel_size"] == 8
    assert mixture.question["on"] == "8xh100"
    dense = read_command("vllm serve Qwen/Qwen3-8B -dp 4 -tp 2 --enable-expert-parallel")
    assert "attention_data_parallel_size" not in dense.question
    assert dense.question["on"] == "8xh100"


def test_servers_that_are_not_alike_make_the_verdict_unsure():
    text = (
        'vllm serve Qwen/Qwen3-8B -tp 2 --kv-transfer-config \'{"kv_connector":"P2P","kv_role":"kv_producer"}\'\n'
        "vllm serve Qwen/Qwen3-8B --max-num-seqs 64 "
        '--kv-transfer-config \'{"kv_connector":"P2P","kv_role":"kv_consumer"}\'\n'
    )
    found = read_text(text, "run.sh")
    assert keys(found, "not understood") == {"prefill: tp", "prefill: max-num-seqs", "prefill: accelerators"}
    assert found.question["prefill_replicas"] == 1


def test_several_models_are_refused():
    with pytest.raises(InvalidInput, match="starts several models: Qwen/Qwen3-14B, Qwen/Qwen3-8B"):
        read_text("vllm serve Qwen/Qwen3-8B &\nvllm serve Qwen/Qwen3-14B --port 1\n", "run.sh")


def test_ranks_of_one_server_on_several_nodes_are_one_server():
    line = "vllm serve Qwen/Qwen3-8B -tp 8 --nnodes 2 --master-addr a --node-rank"
    found = read_text(f"{line} 0\n{line} 1 --headless\n", "run.sh")
    assert found.question["on"] == "2x4xh100"


def test_commands_of_one_data_parallel_rank_each_are_one_server():
    line = f"{QWEN} -dp 2 --data-parallel-address a --data-parallel-rpc-port 1 --data-parallel-rank"
    found = read_text(f"{line} 0 --port 8000 &\n{line} 1 --port 8001 &\n", "run.sh")
    assert found.question["on"] == "2xh100"
    line = f"{QWEN} -dp 4 -dpl 2 --data-parallel-address a"
    found = read_text(f"{line}\n{line} --headless --data-parallel-start-rank 2\n", "run.sh")
    assert found.question["on"] == "2x2xh100"


def test_without_a_cache_of_prefixes_recurrent_states_are_not_counted_for_sure():
    words = "--no-enable-prefix-caching"
    assert read_command(f"{QWEN} {words}").document.is_sure
    found = read_command(f"vllm serve ibm-granite/granite-4.0-h-tiny {words}")
    assert keys(found, "not understood") == {"enable-prefix-caching"}


VARIABLES = [
    ("VLLM_LOGGING_LEVEL=DEBUG", True),
    ("VLLM_USE_V1=1", True),
    ("VLLM_USE_V1=0", False),
    ("VLLM_ATTENTION_BACKEND=FLASHINFER", True),
    ("VLLM_ATTENTION_BACKEND=XFORMERS", False),
    ("VLLM_PP_LAYER_PARTITION=20,16", False),
    ("VLLM_SOMETHING_NEW=1", False),
    ("HF_TOKEN=abc", True),
]


@every_row(("variable", "is_sure"), VARIABLES, at_least=8)
def test_variables_of_the_environment_count(variable, is_sure):
    assert read_text(f"export {variable}\n{QWEN}\n", "run.sh").document.is_sure == is_sure


STARTS = [
    "vllm serve Qwen/Qwen3-8B",
    "/opt/venv/bin/vllm serve Qwen/Qwen3-8B",
    "python3.12 -m vllm.entrypoints.openai.api_server --model Qwen/Qwen3-8B",
    "nohup uv run vllm serve --model Qwen/Qwen3-8B",
    "srun --gpus 1 env VLLM_USE_V1=1 vllm serve Qwen/Qwen3-8B",
    "docker exec server bash -lc 'vllm serve Qwen/Qwen3-8B'",
    "docker run --gpus all docker.io/vllm/vllm-openai:latest --model Qwen/Qwen3-8B",
]


@every_row("words", STARTS, at_least=6)
def test_it_is_recognised_however_it_is_started(words):
    assert set(signs_of(command_source([words], None))) == {"vllm"}
    assert read_command(words).question["model"] == "Qwen/Qwen3-8B"


@every_row("words", ["vllm bench serve --model a", "vllm --version", "echo vllm", "sglang serve a", "pip install vllm"])
def test_other_commands_are_not_taken_for_a_server(words):
    assert format_of("vllm").recognises(command_source([words], None)) == 0


def test_names_of_older_releases_are_read():
    found = read_command(
        f"{QWEN} --speculative-model Qwen/Qwen3-0.6B --num-speculative-tokens 3 --disable-log-requests"
    )
    assert found.question["draft_model"] == "Qwen/Qwen3-0.6B"
    assert found.origins["draft_tokens"] == ("num-speculative-tokens",)


def test_a_release_that_is_asked_for_is_that_of_the_engine():
    found = read_command(QWEN, version="0.8.5")
    assert (found.document.version, found.question["engine_version"]) == ("0.8.5", "0.8.5")


def test_every_option_is_known_once():
    table = vllm_options.TABLE
    lists = [table.ignored, set(table.harmless), set(table.unsure), set(table.counts), set(table.shares)]
    names = [name for one in lists for name in one]
    assert sorted(names) == sorted(set(names))
    assert not set(names) & (vllm_options.COMPUTED - {"optimization-level", "enable-prefix-caching"})


# Defaults of vllm 0.33.0: vllm/config/{cache,parallel,scheduler,lora,offload,vllm}.py of the wheel.
FACTS = {
    "async-scheduling": "true",
    "all2all-backend": "allgather_reducescatter",
    "block-size": "16",
    "dbo-decode-token-threshold": "32",
    "dbo-prefill-token-threshold": "512",
    "dp-sync-interval": "16",
    "elastic-ep-max-dp-size": "0",
    "kv-offloading-backend": "native",
    "linear-backend": "auto",
    "long-prefill-token-threshold": "0",
    "lora-dtype": "auto",
    "mamba-backend": "triton",
    "mamba-cache-dtype": "auto",
    "mamba-cache-mode": "none",
    "mm-encoder-tp-mode": "weights",
    "mm-ipc-gpu-memory-gb": "0",
    "mm-tensor-ipc": "direct_rpc",
    "model-impl": "auto",
    "moe-backend": "auto",
    "offload-backend": "auto",
    "offload-group-size": "0",
    "offload-num-in-group": "1",
    "offload-prefetch-step": "1",
    "optimization-level": "2",
    "performance-mode": "balanced",
    "prefill-schedule-interval": "1",
    "replayssm-buffer-len": "16",
    "runner": "auto",
    "scheduler-reserve-full-isl": "true",
    "sleep-mode-backend": "cumem",
    "swa-bounded-replay": "true",
    "ubatch-size": "0",
    "watermark": "0.0",
    "worker-cls": "auto",
}


@every_row(("key", "default"), FACTS.items(), at_least=30)
def test_the_default_of_an_option_changes_nothing(key, default):
    found = read_command(f"{QWEN} --{key}" if default == "true" else f"{QWEN} --{key} {default}")
    assert found.document.is_sure, keys(found, "not understood")


QUESTIONS = [
    {"model": "llama-3.1-8b", "on": "4xh100"},
    {"model": "llama-3.1-70b", "on": "4xh100", "weights": "fp8", "kv_cache": "fp8", "concurrency": 32, "context": 8192},
    {"model": "qwen3-30b-a3b", "on": "8xh200", "tensor_parallel_size": 2, "attention_data_parallel_size": 4,
     "expert_parallel_size": 8, "context": 32768, "max_num_seqs": 128},
    {"model": "deepseek-v3", "on": "2x8xh200", "tensor_parallel_size": 1, "attention_data_parallel_size": 16,
     "expert_parallel_size": 16, "context": 16384},
    {"model": "llama-3.1-8b", "on": "h100", "weights": "awq", "draft_tokens": 3, "draft_model": "llama-3.2-1b",
     "lora_adapters": 4, "acceptance": 0.7, "enforce_eager": True, "gpu_memory_utilization": 0.8},
    {"model": "llama-3.1-8b", "on": "4xl40s", "weights_on_host": "2GiB", "max_num_batched_tokens": 4096,
     "input_tokens": 512, "output_tokens": 128, "pipeline_parallel_size": 2},
    {"model": "llama-3.1-8b", "on": "h100", "speculative": "eagle3", "draft_tokens": 4},
    {"model": "llama-3.1-8b", "on": "h100", "speculative": "medusa", "draft_tokens": 3},
    {"model": "deepseek-v3", "on": "8xh200", "speculative": "ngram", "draft_tokens": 4},
    {"model": "deepseek-v3", "on": "8xh200", "draft_tokens": 1},
]  # fmt: skip


@every_row("question", QUESTIONS, at_least=6)
def test_what_is_written_asks_for_the_same_again(question):
    round_trip("vllm", question)


NAMES = sorted(format_of("vllm").known())


@settings(max_examples=150)
@given(st.dictionaries(st.sampled_from(NAMES), ODD, max_size=6), st.text(max_size=6))
def test_any_values_are_understood_or_refused(options, model):
    import json

    tree = {"max-model-len": 4096, "gpu-memory-utilization": 0.9, **options, "model": model or "qwen3-8b"}
    try:
        text = json.dumps(tree, allow_nan=False)
    except ValueError:
        return
    tried(lambda: read_text(text, "a.yaml", model="qwen3-8b", tool="vllm"))


@settings(max_examples=100)
@given(st.lists(st.one_of(st.sampled_from([f"--{name}" for name in NAMES]), st.text(max_size=5)), max_size=8))
def test_any_words_are_understood_or_refused(words):
    import shlex

    tried(lambda: read_command(shlex.join(["vllm", "serve", "qwen3-8b", *words]), model="qwen3-8b"))


@every_row(
    "text", ["", "[]", "- vllm\n", "null", "{}", "model: [1]\nmax-model-len: 1\n", "model:\nmax-model-len: {}\n"]
)
def test_files_without_sense_are_refused(text):
    assert tried(lambda: read_text(text, "a.yaml", tool="vllm", model="")) is None


def test_an_unknown_key_is_not_understood():
    found = read_text("model: qwen3-8b\nmax-model-len: 4096\nfrobnicate: 3\n", "a.yaml")
    assert keys(found, "not understood") == {"frobnicate"}


def test_a_file_of_another_engine_is_not_taken_for_one_of_vllm():
    assert signs_of(text_source("model-path: a\ntp-size: 2\nmem-fraction-static: 0.8\n", "a.yaml")) == {"sglang": 2}


test_any_question_is_written_and_read_again = odd_round_trips("vllm")


def test_plans_that_vllm_has_not_are_not_written():
    mixture = {"model": "qwen3-30b-a3b", "on": "8xh100", "tensor_parallel_size": 8, "expert_parallel_size": 2}
    with pytest.raises(InvalidInput, match=r"expert_parallel_size is 8 or 1\. Got 2"):
        export("vllm", "serve", mixture)
    dense = {"model": "llama-3.1-8b", "on": "8xh100", "attention_data_parallel_size": 2}
    with pytest.raises(InvalidInput, match="are whole copies"):
        export("vllm", "serve", dense)
    with pytest.raises(InvalidInput, match="vllm starts vllm"):
        export("vllm", "serve", {**dense, "engine": "sglang"})


def test_lengths_that_followed_from_a_context_nobody_asked_stand_in_the_comment():
    text = export("vllm", "serve", {"model": "llama-3.1-8b", "on": "h100", "output_tokens": 50}).text
    assert text.startswith("# tonnage: serve --on h100 --output-tokens 50 --input-tokens 1024\n")


def test_a_tier_of_host_memory_and_adapters_there_are_read():
    """vllm/config/cache.py: kv_offloading_size in GiB; vllm/config/lora.py: max_cpu_loras from max_loras on."""
    words = ["--kv-offloading-size 64", "--enable-lora --max-loras 2 --max-cpu-loras 20"]
    command = " ".join(["vllm serve Qwen/Qwen3-32B --tensor-parallel-size 2", *words])
    found = read_command(command).question
    read = {name: found[name] for name in ("kv_offload", "kv_offload_size", "lora_adapters", "lora_on_host")}
    assert read == {"kv_offload": "host", "kv_offload_size": "64GiB", "lora_adapters": 2, "lora_on_host": 20}
    alike = read_command(command.replace("--max-cpu-loras 20", "--max-cpu-loras 2")).question
    assert "lora_on_host" not in alike, "all of them are on the GPU"
