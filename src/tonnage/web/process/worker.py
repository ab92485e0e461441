"""A process that answers questions, one after the other, until its line is closed."""

import signal
import sys
from multiprocessing.connection import Connection

from tonnage.kernel.reach import Reach
from tonnage.web.answer import answered
from tonnage.web.process.garbage import collect_seldom
from tonnage.web.process.parent import end_with_parent


def work(line: Connection, within: Reach, memory_bytes: int) -> None:
    """Answer what comes over the line."""
    end_with_parent()  # also in the midst of an answer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends this process
    _limit(memory_bytes)
    # of a fork nearly all is left out already (warm.py); a process that is started anew has all to leave out
    collect_seldom()
    while True:
        try:
            verb, question, detail = line.recv()
        except (EOFError, OSError):
            return
        line.send(answered(verb, question, within, detail))


def _limit(memory_bytes: int) -> None:
    """Where the system can: beyond it there is a MemoryError here, and not the end of another process."""
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
