"""Names of breakdown parts that several packages look up. A name that one file alone uses stands in that file."""

TTFT = "TTFT"
TPOT = "time per output token (TPOT)"
PREFILL = "prefill"
CUDA_CONTEXT = "CUDA context"
CUDA_GRAPHS = "CUDA graphs"
LEFT_UNUSED = "left unused by {engine} (outside {setting})"  # a template: the engine and its setting of memory


def is_left_unused(name: str) -> bool:
    """Return whether this part is memory that the engine does not use."""
    return name.startswith(LEFT_UNUSED.partition("{")[0])
