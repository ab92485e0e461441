"""Record the short texts of tests/render/golden_text anew, or compare them: what each verb prints at 80 and 100
columns, in English and Chinese.

    python scripts/short_texts.py            # compares; status 1 where a text differs
    python scripts/short_texts.py --write    # records them: after a text was changed for a reason
"""

import argparse
import difflib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import golden
from tonnage.language import current

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "render" / "golden_text"
WIDTHS, LANGUAGES = (80, 100), ("en", "zh")
# Where the command line finds the function that answers a verb: `train` and `serve` import it when they run.
ANSWERED_IN = (
    "verbs.train",
    "verbs.serve",
    *(f"cli.forms.{form}" for form in ("plan_training", "plan_serving", "max_training", "max_serving", "compare")),
)
QUESTIONS = {
    "train": "train llama-3.1-70b --on 8x8xH100",
    "train-not-fit": "train llama-3.1-70b --on 8xH100",
    "train-tight": "train llama-3.1-8b --on 8xH100 --sequence-length 8k --recompute none --loss full",
    "train-run": "train llama-3.1-8b --on 8xH100 --tokens 15B --deadline 30d",
    "serve": "serve llama-3.1-70b --on 8xH100 --users 64",
    "serve-chosen": "serve deepseek-r1 --on 16xH100",
    "serve-miss": "serve llama-3.1-70b --on 8xH100 --users 64 --ttft 300ms --tpot 20ms",
    "plan": "plan llama-3.1-8b --on 2x8xH100",
    "plan-serve": "plan llama-3.1-8b --serve --on h100,l40s --users 64 --ttft 1s --tpot 50ms",
    "max": "max context llama-3.1-8b --on 4090",
    "max-users": "max users llama-3.1-70b --on 8xH100 --context 8k --ttft 2s",
    "compare": "compare llama-3.1-70b --on h100,h200,mi300x --weights bf16,fp8 --context 8k,32k --users 16",
}


def texts() -> Iterator[tuple[Path, str]]:
    """Each file and what it should hold."""
    with golden.clean_place() as place, answered_once():
        for name, question in QUESTIONS.items():
            for language in LANGUAGES:
                for width in WIDTHS:
                    yield FOLDER / f"{name}.{language}.{width}.txt", printed(question, language, width, place)


@contextmanager
def answered_once() -> Iterator[None]:
    """Inside it each question is answered once in a language; another width or --json only shows its answer again."""
    with ExitStack() as patches:
        for name in ANSWERED_IN:
            module = import_module(f"tonnage.{name}")
            patches.enter_context(patch.object(module, "answer", _remembering(module.answer)))
        yield


def _remembering(answer: Callable[..., Any]) -> Callable[..., Any]:
    answers: dict[tuple[str, ...], Any] = {}

    @wraps(answer)
    def remembered(arguments: Any, *more: Any) -> Any:
        words = getattr(arguments, "words", None)
        if words is None:  # a question in a file or in another tool's command
            return answer(arguments, *more)
        key = (current(), *(word for word in words if word != "--json"))
        if key not in answers:
            answers[key] = answer(arguments, *more)
        return answers[key]

    return remembered


def printed(question: str, language: str, width: int, place: Path) -> str:
    """What a command prints at this width."""
    os.environ["COLUMNS"] = str(width)
    answer = golden.ask_command_line(f"{question} --lang {language}", place)
    return str(answer["text"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="record the texts")
    options = parser.parse_args()
    different = 0
    for path, text in texts():
        recorded = path.read_text() if path.exists() else ""
        if text == recorded:
            continue
        different += 1
        if options.write:
            path.write_text(text)
        else:
            lines = recorded.splitlines(keepends=True), text.splitlines(keepends=True)
            sys.stdout.writelines(difflib.unified_diff(*lines, path.name, "now"))
    print(f"{different} texts {'written' if options.write else 'differ'}")
    return int(bool(different) and not options.write)


if __name__ == "__main__":
    sys.exit(main())
