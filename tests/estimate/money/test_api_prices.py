"""Build or buy: prices of hosted models by the token, sourced and dated, and the load from which own machines are
cheaper.
"""

import json
from datetime import date

import pytest

import tonnage
from schema_forms import validate
from tonnage.catalogue import api_prices as hosted
from tonnage.catalogue import model_names
from tonnage.cli import main
from tonnage.formulas import service
from tonnage.kernel.errors import InvalidInput

ROW = """
[[price]]
provider = "Somewhere"
model = "llama-3.1-8b"
called = "llama-8b"
input_usd = 1.0
output_usd = 4.0
cached_input_usd = 0.25
source = "here"
as_of = "2026-11-21"
"""


@pytest.fixture
def config(tmp_path, monkeypatch):
    """A folder of the user's own, with nothing remembered from before or after."""
    monkeypatch.setenv("TONNAGE_CONFIG", str(tmp_path))
    hosted.forget()
    yield tmp_path
    hosted.forget()


def own(config, text=ROW):
    (config / "api_prices").mkdir(exist_ok=True)
    path = config / "api_prices" / "mine.toml"
    path.write_text(text, encoding="utf-8")
    hosted.forget()
    return path


@pytest.fixture
def run(capsys):
    def call(*arguments):
        status = main(["prices", "--api", *arguments])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return call


def served(*arguments, capsys):
    main(["serve", *arguments, "--json"])
    return json.loads(capsys.readouterr().out)


# ---- the catalogue ----


def test_each_shipped_price_has_a_source_a_date_and_a_model_of_the_catalogue(config):
    rows = hosted.api_prices()
    assert 20 <= len(rows) <= 100 and len({row.provider for row in rows}) >= 5
    for row in rows:
        assert row.source and "2025-" < row.as_of < "2027-" and row.model in model_names(), row
        assert 0 < row.input_usd <= row.output_usd < 30
        assert row.cached_input_usd is None or row.cached_input_usd < row.input_usd


def test_no_offer_is_listed_twice(config):
    rows = [(row.provider, row.model, row.called) for row in hosted.api_prices()]
    assert len(rows) == len(set(rows))


def test_published_prices_are_there(config):
    rows = {
        (row.provider, row.model): (row.input_usd, row.cached_input_usd, row.output_usd) for row in hosted.api_prices()
    }
    assert rows["DeepInfra", "mixtral-8x7b-v0.1"] == (0.54, None, 0.54)
    assert rows["Fireworks", "deepseek-v4-pro"] == (1.74, 0.145, 3.48)
    assert rows["SambaNova", "llama-3.3-70b-instruct"] == (0.6, None, 1.2)


def test_ones_own_price_stands_for_the_shipped_one_of_the_same_provider_and_model(config):
    own(config, ROW.replace("Somewhere", "DeepInfra"))
    assert [row.input_usd for row in hosted.of_model("llama-3.1-8b") if row.provider == "DeepInfra"] == [1.0]
    assert hosted.api_prices()[0].called == "llama-8b"


def test_a_model_is_found_by_its_aliases_and_one_without_prices_has_none(config):
    assert hosted.of_model("meta-llama/Llama-3.1-8B") == hosted.of_model("llama-3.1-8b") != ()
    assert hosted.of_model("gpt2") == () == hosted.of_model("no such model") == hosted.of_model("")


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("input_usd = 1.0", "input_usd = 0.0", "input_usd must be above 0"),
        ("output_usd = 4.0", "output_usd = nan", "output_usd must be above 0"),
        ("cached_input_usd = 0.25", "cached_input_usd = -1.0", "cached_input_usd"),
        ("output_usd = 4.0", "output_usd = 4000.0", "at most 1,000 USD"),
        ('source = "here"', 'source = ""', "must not be empty"),
        ("2026-11-21", "2026-02-30", "must be a day of the calendar"),
        ('called = "llama-8b"', 'called = "llama-8b"\nzone = 1', "unknown field `zone`"),
        ('model = "llama-3.1-8b"', 'model = "Llama 3.1"', "model must be"),
    ],
)
def test_a_row_that_cannot_be_names_its_file_number_and_key(config, before, after, says):
    path = own(config, ROW.replace(before, after))
    with pytest.raises(InvalidInput, match=r"mine\.toml") as error:
        hosted.load(path)
    assert says in str(error.value)


def test_a_price_is_stale_after_ninety_days(config):
    own(config)
    row = hosted.api_prices()[0]
    assert not hosted.is_stale(row, date(2027, 2, 19)) and hosted.is_stale(row, date(2027, 2, 20))


# ---- what requests cost ----


def test_a_request_costs_its_tokens_cached_ones_at_their_own_price(config, run):
    own(config)
    _, out, _ = run(
        "llama-3.1-8b",
        "--provider",
        "somewhere",
        "--input",
        "1000",
        "--output",
        "500",
        "--cached",
        "400",
        "--requests-per-day",
        "2000",
        "--json",
    )
    document = json.loads(out)
    validate(document)
    (row,) = document["prices"]
    assert row["request"]["value"] == pytest.approx((600 * 1 + 400 * 0.25 + 500 * 4) / 1e6)
    assert row["cost_per_million_tokens"]["value"] == pytest.approx(row["request"]["value"] / 1500 * 1e6)
    assert row["usd_per_day"]["value"] == pytest.approx(2000 * row["request"]["value"])


def test_without_a_price_of_cached_tokens_they_cost_as_any_others(config, run):
    own(config, ROW.replace("cached_input_usd = 0.25\n", ""))
    _, out, _ = run(
        "llama-3.1-8b", "--provider", "Somewhere", "--input", "1000", "--output", "500", "--cached", "400", "--json"
    )
    (row,) = json.loads(out)["prices"]
    assert row["request"]["value"] == pytest.approx((1000 * 1 + 500 * 4) / 1e6) and row["cached_input_usd"] is None


def test_the_list_shows_every_model_the_cheapest_first_and_what_is_stale(config, run):
    status, out, _ = run("--as-of", "2026-11-22")
    assert status == 0 and "gpt-oss-120b" in out and "381 d, stale" in out and "are older than 90 days" in out
    validate(json.loads(run("--json")[1]))
    rows = json.loads(run("llama-3.3-70b-instruct", "--input", "1000", "--output", "1000", "--json")[1])["prices"]
    assert [row["request"]["value"] for row in rows] == sorted(row["request"]["value"] for row in rows)
    assert "source: " in run("gpt-oss-120b")[1]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("gptx",), "no model is called 'gptx'"),
        (("--input", "1000"), "--output-tokens is missing"),
        (("--provider", "Grok"), "Did you mean 'Groq'"),
        (("--input", "10", "--output", "10", "--cached", "11"), "--cached-tokens must be at most the 10"),
        (("--input", "1", "--output", "1", "--requests-per-day", "0"), "--requests-per-day"),
        (("--as-of", "now"), "must be a date"),
    ],
)
def test_wrong_words_are_answered_with_what_would_be_right(config, run, arguments, says):
    status, _, err = run(*arguments)
    assert status == 64 and says in err


def test_an_unknown_price_stays_unknown(config, run):
    status, out, _ = run("gpt2")
    assert status == 0 and out.startswith("no price of gpt2 by the token is known.")


# ---- beside own machines ----

LINE = ("llama-3.1-8b", "--on", "h100", "--input", "1000", "--output", "500", "--users", "64")


def test_the_break_even_load_is_where_both_cost_the_same(config, capsys):
    own(config)
    answer = served(*LINE, capsys=capsys)
    validate(answer)
    found = answer["serving"]["hosted"]
    mine = next(offer for offer in found["offers"] if offer["provider"] == "Somewhere")
    day, even = 24 * answer["cost"]["value"], mine["break_even_requests_per_day"]["value"]
    assert even * mine["request"]["value"] == pytest.approx(day)
    assert mine["break_even_tokens_per_day"]["value"] == pytest.approx(even * 1500)
    assert found["most_requests_per_day"]["value"] == pytest.approx(86400 * answer["serving"]["largest_rate"]["value"])
    assert mine["within_reach"] is (even <= found["most_requests_per_day"]["value"])


def test_at_the_break_even_load_own_tokens_cost_what_hosted_ones_cost(config, capsys):
    """The two prices of a million tokens meet at exactly that rate, if the machines can answer it."""
    own(config)
    offers = served(*LINE, capsys=capsys)["serving"]["hosted"]["offers"]
    mine = next(offer for offer in offers if offer["provider"] == "Somewhere")
    assert mine["within_reach"]
    rate = mine["break_even_requests_per_day"]["value"] / 86400
    at = served(
        "llama-3.1-8b", "--on", "h100", "--input", "1000", "--output", "500", "--rate", str(rate), capsys=capsys
    )["serving"]
    assert at["cost_per_million_tokens"]["value"] == pytest.approx(mine["cost_per_million_tokens"]["value"], rel=1e-6)


@pytest.mark.parametrize(("rate", "cheaper"), [("0.01", "hosted"), ("8", "own machines")])
def test_which_is_cheaper_is_said_of_the_load_that_was_asked_about(config, capsys, rate, cheaper):
    for provider in ("DeepInfra", "Groq"):
        own(
            config,
            (ROW if provider == "DeepInfra" else (config / "api_prices" / "mine.toml").read_text() + ROW).replace(
                "Somewhere", provider
            ),
        )
    found = served("llama-3.1-8b", "--on", "h100", "--input", "1000", "--output", "500", "--rate", rate, capsys=capsys)[
        "serving"
    ]
    assert {offer["output_usd"] for offer in found["hosted"]["offers"]} == {4.0}
    assert found["hosted"]["cheaper"] == cheaper


def test_offers_that_no_machine_of_this_size_can_reach_are_said_to_be_so(config, capsys):
    own(config, ROW.replace("= 1.0", "= 0.0001").replace("= 4.0", "= 0.0001").replace("= 0.25", "= 0.0001"))
    main(["serve", *LINE, "-v"])
    out = capsys.readouterr().out
    (line,) = [
        line for line in out.splitlines() if line.startswith("these machines are never cheaper than Somewhere: ")
    ]
    assert " requests a day at most, and would have to answer " in line and "hosted: Somewhere " in out


LIMITED = ("llama-3.1-8b", "--on", "h100", "--input", "1000", "--output", "500")


def test_what_machines_answer_at_most_is_within_the_limits_that_were_asked(config, capsys):
    """With all places taken they answer more, later than was asked."""
    own(config)
    free = served(*LIMITED, "--users", "8", capsys=capsys)["serving"]
    bound = served(*LIMITED, "--users", "8", "--tpot", "11ms", capsys=capsys)["serving"]
    users = bound["users_at_service_level"]["value"]
    at = served(*LIMITED, "--users", str(round(users)), capsys=capsys)["serving"]
    most = bound["hosted"]["most_requests_per_day"]["value"]
    assert most == pytest.approx(86400 * at["requests_per_second"]["value"])
    assert most < 0.8 * free["hosted"]["most_requests_per_day"]["value"]


def test_a_break_even_past_the_limits_is_out_of_reach(config, capsys):
    """An offer that full machines undercut, and machines that keep users within the limits do not."""
    free = served(*LIMITED, "--users", "8", capsys=capsys)
    bound = served(*LIMITED, "--users", "8", "--tpot", "12ms", capsys=capsys)
    rates = [each["serving"]["hosted"]["most_requests_per_day"]["value"] for each in (free, bound)]
    price = 24 * free["cost"]["value"] / (sum(rates) / 2) * 1e6 / 1500  # USD of a million tokens: even halfway
    own(config, ROW.replace("= 1.0", f"= {price}").replace("= 4.0", f"= {price}").replace("= 0.25", f"= {price}"))
    reached = []
    for limits in ((), ("--tpot", "12ms")):
        offers = served(*LIMITED, "--users", "8", *limits, capsys=capsys)["serving"]["hosted"]["offers"]
        reached.append(next(offer["within_reach"] for offer in offers if offer["provider"] == "Somewhere"))
    assert reached == [True, False]


def test_a_load_past_the_limits_is_priced_at_the_most_within_them(config, capsys):
    own(config)
    answer = served(*LIMITED, "--rate", "9", "--tpot", "10ms", capsys=capsys)["serving"]
    within, price = answer["rate_at_service_level"]["value"], answer["hosted"]["cost_per_million_tokens"]["value"]
    assert not answer["service_level"]["met"] and price > 1.5 * answer["cost_per_million_tokens"]["value"]
    at = served(*LIMITED, "--rate", str(within), "--tpot", "10ms", capsys=capsys)["serving"]
    assert at["service_level"]["met"] and at["hosted"]["cost_per_million_tokens"] == at["cost_per_million_tokens"]
    assert price == pytest.approx(at["cost_per_million_tokens"]["value"])


def test_where_no_load_keeps_within_the_limits_own_machines_have_no_price(config, capsys):
    own(config)
    main(["serve", *LIMITED, "--users", "8", "--tpot", "1ms", "-v"])
    out = capsys.readouterr().out
    assert "these machines none within the limits; hosted: " in out
    assert " within the limits: they answer 0 requests a day at most, " in out


def test_lengths_that_vary_cost_their_mean(config, capsys):
    own(config)
    (even, spread) = (
        next(
            offer
            for offer in served(*LINE, *more, capsys=capsys)["serving"]["hosted"]["offers"]
            if offer["provider"] == "Somewhere"
        )
        for more in ((), ("--spread", "0.5"))
    )
    assert even["request"]["value"] == pytest.approx((1000 * 1 + 500 * 4) / 1e6)
    assert spread["request"]["value"] == pytest.approx(
        (750 * 1 + (1 + 499 * 0.75) * 4) / 1e6
    )  # an answer has a first token


def test_nothing_is_compared_without_a_load_without_a_price_or_of_a_model_that_nobody_hosts(config, capsys):
    assert "hosted" not in served("llama-3.1-8b", "--on", "h100", capsys=capsys)["serving"]
    assert "hosted" not in served("gpt2", "--on", "h100", "--users", "4", capsys=capsys)["serving"]
    assert "hosted" not in served("llama-3.1-8b", "--on", "mi50-32gb", "--users", "4", capsys=capsys)["serving"]
    assert (
        "hosted"
        in served(
            "llama-3.1-8b",
            "--on",
            "mi50-32gb",
            "--users",
            "4",
            "--context",
            "4k",
            "--price-per-accelerator-hour",
            "0.5",
            capsys=capsys,
        )["serving"]
    )


def test_python_answers_the_same(config):
    answer = tonnage.serve("llama-3.1-8b", on="h100", input_tokens=1000, output_tokens=500, concurrency=64)
    assert answer.to_dict()["serving"]["hosted"]["offers"][0]["provider"]


def test_the_formulas_agree_with_sums_by_hand():
    assert service.request_usd.evaluate(
        s=2000, s_hit=500, O=400, USD_in=0.15, USD_hit=0.015, USD_out=0.6
    ) == pytest.approx(0.0004725)
    assert service.break_even_requests.evaluate(USD_all=32, USD_req=0.001) == pytest.approx(768_000)


def test_machines_that_the_model_does_not_fit_are_not_cheaper_from_any_load(capsys):
    asked = {"concurrency": 128, "input_tokens": 2000, "output_tokens": 400, "as_is": True}
    small, large = (tonnage.serve("gpt-oss-120b", on=on, **asked) for on in ("h100", "2xH100-SXM-80GB"))
    assert small.fits is False and not small.serving.hosted
    assert large.fits and large.serving.hosted.offers
