"""Serving engines that people name and that have no file here: what each is, what is known of it, and which engine
comes nearest.
"""

from collections.abc import Mapping

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message
from tonnage.kernel.registry import letters_of

# By the letters and digits of their names.
UNDESCRIBED: Mapping[str, str] = {
    "ktransformers": Message(
        "KTransformers runs in SGLang: attention and --kt-num-gpu-experts of each layer's experts are on the GPU, the "
        "other experts on the processor (kvcache-ai/ktransformers, README.md). No rates of its processor kernels are "
        "known. Nearest: {--engine} llama.cpp with {--expert-layers-on-host}."
    ),
    "exllamav2": Message(
        "ExLlamaV2 loads EXL2, whose bits differ by matrix and are known of a checkpoint alone "
        "(text-generation-inference, launcher/src/main.rs: Exl2). Its memory beside weights and its times are not "
        "known. Nearest: {--engine} llama.cpp with a file type as wide ({--weights} Q4_K_M), or vllm with {--weights} "
        "gptq."
    ),
    "exllamav3": Message(
        "ExLlamaV3 loads EXL3, a trellis code of a mean number of bits, and holds keys and values in 2 to 8 bits "
        "(turboderp-org/exllamav3, README.md and doc/exl3.md). Its memory beside weights and its times are not known. "
        "Nearest: {--engine} llama.cpp with a file type as wide ({--weights} Q4_K_M)."
    ),
}
ALIASES: Mapping[str, str] = {
    "kt": "ktransformers",
    "ktkernel": "ktransformers",
    "exllama": "exllamav2",
    "exllama2": "exllamav2",
    "exl2": "exllamav2",
    "exllama3": "exllamav3",
    "exl3": "exllamav3",
    "tabbyapi": "exllamav3",
}


def refuse_undescribed(name: str) -> None:
    """Raise InvalidInput where an engine of this name, or another spelling of it, is known but not described."""
    letters = letters_of(name)
    known = UNDESCRIBED.get(ALIASES.get(letters, letters))
    if known is not None:
        raise InvalidInput("{@engine} is one that tonnage does not estimate. {known}", known=known)
