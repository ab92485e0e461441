"""Images of containers: which program they start by themselves, and which release they are of."""

import re
from collections.abc import Sequence

# How an image's name ends -> the program that its entry point starts: the images' Dockerfiles.
ENTRY_POINTS: dict[str, tuple[str, ...]] = {
    "vllm/vllm-openai": ("vllm", "serve"),
    "vllm/vllm-openai-rocm": ("vllm", "serve"),
    "vllm/vllm-openai-xpu": ("vllm", "serve"),
    "vllm-cpu-release-repo": ("vllm", "serve"),
    "kserve/huggingfaceserver": ("vllm", "serve"),
    "ollama/ollama": ("ollama",),
    "ggml-org/llama.cpp": ("llama-server",),
    "ggerganov/llama.cpp": ("llama-server",),
    "huggingface/text-generation-inference": ("text-generation-launcher",),
}
_RELEASE = re.compile(r"v?(\d+\.\d+(?:\.\d+)?(?:\.?(?:post|rc)\d+)?)(?:[-_+.].*)?")
# Images whose tags are releases of the engine that they hold.
_RELEASED = ("vllm/vllm-openai", "vllm/vllm-openai-rocm", "lmsysorg/sglang", "ollama/ollama", "vllm/vllm-tpu")


def parted(image: str) -> tuple[str, str]:
    """The name and the tag of an image, without its digest and how it is fetched."""
    plain = image.strip().partition("://")[2] or image.strip()
    plain = plain.partition("@")[0].replace("#", "/")
    name, colon, tag = plain.rpartition(":")
    return (name, tag) if colon and "/" not in tag else (plain, "")


def entry_point(image: str, words: Sequence[str]) -> tuple[str, ...]:
    """The program that an image starts with these words; none where it starts what the words say."""
    name, tag = parted(image)
    for known, program in ENTRY_POINTS.items():
        if name == known or name.endswith(f"/{known}"):
            if program == ("llama-server",) and not tag.startswith("server"):
                return _of_full_llama_cpp(tag)
            if program == ("ollama",) and not words:
                return ("ollama", "serve")
            return program
    return ()


def _of_full_llama_cpp(tag: str) -> tuple[str, ...]:
    """llama.cpp, .devops/tools.sh: the first word of `full` chooses a tool, of which `--server` is one."""
    return ("llama-server",) if tag.startswith("full") else ("llama-cli",) if tag.startswith("light") else ()


def engine_version(image: str) -> str:
    """The release of the engine that an image's tag says; none of others, such as `latest`."""
    name, tag = parted(image)
    if not any(name == known or name.endswith(f"/{known}") for known in _RELEASED):
        return ""
    match = _RELEASE.fullmatch(tag)
    return match[1] if match else ""


def image_of(engine: str, version: str) -> str:
    """The image that holds an engine in this release; none where nobody publishes one."""
    plain = version.removeprefix(engine).strip()
    return {
        "vllm": f"vllm/vllm-openai:v{_three(plain)}",
        "sglang": f"lmsysorg/sglang:v{plain}",
        "llama.cpp": "ghcr.io/ggml-org/llama.cpp:server-cuda",
        "ollama": "ollama/ollama:latest",
        "tensorrt-llm": f"nvcr.io/nvidia/tensorrt-llm/release:{plain}",
        "generic": "ghcr.io/huggingface/text-generation-inference:latest",
    }.get(engine, "")


def _three(version: str) -> str:
    return version if version.count(".") > 1 else f"{version}.0"
