"""Errors about sizes: they name the options as typed, what was said, and the nearest sizes, which do hold when they
are typed in their place.
"""

import re

import pytest

from tonnage.cli import main

EIGHT, TWENTY_FOUR, MIXTRAL = (
    ["train", "llama-3.1-8b", "--on", "8xh100"],
    ["train", "llama-3.1-8b", "--on", "3x8xh100"],
    ["train", "mixtral-8x7b", "--on", "8xh100", "--runtime", "megatron"],
)
PROSE = re.compile(r"(?<![\w-])[a-z]{2,} [a-z]{2,}(?![\w-])")  # two English words in a row
SERVE = ["serve", "llama-3.1-8b", "--on", "8xh100"]
# The question without the sizes; the sizes; the nearest, in the order of the options.
CASES = [
    (EIGHT, "--tp 3", ["2", "4"]),
    (EIGHT, "--tensor-parallel-size 16", ["8"]),
    (EIGHT, "--pp 3", ["2", "4"]),
    (EIGHT, "--cp 3", ["2", "4"]),
    (EIGHT, "--tp 3 --pp 2", ["2 x 2", "4 x 2"]),
    (EIGHT, "--tp 2 --pp 3 --cp 2", ["2 x 2 x 2", "2 x 4 x 1"]),
    ([*EIGHT, "--dp", "2"], "--tp 3", ["4"]),
    (TWENTY_FOUR, "--tp 3", ["2", "4"]),
    (TWENTY_FOUR, "--tp 5", ["4", "8"]),
    (["train", "llama-3.1-8b", "--on", "5x8xh100"], "--cp 3", ["2", "4"]),
    (["train", "llama-3.1-8b", "--on", "8x8xh100", "--runtime", "megatron"], "--pp 64", ["32"]),
    ([*EIGHT, "--runtime", "megatron"], "--vpp 3 --pp 2", ["2 x 2", "4 x 2"]),
    ([*TWENTY_FOUR, "--runtime", "megatron"], "--vpp 5 --pp 3", ["4 x 2", "4 x 4"]),
    ([*EIGHT, "--runtime", "megatron", "--pp", "8"], "--first-stage-layers 30", ["25"]),
    ([*EIGHT, "--runtime", "megatron", "--pp", "4", "--vpp", "2"], "--first-stage-layers 7", ["2", "8"]),
    (
        [*EIGHT, "--runtime", "megatron", "--pp", "4", "--vpp", "2"],
        "--first-stage-layers 5 --last-stage-layers 3",
        ["4 x 4", "6 x 2"],
    ),
    ([*EIGHT, "--sequence-length", "1001"], "--cp 8", ["1"]),
    (EIGHT, "--replicate-size 3", ["2", "4"]),
    ([*EIGHT, "--runtime", "deepspeed", "--zero-stage", "3"], "--zero-hpz-partition-size 3", ["2", "4"]),
    ([*EIGHT, "--mbs", "3"], "--gbs 100", ["96", "120"]),
    (MIXTRAL, "--ep 3", ["2", "4"]),
    (MIXTRAL, "--ep 16", ["8"]),
    ([*MIXTRAL, "--on", "2xh100"], "--ep 4", ["2"]),
    (MIXTRAL, "--ep 8 --etp 2", ["4 x 2", "8 x 1"]),
    (["train", "llama-3.1-8b", "--on", "8xh100", "--loss", "chunked"], "--sequence-length 513", ["512", "520"]),
    (SERVE, "--tp 3", ["2", "4"]),
    (SERVE, "--pp 3", ["2", "4"]),
    (SERVE, "--tp 2 --pp 3", ["2 x 2", "2 x 4"]),
    (SERVE, "--tp 16", ["8"]),
    ([*SERVE, "--engine", "llama.cpp"], "--tp 3", ["2", "4"]),
    (SERVE, "--attention-data-parallel-size 3", ["2", "4"]),
    (["serve", "llama-3.1-8b", "--on", "64x8xh100", "--tp", "1"], "--pp 64", ["32"]),
    (["serve", "qwen3-14b", "--on", "16xh100"], "--tp 16", ["8"]),
    (["serve", "qwen3-14b", "--on", "16xh100", "--engine", "generic"], "--tp 16", ["8"]),
    (["serve", "mixtral-8x7b", "--on", "8xh100"], "--ep 3", ["2", "4"]),
    (["serve", "mixtral-8x7b", "--on", "8xh100", "--tp", "4"], "--ep 8", ["4"]),
]
by_case = pytest.mark.parametrize(
    ("question", "sizes", "nearest"), CASES, ids=lambda value: " ".join(value) if isinstance(value, list) else value
)


@by_case
def test_an_error_about_sizes_names_the_options_as_typed_and_what_comes_nearest(question, sizes, nearest, capsys):
    assert main([*question, *sizes.split()]) == 64
    said = capsys.readouterr().err
    options, values = sizes.split()[::2], sizes.split()[1::2]
    assert " x ".join(options) in said and " x ".join(values) in said
    assert re.search(rf"Nearest: {' or '.join(nearest)}[.;]", said)
    assert "parallel_size" not in said and "expert_" not in said


@by_case
def test_the_nearest_sizes_hold_when_they_are_typed(question, sizes, nearest, capsys):
    options = sizes.split()[::2]
    for near in nearest:
        typed = [word for pair in zip(options, near.split(" x "), strict=True) for word in pair]
        assert main([*question, *typed]) != 64, capsys.readouterr().err


@by_case
def test_an_error_about_sizes_is_said_in_chinese_whole(question, sizes, nearest, capsys):
    assert main([*question, *sizes.split(), "--lang", "zh"]) == 64
    said = capsys.readouterr().err
    assert f"最接近的取值是 {' 或 '.join(nearest)}" in said
    assert not PROSE.search(said.partition("（vLLM, ")[0])  # what is cited stays as it was written


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("--dp 3", "--dp must be 8"),
        ("--tp 2 --data-parallel-size 8", "--data-parallel-size must be 4"),
        ("--ep 2", "--ep must be 1. Got 2"),
        ("--runtime ddp --tp 3", "no --tp: it must be 1. Got 3"),
        ("--first-stage-layers 3", "--first-stage-layers is of a pipeline: --pipeline-parallel-size must be above 1"),
    ],
)
def test_where_one_size_alone_is_right_it_is_named(typed, said, capsys):
    assert main([*EIGHT, *typed.split()]) == 64
    assert said in capsys.readouterr().err
