"""What a long command shows of its progress, on a terminal only."""

import sys

from tonnage.language import say


class Bar:
    """One field for each stage that is begun, of as many as are expected, on standard error."""

    def __init__(self, expected: int = 0):
        self.expected, self.begun = expected, 0

    def __call__(self, stage: str) -> None:
        self.begun += 1
        if sys.stderr.isatty():
            left = max(self.expected - self.begun, 0)
            print(f"\r\x1b[K[{'#' * self.begun}{'.' * left}] {say(stage)}", end="", file=sys.stderr, flush=True)

    def over(self) -> None:
        """Takes the bar away."""
        if self.begun and sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
