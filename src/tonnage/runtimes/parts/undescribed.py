"""Serving engines that people name and that have no file here: what each is, what is known of it, and which engine
comes nearest.
"""

from collections.abc import Mapping

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message
from tonnage.kernel.registry import letters_of

# By the letters and digits of their names.
UNDESCRIBED: Mapping[str, str] = {
    "openvino": Message(
        "OpenVINO GenAI batches at most 256 tokens and 256 requests, and its cache grows unless cache_size says a "
        "limit (openvino.genai, scheduler_config.hpp). Its kernels on Intel's GPUs, NPUs and processors have no rates "
        "here. Nearest: {--engine} llama.cpp, or vllm on Intel's data-centre GPUs."
    ),
    "mlc": Message(
        "MLC LLM takes 0.85 of the GPU in mode server, in pages of 16 tokens, and batches of 4 requests or 1 in modes "
        "local and interactive (mlc-ai/mlc-llm, python/mlc_llm/serve/config.py). Its temporaries and times are not "
        "known. Nearest: {--engine} vllm with {--gpu-memory-utilization} 0.85; llama.cpp elsewhere."
    ),
    "dynamo": Message(
        "Dynamo runs no model itself: its workers are vLLM, SGLang or TensorRT-LLM (ai-dynamo/dynamo, README.md). Name "
        "the engine of the workers. Nearest: {--engine} vllm; tonnage check reads its commands and manifests."
    ),
}
ALIASES: Mapping[str, str] = {
    "openvinogenai": "openvino",
    "ovms": "openvino",
    "mlcllm": "mlc",
    "nvidiadynamo": "dynamo",
    "aidynamo": "dynamo",
}


def refuse_undescribed(name: str) -> None:
    """Raise InvalidInput where an engine of this name, or another spelling of it, is known but not described."""
    letters = letters_of(name)
    known = UNDESCRIBED.get(ALIASES.get(letters, letters))
    if known is not None:
        raise InvalidInput("{@engine} is one that tonnage does not estimate. {known}", known=known)
