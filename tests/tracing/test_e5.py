"""Rule E5: the ten figures of its program, without torch and without a GPU; and `tonnage trace` on what ships."""

import json

import pytest

from tonnage import rules
from tonnage.cli import main
from tonnage.documents.document import builtins
from tonnage.kernel.units import MIB
from tonnage.trace.e5 import AS_MEASURED, VARIANTS, recorded, stages

# document E5: allocated / reserved in MB of 2^20 bytes, after each stage, as a GPU showed them
PUBLISHED = {
    "Initial": (48.30, 62.00),
    "After forward": (49.80, 64.00),
    "After loss": (49.92, 64.00),
    "After backward": (97.97, 104.00),
    "After optimizer step": (194.06, 204.00),
}


def test_all_ten_figures_of_the_program_are_replayed():
    made = {
        stage.name: (round(stage.allocated_bytes / MIB, 2), stage.reserved_bytes / MIB) for stage in stages(AS_MEASURED)
    }
    assert made == PUBLISHED


def test_the_rule_gives_the_stages_and_the_same_program_under_todays_defaults():
    rules.load()
    document = builtins(rules.RULES["E5"].document())
    assert [stage["stage"] for stage in document["stages"]] == list(PUBLISHED)
    assert {variant["profile"] for variant in document["variants"]} >= {
        "torch-1.13-a100",
        "torch-2.13-a100",
        "torch-2.13-h100",
    }
    today = next(variant for variant in document["variants"] if variant["profile"] == "torch-2.13-h100")
    assert today["stages"][-1]["reserved_bytes"] / MIB == 308


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_a_shipped_recording_names_its_profile_and_its_overlays(variant):
    made = recorded(variant)
    assert (
        made.profile == variant.profile
        and made.overlays
        and made.program.startswith("tonnage/trace/programs/linear_relu.py")
    )


def test_the_command_shows_the_ten_figures(capsys):
    assert main(["trace", "e5", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {
        stage["name"]: (round(stage["allocated_bytes"] / MIB, 2), stage["reserved_bytes"] / MIB)
        for stage in document["stages"]
    } == PUBLISHED
    assert main(["trace", "e5"]) == 0
    assert "194.06 MiB  204.00 MiB" in capsys.readouterr().out
    assert main(["rules", "E5"]) == 0
    assert "194.06 / 204.00" in capsys.readouterr().out


def test_a_capacity_says_whether_where_and_why_it_runs_out(capsys):
    assert main(["trace", "e5", "--capacity", "128MiB"]) == 3
    said = capsys.readouterr().out
    assert (
        said.startswith("does not fit")
        and "CUDA out of memory. Tried to allocate 20.00 MiB" in said
        and "more than there is" in said
    )
    assert main(["trace", "e5", "--on", "rtx-4090"]) == 0
    assert main(["trace", "e5", "--profile", "torch-2.13-h100", "--allocator", "expandable_segments:True"]) == 0


def test_what_a_trace_writes_can_be_read_again(tmp_path, capsys):
    saved, snapshot, plot = tmp_path / "e5.json", tmp_path / "e5.pickle", tmp_path / "e5.svg"
    assert main(["trace", "e5", "--save", str(saved), "--snapshot", str(snapshot), "--plot", str(plot)]) == 0
    first = capsys.readouterr().out
    assert main(["trace", str(saved)]) == 0
    assert capsys.readouterr().out == first
    assert main(["trace", str(saved), "--against", str(snapshot), "--json"]) == 0
    compared = json.loads(capsys.readouterr().out)["against"]
    assert all(row["difference_bytes"] == 0 for row in compared["totals"] + compared["stages"])
    assert plot.read_text().startswith("<svg") and "After backward" in plot.read_text()


@pytest.mark.parametrize(
    ("line", "status", "said"),
    [
        ("trace e5 --profile torch-2.1-l4", 4, "recorded under"),
        ("trace e5 --profile torch-9.9-l4", 64, "profiles reach"),
        ("trace e5 --allocator expandable_segment:True", 64, "expandable_segments"),
        ("trace e5 --capacity 10GB --on h100", 64, "one of"),
        ("trace e5 --against analytic", 64, "analytic"),
        ("trace e5 --against nothing.pickle", 64, "nothing.pickle"),
        ("trace e5 --save /nowhere/x.json", 64, "/nowhere"),
        ("trace e5 --on nothing-at-all", 64, "nothing-at-all"),
        ("trace", 64, "TARGET"),
    ],
)
def test_what_cannot_be_is_answered_by_name(line, status, said, capsys):
    assert main(line.split()) == status
    assert said in capsys.readouterr().err


def test_beside_a_snapshot_the_text_says_both(tmp_path, capsys):
    snapshot = tmp_path / "e5.pickle"
    main(["trace", "e5", "--snapshot", str(snapshot)])
    capsys.readouterr()
    assert main(["trace", "e5", "--against", str(snapshot)]) == 0
    said = capsys.readouterr().out
    assert "beside" in said and "peak reserved" in said


def test_a_recording_of_any_name_is_replayed_and_takes_no_option_that_it_has_decided(tmp_path, capsys):
    saved = tmp_path / "kept.rec"
    main(["trace", "e5", "--save", str(saved)])
    capsys.readouterr()
    assert main(["trace", str(saved)]) == 0
    for words in (["--profile", "h100"], ["--sequence-length", "5"], ["--steps", "3"], ["--argument", "width=3"]):
        assert main(["trace", str(saved), *words]) == 64
        assert "does not take it" in capsys.readouterr().err
    assert main(["trace", "e5", "--lora-rank", "8"]) == 64
