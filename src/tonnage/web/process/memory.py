"""Where a process has as much memory as it may."""

from errno import ENOMEM


def is_out_of_memory(error: Exception) -> bool:
    """Python says so of its own objects by a MemoryError, and the system by an OSError of what it was to open or
    read.
    """
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == ENOMEM)
