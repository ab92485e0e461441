"""README.zh.md says what README.md says: the same headings, commands, links and numbers, and what the commands print
in Chinese.
"""

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENGLISH, CHINESE = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh.md"))


def _levels(text: str) -> list[str]:
    return re.findall(r"(?m)^(#+) ", re.sub(r"(?s)```.*?```", "", text))


def _commands(text: str) -> list[str]:
    """Without their comments, which are translated."""
    return [re.sub(r"\s+#.*", "", line) for line in text.splitlines() if line.startswith("$ ")]


def _links(text: str) -> set[str]:
    """Without those to the other language and to its pictures."""
    links = set(re.findall(r"(?<!!)\[[^]]*\]\(([^)]+)\)", text))
    return {link for link in links if not link.startswith("README")}


def test_each_links_to_the_other():
    assert "(README.zh.md)" in ENGLISH
    assert "(README.md)" in CHINESE


def test_headings_are_the_same_in_number_and_level():
    assert _levels(CHINESE) == _levels(ENGLISH)


def test_commands_are_the_same():
    assert _commands(CHINESE) == _commands(ENGLISH)


def test_the_program_is_the_same():
    program = re.compile(r"(?s)```python.*?```")
    assert program.findall(CHINESE) == program.findall(ENGLISH)


def test_links_are_the_same():
    assert _links(CHINESE) == _links(ENGLISH)


def test_rows_of_tables_and_items_of_lists_are_as_many():
    for start in ("| ", "- "):
        of = [sum(line.startswith(start) for line in text.splitlines()) for text in (CHINESE, ENGLISH)]
        assert of[0] == of[1], start


def test_code_in_the_text_is_the_same():
    """Names of options, files and commands are not translated."""
    prose = [re.sub(r"(?s)```.*?```", "", text) for text in (CHINESE, ENGLISH)]
    chinese, english = (set(re.findall(r"`([^`\n]+)`", text)) for text in prose)
    assert chinese == english


def test_numbers_are_the_same():
    prose = [re.sub(r"(?s)```.*?```|\]\([^)]*\)", "", text) for text in (CHINESE, ENGLISH)]
    chinese, english = (re.findall(r"\d[\d.,]*\d", text) for text in prose)
    assert sorted(chinese) == sorted(english)


def test_what_it_shows_is_what_the_commands_print_in_chinese():
    refreshed = runpy.run_path(str(ROOT / "scripts" / "write_docs.py"))["refreshed"]
    assert refreshed(CHINESE, "zh") == CHINESE, "run `make docs`"
