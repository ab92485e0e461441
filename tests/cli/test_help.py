"""`--help` lists the usual options on one screen; `--help-all` lists every one."""

import re
import shlex

import pytest

from tonnage.cli import main
from tonnage.question.option import TITLES
from tonnage.question.verbs import form_of

LINES = 45
VERBS = {
    "train": form_of("train"),
    "serve": form_of("serve"),
    "plan": form_of("plan", "train"),
    "plan --serve": form_of("plan", "serve"),
    "max users": form_of("max", "serve"),
    "max sequence": form_of("max", "train"),
    "compare": form_of("compare", "serve"),
    "compare --train": form_of("compare", "train"),
}


@pytest.fixture
def said(capsys, monkeypatch):
    def ask(words, columns=80):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert main([*words.split()]) == 0
        return capsys.readouterr().out

    return ask


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("columns", [80, 100])
@pytest.mark.parametrize("verb", VERBS)
def test_help_fits_on_one_screen(said, verb, columns, language):
    from tonnage.language.columns import width

    lines = said(f"--lang {language} {verb} --help", columns).splitlines()
    assert len(lines) <= LINES
    assert max(map(width, lines)) <= columns


@pytest.mark.parametrize("verb", VERBS)
def test_help_lists_the_options_that_are_declared_usual_and_no_others(said, verb):
    form = VERBS[verb]
    usual = [option for option in form.options.values() if option.usual and option.name not in form.searched]
    shown = {*re.findall(r"^  (--[a-z-]+)", said(f"{verb} --help"), flags=re.M)} - {"--json", "--formulas", "--html"}
    assert ("--config" in shown) == (verb in ("train", "serve"))
    declared = {option.usual.flag or option.flag for option in usual if not option.alone}
    assert shown - {"--csv", "--verbose", "--config"} == declared
    assert 15 <= len(usual) <= 32


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_has_its_unit_and_default_in_the_help_of_all(said, verb):
    text = " ".join(said(f"{verb} --help-all", 200).split())
    missing = [option.flag for option in VERBS[verb].options.values() if not option.alone and option.flag not in text]
    assert not missing
    assert "(default: " in text and "[tokens]" in text


@pytest.mark.parametrize("verb", VERBS)
def test_titles_of_help_stand_in_one_order(said, verb):
    titles = [line for line in said(f"{verb} --help").splitlines() if line in TITLES]
    assert titles == [title for title in TITLES if title in titles]
    assert titles[0] == TITLES[0]


@pytest.mark.parametrize("verb", ["train", "serve", "max users", "max sequence"])
def test_the_example_of_the_help_is_answered(capsys, verb):
    words = shlex.split(VERBS[verb].example)
    assert words[0] == "tonnage"
    assert main([*words[1:], "--json", "summary"]) in (0, 2, 3)
    assert '"schema":' in capsys.readouterr().out
