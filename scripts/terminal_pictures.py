"""Write docs/images/terminal.svg and terminal_zh.svg: what a question prints on a terminal of 100 columns, with its
colours, drawn by rich. README.md and README.zh.md show them.

make docs
"""

import os
import pty
import re
import subprocess
import sys
import termios
from html import unescape
from io import StringIO
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.text import Text

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
COMMAND = "tonnage train llama-3.1-70b --on 8x8xH100-SXM-80GB"
PICTURES = {"terminal.svg": "en", "terminal_zh.svg": "zh"}
COLUMNS, LINES = 100, 24
# Without rich's fonts, which come from another host.
FORM = re.sub(r"@font-face \{\{.*?\n    \}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.S).replace("Fira Code, ", "")

TEXT = re.compile(r'(<text class="terminal-r\d+"[^>]*? textLength=")([\d.]+)("[^>]*>)(.*?)(?=</text>)')


def on_terminal(command: str, language: str) -> list[str]:
    """The lines that a command prints on a terminal, with their colours."""
    unwanted = {"NO_COLOR", "FORCE_COLOR", "PYTHONPATH"}
    environment = {name: value for name, value in os.environ.items() if name not in unwanted} | {
        "TONNAGE_LANG": language,
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "COLUMNS": str(COLUMNS),
        "LINES": str(LINES),
        "HF_HUB_OFFLINE": "1",
    }
    reading, writing = pty.openpty()
    termios.tcsetwinsize(writing, (LINES, COLUMNS))
    with subprocess.Popen(
        [sys.executable, "-m", *command.split()],
        stdin=subprocess.DEVNULL,
        stdout=writing,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd=ROOT,
    ):
        os.close(writing)
        printed = b"".join(iter(lambda: _read(reading), b""))
    os.close(reading)
    return printed.decode().replace("\r\n", "\n").rstrip("\n").split("\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux: the other end is closed
        return b""


def picture(language: str) -> str:
    """The SVG of the first lines of an answer."""
    lines = on_terminal(COMMAND, language)
    shown = [f"$ {COMMAND}", *lines[:LINES], *(["..."] if len(lines) > LINES else [])]
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor")
    for line in shown:
        console.print(_in_runs(Text.from_ansi(line)), no_wrap=True, overflow="ellipsis")
    svg = console.export_svg(title="tonnage", code_format=FORM, unique_id="terminal")
    return re.sub(r"[ \t]+$", "", TEXT.sub(_widened, svg), flags=re.M)


def _widened(text: re.Match[str]) -> str:
    """A text of the SVG with its length in columns: rich takes a Chinese character for one."""
    start, length, end, words = text.groups()
    plain = unescape(words)
    return f"{start}{float(length) / len(plain) * cell_len(plain):.1f}{end}{words}" if plain else text.group()


def _in_runs(text: Text) -> Text:
    """The same text, of which each run of wide or of narrow characters is placed by itself: fonts differ in how wide a
    Chinese character is.
    """
    for at, run in enumerate(re.finditer(r"[\u2e80-\uffef]+| {2,}|(?:(?! {2})[^\u2e80-\uffef])+", text.plain)):
        text.stylize(Style(meta={"run": at}), *run.span())
    return text


def words_in(svg: str) -> str:
    """The text that a picture shows, without blanks."""
    return re.sub(r"\s", "", unescape("".join(re.findall(r"<text[^>]*>(.*?)</text>", svg))))


if __name__ == "__main__":
    for name, language in PICTURES.items():
        (IMAGES / name).write_text(picture(language), encoding="utf-8")
