"""Seconds of one micro-batch through some layers, by pass and by what they are spent on."""

from collections import defaultdict

from tonnage.estimate.plan.schedule import Times
from tonnage.kernel.formula import Number

WHEN = ("forward", "again", "backward")


def _plus(total: Number, more: Number, count: Number) -> Number:
    """total + count * more, without walking arrays for a zero or a one."""
    if type(more) is int and more == 0:
        return total
    if type(count) is not int or count != 1:
        more = count * more
    return more if type(total) is int and total == 0 else total + more


class Spent:
    """Seconds of kernels of one kind, with their FLOP and the bytes that they move."""

    __slots__ = ("bytes", "flops", "hidden", "seconds")

    def __init__(self) -> None:
        self.seconds: Number = 0
        self.flops: Number = 0
        self.bytes: Number = 0
        self.hidden: Number = 0

    def add(self, seconds: Number, flops: Number, moved: Number, count: Number = 1, hidden: Number = 0) -> None:
        """More of it; `hidden`: seconds of links that run beside kernels, and are not in `seconds`."""
        self.seconds = _plus(self.seconds, seconds, count)
        self.flops = _plus(self.flops, flops, count)
        self.bytes = _plus(self.bytes, moved, count)
        self.hidden = _plus(self.hidden, hidden, count)


class Passes:
    """One micro-batch through some layers. `kernels`: by pass and kind; `sent`: bytes and exposed seconds by pass and
    group of ranks;
    `waits`: seconds by pass in which kernels wait for the host."""

    def __init__(self) -> None:
        self.kernels: defaultdict[tuple[str, str], Spent] = defaultdict(Spent)
        self.sent: defaultdict[tuple[str, str], Spent] = defaultdict(Spent)
        self.waits: defaultdict[str, Number] = defaultdict(int)
        self.weights: Number = 0  # seconds of backward that make gradients of weights

    def add(self, other: "Passes", count: Number = 1) -> None:
        """Another's, `count` times."""
        for mine, theirs in ((self.kernels, other.kernels), (self.sent, other.sent)):
            for key, spent in theirs.items():
                mine[key].add(spent.seconds, spent.flops, spent.bytes, count, spent.hidden)
        for when, seconds in other.waits.items():
            self.waits[when] = self.waits[when] + count * seconds
        self.weights = self.weights + count * other.weights

    def computing(self, when: str) -> Number:
        """Seconds of kernels, and of waiting for the host, in a pass."""
        return sum((spent.seconds for (at, _), spent in self.kernels.items() if at == when), self.waits[when])

    def sending(self, when: str) -> Number:
        """Seconds of a pass in which only links work."""
        return sum((spent.seconds for (at, _), spent in self.sent.items() if at == when), 0)

    def only(self, when: str) -> "Passes":
        """One of its passes."""
        made = Passes()
        for mine, theirs in ((self.kernels, made.kernels), (self.sent, made.sent)):
            theirs.update({key: spent for key, spent in mine.items() if key[0] == when})
        made.waits[when] = self.waits[when]
        return made

    @property
    def seconds(self) -> Number:
        """All of it."""
        return sum(self.computing(when) + self.sending(when) for when in WHEN)

    @property
    def times(self) -> Times:
        """By what a schedule puts apart; exchanges and what is run again count with the gradients of inputs."""
        forward = self.computing("forward") + self.sending("forward")
        return Times(forward, self.seconds - forward - self.weights, self.weights)
