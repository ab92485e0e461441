import json
from itertools import pairwise

import pytest

import tonnage
from tonnage.cli import main
from tonnage.document import json_schema
from tonnage.errors import InvalidInput, UnknownName

FIXED = {"global_batch_size": 64, "sequence_length": 2048, "runtime": "fsdp2", "recompute": "full", "zero_stage": 3}


def plan(*on, **options):
    return tonnage.plan_training("llama-3.2-1b", on, **(FIXED | options))


def valid(document):
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(
        json.loads(json.dumps(document)), {**json_schema(), "anyOf": [{"$ref": "#/$defs/PlansDocument"}]}
    )


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
    assert loose.answer.run["seconds"].value <= 5 * 86400
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
    assert main(["plan", "llama-3.1-70b", "--train", "--on", "2xrtx-4090", "--gbs", "8", "--runtime", "fsdp2"]) == 3
    text = capsys.readouterr().out
    assert text.startswith("no plan: memory binds: the plan of llama-3.1-70b that needs least, on 2xRTX-4090, needs ")
    assert "too much" in text.splitlines()[0]


def test_where_no_plan_is_valid_the_constraint_is_named(capsys):
    assert main(["plan", "llama-3.2-1b", "--train", "--on", "8xH100-SXM-80GB", "--gbs", "3", "--mbs", "2"]) == 3
    assert "micro_batch_size x data_parallel_size divides global_batch_size" in capsys.readouterr().out.splitlines()[0]


def test_a_plan_is_a_document(capsys):
    assert (
        main(["plan", "llama-3.2-1b", "--on", "4xH100-SXM-80GB", "--gbs", "64", "--json", "--top", "2", "--pareto"])
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
        (["--on", "8xH100-SXM-80GB", "--max-accelerators", "4"], "max_accelerators must be at least 8"),
        (["--on", "h1000"], "Did you mean 'h100'"),
        (["--deadline", "3d"], "deadline is of a whole run"),
        (["--on", ","], "--on names machines"),
    ],
)
def test_bad_input_is_named(words, said, capsys):
    words = words if "--on" in words else ["--on", "8xH100-SXM-80GB", *words]
    assert main(["plan", "llama-3.2-1b", *words]) == 64
    assert said.lower() in capsys.readouterr().err.lower()


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
