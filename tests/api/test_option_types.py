"""The types of the Python functions' options are those that are declared."""

import inspect
import re
import runpy
from pathlib import Path
from typing import get_type_hints

import pytest

import tonnage
from tonnage.api.listing import USUAL

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
                # as text where annotations stay text, else as Python writes what is unpacked
                assert each.kind is not each.VAR_KEYWORD or str(each.annotation).startswith(("Unpack[", "*<")), name


def test_an_option_has_one_name_which_is_that_of_a_question():
    from tonnage.api import options
    from tonnage.question.verbs import form_of

    for verb, kind in (("train", "TrainOptions"), ("serve", "ServeOptions")):
        assert set(get_type_hints(getattr(options, kind))) <= set(form_of(verb).options)


@pytest.mark.parametrize("verb", ["train", "serve", "plan_training", "plan_serving"])
def test_every_option_of_a_function_is_listed_with_its_meaning(verb):
    from tonnage.api import options as types

    names = {"train": "TrainOptions", "serve": "ServeOptions"}
    kind = names.get(verb) or {"plan_training": "PlanTrainingOptions", "plan_serving": "PlanServingOptions"}[verb]
    listed = tonnage.options(verb)
    assert {each.name for each in listed.listed} == set(get_type_hints(getattr(types, kind)))
    assert all(each.meaning and each.type and each.group for each in listed.listed)
    assert all(f"{each.name} [" in str(listed) or f"{each.name}: " in str(listed) for each in listed.listed)
    assert [row["name"] for row in listed.rows()] == [each.name for each in listed.listed]


@pytest.mark.parametrize("verb", ["train", "serve", "plan_training", "plan_serving"])
def test_help_has_the_usual_options_with_unit_and_default_and_says_where_all_are(verb):
    text = inspect.getdoc(getattr(tonnage, verb))
    assert len(text.splitlines()) <= 50 and f'print(tonnage.options("{verb}"))' in text
    by_name = {each.name: each for each in tonnage.options(verb).listed}
    for name in USUAL[verb]:
        unit = f" [{by_name[name].unit}]" if by_name[name].unit else ""
        assert f"\n  {name}{unit}: " in text
        entry = re.split(r"\n  (?=\S)", text.partition(f"\n  {name}{unit}: ")[2])[0]
        assert by_name[name].default.split()[:1] == [] or "default:" in entry


def test_options_of_other_verbs_are_named_as_python_has_them():
    assert "--" not in str(tonnage.options("serve"))
    with pytest.raises(tonnage.UnknownName, match="function with options"):
        tonnage.options("explain")


@pytest.mark.parametrize("name", tonnage.__all__)
def test_every_public_name_says_in_its_first_line_what_it_is_or_returns(name):
    lines = (inspect.getdoc(getattr(tonnage, name)) or "").splitlines()
    assert lines and lines[0][0].isupper() and len(lines[0]) > 20, name
    if inspect.isfunction(getattr(tonnage, name)):
        assert lines[0].startswith("Return "), lines[0]
