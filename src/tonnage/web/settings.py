"""What the owner of a server decides."""

from ipaddress import ip_address
from pathlib import Path

from msgspec import Struct

from tonnage.kernel.reach import Reach
from tonnage.web.jobs.limits import JobLimits


class Limits(Struct, frozen=True):
    """What one request, and all of them together, may take."""

    body_bytes: int = 1_000_000
    body_seconds: float = 15  # until all of a body has come
    header_seconds: float = 15  # until all headers have come
    send_seconds: float = 30  # a client that takes nothing of an answer for so long is left
    quick_seconds: float = 10  # of an answer that is no search
    answer_seconds: float = 60  # of a search; a question for longer is a job
    answer_memory: int = 4_000_000_000  # bytes of the process that answers
    at_once: int = 64  # questions that are answered or wait
    searches_at_once: int = 2
    connections: int = 1024
    kept_bytes: int = 64_000_000  # answers kept in memory for those who ask the same; 0: none
    kept_seconds: float = 300


class Settings(Struct, frozen=True):
    """`hub`: whether models may be read from model hubs; None: only where the server answers this machine alone.
    `models`: a folder whose models may be named. `names`: host names that browsers may call the server by, besides
    its address. `store`: URL of the data base of saved plans; `store_limit`: bytes that all of them may take.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    offline: bool = False
    hub: bool | None = None
    models: str | None = None
    names: tuple[str, ...] = ()
    store: str | None = None
    store_limit: int | None = None
    limits: Limits = Limits()
    jobs: JobLimits = JobLimits()
    folder: str | None = None  # shared by the workers of one server, gone with it

    @property
    def loopback(self) -> bool:
        """Whether only this machine can connect."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def reach(self) -> Reach:
        """How far questions reach: hubs as said, files of one folder or none, this machine only for its own user."""
        hubs = not self.offline and (self.loopback if self.hub is None else self.hub)
        return Reach(files=Path(self.models) if self.models else None, hubs=hubs, machine=self.loopback)
