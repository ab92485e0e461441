"""Targets in the short text: what lies inside an error band is never said to be met, nor recommended."""

import re

import pytest

import tonnage
from tonnage.kernel.errors import InvalidInput
from tonnage.render.brief.answer import answer_page
from tonnage.render.brief.layout import plain
from tonnage.render.brief.verdict import first_fix, holds_at_high_end, limited_band, recommended_move, verdict_line

CHIP = "llama-3.1-8b", "l40s"


def served(model: str = CHIP[0], on: str = CHIP[1], **more: object) -> tonnage.Answer:
    return tonnage.serve(model, on=on, **{"concurrency": 64, **more})


def text_of(answer: tonnage.Answer) -> str:
    page = answer_page(answer.without_trees(), answer.memory, answer.opened, 200)
    return "\n".join(plain(line) for line in page.lines(40))


@pytest.mark.parametrize("tpot", [0.028, 0.03, 0.035, 0.04, 0.05, 0.07, 0.1])
def test_what_is_recommended_meets_the_targets_at_the_high_end_of_the_band(tpot: float):
    document = served(tpot=tpot).summary()
    move, state = recommended_move(document)
    if move is None:
        return
    figure, (_, high) = document["serving"]["tpot_seconds"]["value"], document["serving"]["tpot_band"]
    assert (move["tpot_seconds"] * high / figure <= tpot) == (state == "met")


def test_a_suggestion_inside_the_band_is_the_nearest_and_the_first_line_says_so():
    answer = served(tpot=0.036)
    assert verdict_line(answer.summary()).endswith(", inside the error band")
    assert "nearest: --" in text_of(answer) and "a target lies inside the error band" in text_of(answer)


def test_a_suggestion_that_would_end_what_is_met_for_sure_is_not_shown():
    document = served(tpot=0.1).summary()
    slower = {**document["advice"][0], "tpot_seconds": 0.099}
    assert recommended_move({**document, "advice": [slower]}) == (None, "met")


def test_a_percentile_is_as_far_above_the_mean_then_as_it_is_now():
    asked = {"concurrency": None, "request_rate": 4.0, "num_requests": 1000, "input_tokens": 1000, "output_tokens": 300}
    document = served(**asked, tpot=0.05, percentile="p99").summary()
    level, now = document["serving"]["service_level"], document["serving"]["tpot_seconds"]["value"]
    assert level["tpot_seconds"] > now
    high = document["serving"]["tpot_band"][1] / now
    limit = level["tpot_limit_seconds"] / high
    assert holds_at_high_end(document, {"tpot_seconds": limit * now / level["tpot_seconds"] * 0.999})
    assert not holds_at_high_end(document, {"tpot_seconds": limit * 0.999})


def test_the_band_of_a_percentile_lies_around_the_percentile_and_not_around_the_mean():
    asked = {
        "concurrency": None,
        "request_rate": 2.0,
        "num_requests": 300,
        "input_tokens": 1000,
        "output_tokens": 200,
        "percentile": "p99",
    }
    document = served(**asked, ttft=1.0).summary()
    serving = document["serving"]
    mean, p99 = serving["ttft_seconds"]["value"], serving["service_level"]["ttft_seconds"]
    low, high = limited_band(serving, "ttft")
    assert p99 > mean and [low, high] == pytest.approx([end * p99 / mean for end in serving["ttft_band"]])
    inside = served(**asked, ttft=high * 0.9)
    assert "TTFT tight (" in verdict_line(inside.summary()) and "~ met, inside the error band" in text_of(inside)
    assert "TTFT" not in verdict_line(served(**asked, ttft=high * 1.1).summary())


def test_a_target_inside_the_band_stands_in_the_first_line_of_what_fits():
    answer = served(tpot=0.05)
    line, tpot = verdict_line(answer.summary()), 1e3 * answer.serving.tpot_seconds.value
    assert line.startswith("fits: ") and line.endswith(f"; TPOT tight ({tpot:.1f} of 50 ms)") and line.tone == "warn"
    assert "TPOT" not in verdict_line(served(tpot=0.1).summary())


def test_what_is_tight_and_misses_a_target_says_both():
    line = verdict_line(tonnage.serve("qwen3-32b", on="h100", concurrency=16, tpot=0.025).summary())
    assert line.startswith("tight: ") and line.endswith("; misses TPOT")


def test_what_makes_it_fit_says_which_targets_it_misses():
    asked = {"on": "h100", "concurrency": 16, "weights": "fp8"}
    document = tonnage.serve("llama-3.3-70b", **asked, ttft=0.1, tpot=0.05).summary()
    assert verdict_line(document).endswith(", which misses TTFT")
    met = tonnage.serve("llama-3.3-70b", **asked, ttft=0.6, tpot=0.05).summary()
    assert "which misses" not in verdict_line(met)
    wanted = tonnage.serve("llama-3.3-70b", **asked, ttft=0.1, tpot=0.05).summary()
    wanted["advice"] = [*wanted["advice"], {**wanted["advice"][0], "ttft_seconds": 0.09, "change": {"weights": "x"}}]
    assert first_fix(wanted)["change"] == {"weights": "x"}, "the first that meets them, though it stands last"


def test_every_row_of_a_plan_has_its_band_and_a_mark_where_a_target_lies_in_it():
    found = tonnage.plan_serving("llama-3.1-8b", on=["l40s", "h100"], concurrency=64, ttft=1.0, tpot=0.05)
    rows = found.to_dict()["plans"]
    best = found.best.to_dict()["serving"]
    assert rows[0]["tpot_band"] == pytest.approx(best["tpot_band"], rel=1e-6)
    lines = found.text().splitlines()
    for place, row in enumerate(rows[:3], start=1):  # as many as the height leaves
        line = next(line for line in lines if line.startswith(f"{place} "))
        assert ("~" in line) == (row["tpot_band"][1] > 0.05 or row["ttft_band"][1] > 1.0)
    assert "~ the target lies inside the error band" in " ".join(" ".join(lines).split())


def test_a_plan_recommends_other_weights_for_sure_only_where_they_meet_the_targets_at_the_high_end():
    def better(tpot: float) -> str:
        lines = tonnage.plan_serving("llama-3.1-8b", on="l40s", concurrency=64, tpot=tpot).text().splitlines()
        return " ".join(re.split(r" (?:note|start) ", " ".join(lines).partition("better ")[2])[0].split())

    assert better(0.045).endswith("a target lies inside the error band")
    assert better(0.05).startswith("--weights awq-4bit-128g") and "error band" not in better(0.05)


def test_a_machine_that_nobody_published_runs_of_is_marked_and_said_where_it_comes_first():
    found = tonnage.plan_serving("llama-3.1-8b", on="mi300x", concurrency=8)
    low, high = found.to_dict()["plans"][0]["tpot_band"]
    assert high / low > 2, "as wide as whole generations are off"
    text = found.text()
    assert text.splitlines()[0].endswith("; no published runs on MI300X")
    assert "1 x MI300X ?" in text and "? no published runs on it" in " ".join(text.split())


@pytest.mark.parametrize(("limit", "value"), [("ttft", "500"), ("ttft", 500), ("tpot", "50"), ("tpot", 50.0)])
def test_a_large_limit_without_a_unit_may_be_milliseconds_and_is_refused(limit, value):
    number = f"{float(value):g}"
    with pytest.raises(InvalidInput, match=f"needs a unit: write {number}ms or {number}s"):
        tonnage.serve("llama-3.1-8b", on="h100", **{limit: value})
    assert tonnage.serve("llama-3.1-8b", on="h100", **{limit: f"{number}ms"}).status == 0


def test_times_of_other_lengths_than_the_context_are_said_to_be():
    lines = tonnage.serve("llama-3.1-8b", on="l40s", concurrency=20, context=8192).text().splitlines()
    assert "20 users of up to 8,192 tokens; times at 1,024 tokens in, 1,024 out" in " ".join(
        " ".join(lines[:4]).split()
    )
    said = tonnage.serve("llama-3.1-8b", on="l40s", concurrency=20, input_tokens=1000, output_tokens=300).text()
    assert "20 users, 1,000 tokens in, 300 out" in said


def test_users_within_the_targets_are_no_more_than_the_cache_holds():
    answer = tonnage.serve("llama-3.1-8b", on="l40s", concurrency=300, context=8192, tpot=0.5, as_is=True)
    serving = answer.to_dict()["serving"]
    assert serving["users_at_service_level"]["value"] > serving["concurrency"]["value"]
    assert f"{serving['concurrency']['value']:,.0f} users at most within the targets" in " ".join(answer.text().split())
