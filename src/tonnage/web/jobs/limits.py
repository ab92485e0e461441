"""What jobs may take."""

from msgspec import Struct

MAX_PROGRESS = 10.0  # steps a second and count that are written down


class JobLimits(Struct, frozen=True):
    """`at_once`: jobs that run, of all workers together; `waiting`: jobs that wait for a place; `kept_seconds`: how
    long the answer of a job is there to be fetched after its end, and `kept`: of how many jobs.
    """

    at_once: int = 2
    waiting: int = 32
    seconds: float = 600
    memory_bytes: int = 4 << 30
    kept_seconds: float = 900
    kept: int = 64
