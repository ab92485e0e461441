"""The stream that a program is on: allocations of different streams come from different pools."""

_STACK = [0]


def current_stream() -> int:
    return _STACK[-1]


def push(stream: int) -> None:
    _STACK.append(stream)


def pop() -> None:
    if len(_STACK) > 1:
        _STACK.pop()


def replace(stream: int) -> None:
    _STACK[-1] = stream
