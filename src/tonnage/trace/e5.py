"""Rule E5's program as shipped events, so that its ten figures are replayed without torch."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from msgspec import Struct

from tonnage.trace.recording import Recording, from_bytes
from tonnage.trace.replay import Stage, replay


class Variant(Struct, frozen=True, eq=False):
    """The program under one profile; `arguments` differ from those of the rule."""

    name: str
    profile: str
    arguments: Mapping[str, Any] = {}


# The figures of the rule fit PyTorch 1.12 and 1.13: single-tensor Adam, 1 MiB for cublasLt inside each addmm, no
# workspace kept.
AS_MEASURED = Variant("as measured", "torch-1.13-a100")
VARIANTS = (
    AS_MEASURED,
    Variant("today's defaults", "torch-2.13-a100"),
    Variant("today's defaults on Hopper", "torch-2.13-h100"),
    Variant("in 16 bits", "torch-1.13-a100", {"dtype": "float16"}),
)


def file_of(variant: Variant) -> str:
    changed = "".join(f"-{value}" for value in variant.arguments.values())
    return f"e5-{variant.profile}{changed}.json"


@cache
def recorded(variant: Variant = AS_MEASURED) -> Recording:
    """The shipped recording of a variant."""
    name = file_of(variant)
    return from_bytes((files("tonnage.trace") / "data" / name).read_bytes(), name)


def stages(variant: Variant = AS_MEASURED) -> tuple[Stage, ...]:
    """Allocated and reserved bytes after each stage."""
    return replay(recorded(variant).events).stages
