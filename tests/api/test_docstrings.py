"""Examples in the docstrings of the public functions and answers say what happens."""

import doctest
import importlib
import inspect

import pytest

import tonnage

MODULES = sorted({getattr(tonnage, name).__module__ for name in tonnage.__all__ if "api" in tonnage._WHERE[name]})
EXAMPLES = [
    example
    for module in (*MODULES, "tonnage.verbs.lookups", "tonnage.api.html_table")
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
