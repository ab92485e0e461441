"""Where no plan holds: which limit binds, and what would do."""

import re

import pytest

import tonnage
from tonnage.search.serving import walk

SHORT = {"input_tokens": 2000, "output_tokens": 400}


def test_too_few_accelerators_are_said_with_those_that_are_needed():
    found = tonnage.plan_serving("llama-3.1-70b", on="rtx-4090", max_accelerators=1, **SHORT)
    assert found.status == 3 and not found.plans and found.best is None
    (near,) = found.nearest
    assert near.without == "max_accelerators" and "2xRTX-4090 with awq" in near.text
    assert any("the weights alone need 37.07 GiB of 23.51 GiB on RTX-4090" in each for each in found.warnings)
    again = tonnage.plan_serving("llama-3.1-70b", on="rtx-4090", max_accelerators=near.plan.accelerators, **SHORT)
    assert again.status == 0 and again.plans[0].config.stored == near.plan.config.stored


def test_a_given_machine_that_is_too_small_is_what_binds():
    (near,) = tonnage.plan_serving("llama-3.1-70b", on="1xrtx-4090", **SHORT).nearest
    assert near.without == "on" and near.plan.accelerators == 2


def test_a_budget_below_the_cheapest_machine_names_that():
    found = tonnage.plan_serving("llama-3.1-70b", on="h100,l40s", budget="0.5/h", **SHORT)
    (near,) = found.nearest
    assert found.status == 3 and near.without == "budget"
    assert (
        tonnage.plan_serving("llama-3.1-70b", on="h100,l40s", budget=near.plan.usd, **SHORT).plans[0].usd
        == near.plan.usd
    )


def test_an_impossible_level_names_the_limit_and_the_least_that_any_plan_reaches():
    found = tonnage.plan_serving("llama-3.1-70b", on="8xH100-SXM-80GB", concurrency=4, tpot="1ms", ttft="10s", **SHORT)
    assert found.status == 3 and [near.without for near in found.nearest] == ["tpot"]
    least = found.nearest[0].plan.tpot
    every = tonnage.plan_serving("llama-3.1-70b", on="8xH100-SXM-80GB", concurrency=4, goal="tpot", ttft="10s", **SHORT)
    assert every.plans[0].tpot == least and f"{1000 * least:.2f} ms" in found.nearest[0].text
    both = tonnage.plan_serving("llama-3.1-70b", on="8xH100-SXM-80GB", concurrency=4, tpot="1ms", ttft="1ms", **SHORT)
    assert [near.without for near in both.nearest] == ["ttft and tpot"] * 3


def test_of_limits_that_bind_only_together_the_plan_that_is_nearest_to_both_can_be_asked_for():
    asked = {"on": "8xH100-SXM-80GB", "concurrency": 64, **SHORT}
    fastest = {
        name: tonnage.plan_serving("llama-3.1-70b", goal=name, **asked).plans[0].value for name in ("ttft", "tpot")
    }
    limits = {name: 0.05 * value for name, value in fastest.items()}
    found = tonnage.plan_serving("llama-3.1-70b", **asked, **limits)
    assert found.status == 3 and {near.without for near in found.nearest} == {"ttft and tpot"}
    both, *alone = found.nearest
    said = dict(re.findall(r"--(ttft|tpot) ([0-9.]+ms)", both.text))
    assert tonnage.plan_serving("llama-3.1-70b", **asked, **said).status == 0
    assert [alone[0].plan.ttft, alone[1].plan.tpot] == list(fastest.values()) and all(
        "without --ttft and --tpot" in near.text for near in alone
    )
    worst = max(both.plan.ttft / limits["ttft"], both.plan.tpot / limits["tpot"])
    closer = {name: 0.999 * worst * limit for name, limit in limits.items()}
    assert worst > 1 and tonnage.plan_serving("llama-3.1-70b", **asked, **closer).status == 3


@pytest.mark.parametrize("limits", [{}, {"ttft": "150ms", "tpot": "20ms"}, {"budget": 8.0}])
def test_a_rate_that_nobody_answers_is_said_with_the_largest_one_and_with_the_accelerators_that_answer_it(limits):
    asked = {"on": "h100", "weights": "bf16", **SHORT, **limits}
    found = tonnage.plan_serving("llama-3.1-8b", request_rate=150.0, max_accelerators=4, **asked)
    near = {near.without: near for near in found.nearest}["request_rate"]
    assert found.status == 3 and "--request-rate 150 is too high" in near.text
    most = float(re.search("at most ([0-9.]+) requests", near.text)[1])
    again = tonnage.plan_serving("llama-3.1-8b", request_rate=most, max_accelerators=4, **asked)
    assert again.status == 0
    assert tonnage.plan_serving("llama-3.1-8b", request_rate=1.005 * most, max_accelerators=4, **asked).status == 3
    enough = int(re.search("([0-9,]+) accelerators would do", near.text)[1].replace(",", ""))
    free = {name: value for name, value in asked.items() if name != "budget"}
    assert tonnage.plan_serving("llama-3.1-8b", request_rate=150.0, max_accelerators=enough, **free).status == 0


def test_accelerators_for_a_rate_far_beyond_are_divided_and_not_searched(monkeypatch):
    searched = []
    run = walk.Search.run
    monkeypatch.setattr(walk.Search, "run", lambda self: searched.append(self.space.goal.most) or run(self))
    found = tonnage.plan_serving("llama-3.1-8b", on="h100", weights="bf16", request_rate=1e5, max_accelerators=2)
    assert [near.without for near in found.nearest] == ["request_rate", "weights"][: len(found.nearest)]
    assert set(searched) == {2}
