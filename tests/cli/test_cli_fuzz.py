"""Whatever is typed: one of the documented statuses, never a traceback, and with --json one document or none."""

import contextlib
import io
import json
import sys
from importlib import import_module

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tonnage.cli import NO_VERDICT, SERVERS, STATUSES, main
from tonnage.cli import VERBS as ALL_VERBS
from tonnage.cli.common.parser import Parser
from tonnage.question.subjects.maximum import WHATS
from tonnage.spelling import tools

MODELS = ["llama-3.1-8b", "mixtral-8x7b", "deepseek-v3", "mamba-130m", "t5-small", "qwen2.5-vl-7b-instruct", "gpt2"]
MACHINES = [
    "h100",
    "8xH100-SXM-80GB",
    "16x8xh100",
    "rtx-4090",
    "dgx-h100",
    "tpu-v4",
    "h100:1g.10gb",
    "apple-m1-16gb",
    "3 a100",
    "h100x7",
]
NUMBERS = [
    "0",
    "1",
    "2",
    "3",
    "7",
    "8",
    "16",
    "64",
    "-1",
    "1e3",
    "4096",
    "32k",
    "1M",
    "1e9",
    "1e30",
    "1e31",
    "1e400",
    "nan",
    "inf",
    "-inf",
    "0.5",
    "1.5k",
    "亿",
    "7亿",
    "0x10",
    "1_000",
    "1,000",
    "٣",
    "１２",
    "²",
    "1e-5",
    "--",
    "9" * 400,
    "1e" + "9" * 30,
]
WORDS = [
    "",
    " ",
    "none",
    "full",
    "selective",
    "flash",
    "eager",
    "bf16",
    "fp8",
    "fp8-te",
    "q4_k_m",
    "awq",
    "adamw",
    "adamw-8bit",
    "muon",
    "sgd",
    "megatron",
    "fsdp2",
    "ddp",
    "deepspeed",
    "transformers",
    "vllm",
    "A6",
    "B",
    "kv cache",
    "k",
    "kv_cache_bytes",
    "Pope2023",
    "../..",
    "/dev/null",
    ".",
    "nothing.toml",
    "\0",
    "a\nb",
    "通义",
    "\ud800",
    "{}",
    "[]",
    "%s%n",
    "-",
    "'",
    "x" * 3000,
]
ANY_VALUE = st.one_of(
    st.sampled_from(NUMBERS),
    st.sampled_from(WORDS),
    st.sampled_from(MODELS),
    st.sampled_from(MACHINES),
    st.integers().map(str),
    st.floats().map(str),
    st.text(max_size=20),
)


VERBS = [verb for verb in ALL_VERBS if verb not in SERVERS]
SWITCHES = {
    "--json",
    "--formulas",
    "--sequence-parallel",
    "--no-sequence-parallel",
    "--enforce-eager",
    "--no-enforce-eager",
    "--dropout",
    "--no-dropout",
    "--tie-word-embeddings",
    "--no-tie-word-embeddings",
}
LIKELY = {
    "--recompute": ["none", "selective", "full"],
    "--attention": ["flash", "sdpa", "eager"],
    "--runtime": ["fsdp2", "megatron", "ddp", "deepspeed"],
    "--precision": ["bf16-mixed", "bf16", "fp32", "fp8-te"],
    "--optimizer": ["adamw", "adamw-8bit", "muon", "galore-adamw", "soap"],
    "--weights": ["fp8", "awq", "q4_k_m", "nf4"],
    "--quantization": ["int8"],
    "--kv-cache": ["fp8", "bf16", "int8"],
    "--engine": ["vllm", "transformers"],
    "--loss": ["full", "chunked"],
    "--context": ["1", "8k", "1M"],
    "--sequence-length": ["1", "8k", "1M", "4097"],
    "--seq": ["64k"],
    "--reserve": ["10GiB", "0"],
    "--gpu-memory-utilization": ["0.5", "1", "0.0001"],
    "--family": ["llama"],
    "--on": MACHINES,
    "--model": MODELS,
    "--like": ["cache"],
}


def _flags(verb):
    parser = Parser(prog=f"tonnage {verb}")
    import_module(f"tonnage.cli.{verb}").add_arguments(parser)
    theirs = [flag for tool in tools() if tool.verb == verb for flag in (*tool.same, *tool.differs)]
    return sorted(parser._option_string_actions.keys() - {"--offline", "-h", "--help", "--help-all"}), sorted(theirs)


@st.composite
def command_lines(draw):
    """A verb, mostly with what it needs, and a few of its options with values that people and their scripts have
    sent.
    """
    verb = draw(st.sampled_from(sorted(VERBS)))
    words = [verb]
    if verb in ("train", "serve", "compare"):
        words += [
            "--offline",
            *draw(st.lists(st.sampled_from(MODELS), min_size=draw(st.sampled_from([0, 1, 1, 1])), max_size=1)),
        ]
        if draw(st.integers(0, 9)):
            words += ["--on", draw(st.sampled_from(MACHINES))]
    elif verb == "max":
        what = draw(st.sampled_from([each for each in WHATS if each.name != "model"]))
        words += [
            what.name,
            f"--{what.verb}",
            "--offline",
            draw(st.sampled_from(MODELS)),
            "--on",
            draw(st.sampled_from(MACHINES)),
        ]
        verb = what.verb
    elif verb == "models":
        words += ["--offline", *draw(st.lists(st.sampled_from(MODELS), max_size=1))]
    own, theirs = _flags(verb)
    flag = st.one_of(*[st.sampled_from(own)] * 3, *[st.sampled_from(theirs)] * bool(theirs))
    for name in draw(st.lists(flag, max_size=4)):
        value = draw(st.one_of(*[st.sampled_from(LIKELY.get(name, ["1", "2", "4", "8"]))] * 3, ANY_VALUE))
        words += (
            [name]
            if name in SWITCHES
            else draw(st.sampled_from([[name], [name, value], [name, value], [f"{name}={value}"]]))
        )
    if not draw(st.integers(0, 7)):
        words.insert(draw(st.integers(0, len(words))), draw(ANY_VALUE))
    return words


def _run(words):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(list(words))
    return status, out.getvalue(), err.getvalue()


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=max(300, settings().max_examples))
@given(command_lines())
def test_no_command_line_ends_in_a_traceback_or_an_unknown_status(words):
    status, out, err = _run(words)
    assert status in STATUSES
    assert "Traceback" not in out + err
    if words and words[0] in NO_VERDICT:
        assert status in (0, 64)
    if status in (0, 2, 3):
        assert out and not err
    else:
        assert err.startswith("error: ") or status == 4
    if "--json" in words and "--help" not in words and "-h" not in words and "--" not in words and out:
        json.loads(out)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.one_of(ANY_VALUE, st.sampled_from(["--json", "--help", "--version", "--print-completion", "help", *VERBS])),
        max_size=5,
    )
)
def test_no_words_at_all_end_in_a_traceback(words):
    status, out, err = _run([word for word in words if "/" not in word and word not in MODELS])
    assert status in STATUSES
    assert "Traceback" not in out + err


@pytest.mark.parametrize(
    "words",
    [
        ["models", "a\0b"],
        ["train", "\ud800", "--on", "h100"],
        ["train", "gpt2", "--on", "\0"],
        ["train", "gpt2", "--on", "\ud800.toml"],
        ["validate", "\0"],
        ["validate", "/"],
        ["rules", "\0", "--model", "\0"],
        ["explain", "\ud800", "--json"],
        ["models", "gpt2", ""],
        ["accelerators", "x" * 3000],
        ["train", "gpt2", "--on", "x" * 3000 + ".toml"],
    ],
    ids=lambda words: repr(words)[:40],
)
def test_words_that_no_file_can_be_called_are_refused(words):
    status, _, err = _run(words)
    assert status == 64 and err.startswith("error: ")


@pytest.mark.parametrize(
    "words",
    [
        ["measure", "--attention=--"],
        ["train", "gpt2", "--on", "h100", "--tokens=--"],
        ["rules", "--like=--"],
        ["explain", "A1", "-a=--"],
    ],
)
def test_two_dashes_are_no_value(words):
    status, _, err = _run(words)
    assert status == 64 and err.startswith("error: argument -") and "expected one argument" in err


def test_this_test_would_see_a_traceback(monkeypatch):
    """The net has no hole: an error that is no user's fault does get through."""
    monkeypatch.setattr("tonnage.cli._run", lambda given: sys.exit("not a TonnageError"))
    with pytest.raises(SystemExit):
        _run(["rules"])
