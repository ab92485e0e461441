"""The environment of a measurement: device, driver, versions, allocator, date."""

import os
import platform
import re
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from tonnage.measure import nvidia
from tonnage.measure.device import Device

ALLOCATOR = (
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_MODULE_LOADING",
    "TORCH_CUBLASLT_UNIFIED_WORKSPACE",
    "NVIDIA_TF32_OVERRIDE",
    "CUDA_LAUNCH_BLOCKING",
)


def environment(device: Device) -> dict[str, Any]:
    """The part of a row's `config` that describes the machine. Keys without a value here are left out."""
    import torch

    facts: dict[str, Any] = {"gpu": "cpu", "gpus": 1}
    if device.kind == "cuda":
        facts |= _gpu(torch, device.index)
    facts |= {"torch": str(torch.__version__), "python": platform.python_version()}
    for package in ("transformers", "triton"):
        with suppress(metadata.PackageNotFoundError):
            facts[package] = metadata.version(package)
    facts["allocator"] = allocator()
    facts["date"] = datetime.now(UTC).date().isoformat()
    return facts


def allocator() -> dict[str, str] | str:
    """Settings in the environment that memory depends on, or "default"."""
    return {name: os.environ[name] for name in ALLOCATOR if os.environ.get(name)} or "default"


def key(environment: dict[str, Any]) -> str:
    """The part of an id that names device and versions: the device as PyTorch names it, PyTorch, CUDA."""
    gpu = slug(str(environment["gpu"]).removeprefix("NVIDIA "))
    torch, cuda = str(environment["torch"]).partition("+")[0], environment.get("cuda")
    return f"{gpu}-torch-{torch}" + (f"-cu{cuda}" if cuda else "")


def slug(text: str) -> str:
    """Lower case, with one hyphen for every run of characters that are no letter, digit, dot or underscore.

    >>> slug("NVIDIA H100 80GB HBM3")
    'nvidia-h100-80gb-hbm3'
    """
    return re.sub(r"[^a-z0-9._]+", "-", text.lower()).strip("-")


def _gpu(torch: Any, index: int) -> dict[str, Any]:
    properties = torch.cuda.get_device_properties(index)
    facts: dict[str, Any] = {
        "gpu": str(properties.name),
        "total_bytes": int(properties.total_memory),
        "capability": f"{properties.major}.{properties.minor}",
        "multiprocessors": int(properties.multi_processor_count),
    }
    level_2 = getattr(properties, "L2_cache_size", None)
    if level_2:
        facts["l2_bytes"] = int(level_2)
    facts |= nvidia.state(index)
    if torch.version.cuda:
        facts["cuda"] = str(torch.version.cuda)
    elif getattr(torch.version, "hip", None):
        facts["hip"] = str(torch.version.hip)
    with suppress(Exception):  # a build without cuDNN or NCCL
        facts["cudnn"] = int(torch.backends.cudnn.version())
    with suppress(Exception):
        facts["nccl"] = ".".join(str(part) for part in torch.cuda.nccl.version())
    with suppress(Exception):
        facts["allocator_backend"] = str(torch.cuda.memory.get_allocator_backend())
    return facts
