"""Prefill and decode on replicas of their own: the answer is of these replicas, not of replicas that do both."""

import pytest

import tonnage
from tonnage.catalogue import cluster
from tonnage.cli import main
from tonnage.estimate.serving_time.rates import serving_rates
from tonnage.estimate.serving_time.split import Side, SplitRates
from tonnage.kernel.errors import InvalidPlan
from tonnage.spec import Load, ServingPlan

SHARED = {"on": "8xh100", "tensor_parallel_size": 1, "input_tokens": 4096, "output_tokens": 300, "advice": False}


def served(**more: object) -> tonnage.Answer:
    return tonnage.serve("llama-3.1-8b", **{**SHARED, "concurrency": 100, "prefill_replicas": 4, **more})


def test_the_times_of_an_answer_are_those_of_the_replicas_that_were_asked_for():
    apart, both = served().serving, served(prefill_replicas=None).serving
    for name in ("ttft_seconds", "tpot_seconds", "end_to_end_seconds", "requests_per_second", "largest_rate"):
        assert getattr(apart, name).value == pytest.approx(getattr(apart.split, name).value)
        assert getattr(apart, name).value != pytest.approx(getattr(both, name).value)
    assert apart.tpot_seconds.value < both.tpot_seconds.value, "no prompts come between the tokens"
    low, high = apart.ttft_band
    assert low < apart.ttft_seconds.value < high
    assert apart.cost_per_million_tokens.value * apart.total_tokens_per_second.value == pytest.approx(
        both.cost_per_million_tokens.value * both.total_tokens_per_second.value
    ), "the same machines for an hour"


@pytest.mark.parametrize("load", [{"concurrency": 100}, {"concurrency": None, "request_rate": 20.0}])
def test_targets_are_held_against_the_replicas_that_were_asked_for(load):
    serving = served(**load).serving
    ttft, tpot = serving.ttft_seconds.value, serving.tpot_seconds.value
    met = served(**load, ttft=ttft * 1.01, tpot=tpot * 1.01)
    assert met.serving.service_level.met and met.serving.service_level.ttft_seconds == pytest.approx(ttft)
    missed = served(**load, tpot=tpot * 0.99)
    assert not missed.serving.service_level.met and missed.serving.service_level.bound_by == "tpot"
    assert missed.status == 3 and any("is not met" in str(warning) for warning in missed.warnings)


def test_the_most_users_within_the_targets_keep_them_and_a_tenth_more_do_not():
    serving = served(ttft=0.5, tpot=0.03).serving
    users = int(serving.users_at_service_level.value)
    assert served(ttft=0.5, tpot=0.03, concurrency=users).serving.service_level.met
    assert not served(ttft=0.5, tpot=0.03, concurrency=users * 11 // 10).serving.service_level.met


def test_more_requests_than_the_prefill_replicas_compute_are_an_overload():
    answer = served(concurrency=None, request_rate=500.0)
    serving = answer.serving
    assert serving.ttft_seconds is None and answer.status == 3
    assert serving.requests_per_second.value == pytest.approx(serving.largest_rate.value)


def test_no_suggestion_is_timed_for_replicas_that_do_both():
    assert served(advice=True).advice == ()
    unfit = served(advice=True, concurrency=100_000)
    assert unfit.advice and all(not move.ttft_seconds and not move.tpot_seconds for move in unfit.advice)


@pytest.mark.parametrize("more", [{"simulate": True}, {"ttft": 1.0, "percentile": "p99"}])
def test_a_simulation_of_them_is_refused_since_it_would_be_of_replicas_that_do_both(more):
    with pytest.raises(InvalidPlan, match="leave out"):
        served(**more)


ONE_DECODES = {
    "on": "4xh100", "tensor_parallel_size": 1, "prefill_replicas": 3, "input_tokens": 2048, "output_tokens": 500
}  # fmt: skip


def test_users_stay_on_the_replicas_that_decode_so_that_their_caches_hold_the_room():
    """131,072 bytes of cache a token x 2,548 tokens, of 4 users who share one decode replica, and of 2 who share two:
    blocks of 16 tokens hold 2,560.
    """
    four, two = (
        tonnage.serve("llama-3.1-8b", **{**ONE_DECODES, "prefill_replicas": prefill, "concurrency": 4}, advice=False)
        for prefill in (3, 2)
    )
    assert four.question["concurrency_per_replica"].value == 4 and two.question["concurrency_per_replica"].value == 2
    assert four.needed_bytes - two.needed_bytes == 2 * 2560 * 131_072
    assert two.serving.concurrency.value == 2 * four.serving.concurrency.value, "of two caches and of one"
    nobody = tonnage.serve("llama-3.1-8b", **{**ONE_DECODES, "prefill_replicas": 1}, advice=False)
    assert nobody.question["concurrency"].value == 3, "one on each replica that decodes"


def test_more_users_than_the_decode_replicas_hold_do_not_fit_as_on_one_replica_that_does_both():
    held = tonnage.serve("llama-3.1-8b", **ONE_DECODES, advice=False).serving.concurrency.value
    apart = tonnage.serve("llama-3.1-8b", **ONE_DECODES, concurrency=int(held) + 1, advice=False)
    alone = {"on": "h100", "prefill_replicas": None}
    both = tonnage.serve("llama-3.1-8b", **{**ONE_DECODES, **alone}, concurrency=int(held) + 1, advice=False)
    assert held == both.serving.concurrency.value
    assert apart.needed_bytes == both.needed_bytes and apart.fits is both.fits is not True


def test_the_most_users_are_those_of_the_decode_replicas_with_limits_and_without():
    """Within limits as `serve` answers for the same users."""
    alone = {name: value for name, value in ONE_DECODES.items() if name != "prefill_replicas"} | {"on": "h100"}
    apart, both = (tonnage.maximum("users", "llama-3.1-8b", **said) for said in (ONE_DECODES, alone))
    assert apart.value == both.value
    limited = tonnage.maximum("users", "llama-3.1-8b", **ONE_DECODES, ttft=0.5, tpot=0.03).found.by_estimate
    within = [
        tonnage.serve("llama-3.1-8b", **ONE_DECODES, concurrency=users, ttft=0.5, tpot=0.03, advice=False)
        for users in (limited, limited + 1)
    ]
    assert within[0].serving.service_level.met
    assert not within[1].serving.service_level.met or limited == within[1].serving.concurrency.value


CROWDED = [
    {"concurrency": 400},  # the four prefill replicas are the limit
    {"concurrency": 64, "prefill_replicas": 7, "max_num_seqs": 16},  # the decode replica is, which runs 16 at once
    {"concurrency": 8},
]


@pytest.mark.parametrize("load", CROWDED)
def test_users_are_the_rate_times_the_time_of_an_answer_which_is_its_ttft_and_its_later_tokens(load):
    """Little's law: L = lambda W."""
    serving = served(**load).serving
    later = 299 * serving.tpot_seconds.value
    assert serving.end_to_end_seconds.value == pytest.approx(serving.ttft_seconds.value + later, rel=1e-6)
    rate = serving.requests_per_second.value
    assert rate * serving.end_to_end_seconds.value == pytest.approx(load["concurrency"], rel=1e-4)
    assert serving.tokens_per_second.value == pytest.approx(rate * 300)


def test_users_beyond_what_the_replicas_answer_wait_for_the_kind_that_is_the_limit(capsys):
    by_prefill, by_decode, few = (served(**load).serving for load in CROWDED)
    waits = [serving.split.decode_wait_seconds.value for serving in (by_prefill, by_decode, few)]
    assert by_prefill.requests_per_second.value == pytest.approx(by_prefill.largest_rate.value, rel=1e-3)
    assert waits[0] < 0.1 and by_prefill.ttft_seconds.value > 1
    assert waits[1] > 0.9 * by_decode.ttft_seconds.value > 1
    assert waits[2] < 0.03, "for a pass to end, and for the one with the first token"
    words = "serve llama-3.1-8b --on 8xh100 --tp 1 --input 4k --output 300 --prefill-replicas"
    texts = []
    for said in ("4 --users 400", "7 --users 64 --max-num-seqs 16", "4 --users 8"):
        main(f"{words} {said}".split())
        texts.append(" ".join(capsys.readouterr().out.split()))
    assert "of waiting for a prefill replica" in texts[0] and "of waiting for a decode replica" in texts[1]
    assert "of waiting for" not in texts[2]


def test_the_text_names_the_replicas_and_how_each_is_started(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    words = "serve llama-3.1-8b --on 8xh100 --tp 1 --users 100 --input 4k --output 300 --prefill-replicas 4"
    assert main(words.split()) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "for 25 requests of 4,396 tokens on each decode replica" in text
    assert "replicas: 4 prefill, 4 decode" in text
    assert "KV cache where answers are decoded for 1.80 M tokens" in text
    assert '"kv_role":"kv_producer"' in text
    assert '# decode: 4 servers: the same with "kv_role":"kv_consumer"' in text


def test_what_is_suggested_leaves_a_replica_to_decode():
    unfit = served(advice=True, concurrency=100_000, tpot=0.02)
    assert unfit.advice
    for move in unfit.advice:
        change = dict(move.change)
        again = served(**{"concurrency": 100_000, **change, "advice": False})
        assert again.serving.split.decode_replicas >= 1


def test_ttft_has_the_transfer_of_the_cache_as_a_part_named_by_what_carries_it():
    """Llama-3.1-8B: 32 layers x 8 heads x 128 x 2 x 2 bytes = 131,072 bytes of cache a token."""
    serving = served(request_rate=1.0, concurrency=None).serving
    parts = {str(part.name): part.value for part in serving.ttft_seconds.children}
    assert sum(parts.values()) == pytest.approx(serving.ttft_seconds.value)
    assert parts["KV cache transfer (NIXL)"] == pytest.approx(serving.split.transfer_seconds.value)
    assert serving.split.transfer_seconds.inputs["M"] == 4096 * 131_072


def test_nixl_takes_the_links_of_a_node_and_mooncake_its_network():
    """SGLang, docs/advanced_features/pd_disaggregation.md: NVLink has to be switched on for Mooncake."""
    nixl, mooncake = (served(kv_transfer=name).serving.split.transfer_seconds.value for name in ("nixl", "mooncake"))
    assert 5 < mooncake / nixl < 12, "NVLink 4 carries 450 GB/s in a direction, a 400 Gbit/s adapter 50"


def test_each_role_has_a_command_of_its_own_and_there_is_a_router():
    prefill, decode, router, *_ = served().serving.launch.splitlines()
    assert '"kv_role":"kv_producer"' in prefill and prefill.endswith("  # prefill: 4 servers")
    assert '"kv_role":"kv_consumer"' in decode and decode.endswith("  # decode: 4 servers")
    assert router.startswith("vllm-router --vllm-pd-disaggregation --prefill http://PREFILL-1:8000")
    assert "--data-parallel-size" not in prefill, "each replica is a server"


def test_experts_over_all_ranks_are_reached_by_deepep_as_each_role_does_best():
    """vLLM, docs/serving/expert_parallel_deployment.md; SGLang, sglang/srt/arg_groups/moe_hook.py."""
    wide = {"on": "4x8xh200", "tensor_parallel_size": 2, "attention_data_parallel_size": 8, "expert_parallel_size": 16}
    question = {**wide, "prefill_replicas": 1, "concurrency": 256, "advice": False}
    launch = {
        engine: tonnage.serve("deepseek-v3", engine=engine, **question).serving.launch.splitlines()
        for engine in ("vllm", "sglang")
    }
    assert "--all2all-backend deepep_high_throughput" in launch["vllm"][0]
    assert "--all2all-backend deepep_low_latency" in launch["vllm"][1]
    assert "--moe-a2a-backend deepep --deepep-mode normal" in launch["sglang"][0]
    assert "--moe-a2a-backend deepep --deepep-mode low_latency" in launch["sglang"][1]
    one_node = {**question, "on": "8xh200", "tensor_parallel_size": 1, "expert_parallel_size": 8}
    alone = tonnage.serve("deepseek-v3", engine="vllm", **{**one_node, "prefill_replicas": None}).serving.launch
    assert "all2all" not in alone, "vLLM's default serves one node"


def test_a_transfer_that_the_engine_does_not_have_is_refused_with_those_that_it_has():
    with pytest.raises(InvalidPlan, match="mooncake, nixl"):
        served(engine="sglang", kv_transfer="ucx")


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_requests_that_come_with_their_cache_join_those_that_decode_without_a_pass_of_their_own(engine):
    """SGLang, sglang/srt/disaggregation/decode.py: get_new_prebuilt_batch; tokens of answers are a decode pass apart,
    however many requests come.
    """
    model, load = tonnage.read("deepseek-v3"), Load(input_tokens=2000, output_tokens=100, requests_per_second=1000.0)
    wide = {"attention_data_parallel_size": 72, "expert_parallel_size": 72, "redundant_experts": 32}
    plan = ServingPlan.of_fields(context=2100, concurrency=8192, engine=engine, **wide)
    machine = cluster("9x8xH100-SXM-80GB")
    rates = SplitRates(model, Side(plan, machine, 12), Side(plan, machine, 1), load, serving_rates())
    running = 1000 * 99 * rates.times.tpot_seconds
    assert rates.times.tpot_seconds == pytest.approx(rates.shapes[1].decode(running), rel=0.05)
