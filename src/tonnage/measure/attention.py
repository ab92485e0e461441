"""Attention in PyTorch limited to one backend, for models that call scaled_dot_product_attention."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message

BACKENDS = {"flash": "FLASH_ATTENTION", "efficient": "EFFICIENT_ATTENTION", "math": "MATH", "cudnn": "CUDNN_ATTENTION"}


class NoBackend(InvalidInput, NotImplementedError):
    """The error of a PyTorch too old to select attention's backend."""


def only(backend: str) -> Any:
    """A context in which attention takes this backend or fails; `sdpa` and `eager` leave the choice to PyTorch."""
    return nullcontext() if backend not in BACKENDS else _only(backend)


@contextmanager
def _only(backend: str) -> Iterator[None]:
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel

        chosen = getattr(SDPBackend, BACKENDS[backend])
    except (ImportError, AttributeError):  # before PyTorch 2.3, and cuDNN before 2.5
        raise NoBackend(
            Message(
                "{@attention}: this PyTorch cannot choose {backend}. Take sdpa, or a newer PyTorch.", backend=backend
            )
        ) from None
    with sdpa_kernel([chosen]):
        yield
