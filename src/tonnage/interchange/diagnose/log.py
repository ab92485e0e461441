"""The text of a log: its lines without colours, times and names of processes, and which rank wrote each."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.reach import allowed_file, called, is_file, is_there
from tonnage.kernel.units import MIB
from tonnage.user_files import read_bytes

LARGEST = 64 * MIB  # bytes of a log that is read
LONGEST = 4000  # characters of a line that are looked at
MOST_PREFIXES = 8  # of one line: a container's, a scheduler's, Ray's, the logger's
_BINARY = 0.02  # part of control characters from which on a text is none

_ANSI = re.compile(r"\x1b(?:\[[0-?]{0,20}[ -/]{0,4}[@-~]|\][^\x07\x1b\n]{0,200}(?:\x07|\x1b\\)|[@-Z\\^_])")
_RANK = re.compile(r"(?:^|[_ ])((?:TP|PP|DP|EP)\d+)(?=[_ \]]|$)")
# What stands before what a program says, and the group that names the rank, if there is one.
_PREFIXES = tuple(
    map(
        re.compile,
        (
            r"\[(?:default|rank:?|RANK )(\d{1,5})\]:?\s?",  # torchrun, PyTorch's excepthook, TensorRT-LLM
            r"\[[A-Za-z][\w.-]{0,60}:(\d{1,5})\]:\s?",  # host and rank
            r"\[(\d{1,5})\]:\s?",
            r"(\d{1,5}): (?=[A-Z\[(/\s])",  # srun --label
            # vLLM's processes and Ray's
            r"\(([\w.:]{1,60}) (?:pid|ip|actor_id)=[^()]{1,120}\)\s?",
            r"(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL)\s{1,8}\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?\s",
            r"\[?[\w./-]{1,80}\.(?:py|go|cpp|cc|cu|h):\d{1,6}\]\s?",
            # a date and a time, in brackets also with ranks behind them (SGLang)
            r"\[\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?([^\]\n]{0,60})\][:,]?\s?",
            r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?[:,]?\s{1,4}",
            r"\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\]\s?",  # TensorRT-LLM
            r"\[(?:TRT-LLM|TensorRT-LLM|TRT|[TDIWEFV]|TRACE|DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL)\]\s?",
            r"[EWIFC]\d{4} \d\d:\d\d:\d\d\.\d{1,6}\s{1,4}\d{1,10} [^\]\n]{1,160}\]\s?",  # torch's own
            r"(?:[A-Z][a-z]{2}|\d{1,2}月) {1,2}\d{1,2} \d\d:\d\d:\d\d [\w.-]{1,60} [\w./@-]{1,60}(?:\[\d{1,10}\])?:\s?",
            r"\d{1,4}\.\d\d\.\d{3}\.\d{3} [TDIWEF]\s{1,2}",  # llama.cpp
            r"(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL)\s{0,8}[:|]\s",
            r"\| (?:TRACE|DEBUG|INFO|SUCCESS|WARNING|ERROR|CRITICAL)\s{1,8}\| [^|\n]{1,120} - ",  # loguru
            r"[A-Za-z][\w.-]{1,60}\s{0,20}\| ",  # docker compose
            r"> ",  # quoted
        ),
    )
)


class Line(Struct, frozen=True):
    """A line. `number`: from 1 on; `text`: what the program says; `rank`: who wrote it, "" where nothing says."""

    number: int
    text: str
    rank: str = ""


class Log:
    """A log. Lines are cleaned when they are asked for, so that a long log costs a search of its text alone."""

    def __init__(self, text: str, name: str = "the log"):
        self.name = name
        self.text = _ANSI.sub("", text.replace("\r\n", "\n")) if "\x1b" in text or "\r" in text else text

    @cached_property
    def _ends(self) -> list[int]:
        """Where each line ends; a carriage return of a progress bar ends one too."""
        return [match.start() for match in re.finditer(r"[\n\r]", self.text)]

    @cached_property
    def _numbers(self) -> list[int]:
        """The number of each line, as editors count them."""
        numbers, number = [1], 1
        for end in self._ends:
            number += self.text[end] == "\n"
            numbers.append(number)
        return numbers

    def __len__(self) -> int:
        return len(self._ends) + 1

    def at(self, index: int) -> Line:
        """The line of this index, from 0 on."""
        start = self.start_of(index)
        end = self._ends[index] if index < len(self._ends) else len(self.text)
        plain, rank = cleaned(self.text[start : min(end, start + LONGEST)])
        return Line(self._numbers[index], plain, rank)

    def start_of(self, index: int) -> int:
        """Where a line begins in the text."""
        return self._ends[index - 1] + 1 if index else 0

    def with_literal(self, literal: str, most: int) -> Iterator[int]:
        """Indices of the lines that have these characters: at most so many from the start, and as many from the end."""
        first: list[int] = []
        position = self.text.find(literal)
        while position >= 0 and len(first) < most:
            first.append(bisect_right(self._ends, position - 1))
            position = self.text.find(literal, self._end_after(position))
        last: list[int] = []
        before = len(self.text)
        stop = position
        while stop >= 0 and len(last) < most:
            at = self.text.rfind(literal, stop, before)
            if at < 0:
                break
            index = bisect_right(self._ends, at - 1)
            last.append(index)
            before = self.start_of(index)
        yield from dict.fromkeys([*first, *reversed(last)])

    def _end_after(self, position: int) -> int:
        index = bisect_right(self._ends, position - 1)
        return self._ends[index] if index < len(self._ends) else len(self.text)

    def before(self, index: int, rank: str, most: int) -> Iterator[tuple[int, Line]]:
        """Lines of the same rank above this one, the nearest first."""
        for above in range(index - 1, max(index - most, 0) - 1, -1):
            line = self.at(above)
            if line.rank == rank:
                yield above, line

    def after(self, index: int, rank: str, most: int) -> Iterator[Line]:
        """Lines of the same rank below this one."""
        for below in range(index + 1, min(index + most + 1, len(self))):
            line = self.at(below)
            if line.rank == rank:
                yield line


def cleaned(line: str) -> tuple[str, str]:
    """The line without what loggers put before it, and the rank that they name."""
    rank = ""
    for _ in range(MOST_PREFIXES):
        for prefix in _PREFIXES:
            match = prefix.match(line)
            if match is None:
                continue
            if prefix.groups:
                rank = _rank(match[1] or "") or rank
            line = line[match.end() :]
            break
        else:
            break
    return line, rank


def _rank(named: str) -> str:
    """`3` of `3`, `TP3` of `Worker_TP3`, `DP4 TP4` of ` DP4 TP4`."""
    return named if named.isdecimal() else " ".join(_RANK.findall(named))


def file_log(name: str) -> Log:
    """The log in a file that a user names."""
    path = allowed_file(name, instead="paste what it holds")
    if is_file(path) and path.stat().st_size > LARGEST:
        raise too_large(called(path))
    return Log(decoded(read_bytes(path, LARGEST), called(path)), called(path))


def piped_log(data: bytes) -> Log:
    """The log that was piped."""
    return Log(decoded(data, "standard input"), "standard input")


def is_message(words: str) -> bool:
    """Whether these are a log's own words, such as a pasted "RuntimeError: CUDA out of memory", and no file's name."""
    return "\n" in words or (": " in words.strip() and not is_there(words))


def decoded(data: bytes, name: str) -> str:
    """The text of a log; InvalidInput for what is too large, or no text. Single bytes that are none are replaced."""
    if len(data) > LARGEST:
        raise too_large(name)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):  # as PowerShell writes
        return data.decode("utf-16", "replace").removeprefix("\ufeff")
    text = data.decode("utf-8-sig", "replace")
    sample = text[:100_000]
    odd = sum(
        character in "\x00\ufffd" or (character < " " and character not in "\n\r\t\x1b\b\f") for character in sample
    )
    if odd > max(_BINARY * len(sample), 20 if "\x00" not in sample else 4):
        raise InvalidInput("{name} is no log: it holds bytes that are no text.", name=name)
    return text


def too_large(name: str) -> InvalidInput:
    return InvalidInput(
        "{name} is larger than {largest} MiB. Give the end of it: tail -n 50000 FILE | tonnage diagnose -",
        name=name,
        largest=LARGEST // MIB,
    )
