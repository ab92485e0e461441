"""An option that belongs to another verb is answered with that verb, in every face."""

import pytest

import tonnage
from tonnage.cli import main
from tonnage.kernel.errors import UnknownName
from tonnage.kernel.reach import Reach
from tonnage.question.owners import verbs_with_option
from tonnage.question.verbs import form_of
from tonnage.verbs.ask import ask

NOTHING = Reach(files=None, hubs=False, machine=False)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("serve llama-3.1-8b --on h100 --zero 3", "--zero is an option of train, not of serve."),
        ("train llama-3.1-8b --on h100 --ttft 1s", "--ttft is an option of serve, not of train."),
        ("train llama-3.1-8b --on h100 --goal cheapest", "--goal is an option of plan, not of train."),
        ("compare qwen3-8b --on h100 --zero 3", "--zero is an option of compare --train and train, not of compare"),
        ("plan --serve qwen3-8b --on h100 --zero 3", "--zero is an option of plan --train and train, not of plan --s"),
        ("max users llama-3.1-8b --on h100 --zero 3", "--zero is an option of train, not of max."),
        ("models llama-3.1-8b --on h100", "--on is an option of train and serve, not of models."),
        ("train llama-3.1-8b --on h100 --workers 3", "--workers is an option of sweep and web, not of train."),
    ],
)
def test_the_command_line_names_the_verb_that_has_the_option(line, sentence, capsys):
    assert main(line.split()) == 64
    assert capsys.readouterr().err.startswith(f"error: {sentence}")


def test_another_word_for_an_option_of_the_verb_is_suggested_beside_it(capsys):
    assert main(["serve", "qwen3-8b", "--on", "h100", "--sequence-length", "8k"]) == 64
    assert "--sequence-length is an option of train, not of serve. Did you mean --context" in capsys.readouterr().err


def test_a_table_of_several_mistakes_says_it_too(capsys):
    assert main(["serve", "lama-3.1-8b", "--on", "h100", "--zero", "3"]) == 64
    assert "--zero is an option of train, not of serve." in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("verb", "field", "sentence"),
    [
        ("serve", {"zero": 3}, "zero is an option of train, not of serve."),
        ("train", {"ttft": "1s"}, "ttft is an option of serve, not of train."),
        ("compare", {"zero": [3]}, "zero is an option of compare --train and train, not of compare --serve."),
    ],
)
def test_a_question_names_the_verb_that_has_the_field(verb, field, sentence):
    with pytest.raises(UnknownName, match=sentence):
        ask(verb, {"model": "llama-3.1-8b", "on": "h100", **field}, NOTHING)


@pytest.mark.parametrize(
    ("function", "option", "sentence"),
    [
        (tonnage.serve, {"zero_stage": 3}, "zero_stage is an option of train, not of serve."),
        (tonnage.train, {"ttft": 1}, "ttft is an option of serve, not of train."),
        (tonnage.compare, {"zero_stage": 3}, "zero_stage is an option of train, not of serve."),
        (tonnage.serve, {"sequence_length": 8}, "not of serve. Did you mean 'context' or 'input_tokens'?"),
    ],
)
def test_python_names_the_verb_that_has_the_option(function, option, sentence):
    with pytest.raises(UnknownName, match=sentence.replace("?", "[?]")):
        function("llama-3.1-8b", on="h100", **option)


def test_a_verb_that_shares_an_option_with_train_or_serve_is_left_out():
    assert verbs_with_option("zero", form_of("serve")) == ("train",)
    assert verbs_with_option("sort", form_of("serve")) == ("compare",)
