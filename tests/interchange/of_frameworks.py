"""What tests of Megatron-LM, NeMo, veRL and OpenRLHF share: files that are read, and round trips of what is written."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tonnage.interchange.check import Understood, answered, understood
from tonnage.interchange.export import export, writer
from tonnage.interchange.formats import formats
from tonnage.interchange.reading import Asker
from tonnage.interchange.source import Source, command_source, file_source, text_source
from tonnage.kernel.errors import InvalidInput
from tonnage.question.read import in_fields, read

CARRIERS = ("launcher", "sbatch")  # formats that read what a launcher or a job carries
FILES = Path(__file__).parent / "files"
# Values of a command, and of a file, that are odd for most keys.
WORDS = (
    "",
    "0",
    "-1",
    "1",
    "2",
    "8",
    "1.5",
    "true",
    "null",
    "[1,2]",
    "abc",
    "1e400",
    "nan",
    "9" * 30,
    "full",
    "$X",
    "fp8",
)
ODD = st.sampled_from(WORDS)
ODD_OF_FILES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 10**20),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


def golden(tool: str) -> dict[str, Any]:
    """File of a tool -> the machines, the question that it asks, the keys that are assumed or not understood."""
    found: dict[str, Any] = json.loads((FILES / tool / "golden.json").read_text())
    return found


def check_golden(tool: str, name: str, wanted: dict[str, Any]) -> None:
    """Whether a file asks what it should."""
    found = of_file(f"{tool}/{name}", wanted["on"])
    assert dict(found.question) == wanted["question"]
    assert sorted(keys(found, "assumed")) == wanted["assumed"]
    assert sorted(keys(found, "not understood")) == wanted["not understood"]
    signs = {one.name: one.recognises(source(f"{tool}/{name}")) for one in formats() if one.name not in CARRIERS}
    assert max(signs, key=lambda one: signs[one]) == tool
    assert sum(count == signs[tool] for count in signs.values()) == 1
    assert all(why(found, key) for key in wanted["not understood"])


def of_file(name: str, on: str = "8xh100", **asker: Any) -> Understood:
    return understood(file_source(str(FILES / name)), Asker(on=on, **asker))


def of_command(command: str, on: str = "8xh100", **asker: Any) -> Understood:
    return understood(command_source([command]), Asker(on=on, **asker))


def of_text(text: str, name: str, on: str = "8xh100", **asker: Any) -> Understood:
    return understood(text_source(text, name), Asker(on=on, **asker))


def keys(found: Understood, status: str) -> set[str]:
    return {key.key for key in found.document.keys if key.status == status}


def why(found: Understood, key: str) -> str:
    return next(one.why for one in found.document.keys if one.key == key)


def source(name: str) -> Source:
    return file_source(str(FILES / name))


def round_trip(form: str, question: dict[str, Any]) -> tuple[Any, Any, Understood]:
    """The answer to a question, the answer to what it was written as, and what was read of that."""
    written = export(form, "train", question)
    found = understood(text_source(written.text, f"run{written.ending}"))
    own = writer(form).sets.get("train")
    parsed = read("train", {**question, **({"runtime": own} if own else {}), "advice": False})
    with in_fields(parsed):
        first = import_module("tonnage.verbs.train").answer(parsed.given)
    return first, answered(found, {"as_is": True, "advice": False}), found


def same(first: Any, second: Any) -> bool:
    """Whether two answers are of the same plan: their inputs, memory and time."""
    ways = ("as_is", "advice")
    inputs = {name: first.question[name].value for name in first.question if name not in ways}
    others = {name: second.question[name].value for name in second.question if name not in ways}
    times = [getattr(one.step_time, "value", one.step_time) for one in (first, second)]
    shared = set(inputs) & set(others)
    changed = {name for name in shared if inputs[name] != others[name]}
    return not changed and first.needed_bytes == second.needed_bytes and times[0] == times[1]


def question_of(words: str) -> dict[str, Any]:
    """The question that words of a command line of `train` ask."""
    from tonnage.cli.export import question_words

    return dict(question_words("train", words.split()))


def check_any(taken: Source, tool: str, runtimes: tuple[str, ...]) -> None:
    """A source of any keys and values is understood or refused, and never fails in another way."""
    try:
        found = understood(taken, Asker(on="8xh100", tool=tool))
    except InvalidInput:
        return
    assert found.question["runtime"] in runtimes


def tree_text(fields: dict[str, Any]) -> str:
    """YAML of dotted names and their values."""
    tree: dict[str, Any] = {}
    for name, value in fields.items():
        *sections, last = name.split(".")
        inside = tree
        for section in sections:
            inside = inside.setdefault(section, {}) if isinstance(inside.get(section, {}), dict) else {}
        inside[last] = value
    return json.dumps(tree).replace("-Infinity", "-.inf").replace("Infinity", ".inf").replace("NaN", ".nan")
