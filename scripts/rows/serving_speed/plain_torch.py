"""gpt-fast and LitGPT: one sequence, their own generate loop, tokens of the answer over the time of the whole call."""

import re

from rows.serving_speed.run import Run, Source
from tonnage.kernel.errors import MissingDatum, shown

WEIGHTS = {"bf16": None, "none": None, "int8": "int8", "int4 g32": "int4-32g", "nf4": "nf4", "nf4-dq": "nf4-double"}
GPT_FAST_ANSWER = 200  # generate.py: --max_new_tokens
LITGPT_PROMPT, LITGPT_ANSWER = 6, 256


def gpt_fast(run: Run) -> None:
    _common(run, "gpt-fast")
    run.load |= {"input_tokens": run.config.size("prompt_len"), "output_tokens": GPT_FAST_ANSWER}
    run.imply("output_tokens", "generate.py's own; its accelerators are held at 330 W of 400")


def litgpt(run: Run) -> None:
    _common(run, "transformers")  # a loop of PyTorch without graphs
    found = re.search(r"litgpt (\w+)", run.config.text("framework"))
    run.plan["engine_version"] = found[1] if found else ""
    run.load |= {"input_tokens": LITGPT_PROMPT, "output_tokens": LITGPT_ANSWER}
    run.guess(
        "input_tokens",
        f"a prompt of {LITGPT_PROMPT} tokens and an answer of {LITGPT_ANSWER} are guessed: its tutorials ask so",
    )


def _common(run: Run, engine: str) -> None:
    weights = run.config.text("weight_quant")
    weights = weights or ("none" if run.row.config.get("weight_quant") == "none" else "")
    if weights not in WEIGHTS:
        raise MissingDatum(f"weight_quant {shown(weights)} is not known; known: {', '.join(WEIGHTS)}")
    run.precision = "bf16" if WEIGHTS[weights] is None else weights.partition(" ")[0]
    run.plan |= {
        "engine": engine,
        "weights": WEIGHTS[weights],
        "kv_cache": "bf16",
        "tensor_parallel_size": run.config.size("tp") or 1,
    }
    run.load["concurrency"] = run.config.size("batch") or 1


SOURCES = (
    Source(name="gpt-fast", pattern=r"gpt-fast", rules=gpt_fast, accelerators={"A100 80GB": "A100-SXM-80GB"}),
    Source(name="litgpt", pattern=r"litgpt", rules=litgpt),
)
