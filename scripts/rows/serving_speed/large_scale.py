"""DeepSeek-V3 over many nodes with experts dealt to all: SGLang's runs of May 2025, prefill and decode on
accelerators of their own.
"""

import re

from rows.serving_speed.run import Run, Source
from tonnage.kernel.errors import MissingDatum

NODE = 8
PROMPTS = 16384  # tokens of a forward pass of each accelerator
REQUESTS = 256  # that each accelerator answers at once
ANSWER = 100


def sglang(run: Run) -> None:
    """LMSYS2025, "Deploying DeepSeek with PD Disaggregation and Large-Scale Expert Parallelism on 96 H100 GPUs"."""
    prefill = "prefill" in run.row.measured.metric.lower()
    text = str(run.config.find("prefill_nodes" if prefill else "decode_nodes")[1] or "")
    found = re.match(r"\d+", text)
    if not found:
        raise MissingDatum("the row does not say how many nodes")
    ranks = int(found[0]) * NODE
    isl = run.config.size("isl") or 0
    run.precision = "fp8"
    run.plan |= {
        "engine": "sglang",
        "tensor_parallel_size": 1,
        "attention_data_parallel_size": ranks,
        "expert_parallel_size": ranks,
        "kv_cache": "bf16",
    }
    if prefill:
        run.plan["max_num_batched_tokens"] = PROMPTS
        run.load |= {"input_tokens": isl, "output_tokens": 1}
        run.guess("concurrency", "prompts fill each pass: as many run as it takes")
    else:
        run.load |= {"input_tokens": isl, "output_tokens": ANSWER, "concurrency": REQUESTS * ranks}
        run.guess("concurrency", f"{REQUESTS} requests of each accelerator and answers of {ANSWER} tokens are guessed")
        run.note("decode alone: prefill runs on other accelerators")


def unsaid(run: Run) -> None:
    raise MissingDatum("how many accelerators share experts and attention is not said")


def lengths_unsaid(run: Run) -> None:
    raise MissingDatum("a rounded figure at second hand, which says no lengths")


SOURCES = (
    Source(
        name="sglang-large-scale",
        pattern=r"LMSYS blog 2025-05-05",
        rules=sglang,
        accelerators={"H100": "H100-SXM-80GB"},
    ),
    Source(name="rtp-llm", pattern=r"RTP-LLM", rules=unsaid),
    Source(name="mlperf-inference", pattern=r"MLPerf Inference|NVIDIA inference benchmark page", rules=lengths_unsaid),
)
