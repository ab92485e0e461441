"""Profiles: a version of PyTorch and an accelerator to trace for. Data in profiles.toml."""

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from msgspec import Struct

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.registry import unknown

Version = tuple[int, int]
NEWEST: Version = (2, 13)
OLDEST: Version = (1, 12)
Workspace = Literal["outside", "temporary", "kept", "unified"]


class Gpu(Struct, frozen=True, kw_only=True):
    """An accelerator's properties that PyTorch's kernels depend on. `accelerator`: its name in the catalogue."""

    name: str
    accelerator: str
    capability: tuple[int, int]
    multiprocessors: int


class Profile(Struct, frozen=True, kw_only=True):
    """`cublas`, `lt`: how the workspaces of the two libraries are held, and their bytes. `cudnn` as its version number.

    `foreach`: whether optimizers update all parameters at once by default; `inferred`: which of these facts no source
    states.
    """

    torch: Version
    gpu: Gpu
    cublas: Workspace
    lt: Workspace
    cublas_bytes: int
    lt_bytes: int
    cudnn: int
    inferred: str = ""

    @property
    def name(self) -> str:
        return f"torch-{self.torch[0]}.{self.torch[1]}-{self.gpu.name}"

    @property
    def foreach(self) -> bool:
        return self.torch >= (2, 0)  # torch/optim/optimizer.py: _default_to_fused_or_foreach

    @property
    def has_fused_attention(self) -> bool:
        return self.torch >= (2, 0)


def profile(name: str) -> Profile:
    """The profile of a name such as torch-1.13-a100, torch-2.13-h100, or h100 (with the newest PyTorch)."""
    match = re.fullmatch(r"(?:torch-?(\d+)\.(\d+)(?:\.\d+)?-?)?([a-z0-9-]*)", name.strip().lower())
    if not match or not name.strip():
        raise InvalidInput("a profile is written torch-2.13-h100. Got {name!r}.", name=name[:80])
    version = (int(match[1]), int(match[2])) if match[1] else NEWEST
    if not OLDEST <= version <= NEWEST:
        raise InvalidInput(
            "profiles reach from torch {dotted} to {dotted2}. Got {dotted3} in {name!r}.",
            dotted=_dotted(OLDEST),
            dotted2=_dotted(NEWEST),
            dotted3=_dotted(version),
            name=name[:80],
        )
    return _profile(version, gpu(match[3] or "h100"))


def gpu(name: str) -> Gpu:
    """A GPU by its short name."""
    known = _data()["gpu"]
    if name not in known:
        raise unknown("GPU of a profile", name, known)
    row = known[name]
    return Gpu(
        name=name,
        accelerator=row["accelerator"],
        capability=tuple(row["capability"]),
        multiprocessors=row["multiprocessors"],
    )


def names() -> tuple[str, ...]:
    """Short names of the GPUs."""
    return tuple(_data()["gpu"])


def _profile(version: Version, chosen: Gpu) -> Profile:
    data = _data()
    row = next(
        entry for entry in data["gemm"] if _version(entry["from"]) <= version <= _version(entry.get("until", "99.0"))
    )
    sizes = data["workspace"]
    later = version >= _version(sizes["later"])
    large = sizes["large_majors_later"] if later else sizes["large_majors"]
    return Profile(
        torch=version,
        gpu=chosen,
        cublas=row["cublas"],
        lt=row["lt"],
        lt_bytes=sizes["lt"],
        inferred=row.get("inferred", ""),
        cublas_bytes=sizes["cublas_large"] if chosen.capability[0] in large else sizes["cublas"],
        cudnn=max((_version(since), number) for since, number in data["cudnn"].items() if _version(since) <= version)[
            1
        ],
    )


def _version(text: str) -> Version:
    major, minor = text.split(".")
    return int(major), int(minor)


def _dotted(version: Version) -> str:
    return f"{version[0]}.{version[1]}"


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads((files("tonnage.trace") / "profiles.toml").read_text())
