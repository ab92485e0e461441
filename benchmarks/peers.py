"""Peers beside us, in one run, on the same inputs: parameter counts, keys and values per token, and answers a second.

    python benchmarks/peers.py        # makes .venv/peers and installs them from PyPI the first time

llm-analysis is told the dimensions, since it has no other way without a network; 0.2.2, which PyPI has, knows feed-forward layers of
two matrices only. accelerate estimate-memory and hf-mem answer for
names on the Hub alone (they refuse local files), so that without a network there is nothing to compare.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

import tonnage
from tonnage.catalogue import model_file
from tonnage.estimate.serving import serving_memory
from tonnage.ops import Attention
from tonnage.spec import ServingPlan

PEERS = Path(__file__).parents[1] / ".venv" / "peers"
MODELS = (
    "llama-2-7b", "llama-3.1-8b", "llama-3.1-70b", "mistral-7b-v0.1", "qwen2.5-7b", "qwen3-32b", "gemma-3-27b-it", "mixtral-8x7b",
    "gpt2-xl", "deepseek-v3", "gpt-oss-120b",
)  # fmt: skip
# Runs in the peers' own environment: reads dimensions, writes its figures.
LLM_ANALYSIS = """
import json, sys, time
from llm_analysis.analysis import LLMAnalysis
from llm_analysis.config import ModelConfig, get_dtype_config_by_name, get_gpu_config_by_name
gpu, dtype = get_gpu_config_by_name("a100-sxm-80gb"), get_dtype_config_by_name("w16a16e16")
found = {}
for name, fields in json.load(sys.stdin).items():
    try:
        start = time.perf_counter()
        model = LLMAnalysis(ModelConfig(name=name, **fields), gpu, dtype, flops_efficiency=0.5)
        found[name] = {
            "parameters": model.get_num_params_total(),
            "kv_bytes_per_token": model.get_memory_kv_cache_per_layer(1, 1) * fields["num_layers"],
            "seconds": time.perf_counter() - start,
        }
    except Exception as error:
        found[name] = {"error": f"{type(error).__name__}: {error}"}
json.dump(found, sys.stdout)
"""


def dimensions(model: tonnage.Model) -> dict[str, object]:
    """What llm-analysis can be told of a model."""
    config = model.config.get("text_config", model.config)
    attention = next((op for block in model.decoder.blocks for op in block.ops if isinstance(op, Attention)), None)
    heads = attention.heads if attention else config["num_attention_heads"]
    return {
        "num_layers": model.num_layers, "n_head": heads, "hidden_dim": model.hidden_size, "vocab_size": model.vocab_size,
        "num_key_value_heads": attention.kv_heads if attention else heads,
        "ffn_embed_dim": config.get("moe_intermediate_size") or config.get("intermediate_size") or 4 * model.hidden_size,
        "expansion_ratio": 4, "model_type": config.get("model_type"),
        "moe_num_experts": config.get("num_local_experts") or config.get("n_routed_experts") or 1,
        "moe_top_k": config.get("num_experts_per_tok") or 1,
    }  # fmt: skip


def peers() -> Path:
    """The peers' environment, made when it is not there."""
    python = PEERS / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(PEERS)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "llm-analysis==0.2.2"]
        subprocess.run(install, check=True, stderr=subprocess.DEVNULL)
    return python


def main() -> None:
    models = {name: tonnage.read(name) for name in MODELS}
    told = json.dumps({name: dimensions(model) for name, model in models.items()})
    done = subprocess.run([str(peers()), "-c", LLM_ANALYSIS], input=told, capture_output=True, text=True, check=True)
    theirs = json.loads(done.stdout[done.stdout.index("{") :])
    print(
        f"{'model':<18} {'published':>16} {'tonnage':>9} {'llm-analysis':>13}   {'KV bytes a token':>16} {'llm-analysis':>13}"
    )
    for name, model in models.items():
        published, drafts = _published(name)
        start = time.perf_counter()
        rank = serving_memory(model, ServingPlan(context=1024)).fullest
        ours = time.perf_counter() - start
        peer = theirs[name]
        count = "error" if "error" in peer else f"{100 * (peer['parameters'] / published - 1):+.1f} %"
        cache = "error" if "error" in peer else f"{peer['kv_bytes_per_token'] / rank.kept_per_token.value:.2f} x"
        exact = f"{100 * (model.num_parameters(drafts) / published - 1):+.1f} %"
        print(
            f"{name:<18} {published:>16,} {exact:>9} {count:>13}   {rank.kept_per_token.value:>16,.0f} {cache:>13}   {ours * 1e3:.2f} ms"
        )


def _published(name: str) -> tuple[int, bool]:
    """The exact published count, and whether it holds multi-token-prediction layers."""
    return next(
        (one.parameters, one.counts == "all") for one in model_file(name).published if isinstance(one.parameters, int)
    )


if __name__ == "__main__":
    main()
