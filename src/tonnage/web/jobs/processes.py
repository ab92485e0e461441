"""Processes of jobs."""

import os
import signal
from contextlib import suppress


def end_process(pid: int) -> None:
    """At once, with all that it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
