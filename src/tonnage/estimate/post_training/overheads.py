"""What published steps take beyond kernels and links: constants that scripts/fit_rl.py fits, phase by phase."""

from msgspec import Struct

# FLOP/s in 16 bit of an H100 SXM, on which most rows of updates were measured.
REFERENCE_PEAK = 989.4e12


class Overheads(Struct, frozen=True, kw_only=True):
    """Without values: kernels and links alone.

    `pass_seconds`: of each pass of an engine in the trainer's process, beyond those of a server; `ranks_seconds`: more
    of it for each layer where several ranks share the engine, and wait for each other. `update_factors`: seconds of an
    update over those of a pretraining step of the same tokens on an accelerator of peak REFERENCE_PEAK, by runtime, of
    "" where none is named; `forward_factor`: the same of passes without gradients.
    `tensor_seconds`: of each tensor on its way to the engine. `host_bytes_per_second`: of training states on their way
    to the host and back, of one accelerator beside others of its node; 0: the host link's. `sources`: by field.
    """

    pass_seconds: float = 0.0
    ranks_seconds: float = 0.0
    update_factors: dict[str, float] = {}
    forward_factor: float = 1.0
    tensor_seconds: float = 0.0
    host_bytes_per_second: float = 0.0
    sources: dict[str, str] = {}

    def update_factor(self, runtime: str) -> float:
        """Of an update with this runtime."""
        return self.update_factors.get(runtime, self.update_factors.get("", 1.0))
