"""What no text for people has: a number that is none, a negative amount."""

import re
from collections.abc import Iterator

NOT_A_NUMBER = re.compile(r"(?<![\w/-])(?:nan|-?inf)(?![\w/-])", re.IGNORECASE)
NEGATIVE = re.compile(
    r"(?<![\w.)\]-])-\d[\d,.]*(?:e[+-]?\d+)? ?(?:GiB|MiB|KiB|bytes|TB|GB|MB|kB|ms|us|µs|s|h|days|tokens|USD)\b"
)


# Differences that a text shows: weights that were taken off what the accelerator holds, and slopes.
DIFFERENCE_TEXTS = ("in host memory", "one more sequence", "one more token")


def text_faults(text: str) -> Iterator[tuple[str, str]]:
    """Numbers in a text that no answer has."""
    for pattern, what in ((NOT_A_NUMBER, "a number that is none"), (NEGATIVE, "a negative amount")):
        for found in pattern.finditer(text):
            line = text[text.rfind("\n", 0, found.start()) + 1 : found.end()]
            if pattern is NEGATIVE and any(words in line for words in DIFFERENCE_TEXTS):
                continue
            around = text[max(0, found.start() - 60) : found.end() + 30].replace("\n", " | ")
            yield "violation", f"{what}: ...{around}..."
