"""Where uvicorn finds the application of a worker process. Imports little: a worker whose server has ended meanwhile
is to end before it imports more.
"""

from typing import Any

from tonnage.web.process.parent import end_with_parent, keep_files_from_children


def application() -> Any:
    """The application with the settings of the environment; this process ends with the one that started it."""
    end_with_parent()
    keep_files_from_children()
    from tonnage.web.app import from_environment

    return from_environment()
