"""Every row of the five documents: the figure, the erratum, the exact figure. The test's ids name the rows."""

import math

import pytest

from every_row import every_row
from tonnage import read, rules
from tonnage.cli import main
from tonnage.documents.document import builtins
from tonnage.kernel.references import cited
from tonnage.rules import GIVEN

rules.load()
GIB, MIB, YEAR = 2**30, 2**20, 365 * 86400
# The rows in the documents' order, and those whose print is a mistake.
ROWS = [
    *(f"A{i}" for i in range(1, 11)),
    "B1",
    "B1b",
    "B1c",
    *(f"B{i}" for i in range(2, 11)),
    "C1",
    "C1b",
    *(f"C{i}" for i in range(2, 10)),
    *(f"D{i}" for i in range(1, 12)),
    *(f"E{i}" for i in range(6)),
]
ERRATA = {"A4", "A6", "A9", "A10", "B7", "B10", "C1", "C1b", "C3", "C8", "D2", "D5", "D6", "D8", "E3", "E5"}
SBHL = 2048 * 4096 * 28
# The unrounded figure of each row on its own example, from the documents' numbers alone.
VALUES = {
    "A1": 12e9,
    "A2": 14.4e9,
    "A3": 12e9,
    "A4": 72e9,
    "A5": 12e9,
    "A6": SBHL * 114,
    "A7": SBHL * 34,
    "A8": SBHL * 2,
    "A9": 96e9 + SBHL * 34,
    "A10": 1024e9,
    "B1": 12 * 96 * 12288**2,
    "B1b": 12 * 32 * 4096**2,
    "B1c": 0.45 * 312e12,
    "B2": 3.1428e23,
    "B3": 8 * 175e9 * 300e9 / (1024 * 312e12 * 0.45),
    "B4": 1155,
    "B5": 840e9,
    "B6": 3500e9,
    "B7": 3.5e12,
    "B8": 3.1428e23 / 312e12,
    "B9": 44,
    "B10": 20,
    "C1": 168e9,
    "C1b": 3,
    "C2": 2,
    "C3": 70e9,
    "C4": 1120e9,
    "C5": 2 * 80 * 8 * 128 * 1024 * 2,
    "C6": 2 * 80 * 8 * 128 * 512 * 2,
    "C7": 80e9,
    "C8": 112e9,
    "C9": 168e9,
    "D1": 28e9,
    "D2": 12 * 96 * 12288**2 + 50257 * 12288,
    "D3": 28e9,
    "D4": 56e9,
    "D5": 48 * 32 * 2048 * 4096 * 4,
    "D6": 112e9 + 48 * 32 * 2048 * 4096 * 4,
    "D7": 84e9,
    "D8": 14e9 + 2048 * 4096 * 2 + 32 * 2 * 2048 * 32 * 128 * 2 + 2e9,
    "D9": 14e9,
    "D10": 8,
    "E0": 112e9,
    "E1": 112e9,
    "E2": 112e9,
    "E3": 88.44e6 * 16,
    "E4": 4 * 2048 * 4096,
    "E5": 4 * 4 * 12 * (1024**2 + 1024) + 12 * 32 * 1024 * 4,
}
# Further figures of a row, by label.
LABELLED = {
    "A1": {"int8": 6e9, "fp16, bf16": 12e9, "fp32": 24e9},
    "A2": {"1.2 x weights": 14.4e9, "20 % of the total": 15e9},
    "A3": {"fp32": 24e9, "fp16": 12e9, "mixed": 12e9},
    "A4": {"AdamW": 72e9, "8-bit Adam": 36e9, "SGD with momentum": 48e9},
    "A5": {"fp32": 24e9, "fp16": 12e9},
    "A10": {"one board": 128e9, "eight boards": 1024e9},
    "B1": {"L (12 h^2 + 13 h) + V h": 96 * (12 * 12288**2 + 13 * 12288) + 50257 * 12288},
    "B1b": {"7B": 6.44e9, "13B": 12.58e9, "33B": 31.90e9, "65B": 64.42e9},
    "B1c": {"A100 peak": 312e12, "H100 peak": 989.5e12, "B100 peak": 1750e12},
    "B2": {"8 N D, with recomputation": 4.1904e23},
    "B3": {"days": 33.8},
    "B4": {"before rounding": 1154.1},
    "B5": {"16 bit": 420e9},
    "B6": {"accelerators of 80 GB": 44},
    "B8": {"years": 31.9, "A100 for 30 days": 389},
    "B10": {"NVLink 4": 1.11, "share of the iteration": 0.0194},
    "B7": {
        "loss of 200B on 100B tokens": 2.090,
        "loss of 100B on 200B tokens": 2.045,
        "tokens a parameter that GPT-3 saw": 1.714,
    },
    "C1": {"32 bit": 336e9, "16 bit": 168e9},
    "C8": {"states, fp32": 112e9, "states, mixed precision": 112e9},
    "D1": {"GB (10^9)": 28.0, "GiB (2^30)": 26.08},
    "D2": {"bytes in fp16": 349.1e9},
    "D8": {"keys and values": 1.074e9},
    "E0": {
        "16: 2 weights, 2 gradients, 12 master and moments": 112e9,
        "18: 2 weights, 4 gradients, 12 master and moments": 126e9,
        "20: 2+4 weights, 2+4 gradients, 8 moments": 140e9,
    },
    "E1": {"fp32": 112e9, "fp16": 56e9, "int8": 28e9},
    "E2": {"weights": 42e9, "gradients": 14e9, "states": 56e9},
    "E5": {"weights, MiB": 48.05, "gradients, MiB": 48.05, "states, MiB": 96.09, "activations, MiB": 1.50},
}


def test_every_row_of_the_documents_is_a_rule():
    assert list(rules.RULES) == ROWS


@every_row("name", [row for row in ROWS if row != "D11"], at_least=48)
def test_a_rule_gives_its_documents_own_example(name):
    assert rules.RULES[name].worked().value.value == pytest.approx(VALUES[name], rel=1e-12)


def test_d11_pays_back_when_saved_rent_equals_the_price():
    value = rules.RULES["D11"].worked().value
    x = value.inputs
    saved = (x["USD_rent"] - x["pw"] * x["pue"] * x["USD_kwh"] / 3.6e6) * value.value
    assert saved == pytest.approx(x["USD_buy"], rel=1e-12)
    assert 0.2 < value.value / YEAR < 5


@every_row("name", LABELLED, at_least=25)
def test_a_rules_further_figures_are_the_documents(name):
    values = rules.RULES[name].worked().values
    for label, figure in LABELLED[name].items():
        assert values[label] == pytest.approx(figure, rel=0.002), label


@every_row("name", ROWS, at_least=49)
def test_a_rule_has_formula_source_print_and_an_exact_breakdown(name):
    document = builtins(rules.RULES[name].document())
    assert document["formula"] and document["text"] and document["source"] and document["printed"]
    assert cited(document["source"])
    assert document["exact"]["value"] > 0 and document["exact"]["unit"] is not None
    assert math.isfinite(document["exact"]["value"])
    assert document["exact"]["children"] or document["exact"]["formula"]


@every_row("name", ROWS, at_least=49)
def test_a_printed_mistake_is_shown_as_one(name):
    erratum = rules.RULES[name].erratum
    assert (erratum is not None) == (name in ERRATA)
    assert erratum is None or erratum.endswith(".")


@every_row("name", ROWS, at_least=49)
def test_a_rule_works_on_any_model(name):
    for model in ("mixtral-8x7b", "deepseek-v3", "mamba-130m"):
        worked = rules.RULES[name].worked(read(model))
        assert math.isfinite(worked.value.value), model


def test_a_rule_stands_on_the_lowest_rung():
    assert {rule.worked().value.basis for rule in rules.RULES.values()} == {"rule"}


def test_the_exact_figure_of_a1_counts_chatglms_own_parameters():
    assert rules.RULES["A1"].worked().exact().value == 2 * 6_173_286_400


def test_the_exact_figure_of_b2_has_attention_which_the_rule_leaves_out():
    worked = rules.RULES["B2"].worked()
    without = 6 * 300e9 * (174_604_259_328 - 2048 * 12288)
    attention = 12 * 96 * 12288 * 2049 / 2 * 300e9
    assert worked.exact().value == pytest.approx(without + attention, rel=0.001)


def test_mixed_precision_and_fp32_states_are_equal_as_the_erratum_of_c8_says():
    values = rules.RULES["C8"].worked().values
    assert values["states, fp32"] == values["states, mixed precision"]


def test_compute_of_a_mixture_is_that_of_the_parameters_that_a_token_passes_through():
    mixtral, day = read("mixtral-8x7b"), 86400
    active, tokens = mixtral.num_active_parameters(), 300e9
    assert active < 13e9 < mixtral.num_parameters()
    expected = {
        "B2": 6 * active * tokens,
        "B3": 8 * active * tokens / (1024 * 312e12 * 0.45),
        "B4": math.ceil(8 * active * tokens / (30 * day * 312e12 * 0.45)),
        "B8": 6 * active * tokens / 312e12,
    }
    for name, value in expected.items():
        worked = rules.RULES[name].worked(mixtral)
        assert worked.value.value == pytest.approx(value, rel=1e-12), name
        assert "12.88 B parameters that a token passes through" in worked.note
        assert "12.88 B parameters that a token passes through" in builtins(rules.RULES[name].document(mixtral))["note"]


def test_memory_of_a_mixture_is_that_of_all_its_parameters():
    mixtral = read("mixtral-8x7b")
    assert rules.RULES["B6"].worked(mixtral).value.value == 20 * mixtral.num_parameters()
    assert not rules.RULES["B6"].worked(mixtral).note


@pytest.mark.parametrize("name", ["B2", "B3", "B4", "B7", "B8"])
def test_a_dense_model_has_no_other_compute_than_its_parameters(name):
    dense = read("llama-3.1-8b")
    worked = rules.RULES[name].worked(dense)
    assert not worked.note
    assert worked.value.inputs.get("N", dense.num_parameters()) == dense.num_parameters()


def test_the_exact_compute_of_a_mixture_is_near_the_rule_on_active_parameters():
    worked = rules.RULES["B2"].worked(read("mixtral-8x7b"))
    assert worked.exact().value == pytest.approx(worked.value.value, rel=0.02)


@pytest.mark.parametrize(
    ("name", "of_document", "of_model"),
    [
        ("B3", {"D", "n", "P", "u"}, {"N", "days"}),
        ("A6", {"s", "b", "t"}, {"L", "h", "a"}),
        ("B1b", {"7B", "65B"}, {"L", "h"}),
        ("B10", {"value", "M", "W", "NVLink 4"}, set()),
        ("C1b", {"U"}, {"M"}),
        ("B1c", {"value", "P", "u", "A100 peak"}, set()),
        (
            "B7",
            {"loss of 200B on 100B tokens", "tokens a parameter that GPT-3 saw"},
            {"N", "optimal tokens for the same compute"},
        ),
    ],
)
def test_a_rule_on_a_model_tells_the_documents_numbers_from_the_models(name, of_document, of_model):
    own = rules.RULES[name].of_document(read("mixtral-8x7b"))
    assert of_document <= own and not of_model & own


@every_row("name", ROWS, at_least=49)
def test_numbers_that_happen_to_be_the_documents_are_still_the_models(name):
    """LLaMA 7B is the documents' own example: its layers are worked on it all the same."""
    own = rules.RULES[name].of_document(read("llama-7b"))
    assert not own & {"N", "L", "h", "a", "k", "dh", "V"}
    assert rules.RULES[name].of_document() >= set(rules.RULES[name].worked().value.inputs)


@every_row("name", ROWS, at_least=49)
def test_what_a_rule_follows_moves_it_or_the_exact_figure_and_nothing_else_does(name):
    before = builtins(rules.RULES[name].document())
    for option, letter in GIVEN.items():
        now = getattr(rules.RULES[name].example, letter)
        after = builtins(rules.RULES[name].document(given={option: now / 2 if option == "utilization" else 2 * now}))
        same = all(after[part] == before[part] for part in ("value", "values", "exact"))
        assert option in before["follows"] or same, option
        if after["inputs"] != before["inputs"]:
            assert letter not in after["of_document"]


def test_a_rule_and_its_exact_figure_follow_the_same_batch():
    one, two = (builtins(rules.RULES["A8"].document(given={"micro_batch_size": size})) for size in (1, 2))
    assert two["value"] == 2 * one["value"]
    assert two["exact"]["value"] == pytest.approx(2 * one["exact"]["value"], rel=0.01)


@pytest.mark.parametrize(
    "words",
    [
        "--num-accelerators 0",
        "--tokens 0",
        "--sequence-length 0",
        "--micro-batch-size 0",
        "--num-hidden-layers 0",
        "--utilization 0",
        "--utilization 1e-300",
    ],
)
def test_a_number_of_nothing_is_refused_by_its_name(words, capsys):
    option, value = words.split()
    assert main(["rules", *words.split()]) == 64
    said = capsys.readouterr().err
    assert said.startswith(f"error: {option} must be ") and said.endswith((f"Got {value}.\n", f"Got {value!r}.\n"))
