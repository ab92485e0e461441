"""JAX and XLA on GPUs and TPUs. Sources: xla/tsl/framework/bfc_allocator.cc, xla/service/hlo_rematerialization and
libtpu, as their messages are published.
"""

from tonnage.interchange.diagnose.numbers import NUMBER
from tonnage.interchange.diagnose.patterns import SAYS_CAUSE, failure

_N = NUMBER
FAILURES = (
    failure(
        "jax",
        "RESOURCE_EXHAUSTED: Out of memory",
        r"RESOURCE_EXHAUSTED: Out of memory (?:while trying )?(?:to )?allocat\w{1,3} (?P<tried>\d+) bytes",
        tried="bytes",
    ),
    failure(
        "jax",
        "Ran out of memory in memory space",
        rf"Ran out of memory in memory space \w+\. Used (?P<wanted>{_N})G of (?P<total>{_N})G",
        phase="forward",
        cause="activations",
        strength=SAYS_CAUSE,
        wanted="gib",
        total="gib",
    ),
)
