"""What the tests of DeepSpeed, Accelerate, Transformers and TRL share: reading a file or a command, and round trips."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tonnage.interchange.check import Understood, understood
from tonnage.interchange.export import export
from tonnage.interchange.reading import Asker
from tonnage.interchange.source import command_source, file_source, text_source
from tonnage.kernel.errors import TonnageError
from tonnage.question.read import read
from tonnage.verbs import train

FILES = Path(__file__).parent / "files"
NUMBERS = [None, True, False, 0, 1, -1, 2, 8, 1e9, 0.5, 10**30, float("inf")]
TEXTS = ["auto", "true", "no", "bf16", "x", "", "8", "cpu", "none", "FULL_SHARD", "nvme", "\0", "{", "1:2"]
ODD = st.sampled_from([*NUMBERS, *TEXTS, [], [1], ["a"], {}, {"a": 1}, [{}]])


def of_file(tool: str, name: str, model: str = "", on: str = "h100") -> Understood:
    return understood(file_source(str(FILES / tool / name)), Asker(model=model, on=on))


def of_text(tool: str, values: Mapping[str, Any] | str, on: str = "8xh100", model: str = "llama-3.1-8b") -> Understood:
    text = values if isinstance(values, str) else json.dumps(values)
    return understood(text_source(text, "config.json"), Asker(tool=tool, model=model, on=on))


def of_command(command: str, on: str = "h100", model: str = "", folder: Path | None = None) -> Understood:
    return understood(command_source([command], folder), Asker(model=model, on=on))


def keys(found: Understood, status: str) -> dict[str, str]:
    return {key.key: key.value for key in found.document.keys if key.status == status}


def why(found: Understood, key: str) -> str:
    return next(one.why for one in found.document.keys if one.key == key)


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Sections of keys whose names are joined by dots; what does not fit below another value is left out."""
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        *sections, name = key.split(".")
        place: Any = tree
        for section in sections:
            place = place.setdefault(section, {}) if isinstance(place, dict) else None
        if isinstance(place, dict):
            place[name] = value
    return tree


def is_answered_or_refused(tool: str, values: Mapping[str, Any]) -> None:
    """Whatever the values are: read, or a clean error."""
    try:
        of_text(tool, nested(values))
    except TonnageError as error:
        assert str(error)


def round_trip(tool: str, question: Mapping[str, Any]) -> None:
    """What is written asks for the same plan, with the same bytes and seconds."""
    asked = {"model": "llama-3.1-8b", "on": "8xh100", "as_is": True, **question}
    written = export(tool, "train", asked)
    lacks = {option: asked[option] for option in map(_field, written.lacks) if option in asked}
    ending = {".json": "config.json", ".yaml": "config.yaml"}[written.ending]
    asker = Asker(model=str(lacks.pop("model", "")), on=str(lacks.pop("on", "")))
    found = understood(text_source(written.text, ending), asker)
    assert found.document.is_sure, written.text
    before = _figures({**asked, **_filled(tool, asked)})
    after = _figures({**lacks, **found.question, "as_is": True})
    assert after == before, written.text


def _field(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")


def _filled(tool: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    from tonnage.interchange.formats import format_of

    form = format_of(tool)
    own = {"runtime": form.sets["train"]} if form.sets else {}
    return {**own, **(form.fills("train", asked) if form.fills else {})}


def _figures(question: Mapping[str, Any]) -> tuple[float, float]:
    answer = train.answer(read("train", {**question, "advice": False}).given)
    return answer.needed_bytes, float(answer.step_time.value) if answer.step_time is not None else 0.0
