"""Command lines over the whole catalogue: no exception but ours, no number that is none, no node that differs from its
children.

A sample runs with every commit, another one each day; `make brute` runs all of it. A failure prints a command line that
reproduces it.
"""

import os
from collections import Counter
from random import Random

import pytest

from brute.cases import GRIDS, command, random_command, sizes
from brute.check import run_case
from brute.documents import document_faults
from brute.run import Report, fault_class, run_part, today
from brute.texts import text_faults

SAMPLE = int(os.environ.get("TONNAGE_BRUTE_CASES", "120"))  # cases of each part of the sample
PARTS = 10  # parts of the sample, for tests that run beside each other


@pytest.mark.parametrize("part", range(PARTS))
def test_a_sample_of_the_command_lines_of_a_day_ends_without_a_fault(part):
    seed = os.environ.get("TONNAGE_BRUTE_SEED", today())
    random, found = Random(f"{seed}:sample:{part}"), []
    families = list(sizes())
    for _ in range(SAMPLE):
        family = random.choice(families)
        outcome = run_case(command(family, random.randrange(sizes()[family]), seed))
        found += [f"{kind}: {what}\n    {outcome.reproducer}" for kind, what in outcome.faults]
    assert not found, f"TONNAGE_BRUTE_SEED={seed}\n" + "\n".join(found)


@pytest.mark.soak
@pytest.mark.parametrize("family", sizes())
def test_all_command_lines_of_a_family_end_without_a_fault(family):
    report = run_part((family,), os.environ.get("TONNAGE_BRUTE_SEED", today()), 0, 1)
    assert not report.faults, "\n".join(report.lines())
    assert report.cases[family] >= sizes()[family]


def test_a_grid_has_every_combination_once():
    """The first number goes through the first axis, as a clock's hand."""
    for family, axes in GRIDS.items():
        length = len(axes()[0])
        assert len({command(family, number, "a")[1:] for number in range(length)}) == length


def test_a_case_is_known_by_its_seed_and_its_number():
    for family, count in sizes().items():
        assert command(family, count - 1, "a") == command(family, count - 1, "a")
    assert random_command(Random("a")) == random_command(Random("a"))
    assert len({random_command(Random(number)) for number in range(50)}) == 50


def test_the_random_cases_have_every_form_of_the_output():
    words = Counter(word for number in range(400) for word in command("random", number, "a"))
    for flag in ("--json", "--no-advice", "-v", "--formulas", "--markdown", "--html"):
        assert words[flag]


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        ({"needed_bytes": -1}, "$.needed_bytes = -1 is negative"),
        ({"run": {"seconds": float("inf")}}, "$.run.seconds = inf is not finite"),
        ({"advice": [{"freed_bytes": -1}]}, None),
        (
            {
                "memory": {
                    "name": "all",
                    "value": -2,
                    "unit": "bytes",
                    "combine": "leaf",
                    "formula": None,
                    "children": [],
                }
            },
            "$.memory/all = -2 bytes is negative",
        ),
        (
            {
                "memory": {
                    "name": "all",
                    "value": 3,
                    "unit": "bytes",
                    "combine": "sum",
                    "formula": None,
                    "children": [
                        {"name": "a", "value": 2, "unit": "bytes", "combine": "leaf", "formula": None, "children": []}
                    ],
                }
            },
            "$.memory/all: its value 3 is not the sum of its children, 2",
        ),
    ],
)
def test_what_is_wrong_in_a_document_is_found(document, fault):
    assert list(document_faults(document)) == ([fault] if fault else [])


@pytest.mark.parametrize("text", ["step  nan ms", "it takes -2.13 ms", "needs -1,024.5 GiB of 80", "takes inf s"])
def test_what_is_wrong_in_a_text_is_found(text):
    assert list(text_faults(text))


@pytest.mark.parametrize("text", ["InfiniBand, info", "2026-10-10", "H100-80 GB", "--context 4k", "1-2 GB", "x-8 GB"])
def test_what_is_no_number_of_a_text_is_left_alone(text):
    assert not list(text_faults(text))


def test_faults_that_differ_by_numbers_alone_are_one_class():
    assert fault_class("x = -1.5 at 3") == fault_class("x = -2e-5 at 40")
    report = Report()
    report.faults["violation", "x"] = 2
    report.reproducers["violation", "x"] = "tonnage ..."
    assert report.count("violation") == 2
    assert any("tonnage ..." in line for line in report.lines())
