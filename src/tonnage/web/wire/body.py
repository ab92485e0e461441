"""The body of a request: of bounded size and time, strict JSON, an object."""

import asyncio
import json
import re
from collections.abc import Iterator
from math import isfinite
from typing import Any

import msgspec
from litestar import Request
from litestar.exceptions import InternalServerException
from litestar.exceptions.http_exceptions import RequestEntityTooLarge

from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message
from tonnage.web.answer import Refusal, refusal
from tonnage.web.settings import Limits

DEEPEST = 64
MAX_DIGITS = 4300  # of a whole number that Python reads
MAX_NAME_LENGTH = 80  # characters of a field that an error repeats


async def read(request: Request[Any, Any, Any], limits: Limits) -> bytes:
    """All of the body; Refusal where it is no JSON by its name, too large or too slow."""
    kind, _, parameters = request.headers.get("content-type", "").partition(";")
    charset = parameters.strip().lower().removeprefix("charset=").strip('"')
    if kind.strip().lower() != "application/json" or charset not in ("", "utf-8"):
        raise Refusal(
            415,
            "NotJSON",
            (
                Message(
                    "a question is sent as Content-Type: application/json, in UTF-8. Got {kind}.",
                    kind=shown(kind + (parameters and ";" + parameters)),
                )
            ),
        )
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for piece in request.stream():  # as much as the application takes; the connection drops the rest
                body += piece
    except RequestEntityTooLarge:
        raise _too_large(limits) from None
    except InternalServerException:
        raise Refusal(400, "NotJSON", "the question ended before it was whole.") from None
    except TimeoutError:
        raise Refusal(
            408,
            "TooSlow",
            Message("the question did not come within {body_seconds:g} seconds.", body_seconds=limits.body_seconds),
            {"Connection": "close"},
        ) from None
    return bytes(body)


def _too_large(limits: Limits) -> Refusal:
    return Refusal(
        413,
        "TooLarge",
        Message("a question has at most {body_bytes:,} bytes.", body_bytes=limits.body_bytes),
        {"Connection": "close"},
    )


def question_of(body: bytes) -> dict[str, Any]:
    """The object that the bytes are.

    >>> question_of(b'{"model": "gpt2"}')
    {'model': 'gpt2'}
    """
    if not body.strip():
        raise _wrong("the body is empty")
    try:
        _check_strictly(body)
        parsed = json.loads(body, object_pairs_hook=_object)
    except RecursionError:
        raise _wrong(Message("it is nested more than {deepest} deep", deepest=DEEPEST)) from None
    except (
        msgspec.MsgspecError,
        ValueError,
    ) as error:  # ValueError: bad UTF-8; a number of more digits than Python reads
        if name := re.search(rb"(?<=[:,\[\s])-?(?:NaN|Infinity)(?=[\s,\]}])", body):
            raise _wrong(Message("JSON has no {name}", name=name.group().decode())) from None
        raise _wrong(str(error).rstrip(".")) from None
    if not isinstance(parsed, dict):
        raise _wrong("it is no object")
    if _deeper(parsed, DEEPEST):
        raise _wrong(Message("it is nested more than {deepest} deep", deepest=DEEPEST))
    return parsed


def _check_strictly(body: bytes) -> None:
    """UTF-8, no NaN, no half of a surrogate pair, and no number of a size that nothing has: the field of that is
    named.
    """
    try:
        msgspec.json.decode(body)
    except msgspec.MsgspecError as error:
        if "out of range" in str(error):
            for path, number in _large(json.loads(body, parse_int=Number, parse_float=Number)):
                raise refusal(
                    InvalidInput("{flag} is a number out of range. Got {value}.", flag=path, value=shown(str(number)))
                ) from None
        raise


class Number(str):
    """A number as it was written."""

    __slots__ = ()

    @property
    def is_large(self) -> bool:
        return not isfinite(float(self)) if not self.lstrip("-").isdecimal() else len(self) > MAX_DIGITS


def _large(value: Any) -> Iterator[tuple[str, Number]]:
    """The place and the text of each number that is out of range, without recursion."""
    waiting = [("", value)]
    while waiting:
        path, inner = waiting.pop()
        if isinstance(inner, dict):
            waiting.extend(
                (f"{path}.{name[:MAX_NAME_LENGTH]}" if path else name[:MAX_NAME_LENGTH], item)
                for name, item in inner.items()
            )
        elif isinstance(inner, list):
            waiting.extend((f"{path}[{at}]", item) for at, item in enumerate(inner))
        elif path and isinstance(inner, Number) and inner.is_large:
            yield path, inner


def _wrong(why: str) -> Refusal:
    return Refusal(
        400, "NotJSON", Message("a question is one JSON object of names and values, in UTF-8: {why}.", why=why)
    )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(Message("it holds {twice} twice in one object", twice=shown(twice)))
    return fields


def _deeper(value: Any, most: int) -> bool:
    """Whether lists and objects lie deeper in each other than `most`, without recursion."""
    waiting = [(value, 0)]
    while waiting:
        inner, depth = waiting.pop()
        if depth > most:
            return True
        if isinstance(inner, dict):
            waiting.extend((child, depth + 1) for child in inner.values() if isinstance(child, dict | list))
        elif isinstance(inner, list):
            waiting.extend((child, depth + 1) for child in inner if isinstance(child, dict | list))
    return False
