import json
import re
from itertools import pairwise

import pytest

import tonnage
from schema_forms import validate
from tonnage.cli import main
from tonnage.kernel.errors import InvalidInput, InvalidPlan, UnknownName
from tonnage.render.brief.plan_training import verdict_line

FIXED = {"global_batch_size": 64, "sequence_length": 2048, "runtime": "fsdp2", "recompute": "full", "zero_stage": 3}


def plan(*on, **options):
    return tonnage.plan_training("llama-3.2-1b", on, **(FIXED | options))


def valid(document):
    validate(json.loads(json.dumps(document)), "PlansDocument")


def test_every_plan_that_is_shown_is_what_train_says_of_it():
    found = plan("8xH100-SXM-80GB", top=4)
    assert found.status == 0 and len(found.plans) == 4
    for one, row in zip(found.plans, found.to_dict()["plans"], strict=True):
        again = tonnage.train("llama-3.2-1b", row["on"], **row["options"])
        assert (again.needed_bytes, again.step_time.value) == (row["needed_bytes"], pytest.approx(row["step_seconds"]))
        assert again.fits and again.needed_bytes == one.answer.needed_bytes
    valid(found.to_dict())


def test_the_command_that_a_plan_names_asks_for_just_it(capsys):
    row = plan("8xH100-SXM-80GB", top=1).to_dict()["plans"][0]
    assert main([*row["text"].split()[1:], "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["verdict"]["needed_bytes"] == row["needed_bytes"]
    assert again["step_time"]["value"] == pytest.approx(row["step_seconds"])


def test_the_fastest_of_one_machine_comes_first_and_each_says_why_it_beats_the_next():
    document = plan("8xH100-SXM-80GB", top=5).to_dict()
    seconds = [row["step_seconds"] for row in document["plans"]]
    assert all(earlier <= later * 1.001 for earlier, later in pairwise(seconds))
    assert document["goal"] == "fastest"
    assert all(row["beats"] for row in document["plans"][:-1]) and not document["plans"][-1]["beats"]


def test_several_machines_are_compared_by_money():
    document = plan("H100-SXM-80GB", "A100-SXM-80GB", max_accelerators=8).to_dict()
    assert document["goal"] == "cheapest"
    costs = [row["usd_per_million_tokens"] for row in document["plans"]]
    assert costs == sorted(costs)


def test_the_fewest_accelerators_that_make_a_deadline_include_whole_nodes_between_powers_of_two():
    asked = {
        "tokens": "200B",
        "goal": "fewest",
        "global_batch_size": 1536,
        "max_accelerators": 128,
        "recompute": None,
        "runtime": "megatron",
        "zero_stage": 1,
    }
    loose = plan("H100-SXM-80GB", deadline="5d", **asked).plans[0]
    assert loose.answer.run.seconds.value <= 5 * 86400
    fewer = [size for size in range(8, loose.machine.size, 8) if 1536 % size == 0]
    for size in fewer:
        best = plan(
            f"{size // 8}x8xH100-SXM-80GB" if size > 8 else "8xH100-SXM-80GB",
            deadline="5d",
            **{**asked, "max_accelerators": None},
        )
        assert not best.plans


def test_a_deadline_that_nothing_makes_is_said_to_bind():
    found = plan("8xH100-SXM-80GB", tokens="1T", deadline="1d")
    assert found.status == 3 and found.found.why == "deadline"
    near = found.to_dict()["nearest"]
    assert near["run_seconds"] > 86400
    valid(found.to_dict())


def test_a_budget_that_nothing_keeps_is_said_to_bind():
    found = plan("8xH100-SXM-80GB", tokens="100B", budget="1")
    assert found.status == 3 and found.found.why == "budget"
    assert found.to_dict()["nearest"]["cost"] > 1


def test_of_limits_that_cannot_both_be_kept_both_are_named():
    options = {"tokens": "100B", "max_accelerators": 64, "recompute": None, "zero_stage": None}
    cheap = plan("H100-SXM-80GB", **options, goal="cheapest").to_dict()["plans"][0]
    fast = plan("H100-SXM-80GB", **options, goal="fastest").to_dict()["plans"][0]
    assert fast["cost"] > cheap["cost"] and fast["run_seconds"] < cheap["run_seconds"]
    found = plan(
        "H100-SXM-80GB", **options, deadline=f"{fast['run_seconds'] * 1.01:.0f}s", budget=cheap["cost"] * 1.001
    )
    assert found.status == 3 and found.found.why == "deadline and budget together"


def test_where_nothing_fits_memory_binds_and_the_nearest_plan_is_shown(capsys):
    assert (
        main(["plan", "llama-3.1-70b", "--train", "--on", "2xrtx-4090", "--gbs", "8", "--runtime", "fsdp2", "-v"]) == 3
    )
    text = capsys.readouterr().out
    assert text.startswith("no plan: memory binds: the plan of llama-3.1-70b that needs least, on 2xRTX-4090, needs ")
    assert "too much" in text.splitlines()[0]


def test_where_no_plan_is_valid_the_constraint_is_named(capsys):
    assert main(["plan", "llama-3.2-1b", "--train", "--on", "8xH100-SXM-80GB", "--gbs", "3", "--mbs", "2", "-v"]) == 3
    assert "micro_batch_size x data_parallel_size divides global_batch_size" in capsys.readouterr().out.splitlines()[0]


def test_a_plan_is_a_document(capsys):
    assert (
        main(
            [
                "plan",
                "llama-3.2-1b",
                "--on",
                "4xH100-SXM-80GB,2xH100-SXM-80GB",
                "--gbs",
                "64",
                "--json",
                "--top",
                "2",
                "--pareto",
            ]
        )
        == 0
    )
    document = json.loads(capsys.readouterr().out)
    valid(document)
    assert document["best"]["verdict"]["fits"] and document["front"]
    assert sum(each["plans"] for each in document["removed"]) < document["considered"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--goal", "best"], "cheapest, fastest, fewest"),
        (["--top", "1000"], "top must be from 1 to 100. Got 1000"),
        (["--vary", "precison=bf16"], "Did you mean 'precision'"),
        (["--vary", "precision"], "--vary is written OPTION=VALUE,VALUE"),
        (["--precision", "bf16", "--vary", "precision=bf16,fp32"], "precision is given and varied"),
        (["--on", "8xH100-SXM-80GB", "--max-accelerators", "4"], "--max-accelerators must be at least 8"),
        (["--on", "h1000"], "Did you mean 'h100'"),
        (["--deadline", "3d"], "deadline is of a whole run"),
        (["--on", ","], "--on names machines"),
        (["--sequence-length", "0"], "--sequence-length must be from 1 to"),
        (["--vary", "sequence_length=0,4k"], "--sequence-length must be from 1 to"),
        (["--pp", "0"], "--pp must be from 1 to"),
        (
            ["--zero-stage", "3", "--runtime", "megatron"],
            "--zero-stage must be one that a runtime has (megatron: 0, 1)",
        ),
        (["--vary", "precision=,"], "precision is varied without a value"),
        (["--budget", "1000"], "budget is a limit of a run of a length"),
        (["--pareto"], "pareto is a front of machines"),
    ],
)
def test_bad_input_is_named(words, said, capsys):
    words = words if "--on" in words else ["--on", "8xH100-SXM-80GB", *words]
    assert main(["plan", "llama-3.2-1b", *words]) == 64
    assert said.lower() in capsys.readouterr().err.lower()


def test_an_update_on_the_host_without_its_rate_is_said_at_once(capsys):
    words = ["plan", "llama-3.2-1b", "--on", "8xH100-SXM-80GB", "--vary", "offload_optimizer=cpu"]
    assert main(words) == 4
    assert "--host-update-bandwidth" in capsys.readouterr().err
    assert main([*words, "--host-update-bandwidth", "20GB/s", "--runtime", "megatron", "--top", "1"]) == 0


def test_a_deadline_of_so_many_steps_is_kept():
    asked = {"max_steps": 100_000, "max_accelerators": 64, "recompute": None, "zero_stage": None}
    free = plan("H100-SXM-80GB", **asked, goal="cheapest").plans[0]
    days = free.answer.run.seconds.value / 86400
    kept = plan("H100-SXM-80GB", **asked, goal="cheapest", deadline=f"{0.4 * days:.6f}d").plans[0]
    assert kept.answer.run.seconds.value <= 0.4 * days * 86400 * (1 + 1e-6)
    with pytest.raises(InvalidInput, match="one length of sequences"):
        plan(
            "H100-SXM-80GB",
            **(asked | {"sequence_length": None}),
            vary={"sequence_length": [1024, 2048]},
            deadline="9d",
        )


def test_a_budget_of_accelerator_hours_is_kept_or_binds():
    asked = {"tokens": "10B", "max_accelerators": 16, "recompute": None, "zero_stage": None, "goal": "fastest"}
    free = plan("H100-SXM-80GB", **asked).plans[0]
    hours = free.answer.run.accelerator_hours.value
    kept = plan("H100-SXM-80GB", **asked, budget_accelerator_hours=0.97 * hours)
    assert all(one.answer.run.accelerator_hours.value <= 0.97 * hours * (1 + 1e-6) for one in kept.plans)
    assert plan("H100-SXM-80GB", **asked, budget_accelerator_hours=1.0).found.why == "budget of accelerator-hours"


def test_a_deadline_counts_failures_and_checkpoints():
    """Of a machine that only just makes it without them the next larger one is the answer."""
    asked = {
        "tokens": "2B",
        "max_accelerators": 32,
        "goal": "fewest",
        "checkpoint_seconds": "10min",
        "checkpoint_interval": "20min",
        "top": 1,
    }
    alone = plan("8xH100-SXM-80GB", tokens="2B").plans[0].answer.run
    tight = 1.1 * alone.productive_seconds.value
    found = plan("H100-SXM-80GB", deadline=f"{tight:.0f}s", **asked).plans
    assert len(found) == 1 and found[0].machine.size > 8
    assert found[0].answer.run.seconds.value <= tight


def test_both_limits_are_named_where_each_is_out_of_reach(capsys):
    assert (
        main(["plan", "llama-3.2-1b", "--on", "8xH100-SXM-80GB", "--tokens", "1T", "--deadline", "1d", "--budget", "5"])
        == 3
    )
    assert "deadline and budget bind, each by itself" in capsys.readouterr().out


def test_what_fits_inside_the_error_band_alone_is_tight(capsys):
    assert main(["plan", "llama-3.1-70b", "--on", "8xh200", "--sequence-length", "4096", "-v"]) == 2
    assert "inside the error band" in capsys.readouterr().out.splitlines()[0]


def test_where_nobody_published_a_peak_not_enough_is_known(capsys):
    assert main(["plan", "llama-3.2-1b", "--on", "m5-max", "--method", "lora"]) == 4
    assert capsys.readouterr().out.startswith("no plan: not enough is known")


def test_a_command_with_the_runs_length_asks_for_the_same_run(capsys):
    row = plan("8xH100-SXM-80GB", tokens="10B", deadline="90d", top=1).to_dict()["plans"][0]
    assert main([*row["text"].split()[1:], "--json"]) == 0
    run = json.loads(capsys.readouterr().out)["run"]
    assert run["seconds"]["value"] == pytest.approx(row["run_seconds"])


def test_megatrons_settings_lay_out_uneven_stages():
    row = tonnage.plan_training(
        "llama-3.1-8b", "6xH100-SXM-80GB", runtime="megatron", pipeline_parallel_size=3, global_batch_size=64, top=1
    ).to_dict()["plans"][0]
    layout = next(setting for setting in row["launch"] if "layout" in setting).split()[1].strip("'")
    first, middle, last = (part.count("t") for part in layout.split("|"))
    assert last < min(first, middle) and first + middle + last == 32  # the head counts as some layers
    dealt = ("first_stage_layers", "last_stage_layers")
    assert set(dealt) & set(row["options"])
    options = {name: value for name, value in row["options"].items() if name not in dealt}
    again = tonnage.train("llama-3.1-8b", "6xH100-SXM-80GB", pipeline_layout=layout, **options)
    assert again.needed_bytes == row["needed_bytes"]


def test_what_the_settings_do_not_say_is_said():
    found = tonnage.plan_training("llama-3.2-1b", "rtx-4090", method="qlora", global_batch_size=16, max_accelerators=1)
    row = found.to_dict()["plans"][0]
    assert row["launch"][0] == "trl sft" and {"--use_peft", "--load_in_4bit", "--use_bnb_nested_quant"} <= {
        *row["launch"]
    }
    assert row["launch_lacks"] == ["loss full (TRL takes it in parts, with less memory)"]
    assert not plan("8xH100-SXM-80GB", top=1).to_dict()["plans"][0]["launch_lacks"]


def test_the_same_machine_twice_is_one():
    assert len(plan("8xH100-SXM-80GB", "8xh100", top=3).to_dict()["plans"]) == 3


def test_precisions_and_optimizers_can_be_varied():
    found = plan(
        "8xH100-SXM-80GB", vary={"precision": ["bf16-mixed", "bf16"], "optimizer": ["adamw", "adamw-8bit"]}, top=8
    )
    chosen = {(one.options["precision"], one.options["optimizer"]) for one in found.plans}
    assert len(chosen) > 1


def test_python_errors_name_the_option():
    with pytest.raises(UnknownName):
        plan("8xH100-SXM-80GB", gaol="fastest")
    with pytest.raises(InvalidInput):
        plan("8xH100-SXM-80GB", top=0)


def test_a_plan_tries_the_kernels_that_train_chooses_where_a_run_does_not_fit():
    """LoRA of an 8B on one card of 24 GB fits with recomputation and Liger alone."""
    asked = {"method": "lora", "sequence_length": 4096}
    answer = tonnage.train("qwen3-8b", on="1xRTX-4090", **asked)
    assert answer.fits and answer.chosen.change["liger"]
    found = tonnage.plan_training("qwen3-8b", "1xRTX-4090", global_batch_size=8, **asked)
    assert {row["options"]["liger"] for row in found.to_dict()["plans"]} == {True}
    without = tonnage.plan_training("qwen3-8b", "1xRTX-4090", global_batch_size=8, liger=False, **asked)
    assert without.status == 3


def test_a_plan_tries_the_losses_that_train_chooses_where_no_other_plan_fits():
    """A mixture at 131,072 tokens fits eight accelerators of 80 GB with a chunked loss alone."""
    asked = {"sequence_length": 131072, "runtime": "fsdp2", "tensor_parallel_size": 1, "context_parallel_size": 8}
    answer = tonnage.train("qwen3-30b-a3b", on="8xH100-SXM-80GB", **asked)
    assert answer.fits and answer.chosen.change["loss"] == "chunked"
    found = tonnage.plan_training("qwen3-30b-a3b", "8xH100-SXM-80GB", global_batch_size=8, **asked)
    assert {row["options"]["loss"] for row in found.to_dict()["plans"]} == {"chunked"}
    assert "loss chunked" in found.text().splitlines()[0]
    whole = tonnage.plan_training("qwen3-30b-a3b", "8xH100-SXM-80GB", global_batch_size=8, loss="full", **asked)
    assert whole.status == 3


def test_a_search_refuses_a_teacher_that_cannot_teach_before_it_searches():
    with pytest.raises(InvalidPlan, match="one vocabulary"):
        tonnage.plan_training("qwen3-8b", "4xH100-SXM-80GB", objective="distillation", teacher="llama-3.1-8b")


def test_plans_on_an_accelerator_that_nobody_measured_are_marked():
    """In the first line, in the table and in the document, as `train` does."""
    found = tonnage.plan_training("llama-3.1-8b", "MI355X", max_accelerators=16, sequence_length=4096)
    text = " ".join(found.text().split())
    assert "no published runs on MI355X back it llama-3.1-8b" in text
    assert " 1 8xMI355X ? " in text and "? no published runs on this machine" in text
    assert not any(row["measured"] for row in found.to_dict()["plans"])
    measured = tonnage.plan_training("llama-3.1-8b", "8xH100-SXM-80GB", sequence_length=4096)
    assert "published" not in measured.text() and all(row["measured"] for row in measured.to_dict()["plans"])


def test_a_plan_that_may_need_more_than_there_is_says_so_first():
    found = tonnage.plan_training("llama-3.1-8b", "2xA100-SXM-80GB", runtime="deepspeed")
    assert "not measured: may need up to 80.3 of 79.1 GiB" in " ".join(found.text().split())


LONG = {"tokens": "1T", "top": 1}
DAY = 86400


def first_line_of(deadline):
    document = plan("8xH100-SXM-80GB", **LONG, deadline=f"{deadline:.0f}s").to_dict()
    valid(document)
    return document, verdict_line(document)


@pytest.fixture(scope="module")
def run_of_days():
    """Seconds of the fastest run, and of the high end of its error band."""
    answer = plan("8xH100-SXM-80GB", **LONG).plans[0].answer
    taken = answer.run.seconds.value
    return taken, taken * answer.run.step_time_band[1] / answer.step_time.value


def test_a_deadline_inside_the_error_band_is_tight_in_the_words_of_train(run_of_days):
    taken, high = run_of_days
    document, line = first_line_of(taken * 1.01)
    assert document["status"] == 0 and line.tone == "warn"
    tight = re.search(r"; deadline tight: ([\d.]+) d of ([\d.]+) d, up to ([\d.]+) d$", line)
    assert [DAY * float(figure) for figure in tight.groups()] == pytest.approx([taken, taken * 1.01, high], rel=0.01)
    assert document["plans"][0]["run_seconds_band"][1] == pytest.approx(high)


def test_a_deadline_behind_the_error_band_is_not_tight(run_of_days):
    _, line = first_line_of(run_of_days[1] * 1.01)
    assert "deadline" not in line and line.tone == "good"


def test_a_deadline_that_only_the_error_band_reaches_is_missed_with_the_band_beside_the_time(run_of_days):
    taken, high = run_of_days
    document, line = first_line_of(taken * 0.99)
    assert document["status"] == 3
    times = re.search(r"takes ([\d.]+) d \([\d.]+ to ([\d.]+)\)", line)
    assert [DAY * float(figure) for figure in times.groups()] == pytest.approx([taken, high], rel=0.01)
    assert "(" not in first_line_of(taken * 0.5)[1].partition("takes")[2]
