"""Where uvicorn finds the application of a worker process. Imports little: a worker whose server has ended meanwhile
is to end before it imports more.
"""

import sys
from typing import Any

from tonnage.web.process.parent import end_with_parent, keep_files_from_children

# A thread that saves a plan takes Python's lock some ten times; while requests are read it would wait for 5 ms each
# time, which is what Python gives a thread.
SWITCH_SECONDS = 0.0005


def application() -> Any:
    """The application with the settings of the environment; this process ends with the one that started it."""
    end_with_parent()
    keep_files_from_children()
    sys.setswitchinterval(SWITCH_SECONDS)
    from tonnage.web.app import from_environment

    return from_environment()
