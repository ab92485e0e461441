"""What tests of trainers' files share: reading them, and writing a question and reading it again."""

from pathlib import Path
from typing import Any

from tonnage.documents.interchange.read import KeyDocument
from tonnage.interchange.check import Understood, understood
from tonnage.interchange.export import export
from tonnage.interchange.reading import Asker
from tonnage.interchange.source import command_source, file_source, text_source
from tonnage.kernel.errors import TonnageError
from tonnage.question.read import read
from tonnage.verbs.train import answer

FILES = Path(__file__).parent / "files"


def read_file(path: str, on: str = "8xh100", **asked: Any) -> Understood:
    return understood(file_source(str(FILES / path)), Asker(on=on, **asked))


def read_text(text: str, name: str, on: str = "8xh100", **asked: Any) -> Understood:
    """A text that stands in a file of this name, among the sample files."""
    return understood(text_source(text, name, FILES), Asker(on=on, **asked))


def read_command(command: str, on: str = "8xh100", **asked: Any) -> Understood:
    return understood(command_source([command], FILES), Asker(on=on, **asked))


def keys_of(found: Understood, status: str) -> dict[str, KeyDocument]:
    return {key.key: key for key in found.document.keys if key.status == status}


def not_understood(found: Understood) -> list[str]:
    return sorted(keys_of(found, "not understood"))


def check_reads_or_refuses(text: str, name: str, tool: str) -> None:
    """Any text is read, or refused with a sentence; every key of it is listed."""
    try:
        found = read_text(text, name, tool=tool, model="llama-3.1-8b")
    except TonnageError as error:
        assert "\n" not in str(error)
        return
    assert found.verb == "train"
    assert found.question["on"] == "8xh100"


def check_round_trip(form: str, ending: str, question: dict[str, Any]) -> str:
    """Written and read again, a question has the same plan, memory and time."""
    written = export(form, "train", question)
    again = understood(text_source(written.text, f"file{ending}"), Asker())
    assert again.document.is_sure, (written.text, not_understood(again))
    first = _answered(_completed(form, question))  # what makes it fit is chosen, and written
    second = _answered({**again.question, "as_is": True})
    differences = _differences(first, second)
    assert second.needed_bytes == first.needed_bytes, (written.text, differences)
    assert _seconds(second) == _seconds(first), (written.text, differences)
    assert not differences, (written.text, differences)
    return written.text


def _completed(form: str, question: dict[str, Any]) -> dict[str, Any]:
    from tonnage.interchange.formats import format_of

    own = format_of(form)
    more = own.fills("train", question) if own.fills is not None else {}
    return {**more, **({"runtime": own.sets["train"]} if own.sets else {}), **question}


def _answered(question: dict[str, Any]) -> Any:
    return answer(read("train", {**question, "advice": False}).given)


def _seconds(found: Any) -> float | None:
    return None if found.step_time is None else found.step_time.value


def _differences(first: Any, second: Any) -> dict[str, Any]:
    """Options whose values differ, but for those of a run, and for words of which one has none."""
    own, others = ({name: entry.value for name, entry in found.question.items()} for found in (first, second))
    for question in (own, others):  # qlora is lora on a base of 4 bits
        question["method"] = "lora" if question.get("method") == "qlora" else question.get("method")
        if question.get("tensor_parallel_size") == 1:  # of tensor ranks
            question.pop("sequence_parallel", None)
    same_size = {"num_microbatches", "global_batch_size"}
    return {
        name: (own[name], others[name])
        for name in own.keys() & others.keys() - same_size
        if own[name] != others[name] and name not in ("on", "max_steps", "lora_targets", "host_update_bandwidth")
    }
