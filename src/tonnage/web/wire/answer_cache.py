"""Answers that were given a short while ago, as bytes, in memory alone; the oldest go first."""

from collections import OrderedDict
from datetime import date
from time import monotonic

from tonnage.verbs.answered import FULL
from tonnage.web.answer import EncodedAnswer

MAX_QUESTION_BYTES = 65_536  # bytes


class AnswerCache:
    """At most `most` bytes, each answer for `seconds`. A new day makes new answers: prices have an age."""

    def __init__(self, most: int, seconds: float):
        self._most, self._seconds = most, seconds
        self._size = 0
        self._found: OrderedDict[tuple[str, bytes, str, date], tuple[float, EncodedAnswer]] = OrderedDict()

    def get(self, verb: str, question: bytes, detail: str = FULL) -> EncodedAnswer | None:
        """The answer to the same bytes."""
        key = _key(verb, question, detail)
        when, answer = self._found.get(key, (0.0, None))
        if answer is None:
            return None
        if monotonic() - when > self._seconds:
            self._drop(key)
            return None
        self._found.move_to_end(key)
        return answer

    def put(self, verb: str, question: bytes, answer: EncodedAnswer, detail: str = FULL) -> None:
        size = _size(question, answer)
        if len(question) > MAX_QUESTION_BYTES or size > self._most // 4:
            return
        key = _key(verb, question, detail)
        if key in self._found:
            self._drop(key)
        self._found[key] = (monotonic(), answer)
        self._size += size
        while self._size > self._most:
            self._drop(next(iter(self._found)))

    def _drop(self, key: tuple[str, bytes, str, date]) -> None:
        _, answer = self._found.pop(key)
        self._size -= _size(key[1], answer)


def _key(verb: str, question: bytes, detail: str) -> tuple[str, bytes, str, date]:
    return verb, question, detail, date.today()  # noqa: DTZ011 - prices have a day, no zone


def _size(question: bytes, answer: EncodedAnswer) -> int:
    return len(question) + len(answer.body) + len(answer.command) + 500  # and what Python needs around them
