"""`tonnage trace` with PyTorch: rule E5 recorded anew, models of transformers in every mode, and what cannot be."""

import json
from pathlib import Path

import pytest

import tonnage
from schema_forms import validate
from tonnage.cli import main
from tonnage.kernel.units import MIB
from tonnage.trace.e5 import VARIANTS, recorded
from tonnage.trace.record.user import record_file
from tonnage.trace.replay import replay

E5 = Path(tonnage.__file__).parent / "trace" / "programs" / "linear_relu.py"
SMALL = ["--num-layers", "2", "--sequence-length", "256"]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_the_shipped_events_of_rule_e5_are_those_of_a_fresh_trace(variant):
    fresh = record_file(f"{E5}:program", "meta", variant.profile, steps=1, arguments=variant.arguments)
    shipped = recorded(variant)
    assert fresh.events == shipped.events
    assert fresh.overlays == shipped.overlays


@pytest.mark.parametrize(
    ("width", "depth", "batch", "dtype", "itemsize"),
    [(512, 4, 8, "float32", 4), (2048, 3, 64, "bfloat16", 2), (256, 20, 1, "float64", 8)],
)
def test_nothing_about_rule_e5_is_special(width, depth, batch, dtype, itemsize):
    """Tensors by hand: weights, as many gradients, twice as many states; activations of every layer are kept."""
    made = record_file(
        f"{E5}:program", "meta", "torch-1.13-a100", 1, {"width": width, "depth": depth, "batch": batch, "dtype": dtype}
    )
    weights = depth * (width * width + width) * itemsize
    found = dict.fromkeys(("parameter", "gradient", "optimizer"), 0)
    for number in made.events.live_at(len(made.events)):
        one = made.events.allocations[number]
        found[one.category] = found.get(one.category, 0) + one.bytes
    assert (found["parameter"], found["gradient"], found["optimizer"]) == (weights, weights, 2 * weights)
    assert found["activation"] >= depth * batch * width * itemsize
    assert replay(made.events).peak_allocated_bytes >= 4 * weights


def asked(capsys, *words):
    status = main(["trace", *words, "--json"])
    document = json.loads(capsys.readouterr().out)
    validate(document)
    return status, document


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--recompute", "full", "--num-microbatches", "2"),
        ("--fold", "--num-layers", "12"),
        ("--precision", "bf16-mixed"),
        ("--lora-rank", "8"),
        ("--lora-rank", "8", "--base", "nf4-double", "--recompute", "full"),
        ("--optimizer", "adamw-8bit"),
        ("--mode", "generate", "--new-tokens", "4"),
        ("--runtime", "fsdp2", "--world-size", "4", "--rank", "3"),
        ("--runtime", "ddp", "--world-size", "2"),
        ("--tensor-parallel-size", "2", "--world-size", "4"),
        ("--profile", "torch-1.13-a100"),
        ("--attention", "eager", "--clip-grad-norm", "1"),
    ],
    ids=" ".join,
)
def test_a_model_is_traced_in_every_mode_and_its_document_is_described(words, capsys):
    status, document = asked(capsys, "llama-3.2-1b", *SMALL, *words)
    assert status == 0 and "llama-3.2-1b" in document["question"]["program"]["value"]
    verdict = document["verdict"]
    assert verdict["peak_reserved_bytes"] >= verdict["peak_allocated_bytes"] > 100 * MIB
    assert document["memory"]["value"] == verdict["peak_reserved_bytes"] and document["memory"]["basis"] == "traced"


def test_a_model_beside_its_estimate_agrees_in_weights_gradients_and_states(capsys):
    _, document = asked(
        capsys,
        "llama-3.2-1b",
        "--sequence-length",
        "2048",
        "--against",
        "analytic",
        "--optimizer-implementation",
        "fused",
    )
    rows = {(row["stage"], row["part"]): row for row in document["against"]["rows"]}
    for part in ("weights", "gradients", "optimizer"):
        row = rows["After optimizer step", part]
        assert abs(row["difference_bytes"]) < 1024, part
    assert abs(document["against"]["relative_error"]) < 0.05


@pytest.mark.parametrize(
    ("line", "status", "said"),
    [
        ("llama-3.2-1b --rank 8 --world-size 8 --runtime ddp", 64, "rank must be from 0 to 7"),
        ("llama-3.2-1b --optimizer lamb", 4, "cannot be traced yet"),
        ("llama-3.2-1b --recompute some", 64, "recompute"),
        ("llama-3.2-1b --steps 0", 64, "steps"),
        ("llama-3.2-1b --base nf4", 64, "--lora-rank"),
        ("llama-3.2-1b --tp 3 --world-size 3", 64, "divide"),
        ("llama-3.2-1b --fold --runtime fsdp2 --world-size 8", 64, "one accelerator"),
        ("llama-3.2-1b --num-layers 2 --against analytic", 4, "whole models"),
        ("llama-3.2-1b --front-end meta --precision bf16-mixed", 64, "autocast"),
        ("no-such-model", 64, "no-such-model"),
        ("llama-3.2-1b --front-end cpu", 64, "front end"),
    ],
)
def test_what_cannot_be_traced_is_answered_by_name(line, status, said, capsys):
    assert main(["trace", *line.split(), "--sequence-length", "256"]) == status
    found = capsys.readouterr()
    assert said in found.err and not found.out


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ('"optimizer": "adamw"', "function of the parameters"),
        ('"num_microbatches": 0', "--num-microbatches must be"),
        ('"num_microbatches": -4', "--num-microbatches must be"),
        ('"optimizer": torch.optim.Adam(torch.nn.Linear(2, 2).parameters())', "none of its parameters"),
    ],
)
def test_a_program_that_would_run_and_mean_something_else_is_refused(returned, said, tmp_path, capsys):
    program = tmp_path / "given.py"
    program.write_text(
        "import torch\ndef program():\n    model, x = torch.nn.Linear(4, 4), torch.randn(2, 4)\n"
        f"    return {{'model': model, 'inputs': x, 'loss': lambda y: y.sum(), {returned}}}\n"
    )
    assert main(["trace", f"{program}:program"]) == 64
    assert said in capsys.readouterr().err
    assert main(["trace", f"{program}:program", "--sequence-length", "5"]) == 64


@pytest.mark.parametrize("name", ["bert-base-uncased", "t5-small"])
def test_a_model_that_cannot_be_trained_on_tokens_alone_is_one_clear_line(name, capsys):
    assert main(["trace", name, "--sequence-length", "64"]) in (4, 64)
    assert capsys.readouterr().err.count("\n") <= 3


def test_a_program_whose_file_is_missing_is_named(capsys):
    assert main(["trace", "nothing.py:program"]) == 64
    assert "nothing.py" in capsys.readouterr().err
