"""The types of the Python functions' options are those that are declared."""

import inspect
import runpy
from pathlib import Path
from typing import get_type_hints

import pytest

import tonnage

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "option_types.py"))


@pytest.mark.parametrize(("path", "text"), SCRIPT["written"]().items(), ids=lambda each: getattr(each, "name", ""))
def test_the_types_are_up_to_date(path, text):
    assert path.read_text() == text, "python scripts/option_types.py writes them"


def test_every_function_that_takes_options_says_which():
    for name in tonnage.__all__:
        function = getattr(tonnage, name)
        if inspect.isfunction(function):
            for each in inspect.signature(function).parameters.values():
                assert each.kind is not each.VAR_KEYWORD or str(each.annotation).startswith("Unpack["), name


def test_an_option_has_the_same_name_and_other_names_in_python_as_in_a_question():
    from tonnage.api import options
    from tonnage.question.verbs import form_of

    for verb, kind in (("train", "TrainOptions"), ("serve", "ServeOptions")):
        form, keys = form_of(verb), {*get_type_hints(getattr(options, kind))}
        given = [form.options[name] for name in keys & form.options.keys()]
        short = {flag.lstrip("-").replace("-", "_") for option in given for flag in option.short}
        assert keys - form.options.keys() == short
