"""Dynamo with workers of vLLM, which is what its name alone means."""

import re

from tonnage.runtimes import serving_runtime
from tonnage.runtimes.parts.dynamo import behind_dynamo
from tonnage.runtimes.parts.serving import SERVING_RUNTIMES
from tonnage.runtimes.parts.start import Start
from tonnage.runtimes.vllm import launch

ENGINE = serving_runtime("vllm")
# vLLM's roles, of which Dynamo's connector is both: its own mode says which worker computes prompts
ROLE = re.compile(r'"kv_role":"kv_(?:producer|consumer)"')


def worker(start: Start) -> str:
    """components/src/dynamo/vllm/args.py: engine arguments of vLLM, and --disaggregation-mode."""
    command = launch(start).replace("vllm serve ", "python -m dynamo.vllm --model ", 1)
    if not start.role:
        return command
    return ROLE.sub('"kv_role":"kv_both"', command) + f" --disaggregation-mode {start.role}"


SERVING_RUNTIMES.add("dynamo", behind_dynamo(ENGINE, "dynamo", worker, 9, ("nvidiadynamo", "aidynamo", "dynamovllm")))
