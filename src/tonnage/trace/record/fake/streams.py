"""The current stream of a program: allocations of different streams come from different pools."""

from collections import Counter

_STACK = [0]
_MADE: Counter[bool] = Counter()
_A_POOL = 32  # streams of a priority, given out in turn (PyTorch, c10/cuda/CUDAStream.cpp: kStreamsPerPool)


def current_stream() -> int:
    return _STACK[-1]


def push(stream: int) -> None:
    _STACK.append(stream)


def pop() -> None:
    if len(_STACK) > 1:
        _STACK.pop()


def replace(stream: int) -> None:
    _STACK[-1] = stream


def new(priority: int = 0) -> int:
    """The number of the next stream: 1 to 32, and 33 to 64 for high priority, then again from the first."""
    high = priority < 0
    _MADE[high] += 1
    return 1 + (_MADE[high] - 1) % _A_POOL + _A_POOL * high


def reset() -> None:
    """Reset to a program's start, so that stream numbers are equal in each recording."""
    _MADE.clear()
    _STACK[:] = [0]
