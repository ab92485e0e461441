"""A whole run from the time of a step: published runs, deadlines and budgets, and what cannot be."""

import json
import re
from datetime import date
from math import inf, isfinite, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import tonnage
from tonnage.api.arguments import TAKES
from tonnage.catalogue import cluster
from tonnage.cli import main
from tonnage.documents.question import Entry
from tonnage.estimate.inputs import Question
from tonnage.estimate.options.run_options import RunOptions, deadline_seconds
from tonnage.estimate.plan.rule import divisors
from tonnage.estimate.run.deadline import usable_plans
from tonnage.estimate.run.run import run
from tonnage.formulas.failures import pause
from tonnage.formulas.memory import state_bytes
from tonnage.formulas.run import accelerator_hours, accelerators_by_division
from tonnage.formulas.time import compute_seconds
from tonnage.kernel.errors import InvalidInput, MissingDatum
from tonnage.kernel.term import Term
from tonnage.question.option import options_of, types_of
from tonnage.spec import TrainingPlan

HOUR, DAY = 3600, 86400
TODAY = date(2026, 11, 21)
SAFE = {"accelerator_mtbf": 1e17, "checkpoint_seconds": 1e-6}  # nothing fails: arithmetic alone
# Document B's GPT-3: 1024 A100 as tensor 8 x pipeline 16 x data 8, 1536 sequences of 2048 tokens.
A100 = cluster("128x8xA100-SXM-40GB")
GPT3 = TrainingPlan(
    sequence_length=2048,
    num_microbatches=192,
    tensor_parallel_size=8,
    pipeline_parallel_size=16,
    data_parallel_size=8,
    runtime="megatron",
)
CHECKPOINT = Term.of("checkpoint", state_bytes, N=175e9, w=14)


def seconds(value):
    return Term.of("step time", pause, tau=value)


def gpt3_step(data_parallel_size=8):
    """The rule's time of one step: 8 FLOP for each parameter and token at 45 % of 312 TFLOP/s, with recomputation."""
    work = 8 * 175e9 * 1536 * 2048
    return seconds(compute_seconds(C=work, n=128 * data_parallel_size, P=312e12, u=0.45))


def asked(step=None, plan=GPT3, on=A100, question=None, **options):
    keys = ("price", "step_time_at", "fits_at", "today")
    rest = {key: options.pop(key) for key in keys if key in options}
    return run(
        step or gpt3_step(), plan, on, RunOptions(**options), question or Question(), checkpoint=CHECKPOINT, **rest
    )


def test_gpt3_takes_34_days_on_1024_a100_as_document_b_says():
    made = asked(tokens="300B", **SAFE)
    assert made.seconds.value == pytest.approx(2_921_340, rel=1e-4)
    assert round(made.seconds.value / DAY, 1) == 33.8
    assert made.accelerator_hours.value == pytest.approx(1024 * 33.81 * 24, rel=1e-3)


def test_gpt3_in_30_days_takes_1155_a100_by_division_and_1536_that_the_plan_can_use():
    """Replicas of 128: it takes 9.02 of them, and after 8 the next number that shares out 1536 sequences is 12."""
    made = asked(tokens="300B", deadline="30d", step_time_at=gpt3_step, **SAFE)
    assert made.accelerators_by_division.value == 1155
    assert made.accelerators_by_division.name == "rule of thumb for the deadline, memory not looked at"
    assert made.accelerators_for_deadline.value == 12 * 128
    assert made.deadline_met is False


def test_llama_65b_took_21_days_and_a_million_gpu_hours():
    """380 tokens a second and GPU on 2048 A100 (Touvron2023): its 1,022,362 GPU-hours are 20.8 days."""
    assert accelerator_hours(n=2048, tau=20.8 * DAY) == pytest.approx(1_022_362, rel=1e-4)
    plan = TrainingPlan(sequence_length=2048, data_parallel_size=2048)
    made = asked(seconds(2048 / 380), plan, cluster("256x8xA100-SXM-80GB"), tokens="1.4T", **SAFE)
    assert made.accelerator_hours.value == pytest.approx(1_022_362, rel=0.002)


def test_failures_and_checkpoints_make_a_run_longer():
    made, safe = asked(tokens="300B"), asked(tokens="300B", **SAFE)
    assert 0.9 < made.goodput.value < 1
    assert made.seconds.value == pytest.approx(safe.seconds.value / made.goodput.value)
    assert made.failures.value == pytest.approx(made.seconds.value / made.time_between_failures.value)
    assert made.time_between_failures.value / HOUR == pytest.approx(28.8, rel=0.01), "1,024 A100 at the rate of RSC-1"


def test_a_breakdown_has_no_figure_without_a_source():
    for name, term in asked(
        tokens="300B", deadline="90d", step_time_at=gpt3_step, budget="9M", price=2.0
    ).figures.items():
        if isinstance(term, bool):
            continue
        assert isfinite(term.value), name
        for _depth, part in term.walk():
            assert part.children or part.formula, name
            assert part.formula is None or part.source, part.name


def test_every_default_is_noted_with_its_reason():
    question = Question()
    asked(tokens="300B", question=question)
    noted = question.entries
    for name in ("accelerator_mtbf", "checkpoint_seconds", "restart_seconds", "checkpoint_interval"):
        assert noted[name].origin != "given" and noted[name].why, name
    assert "assumption" in noted["restart_seconds"].why
    assert "Kokolis2024" in noted["accelerator_mtbf"].why


def test_what_is_given_about_failures_is_used():
    made = asked(
        tokens="1B",
        accelerator_mtbf=1024 * 5000.0,
        checkpoint_seconds=20.0,
        restart_seconds=120.0,
        checkpoint_interval=900.0,
    )
    found = (made.time_between_failures, made.checkpoint_seconds, made.restart_seconds, made.checkpoint_interval)
    assert [term.value for term in found] == [5000, 20, 120, 900]
    stored = asked(tokens="1B", storage_bandwidth=1e10, storage_read_bandwidth=2e10)
    assert stored.checkpoint_seconds.value == 175e9 * 14 / 1e10
    assert stored.restart_seconds.value == 600 + 175e9 * 14 / 2e10


def test_nothing_is_saved_more_often_than_after_each_step():
    made = asked(seconds(1000.0), tokens="1B", checkpoint_interval=1.0)
    assert made.checkpoint_interval.value == 1000


def test_steps_are_whole_and_tokens_epochs_and_steps_say_the_same():
    per_step = 1536 * 2048
    by_tokens = asked(tokens=100 * per_step + 1)
    assert by_tokens.steps.value == 101
    by_steps, by_epochs = asked(max_steps=100), asked(epochs=0.5, dataset_tokens=200 * per_step)
    assert by_steps.tokens.value == by_epochs.tokens.value == 100 * per_step
    assert by_steps.seconds.value == by_epochs.seconds.value
    assert by_epochs.epochs.value == 0.5


def test_more_than_four_epochs_are_warned_of():
    question = Question()
    asked(epochs=10.0, dataset_tokens="10B", question=question)
    assert any("10 times" in warning and "Muennighoff2023" in warning for warning in question.warnings)
    few = Question()
    asked(epochs=4.0, dataset_tokens="10B", question=few)
    assert not few.warnings


def test_a_budget_alone_is_spent():
    made = asked(budget="$1M", price_per_accelerator_hour=2.0)
    assert made.budget_accelerator_hours.value == 500_000
    assert made.tokens.value == made.tokens_for_budget.value
    one_step = made.accelerator_hours.value / made.steps.value
    assert 500_000 - one_step < made.accelerator_hours.value <= 500_000
    hours = asked(budget_accelerator_hours="500k")
    assert hours.tokens.value == made.tokens.value


def test_a_run_beyond_its_budget_is_warned_of():
    question = Question()
    made = asked(tokens="300B", budget="100k", price=2.0, question=question)
    assert made.tokens_for_budget.value < made.tokens.value
    assert any("the budget buys 50,000 accelerator-hours" in warning for warning in question.warnings)


def test_a_budget_without_a_price_is_unknown_and_not_free():
    with pytest.raises(MissingDatum, match="price_per_accelerator_hour"):
        asked(budget="100k")


@given(tokens=st.integers(10**9, 10**14), days=st.integers(20, 4000))
def test_the_answer_to_a_deadline_makes_it_and_nothing_smaller_does(tokens, days):
    def seconds_of(size):
        plan = replace(GPT3, data_parallel_size=size, num_microbatches=1536 // size)
        return asked(gpt3_step(size), plan, tokens=tokens).seconds.value

    made = asked(tokens=tokens, deadline=f"{days}d", step_time_at=gpt3_step)
    if made.accelerators_for_deadline is None:
        assert all(seconds_of(size) > days * DAY for size in divisors(1536))
        return
    size = made.accelerators_for_deadline.value // 128
    assert seconds_of(size) <= days * DAY
    assert all(seconds_of(smaller) > days * DAY for smaller in divisors(1536) if smaller < size)


@given(work=st.floats(1, 1e9), one=st.floats(1, 1e8), more=st.floats(1, 100))
def test_a_later_deadline_never_takes_more_accelerators(work, one, more):
    assert accelerators_by_division(n_hours=work, tau=one * more) <= accelerators_by_division(n_hours=work, tau=one)


@given(accelerators=st.integers(1, 10**6), factor=st.integers(1, 100))
def test_at_equal_goodput_more_accelerators_never_take_longer(accelerators, factor):
    plan = TrainingPlan(sequence_length=1024, data_parallel_size=accelerators)
    more = replace(plan, data_parallel_size=accelerators * factor)
    first, second = (asked(seconds(1.0), each, tokens=10**13, **SAFE) for each in (plan, more))
    assert second.seconds.value <= first.seconds.value * (1 + 1e-9)


def test_usable_sizes_divide_the_batch_and_fill_whole_nodes():
    plan = TrainingPlan(sequence_length=1, tensor_parallel_size=2, data_parallel_size=8, num_microbatches=3)
    found = list(usable_plans(plan, cluster("2x8xH100-SXM-80GB")))
    assert [chosen.world_size for chosen in found] == [
        2,
        4,
        6,
        8,
        16,
        24,
        48,
    ]  # of 2 x 1, 2, 3, 4, 6, 8, 12 and 24: 12 is no whole node
    assert {chosen.global_batch_size for chosen in found} == {24}


def test_experts_replicas_and_interleaving_keep_what_they_need():
    experts = TrainingPlan(sequence_length=1, expert_parallel_size=4, data_parallel_size=8)
    assert [p.data_parallel_size for p in usable_plans(experts, cluster("8xH100-SXM-80GB"))] == [4, 8]
    groups = TrainingPlan(sequence_length=1, replicate_size=2, data_parallel_size=8)
    assert [p.data_parallel_size for p in usable_plans(groups, cluster("8xH100-SXM-80GB"))] == [2, 4, 8]
    chunks = TrainingPlan(
        sequence_length=1, pipeline_parallel_size=4, virtual_pipeline_size=2, num_microbatches=8, runtime="megatron"
    )
    assert [p.data_parallel_size for p in usable_plans(chunks, cluster("8xH100-SXM-80GB"))] == [1, 2]


def test_a_size_whose_memory_does_not_suffice_is_no_answer():
    made = asked(tokens="300B", deadline="90d", step_time_at=gpt3_step, fits_at=lambda size: size >= 24)
    assert made.accelerators_for_deadline.value == 24 * 128
    question = Question()
    none = asked(tokens="300B", deadline="90d", step_time_at=gpt3_step, fits_at=lambda size: False, question=question)
    assert none.accelerators_for_deadline is None
    assert any("no number of accelerators holds this plan" in note for note in question.warnings)


def test_a_deadline_that_no_number_of_accelerators_makes_names_the_fastest():
    """A step of at least one second, however many accelerators: a pipeline's floor."""
    question = Question()
    made = asked(
        tokens="300B", deadline="1d", step_time_at=lambda size: seconds(1.0 + 20 / size), question=question, **SAFE
    )
    assert made.deadline_met is False and made.accelerators_for_deadline is None
    said = r"no number of accelerators makes the deadline of 1d\..*data_parallel_size 1,536.*which takes 1\.\d+ d"
    assert any(re.search(said, note) for note in question.warnings)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"deadline": "14d", "global_batch_size": 1024}, r"misses the deadline: \d+\.\d+ d of 14\.00 d"),
        ({"budget": "5"}, r"misses the budget: [\d,.]+ USD of 5\.00 USD"),
        ({"budget": "0.001"}, r"misses the budget: [\d,.]+ USD of 0\.0010 USD"),
        ({"budget_accelerator_hours": 100}, r"misses the budget: [\d,.]+ accelerator-hours of 100 accelerator-hours"),
        ({"deadline": "1d", "budget": "5"}, r"misses the deadline: .* of 1\.00 d, and the budget: .* USD of 5\.00 USD"),
    ],
    ids=str,
)
def test_a_run_that_fits_and_misses_its_deadline_or_budget_has_status_3_and_says_so(options, said):
    found = tonnage.train("llama-3.1-8b", on="8xh100", tokens="1T", **options)
    assert found.fits and found.status == 3
    assert re.fullmatch(said, found.to_dict()["verdict"]["missed"])
    assert said.startswith("misses the deadline") == (found.run.deadline_met is False)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"deadline": "30d"}, r"misses the deadline: \d+ d of 30 d; \dx8xH100-SXM-80GB takes [\d.]+ d for \d+,\d+ USD"),
        ({"deadline": "1min"}, r"misses the deadline: \d+ d of 60 s; no larger machine that was tried meets it"),
        ({"budget": "100k"}, r"misses the budget: 1\d\d,\d+ of 100,000 USD; it buys 9\d\d B tokens"),
        ({"budget_accelerator_hours": 100}, r"misses the budget: [\d,]+ GPU-hours of 100 GPU-hours; it buys .* tokens"),
        ({"deadline": "1d", "budget": "5"}, r"misses the deadline: .* of 24 h; .*; misses the budget: .*; it buys .*"),
    ],
    ids=str,
)
def test_the_first_line_names_what_keeps_a_deadline_or_a_budget_that_is_missed(options, said):
    found = tonnage.train("llama-3.1-8b", on="8xh100", tokens="1T", **options)
    assert re.match(rf"{said}; memory fits: ", found.text(verbose=True)), found.text()[:200]


def test_the_machine_that_makes_a_deadline_is_the_smallest_that_does():
    options = {"tokens": "1T", "deadline": "30d"}
    nodes = tonnage.train("llama-3.1-8b", on="8xh100", **options).run.meets_deadline.accelerators // 8
    met, smaller = (tonnage.train("llama-3.1-8b", on=f"{count}x8xh100", **options) for count in (nodes, nodes - 1))
    assert "meets the deadline" in met.text(verbose=True)
    assert "deadline tight" in smaller.text(verbose=True)  # inside the error band: not recommended


def test_a_limit_that_is_kept_is_said_and_one_inside_the_error_band_is_tight():
    def first(**options):
        return tonnage.train("llama-3.1-8b", on="8xh100", tokens="10B", **options).text(verbose=True).splitlines()[0]

    assert re.search(r"meets the deadline: 1\.\d\d d of 30 d", first(deadline="30d"))
    assert re.search(r"deadline tight: 1\.\d\d d of 2 d, up to 2\.\d\d d", first(deadline="2d"))
    assert re.search(r"meets the budget: 1,\d+ of 10,000 USD", first(budget="10k"))
    assert re.search(r"budget tight: 1,\d+ of 1,200 USD, up to 1,\d+", first(budget="1200"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"deadline": "3d"}, "the deadline cannot be judged"),
        ({"budget": 1000}, "the budget cannot be judged"),
        ({"deadline": "3d", "budget_accelerator_hours": 10}, "the deadline and the budget cannot be judged"),
    ],
    ids=str,
)
def test_a_limit_of_a_run_whose_step_time_is_unknown_cannot_be_judged(options, said):
    untimed = {"on": "ascend-950pr", "tokens": "1B"}  # no source gives its bf16 peak
    found = tonnage.train("llama-3.2-1b", **untimed, **options)
    assert found.fits and found.status == 4 and found.to_dict()["verdict"]["unjudged"] == said
    assert f"step time not estimated: {said}" in found.text(verbose=True).splitlines()[0]
    assert tonnage.train("llama-3.2-1b", **untimed).status == 0


def test_a_run_within_its_deadline_and_budget_fits_with_status_0():
    found = tonnage.train("llama-3.1-8b", on="8xh100", tokens="1B", deadline="30d", budget="100k")
    assert found.status == 0 and found.to_dict()["verdict"]["missed"] is None
    bought = tonnage.train("llama-3.1-8b", on="8xh100", budget="1k")
    assert bought.status == 0 and bought.run.budget_met is True


def test_a_deadline_is_read_as_people_write_it():
    assert deadline_seconds("2w", None) == deadline_seconds("14 days", None) == 14 * DAY
    assert deadline_seconds("2026-11-21", TODAY) == DAY  # today's end
    assert deadline_seconds("2026-12-21", TODAY) == 31 * DAY
    assert deadline_seconds(None, None) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("2026-11-20", "must not be in the past: today is 2026-11-21"),
        ("2026-02-30", "no day of the calendar"),
        ("30", "needs a unit"),
        ("0d", "more than 0"),
        ("-3", "needs a unit"),
        ("-3d", "deadline must be"),
        ("soon", "deadline must be a time such as 30d, 2w or 12h, or the last day"),
        ("31.12.2026", "or the last day, such as 2027-01-31"),
        ("2026/12/31", "or the last day, such as 2027-01-31"),
        ("tomorrow", "or the last day, such as 2027-01-31. Got 'tomorrow'"),
        ("", "deadline"),
        ("nand", "deadline"),
        ("3 parsecs", "unknown unit 'parsecs'"),
        ("1e20d", "at most"),
    ],
)
def test_a_deadline_that_cannot_be_is_refused(text, says):
    with pytest.raises(InvalidInput, match=says):
        deadline_seconds(text, TODAY)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "needs one of tokens"),
        ({"tokens": "1B", "max_steps": 5}, "one of tokens, epochs and max_steps says. Got tokens 1e"),
        ({"tokens": 0}, "tokens must be more than 0"),
        ({"tokens": "-5"}, "tokens must be more than 0 and at most 1e.18"),
        ({"tokens": nan}, "finite"),
        ({"tokens": inf}, "finite"),
        ({"tokens": "2e18"}, "tokens must be more than 0 and at most 1e.18"),
        ({"tokens": 1.5}, "whole number"),
        ({"tokens": True}, "finite number. Got True"),
        ({"tokens": [1]}, "tokens must be a number"),
        ({"tokens": "many"}, "tokens must be a number"),
        ({"epochs": 2.0}, "epochs 2 needs dataset_tokens"),
        ({"epochs": nan, "dataset_tokens": 5}, "epochs must be a finite"),
        ({"epochs": 1e9, "dataset_tokens": "1000T"}, "epochs x dataset_tokens"),
        ({"max_steps": 0}, "max_steps must be more than 0"),
        ({"budget": 0, "price_per_accelerator_hour": 1.0}, "budget must be more than 0"),
        ({"budget": "free"}, "budget must be a number"),
        ({"budget": nan}, "budget must be a finite"),
        ({"budget": "1e19"}, "budget must be more"),
        ({"budget": 5, "budget_accelerator_hours": 5}, "give one of them"),
        ({"budget": 5, "price_per_accelerator_hour": 0.0}, "price_per_accelerator_hour must"),
        ({"budget": 5, "price_per_accelerator_hour": -1.0}, "price_per"),
        ({"budget": "1", "price_per_accelerator_hour": 2.0}, "at least one step, which takes"),
        ({"budget_accelerator_hours": 1}, "budget_accelerator_hours must buy at least one step"),
        ({"tokens": 1, "checkpoint_seconds": 0.0}, "checkpoint_seconds must"),
        ({"tokens": 1, "checkpoint_interval": nan}, "checkpoint_interval must"),
        ({"tokens": 1, "restart_seconds": -1.0}, "restart_seconds must"),
        ({"tokens": 1, "accelerator_mtbf": 0.0}, "accelerator_mtbf must"),
        ({"tokens": 1, "storage_bandwidth": 0.0}, "storage_bandwidth must"),
        ({"tokens": 1, "storage_read_bandwidth": inf}, "storage_read_bandwidth must"),
        ({"tokens": 1, "accelerator_mtbf": 1.0}, "leave a goodput of"),
    ],
)
def test_what_cannot_be_is_refused_by_name(options, says):
    with pytest.raises(InvalidInput, match=says):
        asked(**options)


@pytest.mark.parametrize(
    "option",
    [
        "tokens",
        "max_steps",
        "budget",
        "budget_accelerator_hours",
        "checkpoint_seconds",
        "storage_bandwidth",
        "storage_read_bandwidth",
    ],
)
def test_a_range_is_said_in_one_text_whichever_way_it_is_missed(option, capsys):
    flag = f"--{option.replace('_', '-')}"
    said = set()
    for wrong in ("-1", "0", "1e19", "1e40"):
        assert main(["train", "llama-3.1-8b", "--on", "8xH100-SXM-80GB", "--tokens", "1e9", f"{flag}={wrong}"]) == 64
        said.add(capsys.readouterr().err.replace(repr(wrong), "IT"))
    unit = " s" if option == "checkpoint_seconds" else ""
    assert said == {f"error: {flag} must be more than 0 and at most 1e+18{unit}. Got IT.\n"}


@pytest.mark.parametrize(
    ("option", "text", "bytes_a_second"),
    [
        *(
            ("storage_bandwidth", *each)
            for each in (("20GB/s", 20e9), ("20 GiB/s", 20 * 2**30), ("500MB/s", 5e8), ("20GB", 20e9), ("2e10", 2e10))
        ),
        ("storage_read_bandwidth", "40GB/s", 40e9),
        ("host_update_bandwidth", "30GB/s", 30e9),
    ],
)
def test_a_bandwidth_has_the_units_that_people_write(option, text, bytes_a_second, capsys):
    """On the command line and in Python; a plain number is bytes a second."""
    words = [
        "train",
        "llama-3.1-8b",
        "--on",
        "8xH100-SXM-80GB",
        "--tokens",
        "1e9",
        "--runtime",
        "deepspeed",
        "--offload-optimizer",
        "cpu",
        f"--{option.replace('_', '-')}",
        text,
        "--json",
    ]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)["question"][option]
    assert found == {"value": bytes_a_second, "from": "given"}
    options = {"tokens": 1e9, "runtime": "deepspeed", "offload_optimizer": "cpu", option: text}
    asked = tonnage.train("llama-3.1-8b", "8xH100-SXM-80GB", **options)
    assert asked.question[option] == Entry(bytes_a_second, "given")


@pytest.mark.parametrize("text", ["20Gb/s", "160gbps", "160Gbit/s"])
def test_a_bandwidth_that_may_be_in_bits_is_refused(text, capsys):
    assert (
        main(["train", "llama-3.1-8b", "--on", "8xH100-SXM-80GB", "--tokens", "1e9", "--storage-bandwidth", text]) == 64
    )
    assert f"--storage-bandwidth is in bytes a second, and '{text}' may be bits." in capsys.readouterr().err


def test_a_budget_of_accelerator_hours_may_be_in_parts(capsys):
    words = ["train", "llama-3.1-8b", "--on", "8xH100-SXM-80GB", "--budget-accelerator-hours", "10.5", "--json"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["run"]["budget_accelerator_hours"]["value"] == 10.5
    asked = tonnage.train("llama-3.1-8b", "8xH100-SXM-80GB", budget_accelerator_hours="10.5")
    assert asked.run.budget_accelerator_hours.value == 10.5


def test_a_cluster_that_mostly_restarts_is_warned_of():
    question = Question()
    asked(tokens="1B", accelerator_mtbf=1024 * 1000.0, question=question)
    assert any("goodput" in warning for warning in question.warnings)


def test_an_interval_far_from_the_best_is_blamed_and_not_the_accelerators():
    question = Question()
    made = asked(tokens="300B", checkpoint_interval="60s", question=question)
    (warning,) = [each for each in question.warnings if "goodput" in each]
    best = asked(tokens="300B")
    assert warning.startswith("a checkpoint_interval of 60.00 s leaves a goodput of") and "fail" not in warning
    assert f"{best.checkpoint_interval.value:.2f} s, would leave {best.goodput.value:.0%}" in warning
    assert made.goodput.value < 0.9 * best.goodput.value
    near = Question()
    asked(tokens="300B", checkpoint_interval=best.checkpoint_interval.value * 1.2, question=near)
    assert not any("goodput" in each for each in near.warnings)


def test_an_interval_that_leaves_no_time_to_train_is_refused_by_its_name():
    with pytest.raises(InvalidInput, match=r"checkpoint_interval must leave time to train.*Daly's optimum is"):
        asked(tokens="300B", checkpoint_interval="60d")


def test_the_checkpoint_after_a_short_run_is_said_to_be_left_out():
    said = {}
    for steps in (2, 100_000):
        question = Question()
        asked(max_steps=steps, checkpoint_seconds=98.0, question=question)
        said[steps] = [each for each in question.warnings if "neither its time nor its cost" in each]
    assert "the checkpoint after it 98.00 s more" in said[2][0] and not said[100_000]


def test_a_deadline_as_a_date_needs_todays():
    with pytest.raises(TypeError, match="today"):
        asked(tokens="1B", deadline="2027-01-01")
    assert asked(tokens="1B", deadline="2027-01-01", today=TODAY).deadline_met


def test_the_command_line_has_every_option_of_a_run_and_python_can_take_it():
    assert [option.name for option in options_of(RunOptions)] == list(RunOptions.__struct_fields__)
    for name, takes in types_of(RunOptions).items():
        assert any(takes == kind | None for kind in TAKES), name


def test_what_the_command_line_reads_is_what_a_run_takes():
    said = {
        "tokens": "15T",
        "deadline": "2w",
        "budget": "100k",
        "price_per_accelerator_hour": "2.5",
        "checkpoint_seconds": "30s",
        "checkpoint_interval": "30min",
        "storage_bandwidth": "20GB",
        "storage_read_bandwidth": "40GB",
        "restart_seconds": "10min",
        "accelerator_mtbf": "5y",
    }
    readers = {option.name: option.read for option in options_of(RunOptions)}
    made = asked(**{name: readers[name](text, f"--{name}") for name, text in said.items()})
    assert (
        made.tokens.value == 15e12
        and made.budget_accelerator_hours.value == 40_000
        and made.checkpoint_interval.value == 1800
    )


def test_only_what_says_how_much_is_trained_asks_for_a_run():
    assert RunOptions(tokens="1B").asked and RunOptions(budget=5).asked
    assert not RunOptions(deadline="30d", accelerator_mtbf=5.0).asked
