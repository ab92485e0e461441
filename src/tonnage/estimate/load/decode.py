"""The time of a pass in which every request decodes one token, looked up instead of computed: a simulation asks a
million times.
"""

from bisect import bisect_right

from tonnage.estimate.load.passes import PassTime

# from one context of the table to the next: where a straight line has a bend, it is at most 2 % off for an instant
_STEP = 1.08


class Decoding:
    """Seconds of a decoding pass by requests and keys: a row for each number of requests, straight between its
    contexts.

    Exact where a pass takes longer in proportion to the keys it reads, as attention does.
    """

    def __init__(self, pass_time: PassTime, longest: int) -> None:
        import numpy as np

        steps = int(np.ceil(np.log(max(longest, 2)) / np.log(_STEP))) + 1
        self._contexts = np.unique(np.rint(np.geomspace(1, max(longest, 2), steps)))
        self._points = self._contexts.tolist()
        self._last = len(self._points) - 2
        self._rows: dict[int, list[float]] = {}
        self._pass_time = pass_time

    def seconds(self, requests: int, keys: int) -> float:
        row = self._rows.get(requests)
        if row is None:
            seconds = self._pass_time.seconds(0, 0, requests, requests * self._contexts)
            row = self._rows[requests] = (seconds + 0 * self._contexts).tolist()
        context = keys / requests
        at = min(bisect_right(self._points, context) - 1, self._last)
        low, points = row[at], self._points
        return low + (row[at + 1] - low) * (context - points[at]) / (points[at + 1] - points[at])
