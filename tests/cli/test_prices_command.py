"""`tonnage prices`: a table for people, one document for programs, ages counted to a day that can be given."""

import json

import pytest

from schema_forms import validate
from tonnage.cli import main


@pytest.fixture
def run(capsys):
    def call(*arguments):
        status = main(["prices", *arguments])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return call


def rows(run, *arguments):
    return json.loads(run(*arguments, "--json")[1])["prices"]


def test_the_list_and_one_accelerator_are_documents_of_the_schema(run):
    for arguments in ((), ("h100",), ("rtx-5090", "--rate", "CNY=7.2"), ("mi50-32gb",)):
        status, out, err = run(*arguments, "--json")
        assert status == 0 and not err
        validate(json.loads(out))


def test_filters_leave_what_they_name(run):
    assert {row["provider"] for row in rows(run, "--provider", "aws")} == {"AWS"}
    assert {row["kind"] for row in rows(run, "--kind", "spot")} == {"spot"}
    assert {row["currency"] for row in rows(run, "--currency", "CNY")} == {"CNY"}
    assert {row["region"] for row in rows(run, "--region", "eastus")} == {"eastus", "all"}
    assert {row["term_months"] for row in rows(run, "--term", "12")} == {12}


def test_ages_are_counted_to_the_day_that_is_given(run):
    fresh, old = (rows(run, "h100", "--as-of", day) for day in ("2026-11-22", "2028-01-01"))
    assert not all(row["stale"] for row in fresh) and all(row["stale"] for row in old)
    out = run("h100", "--as-of", "2028-01-01")[1]
    assert "d, stale" in out and f"{len(old)} of {len(old)} prices by the hour are older than 90 days" in out


def test_the_cheapest_comes_first_and_yuan_last_unless_a_rate_is_given(run):
    dollars = [row["usd_per_accelerator_hour"] for row in rows(run, "rtx-4090")]
    assert dollars[-1] is None and dollars[0] is not None
    both = [row["usd_per_accelerator_hour"] for row in rows(run, "rtx-4090", "--rate", "CNY=7.2")]
    assert both == sorted(both)
    assert "give --exchange-rate CNY=UNITS" in run("rtx-4090")[1]
    assert rows(run, "rtx-4090", "--exchange-rate", "CNY=7.2") == rows(run, "rtx-4090", "--rate", "CNY=7.2")
    assert "-rate" not in run("rtx-4090", "--rate", "CNY=7.2")[1]


def test_an_accelerator_without_prices_says_so_and_is_no_error(run):
    status, out, err = run("mi50-32gb")
    assert status == 0 and not err
    assert out.startswith("no price of MI50-32GB is known.")


def test_where_no_price_is_as_asked_for_those_that_are_known_say_how_they_are(run):
    out = run("h100", "--term", "36")[1]
    known = rows(run, "h100")
    assert out.startswith(
        f"none of the {len(known)} prices by the hour of H100-SXM-80GB has --term 36. They have term: "
    )
    assert all(str(row["term_months"] or "none") in out for row in known)
    assert "no price" not in out and "currency: CNY, USD" in run("rtx-4090", "--currency", "USD", "--term", "36")[1]


def test_prices_of_later_days_are_not_passed_off_as_those_of_the_day(run):
    out = run("h100", "--as-of", "2020-01-01")[1]
    assert "of days after 2020-01-01, the first of 2026-" in out and " later" in out and " 0 d" not in out
    assert "of days after" not in run("h100", "--as-of", "2028-01-01")[1]


def test_sources_and_notes_are_shown_for_one_accelerator(run):
    out = run("h100")[1]
    assert "source: datareceipts/data-receipts" in out and "note: " in out
    assert "source: " not in run()[1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("h1000",), "Did you mean"),
        (("--provider", "Lamda"), "Lambda"),
        (("--kind", "preemptible"), "kind must be one of"),
        (("--rate", "7"), "CNY=7.2"),
        (("--region", "mars"), "no region is called 'mars'. Known: all, ap-northeast-1, "),
        (("--region", "us-east1"), "Did you mean 'us-east-1'"),
        (("--exchange-rate", "XYZ=3"), "no currency of --exchange-rate is called 'XYZ'. Known: CNY."),
        (("--currency", "XYZ"), "Known: CNY, USD"),
        (("--as-of", "today"), "--as-of must be a date such as 2026-11-22. Got 'today'"),
        (("",), "ACCELERATOR is empty"),
        (("--term", "x"), "--term must be a number"),
    ],
)
def test_wrong_words_are_answered_with_what_would_be_right(run, arguments, says):
    status, out, err = run(*arguments)
    assert status == 64 and not out
    assert says in err
