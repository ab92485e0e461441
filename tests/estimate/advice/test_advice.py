"""Advice can be followed to the letter: a move's flags, added to one's own command line, give exactly the move's
figure.
"""

import json
import re

import pytest

import tonnage
from tonnage.cli import main
from tonnage.estimate.advice.moves import ORDER, Ladder, Paid, Settled, best_moves
from tonnage.estimate.money.bill import Rent
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.serving.options import ServingOptions

TRAIN = [
    "llama-3.1-8b --on 8xH100-SXM-80GB",
    "llama-3.1-8b --on 8xH100-SXM-80GB --seq 64k",
    "llama-3.1-8b --on 8xH100-SXM-80GB --seq 64k --dp 8 --gbs 32 --num-microbatches 4",
    "llama-3.1-8b --on 8xH100-SXM-80GB --seq 32k --tp 2 --dp 4 --no-sequence-parallel --gbs 16",
    "llama-3.1-8b --on 8xH100-SXM-80GB --mbs 8 --gbs 64 --zero 2",
    "llama-3.1-8b --on 8xH100-SXM-80GB --recompute full --num-microbatches 8",
    "llama-3.1-8b --on 8xA100-SXM-80GB --runtime ddp --dp 8 --attention eager",
    "llama-3.1-8b --on 8xA100-SXM-80GB --runtime deepspeed --zero 1 --gbs 64 --mbs 4",
    "llama-3.1-70b --on 8xA100-SXM-80GB --runtime deepspeed",
    "llama-3.1-70b --on 4x8xH100-SXM-80GB --runtime megatron --tp 4 --pp 2 --vpp 2 --zero 0 --num-microbatches 8",
    "gpt3-175b --on 8x8xA100-SXM-80GB --runtime megatron --tp 8 --pp 8 --attention eager --dropout --gbs 64",
    "qwen3-0.6b --on rtx-4090 --seq 32k --mbs 4",
    "qwen3-0.6b --on 2xrtx-4090 --runtime transformers --mbs 16 --attention eager",
    "llama-3.1-70b --on rtx-4090",
    "mixtral-8x7b --on 8xH100-SXM-80GB",
    "mixtral-8x7b --on 8xH100-SXM-80GB --ep 2 --etp 2 --dp 8",
    "mixtral-8x7b --on 8xH100-SXM-80GB --tp 2 --etp 1 --dp 4 --num-microbatches 2",
    "deepseek-v3 --on 32x8xH800-SXM-80GB --runtime megatron",
    "deepseek-v3 --on 32x8xH800-SXM-80GB --runtime megatron --pp 16 --dp 16 --gbs 1920 --etp 1",
    "llama-3.1-405b --on 8xH100-SXM-80GB --reserve 4GiB",
    "llama-3.1-8b --on H100-SXM-80GB:3g.40gb",
    "llama-3.1-8b --on Apple-M3-Max-64GB",
    "llama-3.1-405b --on 8xH100-SXM-80GB --runtime megatron",
    "llama-3.1-405b --on rtx-4090 --runtime megatron",
    "llama-3.1-405b --on rtx-4090 --runtime torchtune",
    "llama-3.1-405b --on 8xH100-SXM-80GB --runtime nanotron",
    "llama-3.1-70b --on H100-SXM-80GB --runtime unsloth",
    "llama-3.1-405b --on rtx-4090 --runtime unsloth --method qlora",
    "llama-3.1-405b --on H100-SXM-80GB --runtime litgpt",
    "llama-3.1-70b --on rtx-4090 --runtime litgpt --method lora",
    "bert-large-uncased --on T4 --mbs 256 --attention eager",
]  # fmt: skip
LIMITED = [
    "llama-3.1-70b --on 8xH100-SXM-80GB --weights fp8 --input 2000 --output 400 --ttft 1s --tpot 25ms --concurrency 64",
    "llama-3.1-70b --on 2xH100-SXM-80GB --concurrency 64 --context 32k --tpot 30ms",
    "llama-3.1-70b --on 2xH100-SXM-80GB --request-rate 2 --input 1000 --output 500",
    "llama-3.1-70b --on 8xA100-SXM-80GB --tensor-parallel-size 1 --request-rate 2 --input 1000 --output 500",
]
LATE = [
    "llama-3.1-70b --on 8xH100-SXM-80GB --weights fp8 --input 2000 --output 400 --ttft 1s --tpot 15ms --concurrency 64",
    "llama-3.1-8b --on H100-SXM-80GB --request-rate 10 --input 1000 --output 500 --ttft 500ms --tpot 10ms",
    "llama-3.1-8b --on H100-SXM-80GB --request-rate 10 --input 1000 --output 500 --tpot 5ms",
    "llama-3.1-8b --on H100-SXM-80GB --request-rate 30 --input 1000 --output 500",
    "llama-3.1-8b --on 8xH100-SXM-80GB --tensor-parallel-size 1 --concurrency 64 --input 1000 --output 500 --tpot 4ms",
    (
        "llama-3.1-8b --on H100-SXM-80GB --request-rate 5 --input 1000 --output 500 --tpot 10ms --percentile p99 "
        "--num-requests 300"
    ),
]
SERVE = [
    "llama-3.1-8b --on rtx-4090",
    "llama-3.1-70b --on 8xH100-SXM-80GB --concurrency 512 --context 32k",
    "llama-3.1-70b --on H100-SXM-80GB --context 8k",
    "deepseek-v3 --on 8xH100-SXM-80GB --context 32k",
    "llama-3.1-405b --on 2xrtx-4090 --context 4k",
    "mixtral-8x7b --on 2xA100-SXM-80GB --context 32k --concurrency 64",
    "llama-3.1-8b --on 4xrtx-4090 --tp 1 --context 900 --concurrency 900",
    "llama-3.1-70b --on 4xA100-SXM-80GB --tp 2 --pp 1 --context 16k --concurrency 16",
    "qwen3-32b --on Apple-M3-Max-64GB --context 32k",
    "llama-3.1-8b --on rtx-4090 --batched-tokens 65536 --context 16k",
    "llama-3.1-8b --on 8xH100-SXM-80GB --users 16 --input 500 --output 200",
    "llama-3.1-70b --on H100-SXM-80GB --rate 2 --input 500 --output 200",
    "llama-3.1-8b --on rtx-4090 --users 40 --input 3000 --output 1000 --price-per-accelerator-hour 0.4",
    *LIMITED,
    *LATE,
]
EVERY = [("train", line) for line in TRAIN] + [("serve", line) for line in SERVE]


@pytest.fixture
def ask(capsys):
    def call(verb, line, *more):
        main([verb, *line.split(), *more, "--json"])
        return json.loads(capsys.readouterr().out)

    return call


def _offloads(move):
    return any(name.startswith("offload_") for name in move["change"])


@pytest.mark.parametrize(("verb", "line"), EVERY, ids=lambda value: value)
def test_a_move_can_be_followed_to_the_letter_and_says_what_it_changes(ask, verb, line):
    before = ask(verb, line)
    moves = before["advice"]
    order = [(move.get("serves") is False, ORDER.index(move["changes"])) for move in moves]
    if moves and _offloads(moves[-1]) and order != sorted(order):  # what offloads comes after all that does not
        order.pop()
    assert order == sorted(order), "what answers in time comes first, then what changes less"
    assert all(move["fits"] for move in before["advice"])
    assert "nearest_miss" not in before and (before["advice"] or before["verdict"]["fits"])
    for move in before["advice"]:
        after = ask(verb, line, *move["text"].split())
        assert after["verdict"]["needed_bytes"] == move["needed_bytes"], move["text"]
        assert (after["verdict"]["fits"] is True) == move["fits"]
        assert before["verdict"]["needed_bytes"] - move["needed_bytes"] == move["freed_bytes"]
        _says_what_it_moves(verb, move, before["question"], after["question"])
        assert move["changes"] == _changed(move, before["question"], after["question"]), move["text"]
        if "--on" in move["text"] and "price" in before["question"] and not move.get("provider"):
            # a larger machine has the price of the same provider, so that two markets are not compared
            provider = before["question"]["price"]["value"].split()[0]
            after = ask(verb, line, *move["text"].split(), "--provider", provider)
        _says_what_it_costs(verb, move, before, after)


def _says_what_it_costs(verb, move, before, after):
    """USD of a million tokens as the answer to the changed question has them, and beside those of the run as it was
    asked about.
    """
    then, now = _usd(verb, after), _usd(verb, before)
    assert move["usd_per_million_tokens"] == (None if then is None else pytest.approx(then)), move["text"]
    if then is not None and now is not None:
        assert move["usd_change"] == pytest.approx(then / now - 1, abs=1e-9)
    then, now = _pace(verb, after), _pace(verb, before)
    if then and now:
        assert move["time_change"] == pytest.approx(now / then - 1, abs=1e-9)


def _usd(verb, document):
    if verb == "serve":
        found = document["serving"].get("cost_per_million_tokens")
        return found and found["value"]
    if not document.get("cost"):
        return None
    return document["cost"]["value"] / _tokens(document) * 1e6


def _pace(verb, document):
    if verb == "serve":
        found = document["serving"].get("total_tokens_per_second")
        return found and found["value"]
    return _tokens(document) / document["step_time"]["value"] if "step_time" in document else None


def _tokens(document):
    return document["question"]["global_batch_size"]["value"] * document["question"]["sequence_length"]["value"]


def _says_what_it_moves(verb, move, before, after):
    """Flags are the change, in the order of the command line but for the runtime, and no plan's choice moves without
    its flag.
    """
    form = TrainingOptions if verb == "train" else ServingOptions
    options = list(form.__struct_fields__)
    if verb == "train":  # the runtime and its own options stand before what trains
        runtime = (
            "runtime",
            "replicate_size",
            "compile",
            "float8",
            "liger",
            "packing",
            "expandable_segments",
            "model_code",
        )
        rest = [name for name in options if name not in runtime]
        at = rest.index("objective")
        options = [*rest[:at], *runtime, *rest[at:]]
    options = ["on", *options]
    names = [flag[2:].removeprefix("no-").replace("-", "_") for flag in move["text"].split() if flag.startswith("--")]
    assert names == list(move["change"]) == [name for name in options if name in names]
    for name in names:
        assert after.get(name, {"from": "given"})["from"] == "given"
    for name in set(before) & set(options) - set(names) - {
        "global_batch_size",
        "runtime_version",
        *(("concurrency",) if "request_rate" in before else ()),
        *(("max_num_batched_tokens",) if "max_num_seqs" in names else ()),  # vLLM: no more than so many whole contexts
        *(("max_num_batched_tokens", "max_num_seqs") if _card(before) != _card(after) else ()),  # vLLM: by the card
        *(("base_weights",) if "runtime" in names and _is_plain(before) and _is_plain(after) else ()),
    }:  # which follow from what is said
        # a switch of the runtime's own layers means nothing with others'
        assert after.get(name, before[name])["value"] == before[name]["value"], f"{name} moves unsaid: {move['text']}"


def _card(question):
    """The accelerator without how many of it there are."""
    return re.sub(r"^(\d+x)+", "", str(question["on"]["value"]))


def _is_plain(question):
    """Whether nothing quantises the base, which then is as wide as its runtime makes it."""
    return question.get("base_weights", {"value": "16 bit"})["value"] in ("16 bit", "32 bit")


def _changed(move, before, after):
    work = ["sequence_length", "global_batch_size", "context"]
    if "request_rate" not in before:  # of what comes by itself nobody says how much is there
        work.append("concurrency")
    moved = {
        name for name in move["change"] if name in after and after[name]["value"] != before.get(name, {}).get("value")
    }
    if "method" in moved:
        return "method"
    if {"precision", "optimizer", "weights", "kv_cache"} & moved:
        return "numerics"
    if any(name in after and after[name]["value"] != before[name]["value"] for name in work):
        return "workload"
    return "machine" if "on" in move["change"] else "nothing"


def test_the_smallest_count_of_nodes_that_fits_is_proposed():
    def fits(nodes):
        return tonnage.train("mixtral-8x22b", on=f"{nodes}x8xB300-SXM-288GB").fits

    (move,) = [move for move in tonnage.train("mixtral-8x22b", on="8xB300-SXM-288GB").advice if "on" in move.change]
    nodes = int(move.change["on"].partition("x")[0])
    assert move.change == {"on": f"{nodes}x8xB300-SXM-288GB", "data_parallel_size": 8 * nodes}
    assert fits(nodes) and not fits(nodes - 1)


def test_serving_grows_replicas_or_their_number_whichever_takes_fewer_accelerators_or_else_less_money():
    def machine(**question):
        return next(move.change for move in tonnage.serve(**question).advice if "on" in move.change)

    assert machine(model="mixtral-8x7b", on="2xA100-SXM-80GB", context=32768, concurrency=64) == {
        "on": "8xA100-SXM-80GB",
        "tensor_parallel_size": 8,
    }
    assert machine(model="llama-3.1-8b", on="rtx-a4000", context=4096, concurrency=8) == {
        "on": "2xRTX-A4000",
        "tensor_parallel_size": 2,
    }


@pytest.mark.parametrize(
    ("verb", "line"),
    [
        ("serve", "llama-3.1-8b --on 8xH100-SXM-80GB --concurrency 64 --context 128k --as-is"),
        ("serve", "deepseek-v3 --on 8xH100-SXM-80GB --context 32k --as-is"),
        ("serve", "llama-3.1-70b --on 4xA100-SXM-80GB --tp 2 --pp 1 --context 16k --concurrency 16"),
        ("train", "llama-3.1-8b --on H100-SXM-80GB --runtime transformers --as-is"),
    ],
)
def test_a_move_says_what_stays_as_it_is_only_where_it_would_not_stay_by_itself(ask, verb, line):
    before = ask(verb, line)
    on_more = [move for move in before["advice"] if "on" in move["change"]]
    assert on_more
    for move in on_more:
        kept = [
            name for name, value in move["change"].items() if before["question"].get(name, {}).get("value") == value
        ]
        for name in kept:
            others = {other: value for other, value in move["change"].items() if other != name}
            flags = " ".join(
                f"--{other.replace('_', '-')} {value}" for other, value in others.items() if not isinstance(value, bool)
            )
            without = ask(verb, f"{line} {flags}")  # the last --on counts
            assert (
                without["memory"]["value"] != move["needed_bytes"]
                or without["question"][name]["value"] != move["change"][name]
            ), (name, move["text"])


def test_what_would_just_fit_is_proposed_for_serving():
    question = {"on": "8xH100-SXM-80GB", "context": 32768}
    advice = tonnage.serve("llama-3.1-70b", concurrency=512, **question).advice
    (move,) = [move for move in advice if "concurrency" in move.change]
    most = move.change["concurrency"]
    assert tonnage.serve("llama-3.1-70b", concurrency=most, **question).fits
    assert not tonnage.serve("llama-3.1-70b", concurrency=most + 1, **question).fits
    (move,) = [move for move in advice if "context" in move.change]
    assert not tonnage.serve(
        "llama-3.1-70b", on=question["on"], concurrency=512, context=move.change["context"] + 1024
    ).fits


def test_a_global_batch_is_held_and_what_the_user_said_of_experts_is_kept(ask):
    line = "mixtral-8x7b --on 4x8xH100-SXM-80GB --tp 2 --etp 1 --dp 16 --num-microbatches 2 --seq 32k --as-is"
    before = ask("train", line)
    moves = [
        move for move in before["advice"] if "context_parallel_size" in move["change"] and "on" not in move["change"]
    ]
    assert moves
    for move in moves:
        after = ask("train", line, *move["text"].split())["question"]
        assert after["global_batch_size"]["value"] == before["question"]["global_batch_size"]["value"] == 32
        assert after["expert_tensor_parallel_size"]["value"] == 1
        assert move["change"]["data_parallel_size"] == 16 // move["change"]["context_parallel_size"]


def test_moves_together_change_no_numerics_where_that_is_enough(ask):
    """No single move fits deepseek-v3 on 256 accelerators; two that change nothing else do, and are proposed first."""
    advice = ask("train", "deepseek-v3 --on 32x8xH800-SXM-80GB --runtime megatron --as-is")["advice"]
    assert advice[0]["fits"] and advice[0]["changes"] == "nothing"
    assert not any(move["changes"] == "nothing" and not _offloads(move) for move in advice[1:])


def test_what_host_memory_would_hold_is_offered_only_where_there_is_so_much(ask):
    """The optimizer of llama-3.1-405b is 3.2 TB in all: more than a node of eight has, a part of it on 16 nodes."""

    def offered(nodes):
        advice = ask("train", f"llama-3.1-405b --on {nodes}x8xH100-SXM-80GB --recompute full --seq 64k")["advice"]
        return any("offload_optimizer" in move["change"] for move in advice)

    assert not offered(1) and offered(8)


def test_adapters_and_kernels_are_offered_where_the_runtime_has_them(ask):
    advice = ask("train", "qwen2.5-7b --on rtx-4090 --method lora --seq 8192 --as-is")["advice"]
    assert advice[0]["change"] == {"recompute": "full", "liger": True} and advice[0]["fits"]
    (move,) = [move for move in ask("train", "llama-3.1-8b --on rtx-4090")["advice"] if move["changes"] == "method"]
    assert move["change"]["method"] in ("lora", "qlora") and move["fits"]


@pytest.mark.parametrize(
    "line",
    [
        "llama-3.1-70b --on 8x8xH100-SXM-80GB --seq 4k --runtime megatron --tp 4 --pp 8 --gbs 128 --recompute full",
        "llama-3.1-8b --on 8xH100-SXM-80GB --recompute full --num-microbatches 8",
        "qwen3-0.6b --on rtx-4090 --seq 512 --gbs 64",
        "qwen3-0.6b --on rtx-4090 --seq 512",
    ],
)
def test_a_move_that_only_takes_more_memory_makes_the_step_faster(ask, line):
    asked = ask("train", line)
    now = asked["step_time"]["value"] / asked["question"]["global_batch_size"]["value"]
    for move in asked["advice"]:
        assert move["freed_bytes"] < 0
        moved = ask("train", f"{line} {move['text']}")
        assert move["step_seconds"] / moved["question"]["global_batch_size"]["value"] < now


def test_of_larger_micro_batches_the_fastest_is_offered(ask):
    line = "llama-3.1-8b --on 8xH100-SXM-80GB --runtime megatron --tp 4 --pp 2 --gbs 64 --seq 1024 --recompute full"
    move = next(move for move in ask("train", line)["advice"] if "micro_batch_size" in move["change"])
    took = {size: ask("train", f"{line} --mbs {size}")["step_time"]["value"] for size in (1, 2, 4, 8, 16)}
    assert move["change"]["micro_batch_size"] == min(took, key=took.get) < 16


def test_where_the_pipeline_stands_empty_its_chunks_and_more_micro_batches_are_offered(ask):
    line = "llama-3.1-70b --on 8x8xH100-SXM-80GB --tp 8 --pp 4"
    asked = ask("train", line)
    moves = {next(iter(move["change"])): move for move in asked["advice"]}
    assert {"virtual_pipeline_size", "num_microbatches"} <= set(moves)
    assert moves["virtual_pipeline_size"]["changes"] == "nothing" and moves["num_microbatches"]["changes"] == "workload"
    now = asked["step_time"]["value"] / asked["question"]["global_batch_size"]["value"]
    for move in moves.values():
        moved = ask("train", f"{line} {move['text']}")
        assert moved["step_time"]["value"] / moved["question"]["global_batch_size"]["value"] < now
    held = ask("train", f"{line} --gbs 8")["advice"]
    assert all(move["changes"] == "nothing" for move in held)  # a batch that was asked for is not changed


def test_experts_that_send_while_they_compute_are_offered_as_megatron_runs_them(ask):
    """Megatron-core, transformer_config.py: not with recompute full; under a pipeline only in chunks."""
    for line, chunked in (
        (
            (
                "mixtral-8x7b --on 8x8xH200 --runtime megatron --ep 8 --pp 4 --num-microbatches 32 --seq 4k "
                "--recompute full"
            ),
            True,
        ),
        ("qwen3-30b-a3b --on 4x8xH200 --runtime megatron --ep 32 --seq 4k", False),
    ):
        move = next(
            each for each in ask("train", line)["advice"] if "overlap_moe_expert_parallel_comm" in each["change"]
        )
        moved = ask("train", f"{line} {move['text']}")
        assert ("virtual_pipeline_size" in move["change"]) is chunked
        assert moved["question"]["recompute"]["value"] != "full"
        assert not any("Megatron-core" in warning for warning in moved["warnings"])
        if chunked:
            told = ask("train", f"{line} --overlap-moe-expert-parallel-comm")["warnings"]
            assert sum("Megatron-core" in warning for warning in told) == 2


@pytest.mark.parametrize(
    "line", ["train llama-3.1-8b --on 8xh100 --seq 64k --as-is", "serve llama-3.1-8b --on rtx-4090 --users 40"]
)
def test_who_asks_for_no_advice_gets_all_else(ask, line):
    verb, _, words = line.partition(" ")
    whole, bare = ask(verb, words), ask(verb, words, "--no-advice")
    assert whole["advice"] and not bare["advice"] and "nearest_miss" not in bare
    assert bare["question"].pop("advice") == {"value": False, "from": "given"}
    theirs = ("advice", "slopes", "nearest_miss")
    assert {name: value for name, value in bare.items() if name not in theirs} == {
        name: value for name, value in whole.items() if name not in theirs
    }


def test_the_text_says_what_a_move_changes(capsys):
    main(["train", "mixtral-8x7b", "--on", "8xH100-SXM-80GB", "--tp", "4", "-v"])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  --")]
    assert any("--precision bf16" in line and line.endswith("(changes the numerics)") for line in lines)
    assert any(line.startswith("  --offload-optimizer cpu ") and "changes" not in line for line in lines)


def test_the_text_says_the_time_and_the_money_of_a_move_beside_those_of_the_run_as_it_was_asked_about(capsys):
    def line(begins, *words):
        main(["train", *words, "-v"])
        return next(line for line in capsys.readouterr().out.splitlines() if line.startswith(begins))

    slower = line("  --recompute full", "llama-3.1-8b", "--on", "8xH100-SXM-80GB", "--seq", "64k", "--as-is")
    assert re.search(r", a step takes \d+\.\d+ s, \d\.\d+ USD a million tokens \(\+\d+ %\): fits$", slower)
    wider = line("  --on ", "llama-3.1-70b", "--on", "8xH100-SXM-80GB", "--as-is")
    assert re.search(
        r" s, -\d+ % cluster time a token, \d\.\d+ USD a million tokens \(\+\d+ %\): fits \(changes the workload\)$",
        wider,
    )


def test_without_a_price_moves_have_times_and_no_money(ask):
    for move in ask("train", "llama-3.1-8b --on mi50-32gb --seq 512 --precision fp32")["advice"]:
        assert move["usd_per_million_tokens"] is None is move["usd_change"]


def test_a_move_of_serving_says_how_fast_it_answers(ask):
    line = "llama-3.1-8b --on rtx-4090 --users 40 --input 3000 --output 1000"
    moves = ask("serve", line)["advice"]
    assert moves
    for move in moves:
        after = ask("serve", line, *move["text"].split())["serving"]
        for name in ("ttft_seconds", "tpot_seconds", "tokens_per_second"):
            assert move[name] == pytest.approx(after[name]["value"]), move["text"]


@pytest.mark.parametrize("line", LIMITED + LATE)
def test_a_move_says_whether_the_load_is_then_served_as_it_was_asked(line, capsys):
    main(["serve", *line.split(), "--json"])
    moves = json.loads(capsys.readouterr().out)["advice"]
    assert moves
    for move in moves:
        status = main(["serve", *line.split(), *move["text"].split()])
        capsys.readouterr()
        assert move["serves"] is (status == 0), move["text"]


@pytest.mark.parametrize("line", LATE)
def test_where_limits_are_not_kept_moves_that_keep_them_are_offered_and_no_others(line, capsys):
    assert main(["serve", *line.split(), "--json"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"]["fits"] and document["advice"]
    assert all(move["serves"] for move in document["advice"])


def test_more_machines_are_offered_where_that_many_are_needed(ask):
    changes = [move["change"] for move in ask("serve", LATE[1])["advice"]]
    assert ask("serve", LATE[1])["serving"]["accelerators_needed"]["value"] == 3
    assert changes[:2] == [{"on": "2xH100-SXM-80GB", "tensor_parallel_size": 2}, {"on": "3xH100-SXM-80GB"}]
    assert changes[2:] == [{"weights": "fp8"}]


def test_what_does_not_fit_is_changed_as_far_as_the_load_needs_where_one_change_is_enough(ask):
    """Two tensor ranks have room, and are too slow for what comes."""
    moves = ask("serve", LIMITED[-1], "--as-is")["advice"]
    assert moves[0]["serves"] and moves[0]["changes"] == "nothing"
    (tensor,) = [move["change"] for move in moves if list(move["change"]) == ["tensor_parallel_size"]]
    assert tensor == {"tensor_parallel_size": 4}


def test_where_limits_are_kept_no_move_breaks_them(ask):
    """Half the tensor ranks cost less, and answer more tokens a second on all eight, each of them later."""
    offered = []
    for limits in ("--ttft 300ms", "--ttft 200ms"):
        line = f"llama-3.1-70b --on 8xH100-SXM-80GB --weights fp8 --input 2000 --output 400 {limits} --users 64"
        found = ask("serve", line)
        assert found["serving"]["service_level"]["met"]
        offered.append([move["text"] for move in found["advice"]])
    assert offered == [["--on 4xH100-SXM-80GB --tensor-parallel-size 4", "--tensor-parallel-size 4"], []]


def test_where_nothing_keeps_the_limits_moves_say_so(capsys):
    line = "serve llama-3.1-8b --on H100-SXM-80GB --users 8 --input 1000 --output 500 --tpot 100us"
    assert main([*line.split(), "-v"]) == 3
    moves = [each for each in capsys.readouterr().out.splitlines() if each.startswith("  --")]
    assert moves and all("fits, but does not answer in time" in each for each in moves)


def test_the_time_of_a_move_is_said_to_be_the_whole_clusters(capsys):
    """A user may wait longer for a token that the cluster makes sooner."""
    main(["serve", "llama-3.1-70b", "--on", "2xH100-SXM-80GB", "--context", "32k", "--users", "16", "-v"])
    moves = [each for each in capsys.readouterr().out.splitlines() if each.startswith("  --")]
    assert any(" % cluster time a token, " in each for each in moves)
    assert not any(" % time a token" in each for each in moves)


def test_of_moves_that_change_alike_the_one_that_costs_least_comes_first(ask):
    advice = ask(
        "train",
        "mixtral-8x7b --on 2x8xH100-SXM-80GB --tp 2 --etp 1 --dp 8 --num-microbatches 2 --seq 64k --recompute full",
    )["advice"]
    prices = [move["usd_per_million_tokens"] for move in advice if move["changes"] == "nothing"]
    known = [price for price in prices if price is not None]
    assert len(known) >= 3 and prices == [*sorted(known), *[None] * (len(prices) - len(known))]


CLUSTERS = (
    "rtx-4090",
    "2xA100-SXM-80GB",
    "8xH100-SXM-80GB",
    "8xV100-SXM2-32GB",
    "8xMI300X",
    "2x8xH100-SXM-80GB",
    "H100-SXM-80GB:3g.40gb",
)


def test_changing_the_cluster_changes_the_advice(ask):
    """Nothing is canned: of clusters on which it does not fit no two are told the same, and on one that is large
    enough it fits.
    """
    advice = {on: ask("train", f"llama-3.1-8b --on {on} --seq 32k --mbs 2 --as-is") for on in CLUSTERS}
    told = [tuple(move["text"] for move in each["advice"]) for each in advice.values() if not each["verdict"]["fits"]]
    assert len(told) >= 5 and len(set(told)) == len(told)
    assert advice["8xMI300X"]["advice"] != advice["8xH100-SXM-80GB"]["advice"]


def test_where_no_change_fits_the_nearest_is_said_with_the_bytes_that_are_still_missing(ask, capsys):
    answer = ask("train", "llama-3.1-405b --on H100-SXM-80GB:3g.40gb")
    near = answer["nearest_miss"]
    assert answer["advice"] == []
    after = ask("train", "llama-3.1-405b --on H100-SXM-80GB:3g.40gb", *near["text"].split())["verdict"]
    assert after["needed_bytes"] == near["needed_bytes"]
    high = max(after["needed_bytes"], *(after["band"] or ()))
    assert near["missing_bytes"] == pytest.approx(high - after["usable_bytes"], abs=1) and near["missing_bytes"] > 0
    main(["train", "llama-3.1-405b", "--on", "H100-SXM-80GB:3g.40gb", "-v"])
    out = capsys.readouterr().out
    assert f"no change fits: the nearest, {near['text']}, still misses " in out and "suggestions" not in out


def test_where_no_change_fits_the_smallest_machine_on_which_it_does_is_named(ask):
    line = "llama-3.1-70b --on Apple-M3-16GB --context 4k --engine llama.cpp --weights bf16"
    near = ask("serve", line)["nearest_miss"]
    assert near["smallest_machine"] == "Apple-M2-Ultra-192GB"
    assert ask("serve", line.replace("Apple-M3-16GB", near["smallest_machine"]))["verdict"]["fits"]
    assert not ask("serve", line.replace("Apple-M3-16GB", "Apple-M4-Max-128GB"))["verdict"]["fits"]


# ---- the search itself, on made-up ladders: each step frees a number of bytes, and steps add up ----

SIZES = {"a": (10, 20), "b": (15, 30), "c": (40,), "n": (60,), "m": tuple(range(5, 100, 5))}


def free(needed, usable, names, refused=()):
    """What is proposed when each option frees its bytes; options named in `refused` cannot go together."""
    kinds = {"n": "numerics", "m": "machine"}
    ladders = [Ladder(tuple({name: i} for i in range(len(SIZES[name]))), kinds.get(name, "nothing")) for name in names]

    def settle(change):
        if set(refused) <= set(change) and len(refused) > 1:
            return None
        return Settled(change, needed - sum(SIZES[name][step] for name, step in change.items()))

    return [(move.change, move.fits) for move in best_moves(ladders, settle, needed, usable).moves]


def test_of_each_ladder_the_mildest_step_that_fits_is_proposed():
    assert free(100, 85, "ab") == [({"a": 1}, True), ({"b": 0}, True)]
    assert free(100, 91, "m") == [({"m": 1}, True)]
    assert free(100, 5, "m") == [({"m": 18}, True)]


def test_the_smallest_combination_is_relaxed_to_its_mildest_steps_the_costliest_first():
    assert free(100, 65, "ab")[0] == ({"a": 1, "b": 0}, True)
    assert free(100, 30, "abc")[0] == ({"b": 1, "c": 0}, True)
    assert free(100, 15, "abc")[0] == ({"a": 1, "b": 1, "c": 0}, True)


def test_numerics_join_only_where_nothing_else_is_enough():
    assert [change for change, fits in free(100, 30, "abcn") if fits] == [{"b": 1, "c": 0}]
    assert [change for change, fits in free(100, 5, "abcn") if fits] == [{"c": 0, "n": 0}]
    assert [change for change, fits in free(200, 5, "abcm") if fits] == []
    assert [change for change, fits in free(200, 25, "abcm") if fits] == [{"a": 1, "b": 1, "c": 0, "m": 16}]


def test_moves_that_exclude_each_other_are_not_put_together():
    assert [change for change, fits in free(100, 30, "abc", refused=("b", "c")) if fits] == []
    assert [change for change, fits in free(100, 40, "abc", refused=("b", "c")) if fits] == [{"a": 1, "c": 0}]


def test_a_long_ladder_whose_end_is_no_plan_is_still_searched():
    """Sixty-four times the machine may be more than the model can be cut for."""
    ladder = Ladder(tuple({"m": step} for step in range(60)), "machine")

    def settle(change):
        return None if change["m"] > 40 else Settled(change, 100 - change["m"])

    assert [move.change for move in best_moves([ladder], settle, 100, 80).moves] == [{"m": 20}]


def test_only_what_fits_is_proposed_and_else_the_nearest_of_all_that_was_tried_is_named():
    ladders = [Ladder(({"a": 0}, {"a": 1})), Ladder(({"b": 0}, {"b": 1}))]
    sizes = {"a": (10, 20), "b": (15, 30)}

    def settle(change):
        return Settled(change, 100 - sum(sizes[name][step] for name, step in change.items()))

    assert (
        best_moves(ladders, settle, 100, 70).moves
        == [move for move in best_moves(ladders, settle, 100, 70).moves if move.fits]
        != []
    )
    none = best_moves(ladders, settle, 100, 40)
    assert none.moves == [] and none.nearest.change == {"a": 1, "b": 1} and none.nearest.missing_bytes == 10
    assert best_moves([Ladder(({"a": 0},))], lambda change: Settled(change, 120), 100, 40).nearest is None


def test_of_two_moves_that_change_nothing_the_cheaper_is_proposed_first_and_an_unknown_price_last():
    ladders = [Ladder(({name: 0},)) for name in "abc"]
    paces = {"a": None, "b": 50.0, "c": 80.0}

    def settle(change):
        (name,) = change
        return Settled(change, 10, pace=lambda: paces[name], rent=lambda: Rent(3.6))

    found = best_moves(ladders, settle, 100, 50, now=Paid(40.0, 25.0)).moves
    assert [next(iter(move.change)) for move in found] == ["c", "b", "a"]
    assert found[0].usd_per_million_tokens == pytest.approx(12.5) and found[0].usd_change == pytest.approx(-0.5)
    assert found[0].time_change == pytest.approx(-0.5) and found[2].time_change is None


@pytest.mark.parametrize(
    ("verb", "line"),
    [
        ("serve", "llama-3.1-8b --on h100 --concurrency 1000000000 --context 4k"),
        ("serve", "llama-3.1-8b --on h100 --context 1000000000"),
        ("train", "llama-3.1-8b --on 100000x8xh100 --seq 1M --mbs 1M"),
        ("train", "llama-3.1-8b --on h100 --mbs 1048575"),
    ],
    ids=lambda value: value,
)
def test_questions_of_any_size_are_answered_at_once(ask, verb, line):
    """A list of every count of requests or nodes would never end."""
    assert ask(verb, line)["verdict"]["fits"] is False
