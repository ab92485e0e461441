"""Record the short texts of tests/render/golden_text anew, or compare them: what each verb prints at 80 and 100
columns, in English and Chinese.

    python scripts/short_texts.py            # compares; status 1 where a text differs
    python scripts/short_texts.py --write    # records them: after a text was changed for a reason
"""

import argparse
import difflib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import golden

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "render" / "golden_text"
WIDTHS, LANGUAGES = (80, 100), ("en", "zh")
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
    with golden.clean_place() as place:
        for name, question in QUESTIONS.items():
            for language in LANGUAGES:
                for width in WIDTHS:
                    yield FOLDER / f"{name}.{language}.{width}.txt", printed(question, language, width, place)


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
