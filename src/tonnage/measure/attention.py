"""Attention in PyTorch with one backend alone, for models that call scaled_dot_product_attention."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

BACKENDS = {"flash": "FLASH_ATTENTION", "efficient": "EFFICIENT_ATTENTION", "math": "MATH", "cudnn": "CUDNN_ATTENTION"}


def only(backend: str) -> Any:
    """A context in which attention takes this backend or fails; `sdpa` and `eager` leave the choice to PyTorch."""
    return nullcontext() if backend not in BACKENDS else _only(BACKENDS[backend])


@contextmanager
def _only(name: str) -> Iterator[None]:
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel

        backend = getattr(SDPBackend, name)
    except (ImportError, AttributeError):  # before PyTorch 2.3, and cuDNN before 2.5
        raise NotImplementedError(f"this PyTorch cannot choose the attention backend {name}") from None
    with sdpa_kernel([backend]):
        yield
