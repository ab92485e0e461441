"""Error bands: made from measurements by leaving sources out, and what a verdict does with one."""

import json
import math
import runpy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tonnage
from tonnage.cli import main
from tonnage.estimate.bands import Band, Table
from tonnage.estimate.bands import measured as band_tables
from tonnage.render.brief.verdict import verdict_line

ROOT = Path(__file__).parents[3]
FIT = runpy.run_path(str(ROOT / "scripts" / "fit_bands.py"))
MODEL, ON = "llama-3.1-8b", "8xH100-SXM-80GB"


def measured(logs: dict[str, list[float]]) -> list:
    """Factors by source."""
    return [
        FIT["Factor"](log, source, "train", ("megatron", "full"), "NVIDIA", True)
        for source, values in logs.items()
        for log in values
    ]


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch):
    """A band of one's own: low and high of full training on megatron."""

    def put(low: float, high: float) -> None:
        one = Band(runtime="megatron", kind="full", low=low, high=high, rows=12, sources=3)
        monkeypatch.setattr(band_tables, "TRAIN_MEMORY", Table(bands={("megatron", "full"): one}, vendors=("NVIDIA",)))

    return put


def asked(**more: object) -> tonnage.Answer:
    return tonnage.train(MODEL, on=ON, **{"runtime": "megatron", "sequence_length": 2048, "as_is": True, **more})


def test_a_run_has_the_band_of_its_runtime_and_method_or_none(table):
    table(0.9, 1.1)
    find = band_tables.TRAIN_MEMORY.find
    assert find("megatron", "full", "NVIDIA").runtime == "megatron"
    assert find("deepspeed", "full", "NVIDIA") is None
    assert find("megatron", "lora", "NVIDIA") is None
    assert find("megatron", "full", "AMD") is None


@pytest.mark.parametrize("method", ["lora", "qlora", "dora", "freeze"])
def test_other_methods_never_show_the_band_of_full_training(monkeypatch: pytest.MonkeyPatch, method: str):
    full = Band(runtime="transformers", kind="full", low=0.9, high=1.1, rows=12, sources=3)
    monkeypatch.setattr(band_tables, "TRAIN_MEMORY", Table(bands={("transformers", "full"): full}, vendors=("NVIDIA",)))
    assert tonnage.train("qwen3-8b", on="rtx-4090", method=method).band is None


@pytest.mark.parametrize("objective", ["dpo", "grpo", "ppo", "distillation"])
def test_other_objectives_never_show_the_band_of_pre_training(objective: str):
    """They hold other models beside the one that trains; no row of them is published."""
    teacher = {"teacher": "llama-3.2-1b"} if objective == "distillation" else {}
    answer = tonnage.train(MODEL, on=ON, runtime="fsdp2", objective=objective, **teacher)
    assert answer.band is None and "error_band" not in answer.question


def test_sft_has_the_band_of_pre_training():
    assert tonnage.train(MODEL, on=ON, runtime="fsdp2", objective="sft").band is not None


def test_a_band_of_one_source_names_it():
    alone = Band(runtime="x", kind="full", low=1, high=1, rows=8, sources=1, only="owner/name")
    assert "from one source (owner/name)" in alone.what


def test_rows_that_say_all_make_the_band_unless_they_are_too_few():
    full = [FIT["Factor"](0.01 * number, "a", "train", ("x", "full"), "NVIDIA", True) for number in range(8)]
    rest = [FIT["Factor"](0.5, "a", "train", ("x", "full"), "NVIDIA", False)]
    other = [FIT["Factor"](0.5, "a", "train", ("x", "lora"), "NVIDIA", True)]
    assert FIT["own_rows"](("x", "full"), full + rest + other) == full
    assert FIT["own_rows"](("x", "full"), full[:7] + rest + other) == full[:7] + rest


def test_what_a_band_holds_is_counted_on_sources_that_had_no_part_in_it():
    near = {source: [-0.01, 0.0, 0.01, 0.0] for source in "abc"}
    made = FIT["band"](("x", "full"), measured({**near, "d": [0.3] * 4}))
    assert made.held == 0.75
    assert FIT["band"](("x", "full"), measured({"a": [0.0] * 8})).held is None


def test_without_measurements_near_enough_the_verdict_is_the_estimates_own(table):
    table(0.5, 2)
    answer = asked(runtime="fsdp2")
    assert (answer.band, answer.status) == (None, 0)
    assert answer.to_dict()["verdict"]["band"] is None and "error_band" not in answer.question


def test_the_verdict_uses_the_high_end_and_is_tight_in_between(table):
    table(1, 1)
    needed, usable = asked().needed_bytes, asked().usable_bytes
    assert needed < usable
    room = usable / needed
    for low, high, status, fits in (
        (0.9, room * 0.999, 0, True),
        (0.9, room * 1.01, 2, None),
        (room * 1.01, room * 1.1, 3, False),
    ):
        table(low, high)
        answer = asked()
        assert (answer.status, answer.fits, answer.tight) == (status, fits, status == 2)
        verdict = answer.to_dict()["verdict"]
        assert verdict["fits"] is fits and verdict["needed_bytes"] == needed
        assert verdict["band"] == [pytest.approx(needed * low, abs=2), pytest.approx(needed * high, abs=2)]


def test_the_first_line_says_tight_and_between_what(table, capsys: pytest.CaptureFixture[str]):
    table(0.9, 1.2)
    flags = ["train", MODEL, "--on", ON, "--runtime", "megatron", "--sequence-length", "2048"]
    assert main([*flags, "-v"]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("tight: ") and "; the error band ends at " in lines[0]
    assert any(
        "error_band" in line and "of 12 published runs with megatron and full, from 3 sources" in line for line in lines
    )
    assert main([*flags, "--json"]) == 2
    document = json.loads(capsys.readouterr().out)
    low, high = document["verdict"]["band"]
    assert low <= document["verdict"]["usable_bytes"] < high
    assert document["question"]["error_band"]["from"] == "measurements"


def test_a_verdict_that_fits_says_the_share_that_is_needed_and_the_bar_its_band(table, capsys):
    table(0.9, 1.05)
    assert "%)" in verdict_line(asked().summary())
    main(["train", MODEL, "--on", ON, "--runtime", "megatron", "--sequence-length", "1024"])
    assert "~ error band" in capsys.readouterr().out


def test_moves_of_a_tight_run_fit_with_the_high_end_and_can_be_followed(table, capsys: pytest.CaptureFixture[str]):
    table(0.9, 1.2)
    answer = asked()
    assert answer.tight and any(move.fits for move in answer.advice)
    for move in answer.advice:
        main(
            [
                "train",
                MODEL,
                "--on",
                ON,
                "--runtime",
                "megatron",
                "--sequence-length",
                "2048",
                *move.text.split(),
                "--json",
            ]
        )
        verdict = json.loads(capsys.readouterr().out)["verdict"]
        assert verdict["needed_bytes"] == move.needed_bytes
        assert (verdict["fits"] is True) == move.fits, move.text


def test_a_run_with_a_band_may_be_wider_only_as_far_as_its_high_end_fits(table):
    table(0.9, 1.03)
    for move in asked(sequence_length=512).advice:
        assert move.fits and move.needed_bytes * 1.03 <= asked().usable_bytes + 1


@pytest.mark.parametrize(("engine", "on"), [("vllm", "rtx-4090"), ("llama.cpp", "m4-max"), ("sglang", "h100")])
def test_what_is_served_where_nobody_measured_has_the_band_of_all_others(engine: str, on: str):
    answer, others = tonnage.serve("qwen3-8b", on=on, engine=engine), band_tables.SERVE_MEMORY.others
    assert others and answer.band == others.around(answer.memory.value)
    assert "no published runs of this kind" in answer.question["error_band"].why


def test_nothing_that_is_chosen_for_a_card_that_nobody_measured_ends_within_its_band():
    answer = tonnage.serve("qwen3-8b", on="rtx-4090")
    assert answer.chosen and answer.band and answer.band[1] <= answer.usable_bytes


def test_training_of_a_kind_that_nobody_measured_says_how_far_others_lie():
    answer = tonnage.train(MODEL, on="2xa100", runtime="deepspeed")
    assert answer.fits and answer.band is None and answer.band_of_others[1] > answer.usable_bytes
    line = verdict_line(answer.summary())
    assert "not measured with deepspeed" in line and line.tone == "warn"
    less = tonnage.train(MODEL, on="8xa100", runtime="deepspeed", recompute="full")
    assert "not measured" not in verdict_line(less.summary())
    assert tonnage.train(MODEL, on=ON, runtime="fsdp2").band_of_others is None


def test_the_band_of_others_is_as_wide_as_a_kind_left_out_asks_for_each_kind_counting_the_same():
    def kind(name: str, logs: list[float]) -> list:
        return [FIT["Factor"](log, name, "serve", (name, "Ada"), "NVIDIA", True) for log in logs]

    near = [each for name in "abcd" for each in kind(name, [-0.01, 0.0, 0.01] * 3)]
    narrow = FIT["band_of_others"](near)
    assert narrow.low > 0.97 and narrow.high < 1.03
    far = FIT["band_of_others"]([*near, *kind("e", [0.2]), *kind("f", [0.2])])
    assert far.high > 1.19, "two kinds of six lie far away, though they have two rows of 38"
    assert FIT["band_of_others"](kind("a", [0.0] * 9)) is None, "one kind tells nothing about another"


def test_too_few_measurements_make_no_band():
    assert FIT["band"](("x", "full"), measured({"a": [0.0] * 7})) is None
    assert FIT["band"](("x", "full"), measured({"a": [0.0] * 8})) is not None


def test_one_source_off_by_a_constant_widens_the_band_that_the_others_alone_would_make():
    near = {source: [-0.01, 0.0, 0.01, 0.0] for source in "abc"}
    narrow, wide = (
        FIT["band"](("x", "full"), measured(near)),
        FIT["band"](("x", "full"), measured({**near, "d": [0.3] * 6})),
    )
    assert narrow.high < 1.03
    assert wide.high > 1.3
    assert wide.sources == 4 and wide.rows == 18


LOGS = st.lists(st.floats(-0.5, 0.5), min_size=3, max_size=12)


@given(st.dictionaries(st.sampled_from("abcde"), LOGS, min_size=1))
def test_a_band_holds_the_estimate_itself_and_eight_in_ten_of_what_made_it(logs: dict[str, list[float]]):
    found = measured(logs)
    made = FIT["band"](("x", "full"), found)
    if made is None:
        assert len(found) < FIT["FEWEST"]
        return
    assert made.low <= 1 <= made.high
    inside = sum(made.low - 1e-4 <= math.exp(each.log) <= made.high + 1e-4 for each in found)
    assert inside >= 0.8 * len(found) - 2  # two ends fall between measurements


def test_a_band_of_bytes_is_rounded_outwards():
    assert Band(runtime="x", kind="full", low=0.95, high=1.05, rows=8, sources=1).around(101) == (95, 107)


def test_the_committed_bands_are_those_of_the_corpus_and_the_estimator_as_they_are():
    held: dict = {}
    exec(FIT["text"](FIT["factors"]([str(path) for path in FIT["CORPUS"]])), held)
    for name in ("TRAIN_MEMORY", "SERVE_MEMORY"):
        made, known = held[name], getattr(band_tables, name)
        assert made.bands.keys() == known.bands.keys() and made.vendors == known.vendors
        for kind, band in {**made.bands, "others": made.others}.items():
            there = known.others if kind == "others" else known.bands[kind]
            ends = there.low, there.high
            assert ends == (pytest.approx(band.low, rel=0.01), pytest.approx(band.high, rel=0.01)), "run `make bands`"
