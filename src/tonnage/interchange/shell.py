"""What scripts of bash set before they start a command: variables, arrays, sums, and branches that are known."""

import re
import shlex
from collections.abc import Iterator, Sequence

from tonnage.kernel.errors import InvalidInput

# What a script may have: a longer one would take seconds to be taken apart. Published recipes have up to 60 kB.
MAX_CHARACTERS = 200_000
MAX_LINES = 5000
MAX_LINE = 20_000  # characters, of lines that end in a backslash together
LONGEST_SUM = 200  # characters of an arithmetic expression that is computed
MOST_WORDS = 20_000  # of one command, after arrays are put in
LONGEST_WORD = 100_000  # characters: variables that double each other would take all memory
_ARRAY = re.compile(r"\s*(?:export\s+|local\s+|readonly\s+|declare\s+(?:-\w+\s+)*)?([A-Za-z_]\w*)(\+?)=\((?!\()")
_ARRAY_VALUE = re.compile(r"\$\{([A-Za-z_]\w*)\[[@*]\]\}")
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::?-([^{}]*))?\}|([A-Za-z_]\w*))")
_ALONE = re.compile(r"\$\{?([A-Za-z_]\w*)\}?")
_SUM = re.compile(r"\$\(\(([^()]*(?:\([^()]*\)[^()]*)*)\)\)")
_PLAIN_SUM = re.compile(r"[\d\s+\-*/%()]+")
_IF = re.compile(r"(if|elif)\s+(.*?)\s*;?\s*(?:then)?\s*$")
_TEST = re.compile(r"\[\[?\s+(.+?)\s+\]\]?")
_COMPARED = {
    "==": lambda a, b: a == b,
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "-eq": lambda a, b: int(a) == int(b),
    "-ne": lambda a, b: int(a) != int(b),
    "-gt": lambda a, b: int(a) > int(b),
    "-ge": lambda a, b: int(a) >= int(b),
    "-lt": lambda a, b: int(a) < int(b),
    "-le": lambda a, b: int(a) <= int(b),
}


def program_name(word: str) -> str:
    """The program that the first word of a command starts, without its folder."""
    return word.rstrip("/").rpartition("/")[2]


class Shell:
    """What a script has set so far.

    variables, arrays: name -> value, or words; `branches`: of each `if` that is open, whether the branch at hand
        runs, and whether one of its branches has; None where its condition is not known, and all its branches are read
    """

    def __init__(self) -> None:
        self.variables: dict[str, str] = {}
        self.arrays: dict[str, list[str]] = {}
        self.branches: list[tuple[bool | None, bool]] = []

    def runs(self, line: str) -> bool:
        """Whether a line is one that the script runs and this reader looks at: not a condition, nor in a branch that
        is not taken.
        """
        plain = line.strip()
        if match := _IF.fullmatch(plain):
            before = self.branches.pop() if match[1] == "elif" and self.branches else (None, False)
            holds = self._holds(match[2])
            taken = before[1]
            self.branches.append((False, True) if taken else (holds, holds is True))
            return False
        if plain.rstrip(";") == "else" and self.branches:
            holds, taken = self.branches[-1]
            self.branches[-1] = (None, taken) if holds is None and not taken else (not taken, True)
            return False
        if (plain.split(";")[0].split() or [""])[0] == "fi" and self.branches:
            self.branches.pop()
            return False
        return all(holds is not False for holds, _ in self.branches)

    def take_array(self, line: str) -> bool:
        """Keep an array that a line sets, or adds to; False for another line."""
        match = _ARRAY.match(line)
        if not match:
            return False
        *rows, last = line[match.end() :].rstrip().splitlines() or [""]
        words: list[str] = []
        for row in (*rows, _without_comment(last).rstrip().rstrip(";").removesuffix(")")):
            try:
                words += _row_words(row)
            except ValueError:  # a quote over two lines
                continue
        filled = [part for word in self.put_in(words) for part in _parts(word)]
        before = self.arrays.get(match[1], []) if match[2] else []
        self.arrays[match[1]] = [*before, *filled][:MOST_WORDS]
        return True

    def computed(self, line: str) -> str:
        """The line with sums such as $((8 * NODES)) worked out where all of them is known."""
        return _SUM.sub(self._sum, line) if "$((" in line else line

    def put_in(self, words: Sequence[str]) -> list[str]:
        """The words with arrays and variables put in. A variable that holds options is several words."""
        filled_words: list[str] = []
        for word in words:
            if match := _ARRAY_VALUE.fullmatch(word):
                filled_words += self.arrays.get(match[1], [] if match[1] in self.arrays else [word])
            elif (match := _ALONE.fullmatch(word)) and "-" in self.variables.get(match[1], ""):
                filled_words += _parts(self.variables[match[1]])
            else:
                filled_words.append(self.filled(word))
        return filled_words[:MOST_WORDS]

    def filled(self, word: str) -> str:
        """The word with arrays and variables that are known, or have a default; others stay as they are written."""
        if "$" not in word:
            return word
        with_arrays = _ARRAY_VALUE.sub(self._joined, word) if "[" in word else word
        size = 0
        for match in _VARIABLE.finditer(with_arrays):
            size += len(self._value(match))
            if size > LONGEST_WORD:
                return word
        return _VARIABLE.sub(self._value, with_arrays)

    def _joined(self, match: re.Match[str]) -> str:
        words = self.arrays.get(match[1], [match[0]])
        return " ".join(words) if sum(map(len, words)) <= LONGEST_WORD // 100 else match[0]

    def _value(self, match: re.Match[str]) -> str:
        known = self.variables.get(match[1] or match[3], match[2])
        return match[0] if known is None else known

    def _sum(self, match: re.Match[str]) -> str:
        text = re.sub(r"\b[A-Za-z_]\w*", lambda name: self.variables.get(name[0], name[0]), self.filled(match[1]))
        text = text.replace("$", "")
        if len(text) > LONGEST_SUM or not _PLAIN_SUM.fullmatch(text) or "**" in text:
            return match[0]
        try:
            return str(_arithmetic(text))
        except (ValueError, ZeroDivisionError, IndexError):
            return match[0]

    def _holds(self, condition: str) -> bool | None:
        """Whether a condition holds; None where it is not one of two texts, or a variable of it is not known."""
        match = _TEST.fullmatch(condition)
        if not match:
            return None
        try:
            words = [self.filled(word) for word in shlex.split(match[1])]
            if len(words) != 3 or words[1] not in _COMPARED or any("$" in word or "*" in word for word in words):
                return None
            return _COMPARED[words[1]](words[0], words[2])
        except ValueError:
            return None


def check_size(script: str, name: str) -> None:
    """InvalidInput, with the name of the script, where it has more lines or characters than are read."""
    if len(script) > MAX_CHARACTERS:
        raise InvalidInput(
            "{file} has more than {most:,} characters: give only the commands that train or serve.",
            file=name,
            most=MAX_CHARACTERS,
        )
    if script.count("\n") > MAX_LINES:
        raise InvalidInput(
            "{file} has more than {most:,} lines: give only the commands that train or serve.",
            file=name,
            most=MAX_LINES,
        )


def logical_lines(script: str, name: str = "the script") -> Iterator[str]:
    """The lines of a script without its comments: those that end in a backslash together, and an array or a quoted
    text with all its lines. InvalidInput, with the name of the script, for a line of more than MAX_LINE characters.
    """
    held = ""
    for line in script.splitlines():
        if line.lstrip().startswith("#"):
            continue
        held += line
        if len(held) > MAX_LINE:
            raise InvalidInput("{file} has more than {most:,} characters in one line.", file=name, most=MAX_LINE)
        if _ARRAY.match(held):
            if not _is_closed(held):
                held = held.rstrip().removesuffix("\\") + "\n"
                continue
        elif held.rstrip().endswith("\\"):
            held = held.rstrip()[:-1] + " "
            continue
        yield held
        held = ""
    if held:
        yield held


def joined_quotes(lines: Iterator[str]) -> Iterator[str]:
    """Lines where a variable is set to a text of several lines, which are one."""
    held: list[str] = []
    for line in lines:
        if held:
            held.append(line)
            if _quotes(line) % 2:
                yield " ".join(held)
                held = []
        elif _quotes(line) % 2 and re.match(r"\s*(?:export\s+)?[A-Za-z_]\w*=\"", line):
            held = [line]
        else:
            yield line
    yield from held


def _quotes(line: str) -> int:
    return line.replace('\\"', "").count('"')


def _is_closed(text: str) -> bool:
    """Whether the array that a text opens is closed: a bracket at the end of a line, beside quotes and comments."""
    last = text.splitlines()[-1]
    return re.sub(r"\$\([^()]*\)", "", _without_comment(last)).rstrip().rstrip(";").endswith(")")


def _without_comment(row: str) -> str:
    return re.sub(r"(^|\s)#.*", "", row)


def _row_words(row: str) -> list[str]:
    return shlex.split(_without_comment(row).rstrip().rstrip(";").removesuffix("\\"))


def _parts(word: str) -> list[str]:
    """The words of an element that holds an option and its value, as "--lr 1e-4"."""
    if " " not in word.strip() or not word.lstrip().startswith("-"):
        return [word]
    try:
        return shlex.split(word)
    except ValueError:
        return word.split()


def _arithmetic(text: str) -> int:
    """A sum of whole numbers, as bash works it out."""
    tokens = re.findall(r"\d+|[+\-*/%()]", text)
    value, left = _added(tokens)
    if left:
        raise ValueError
    return value


def _added(tokens: list[str]) -> tuple[int, list[str]]:
    value, left = _multiplied(tokens)
    while left and left[0] in "+-":
        sign = 1 if left[0] == "+" else -1
        more, left = _multiplied(left[1:])
        value += sign * more
    return value, left


def _multiplied(tokens: list[str]) -> tuple[int, list[str]]:
    value, left = _single(tokens)
    while left and left[0] in "*/%":
        by, rest = _single(left[1:])
        value = value * by if left[0] == "*" else value // by if left[0] == "/" else value % by
        left = rest
    return value, left


def _single(tokens: list[str]) -> tuple[int, list[str]]:
    if tokens[0] == "-":
        value, left = _single(tokens[1:])
        return -value, left
    if tokens[0] == "(":
        value, left = _added(tokens[1:])
        if left[:1] != [")"]:
            raise ValueError
        return value, left[1:]
    return int(tokens[0]), tokens[1:]
