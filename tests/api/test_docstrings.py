"""Examples in the docstrings of the public functions and answers say what happens."""

import doctest
import importlib
import inspect
import pydoc

import pytest

import tonnage

MODULES = sorted({getattr(tonnage, name).__module__ for name in tonnage.__all__ if "api" in tonnage._WHERE[name]})
EXAMPLES = [
    example
    for module in (*MODULES, "tonnage.api.lookups", "tonnage.api.html_table")
    for example in doctest.DocTestFinder().find(importlib.import_module(module))
    if example.examples
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_gives_what_it_says(example):
    printed: list[str] = []
    example.globs["tonnage"] = tonnage
    failed, tried = doctest.DocTestRunner(verbose=False).run(example, out=printed.append)
    assert tried and not failed, "".join(printed)


@pytest.mark.parametrize("name", ["train", "serve", "maximum", "plan_training", "plan_serving", "compare", "explain"])
def test_what_people_ask_most_has_an_example(name):
    assert any(example.name.endswith(f".{name}") for example in EXAMPLES)
    assert ">>>" in inspect.getdoc(getattr(tonnage, name))


@pytest.mark.parametrize("name", tonnage.__all__)
def test_help_and_inspect_read_every_public_name(name):
    public = getattr(tonnage, name)
    assert inspect.signature(public)
    assert inspect.getdoc(public).splitlines()[0] in pydoc.plain(pydoc.render_doc(public))


def test_help_of_the_package_begins_with_what_each_function_is_for():
    text = pydoc.plain(pydoc.render_doc(tonnage))
    functions = [name for name in tonnage.__all__ if inspect.isfunction(getattr(tonnage, name))]
    assert all(name in text.partition("PACKAGE CONTENTS")[0] for name in functions)


def test_help_of_an_answer_names_all_that_it_holds():
    text = inspect.getdoc(tonnage.Answer)
    properties = ("fits", "tight", "status", "unserved", "unknown")
    assert all(name in text for name in (*tonnage.Answer.__struct_fields__, *properties))
