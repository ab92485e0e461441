"""Arguments of the public functions: whatever their names and values, an error is one of ours and names the
argument.
"""

import inspect
import itertools
import subprocess
import sys
from pathlib import Path

import pytest

import tonnage
from every_row import every_row
from tonnage.kernel.errors import InvalidInput, TonnageError, UnknownName

POOL = str(Path(__file__).parents[2] / "docs" / "examples" / "pool.yaml")
GIVEN = {
    "train": {"model": "gpt2", "on": "h100"},
    "serve": {"model": "gpt2", "on": "h100"},
    "frontier": {"model": "gpt2", "on": "h100", "points": 2},
    "maximum": {"what": "context", "model": "gpt2", "on": "h100"},
    "compare": {"models": "gpt2", "on": "h100"},
    "plan_training": {"model": "gpt2", "on": "1xh100"},
    "plan_serving": {"model": "gpt2", "on": "1xh100"},
    "place": {"inventory": POOL, "model": "gpt2", "split": "replicas"},
    "for_my_machine": {"on": "h100"},
    "train_many": {"table": {"model": ["gpt2"], "on": ["h100"]}},
    "serve_many": {"table": {"model": ["gpt2"], "on": ["h100"]}},
    "check": {"file": "vllm serve gpt2", "on": "h100"},
    "export": {"format": "vllm", "verb": "serve", "model": "gpt2", "on": "h100"},
    "diagnose": {"log": "CUDA out of memory. Tried to allocate 2.00 GiB.\n", "model": "gpt2", "on": "h100"},
    "reconcile": {"logs": "Memory used: 1.50 GB\n", "verb": "train", "model": "gpt2", "on": "h100"},
    "read": {"text": "gpt2"},
    "cluster": {"text": "h100"},
    "accelerator": {"name": "h100"},
    "options": {"verb": "serve"},
    "explain": {"name": "goodput"},
    "rule": {"name": "A6"},
    "list_models": {},
    "list_accelerators": {},
}
WITHOUT_OPTIONS = (
    *("check", "read", "cluster", "accelerator", "options", "explain", "rule"),
    *("list_models", "list_accelerators"),
)
WITH_OPTIONS = [name for name in GIVEN if name not in WITHOUT_OPTIONS]
# Names that a function on the way of an answer has for something else, and names that nobody knows.
NAMES = (
    "verb",
    "alone",
    "options",
    "command",
    "frontier",
    "serve",
    "train",
    "self",
    "form",
    "inventory",
    "nonsense",
    "json",
    "read",
    "of_model",
    "what",
)
WRONG = (5, -1, True, float("nan"), "x", "", b"x", None, object(), [], [1], (None,), {}, {"a": 1})


def parameters(name):
    every = inspect.signature(getattr(tonnage, name)).parameters.values()
    return [each.name for each in every if each.kind is not each.VAR_KEYWORD]


def test_every_public_function_is_asked_here():
    assert set(GIVEN) == {name for name in tonnage.__all__ if inspect.isfunction(getattr(tonnage, name))}


@every_row(("name", "argument"), list(itertools.product(WITH_OPTIONS, NAMES)), at_least=135)
def test_an_argument_that_there_is_not_is_named_with_the_nearest(name, argument):
    if argument in parameters(name):
        return
    with pytest.raises(UnknownName, match=f"no option is called '{argument}'|^{argument} is an option of"):
        getattr(tonnage, name)(**GIVEN[name], **{argument: "x"})


@pytest.mark.parametrize(("name", "argument"), [(name, each) for name in GIVEN for each in parameters(name)])
def test_an_argument_of_any_value_gives_an_answer_or_one_of_our_errors(name, argument, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    few = {"max_accelerators": 1} if (name, argument) == ("plan_training", "on") else {}  # without a machine: any
    for value in WRONG[3:4] + WRONG[6:7] if name == "for_my_machine" else WRONG:  # an answer asks the whole catalogue
        try:
            getattr(tonnage, name)(**{**GIVEN[name], **few, argument: value})
        except TonnageError as error:
            assert str(error)


@every_row("name", WITH_OPTIONS)
@every_row("reserve", ["x", [], [0, "x"], object()], ids=("text", "no numbers", "a text among numbers", "object"))
def test_a_reserve_that_is_no_number_is_named(name, reserve):
    with pytest.raises((InvalidInput, UnknownName), match="reserve_bytes"):
        getattr(tonnage, name)(**GIVEN[name], reserve_bytes=reserve)


def test_values_of_a_variation_are_of_the_type_of_their_option():
    with pytest.raises(
        InvalidInput, match=r"micro_batch_size takes a whole number, or None for its default. Got 'a' \(str\)"
    ):
        tonnage.plan_training("gpt2", "1xh100", vary={"micro_batch_size": ["a"]})
    with pytest.raises(InvalidInput, match=r"vary takes a mapping of names to lists of values. Got 5 \(int\)"):
        tonnage.plan_training("gpt2", "1xh100", vary=5)


def test_a_reserve_of_several_values_is_an_axis_with_its_command():
    made = tonnage.compare("gpt2", "h100", reserve_bytes=[0, 2.0**30])
    assert len(made.rows()) == 2 and "--reserve 0,1073741824" in made.command


@pytest.mark.parametrize(
    "call",
    [
        lambda: tonnage.train("llama-3.1-8b", on="h100", model="x"),
        lambda: tonnage.read(verb=1),
        tonnage.train,
        lambda: tonnage.serve("llama-3.1-8b", "h100", 3),
        lambda: tonnage.plan_training("x", model="y"),
        tonnage.place,
        lambda: tonnage.maximum("users", "llama-3.1-8b", on="h100", what="x"),
        tonnage.compare,
        tonnage.plan_serving,
        tonnage.frontier,
        lambda: tonnage.for_my_machine(verb=1),
    ],
)
def test_arguments_that_a_function_cannot_take_are_bad_input_and_no_type_error(call):
    with pytest.raises(tonnage.TonnageError):
        call()


@pytest.mark.parametrize(
    ("name", "argument", "meant"),
    [
        ("serve", "users", "concurrency"),
        ("serve", "ctx", "context"),
        ("serve", "max_model_len", "context"),
        ("train", "seq_length", "sequence_length"),
        ("train", "tp", "tensor_parallel_size"),
        ("train", "reserve", "reserve_bytes"),
        ("maximum", "advise", "advice"),
        ("compare", "users", "concurrency"),
        ("plan_training", "gbs", "global_batch_size"),
        ("plan_serving", "users", "concurrency"),
        ("rule", "seq", "sequence_length"),
        ("read", "txt", "text"),
    ],
)
def test_a_thing_has_one_name_in_python_and_any_other_is_answered_with_it(name, argument, meant):
    with pytest.raises(UnknownName, match=f"is called '{argument}'. Did you mean '{meant}'"):
        getattr(tonnage, name)(**GIVEN[name], **{argument: 4})


@pytest.mark.parametrize(("column", "meant"), [("mbs", "micro_batch_size"), ("seq_length", "sequence_length")])
def test_a_column_of_a_table_has_the_name_of_the_option(column, meant):
    with pytest.raises(UnknownName, match=f"no option is called '{column}'. Did you mean '{meant}'"):
        tonnage.train_many({"model": ["gpt2"], "on": ["h100"], column: [1]})


@pytest.mark.parametrize(("name", "meant"), [("max", "maximum"), ("plan", "plan_training"), ("trian", "train")])
def test_a_function_that_there_is_not_is_answered_with_the_nearest(name, meant):
    with pytest.raises(AttributeError, match=f"no attribute '{name}'. Did you mean '{meant}'"):
        getattr(tonnage, name)


def test_nearest_names_are_looked_for_only_when_an_error_is_shown():
    code = "import sys, tonnage; tonnage.train, hasattr(tonnage, 'trian'); print('difflib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_dir_lists_what_is_public_alone():
    assert {name for name in dir(tonnage) if not name.startswith("__")} == set(tonnage.__all__)
