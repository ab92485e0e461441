"""Questions that every face is asked, with what they need that a browser has not."""

from typing import Any, NamedTuple

TINY = {
    "model_type": "llama",
    "hidden_size": 512,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "intermediate_size": 1536,
    "vocab_size": 32000,
    "max_position_embeddings": 4096,
    "architectures": ["LlamaForCausalLM"],
}


class Asked(NamedTuple):
    """`needs`: a package that no browser has."""

    verb: str
    question: dict[str, Any]
    needs: str = ""


QUESTIONS = (
    Asked("train", {"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB"}),
    Asked(
        "train",
        {
            "model": "llama-3.1-8b",
            "on": "8xH100-SXM-80GB",
            "sequence_length": "16k",
            "recompute": "full",
            "tokens": "1T",
            "grid": "Norway",
        },
    ),
    Asked(
        "train",
        {
            "model": "deepseek-v3",
            "on": "32x8xH800-SXM-80GB",
            "runtime": "megatron",
            "pipeline_parallel_size": 16,
            "expert_parallel_size": 16,
            "recompute": "full",
        },
    ),
    Asked(
        "train",
        {
            "model": "mixtral-8x7b",
            "on": "2x8xA100-SXM-80GB",
            "runtime": "deepspeed",
            "zero_stage": 3,
            "offload_optimizer": "cpu",
        },
    ),
    Asked(
        "train", {"model": "qwen3-8b", "on": "rtx-4090", "method": "qlora", "sequence_length": 2048, "lora_rank": 32}
    ),
    Asked(
        "train",
        {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 128256, "on": "4090"},
    ),
    Asked("train", {"model": "gpt2", "on": "t4", "sequence_parallel": False, "micro_batch_size": 4.0}),
    Asked("serve", {"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB"}),
    Asked(
        "serve",
        {
            "model": "llama-3.1-70b",
            "on": "8xH100-SXM-80GB",
            "weights": "fp8",
            "concurrency": 64,
            "input_tokens": 2000,
            "output_tokens": 400,
            "ttft": "1s",
            "tpot": "25ms",
        },
    ),
    Asked("serve", {"model": "qwen3-32b", "on": "rtx-4090", "weights": "Q4_K_M", "context": "8k"}),
    Asked("serve", {"model": "deepseek-v3", "on": "8xH200-SXM-141GB", "request_rate": 2.5}),
    Asked("serve", {"for_my_machine": True, "on": "rtx-4060-ti", "context": "64k"}),
    Asked("serve", {"model": "llama-3.1-8b", "on": "8xh100", "frontier": True, "points": 4}, "numpy"),
    Asked(
        "serve",
        {
            "model": "llama-3.1-8b",
            "on": "8xh100",
            "concurrency": 16,
            "input_tokens": 500,
            "output_tokens": 200,
            "simulate": True,
        },
        "numpy",
    ),
    Asked("max", {"what": "context", "model": "llama-3.1-8b", "on": "rtx-4090", "kv_cache": "fp8"}),
    Asked("max", {"what": "sequence", "model": "llama-3.1-8b", "on": "8xh100"}),
    Asked("max", {"what": "model", "on": "rtx-4090", "train": True}),
    Asked(
        "compare",
        {"model": "llama-3.1-8b", "on": "h100,a100,rtx-4090", "context": ["8k", "32k"], "weights": ["own", "fp8"]},
    ),
    Asked(
        "compare",
        {"model": "llama-3.1-8b", "train": True, "on": "8xh100", "sequence_parallel": [True, False], "tokens": "1T"},
    ),
    Asked("plan", {"model": "llama-3.2-1b", "on": "8xh100", "runtime": "fsdp2", "top": 2}, "numpy"),
    Asked("plan", {"model": "llama-3.1-8b", "serve": True, "on": "h100,l4", "concurrency": 8, "top": 2}, "numpy"),
    Asked("explain", {"name": "kv_cache_bytes"}),
    Asked("explain", {"name": "A6"}),
    Asked("explain", {}),
    Asked("rules", {"names": ["B"], "model": "mixtral-8x7b"}),
    Asked("models", {"model": "mixtral-8x7b"}),
    Asked("accelerators", {"name": "h100"}),
    Asked("prices", {"name": "h100"}),
)
# What a command line cannot hold: the content of a file. Every other face takes it.
PASTED = Asked("train", {"model": TINY, "on": "8xh100", "sequence_length": 1024})


def name_of(asked: Asked) -> str:
    return (
        f"{asked.verb} "
        f"{' '.join(f'{name}={value}' for name, value in asked.question.items() if not isinstance(value, dict))}"
    )[:70]
