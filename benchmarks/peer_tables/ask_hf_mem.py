"""Runs in the environment of hf-mem alone: bytes of keys and values of one request, of configs instead of names.

hf-mem takes names on the Hub and asks it. What it does with a config is this function of its own, given the part of the
config that it takes.
"""

import json
import sys

from hf_mem.safetensors.kv_cache import compute_safetensors_kv_cache_size


def kept(config: dict, tokens: int) -> int:
    multimodal = any("ForConditionalGeneration" in name for name in config["architectures"])
    taken = config["text_config"] if multimodal and "text_config" in config else config
    return compute_safetensors_kv_cache_size(taken, cache_dtype="BF16", max_model_len=tokens, batch_size=1)


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    answers = {name: kept(config, asked["tokens"]) for name, config in asked["configs"].items()}
    print("\nANSWERS")
    json.dump(answers, sys.stdout)
