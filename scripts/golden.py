"""Compare the answers of every verb and face with the recorded ones of tests/golden, or record them anew.

A file of tests/golden is a group of questions. A question is a line after "> "; the lines below it are its record:

    > tonnage train llama-3.1-8b --on 8xh100 --json      a command; with --json its document is recorded, else its text
    > python tonnage.train("qwen3-8b", on="h100")        an expression
    > http POST /v1/train {"model": "qwen3-8b"}          a request to the HTTP API
    > mcp train {"model": "qwen3-8b"}                    a call of a tool, or tools/list

Short values stand whole. A longer one is its leading numbers, to all digits, and "#NUMBERS.TEXTS": a hash of all
numbers in it and one of all its keys and texts, so that a difference says which of the two changed. `--show QUESTION`
prints a record before it is shortened: run it before and after a change, and compare the two outputs.

To add a question: write its line into a group, and run `scripts/golden.py --write --group GROUP`.
"""

import argparse
import contextlib
import difflib
import hashlib
import io
import json
import os
import re
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

ENVIRONMENT = {"TONNAGE_LANG": "en", "HF_HUB_OFFLINE": "1", "COLUMNS": "100", "CUDA_VISIBLE_DEVICES": ""}
HOMES = ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "tonnage"
GOLDEN = ROOT / "tests" / "golden"
TODAY = date.fromisoformat(os.environ.get("GOLDEN_DAY", "2026-11-23"))  # what prices are aged against
MARK = "> "
MAX_PLAIN = 72  # characters of a value that stands whole
MAX_ERROR = 300  # characters of an error message that stands whole
MAX_NUMBERS = 2  # leading numbers of a longer value
MAX_PARTS = 8  # paragraphs of a text that have a line of their own
# Keys of what a search took on this machine, of all questions, and of those to the verbs whose documents have them.
TIMED = frozenset({"search_seconds"})
TIMED_OF = {"tonnage sweep": frozenset({"seconds", "plans_per_second", "bytes"}), "inventory": frozenset({"seconds"})}
DURATION = re.compile(r"\b[\d.,]+ (?:s|ms|seconds|plans/s|questions/s)(?!\w)")
NUMBER = re.compile(r"\d[\d,.]*(?:e[+-]?\d+)?")
OPENED = contextlib.ExitStack()  # what is closed when all questions are answered
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
JSON_NUMBER = re.compile(r"-?\d[\d.]*(?:[eE][+-]?\d+)?")
Lines = list[str]


# What a question answers, whole: a status and named parts, each a document (any JSON value) or a text.


class _FixedDay:
    """Stands for `date` or `datetime` of a module, with a fixed today."""

    def __init__(self, real: type) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __call__(self, *parts: Any, **named: Any) -> Any:
        return self._real(*parts, **named)

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, self._real)

    def today(self) -> Any:
        return TODAY if self._real is date else datetime.combine(TODAY, datetime.min.time())

    def now(self, zone: Any = None) -> datetime:
        return datetime.combine(TODAY, datetime.min.time().replace(hour=12), tzinfo=zone)


def fix_day() -> None:
    """Every module of the package that asks which day it is gets TODAY, until OPENED is closed."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if re.search(r"\bdate\.today\(|\bdatetime\.now\(", path.read_text(encoding="utf-8")):
            name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
            module = import_module(name)
            for word, real in (("date", date), ("datetime", datetime)):
                if getattr(module, word, None) is real:
                    setattr(module, word, _FixedDay(real))
                    OPENED.callback(setattr, module, word, real)


@contextlib.contextmanager
def clean_place() -> Iterator[Path]:
    """An empty home and working directory with the files that questions name, on the day TODAY."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, _environment(ENVIRONMENT | dict.fromkeys(HOMES, folder)):
        place = Path(folder, "place")
        place.mkdir()
        for file in sorted((GOLDEN / "files").iterdir()):
            (place / file.name).write_bytes(file.read_bytes())
        os.chdir(place)
        try:
            with OPENED:
                fix_day()
                yield place
        finally:
            _client.cache_clear()
            os.chdir(before)


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """These variables, and afterwards what they were."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def ask_command_line(rest: str, place: Path) -> dict[str, Any]:
    """Status, document or text, message, and the files that were written."""
    from tonnage.cli import main

    words = shlex.split(rest)
    output, errors, there = io.StringIO(), io.StringIO(), {path.name for path in place.iterdir()}
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        status = main(words)
    found: dict[str, Any] = {"status": status}
    text = output.getvalue()
    if "--json" in words and text.startswith("{"):
        found["document"] = json.loads(text)
    else:
        found["text"] = text
    found["message"] = errors.getvalue()
    for path in sorted(place.iterdir()):
        if path.name not in there:
            found[path.name] = _content(path)
    return found


def _content(path: Path) -> Any:
    """A written file; of a folder its files, and the rows of a dataset."""
    if not path.is_dir():
        found = path.read_text(encoding="utf-8", errors="replace")
        path.unlink()
        return found
    import shutil

    import pyarrow.dataset

    rows: Any = None
    files = sorted(each.relative_to(path).as_posix() for each in path.rglob("*") if each.is_file())
    if any(name.endswith(".parquet") for name in files):
        parts = [str(path / name) for name in files if name.endswith(".parquet")]
        rows = [pyarrow.dataset.dataset(part).to_table().to_pylist() for part in parts]
    shutil.rmtree(path)
    return {"files": files, "rows": json.loads(json.dumps(rows, default=str))}


def ask_python(rest: str, _place: Path) -> dict[str, Any]:
    """The value of an expression; of an object its document."""
    import tonnage

    value = eval(rest, {"tonnage": tonnage})
    if hasattr(value, "to_dict"):
        value = value.to_dict()
    return {"text": value} if isinstance(value, str) else {"document": json.loads(json.dumps(value, default=str))}


@cache
def _client() -> Any:
    """The HTTP API, whose answers are made in this process, where the day is TODAY, instead of processes beside it."""
    from litestar.testing import TestClient

    from tonnage.web.answer import Refusal, answered
    from tonnage.web.app import create_app
    from tonnage.web.process.pool import Pool
    from tonnage.web.settings import Settings

    async def answer_here(pool: Any, verb: str, question: Mapping[str, Any], _left: Any, detail: str = "full") -> Any:
        found = answered(verb, question, pool._within, detail)
        if isinstance(found, Refusal):
            raise found
        return found

    OPENED.callback(setattr, Pool, "answered", Pool.answered)
    Pool.answered = answer_here  # type: ignore[method-assign]
    return OPENED.enter_context(TestClient(create_app(Settings(hub=False)), base_url="http://127.0.0.1:8000"))


def ask_http(rest: str, _place: Path) -> dict[str, Any]:
    """Status and body of a response."""
    method, url, body = (*rest.split(" ", 2), "")[:3]
    response = _client().request(
        method, url, content=body or None, headers={"Content-Type": "application/json"} if body else {}
    )
    kind = response.headers.get("content-type", "")
    content = {"document": response.json()} if "json" in kind else {"text": response.text}
    return {"status": response.status_code, "type": kind, **content}


def ask_mcp(rest: str, _place: Path) -> dict[str, Any]:
    """The tools, or what one of them answers."""
    from tonnage.kernel.reach import Reach
    from tonnage.mcp_server.server import Settings, answer, tools

    within = Reach(hubs=False)
    if rest == "tools/list":
        return {tool.name: tool.model_dump(mode="json", exclude_none=True) for tool in tools(within)}
    name, arguments = rest.split(" ", 1)
    made = answer(name, json.loads(arguments), Settings(within))
    return {
        "error": made.is_error,
        "text": "\n".join(each.text for each in made.content),
        "document": made.structured_content,
    }


FACES: dict[str, Callable[[str, Path], dict[str, Any]]] = {
    "tonnage": ask_command_line,
    "python": ask_python,
    "http": ask_http,
    "mcp": ask_mcp,
}


def ask(question: str, place: Path) -> dict[str, Any]:
    """The whole answer of a question, without what differs from run to run."""
    face, _, rest = question.partition(" ")
    try:
        found = FACES[face](rest, place)
    except Exception as error:  # noqa: BLE001 - what a question raises is its answer
        found = {"raises": f"{type(error).__name__}: {error}"}
    timed = next((names for words, names in TIMED_OF.items() if words in question), frozenset())
    plain = json.dumps(found, ensure_ascii=False)
    varying = (
        str(place),
        str(ROOT),
        f"tonnage {_version()}",
        f'"{_version()}"',
        *(f'"{key}"' for key in TIMED | timed),
    )
    return _masked(found, str(place), timed) if timed or any(each in plain for each in varying) else found


def _version() -> str:
    from tonnage.kernel.version import __version__

    return __version__


def _masked(value: Any, place: str, timed: frozenset[str]) -> Any:
    """Without paths of this machine, versions and durations of searches."""
    if isinstance(value, Mapping):
        hidden = {key for key, each in value.items() if key in TIMED | timed and _is_number(each)}
        return {key: "MASKED" if key in hidden else _masked(each, place, timed) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(each, place, timed) for each in value]
    if not isinstance(value, str):
        return value
    if value == _version():
        return "VERSION"
    text = value.replace(place, "PLACE").replace(str(ROOT), "ROOT").replace(f"tonnage {_version()}", "tonnage VERSION")
    return DURATION.sub("MASKED", text) if timed else text


# The short form of an answer, which is what files hold.


def short_record(answer: Mapping[str, Any]) -> Lines:
    """The lines of a record."""
    lines = []
    for name, value in answer.items():
        if name == "type" and value == "application/json":
            continue
        if name in ("status", "type", "error") and not isinstance(value, Mapping | list):
            lines.append(f"{name} {_plain(value)}")
        elif isinstance(value, str):
            lines += _text_lines(name, value)
        elif name == "document" and isinstance(value, Mapping):
            lines += [f"{key} {_short(each)}" for key, each in value.items() if key != "schema" and each != []]
            lines += (
                [f"empty {' '.join(empty)}"] if (empty := [key for key, each in value.items() if each == []]) else []
            )
        else:
            lines.append(f"{name} {_short(value)}")
    return lines


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _short(value: Any) -> str:
    """A value whole if it is short, else its size, its leading numbers and hashes."""
    plain = _plain(value)
    if len(plain) <= MAX_PLAIN:
        return plain
    leading = list(_leading(value))[:MAX_NUMBERS]
    size = f"[{len(value)}] " if isinstance(value, list) else ""
    return f"{size}{' '.join(leading)}{' ' if leading else ''}{_hashes(plain)}"


def _leading(value: Any) -> Iterator[str]:
    """The numbers that say most: of a term its value, of an object those of its own fields."""
    if isinstance(value, Mapping):
        if "value" in value and "unit" in value:
            yield _plain(value["value"])
            return
        for key, each in value.items():
            if _is_number(each):
                yield f"{key}={_plain(each)}"
            elif isinstance(each, Mapping) and "unit" in each and _is_number(each.get("value")):
                yield f"{key}={_plain(each['value'])}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _hashes(plain: str) -> str:
    """Of a JSON text: a hash of its numbers in order, and one of its keys, texts, truth values and shape."""
    outside = STRING.sub('"', plain)
    return f"#{_hash(JSON_NUMBER.findall(outside))}.{_hash([*STRING.findall(plain), JSON_NUMBER.sub('0', outside)])}"


def _hash(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:6]


def _text_lines(name: str, text: str) -> Lines:
    """A text whole if it is short, else each paragraph's first words, number of lines and hashes."""
    if not text:
        return []
    whole = _plain(text.strip("\n"))
    if len(whole) <= MAX_ERROR:
        return [f"{name} {whole}"]
    paragraphs = [part for part in re.split(r"\n\s*\n", text) if part.strip()]
    while len(paragraphs) > MAX_PARTS:
        size = -(-len(paragraphs) // MAX_PARTS)
        paragraphs = ["\n\n".join(paragraphs[at : at + size]) for at in range(0, len(paragraphs), size)]
    lines = [f"{name} {len(text.splitlines())} lines"]
    for part in paragraphs:
        numbers, words = _hash(NUMBER.findall(part)), _hash([NUMBER.sub("0", part)])
        lines.append(f"| {' '.join(part.split())[:28].rstrip()} #{numbers}.{words}")
    return lines


# Files of groups.


def read_group(path: Path) -> dict[str, Lines]:
    """Question -> its record, in the order of the file."""
    found: dict[str, Lines] = {}
    record: Lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith(MARK):
            record = found.setdefault(line.removeprefix(MARK), [])
        elif line:
            record.append(line)
    return found


def write_group(path: Path, records: Mapping[str, Sequence[str]]) -> None:
    lines = [line for question, record in records.items() for line in (f"{MARK}{question}", *record)]
    text = "".join(f"{line}\n" for line in lines)
    path.write_text(text, encoding="utf-8")


def groups() -> dict[str, Path]:
    """Name -> file."""
    return {path.stem: path for path in sorted(GOLDEN.glob("*.txt"))}


def differences(question: str, recorded: Lines, place: Path) -> Lines:
    """Lines that differ between the record and the answer of today; none where they are equal."""
    if not recorded:
        return [f"{question}", "    has no record: run scripts/golden.py --write"]
    present = short_record(ask(question, place))
    if present == recorded:
        return []
    lines = [
        line for line in difflib.unified_diff(recorded, present, lineterm="", n=0) if line[:2] not in ("--", "++", "@@")
    ]
    return [f"{question}", *(f"    {line[:1]} {line[1:]}" for line in lines)]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="golden.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="record the answers of today")
    parser.add_argument(
        "--group", action="append", choices=list(groups()), metavar="NAME", help="these groups alone (default: all)"
    )
    parser.add_argument("--show", metavar="QUESTION", help="print the whole answer of one question")
    parser.add_argument("--most", type=int, default=40, help="differing questions that are printed (default: 40)")
    given = parser.parse_args(arguments)
    with clean_place() as place:
        if given.show:
            print(json.dumps(ask(given.show.removeprefix(MARK), place), indent=1, ensure_ascii=False))
            return 0
        chosen = {name: path for name, path in groups().items() if not given.group or name in given.group}
        return _record(chosen, place) if given.write else _compare(chosen, place, given.most)


def _record(chosen: Mapping[str, Path], place: Path) -> int:
    for name, path in chosen.items():
        start = time.process_time()
        questions = read_group(path)
        write_group(path, {question: short_record(ask(question, place)) for question in questions})
        print(f"{name}: {len(questions)} questions, {path.stat().st_size:,} bytes, {time.process_time() - start:.1f} s")
    return 0


def _compare(chosen: Mapping[str, Path], place: Path, most: int) -> int:
    start, asked, differing = time.process_time(), 0, 0
    for name, path in chosen.items():
        for question, recorded in read_group(path).items():
            asked += 1
            found = differences(question, recorded, place)
            differing += bool(found)
            if found and differing <= most:
                print(f"[{name}] " + "\n".join(found), flush=True)
    if differing > most:
        print(f"... and {differing - most} questions more")
    print(f"{asked:,} questions, {differing:,} differ ({time.process_time() - start:.0f} s)")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
