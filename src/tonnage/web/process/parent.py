"""Processes of a server end with the process that started them, also where that one was killed and could tell
nobody.
"""

import multiprocessing
import os
import signal
import sys
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path
from threading import Thread

PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>
OPEN_FILES = Path("/dev/fd")  # Linux, macOS and the BSDs list the open files of a process there


def end_with_parent() -> None:
    """End this process as soon as the process that started it through `multiprocessing` has ended. Nothing where it was
    started otherwise.

    `multiprocessing` gives every process a pipe whose other end is open in its parent alone: the system closes it when
    the parent ends, however that happens. A fork server stands between a process and its parent, and lives on while it
    has children: the pipe leads past it.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    if os.getppid() == parent.pid:
        kill_with_parent()
    Thread(target=_exit_after, args=(parent.sentinel,), name="tonnage-parent", daemon=True).start()


def kill_with_parent() -> None:
    """Linux: have the system kill this process when its parent ends. This also ends a process that computes without
    Python's lock being free.
    """
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _exit_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


def keep_files_from_children() -> None:
    """Mark every open file, save the three standard ones, as closed in programs that this process starts.

    A worker gets its listening socket through `exec`, so that it is inheritable; a program that kept it open would keep
    the port.
    """
    numbers = [int(path.name) for path in OPEN_FILES.iterdir()] if OPEN_FILES.is_dir() else []
    for number in numbers:
        if number > 2:
            with suppress(OSError):  # the folder itself was open while it was listed
                os.set_inheritable(number, False)
