"""Lines of training frameworks that tell memory. Sources: deepspeed 0.19.8 (runtime/utils.py, see_memory_usage);
Megatron-LM (training/theoretical_memory_usage.py, training/utils, report_memory); torchtitan 0.3
(components/metrics.py); transformers 5.24 (quantizers), accelerate 1.15 (utils/memory.py).
"""

from tonnage.interchange.diagnose.numbers import NUMBER
from tonnage.interchange.diagnose.patterns import SAYS_CAUSE, fact, failure

_N = NUMBER
FAILURES = (
    failure(  # transformers with bitsandbytes: the device map had no room on the GPU
        "transformers",
        "Some modules are dispatched on the CPU or the disk",
        phase="loading weights",
        cause="weights",
        strength=SAYS_CAUSE,
    ),
    failure("accelerate", "No executable batch size found, reached zero", phase="forward", cause="activations"),
)
FACTS = (
    fact(
        "deepspeed",
        "Max_MA",
        rf"MA (?P<allocated>{_N}) GB\s+Max_MA (?P<peak_allocated>{_N}) GB\s+CA (?P<reserved>{_N}) GB\s+Max_CA "
        rf"(?P<peak_reserved>{_N}) GB",
        allocated="gib",
        peak_allocated="gib",
        reserved="gib",
        peak_reserved="gib",
    ),
    fact(
        "megatron",
        "Theoretical memory footprints",
        rf"weight and optimizer=(?P<weights_and_optimizer>{_N}) MB(?:, activation=(?P<activations>{_N}) MB, total="
        rf"(?P<needed>{_N}) MB)?",
        weights_and_optimizer="mib",
        activations="mib",
        needed="mib",
    ),
    fact(
        "megatron",
        "memory (MB)",
        rf"allocated: (?P<allocated>{_N}) \| max allocated: (?P<peak_allocated>{_N}) \| reserved: (?P<reserved>{_N}) "
        rf"\| max reserved: (?P<peak_reserved>{_N})",
        allocated="mib",
        peak_allocated="mib",
        reserved="mib",
        peak_reserved="mib",
    ),
    fact("torchtitan", "memory:", rf"step: +\d+ .{{0,80}}memory: +(?P<peak_reserved>{_N})GiB\(", peak_reserved="gib"),
)
