"""Other tools beside tonnage in one run: a whole process, one answer in-process, and answers a second in a loop."""

import json
import sys
from pathlib import Path
from typing import Any

import tonnage
from peer_tables import live
from speed_lines.checkouts import Checkout, NotMeasured, run
from speed_lines.measure import Sizes

SCRIPT = Path(__file__).with_name("ask_tool.py")
MODEL = "llama-3.1-8b"
TRAINING, SERVING = "training", "serving"
# The verb that each is held against, and what its answer says.
SAYS = {
    "llm-analysis": (TRAINING, "memory and time of a step, for a share of the peak that it is told; no cost"),
    "accelerate": (
        TRAINING,
        "four times the weights, of a model that it builds without data; no activations, time or cost",
    ),
    "fitcheck-llm": (TRAINING, "memory on one GPU, the largest batch, hints; no time or cost"),
    "hf-mem": (SERVING, "weights and KV cache, of headers that it would ask the Hub for; no time or cost"),
    "kvfit": (SERVING, "weights, KV cache and users by layout; no time or cost"),
    "aiconfigurator": (SERVING, "TTFT and TPOT by measured kernels; no cost"),
}
OURS = {
    TRAINING: ("train", ("train", MODEL, "--on", "8xH100-SXM-80GB", "--no-advice", "--json")),
    SERVING: ("serve", ("serve", MODEL, "--on", "1xH100-SXM-80GB", "--no-advice", "--json")),
}


def questions() -> dict[str, dict[str, Any]]:
    """What each tool is asked about one model: dimensions, its config, or the headers of its weights."""
    model = tonnage.read(MODEL, offline=True)
    config = dict(model.config)
    tensors = weights(config)
    sizes = {
        "name": MODEL,
        "num_params": model.num_parameters(),
        "hidden_size": config["hidden_size"],
        "num_layers": config["num_hidden_layers"],
        "num_attention_heads": config["num_attention_heads"],
        "num_kv_heads": config["num_key_value_heads"],
        "intermediate_size": config["intermediate_size"],
        "vocab_size": config["vocab_size"],
        "head_dim": config["hidden_size"] // config["num_attention_heads"],
        "tie_word_embeddings": False,
    }
    return {
        "llm-analysis": {"model": live.dimensions(model)},
        "accelerate": {"config": config},
        "fitcheck-llm": {"model": sizes},
        "hf-mem": {"config": config, "tensors": tensors},
        "kvfit": {"config": config, "weights": 2 * model.num_parameters()},
        "aiconfigurator": {
            "model_path": "meta-llama/Meta-Llama-3.1-8B",
            "system_name": "h100_sxm",
            "backend_name": "vllm",
            "isl": 1024,
            "osl": 256,
            "batch_size": 16,
            "tp_size": 1,
            "kvcache_quant_mode": "bfloat16",
        },
    }


def weights(config: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The header of a Llama's weights, as hf-mem reads it from safetensors."""
    hidden, inner, words = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    kept = hidden // config["num_attention_heads"] * config["num_key_value_heads"]
    layer = {
        "self_attn.q_proj": [hidden, hidden],
        "self_attn.k_proj": [kept, hidden],
        "self_attn.v_proj": [kept, hidden],
        "self_attn.o_proj": [hidden, hidden],
        "mlp.gate_proj": [inner, hidden],
        "mlp.up_proj": [inner, hidden],
        "mlp.down_proj": [hidden, inner],
        "input_layernorm": [hidden],
        "post_attention_layernorm": [hidden],
    }
    shapes = {"model.embed_tokens": [words, hidden], "model.norm": [hidden], "lm_head": [words, hidden]}
    for number in range(config["num_hidden_layers"]):
        shapes |= {f"model.layers.{number}.{name}": shape for name, shape in layer.items()}
    return {f"{name}.weight": {"dtype": "BF16", "shape": shape} for name, shape in shapes.items()}


def measured(checkout: Checkout, sizes: Sizes) -> dict[str, Any]:
    """Every tool and tonnage; a tool that cannot be installed or does not answer says why."""
    found: dict[str, Any] = {}
    for tool, question in questions().items():
        try:
            found[tool] = _tool(tool, json.dumps(question), sizes)
        except (live.NoPeer, NotMeasured) as problem:
            found[tool] = {"missing": " ".join(str(problem).split())[:200]}
        print(tool, found[tool], file=sys.stderr, flush=True)
    return {"tools": found, "tonnage": {kind: _ours(checkout, kind, sizes) for kind in OURS}}


def _tool(tool: str, question: str, sizes: Sizes) -> dict[str, Any]:
    python = str(live.python_of(tool))
    command = (python, "-P", str(SCRIPT), tool)
    wholes = [run((*command, "once"), question) for _ in range(max(1, sizes.processes))]
    looped = json.loads(run((*command, str(sizes.loop)), question).printed.splitlines()[-1])
    return {
        "version": live.INSTALLED[tool][-1 if tool != "accelerate" else 1].partition("==")[2],
        "said": json.loads(wholes[0].printed.splitlines()[-1])["said"],
        "process": min(one.cpu for one in wholes),
        "process wall": min(one.wall for one in wholes),
        "answer": looped["seconds"],
        "rate": looped["answers per second"],
    }


def _ours(checkout: Checkout, kind: str, sizes: Sizes) -> dict[str, Any]:
    """tonnage without suggestions, which no other tool has: memory, time and cost, summary and full document."""
    verb, words = OURS[kind]
    wholes = [checkout.command(*words) for _ in range(max(1, 3 * sizes.processes))]
    looped = checkout.probe("loop", verb, str(sizes.loop))
    return {
        "process": min(one.cpu for one in wholes),
        "process wall": min(one.wall for one in wholes),
        "answer": looped["summary"]["seconds"],
        "rate": looped["summary"]["answers per second"],
        **{
            f"{detail} {name}": looped[detail][key]
            for detail in ("full", "figures")
            if detail in looped
            for name, key in (("answer", "seconds"), ("rate", "answers per second"))
        },
    }
