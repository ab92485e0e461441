"""What a sweep shows while it runs, on standard error: a bar on a terminal, a line now and then where there is none."""

import sys
import time
from collections.abc import Callable
from typing import Any, Self, TextIO

from tonnage.kernel.message import Message

EVERY = 10.0  # seconds between lines


class Progress:
    """Counts plans, or questions of serving (`what`); the rate and the time that is left are those of what was made
    now, not of what lay there.
    """

    def __init__(
        self,
        plans: int,
        lay: int,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        what: str = "plans",
    ):
        self.what = what
        self.plans, self.lay, self.made = plans, lay, 0
        self.stream, self.clock = stream if stream is not None else sys.stderr, clock
        self.began = self.said = clock()
        self.bar: Any = None

    def __enter__(self) -> Self:
        if self.stream is not None and self.stream.isatty():
            self._draw()
        elif self.lay:
            self._line()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()
        elif self.made:
            self._line()

    def __call__(self, plans: int) -> None:
        """Count `plans` more as done."""
        self.made += plans
        if self.bar is not None:
            self.bar.update(self.task, completed=self.lay + self.made, rate=self.words)
        elif self.clock() - self.said >= EVERY:
            self._line()

    @property
    def rate(self) -> float:
        """Plans a second."""
        return self.made / max(self.clock() - self.began, 1e-9)

    @property
    def words(self) -> str:
        """The rate and the time that is left, as text."""
        left = self.plans - self.lay - self.made
        if not self.made:
            return "no chunk is back yet"
        ends = Message(", {duration} left", duration=_duration(left / self.rate)) if left else ""
        return f"{self.rate:,.0f} {self.what}/s{ends}"

    def _line(self) -> None:
        self.said = self.clock()
        if self.stream is None:
            return
        done = self.lay + self.made
        share = 100 * done / self.plans if self.plans else 100
        self.stream.write(
            f"{done:,} of {self.plans:,} {self.what} ({share:.1f} %), {self.words if self.made else 'were there'}\n"
        )
        self.stream.flush()

    def _draw(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        self.bar = Bar(
            TextColumn(self.what),
            BarColumn(),
            TaskProgressColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[rate]}"),
            console=Console(file=self.stream),
            refresh_per_second=4,
            transient=True,
        )
        self.task = self.bar.add_task(self.what, total=self.plans, completed=self.lay, rate=self.words)
        self.bar.start()


def _duration(seconds: float) -> str:
    """ "1:02:03", or "12 s" below a minute."""
    rounded = round(seconds)
    if rounded < 60:
        return f"{rounded} s"
    minutes, rest = divmod(rounded, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
