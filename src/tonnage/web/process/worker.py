"""A process that answers questions, one after the other, until its line is closed."""

import os
import pickle
import signal
import socket
import sys
from contextlib import suppress

from tonnage.kernel.reach import Reach
from tonnage.web.answer import answered
from tonnage.web.process.frames import HEADER, come, length_of, told
from tonnage.web.process.garbage import collect_seldom
from tonnage.web.process.parent import end_with_parent

NICE = 5  # how far a process that answers steps back behind the server


def work(line: socket.socket, within: Reach, memory_bytes: int) -> None:
    """Answer what comes over the line."""
    end_with_parent()  # also in the midst of an answer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends this process
    _step_back()
    _limit(memory_bytes)
    # of a fork nearly all is left out already (warm.py); a process that is started anew has all to leave out
    collect_seldom()
    while True:
        try:
            verb, question, detail = pickle.loads(come(line, length_of(come(line, HEADER))))
        except (EOFError, OSError):
            return
        try:
            for part in told(answered(verb, question, within, detail)):
                line.sendall(part)
        except OSError:  # the server is gone
            return


def _step_back() -> None:
    """Who reads requests comes first: a list, a saved plan or a kept answer waits for no estimate."""
    if hasattr(os, "nice"):
        with suppress(OSError):
            os.nice(NICE)


def _limit(memory_bytes: int) -> None:
    """Where the system can: beyond it there is a MemoryError here, and not the end of another process."""
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
