"""tonnage plan --serve as people type it: verdict first, then the plans, then what the limits removed."""

import json
import re

import msgspec
import pytest

from tonnage.cli import main
from tonnage.documents.plan_serving import ServingPlansDocument

ASKED = ["plan", "llama-3.1-8b", "--serve", "--input", "2000", "--output", "400"]


def told(capsys, *words):
    status = main([*ASKED, *words, *([] if "--json" in words else ["-v"])])
    said = capsys.readouterr()
    return status, said.out, said.err


def test_the_first_line_says_what_to_rent_for_whom_and_at_what_price(capsys):
    status, out, _ = told(capsys, "--on", "h100,l40s", "--users", "32", "--tpot", "20ms")
    first = out.splitlines()[0]
    assert status == 0 and re.fullmatch(r"cheapest: .*, [\d.]+ USD per hour; TPOT (met|tight .*)", first)
    assert "1 before 2: " in out and "start it: vllm serve" in out and "searched: all " in out


def test_json_is_one_document_of_its_form(capsys):
    status, out, _ = told(capsys, "--on", "h100", "--rate", "4", "--top", "2", "--pareto", "--json")
    document = json.loads(out)
    made = msgspec.convert(document, ServingPlansDocument)
    assert status == 0 and len(made.plans) <= 2 and made.pareto
    assert made.plans[0].users is None and document["best"]["verdict"]["fits"]


def test_what_was_asked_is_shown_with_its_units(capsys):
    _, out, _ = told(
        capsys,
        "--on",
        "h100",
        "--rate",
        "1e5",
        "--max-accelerators",
        "1",
        "--ttft",
        "1",
        "--tpot",
        "25ms",
        "--budget",
        "15k/month",
    )
    assert "100,000 requests/s, TTFT 1 s, TPOT 25 ms, 20.55 USD per hour" in out.splitlines()[0]
    rows = {line.split()[0]: line.split(maxsplit=1)[1] for line in out.splitlines() if line.startswith("  ")}
    assert rows["ttft"] == "1.00 s" and rows["tpot"] == "25.00 ms"
    assert rows["budget"] == "20.55 USD an hour" and rows["request_rate"] == "100,000 requests a second"


def test_the_command_that_asks_for_the_first_plan_is_shown(capsys):
    _, out, _ = told(capsys, "--on", "h100", "--users", "4", "--weights", "bf16")
    assert "\n  tonnage serve llama-3.1-8b --on H100-SXM-80GB --context 2400 --concurrency 4 --weights bf16" in out


def test_users_of_replicas_that_have_unlike_numbers_are_shown(capsys):
    _, out, _ = told(capsys, "--on", "2xH100-SXM-80GB", "--users", "9", "--weights", "bf16", "--tp", "1")
    assert " 5 or 4 " in out and "note: times of a plan, and what limits them, are of its fullest replica" in out


def test_the_table_shows_sizes_and_limits_that_are_not_the_usual(capsys):
    _, out, _ = told(
        capsys,
        "--on",
        "2xH100-SXM-80GB",
        "--users",
        "64",
        "--weights",
        "bf16",
        "--vary",
        "kv-cache,batch",
        "--goal",
        "tpot",
    )
    assert "TP2" in out and "cache fp8" in out and "lowest TPOT" in out.splitlines()[0]


def test_prompts_apart_are_shown(capsys):
    _, out, _ = told(
        capsys, "--on", "4xH100-SXM-80GB", "--users", "8", "--weights", "bf16", "--vary", "disaggregation", "--top", "9"
    )
    assert "for prompts)" in out


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (
            ["--on", "h100", "--users", "4", "--tpot", "0.1ms"],
            3,
            "no plan meets --tpot 100.00 us: the lowest time per output token (TPOT) is",
        ),
        (
            ["--on", "h100", "--users", "4", "--budget", "10/month"],
            3,
            "no plan meets --budget: the cheapest one costs 2.60 USD an hour",
        ),
        (["--on", "1xt4", "--users", "4", "--weights", "bf16"], 3, "is the limit"),
        (["--on", "h100", "--rate", "1e6", "--max-accelerators", "1"], 3, "as many requests are answered as come"),
    ],
)
def test_where_nothing_holds_the_limit_that_binds_is_named(capsys, words, status, said):
    found, out, _ = told(capsys, *words)
    assert found == status and out.startswith("no plan: llama-3.1-8b for ") and said in out


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--users", "0"], 64, "--users must be from 1"),
        (["--on", "h100", "--goal", "fast"], 64, "no goal is called 'fast'"),
        (["--on", "h100,x9000"], 64, "no accelerator or node is called 'x9000'"),
        (["--on", "h100", "--budget", "soon"], 64, "budget"),
        (["--on", "h100", "--users", "4", "--rate", "3"], 64, "give one"),
        (["--on", "m5-max-64gb"], 4, "how long prompts take is not known"),
        (["--on", "tpu-v5e", "--budget", "4"], 4, "no price of TPU-v5e is known"),
    ],
)
def test_bad_input_is_an_error_without_a_traceback(capsys, words, status, said):
    found, _, error = told(capsys, *words)
    assert found == status and error.startswith("error: ") and said in error


def test_what_the_engine_needs_more_than_one_machine_for_is_found_on_several(capsys):
    assert (
        main(
            [
                "plan",
                "llama-3.1-405b",
                "--serve",
                "--on",
                "8xA100-SXM-80GB",
                "--users",
                "2",
                "--weights",
                "bf16",
                "--input",
                "500",
                "--output",
                "100",
            ]
        )
        == 3
    )
    out = capsys.readouterr().out
    assert "the machine is too small: 2x8xA100-SXM-80GB" in out
