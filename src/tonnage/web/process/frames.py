"""What passes between the server and a process that answers: a length, and so many bytes. The bytes of an answer are
copied as they are: a document is encoded where it is made, and nobody reads it on its way.
"""

import pickle
import socket
from struct import Struct

from tonnage.web.answer import EncodedAnswer, Refusal

_LENGTH = Struct("!Q")
_ANSWER = Struct("!cBI")  # what follows: an answer with its status and the length of its command
HEADER = _LENGTH.size
ANSWER, REFUSAL = b"A", b"R"


def frame(content: bytes) -> bytes:
    return _LENGTH.pack(len(content)) + content


def length_of(header: bytes | bytearray) -> int:
    """How many bytes follow."""
    return int(_LENGTH.unpack(header)[0])


def told(outcome: EncodedAnswer | Refusal) -> list[bytes]:
    """The parts of what is sent of an outcome."""
    if isinstance(outcome, Refusal):
        return [frame(REFUSAL + pickle.dumps(outcome))]
    command = outcome.command.encode()
    size = _ANSWER.size + len(command) + len(outcome.body)
    return [_LENGTH.pack(size) + _ANSWER.pack(ANSWER, outcome.status, len(command)) + command, outcome.body]


def answer_of(content: bytes | bytearray) -> EncodedAnswer | Refusal:
    """The outcome that was sent."""
    view = memoryview(content)
    if view[:1] == REFUSAL:
        refusal: Refusal = pickle.loads(view[1:])
        return refusal
    _, status, length = _ANSWER.unpack(view[: _ANSWER.size])
    start = _ANSWER.size + length
    return EncodedAnswer(bytes(view[start:]), status, str(view[_ANSWER.size : start], "ascii"))


def come(line: socket.socket, size: int) -> bytearray:
    """So many bytes of a line; EOFError where it is closed."""
    content = bytearray(size)
    left = memoryview(content)
    while left:
        read = line.recv_into(left)
        if not read:
            raise EOFError
        left = left[read:]
    return content
