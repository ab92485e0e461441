"""`tonnage check` of TensorRT-LLM's commands and files."""

import pytest
from engine_cases import (
    Golden,
    check_golden,
    keys,
    odd_values,
    odd_words,
    read_command,
    read_text,
    signs_of,
)

from every_row import every_row
from tonnage.interchange.formats import format_of
from tonnage.interchange.source import command_source, text_source
from tonnage.kernel.errors import InvalidInput

SHARE = "kv_cache_config.free_gpu_memory_fraction"
GOLDEN = {
    "serve.sh": Golden(
        on="h100",
        question={
            "engine": "tensorrt-llm",
            "model": "meta-llama/Llama-3.1-70B-Instruct",
            "tensor_parallel_size": 4,
            "kv_cache": "fp8",
            "max_num_seqs": 128,
            "max_num_batched_tokens": 4096,  # the file is stronger than the command
            "context": 16384,
            "gpu_memory_utilization": 0.85,
            "on": "4xh100",
        },
    ),
    "deepseek.yaml": Golden(
        on="h200",
        question={
            "engine": "tensorrt-llm",
            "model": "deepseek-ai/DeepSeek-R1",
            "attention_data_parallel_size": 8,
            "tensor_parallel_size": 1,
            "expert_parallel_size": 8,
            "kv_cache": "fp8",
            "draft_tokens": 3,
            "max_num_seqs": 1024,
            "max_num_batched_tokens": 3200,
            "gpu_memory_utilization": 0.8,
            "on": "8xh200",
        },
        unclear="cuda_graph_config.batch_sizes",
    ),
    "disagg.yaml": Golden(
        on="h100",
        question={
            "engine": "tensorrt-llm",
            "model": "Qwen/Qwen3-8B",
            "tensor_parallel_size": 2,
            "prefill_replicas": 1,
            "on": "6xh100",
        },
        assumed=SHARE,
    ),
    "disaggregated.sh": Golden(
        on="h100",
        question={
            "engine": "tensorrt-llm",
            "model": "Qwen/Qwen3-8B",
            "tensor_parallel_size": 2,
            "prefill_replicas": 1,
            "on": "6xh100",
        },
        assumed=SHARE,
    ),
    "slurm_step.sh": Golden(
        on="h200",
        question={
            "engine": "tensorrt-llm",
            "model": "deepseek-ai/DeepSeek-V3",
            "tensor_parallel_size": 16,
            "expert_parallel_size": 4,
            "on": "16xh200",
        },
        assumed=SHARE,
        unclear="max_beam_width",
    ),
}


@every_row(("name", "golden"), GOLDEN.items(), at_least=5)
def test_a_file_asks_exactly_its_question(name, golden):
    check_golden("tensorrt-llm", name, golden)


QWEN = "trtllm-serve Qwen/Qwen3-8B"
COMMANDS = [
    ("--tp_size 2 --pp_size 2", {"tensor_parallel_size": 2, "pipeline_parallel_size": 2, "on": "4xh100"}),
    ("--max_seq_len 4096 --max_batch_size 8", {"context": 4096, "max_num_seqs": 8}),
    ("--kv_cache_free_gpu_memory_fraction 0.5", {"gpu_memory_utilization": 0.5}),
    ("--free_gpu_memory_fraction 0.5", {"gpu_memory_utilization": 0.5}),
    ("--backend pytorch --max_beam_width 1 --log_level info", {}),
]


@every_row(("words", "said"), COMMANDS, at_least=5)
def test_an_option_says_what_it_means(words, said):
    found = read_command(f"{QWEN} {words}")
    base = {"engine": "tensorrt-llm", "model": "Qwen/Qwen3-8B", "tensor_parallel_size": 1, "on": "1xh100"}
    assert dict(found.question) == base | said
    assert found.document.is_sure, keys(found, "not understood")


FILES = [
    # a file of settings, options that come of it, keys that are not understood
    ("cuda_graph_config: null", {"enforce_eager": True}, ""),
    ("kv_cache_config: {dtype: auto, tokens_per_block: 32, host_cache_size: 0}", {}, ""),
    ("kv_cache_config: {max_tokens: 1000}", {}, "kv_cache_config.max_tokens"),
    ("kv_cache_config: {tokens_per_block: 64}", {}, "kv_cache_config.tokens_per_block"),
    ("moe_config: {backend: WIDEEP}", {}, "moe_config.backend"),
    ("disable_overlap_scheduler: true", {}, "disable_overlap_scheduler"),
    ("lora_config: {max_lora_rank: 8, max_loras: 2}", {"lora_adapters": 2, "lora_rank": 8}, ""),
    ("speculative_config: {decoding_type: NGram, max_draft_len: 4}", {"draft_tokens": 4, "speculative": "ngram"}, ""),
    (
        "speculative_config: {decoding_type: Draft_Target, max_draft_len: 4, speculative_model: Qwen/Qwen3-0.6B}",
        {"draft_model": "Qwen/Qwen3-0.6B", "draft_tokens": 4},
        "",
    ),
    ("speculative_config: {decoding_type: Medusa}", {}, "speculative_config.decoding_type"),
    ("model_kwargs: {num_hidden_layers: 4}", {"num_hidden_layers": 4}, ""),
    ("dtype: float16", {"weights": "fp16"}, ""),
    ("moe_tensor_parallel_size: 1", {}, ""),
    ("frobnicate: 1", {}, "frobnicate"),
]


@every_row(("text", "said", "unclear"), FILES, at_least=14)
def test_a_key_of_a_file_says_what_it_means(text, said, unclear):
    found = read_text(f"model: Qwen/Qwen3-8B\nmax_seq_len: 4096\nprint_iter_log: true\n{text}\n", "a.yaml")
    base = {"engine": "tensorrt-llm", "model": "Qwen/Qwen3-8B", "tensor_parallel_size": 1, "context": 4096}
    assert dict(found.question) == {**base, "on": "1xh100"} | said
    assert keys(found, "not understood") == ({unclear} if unclear else set())


WRONG = [
    (f"{QWEN} --tp_size x", "tp_size must be a number. Got 'x'."),
    (f"{QWEN} --max_batch_size 0", "max_batch_size must be a whole number from 1 on."),
    ("trtllm-serve disaggregated", "trtllm-serve disaggregated needs -c FILE.yaml."),
    (f"{QWEN} --config none.yaml", "names a file, which cannot be read here"),
]


@every_row(("words", "text"), WRONG, at_least=4)
def test_a_wrong_value_is_refused_with_its_key(words, text):
    with pytest.raises(InvalidInput) as error:
        read_command(words)
    assert text in str(error.value)


def test_parts_of_experts_must_be_all_ranks():
    with pytest.raises(InvalidInput, match="must be the 8 ranks of tensor_parallel_size"):
        read_text(
            "model: a\ntensor_parallel_size: 8\nmoe_expert_parallel_size: 2\nmoe_tensor_parallel_size: 2\n",
            "a.yaml",
            tool="tensorrt-llm",
        )


def test_it_is_recognised_and_only_read():
    assert set(signs_of(command_source([f"mpirun -n 2 {QWEN}"], None))) == {"tensorrt-llm"}
    assert set(signs_of(text_source("kv_cache_config:\n  dtype: fp8\n", "a.yaml"))) == {"tensorrt-llm"}
    assert format_of("tensorrt-llm").write is None


NAMES = format_of("tensorrt-llm").known()
test_any_values_are_understood_or_refused = odd_values(
    "tensorrt-llm", "a.yaml", {"model": "a", "max_seq_len": 2, "kv_cache_config": {"dtype": "fp8"}}, NAMES
)
test_any_words_are_understood_or_refused = odd_words("trtllm-serve qwen3-8b", NAMES)
