"""What an engine does with the requests it has: who is in the next forward pass, and who waits."""

from msgspec import Struct

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.formula import Number, is_any
from tonnage.kernel.message import option_name


class Policy(Struct, frozen=True, kw_only=True):
    """How an engine fills its forward passes.

    `max_num_batched_tokens`: tokens of a pass. `pool_tokens`: tokens of cache that the replica holds, in blocks of
    `block_size`; None: enough.
    `chunked_prefill`: a prompt may be cut where the budget of a pass ends, else it waits for a pass that takes it
    whole.
    `mixed`: prompts share a pass with the requests that decode (vLLM V1; TensorRT-LLM); else prompts run alone, and
    decoding waits for them (vLLM V0, SGLang unless --enable-mixed-chunk). `reserves_answer`: a request is let in when
    its prompt and its whole answer fit (TensorRT-LLM's GUARANTEED_NO_EVICT); else when its prompt does, and where the
    cache runs out the last one let in is sent back and computed again. Numbers may be arrays for the closed form; a
    simulation is of one policy.
    """

    max_num_seqs: Number = 256
    max_num_batched_tokens: Number = 8192
    chunked_prefill: bool = True
    mixed: bool = True
    pool_tokens: Number | None = None
    block_size: Number = 16
    reserves_answer: bool = False

    def __post_init__(self) -> None:
        for name in ("max_num_seqs", "max_num_batched_tokens", "block_size"):
            if is_any(getattr(self, name) < 1):
                raise InvalidInput(
                    "{name} must be at least 1. Got {value}.", name=option_name(name), value=getattr(self, name)
                )
        if self.mixed and self.chunked_prefill and is_any(self.max_num_batched_tokens < self.max_num_seqs):
            raise InvalidInput(
                "{@max_num_batched_tokens} must be at least {@max_num_seqs}, {max_num_seqs}: each of "
                "them decodes a token in a pass. Got {max_num_batched_tokens}.",
                max_num_seqs=self.max_num_seqs,
                max_num_batched_tokens=self.max_num_batched_tokens,
            )

    @property
    def blocks(self) -> float:
        """Blocks of the pool."""
        return float("inf") if self.pool_tokens is None else self.pool_tokens // self.block_size
