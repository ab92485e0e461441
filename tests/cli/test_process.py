"""The process of one command has Python look for garbage rarely; servers, and who imports the command line, keep its
own numbers.
"""

import subprocess
import sys

import pytest

CODE = """
import gc, sys
before = gc.get_threshold()
{what}
print(gc.get_threshold() == before, gc.get_freeze_count() > 0)
"""


def _asked(what: str) -> str:
    done = subprocess.run([sys.executable, "-c", CODE.format(what=what)], capture_output=True, check=True, text=True)
    return done.stdout.splitlines()[-1]


def _process(words: list[str]) -> str:
    return _asked(f"sys.argv = {['tonnage', *words]}; from tonnage.__main__ import main; assert main() == 0")


def test_a_command_that_ends_after_one_answer_looks_rarely():
    assert _process(["explain", "MFU"]) == "False True"


@pytest.mark.parametrize("words", [["web", "--help"], ["--lang", "zh", "mcp", "--help"]])
def test_servers_keep_the_numbers_of_python(words):
    assert _process(words) == "True True"


def test_who_imports_the_command_line_keeps_them_too():
    assert _asked("from tonnage.cli import main; assert main(['--version']) == 0") == "True False"


def test_both_ways_of_starting_are_the_same_process():
    """`python -m tonnage` and the script, whose entry is `tonnage.__main__:main`."""
    started = [[sys.executable, "-m", "tonnage"], [sys.executable, "-c", "from tonnage.__main__ import main; main()"]]
    assert len({subprocess.check_output([*words, "--version"]) for words in started}) == 1
