"""Pieces that families with Mamba layers share: the Mamba 2 mixer, the rank of the step, the type of the state."""

from typing import Any

from tonnage.architectures._config import LARGEST_SIZE, Config
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.ops import Mamba2

STATE_BYTES = {"float32": 4.0, "float16": 2.0, "bfloat16": 2.0}


def mamba2(c: Config, **options: Any) -> Mamba2:
    """The mixer of Bamba, Granite 4 and Falcon H1, from their common fields (transformers: BambaMixer)."""
    heads = c.size("mamba_n_heads")
    inner = options.pop("inner_size", None) or inner_size(c, "mamba_expand")
    return Mamba2(
        **{
            "name": "mamba",
            "hidden_size": c.size("hidden_size"),
            "heads": heads,
            "head_dim": head_width(c, inner, heads),
            "state_size": c.size("mamba_d_state"),
            "groups": c.size("mamba_n_groups"),
            "conv_kernel": c.size("mamba_d_conv"),
            "bias": c.flag("mamba_proj_bias", default=False),
            "conv_bias": c.flag("mamba_conv_bias", default=True),
            "state_bytes": state_bytes(c),
            **options,
        }
    )


def inner_size(c: Config, field: str) -> int:
    """`field` (expand) times hidden_size, cut to a whole number as transformers does."""
    return whole_width(c, c.number(field) * c.size("hidden_size"))


def whole_width(c: Config, width: float) -> int:
    """An expanded width as a whole number; InvalidInput where it is none."""
    if not 1 <= width <= LARGEST_SIZE:
        raise InvalidInput(
            "{where}: the width that a factor makes must be from 1 to {largest_size}. Got {width}.",
            where=c.where,
            largest_size=LARGEST_SIZE,
            width=shown(width),
        )
    return int(width)


def head_width(c: Config, inner: int, heads: int) -> int:
    """mamba_d_head, or "auto": the inner size over the heads; heads times width must be the inner size."""
    field_value = c.raw("mamba_d_head")
    width = inner // heads if field_value in (None, "auto") else c.size("mamba_d_head")
    if width * heads != inner:
        raise InvalidInput(
            "{where}: mamba_n_heads ({heads}) times mamba_d_head ({width}) must be the mixer's inner size ({inner}).",
            where=c.where,
            heads=heads,
            width=width,
            inner=inner,
        )
    return width


def step_rank(c: Config, field: str) -> int:
    """The rank of Mamba 1's step size; "auto" or absent: ceil(hidden_size / 16)."""
    if c.raw(field) in (None, "auto"):
        return -(-c.size("hidden_size") // 16)
    return c.size(field)


def state_bytes(c: Config) -> float | None:
    """Bytes of a number of the recurrent state, where the config states its type; None leaves it to the engine."""
    kind = c.one_of("mamba_ssm_cache_dtype", STATE_BYTES, default=None)
    return None if kind is None else STATE_BYTES[kind]
