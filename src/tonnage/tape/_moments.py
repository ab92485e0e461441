"""What is left of a tape: the tensors that a layer keeps, and the moments of its backward at which memory can peak."""

from collections.abc import Callable

from msgspec import Struct

from tonnage.tape._code import Code
from tonnage.tape._tape import TOKEN, Account, Key, Slot, Tensor


class Kept(Struct, frozen=True):
    """A tensor that stays from forward to backward: bytes for each unit of its key's extent."""

    name: str
    key: Key
    bytes: float


class Moment(Struct, frozen=True, eq=False):
    """What is live when an operation of the backward has just run: bytes by key, what the layer still keeps included."""

    name: str
    live: Account


class Layer(Struct, frozen=True, eq=False):
    """`kept` between forward and backward; `moments` of the backward, none of which needs less than another in all respects."""

    kept: tuple[Kept, ...]
    moments: tuple[Moment, ...]


def layer(code: Code, run: Callable[[Code, Tensor], Tensor], hidden: float, width: float) -> Layer:
    """Runs one layer on `hidden` numbers a token of `width` bytes, and then its backward."""
    x = code.new(hidden, width, TOKEN, "layer input")
    asked = Slot()
    x.slot = asked
    out = run(code, x)
    slot = out.slot
    shape = out.elements, out.width, out.extent
    del x, out
    kept = tuple(Kept(each.name, each.key, each.bytes) for each in code.kept())
    code.moments.clear()
    code.kind = "temporary"
    assert slot is not None
    code.backward([(slot, code.new(*shape))])
    return Layer(kept, tuple(_undominated(code.moments)))


def _undominated(moments: list[tuple[str, Account]]) -> list[Moment]:
    """The moments that no other exceeds in every key."""
    left: list[Moment] = []
    for name, live in moments:
        live = {key: size for key, size in live.items() if size}
        if any(_covers(other.live, live) for other in left):
            continue
        left = [other for other in left if not _covers(live, other.live)]
        left.append(Moment(name, live))
    return left


def _covers(more: Account, less: Account) -> bool:
    return all(more.get(key, 0) >= size for key, size in less.items())
