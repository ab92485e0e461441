"""The best plans to serve a model: found, ranked, opened, and said why."""

import json
import shlex
from itertools import combinations

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

import tonnage
from tonnage.catalogue import cluster
from tonnage.cli import main
from tonnage.documents.plan_serving import ServingPlansDocument
from tonnage.kernel.encoding import encode
from tonnage.kernel.errors import InvalidInput, MissingDatum, TonnageError
from tonnage.search.pareto import front
from tonnage.search.serving.answer import estimated
from tonnage.search.serving.machines import machine_named, named, wires
from tonnage.search.serving.options import ServingPlanOptions, budget_per_hour, goal
from tonnage.search.serving.reasons import beats
from tonnage.search.serving.rows import BLOCK, USERS, Config, blocks
from tonnage.search.serving.space import Batch, Kind, Prices, Sizes

SHORT = {"input_tokens": 2000, "output_tokens": 400}
SHOWN = 2e-4  # an answer's times are sums of parts, and parts below a ten-thousandth are left out
LEVEL = {"concurrency": 64, "ttft": "1s", "tpot": "30ms", **SHORT}


@pytest.fixture(scope="module")
def found():
    return tonnage.plan_serving("llama-3.1-70b", on="h100,8xH200-SXM-141GB", **LEVEL)


def as_full_as_the_fullest(found, plan):
    """What serve says where every replica has as many users as the fullest one."""
    even = replace(plan, users=plan.fullest * plan.layout.replicas)
    return estimated(found.search.space, even, found.money).serving


def test_every_plan_shown_is_what_serve_says_of_it(found):
    assert len(found.plans) == 5
    for plan in found.plans:
        answer = estimated(found.search.space, plan, found.money)
        serving, fullest = answer.serving, as_full_as_the_fullest(found, plan)
        assert answer.status == 0 and serving.service_level.met
        assert serving.service_level.ttft_seconds == pytest.approx(plan.ttft, rel=SHOWN)
        assert answer.needed_bytes == pytest.approx(plan.needed_bytes, abs=1)
        assert fullest.ttft_seconds.value == pytest.approx(plan.ttft, rel=SHOWN)
        assert fullest.tpot_seconds.value == pytest.approx(plan.tpot, rel=SHOWN)
        assert fullest.end_to_end_seconds.value == pytest.approx(plan.end_to_end, rel=SHOWN)
        assert serving.tokens_per_second.value == pytest.approx(plan.tokens, rel=1e-9)
        assert serving.cost_per_million_tokens.value == pytest.approx(plan.usd_per_million, rel=1e-9)
        assert answer.bill.cost.value == pytest.approx(plan.usd, rel=1e-9)


def test_limits_are_kept_by_the_fullest_replica_of_users_that_replicas_do_not_share_evenly():
    asked = {"concurrency": 9, "input_tokens": 204_800, "output_tokens": 10, "weights": "bf16"}
    found = tonnage.plan_serving("llama-3.1-8b", on="h100", ttft="36s", **asked)
    two = tonnage.serve("llama-3.1-8b", on="1xH100-SXM-80GB", **asked | {"concurrency": 2}).serving.ttft_seconds
    assert two.value > 36 and found.plans[0].layout.replicas == 9  # 1.8 users of each of five keep it, and two do not
    five = tonnage.serve("llama-3.1-8b", on="5x1xH100-SXM-80GB", ttft="36s", **asked).serving
    assert five.ttft_seconds.value < 36 and not five.service_level.met
    assert five.service_level.ttft_seconds == pytest.approx(two.value, rel=SHOWN)
    uneven = [plan for plan in found.plans if plan.fullest != plan.each]
    assert uneven
    for plan in uneven:
        assert plan.fullest == -(-9 // plan.layout.replicas)
        assert as_full_as_the_fullest(found, plan).ttft_seconds.value == pytest.approx(plan.ttft, rel=SHOWN)
        mean = estimated(found.search.space, plan, found.money).serving
        assert mean.ttft_seconds.value < plan.ttft <= 36
        assert mean.requests_per_second.value == pytest.approx(plan.requests, rel=1e-9)
    shown = [each["users_of_fullest_replica"] for each in found.to_dict()["plans"]]
    assert shown == [plan.fullest for plan in found.plans]


def test_arrivals_and_prompts_apart_are_what_serve_says_of_them():
    found = tonnage.plan_serving(
        "llama-3.1-8b",
        on="4xH100-SXM-80GB",
        request_rate=6,
        weights="bf16",
        vary="disaggregation",
        top=40,
        tpot="40ms",
        **SHORT,
    )
    apart = [plan for plan in found.plans if plan.layout.prefill]
    assert apart and len(apart) < len(found.plans)
    for plan in found.plans:
        serving = estimated(found.search.space, plan, found.money).serving
        held = serving.split if plan.layout.prefill else serving
        for name, value in (
            ("ttft_seconds", plan.ttft),
            ("tpot_seconds", plan.tpot),
            ("end_to_end_seconds", plan.end_to_end),
        ):
            assert getattr(held, name).value == pytest.approx(value, rel=SHOWN)
        assert held.requests_per_second.value == pytest.approx(plan.requests, rel=1e-6)


def test_a_plan_with_prefill_replicas_that_meets_its_targets_serves_all_users_that_were_asked_about():
    """Their waits are in TTFT, and the caches of the decode replicas alone hold them: 200 users / 3 are 67."""
    targets = {"ttft": "3s", "tpot": "50ms", "input_tokens": 4096, "output_tokens": 1024}
    found = tonnage.plan_serving(
        "qwen3-32b", on="8xH100-SXM-80GB", concurrency=200, vary="disaggregation", **targets
    ).plans
    plan = next(plan for plan in found if plan.layout.prefill)
    decode = plan.layout.replicas - plan.layout.prefill
    assert plan.fullest == -(-200 // decode)
    answer = tonnage.serve(
        "qwen3-32b",
        on="8xH100-SXM-80GB",
        concurrency=200,
        weights=plan.config.stored,
        tensor_parallel_size=plan.config.sizes.tensor,
        pipeline_parallel_size=plan.config.sizes.pipeline,
        prefill_replicas=plan.layout.prefill,
        advice=False,
        **targets,
    )
    assert answer.needed_bytes == pytest.approx(plan.needed_bytes, abs=1)
    assert answer.serving.service_level.met and answer.serving.users_at_service_level.value >= 200
    assert answer.serving.ttft_seconds.value == pytest.approx(plan.ttft, rel=1e-6)


def test_users_who_run_at_once_are_not_said_to_be_all_within_the_targets(capsys):
    """16 run at once of 200, whose TPOT is met; nobody limits how long they wait."""
    words = "plan --serve qwen3-32b --on 8xh100 --prefill-replicas 1 --users 200 --input 4k --output 1k --tpot 50ms"
    assert main([*words.split(), "--max-num-seqs", "16"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "TPOT met" in text and "within the targets" not in text


def test_a_number_of_prefill_replicas_that_is_given_is_held():
    found = tonnage.plan_serving(
        "llama-3.1-8b", on="4xH100-SXM-80GB", concurrency=16, prefill_replicas=1, kv_transfer="mooncake", **SHORT
    )
    assert found.plans and all(plan.layout.prefill == 1 for plan in found.plans)
    assert {plan.layout.replicas for plan in found.plans} >= {2}, "the number of decode replicas is searched"
    document = found.to_dict()
    assert document["plans"][0]["prefill_replicas"] == 1
    assert (
        "kv_producer" in document["best"]["serving"]["launch"] and "Mooncake" in document["best"]["serving"]["launch"]
    )
    assert "prefill_replicas" in document["question"]


def test_the_document_has_its_form_and_the_first_plan_is_opened(found):
    document = found.to_dict()
    made = msgspec.convert(document, ServingPlansDocument)
    assert made.holds and made.goal == "cost" and made.plans[0].beats_next
    assert document["best"]["serving"]["launch"].startswith("vllm serve")
    assert document["best"]["question"]["tensor_parallel_size"]["value"] == made.plans[0].tensor_parallel_size


def test_plans_are_in_order_and_of_kinds_that_differ(found):
    plans = found.plans
    assert [plan.order for plan in plans] == sorted(plan.order for plan in plans)
    kinds = [(plan.config.kind.machine.name, plan.config.engine, plan.config.stored) for plan in plans]
    assert len(set(kinds)) == len(kinds)


def test_the_best_that_keeps_the_precision_stands_beside_one_that_does_not(found):
    document = found.to_dict()
    assert document["plans"][0]["changes_weights"] and document["own_precision"]["weights"] == "bf16"
    assert any("change the numerics" in each for each in document["warnings"])
    kept = tonnage.plan_serving("llama-3.1-70b", on="h100,8xH200-SXM-141GB", weights="bf16", **LEVEL)
    own = dict(document["own_precision"])
    assert kept.to_dict()["plans"][0] | {"beats_next": None, "changes_weights": False} == own
    assert kept.to_dict()["own_precision"] is None


def test_what_each_constraint_removed_and_what_held_is_all_there_is():
    found = tonnage.plan_serving("llama-3.1-70b", on="h100", pareto=True, **LEVEL)
    tally = found.search.tally
    assert found.search.pruned == 0  # a front needs all
    assert 0 < tally.left < tally.considered == tally.left + sum(each.plans for each in tally)


def test_reasons_are_computed_from_the_two_plans(found):
    pairs = list(combinations(found.plans, 2))
    dearer = next((one, other) for one, other in pairs if other.usd > 1.01 * one.usd)
    assert f"{dearer[1].usd / dearer[0].usd:.3g} times cheaper" in beats(*dearer, "cost")
    larger = next((one, other) for one, other in pairs if other.accelerators > one.accelerators)
    assert f"{larger[1].accelerators - larger[0].accelerators} fewer accelerators" in beats(*larger, "cost")
    alike = next((one, other) for one, other in pairs if one.usd == other.usd)
    assert beats(*alike, "cost").startswith("as cheap, and keeps the checkpoint's own precision")
    fewer = f"{larger[1].accelerators - larger[0].accelerators} fewer accelerators"
    assert beats(*larger, "accelerators").startswith(fewer)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"changes_weights": True}, "keeps the checkpoint's own precision"),
        ({"usual_engine": False}, "runs on the engine that is usual there"),
        ({"config": {"batch": Batch(2048, None)}}, "leaves the engine's batch limits as they are"),
        ({"config": {"sizes": Sizes(2, 2, 1, 1)}}, "uses fewer kinds of parallelism"),
        ({"config": {"sizes": Sizes(8, 1, 1, 1)}}, "has smaller replicas"),
    ],
)
def test_of_two_equal_plans_the_simpler_one_is_better(found, change, said):
    plan = replace(
        found.plans[2], config=found.plans[2].config._replace(sizes=Sizes(4, 1, 1, 1)), changes_weights=False
    )
    change = {name: plan.config._replace(**value) if name == "config" else value for name, value in change.items()}
    other = replace(plan, **change, tpot=plan.tpot / 10)  # faster, which counts for nothing here
    assert plan.order < other.order and said in beats(plan, other, "cost")


def test_without_a_price_accelerators_are_counted_and_with_one_the_others_are_listed():
    counted = tonnage.plan_serving("llama-3.1-8b", on="rtx-5090", concurrency=2, **SHORT)
    assert counted.objective == "accelerators" and counted.plans[0].usd is None
    assert counted.to_dict()["plans"][0]["usd_per_million_tokens"] is None
    both = tonnage.plan_serving("llama-3.1-8b", on="rtx-5090,h100", concurrency=2, **SHORT)
    assert both.objective == "cost" and both.to_dict()["unpriced"] == ["RTX-5090"]
    assert {plan.config.kind.machine.name for plan in both.plans} == {"H100-SXM-80GB"}
    given = tonnage.plan_serving("llama-3.1-8b", on="rtx-5090", concurrency=2, price_per_accelerator_hour=0.5, **SHORT)
    assert given.plans[0].usd == 0.5


def test_given_machines_are_searched_for_as_many_users_as_they_hold():
    found = tonnage.plan_serving("llama-3.1-8b", on="2xH100-SXM-80GB", ttft="500ms", tpot="10ms", **SHORT)
    best = found.plans[0]
    answer = estimated(found.search.space, best, found.money)
    assert found.objective == "goodput" and answer.serving.service_level.met
    assert answer.serving.users_at_service_level.value == best.users
    for plan in found.plans:
        held = estimated(found.search.space, plan, found.money).serving.users_at_service_level.value
        assert held == plan.users and plan.requests <= best.requests


def test_fewer_accelerators_of_another_count_do_not_do():
    best = tonnage.plan_serving(
        "llama-3.1-8b", on="l4", concurrency=24, tpot="40ms", goal="accelerators", **SHORT
    ).plans[0]
    fewer = best.accelerators - 1
    assert fewer
    assert (
        tonnage.plan_serving(
            "llama-3.1-8b", on="l4", concurrency=24, tpot="40ms", goal="accelerators", max_accelerators=fewer, **SHORT
        ).status
        == 3
    )


def test_budgets_are_kept_and_written_as_people_say_them():
    assert (
        budget_per_hour("7300/month")
        == budget_per_hour("10/h")
        == budget_per_hour("240 USD/day")
        == budget_per_hour(10.0)
        == 10
    )
    found = tonnage.plan_serving(
        "llama-3.1-8b", on="h100,l40s", concurrency=64, goal="tpot", budget="4000/month", **SHORT
    )
    assert found.plans and all(plan.usd <= 4000 / 730 for plan in found.plans)
    with pytest.raises(InvalidInput, match="budget is written like"):
        budget_per_hour("10/fortnight")


def test_a_front_has_the_plans_that_no_other_beats():
    found = tonnage.plan_serving(
        "llama-3.1-8b", on="l40s", concurrency=12, weights="fp8", pareto=True, max_accelerators=6, **SHORT
    )
    space = found.search.space
    points, names = [], []
    for config in found.search._configurations():
        layouts = found.search.layouts(config.kind.machine, config.sizes.ranks)
        for rows in blocks(space, config, layouts):
            for row in np.flatnonzero((rows.needed <= rows.usable)[:, 0] & rows.room[:, 0]).tolist():
                points.append((rows.layouts[row].usd, rows.tpot[row, 0], -rows.requests[row, 0]))
                names.append((rows.layouts[row].cluster.name, config.sizes))
    best = {points[at] for at in np.flatnonzero(front(np.array(points)))}
    assert {(plan.usd, plan.tpot, -plan.requests) for plan in found.pareto} == best
    assert 1 < len(best) < len(points)


def test_a_block_holds_so_many_plans_and_no_more_however_many_there_are():
    found = tonnage.plan_serving("llama-3.1-8b", on="h100", weights="fp8", goal="goodput", max_accelerators=8, **SHORT)
    space = replace(found.search.space, goal=replace(found.search.space.goal, most=4096))
    search = type(found.search)(space, "goodput")
    machine = space.machines[0]
    config = Config(Kind(machine, None, "fp8", None), "vllm", "fp8-e4m3", Sizes(1, 1, 1, 1), Batch(None, None))
    layouts = search.layouts(machine, 1)
    sizes = [rows.ttft.size for rows in blocks(space, config, layouts)]
    assert sum(sizes) == len(layouts) * len(USERS) > 60 * BLOCK and max(sizes) <= BLOCK


def test_replicas_of_clusters_with_the_same_links_are_as_fast():
    machine = machine_named("l40s")
    clusters = [each for _, found in machine.layouts(2, 24) for each in found]
    keys: dict = {}
    for each in clusters:
        answer = tonnage.serve("llama-3.1-8b", on=each, tensor_parallel_size=2, concurrency=each.size // 2, **SHORT)
        keys.setdefault(wires(each, 2), set()).add(answer.serving.tpot_seconds.value)
    assert len(clusters) > 12 and all(len(times) == 1 for times in keys.values())


@pytest.mark.parametrize("name", ["h100", "l40s", "rtx-4090", "gb200", "dgx-h100", "m4-max-128gb"])
def test_clusters_of_a_search_are_what_their_names_say(name):
    machine = machine_named(name)
    for ranks in (1, 2, machine.each, 2 * machine.each):
        for replicas, found in machine.layouts(ranks, 40):
            for each in found:
                assert each.size == ranks * replicas
                same = cluster(machine.on(each))
                assert (same.name, same.node) == (each.name, each.node)


def test_a_price_of_a_search_is_the_one_of_serve():
    prices = Prices(tonnage.BillOptions())
    for name in ("H100-SXM-80GB", "3xH100-SXM-80GB", "8xL40S", "2x8xMI300X", "5x2xH100-SXM-80GB"):
        answer = tonnage.serve("llama-3.1-8b", on=name, tensor_parallel_size=1, **SHORT)
        assert prices.of(cluster(name)) == pytest.approx(answer.bill.cost.value)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"on": "h100,,l4"}, "names with commas between"),
        ({"on": "h100,nonsense"}, "no accelerator or node is called 'nonsense'"),
        ({"on": []}, "at least one name"),
        ({"concurrency": 0}, "concurrency must be from 1"),
        ({"concurrency": 4, "request_rate": 2.0}, "give one"),
        ({"goal": "speed"}, "no goal is called 'speed'"),
        ({"vary": "engin"}, "Did you mean 'engine'"),
        ({"top": 0}, "top must be from 1 to 100"),
        ({"max_accelerators": 0}, "max_accelerators must be from 1"),
        ({"budget": "-3/h"}, "budget"),
        ({"percentile": "p99", "ttft": "1s"}, "a search keeps the means"),
        ({"simulate": True}, "leave out simulate"),
        ({"prefill_replicas": 0}, "prefill_replicas"),
        ({"on": "8xH100-SXM-80GB", "prefill_replicas": 1}, "add users or a request_rate"),
        ({"on": "8xH100-SXM-80GB", "vary": "disaggregation"}, "add users or a request_rate"),
        ({"tensor_parallel_size": 7}, "tensor_parallel_size must divide"),
        ({"kv_cache": "fp3"}, "can hold keys and values in"),
        ({"weights": "fp7"}, "fp7"),
        ({"on": "rtx-5090", "goal": "cost"}, "no price of RTX-5090 is known"),
    ],
)
def test_what_cannot_be_is_said_so(said, words):
    with pytest.raises(TonnageError, match=words):
        tonnage.plan_serving("llama-3.1-70b", **{"on": "h100", **SHORT, **said})


def test_what_nobody_can_time_is_not_known():
    with pytest.raises(MissingDatum, match="how long prompts take is not known"):
        tonnage.plan_serving("llama-3.1-8b", on="m5-max-64gb", **SHORT)


def test_a_machine_that_is_named_twice_is_one_plan():
    def shown(on):
        plans = tonnage.plan_serving("llama-3.1-8b", on=on, concurrency=8, goal="tpot", top=3, **SHORT).to_dict()[
            "plans"
        ]
        return [{**plan, "beats_next": None} for plan in plans]

    plans = shown("8xH100-SXM-80GB,h100")
    assert len(plans) == 3 and all(plan not in plans[:at] for at, plan in enumerate(plans))


@pytest.mark.parametrize(
    "said",
    [
        {"on": "h100,l40s", "concurrency": 12, "tpot": "20ms", "provider": "lambda"},
        {"on": "h100", "concurrency": 9, "ttft": "150ms", "weights": "bf16", "goal": "accelerators"},
        {"on": "2xH100-SXM-80GB", "request_rate": 3.5, "reserve_bytes": 2**30, "spread": 0.2},
        {"on": "4xH100-SXM-80GB", "concurrency": 8, "weights": "bf16", "vary": "batch,engine", "tpot": "1s"},
        {"on": "2xH100-SXM-80GB", "request_rate": 3.5, "weights": "bf16", "vary": "disaggregation", "tpot": "1s"},
    ],
)
def test_the_command_of_the_first_plan_gives_its_figures(said, capsys):
    found = tonnage.plan_serving("llama-3.1-8b", **SHORT, **said)
    document = found.to_dict()
    first, words = document["plans"][0], shlex.split(document["command"])
    assert words[:2] == ["tonnage", "serve"] and main([*words[1:], "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    own, serving = json.loads(encode(found.best.to_dict())), answer["serving"]
    for name in ("ttft_seconds", "tpot_seconds", "requests_per_second", "cost_per_million_tokens", "launch"):
        assert serving[name] == own["serving"][name]
    assert answer["verdict"]["needed_bytes"] == first["needed_bytes"]
    assert serving["requests_per_second"]["value"] == pytest.approx(first["requests_per_second"], rel=1e-6)
    for name in ("ttft_seconds", "tpot_seconds"):
        held = serving["service_level"][name] if "service_level" in serving else serving[name]["value"]
        assert held == pytest.approx(first[name], rel=SHOWN)


def test_lengths_that_a_context_alone_is_taken_to_have_are_said():
    found = tonnage.plan_serving("llama-3.1-8b", on="h100", context=1200)
    said = {name: found.question[name] for name in ("input_tokens", "output_tokens")}
    served = tonnage.serve("llama-3.1-8b", on="h100", context=1200).question
    assert said == {name: served[name] for name in said} and said["input_tokens"].value == 900


def test_several_precisions_and_engines_can_be_named():
    found = tonnage.plan_serving("llama-3.1-8b", on="h100", weights="bf16,fp8", engine="vllm,sglang", top=10, **SHORT)
    assert {(plan.config.engine, plan.config.stored) for plan in found.plans} >= {("vllm", "bf16"), ("sglang", "bf16")}
    assert {plan.config.stored for plan in found.plans} <= {"bf16", "fp8-e4m3"}


def test_names_of_a_search_are_taken_once():
    assert [machine.name for machine in named("h100, H100-SXM-80GB,8xh100")] == ["H100-SXM-80GB", "8xH100-SXM-80GB"]
    assert goal(ServingPlanOptions(vary="all")).vary == {"engine", "kv-cache", "batch", "disaggregation"}


def test_copies_of_experts_are_in_plans_whose_ranks_share_experts():
    found = tonnage.plan_serving("deepseek-v3", on="8xh200", concurrency=200, redundant_experts=32, top=3)
    assert found.plans and all(plan.config.sizes.expert > 1 for plan in found.plans)
    assert "--redundant-experts 32" in found.to_dict()["command"]
