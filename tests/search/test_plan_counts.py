"""What became of the plans of a search: every one is counted, and counted once."""

import json
import re

import pytest

from tonnage.cli import main

TRAIN = [
    "llama-3.1-8b --on 8xH100-SXM-80GB --tokens 1T",
    "llama-3.1-8b --on 8xH100-SXM-80GB --tokens 1T --deadline 30d",
    "llama-3.2-1b --on 2xH100-SXM-80GB --exhaustive",
]
SERVE = [
    "llama-3.1-8b --on 8xH100-SXM-80GB --rate 10 --ttft 1s --tpot 30ms",
    "llama-3.1-8b --on 2xA100-SXM-80GB --users 64 --tpot 20ms",
]


@pytest.mark.parametrize("line", TRAIN)
def test_plans_of_training_are_removed_or_beaten_or_estimated(line, capsys):
    main(["plan", "--train", *line.split(), "--json"])
    found = json.loads(capsys.readouterr().out)
    gone = sum(each["plans"] for each in found["removed"])
    assert found["considered"] == gone + found["beaten"] + found["estimated"]
    assert gone


@pytest.mark.parametrize("line", SERVE)
def test_plans_of_serving_are_removed_or_kept(line, capsys):
    main(["plan", "--serve", *line.split(), "--json"])
    found = json.loads(capsys.readouterr().out)
    gone = sum(each["plans"] for each in found["removed"])
    assert found["considered"] == gone + found["kept"] and 0 <= found["skipped"] <= gone
    assert found["kept"] >= len(found["plans"]) > 0


def test_the_printed_parts_add_up_to_the_plans_that_were_looked_at(capsys):
    main(["plan", "--train", *TRAIN[0].split(), "-v"])
    lines = capsys.readouterr().out.splitlines()
    first = next(at for at, line in enumerate(lines) if "plans on 1 machine" in line)
    whole = int(lines[first].partition(" ")[0].replace(",", ""))
    parts = [int(line.split()[0].replace(",", "")) for line in lines[first + 1 :] if re.match(r" +[\d,]+ ", line)]
    assert len(parts) > 2 and sum(parts) == whole
