"""What a pass moves beside its products where kernels are PyTorch's own and none are fused."""

from tonnage.architectures import Model
from tonnage.formulas.time import memory_seconds
from tonnage.kernel.formula import Number
from tonnage.spec import Accelerator

# Counted in LLaDA's and Dream's modeling files. Bytes of each hidden number of a layer: two norms in 32 bits 72,
# rotation of queries and keys in 32 bits 50 to 104, the activation 30 to 50, residual sums 12.
HIDDEN_BYTES = 200
# Of each logit of a pass that denoises: the best word and a softmax in 64 bits 36 (LLaDA, generate.py); Dream's top_p
# sorts those of tokens that are still masked, 130 of half of them.
LOGIT_BYTES = 60


def eager_seconds(model: Model, chip: Accelerator, tokens: Number) -> float:
    """Of a pass that denoises so many tokens; 0 where no source gives the bandwidth."""
    if chip.memory.bytes_per_second is None:
        return 0.0
    moved = HIDDEN_BYTES * model.hidden_size * model.decoder.num_layers + LOGIT_BYTES * model.vocab_size
    return float(memory_seconds.evaluate(M=moved * tokens, W=chip.memory.bytes_per_second, u=1))
