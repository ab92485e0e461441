"""Tools that install from PyPI, asked in this run: each in an environment of its own under .venv-peers, as their
needs contradict.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

import tonnage
from peer_tables import cache_sizes, serving, speed
from peer_tables.cases import TABLES, ZERO3, Case
from tonnage.ops import Attention

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parents[1] / ".venv-peers"
ANSWERS, SERVING = HERE / "answers.yaml", HERE / "answers_serving.yaml"
HEADER = "# Written by `make peers`: what the tools answered that it asks. Nobody edits this file.\n"
# What is installed, in this order: torch first and pinned, as in the Makefile.
INSTALLED = {
    "llm-analysis": ("llm-analysis==0.2.2",),
    "accelerate": ("torch==2.13.0", "accelerate==1.15.0", "transformers==5.23.0"),
    "hf-mem": ("hf-mem==0.5.6",),
    "aiconfigurator": ("aiconfigurator==0.12.0",),
    "genz": ("genz-llm==0.0.16",),
    "fitcheck-llm": ("fitcheck-llm==0.3.1",),  # these two are asked how fast they are alone (benchmarks/speed.py)
    "kvfit": ("kvfit==0.3.0",),
}
COUNTED = (
    "llama-2-7b",
    "llama-3.1-8b",
    "llama-3.1-70b",
    "mistral-7b-v0.1",
    "qwen2.5-7b",
    "qwen3-32b",
    "gemma-3-27b-it",
    "mixtral-8x7b",
    "gpt2-xl",
    "deepseek-v3",
    "gpt-oss-120b",
)


class NoPeer(Exception):
    """A tool could not be installed, or did not answer."""


def ask() -> dict[str, Any]:
    """The answers of all tools, kept for a run without network."""
    said = _answer("llm-analysis", _llm_analysis())
    answers = {
        "asked": datetime.now(tz=UTC).date().isoformat(),
        "milliseconds": {"llm-analysis": said.pop("milliseconds"), "tonnage": speed.milliseconds(speed.told())},
        "llm-analysis": {**said, "speed": speed.kept(said["speed"])},
        "accelerate": _answer("accelerate", {case.name[0]: case.read().config for case in ZERO3}),
        "hf-mem": _answer("hf-mem", cache_sizes.questions()),
    }
    ANSWERS.write_text(HEADER + yaml.safe_dump(answers, sort_keys=False), encoding="utf-8")
    return {**answers, "serving": _serving(answers["asked"])}


def _serving(asked: str) -> dict[str, Any]:
    """What was said of serving, kept with a line for each row."""
    about, times = serving.kept(_answer("aiconfigurator", serving.aiconfigurator()), _answer("genz", serving.genz()))
    about = {"asked": asked, **about}
    lines = (
        yaml.safe_dump(about, sort_keys=False, width=1000),
        yaml.safe_dump(times, sort_keys=False, default_flow_style=None),
    )
    SERVING.write_text(HEADER + "".join(lines), encoding="utf-8")
    return {**about, **times}


def recorded() -> dict[str, Any]:
    """What the tools answered the last time."""
    answers, served = (yaml.safe_load(path.read_text(encoding="utf-8")) for path in (ANSWERS, SERVING))
    return {**answers, "serving": served}


def _answer(tool: str, questions: Mapping[str, Any]) -> dict[str, Any]:
    script = HERE / f"ask_{tool.replace('-', '_')}.py"
    said = _run([str(python_of(tool)), str(script)], f"{tool} did not answer", json.dumps(questions))
    return json.loads(said.rpartition("\nANSWERS\n")[2])


def python_of(tool: str) -> Path:
    """The tool's own Python, made the first time."""
    home = ENVIRONMENTS / tool
    python, done = home / "bin" / "python", home / "installed"
    packages = INSTALLED[tool]
    if not done.exists() or done.read_text().split() != list(packages):
        _run([sys.executable, "-m", "venv", "--clear", str(home)], f"no environment for {tool}")
        for package in packages:
            print(f"installing {package} into {home}", file=sys.stderr)
            _run(
                [str(python), "-m", "pip", "install", "--quiet", package],
                f"{package} was not installed: is PyPI reachable?",
            )
        done.write_text(" ".join(packages))
    return python


def _run(command: list[str], problem: str, given: str = "") -> str:
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoPeer(f"{problem}\n{done.stderr[-1000:]}")
    return done.stdout


def dimensions(model: tonnage.Model) -> dict[str, object]:
    """What llm-analysis can be told of a model."""
    config = model.config.get("text_config", model.config)
    attention = next((op for block in model.decoder.blocks for op in block.ops if isinstance(op, Attention)), None)
    heads = attention.heads if attention else config["num_attention_heads"]
    inner = config.get("moe_intermediate_size") or config.get("intermediate_size") or 4 * model.hidden_size
    return {
        "num_layers": model.num_layers,
        "n_head": heads,
        "hidden_dim": model.hidden_size,
        "vocab_size": model.vocab_size,
        "num_key_value_heads": attention.kv_heads if attention else heads,
        "ffn_embed_dim": inner,
        "expansion_ratio": inner / model.hidden_size,
        "model_type": config.get("model_type"),
        "max_seq_len": model.context,
        "moe_num_experts": config.get("num_local_experts") or config.get("n_routed_experts") or 1,
        "moe_top_k": config.get("num_experts_per_tok") or 1,
    }


def _llm_analysis() -> dict[str, Any]:
    """Its questions. It has no interleaved pipeline, so the run with chunks is left out."""
    return {
        "counts": {name: dimensions(tonnage.read(name, offline=True)) for name in COUNTED},
        "speed": speed.questions(dimensions),
        **{
            table: {case.name: _plan(case) for case in cases if "virtual_pipeline_size" not in case.options}
            for table, cases in TABLES.items()
        },
    }


def _plan(case: Case) -> dict[str, Any]:
    options = case.options
    tensor, pipeline = options.get("tensor_parallel_size", 1), options.get("pipeline_parallel_size", 1)
    return {
        "model": dimensions(case.read()),
        "tp": tensor,
        "pp": pipeline,
        "dp": case.world_size // (tensor * pipeline),
        "micro_batches": options.get("num_microbatches", 1),
        "sequence_length": options["sequence_length"],
        "zero_stage": options["zero_stage"],
        "recompute": options.get("recompute", "none"),
        "flash": options.get("attention", "flash") == "flash",
        "gated": case.model != "gpt3-175b",
    }
