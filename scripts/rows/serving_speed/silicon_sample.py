"""aiconfigurator's silicon_sample.csv: InferenceX sweeps (SemiAnalysis), and NVIDIA's own runs of the same engines.

What the scripts of InferenceX set beside the sizes is taken from its repository: benchmarks/*_docker.sh and
benchmarks/single_node/*.sh.
"""

import re
from collections.abc import Mapping
from typing import Any

from rows.serving_speed.run import Run, Source
from tonnage.kernel.errors import MissingDatum, shown

ENGINES = {"trtllm": "tensorrt-llm", "sglang": "sglang", "vllm": "vllm"}
# The names that aiconfigurator gives to systems.
SYSTEMS = {
    "^h100_sxm$": "H100-SXM-80GB",
    "^h200_sxm$": "H200-SXM-141GB",
    "^b200_sxm$": "B200-SXM-180GB",
    "^b300_sxm$": "B300-SXM-288GB",
    "^gb200": "GB200-186GB",
    "^gb300": "GB300-288GB",
    "^a100_sxm$": "A100-SXM-80GB",
}
# NVIDIA's own runs: lengths that are all alike. Where prompts run alone, users march in step for ever, which is in the
# times of SGLang's first runs; where a pass
# takes prompts beside answers they drift apart, as a small spread lets them, and so they do in the later runs, of 4 000
# and 8 000 tokens: another client.
APART = 0.1
LATER = (4000, 8000)
CONNECTIONS = 100  # aiohttp 3, TCPConnector: limit
OWN_ROUNDS = 10  # requests for each that runs at once: a client's usual number
RANGE = 0.2  # InferenceX runs benchmark_serving.py with --random-range-ratio 0.8
ONE_NODE = 8
CONFIGURED = r"_cfg\d+$"  # a row with the number of a config

# What NVIDIA's NVFP4 checkpoints leave in 16 bits, as their hf_quant_config.json lists it (copies in aiconfigurator,
# model_configs/nvidia--*).
UNTOUCHED: Mapping[str, tuple[str, ...]] = {
    "deepseek": ("q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "lm_head"),
    "glm-5": ("self_attn", "lm_head"),
    "minimax": ("self_attn", "gate", "lm_head"),
    "qwen3.5": ("self_attn", "linear_attn", "shared_expert", "shared_expert_gate", "lm_head"),
}
# Tokens of a forward pass: InferenceX, by model and engine; a function of the run where the script computes it.
BUDGETS: tuple[tuple[str, str, int], ...] = (
    ("gpt-oss", "vllm", 8192),
    ("llama", "vllm", 8192),
    ("gpt-oss", "tensorrt-llm", 20000),
    ("llama", "tensorrt-llm", 16384),
    ("glm", "sglang", 32768),
    ("qwen3.5", "sglang", 32768),
)
# Sweeps that InferenceX ran with the model's draft layer (MTP) beside those without, in rows that no number of a config
# tells apart.
# By the version of the image: pull requests 1487 (both had the same), 1488 and 1489 (the newer one was of the drafts
# alone);
DRAFT_IMAGES = ("1.1.0rc2.post2", "1.2.0rc6.post3")
# by model and accelerator, the tensor and expert ranks: pull requests 626 and 897.
DRAFT_SIZES = {("deepseek", "b200_sxm"): (8, 1), ("qwen3.5", "b200_sxm"): (4, 1)}


def rules(run: Run) -> None:
    config = run.config
    framework, name = config.text("framework"), str(run.row.config.get("hf_model", "")).lower()
    if framework not in ENGINES:
        raise MissingDatum(f"config.framework must be one of {', '.join(ENGINES)}. Got {shown(framework)}")
    run.plan |= {"engine": ENGINES[framework], "engine_version": str(run.row.config.get("framework_version") or "")}
    isl, osl = config.size("isl"), config.size("osl")
    run.load |= {"input_tokens": isl, "output_tokens": osl, "concurrency": _concurrency(run)}
    identity = run.row.id.removeprefix("aic-")  # the name that the table itself gives its rows
    if swept := is_inferencex(identity):
        run.load["spread"] = RANGE
        run.plan["prefix_caching"] = False
        run.rounds = _rounds(run, name)
        run.note(
            "InferenceX: lengths from 0.8 of those named to them, ten times as many requests as run at once, "
            "all there at the start"
        )
    else:
        run.rounds = OWN_ROUNDS
        run.guess("rounds", f"nobody says how many requests were sent: {OWN_ROUNDS} for each that runs at once")
        if run.engine != "sglang" or isl in LATER:
            run.load["spread"] = APART
            run.guess("spread", "lengths are all alike; a small spread stands for users who drift apart")
        if run.engine == "sglang":
            run.take_from_measured("spread", "whether requests march in step is read off the times of these runs")
    run.plan |= _layout(run, identity, swept)
    _weights(run, name)
    _cache(run, name)
    if swept:
        _budget(run, name)
        _scheduler(run, name)
        if not re.search(CONFIGURED, identity) and _may_draft(run, name):
            run.completeness = f"indicative: {DRAFTS}"


DRAFTS = (
    "whether tokens were drafted (MTP), and how many of them were taken, is not in the table: InferenceX ran both; "
    "without drafts is asked"
)


def _may_draft(run: Run, name: str) -> bool:
    """Whether the sizes and the image are also those of a sweep with drafts."""
    if run.engine == "tensorrt-llm":
        return "deepseek" in name and run.plan["engine_version"] in DRAFT_IMAGES
    sizes = (run.plan["tensor_parallel_size"], run.plan["expert_parallel_size"])
    system = str(run.row.config.get("gpu"))
    return (
        run.engine == "sglang"
        and run.precision == "fp8"
        and any(part in name and where == system and sizes == drafted for (part, where), drafted in DRAFT_SIZES.items())
    )


def is_inferencex(identity: str) -> bool:
    """Whether a row is of a sweep of InferenceX: its rows end in the number of a config, or in sizes with those of
    the experts.
    """
    return bool(re.search(rf"{CONFIGURED}|_tp\d+(_0)?_ep\d+(_0)?_\d+$", identity))


def _concurrency(run: Run) -> int | None:
    """The requests of a whole replica. Where they are missing, the batch of an attention rank stands for them."""
    found = run.config.size("concurrency")
    if found is None:
        found = run.config.size("batch_size")
        run.guess("concurrency", "the batch size, as no number of requests is given")
    return found


def _layout(run: Run, identity: str, swept: bool) -> dict[str, int]:
    """Tensor, expert and attention data sizes.

    The table writes tp x attention_dp = moe_tp x moe_ep. For InferenceX it was filled from "tp N, ep M" as if the
    experts' ranks came on top: tp 8 with ep 8 became 64 ranks, in the same rows that stand elsewhere with 8 and have
    the same times. N and M are what was run.
    """
    tp, groups = run.config.size("tp") or 1, run.config.size("attention_dp") or 1
    inner, experts = run.config.size("moe_tp") or 1, run.config.size("moe_ep") or 1
    if not swept:
        return _own_runs(run, tp, groups, inner, experts)
    said = re.search(r"_tp(\d+)(?:_0)?_ep(\d+)(?:_0)?_\d+$", identity)
    if said:
        ranks, experts = int(said[1]), int(said[2])
    elif inner == experts:  # 4 x 4, 8 x 8; 1 x 1 is one accelerator
        ranks = inner
        if ranks > 1:
            run.take_from_measured(
                "tensor_parallel_size",
                f"the row says {inner * experts} ranks; rows that say {inner} have the same times",
            )
    elif groups > 1 and tp > 1:  # vLLM has no ranks of both kinds, so all of tp x ep became ep
        ranks = experts = tp
    else:
        ranks = tp * groups
    if groups > 1 and tp > 1 and said:  # dumps that write so of runs with four requests, too
        run.guess(
            "tensor_parallel_size",
            f"{ranks} with experts dealt to all: whether attention is split by requests is not said",
        )
        groups = 1
    elif groups > 1 and tp > 1:  # benchmarks/single_node/minimaxm2.5_fp4_b300.sh: --data-parallel-size=$TP
        run.imply("attention_data_parallel_size", "what vLLM's scripts make of data-parallel attention")
    if ranks > ONE_NODE:
        raise MissingDatum(
            f"{ranks} accelerators are those of prefill and of decode together, and the row does not say how "
            "many each has"
        )
    if groups > 1:
        return {"tensor_parallel_size": 1, "attention_data_parallel_size": ranks, "expert_parallel_size": experts}
    return {"tensor_parallel_size": ranks, "expert_parallel_size": experts}


def _own_runs(run: Run, tp: int, groups: int, inner: int, experts: int) -> dict[str, int]:
    """NVIDIA's runs: sizes are as written; the requests of each attention rank tell whether attention is split by
    requests.
    """
    ranks = max(inner * experts, tp * groups)
    each, all_of_them = run.config.size("batch_size"), run.config.size("concurrency")
    if each and all_of_them and all_of_them > each and all_of_them % each == 0:
        groups = all_of_them // each
        run.imply("attention_data_parallel_size", f"{all_of_them} requests are {each} for each rank")
    elif ranks > tp * groups:
        groups = ranks // tp
        run.guess(
            "attention_data_parallel_size", f"the experts lie on {ranks} accelerators, and {tp} share the attention"
        )
    if ranks % groups:
        raise MissingDatum(f"{ranks} ranks are not {groups} equal groups")
    return {
        "tensor_parallel_size": ranks // groups,
        "attention_data_parallel_size": groups,
        "expert_parallel_size": experts,
    }


def _weights(run: Run, name: str) -> None:
    """What the weights are in: the checkpoint's own type where it is published so."""
    said = str(run.row.config.get("gemm_quant") or "bf16")
    experts = str(run.row.config.get("moe_quant") or said)
    if "gpt-oss" in name:
        run.precision = "mxfp4"  # whatever the table says: it is published in nothing else
        return
    run.precision = {"fp8_block": "fp8", "nvfp4": "nvfp4", "fp8": "fp8"}.get(said, "bf16")
    if run.precision == "nvfp4":
        kept = next((modules for part, modules in UNTOUCHED.items() if part in name), ("lm_head",))
        run.quantization = {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": list(kept)}
    elif run.precision == "fp8":
        own = any(part in name for part in ("deepseek", "minimax"))
        blocks = "block" in said or "block" in experts
        run.plan["weights"] = None if own else "fp8-block" if blocks else "fp8-e4m3"


def _cache(run: Run, name: str) -> None:
    """What keys and values are in: the scripts' own setting."""
    system = str(run.row.config.get("gpu"))
    blackwell, plain = system.startswith(("b", "gb")), run.precision == "bf16"
    if run.engine == "tensorrt-llm":
        narrow = blackwell or "gpt-oss" not in name
    elif blackwell:
        narrow = not plain
    else:
        narrow = "qwen3.5" in name and not plain
    run.plan["kv_cache"] = "fp8" if narrow else "bf16"


def _budget(run: Run, name: str) -> None:
    """Tokens of a forward pass that the scripts allow."""
    found: Any = next((size for part, engine, size in BUDGETS if part in name and engine == run.engine), None)
    concurrency, isl = run.load["concurrency"] or 0, run.load["input_tokens"]
    hopper = str(run.row.config.get("gpu")).startswith("h")
    if "qwen3.5" in name and hopper:
        found = 16384
    elif "deepseek" in name and run.engine == "tensorrt-llm":
        found = max((concurrency + isl + 127) // 64 * 64, 8192)
    elif "deepseek" in name and run.engine == "sglang":
        found = 32768 if hopper or run.precision == "fp8" else 16384
        if not hopper and run.precision == "fp8" and run.plan["tensor_parallel_size"] == 4:
            found = 8192
    elif "glm" in name and hopper:
        found = None  # SGLang's default
    elif "minimax" in name and not hopper:
        found = 2 * isl
    run.plan["max_num_batched_tokens"] = found


def _rounds(run: Run, name: str) -> int:
    """Requests for each that runs at once: num_prompts over max_concurrency."""
    return 5 if "glm" in name and str(run.row.config.get("gpu")).startswith("h") else 10


def _scheduler(run: Run, name: str) -> None:
    """What the scripts set of requests, memory and polls: --max-num-seqs; SGLang's --max-running-requests,
    --mem-fraction-static and --scheduler-recv-interval.
    """
    if run.engine == "vllm" and "gpt-oss" in name:
        users = run.load["concurrency"] or 0
        run.plan |= {"max_num_seqs": users, "gpu_memory_utilization": 0.9}
        if run.plan["engine_version"].startswith("0.11") and users > CONNECTIONS:
            run.plan["max_num_seqs"] = CONNECTIONS
            run.take_from_measured(
                "max_num_seqs",
                (
                    "the connections that this version's client held; by Little's law the table's own times say "
                    "88 to 98, on any machine"
                ),
            )
    if run.engine != "sglang":
        return
    system, four = str(run.row.config.get("gpu")), run.plan["tensor_parallel_size"] == 4
    hopper, short = system.startswith("h"), run.load["input_tokens"] == run.load["output_tokens"] == 1024
    polls = 30 if (run.load["concurrency"] or 0) >= 16 else 10
    if "deepseek" in name and hopper:
        run.plan |= {"max_num_seqs": 512 if short else 256, "gpu_memory_utilization": 0.82}
    elif "deepseek" in name and run.precision == "nvfp4":
        run.plan |= {"max_num_seqs": 256, "gpu_memory_utilization": 0.85, "poll_passes": polls}
    elif "deepseek" in name and four:
        run.plan |= {"max_num_seqs": 32, "gpu_memory_utilization": 0.95, "poll_passes": 10}
    elif "deepseek" in name:
        run.plan |= {"max_num_seqs": 128, "gpu_memory_utilization": 0.82, "poll_passes": polls}
    elif "qwen3.5" in name and hopper:
        run.plan |= {"max_num_seqs": 128, "gpu_memory_utilization": 0.8}
    elif "qwen3.5" in name:
        run.plan |= {
            "gpu_memory_utilization": 0.82,
            "poll_passes": polls,
            "fused_experts": True,  # --moe-runner-backend flashinfer_trtllm
            **({} if system.startswith("b300") else {"max_num_seqs": 128}),
        }
    else:
        run.plan |= {"gpu_memory_utilization": 0.85, **({} if hopper else {"max_num_seqs": 128})}


SOURCES = (Source(name="silicon-sample", pattern=r"silicon_sample\.csv", rules=rules, accelerators=SYSTEMS),)
