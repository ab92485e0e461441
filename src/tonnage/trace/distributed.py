"""The options of a distributed training program: sizes and choices, checked before anything is built. Needs no
torch.
"""

import os
from collections.abc import Mapping
from typing import Literal, get_args

from msgspec import Struct

from tonnage.kernel.errors import InvalidInput, InvalidPlan
from tonnage.kernel.message import Message, listed

Kind = Literal["fsdp2", "ddp", "tp", "tp+fsdp2"]
KINDS: tuple[str, ...] = get_args(Kind)
DTYPES = ("fp32", "bf16", "fp16")


class World(Struct, frozen=True, kw_only=True):
    """The number of ranks, and the rank that is traced."""

    size: int
    rank: int = 0

    def __post_init__(self) -> None:
        if self.size < 1:
            raise InvalidPlan("world_size must be at least 1. Got {size}.", size=self.size)
        if not 0 <= self.rank < self.size:
            raise InvalidPlan(
                "rank must be from 0 to {size}, as world_size is {size2}. Got {rank}.",
                size=self.size - 1,
                size2=self.size,
                rank=self.rank,
            )


def world_of(environment: Mapping[str, str] = os.environ, size: int = -1, rank: int = -1) -> World:
    """The world of the program's own arguments, else of WORLD_SIZE and RANK as a launcher sets them, else one rank."""
    return World(
        size=size if size >= 0 else _number(environment, "WORLD_SIZE", 1),
        rank=rank if rank >= 0 else _number(environment, "RANK", 0),
    )


def _number(environment: Mapping[str, str], name: str, otherwise: int) -> int:
    text = environment.get(name, "")
    try:
        return int(text) if text else otherwise
    except ValueError:
        raise InvalidInput(
            "the environment's {name} must be a whole number. Got {text!r}.", name=name, text=text[:40]
        ) from None


class Distributed(Struct, frozen=True, kw_only=True):
    """A distributed training program of a Hugging Face config.

    `dtype`: of the weights that the optimizer updates; `param_dtype`: of the computation (FSDP2's mixed precision
    policy, else autocast); `reduce_dtype`: of FSDP2's gradient reduction. `bucket_cap_mb` is in MiB, as in DDP.
    `attention`: None for transformers' choice.
    """

    kind: Kind = "fsdp2"
    world_size: int = 8
    rank: int = 0
    tensor_parallel_size: int = 1
    sequence_parallel: bool = False
    sequence_length: int = 4096
    micro_batch_size: int = 1
    num_microbatches: int = 1
    recompute: Literal["none", "full"] = "none"
    reshard_after_forward: bool = True
    dtype: str = "fp32"
    param_dtype: str = "bf16"
    reduce_dtype: str = "fp32"
    gradient_as_bucket_view: bool = False
    bucket_cap_mb: int = 25
    clip_grad_norm: float | None = None
    attention: str | None = None
    num_layers: int | None = None
    steps: int = 2

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidInput(
                "{@kind} must be one of {kinds}. Got {kind!r}.", kinds=listed(KINDS), kind=str(self.kind)[:40]
            )
        World(size=self.world_size, rank=self.rank)
        for name in (
            "tensor_parallel_size",
            "sequence_length",
            "micro_batch_size",
            "num_microbatches",
            "steps",
            "bucket_cap_mb",
        ):
            if getattr(self, name) < 1:
                raise InvalidInput("{name} must be at least 1. Got {value}.", name=name, value=getattr(self, name))
        for name in ("dtype", "param_dtype", "reduce_dtype"):
            if getattr(self, name) not in DTYPES:
                raise InvalidInput(
                    "{name} must be one of {dtypes}. Got {value!r}.",
                    name=name,
                    dtypes=listed(DTYPES),
                    value=getattr(self, name),
                )
        if self.recompute not in ("none", "full"):
            raise InvalidInput(
                "{@recompute}: what is traced is none or full. Got {recompute!r}.", recompute=self.recompute
            )
        self._check_tensor_parallelism()

    def _check_tensor_parallelism(self) -> None:
        width, world = self.tensor_parallel_size, self.world_size
        if width > 1 and not self.is_tensor_parallel:
            raise InvalidPlan(
                "{@tensor_parallel_size} {width} needs kind tp or tp+fsdp2. Got kind {kind}.",
                width=width,
                kind=self.kind,
            )
        if world % width:
            raise InvalidPlan(
                "{@tensor_parallel_size} must divide world_size {world}. Got {width}.", world=world, width=width
            )
        if self.kind == "tp" and width not in (1, world):
            raise InvalidPlan(
                "kind tp has one group: {@tensor_parallel_size} must be world_size {world}. Got {width}; "
                "tp+fsdp2 shards the rest.",
                world=world,
                width=width,
            )
        if self.sequence_parallel and not self.is_tensor_parallel:
            raise InvalidPlan("{@sequence_parallel} needs kind tp or tp+fsdp2. Got kind {kind}.", kind=self.kind)
        if self.sequence_parallel and self.sequence_length % self.tensor_width:
            raise InvalidPlan(
                "{@sequence_length} must be a multiple of {@tensor_parallel_size} {tensor_width} under "
                "{@sequence_parallel}. Got {sequence_length}.",
                tensor_width=self.tensor_width,
                sequence_length=self.sequence_length,
            )

    @property
    def is_tensor_parallel(self) -> bool:
        return self.kind in ("tp", "tp+fsdp2")

    @property
    def tensor_width(self) -> int:
        """Number of ranks that share each layer: all of them if nothing else shards."""
        return self.world_size if self.kind == "tp" else self.tensor_parallel_size

    @property
    def world(self) -> World:
        return World(size=self.world_size, rank=self.rank)

    @property
    def program(self) -> str:
        """One line that describes the traced program."""
        parts: list[str] = [
            Message(
                "{kind} on {world_size} ranks, rank {rank}", kind=self.kind, world_size=self.world_size, rank=self.rank
            )
        ]
        if self.is_tensor_parallel:
            parts.append(
                Message("tensor parallel {tensor_width} with sequence parallel", tensor_width=self.tensor_width)
                if self.sequence_parallel
                else Message("tensor parallel {tensor_width}", tensor_width=self.tensor_width)
            )
        parts.append(
            Message(
                "{micro_batch_size} x {sequence_length} tokens, weights {dtype}, compute {param_dtype}",
                micro_batch_size=self.micro_batch_size,
                sequence_length=self.sequence_length,
                dtype=self.dtype,
                param_dtype=self.param_dtype,
            )
        )
        if self.recompute == "full":
            parts.append("recompute full")
        return ", ".join(parts)
