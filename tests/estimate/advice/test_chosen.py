"""What nobody gave is chosen so that it fits: the same workload and numerics, nothing that was given moved."""

import json

import pytest

import tonnage
from tonnage.cli import main

GIB = 2**30
# Questions that were answered "does not fit" with the runtime's defaults, and what is chosen now.
TRAINING = {
    "llama-3.1-70b --on 8x8xH100-SXM-80GB": "--recompute full",
    "llama-3.1-8b --on rtx-4090 --method lora": "--recompute full --liger",
    "qwen2.5-vl-7b --on rtx-4090 --method lora": "--recompute full --liger",
    "llama-3.1-8b --on 8xH100-SXM-80GB --seq 64k": "--recompute full --loss chunked",
    "deepseek-v3 --on 32x8xH100-SXM-80GB": "--expert-parallel-size 8 --recompute full",
}
SERVING = {
    "deepseek-r1 --on 16xH100-SXM-80GB": "--pipeline-parallel-size 2",
    "llama-3.3-70b --on 2xrtx-3090 --weights Q4_K_M": "--context 15360",
    "llama-3.1-8b --on rtx-4090": "--context 34816",
    "qwen2.5-vl-7b --on rtx-4090": "--context 68608",
    "llama-3.1-405b --on 16xH100-SXM-80GB --users 32": "--tensor-parallel-size 16",
}
EVERY = [("train", line, text) for line, text in TRAINING.items()]
EVERY += [("serve", line, text) for line, text in SERVING.items()]
NUMERICS = ("precision", "optimizer", "method", "weights", "kv_cache", "sequence_length", "global_batch_size")


@pytest.fixture
def ask(capsys):
    def call(verb, line, *more):
        status = main([verb, *line.split(), *more, "--no-advice", "--json"])
        return status, json.loads(capsys.readouterr().out)

    return call


@pytest.mark.parametrize(("verb", "line", "text"), EVERY, ids=str)
def test_what_does_not_fit_by_default_fits_with_what_is_chosen_and_says_so(ask, verb, line, text):
    status, found = ask(verb, line)
    assert status == 0 and found["verdict"]["fits"] and found["chosen"]["text"] == text
    status, default = ask(verb, line, "--as-is")
    assert status == 3 and default["verdict"]["fits"] is False and "chosen" not in default
    assert found["chosen"]["needed_bytes"] == default["verdict"]["needed_bytes"]
    for name, value in found["chosen"]["change"].items():
        entry = found["question"][name]
        assert (entry["value"], entry["from"]) == (value, "chosen") and "GiB" in entry["why"]
    assert default["question"]["as_is"] == {"value": True, "from": "given"}


@pytest.mark.parametrize(("verb", "line", "text"), EVERY, ids=str)
def test_the_flags_of_what_is_chosen_give_the_same_answer(ask, verb, line, text):
    _, chosen = ask(verb, line)
    _, given = ask(verb, f"{line} {text}")
    assert "chosen" not in given
    for key in ("verdict", "memory", "step_time", "serving"):
        assert given.get(key) == chosen.get(key)


@pytest.mark.parametrize(("verb", "line", "text"), EVERY, ids=str)
def test_workload_and_numerics_stay_as_they_are(ask, verb, line, text):
    _, chosen = ask(verb, line)
    _, default = ask(verb, line, "--as-is")
    for name in NUMERICS:
        assert chosen["question"].get(name, {}).get("value") == default["question"].get(name, {}).get("value"), name


def test_what_is_given_is_held_to_the_letter(ask):
    line = "llama-3.1-8b --on 8xH100-SXM-80GB --seq 64k --recompute none"
    _, found = ask("train", line)
    assert found["question"]["recompute"] == {"value": "none", "from": "given"}
    assert "recompute" not in found["chosen"]["change"] and found["verdict"]["fits"]
    held = f"{line} --cp 1 --tp 1 --pp 1 --loss full --runtime fsdp2 --zero 3 --attention sdpa"
    status, found = ask("train", held)
    assert status == 3 and "chosen" not in found
    status, found = ask("serve", "llama-3.1-8b --on rtx-4090 --context 128k")
    assert status == 3 and "chosen" not in found and found["question"]["context"]["value"] == 131_072


def test_a_global_batch_stays_as_large_as_it_is(ask):
    line = "llama-3.1-405b --on 64x8xH100-SXM-80GB --runtime megatron"
    for given in ("", "--gbs 1024"):
        _, default = ask("train", f"{line} {given} --as-is")
        _, found = ask("train", f"{line} {given}")
        assert found["verdict"]["fits"] and found["chosen"]
        assert found["question"]["global_batch_size"]["value"] == default["question"]["global_batch_size"]["value"]
    _, found = ask("train", f"{line} --num-microbatches 128")  # on fewer replicas the batch would be another
    assert "chosen" not in found and found["question"]["num_microbatches"]["value"] == 128


def test_nothing_is_chosen_where_the_defaults_fit_or_only_perhaps_fit(ask):
    assert "chosen" not in ask("train", "llama-3.1-8b --on 8xH100-SXM-80GB")[1]
    status, tight = ask("train", "llama-3.1-8b --on 8xH100-SXM-80GB --seq 8k")
    assert status == 2 and "chosen" not in tight


def test_offloading_is_suggested_and_never_chosen():
    answer = tonnage.train("llama-3.1-70b", on="8xH100-SXM-80GB")
    assert answer.fits is False and answer.chosen is None
    assert any("offload_optimizer" in move.change for move in answer.advice)


def test_what_the_hosts_cannot_hold_does_not_fit():
    question = {"offload_optimizer": "cpu", "offload_parameters": "cpu", "recompute": "full"}
    answer = tonnage.train("llama-3.1-405b", on="8xH100-SXM-80GB", **question)
    assert answer.needed_bytes < answer.usable_bytes and answer.host.memory.value > answer.host.capacity
    assert answer.fits is False and answer.status == 3 and not answer.advice
    assert "host memory" in answer.document.verdict.missed
    assert tonnage.train("llama-3.1-8b", on="8xH100-SXM-80GB", **question).fits


def test_a_suggestion_beside_what_was_chosen_names_both():
    """Its flags, added to what was asked, give its figures: by themselves they would not."""
    answer = tonnage.train("llama-3.1-70b", on="8x8xH100-SXM-80GB")
    assert answer.advice
    for move in answer.advice:
        assert move.change["recompute"] == "full" and "--recompute full" in move.text
        moved = tonnage.train("llama-3.1-70b", on="8x8xH100-SXM-80GB", advice=False, **move.change)
        assert moved.needed_bytes == move.needed_bytes


def test_serving_is_judged_at_the_load_that_was_stated(ask):
    for load, context in (("--users 64", 2048), ("--input 3000 --output 500", 3500), ("--request-rate 2", 2048)):
        _, found = ask("serve", f"llama-3.1-70b --on 8xH100-SXM-80GB {load}")
        assert found["question"]["context"]["value"] == context
        assert found["verdict"]["fits"] and "chosen" not in found
    _, found = ask("serve", "llama-3.1-70b --on 8xH100-SXM-80GB --users 64 --context 32k")
    assert found["question"]["context"]["value"] == 32_768  # the worst case, where it is asked for
    _, found = ask("serve", "llama-3.1-70b --on 8xH100-SXM-80GB")
    assert found["question"]["context"]["value"] == 131_072


def test_a_stated_load_is_not_shortened(ask):
    status, found = ask("serve", "llama-3.1-8b --on rtx-4090 --users 30")
    assert status == 3 and "chosen" not in found and found["question"]["context"]["value"] == 2048


def test_every_face_chooses_and_the_summary_has_it():
    question = {"model": "llama-3.1-70b", "on": "8x8xH100-SXM-80GB"}
    summary = tonnage.train(**question).summary()
    assert summary["chosen"]["text"] == "--recompute full"
    assert summary["question"]["recompute"] == {"value": "full", "from": "chosen"}
    as_is = tonnage.train(**question, as_is=True)
    assert as_is.chosen is None and as_is.fits is False and as_is.command.endswith("--as-is")
    with pytest.raises(tonnage.TonnageError, match="as_is"):
        tonnage.train(**question, as_is=1)
