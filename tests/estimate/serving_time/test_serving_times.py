"""How fast a served model answers, as every face says it: bounds, order, sums, limits, prices."""

import json
from itertools import pairwise

import pytest
from msgspec import UNSET, Struct
from msgspec.structs import asdict, replace

import tonnage
from tonnage import rules
from tonnage.catalogue import cluster
from tonnage.cli import main
from tonnage.documents.question import Entry
from tonnage.estimate.inputs import Question
from tonnage.estimate.load.options import LoadOptions, asked, lengths
from tonnage.estimate.serving.memory import serving_memory
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.serving.plans import serving_plan
from tonnage.estimate.serving_time.pace import pace_of
from tonnage.kernel.errors import InvalidInput, InvalidPlan, MissingDatum, UnknownName
from tonnage.kernel.term import Term

MODEL, ON = "llama-3.1-8b", "8xH100-SXM-80GB"
SHORT = {"input_tokens": 500, "output_tokens": 200}


def ask(model=MODEL, on=ON, **options):
    return tonnage.serve(model, on=on, **{**SHORT, **options})


def value(answer, name):
    return getattr(answer.serving, name).value


# ---- bounds and order ----


@pytest.mark.parametrize(
    "model", [MODEL, "mixtral-8x7b", "deepseek-v3", "gpt-oss-120b", "qwen3-next-80b-a3b-instruct", "gemma-3-27b-pt"]
)
@pytest.mark.parametrize("on", ["H200-SXM-141GB", "8xH200-SXM-141GB", "2x8xH200-SXM-141GB"])
def test_no_token_is_faster_than_the_weights_that_it_needs_are_read(model, on):
    answer = ask(model, on)
    if answer.serving.tpot_seconds is UNSET:
        assert not answer.fits
        return
    least = value(answer, "weights_read_seconds")
    assert least > 0
    assert all(
        value(answer, name) >= least
        for name in ("tpot_seconds", "tpot_seconds_alone", "ttft_seconds", "ttft_seconds_alone")
    )


def faster(times, *, bandwidth=1.0, peak=1.0):
    machine = cluster(ON)
    chip = machine.accelerator
    memory = replace(chip.memory, bytes_per_second=chip.memory.bytes_per_second * (times if bandwidth else 1))
    flops = {name: rate * (times if peak else 1) for name, rate in chip.dense_flops.items()}
    return replace(machine, accelerator=replace(chip, memory=memory, dense_flops=flops))


@pytest.mark.parametrize("what", ["bandwidth", "peak"])
@pytest.mark.parametrize("users", [1, 64, 512])
def test_a_faster_memory_or_a_higher_peak_never_makes_anything_slower(what, users):
    only = {"bandwidth": what == "bandwidth", "peak": what == "peak"}
    answers = [ask(on=faster(times, **only), concurrency=users) for times in (0.5, 1, 2, 4)]
    for slow, fast in pairwise(answers):
        assert value(fast, "tpot_seconds") <= value(slow, "tpot_seconds") * (1 + 1e-9)
        assert value(fast, "ttft_seconds_alone") <= value(slow, "ttft_seconds_alone") * (1 + 1e-9)
        assert value(fast, "tokens_per_second") >= value(slow, "tokens_per_second") * (1 - 1e-9)
    first, last = answers[0], answers[-1]
    assert value(last, "tpot_seconds") < value(first, "tpot_seconds") or (what == "peak" and users == 1)


def test_more_users_never_get_their_tokens_faster():
    answers = [ask(concurrency=users) for users in (1, 2, 3, 5, 8, 16, 33, 64, 128, 200, 256)]
    for few, many in pairwise(answers):
        assert value(many, "tpot_seconds") >= value(few, "tpot_seconds") * (1 - 1e-9)
        assert value(many, "tokens_per_second") >= value(few, "tokens_per_second")
        assert value(many, "cost_per_million_tokens") <= value(few, "cost_per_million_tokens")


def test_replicas_without_users_make_no_tokens():
    one, two, nine = (ask(tensor_parallel_size=1, concurrency=users) for users in (1, 2, 9))
    assert value(one, "tpot_seconds") == value(two, "tpot_seconds")
    assert value(two, "tokens_per_second") == pytest.approx(2 * value(one, "tokens_per_second"))
    assert 8 * value(one, "tokens_per_second") < value(nine, "tokens_per_second") < 9 * value(one, "tokens_per_second")


# ---- figures ----


@pytest.mark.parametrize(
    "said", [{"spread": 0.5}, {"spread": 0.5, "request_rate": 4}, {"tensor_parallel_size": 2}], ids=str
)
def test_an_answer_shows_the_figures_that_a_search_and_the_validator_have(said):
    model, where = tonnage.read(MODEL, offline=True), cluster(ON)
    options, load = ServingOptions(tensor_parallel_size=said.get("tensor_parallel_size")), {**SHORT, **said}
    load.pop("tensor_parallel_size", None)
    answer = ask(concurrency=None if "request_rate" in said else 32, **said)
    users = replace(options, concurrency=None if "request_rate" in said else 32)
    plan = serving_plan(model, where, users, Question())
    wanted = asked(plan, users, LoadOptions(**load), lengths(model, users, LoadOptions(**load)), Question())
    usable = where.accelerator.memory.usable_bytes
    made = serving_memory(model, plan, where.accelerator)
    found = pace_of(model, where, users, plan, made, usable, LoadOptions(**load), wanted)
    assert found.found.ttft_seconds == pytest.approx(value(answer, "ttft_seconds"), rel=1e-4)
    assert found.found.tpot_seconds == pytest.approx(value(answer, "tpot_seconds"), rel=1e-4)
    assert found.found.end_to_end_seconds == pytest.approx(value(answer, "end_to_end_seconds"), rel=1e-4)
    assert found.answers == pytest.approx(value(answer, "tokens_per_second"))
    assert found.everything == pytest.approx(value(answer, "total_tokens_per_second"))


def test_the_figures_agree_with_each_other():
    answer = ask(concurrency=32)
    ttft, tpot, rate = (value(answer, name) for name in ("ttft_seconds", "tpot_seconds", "requests_per_second"))
    assert value(answer, "end_to_end_seconds") == pytest.approx(ttft + 199 * tpot)
    assert value(answer, "tokens_per_second") == pytest.approx(200 * rate)
    assert value(answer, "total_tokens_per_second") == pytest.approx(700 * rate)
    assert value(answer, "tokens_per_second_per_user") == pytest.approx(1 / tpot)
    assert value(answer, "tokens_per_second_per_gpu") == pytest.approx(200 * rate / 8)
    assert rate * (ttft + 199 * tpot) == pytest.approx(32, rel=0.05)  # Little's law


def test_a_token_and_a_first_token_are_sums_of_what_spends_their_time():
    of_kernels = {"GEMMs", "experts", "attention", "kernel launches", "communication"}
    for version, outside in (("0.12", {"scheduler"}), ("0.19", set())):  # since 0.14 passes are scheduled ahead
        answer = ask("mixtral-8x7b", concurrency=32, engine_version=version)
        for name in ("ttft_seconds", "tpot_seconds"):
            term = getattr(answer.serving, name)
            assert term.combine == "sum"
            assert sum(child.value for child in term.children) == pytest.approx(term.value)
            parts = [part.name for part in term.children[0].children]
            assert of_kernels | outside == set(parts)


def test_the_document_has_every_term_whole_and_its_text_the_same_figures(capsys):
    answer = ask(concurrency=64)
    told = answer.text(verbose=True)
    for name in ("ttft_seconds", "tpot_seconds", "tpot_seconds_alone"):
        from tonnage.kernel.units import human

        assert human(value(answer, name), "seconds") in told
    assert answer.serving.launch in told
    opened = answer.text(formulas=True)
    assert "usd_per_million_tokens" in opened and "walk of the kernels of a pass" in opened


def test_the_command_line_and_python_give_the_same_document(capsys):
    words = [
        "--users",
        "64",
        "--input",
        "500",
        "--output",
        "200",
        "--ttft",
        "300ms",
        "--price-per-accelerator-hour",
        "2.5",
        "--json",
    ]
    assert main(["serve", MODEL, "--on", ON, *words]) == 0
    said = json.loads(capsys.readouterr().out)
    same = ask(concurrency=64, ttft="300ms", price_per_accelerator_hour=2.5)
    assert json.loads(json.dumps(same.to_dict())) == said


def test_lengths_have_defaults_that_say_where_they_are_from():
    plain = tonnage.serve(MODEL, on=ON)
    assert plain.question["input_tokens"].value == plain.question["output_tokens"].value == 1024
    assert "InferenceMAX" in plain.question["input_tokens"].why
    short = tonnage.serve(MODEL, on=ON, context=1000)
    assert (short.question["input_tokens"].value, short.question["output_tokens"].value) == (750, 250)
    said = ask()
    assert said.question["context"] == Entry(700, "default", "input_tokens + output_tokens")


def test_a_prompt_that_is_cached_comes_back_sooner():
    plain, cached = ask(concurrency=8), ask(concurrency=8, cached_tokens=450)
    assert value(cached, "ttft_seconds") < value(plain, "ttft_seconds")
    assert value(cached, "tokens_per_second") > value(plain, "tokens_per_second")


# ---- limits ----


def test_the_users_within_the_limits_are_the_most_that_there_are():
    now = ask(concurrency=8)
    ttft, tpot = value(now, "ttft_seconds"), value(now, "tpot_seconds")
    for limits in ({"tpot": 1.4 * tpot}, {"ttft": 2 * ttft}, {"ttft": 3 * ttft, "tpot": 1.1 * tpot}):
        answer = ask(concurrency=8, **limits)
        assert answer.serving.service_level.met
        most = int(value(answer, "users_at_service_level"))
        assert most >= 8
        assert ask(concurrency=most, **limits).serving.service_level.met
        assert not ask(concurrency=most + 1, **limits).serving.service_level.met


def test_the_rate_within_the_limits_is_the_largest_there_is_to_a_thousandth():
    now = ask(request_rate=5.0)
    limits = {"ttft": 2 * value(now, "ttft_seconds"), "tpot": 1.3 * value(now, "tpot_seconds")}
    most = value(ask(request_rate=5.0, **limits), "rate_at_service_level")
    assert most > 5
    assert ask(request_rate=most, **limits).serving.service_level.met
    assert not ask(request_rate=most * 1.002, **limits).serving.service_level.met


def test_a_limit_that_no_user_can_have_says_which_and_the_best_there_is():
    answer = ask(concurrency=4, tpot="1ms")
    assert answer.serving.service_level.bound_by == "tpot"
    assert value(answer, "users_at_service_level") == 0
    assert answer.fits and answer.status == 3, "the memory suffices, and the load is not served as asked"
    assert str(answer).startswith("misses TPOT: ")
    (said,) = [each for each in answer.warnings if "--tpot" in each]
    from tonnage.kernel.units import human

    assert human(value(answer, "tpot_seconds_alone"), "seconds") in said


def test_more_requests_than_can_be_answered_have_no_time_to_the_first_token_and_as_many_replicas_as_they_need():
    answer = ask(request_rate=1000.0)
    assert answer.serving.ttft_seconds is None and answer.serving.end_to_end_seconds is None
    assert json.loads(json.dumps(answer.to_dict()))["serving"]["ttft_seconds"] is None
    assert any("the queue grows without end" in each for each in answer.warnings)
    assert answer.fits and answer.status == 3 and str(answer).startswith("overloaded: 1,000 requests/s come, ")
    assert ask(request_rate=1.0).status == 0
    needed = value(answer, "replicas_needed")
    most = value(answer, "largest_rate")
    assert 1000 / needed < most <= 1000 / (needed - 1)
    assert value(answer, "accelerators_needed") == 8 * needed


@pytest.mark.parametrize(("users", "says"), [(64, "which fits"), (300, "which does not fit either")])
def test_a_verdict_over_whole_contexts_says_what_the_load_itself_needs(users, says):
    on = "h100-sxm-80gb"
    answer = tonnage.serve(MODEL, on=on, context=8192, concurrency=users)
    (said,) = [each for each in answer.warnings if "whole context of 8,192 tokens" in each]
    assert answer.status == 3 and says in said and "vllm starts all the same" in said
    load = tonnage.serve(MODEL, on=on, context=2048, concurrency=users)
    assert load.fits == (says == "which fits")
    from tonnage.kernel.units import human

    assert human(load.needed_bytes, "bytes") in said


def test_an_answer_of_one_token_has_no_time_of_later_ones():
    answer = ask(output_tokens=1)
    assert all(
        getattr(answer.serving, name) is None for name in ("tpot_seconds", "itl_seconds", "tokens_per_second_alone")
    )
    assert value(answer, "end_to_end_seconds") == pytest.approx(value(answer, "ttft_seconds"))
    assert "each later token" not in str(answer) and "an answer of one token has no later ones" in str(answer)
    assert json.loads(json.dumps(answer.to_dict()))["serving"]["tpot_seconds"] is None


def test_guesses_say_how_many_of_them_are_taken():
    with pytest.raises(InvalidPlan, match="add speculative, draft_tokens or draft_model"):
        ask(acceptance=0.7)
    said = "acceptance 0"
    assert any(said in each for each in ask(draft_tokens=2).warnings)
    assert not any(said in each for each in ask(draft_tokens=2, acceptance=0.7).warnings)


def test_what_the_times_leave_out_is_said():
    assert any(
        "fitted to all measured releases together" in each
        for each in ask(engine="vllm", engine_version="0.11.0").warnings
    )
    assert not any("measured" in each for each in ask().warnings)


@pytest.mark.parametrize("written", [80e9, 80_000_000_000, "80GB/s"])
def test_a_rate_of_bytes_is_a_number_or_a_text_as_on_the_command_line(written):
    host = {"engine": "llama.cpp", "weights": "q4_k_m", "layers_on_accelerator": 20}
    assert (
        ask(on="h100", host_bandwidth=written, **host).serving.tpot_seconds.value
        == ask(on="h100", host_bandwidth=80e9, **host).serving.tpot_seconds.value
    )
    assert value(ask(storage_read_bandwidth=written), "load_seconds") == value(
        ask(storage_read_bandwidth=80e9), "load_seconds"
    )
    with pytest.raises(InvalidInput, match="host_bandwidth must be more than 0"):
        ask(host_bandwidth=-1.0)


def test_the_longest_context_fits_and_one_token_more_does_not():
    for options in ({"weights": "awq"}, {"weights": "q4_k_m"}):
        answer = tonnage.serve("qwen3-32b", on="rtx-4090", context=1024, **options)
        longest = int(value(answer, "longest_context"))
        assert 1024 < longest < 131_072
        assert tonnage.serve("qwen3-32b", on="rtx-4090", context=longest, **options).fits
        assert not tonnage.serve("qwen3-32b", on="rtx-4090", context=longest + 1, as_is=True, **options).fits
    assert value(ask(), "longest_context") == 131_072


# ---- simulation ----


def test_a_simulation_agrees_with_the_closed_form_and_is_the_same_each_time():
    answer, again = (ask(concurrency=64, simulate=True, num_requests=2000, spread=0.5) for _ in range(2))
    seen = answer.serving.simulated
    assert seen.tpot.mean.value == pytest.approx(value(answer, "tpot_seconds"), rel=0.05)
    assert seen.tokens_per_second.value == pytest.approx(value(answer, "tokens_per_second"), rel=0.05)
    assert seen.ttft.p50.value <= seen.ttft.p90.value <= seen.ttft.p99.value
    assert seen == again.serving.simulated
    other = ask(concurrency=64, simulate=True, num_requests=2000, spread=0.5, seed=1)
    assert other.serving.simulated.ttft.mean.value != seen.ttft.mean.value


def test_more_requests_within_a_limit_are_fewer_users():
    ttft = 3 * value(ask(concurrency=16), "ttft_seconds")
    half, nearly_all = (
        ask(concurrency=16, ttft=ttft, spread=0.5, percentile=way, num_requests=200) for way in ("p50", "p99")
    )
    assert 0 < value(nearly_all, "users_at_service_level") <= value(half, "users_at_service_level")


def test_the_requests_of_a_file_are_simulated(tmp_path):
    file = tmp_path / "trace.csv"
    rows = "\n".join(f"{0.05 * number},{400 + number % 200},{100 + number % 50}" for number in range(200))
    file.write_text(f"arrival_seconds,input_tokens,output_tokens\n{rows}\n")
    answer = tonnage.serve(MODEL, on=ON, trace=str(file))
    assert answer.question["context"].value == 599 + 149
    assert answer.serving.simulated.requests_per_second.value == pytest.approx(20, rel=0.1)
    file.write_text("arrival_seconds,input_tokens\n1,2\n")
    with pytest.raises(InvalidInput, match=r"trace.csv: line 1: no column output_tokens"):
        tonnage.serve(MODEL, on=ON, trace=str(file))


# ---- money ----


def test_a_million_tokens_cost_what_the_machines_cost_while_they_are_made():
    answer = ask(concurrency=64, price_per_accelerator_hour=2.0)
    assert answer.bill.cost.value == pytest.approx(16.0)
    assert value(answer, "cost_per_million_tokens") == pytest.approx(
        16 / 3600 / value(answer, "total_tokens_per_second") * 1e6
    )
    prompts, answers = (value(answer, f"cost_per_million_{which}_tokens") for which in ("input", "output"))
    assert (500 * prompts + 200 * answers) / 700 == pytest.approx(value(answer, "cost_per_million_tokens"))
    assert value(answer, "cost_per_million_tokens_alone") > value(answer, "cost_per_million_tokens")
    assert value(answer, "energy_per_million_tokens") == pytest.approx(
        answer.bill.energy.value / 3600 / value(answer, "total_tokens_per_second") * 1e6
    )


def test_a_machine_without_a_price_has_no_cost_and_says_so():
    answer = ask("qwen3-8b", "rtx-4060-ti-16gb", weights="q4_k_m")
    if answer.bill.cost is None:
        assert answer.serving.cost_per_million_tokens is None
        assert any("no price of" in each for each in answer.warnings)
        assert answer.to_dict()["cost"] is None
    given = ask("qwen3-8b", "rtx-4060-ti-16gb", weights="q4_k_m", price_per_accelerator_hour=0.2)
    assert isinstance(given.serving.cost_per_million_tokens, Term)


# ---- moves, frontiers, machines ----


def test_every_move_gives_its_figures_when_it_is_asked_for():
    answer = ask("llama-3.1-70b", concurrency=64, tensor_parallel_size=4)
    assert answer.advice
    for move in answer.advice:
        then = ask("llama-3.1-70b", **{"concurrency": 64, "tensor_parallel_size": 4, **move.change})
        assert then.needed_bytes == move.needed_bytes and then.fits
        assert value(then, "itl_seconds") == pytest.approx(move.tpot_seconds)
        assert value(then, "tokens_per_second") == pytest.approx(move.tokens_per_second)


def test_the_best_of_a_frontier_are_those_that_none_beats():
    found = tonnage.frontier(MODEL, on=ON, points=12, **SHORT)
    points = list(found.points())
    assert len(points) == found.to_dict()["configurations"] > 100
    for point in points:
        beaten = any(
            other.tokens_per_second_per_user >= point.tokens_per_second_per_user
            and other.tokens_per_second_per_gpu > point.tokens_per_second_per_gpu
            for other in points
        )
        assert point.pareto != beaten


def test_a_point_of_a_frontier_is_the_answer_to_its_question():
    found = tonnage.frontier(MODEL, on=ON, points=5, tensor_parallel_size=8, weights="fp8", **SHORT)
    for point in found.points():
        answer = ask(tensor_parallel_size=8, weights="fp8", concurrency=point.concurrency)
        assert value(answer, "itl_seconds") == pytest.approx(point.tpot_seconds)
        assert value(answer, "tokens_per_second_per_gpu") == pytest.approx(point.tokens_per_second_per_gpu)


def test_what_runs_on_a_machine_fits_there_as_fast_as_serve_says():
    found = tonnage.for_my_machine("rtx-4060-ti", context=4096)
    names = {row.model for row in found.runs}
    assert MODEL in names and "llama-3.1-70b" not in names
    for row in [row for row in found.runs if row.model in (MODEL, "qwen3-8b", "gemma-3-4b-pt")]:
        answer = tonnage.serve(
            row.model, on="rtx-4060-ti", context=4096, weights=row.option or None, input_tokens=1024, output_tokens=2
        )
        assert answer.fits and answer.needed_bytes == pytest.approx(row.needed_bytes, abs=1)
        assert value(answer, "tokens_per_second_alone") == pytest.approx(row.tokens_per_second, rel=1e-3)
        assert value(answer, "ttft_seconds_alone") == pytest.approx(row.ttft_seconds, rel=1e-3)
        assert value(answer, "longest_context") == pytest.approx(row.longest_context, rel=0.02)
    sizes = [row.parameters for row in found.runs]
    assert sizes == sorted(sizes, reverse=True)
    quick = tonnage.for_my_machine("rtx-4060-ti", context=4096, order="tokens_per_second", tpot="20ms")
    speeds = [row.tokens_per_second for row in quick.runs]
    assert speeds == sorted(speeds, reverse=True) and min(speeds) >= 50


# ---- rules of thumb ----


def test_the_rules_of_serving_have_the_documents_figure_the_right_one_and_the_exact_one():
    rules.load()
    shown = {name: rules.RULES[name] for name in ("C1", "D8")}
    assert "21 GB" in shown["C1"].printed and "336 GB" in shown["C1"].erratum
    c1, d8 = (shown[name].worked() for name in ("C1", "D8"))
    assert c1.value.value == pytest.approx(168e9)
    assert c1.values["32 bit"] == pytest.approx(336e9)
    assert d8.value.value == pytest.approx(17.09e9, rel=1e-3)
    exact = d8.exact()
    assert exact.unit == "bytes" and 12e9 < exact.value < 20e9


# ---- what cannot be ----


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concurrency": 4, "request_rate": 2.0}, "give one. Got 4 and 2"),
        ({"output_tokens": 0}, "output_tokens must be from 1 to .* Got 0"),
        ({"context": 600}, r"500 \+ 200 = 700 tokens. Got 600"),
        ({"cached_tokens": 500}, "fewer than the 500 input_tokens. Got 500"),
        ({"spread": 1.5}, "spread must be from 0 to 1"),
        ({"spread": -0.5}, "spread must be from 0 to 1"),
        ({"burstiness": 2.0}, "add request_rate"),
        ({"request_rate": 0.0}, "request_rate must be from"),
        ({"percentile": "p99"}, "percentile is of the limits ttft and tpot"),
        ({"num_requests": 10}, "num_requests is of a simulation"),
        ({"seed": 3}, "seed is of a simulation"),
        ({"ttft": "soon"}, "ttft must be"),
        ({"tpot": 0.0}, "tpot must be more than 0"),
        ({"keep_checkpoints": 3}, "keep_checkpoints is of a training run"),
        ({"trace": "/no/such/file.csv"}, "trace has lengths and arrivals of its own"),
    ],
    ids=str,
)
def test_what_contradicts_itself_is_refused_with_its_numbers(options, message):
    with pytest.raises(InvalidInput, match=message):
        ask(**options)


def test_unknown_words_are_answered_with_the_nearest():
    with pytest.raises(UnknownName, match="p95"):
        ask(ttft=1.0, percentile="p95")
    with pytest.raises(InvalidInput, match=r"cannot read /no/such/file.csv: No such file"):
        tonnage.serve(MODEL, on=ON, trace="/no/such/file.csv")
    with pytest.raises(UnknownName, match="speed"):
        tonnage.for_my_machine("rtx-4060-ti", order="speed")


def test_drafts_that_are_taken_make_tokens_faster_and_those_that_are_not_slower():
    plain = ask("deepseek-v3", "8xH200-SXM-141GB")
    taken, not_taken = (
        ask("deepseek-v3", "8xH200-SXM-141GB", draft_tokens=1, acceptance=share) for share in (0.8, 0.0)
    )
    assert value(taken, "tpot_seconds") < value(plain, "tpot_seconds") < value(not_taken, "tpot_seconds")
    assert taken.serving.tpot_seconds.children[1].value == pytest.approx(1.8)
    assert all(value(each, "tpot_seconds") >= value(each, "weights_read_seconds") for each in (taken, not_taken))
    with pytest.raises(InvalidInput, match="a simulation gives each request a token a pass"):
        ask("deepseek-v3", "8xH200-SXM-141GB", draft_tokens=1, acceptance=0.8, simulate=True)


def test_a_model_that_makes_no_tokens_has_memory_and_no_times():
    answer = tonnage.serve("bert-base-uncased", on=ON)
    assert answer.serving.tpot_seconds is UNSET and answer.fits
    assert answer.serving.encoded.item == "documents"


# ---- faces of many configurations ----


def test_the_command_line_has_frontiers_and_machines_with_their_own_errors(capsys):
    assert main(["serve", MODEL, "--on", ON, "--frontier", "--points", "4", "--input", "500", "--output", "200"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{MODEL} on {ON}: from ") and "tokens/s an accelerator" in out
    assert main(["serve", "--for-my-machine", "--on", "rtx-4060-ti", "--context", "32k", "--weights", "q4_k_m"]) == 0
    out = capsys.readouterr().out
    assert "models run on RTX-4060-Ti-8GB" in out.splitlines()[0] or "models run on RTX-4060-Ti" in out.splitlines()[0]
    for words, said in (
        ([MODEL, "--on", ON, "--points", "4"], "--points is of --frontier"),
        ([MODEL, "--on", ON, "--for-my-machine"], "leave out MODEL"),
        ([MODEL, "--on", ON, "--frontier", "--users", "4"], "leave out --users"),
        (["--on", ON, "--for-my-machine", "--frontier"], "give one"),
        (["--on", ON, "--for-my-machine", "--rate", "3"], "leave out --rate"),
    ):
        assert main(["serve", *words]) == 64
        assert said in capsys.readouterr().err


def test_the_picture_of_a_frontier_has_a_line_for_each_plan_and_the_best_marked():
    from tonnage.render.plot.frontier import frontier_panels

    found = tonnage.frontier(MODEL, on=ON, points=6, weights="fp8", **SHORT)
    title, (panel,) = frontier_panels(found)
    assert MODEL in title and len(panel.traces) == len(found.curves) + 1
    best = [point for point in found.points() if point.pareto]
    assert panel.traces[-1]["x"] == [point.tokens_per_second_per_user for point in best]
    assert len(panel.rows) == len(best)


def test_a_chip_whose_peak_nobody_publishes_has_times_of_tokens_and_none_of_prompts():
    answer = tonnage.serve("qwen3-8b", on="Apple-M5-24GB", weights="q4_k_m", context=4096)
    assert value(answer, "tpot_seconds") > 0 and answer.serving.ttft_seconds is UNSET
    assert any("prefill time, TTFT and requests per second are unknown" in each for each in answer.warnings)
    with pytest.raises(MissingDatum, match="there is no frontier"):
        tonnage.frontier("qwen3-8b", on="Apple-M5-24GB", weights="q4_k_m", context=4096)


# ---- the engine's version ----


@pytest.mark.parametrize(
    ("engine", "version"), [("vllm", "0.6.4"), ("vllm", "0.8.5"), ("sglang", "0.4.6"), ("llama.cpp", "b4000")]
)
@pytest.mark.parametrize("load", [{"concurrency": 300}, {"request_rate": 4.0}])
def test_limits_that_an_answer_prints_are_those_that_its_times_follow(engine, version, load):
    said = {"engine": engine, "engine_version": version, "context": 32_768, "input_tokens": 4000, **load}
    said |= {"weights": "q4_k_m"} if engine == "llama.cpp" else {}
    plain = ask("qwen2.5-7b", "H100-SXM-80GB", **said)
    printed = {
        name: int(plain.question[name].value)
        for name in ("max_num_batched_tokens", "max_num_seqs")
        if engine != "llama.cpp" or name == "max_num_batched_tokens"
    }
    again = ask("qwen2.5-7b", "H100-SXM-80GB", **said, **printed)
    names = ("tpot_seconds", "ttft_seconds", "largest_rate", "concurrency", "tokens_per_second")
    assert {name: getattr(again.serving, name) and value(again, name) for name in names} == {
        name: getattr(plain.serving, name) and value(plain, name) for name in names
    }


def test_an_earlier_version_runs_what_a_later_one_dropped():
    model, on = "baichuan2-7b-base", "H100-SXM-80GB"
    assert ask(model, on).question["engine"].value == "transformers"
    old = ask(model, on, engine="vllm", engine_version="0.11")
    assert old.question["engine"].value == "vllm"
    assert not any("runs" in each for each in old.warnings)
    assert ask(model, on, engine_version="0.11").question["engine"].value == "vllm"


# ---- no part of a time is less than nothing ----


def negative(found, path=""):
    """Names of times and bytes below zero; differences that are named so are taken off what stands beside them."""
    if isinstance(found, Struct) and not isinstance(found, Term):
        parts = asdict(found).items()
        return [each for name, part in parts for each in negative(part, f"{path}.{name}")]
    if not isinstance(found, Term):
        return []
    here = [f"{path}: {found.name}"] if found.unit in ("seconds", "bytes") and found.value < 0 else []
    named = here if found.name != "of them in host memory" else []
    return named + [each for child in found.children for each in negative(child, f"{path}/{found.name}")]


@pytest.mark.parametrize(
    ("model", "on", "options"),
    [
        ("apertus-8b-2509", ON, {"engine": "vllm", "draft_tokens": 3, "acceptance": 0.7}),
        (
            "apertus-8b-2509",
            ON,
            {
                "engine": "sglang",
                "draft_tokens": 3,
                "acceptance": 0.95,
                "max_num_batched_tokens": 512,
                "input_tokens": 10_000,
                "output_tokens": 1,
            },
        ),
        (
            "gemma-3-27b-pt",
            ON,
            {"engine": "sglang", "draft_tokens": 5, "acceptance": 0.0, "input_tokens": 10_000, "output_tokens": 1},
        ),
        (
            "mixtral-8x7b",
            "DGX-2",
            {"engine": "tensorrt-llm", "input_tokens": 10_000, "output_tokens": 1, "spread": 0.2},
        ),
        ("t5-large", ON, {"context": 1 << 31}),
        ("t5-3b", ON, {"context": 1 << 33}),
        ("llama-3.1-8b", "DGX-2", {"weights_on_host": 1 << 30}),
        ("llama-3.1-8b", "DGX-2", {"weights_on_host": 200 << 30}),
        ("qwen3-8b", "rtx-4090", {"weights_on_host": 10 << 30, "concurrency": 7}),
    ],
)
def test_no_part_of_a_time_or_of_bytes_is_below_zero(model, on, options):
    answer = ask(model, on, **options)
    assert answer.serving.tpot_seconds is not UNSET or not answer.fits
    assert not negative(answer.serving)


@pytest.mark.parametrize("context", [4096, 1 << 31, 1 << 40])
def test_a_first_token_takes_at_least_its_own_prompts_pass_whatever_the_context(context):
    answer = ask("t5-large", ON, context=context)
    assert value(answer, "ttft_seconds") >= value(answer, "ttft_seconds_alone") * (1 - 1e-9) > 0.01


def test_weights_for_host_memory_are_read_from_disk_and_stay_there():
    whole, split, host = (ask(on="DGX-2", weights_on_host=size) for size in (None, 1 << 28, 200 << 30))
    disk = [each.serving.load_seconds.children[0].value for each in (whole, split, host)]
    assert disk[0] == disk[1] == disk[2] > 0
    link = [each.serving.load_seconds.children[1].value for each in (whole, split, host)]
    assert link[0] > link[1] > link[2] == 0


def test_a_draft_of_every_token_holds_the_cache_of_every_token():
    """With drafts an answer takes fewer passes, and as much room in the cache."""
    said = {
        "concurrency": 512,
        "engine": "tensorrt-llm",
        "output_tokens": 4000,
        "on": "rtx-4090",
        "weights": "awq",
        "context": 8192,
    }
    plain, drafts = (
        value(ask(draft_tokens=tokens, acceptance=share, **said), "running")
        for tokens, share in ((None, None), (3, 0.9))
    )
    assert drafts <= plain


def test_a_workstation_s_host_memory_is_assumed_and_said_and_a_server_s_is_not():
    said = {"model": "qwen3-30b-a3b", "weights": "q4_k_m", "context": 16_384, "expert_layers_on_host": 20}
    assumed = ask(on="rtx-4090", **said)
    given = ask(on="rtx-4090", host_bandwidth=89.6e9, **said)
    assert assumed.serving.tpot_seconds.value == given.serving.tpot_seconds.value
    assert "host memory of 89.6 GB/s is assumed" in str(assumed.warnings)
    assert "needs host_bandwidth" in str(ask(on="h100", engine="llama.cpp", **said).warnings)


def test_vllm_on_amd_says_which_kernels_its_times_are_of():
    assert "VLLM_ROCM_USE_AITER=1" in str(ask(on="mi300x").warnings)
    assert "AITER" not in str(ask(on="mi300x", engine="sglang").warnings) + str(ask(on="h100").warnings)
