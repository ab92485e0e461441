"""A file on a web site, read forward from its start in parts; parts are kept, so that no byte is requested twice."""

from collections.abc import Callable

from tonnage.kernel.errors import Unreachable
from tonnage.kernel.message import Message
from tonnage.models.hubs.web import Answer

FIRST_READ = 65_536
Fetch = Callable[[str, tuple[int, int]], Answer]


class RemoteFile:
    """A remote file. `fetch(url, (first byte, count))` returns that part; the first part also tells the file's size."""

    def __init__(self, fetch: Fetch, url: str, name: str):
        self._fetch, self._name = fetch, name
        answer = fetch(url, (0, FIRST_READ))
        self.start, self.size = bytearray(answer.body), answer.total
        if self.size is None and len(self.start) < FIRST_READ:
            self.size = len(self.start)
        self._expect(len(self.start), FIRST_READ if self.size is None else min(FIRST_READ, self.size))
        # The URL that the endpoint redirected to: later parts come from there without asking the endpoint again.
        self._url = answer.url

    def read(self, start: int, length: int) -> bytes:
        """Bytes from `start`; fewer than `length` only at the end of the file."""
        have, end = len(self.start), start + length
        if self.size is not None:
            end = min(end, self.size)
        if end > have:
            part = self._fetch(self._url, (have, end - have)).body
            self.start += part
            self._expect(len(part), end - have if self.size is not None else 0)
        return bytes(self.start[start:end])

    def _expect(self, received: int, requested: int) -> None:
        if received < requested:
            raise Unreachable(
                Message(
                    "{name}: {came:,} bytes came where {asked:,} were asked for.",
                    name=self._name,
                    came=received,
                    asked=requested,
                )
            )
