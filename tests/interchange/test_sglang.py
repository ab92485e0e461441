"""`tonnage check` and `tonnage export` of SGLang's commands and files."""

import pytest
from engine_cases import (
    Golden,
    check_golden,
    keys,
    odd_round_trips,
    odd_values,
    odd_words,
    read_command,
    read_text,
    round_trip,
    signs_of,
)

from every_row import every_row
from tonnage.interchange.formats import format_of
from tonnage.interchange.parts.engines import sglang_options
from tonnage.interchange.source import command_source
from tonnage.kernel.errors import InvalidInput

SHARE = "mem-fraction-static"
GOLDEN = {
    "deepseek.sh": Golden(
        on="h200",
        question={
            "engine": "sglang",
            "model": "deepseek-ai/DeepSeek-V3",
            "context": 32768,
            "attention_data_parallel_size": 16,
            "tensor_parallel_size": 1,
            "expert_parallel_size": 16,
            "max_num_batched_tokens": 16384,
            "draft_tokens": 1,
            "gpu_memory_utilization": 0.85,
            "on": "2x8xh200",
        },
    ),
    "llama_four_copies.sh": Golden(
        on="h100",
        question={
            "engine": "sglang",
            "model": "meta-llama/Llama-3.1-8B-Instruct",
            "kv_cache": "fp8_e5m2",
            "max_num_seqs": 128,
            "tensor_parallel_size": 1,
            "on": "4xh100",
        },
        assumed=f"tp-size {SHARE}",
    ),
    "prefill_and_decode.sh": Golden(
        on="h100",
        question={
            "engine": "sglang",
            "model": "Qwen/Qwen3-32B",
            "tensor_parallel_size": 2,
            "prefill_replicas": 1,
            "on": "6xh100",
        },
        assumed=SHARE,
    ),
    "lora.sh": Golden(
        on="h100",
        question={
            "engine": "sglang",
            "model": "meta-llama/Llama-3.1-8B",
            "weights": "fp8",
            "lora_adapters": 2,
            "lora_rank": 64,
            "draft_model": "jamesliu1/sglang-EAGLE3-Llama-3.1-Instruct-8B",
            "speculative": "eagle3",
            "draft_tokens": 5,
            "tensor_parallel_size": 1,
            "on": "1xh100",
        },
        assumed=f"tp-size {SHARE}",
        unclear="speculative-num-draft-tokens|speculative-eagle-topk|cuda-graph-max-bs",
    ),
    "server.yaml": Golden(
        on="h100",
        question={
            "engine": "sglang",
            "model": "Qwen/Qwen3-30B-A3B",
            "tensor_parallel_size": 4,
            "expert_parallel_size": 4,
            "enforce_eager": True,
            "num_hidden_layers": 12,
            "gpu_memory_utilization": 0.8,
            "on": "4xh100",
        },
    ),
}


@every_row(("name", "golden"), GOLDEN.items(), at_least=5)
def test_a_file_asks_exactly_its_question(name, golden):
    check_golden("sglang", name, golden)


QWEN = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B"
COMMANDS = [
    ("--context-length 8192", {"context": 8192}),
    ("--tp 2 --pp-size 2", {"tensor_parallel_size": 2, "pipeline_parallel_size": 2, "on": "4xh100"}),
    ("--tensor-parallel-size 4 --nnodes 2 --node-rank 0", {"tensor_parallel_size": 4, "on": "2x2xh100"}),
    ("--data-parallel-size 2", {"on": "2xh100"}),
    ("--tp 8 --attn-dp-size 4", {"tensor_parallel_size": 2, "attention_data_parallel_size": 4, "on": "8xh100"}),
    ("--tp 4 --enable-ep-moe", {"tensor_parallel_size": 4, "expert_parallel_size": 4, "on": "4xh100"}),
    ("--dtype half", {"weights": "fp16"}),
    ("--kv-cache-dtype bf16", {"kv_cache": "bf16"}),
    ("--quantization w8a8_fp8", {}),
    ("--quantization mxfp8", {"weights": "mxfp8"}),
    ("--disable-cuda-graph", {"enforce_eager": True}),
    ("--chunked-prefill-size 4096 --max-running-requests 64", {"max_num_batched_tokens": 4096, "max_num_seqs": 64}),
    ("--mem-fraction-static 0.7", {"gpu_memory_utilization": 0.7}),
    ("--cpu-offload-gb 8", {"weights_on_host": "8GiB"}),
    ("--enable-lora --max-lora-rank 8", {"lora_adapters": 8, "lora_rank": 8}),
    ("--speculative-algorithm NEXTN", {"draft_tokens": 3}),
    ("--speculative-algorithm NGRAM --speculative-num-draft-tokens 5", {"draft_tokens": 4, "speculative": "ngram"}),
    (
        "--speculative-algorithm STANDALONE --speculative-draft Qwen/Qwen3-0.6B --speculative-num-steps 4",
        {"draft_model": "Qwen/Qwen3-0.6B", "draft_tokens": 4},
    ),
    (
        (
            "--kt-weight-path EXPERTS --kt-method AMXINT8 --kt-cpuinfer 64 --kt-threadpool-count 2 "
            "--kt-num-gpu-experts 32 --kt-max-deferred-experts-per-token 0"
        ),
        {"engine": "ktransformers", "host_method": "AMXINT8", "gpu_experts": 32, "host_cores": 64},
    ),
    (
        "--kt-weight-path Qwen/Qwen3-8B --kt-method FP8 --kt-num-gpu-experts 0 --kt-gpu-prefill-token-threshold 400",
        {"engine": "ktransformers", "host_method": "FP8", "gpu_prefill_tokens": 400},
    ),
    ("--moe-runner-backend auto --page-size 1 --schedule-policy lpm --disable-radix-cache", {}),
]


@every_row(("words", "said"), COMMANDS, at_least=18)
def test_an_option_says_what_it_means(words, said):
    found = read_command(f"{QWEN} {words}")
    base = {"engine": "sglang", "model": "Qwen/Qwen3-8B", "tensor_parallel_size": 1, "on": "1xh100"}
    assert dict(found.question) == base | said
    assert found.document.is_sure, keys(found, "not understood")


def test_the_limit_of_images_and_the_balancing_of_experts_leave_the_verdict_sure():
    found = read_command(f"{QWEN} --enable-eplb --limit-mm-data-per-request '{{\"image\": 4}}'")
    assert found.document.is_sure
    assert keys(found, "ignored") == {"enable-eplb", "limit-mm-data-per-request.image"}


UNCLEAR = [
    ("--max-total-tokens 100000", "max-total-tokens"),
    ("--chunked-prefill-size -1", "chunked-prefill-size"),
    ("--page-size 64", "page-size"),
    ("--attention-backend triton", "attention-backend"),
    ("--moe-a2a-backend deepep --tp 8", "moe-a2a-backend"),
    ("--enable-hierarchical-cache", "enable-hierarchical-cache"),
    ("--disaggregation-mode decode", "disaggregation-mode"),
    ("--speculative-algorithm DFLASH", "speculative-algorithm"),
    ("--quantization mxfp4", "quantization"),
    ("--lora-paths a=b", "lora-paths"),
    ("--enable-two-batch-overlap", "enable-two-batch-overlap"),
    ("--mem-fraction 0.8", "mem-fraction"),
]


@every_row(("words", "key"), UNCLEAR, at_least=12)
def test_what_may_change_memory_or_time_and_is_not_estimated_makes_the_verdict_unsure(words, key):
    assert keys(read_command(f"{QWEN} {words}"), "not understood") == {key}


WRONG = [
    ("--tp eight", "tp must be a number. Got 'eight'."),
    ("--tp 8 --attn-dp-size 3", "attn-dp-size must divide the 8 ranks of tp-size. Got 3."),
    ("--kv-cache-dtype fp8", "kv-cache-dtype must be one of"),
    ("--quantization fp9", "quantization must be one of"),
    ("--speculative-algorithm EAGLE3", "speculative-algorithm eagle3 needs speculative-draft-model-path."),
    ("--disaggregation-mode both", "disaggregation-mode must be one of"),
    ("--json-model-override-args x", "json-model-override-args must be an object of JSON."),
    ("--tp 3 --nnodes 2", "are not shared evenly by the 2 nodes of nnodes."),
]


@every_row(("words", "text"), WRONG, at_least=8)
def test_a_wrong_value_is_refused_with_its_key(words, text):
    with pytest.raises(InvalidInput) as error:
        read_command(f"{QWEN} {words}")
    assert text in str(error.value)


def test_both_programs_are_recognised_and_no_other():
    for words in (QWEN, "sglang serve Qwen/Qwen3-8B", "python3 -m sglang.launch_server --model a"):
        assert set(signs_of(command_source([words], None))) == {"sglang"}
    assert not signs_of(command_source(["python -m sglang.bench_serving --backend sglang"], None))


def test_variables_of_the_environment_count():
    assert read_text(f"SGLANG_USE_MODELSCOPE=1 {QWEN}\n", "a.sh").document.is_sure
    assert not read_text(f"SGLANG_ENABLE_SPEC_V2=1 {QWEN}\n", "a.sh").document.is_sure


# Defaults of sglang 0.5.23: sglang/srt/arg_groups/fields of the wheel.
FACTS = {
    "attn-cp-size": "1",
    "bf16-gemm-backend": "auto",
    "boundary-reduction": "auto",
    "c128-page-size": "16",
    "dcp-size": "1",
    "decoupled-spec-role": "null",
    "deepep-dispatcher-output-dtype": "auto",
    "deepep-mode": "auto",
    "deepep-v2-mode": "direct",
    "disaggregation-mode": "null",
    "dllm-fdfo": "True",
    "dsa-paged-mqa-logits-backend": "auto",
    "dsa-topk-backend": "sgl-kernel",
    "dsa-triton-union": "0",
    "dsv4-attn-backend": "auto",
    "dsv4-prefill-backend": "auto",
    "dwdp-size": "1",
    "elastic-ep-join-rank-offset": "0",
    "encoder-transfer-backend": "auto",
    "ep-num-redundant-experts": "0",
    "flashinfer-mxfp4-moe-precision": "default",
    "fp4-gemm-backend": "auto",
    "fp8-gemm-backend": "auto",
    "fuseep-mode": "2",
    "hicache-host-memory-fraction": "0.8",
    "hicache-host-memory-mode": "cache",
    "hicache-io-backend": "kernel",
    "hicache-mem-layout": "page_first",
    "hicache-size": "0",
    "hicache-storage-prefetch-policy": "timeout",
    "hicache-storage-prefetch-retry-max-attempts": "8",
    "hicache-storage-prefetch-retry-poll-interval": "8",
    "hicache-write-policy": "write_through",
    "is-embedding": "False",
    "kt-method": "AMXINT4",
    "kt-threadpool-count": "2",
    "linear-attn-backend": "triton",
    "linear-replayssm-cache-len": "16",
    "mamba-backend": "triton",
    "mamba-cache-philox-rounds": "0",
    "mamba-max-states-per-path": "-1",
    "mamba-radix-cache-strategy": "auto",
    "mamba-track-interval": "256",
    "max-prefill-tokens": "16384",
    "mm-global-cache-backend": "mooncake",
    "model-impl": "auto",
    "moe-a2a-backend": "none",
    "moe-dp-size": "1",
    "moe-runner-backend": "auto",
    "num-continuous-decode-steps": "1",
    "num-reserved-decode-tokens": "512",
    "offload-group-size": "-1",
    "offload-mode": "cpu",
    "offload-num-in-group": "1",
    "offload-prefetch-step": "1",
    "optimistic-prefill-attempts": "0",
    "ple-offload-backend": "pinned",
    "pp-async-batch-depth": "0",
    "prefill-decode-interval-min-bs": "0",
    "prefill-delayer-max-delay-passes": "30",
    "prefill-kv-cache-dequant-dtype": "auto",
    "qsa-indexer-dtype": "auto",
    "sampling-mask-max-tokens": "4096",
    "schedule-conservativeness": "1.0",
    "scheduler-recv-interval": "1",
    "sm-group-num": "8",
    "speculative-attention-mode": "prefill",
    "speculative-domino-candidate-pool-size": "2048",
    "speculative-dsa-topk-backend": "sgl-kernel",
    "tbo-token-distribution-threshold": "0.48",
    "torch-compile-max-bs": "32",
    "triton-attention-num-kv-splits": "8",
    "unified-cache-external-linker-backend": "mooncake",
}


@every_row(("key", "default"), FACTS.items(), at_least=40)
def test_the_default_of_an_option_changes_nothing(key, default):
    found = read_command(f"{QWEN} --{key}={default}")
    assert found.document.is_sure, keys(found, "not understood")


def test_every_option_is_known_once():
    table = sglang_options.TABLE
    lists = [table.ignored, set(table.harmless), set(table.unsure), set(table.counts), set(table.shares)]
    names = [name for one in lists for name in one]
    assert sorted(names) == sorted(set(names))
    assert not set(names) & (sglang_options.COMPUTED - {"disaggregation-mode"})


QUESTIONS = [
    {"model": "llama-3.1-8b", "on": "4xh100"},
    {
        "model": "deepseek-v3",
        "on": "2x8xh200",
        "tensor_parallel_size": 1,
        "attention_data_parallel_size": 16,
        "expert_parallel_size": 16,
        "context": 32768,
        "draft_tokens": 2,
        "acceptance": 0.8,
    },
    {
        "model": "qwen3-32b",
        "on": "8xh100",
        "tensor_parallel_size": 2,
        "weights": "fp8",
        "kv_cache": "fp8",
        "concurrency": 64,
        "context": 8192,
        "max_num_seqs": 32,
        "max_num_batched_tokens": 4096,
    },
    {
        "model": "llama-3.1-8b",
        "on": "l40s",
        "lora_adapters": 4,
        "lora_rank": 32,
        "enforce_eager": True,
        "gpu_memory_utilization": 0.8,
        "weights_on_host": "2GiB",
    },
    {"model": "llama-3.1-8b", "on": "h100", "draft_tokens": 3, "draft_model": "llama-3.2-1b", "acceptance": 0.7},
    {"model": "llama-3.1-8b", "on": "h100", "speculative": "eagle3", "draft_tokens": 4},
    {"model": "llama-3.1-8b", "on": "h100", "speculative": "ngram", "draft_tokens": 4},
]


@every_row("question", QUESTIONS, at_least=5)
def test_what_is_written_asks_for_the_same_again(question):
    round_trip("sglang", question)


NAMES = format_of("sglang").known()
test_any_values_are_understood_or_refused = odd_values(
    "sglang", "a.yaml", {"model-path": "a", "tp-size": 2, "mem-fraction-static": 0.8}, NAMES
)
test_any_words_are_understood_or_refused = odd_words("sglang serve qwen3-8b", NAMES)
test_any_question_is_written_and_read_again = odd_round_trips("sglang")
