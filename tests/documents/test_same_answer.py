"""The same command gives the same text, whatever Python hashes strings by."""

import os
import subprocess
import sys

import pytest

ON_MEGATRON = ["--runtime", "megatron", "--expert-parallel-size"]


@pytest.mark.parametrize(
    "words",
    [
        ["train", "deepseek-v3", "--on", "32x8xh800", *ON_MEGATRON, "16", "--pipeline-parallel-size", "16"],
        ["train", "mixtral-8x7b", "--on", "2x8xh100", *ON_MEGATRON, "8"],
        ["serve", "mixtral-8x7b", "--on", "2xh100"],
        ["rules", "--model", "mixtral-8x7b"],
        ["models", "deepseek-v3"],
        ["prices", "h100"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_document_does_not_depend_on_the_seed_of_hashes(words: list[str]):
    command = [sys.executable, "-m", "tonnage", *words, "--json"]
    first, second = (
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, stdout=subprocess.PIPE, check=False).stdout
        for seed in ("1", "2")
    )
    assert len(first) > 1000
    assert first == second
