"""A negative amount is refused by the option that it is given to, with the option, the value and the valid range."""

import pytest

from tonnage.cli import main


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("serve llama-3.1-8b --on h100 --ttft -1s", "--ttft must be more than 0 and at most 1e+18 s. Got '-1s'."),
        ("serve llama-3.1-8b --on h100 --reserve -5GB", "--reserve must be a number from 0 to 1e+30. Got '-5GB'."),
        ("serve llama-3.1-8b --on h100 --context -8k", "--context must be from 1 to 1,099,511,627,776. Got '-8k'."),
        ("serve llama-3.1-8b --on -1xh100", "--on: no accelerator or node is called '-1xh100'."),
        ("train llama-3.1-8b --on h100 --tokens -3B", "--tokens must be more than 0 and at most 1e+18. Got '-3B'."),
        ("compare llama-3.1-8b --on h100,a100 --context -8k", "Got '-8k'"),
        ("max users llama-3.1-8b --on h100 --ttft -1s", "--ttft must be more than 0"),
    ],
)
def test_a_negative_value_is_refused_by_its_option(words, said, capsys):
    assert main(words.split()) == 64
    assert said in capsys.readouterr().err


def test_an_option_behind_an_option_is_still_a_value_that_is_missing(capsys):
    assert main(["serve", "llama-3.1-8b", "--on", "h100", "--ttft", "--tpot", "5ms"]) == 64
    assert "argument --ttft: expected one argument" in capsys.readouterr().err
