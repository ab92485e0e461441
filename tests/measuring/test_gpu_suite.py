"""benchmarks/gpu without a GPU and without torch: its cases, its clock, what it keeps, and what it says."""

import json
import sys
from pathlib import Path

import msgspec
import pytest
import yaml

from gpu import harness, run
from gpu.cases import START, Case, TrainingRow, cases, training_case
from gpu.harness import Outcome
from gpu.loop import LEAST_LIMIT, Summary, todo
from gpu.loop import run as run_cases
from gpu.shapes import SHAPES
from gpu.store import Store
from rows.params import model_of
from rows.source import Row, read
from tonnage.kernel.errors import InvalidInput
from tonnage.measure import nvidia
from tonnage.measure.environment import key
from tonnage.measure.programs import Training
from tonnage.measure.rows import figure_row, merge

ENVIRONMENT = {
    "gpu": "NVIDIA H100 80GB HBM3",
    "gpus": 1,
    "torch": "2.11.0+cu130",
    "cuda": "13.0",
    "allocator": "default",
}
KEY = "h100-80gb-hbm3-torch-2.11.0-cu13.0"


def case(name: str, seconds: float = 10, items: tuple[str, ...] = (), priority: int = 1) -> Case:
    return Case(name=name, work="rates:matmul", items=items or (name,), seconds=seconds, priority=priority)


def row(item: str, value: float = 1.0) -> dict:
    return figure_row(
        f"{KEY}-{item}",
        "kernel_rate",
        {"what": item},
        ENVIRONMENT,
        ("rate", value, "FLOP/s"),
        [("time", 2.0, "s")],
        "tool",
    )


class Clock:
    """Seconds that pass only where a case takes them."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def ran(
    left: list[Case], budget: float, takes: dict[str, float], outcomes: dict[str, Outcome] | None = None
) -> tuple[Summary, dict[str, float], float]:
    """The summary, the limit that each case was given, and when it all ended. A case stops at its limit."""
    clock, limits = Clock(), {}

    def start(each: Case, items: tuple[str, ...], seconds: float) -> Outcome:
        limits[each.name] = seconds
        clock.now += min(takes.get(each.name, each.seconds), seconds)
        late = takes.get(each.name, 0) > seconds
        return Outcome(status="timeout") if late else (outcomes or {}).get(each.name, Outcome(status="done"))

    return run_cases([(each, each.items) for each in left], budget, clock, start, lambda *_: None), limits, clock.now


@pytest.mark.parametrize("tiny", [False, True])
def test_names_of_cases_and_rows_are_unique_and_each_case_has_its_function(tiny):
    listed = cases(tiny)
    names, items = [each.name for each in listed], [item for each in listed for item in each.items]
    assert len(set(names)) == len(names) and len(set(items)) == len(items)
    for each in listed:
        module, _, function = each.work.partition(":")
        source = (Path(run.__file__).parent / f"{module}.py").read_text()
        assert f"def {function}(context: Context" in source
        assert each.items and each.seconds > 0
    assert names == [each.name for each in sorted(listed, key=lambda each: (each.priority, each.seconds))]


def test_every_factor_of_training_memory_is_varied():
    trained = [each.what for each in cases() if each.group == "training"]
    plans = [what.training for what in trained]
    assert {"flash", "efficient", "cudnn", "math", "sdpa"} == {plan.attention for plan in plans}
    assert {"bf16", "bf16-mixed", "fp16", "fp32"} == {plan.precision for plan in plans}
    assert {"none", "full"} == {plan.recompute for plan in plans}
    assert {
        ("adamw", None),
        ("adamw", "fused"),
        ("adamw", "loop"),
        ("sgd", None),
        ("sgd-momentum", None),
        ("adam", None),
    } <= {(plan.optimizer, plan.implementation) for plan in plans}
    assert {"loop", "grouped"} == {what.experts for what in trained}
    assert {"own", "transformers"} == {what.library for what in trained}
    assert {SHAPES[what.shape].family for what in trained if what.shape in SHAPES} == {
        "llama",
        "qwen2",
        "qwen3",
        "mixtral",
        "qwen3_moe",
    }
    assert {plan.sequence_length for plan in plans} >= {512, 1000, 1024, 2047, 2048, 4096, 8192, 16384, 32768}
    assert {plan.micro_batch_size for plan in plans} >= {1, 2, 4, 8, 16}
    assert sum(what.snapshot for what in trained) == 3
    assert {"fp8", "tf32", "fp16", "bf16", "fp32"} == {
        item.sizes["dtype"] for each in cases() if each.work == "rates:matmul" for item in each.what
    }


def test_one_run_on_an_h100_has_time_for_all_that_comes_first():
    listed = cases()
    assert sum(each.seconds for each in listed if each.priority <= 1) < 300
    assert max(each.seconds for each in listed) < 60


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_shape_counts_its_parameters_as_the_analytic_model_does(shape):
    made = msgspec.convert(
        {
            "id": "x",
            "kind": "train_memory",
            "measured": {"metric": "m", "value": 1},
            "model": {"hparams": shape.hparams()},
        },
        Row,
    )
    assert model_of(made, {}).num_parameters() == shape.parameters
    assert shape.active_parameters <= shape.parameters


def test_published_shapes_have_their_published_counts():
    assert SHAPES["llama-8b"].parameters == 8_030_261_248
    assert SHAPES["llama-1b"].parameters == 1_235_814_400
    assert SHAPES["llama-3b"].parameters == 3_212_749_824
    assert SHAPES["qwen2.5-0.5b"].parameters == 494_032_768
    assert SHAPES["qwen3-1.7b"].parameters == 1_720_574_976


def test_more_work_is_reckoned_to_take_longer():
    def seconds(**how):
        return TrainingRow(
            shape="llama-3b", training=Training(**{"sequence_length": 4096, "precision": "bf16", **how})
        ).seconds

    assert (
        START
        < seconds()
        < seconds(recompute="full")
        < seconds(micro_batch_size=4)
        < seconds(micro_batch_size=4, precision="fp32")
    )


def test_a_training_case_is_found_by_the_name_that_its_row_has():
    for each in cases():
        if each.group == "training" and not each.environment:
            assert training_case(each.what.name).training == each.what.training
    with pytest.raises(KeyError):
        training_case("llama-2b")


def test_what_has_a_row_is_skipped_and_what_failed_comes_last():
    listed = [case("a"), case("b"), case("c", items=("c1", "c2", "c3"))]
    left = todo(listed, {f"{KEY}-a", f"{KEY}-c2", "another-device-b"}, [f"{KEY}-b"], KEY)
    assert [(each.name, items) for each, items in left] == [("c", ("c1", "c3")), ("b", ("b",))]
    assert todo(listed, {f"{KEY}-{item}" for each in listed for item in each.items}, [], KEY) == []


def test_no_case_is_begun_that_cannot_be_expected_to_end_and_a_cheaper_one_still_is():
    summary, limits, ended = ran([case("a", 40), case("b", 50), case("c", 15)], 60, {})
    assert summary.done == ["a", "c"] and summary.skipped == ["b"]
    assert ended <= 60 and limits["c"] <= 20


def test_the_budget_holds_even_where_everything_hangs():
    summary, limits, ended = ran(
        [case(name, 5) for name in "abcdefghijklmnop"], 100, dict.fromkeys("abcdefghijklmnop", 1e9)
    )
    assert ended == 100 and summary.done == [] and len(summary.failed) == 4
    assert all(outcome.status == "timeout" for outcome in summary.failed.values())
    assert max(limits.values()) == LEAST_LIMIT


def test_a_slower_device_makes_later_cases_be_reckoned_slower():
    listed = [case(name, 10) for name in "abcde"]
    summary, _, ended = ran(listed, 99, dict.fromkeys("abcde", 25))
    assert summary.done == ["a", "b", "c"] and summary.skipped == ["d", "e"] and ended == 75


def test_a_crash_is_recorded_and_the_rest_goes_on():
    crash = Outcome(status="crashed", message="status -11")
    summary, _, _ = ran([case("a"), case("b"), case("c")], 1000, {}, {"b": crash})
    assert summary.done == ["a", "c"] and summary.failed == {"b": crash}


@pytest.mark.parametrize(
    ("code", "status", "says"),
    [
        ("print('fine')", "done", ""),
        ("raise ValueError('no such kernel')", "crashed", "ValueError: no such kernel"),
        ("import os; os.abort()", "crashed", "status -6"),
        ("print('begun', flush=True); import threading; threading.Event().wait()", "timeout", "stopped after"),
    ],
)
def test_a_process_ends_as_it_ended(tmp_path, code, status, says):
    outcome = harness._waited([sys.executable, "-c", code], {}, tmp_path, 1 if status == "timeout" else 60)
    assert outcome.status == status and says in outcome.message


def test_rows_are_kept_one_a_line_and_half_a_line_costs_only_itself(tmp_path):
    store = Store(tmp_path / "out")
    store.append(row("a", 1))
    store.append(row("a", 2))
    with (tmp_path / "out" / "rows.jsonl").open("a") as file:
        file.write('{"id": "half')
    store.append(row("b"))
    assert [(each["id"], each["measured"]["value"]) for each in store.rows()] == [(f"{KEY}-a", 2), (f"{KEY}-b", 1.0)]
    store.failed(f"{KEY}-c", "unsupported", "no fp8 here")
    store.failed(f"{KEY}-d", "crashed", "x" * 10_000)
    assert store.done() == {f"{KEY}-a", f"{KEY}-b", f"{KEY}-c"}
    assert len(store.failures()[1]["message"]) == 2000


def test_rows_of_known_folders_count_as_done_before_and_after_they_are_merged(tmp_path):
    known = Store(tmp_path / "known")
    known.append(row("a"))
    here = Store(tmp_path / "here", [tmp_path / "known", tmp_path / "nowhere"])
    assert here.done() == {f"{KEY}-a"}
    assert known.merge() == {f"{KEY}.yaml": 1}
    (tmp_path / "known" / "rows.jsonl").unlink()
    assert here.done() == {f"{KEY}-a"} and here.rows() == []


def test_merged_rows_are_read_as_published_ones_and_take_the_place_of_older_ones(tmp_path):
    store = Store(tmp_path)
    store.append(row("a", 1))
    store.append(row("b", 1))
    store.merge()
    path = tmp_path / f"{KEY}.yaml"
    path.write_text("# mine\n" + path.read_text())
    store.append(row("b", 5))
    assert store.merge() == {path.name: 2}
    assert [(each.id, each.measured.value, each.kind) for each in read([str(path)])] == [
        (f"{KEY}-a", 1, "kernel_rate"),
        (f"{KEY}-b", 5, "kernel_rate"),
    ]
    assert path.read_text().startswith("# mine\n# Measured by")


def test_a_file_that_holds_no_rows_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "rows.yaml"
    for text in ("a: [1", "- 3", "7", "- {kind: x}"):
        path.write_text(text)
        with pytest.raises(InvalidInput, match=r"rows\.yaml"):
            merge(path, [row("a")])
        assert path.read_text() == text


def test_a_row_of_the_host_can_never_be_taken_for_a_gpus():
    made = figure_row("x", "kernel_rate", {}, {"gpu": "cpu", "torch": "2.13.0"}, ("rate", 1, "s"), [], "tool")
    assert made["kind"] == "trial"
    assert key({"gpu": "cpu", "torch": "2.13.0+cpu"}) == "cpu-torch-2.13.0"
    assert key(ENVIRONMENT) == KEY


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--budget", "0"], "more than 0"),
        (["--budget", "nan"], "more than 0"),
        (["--device", "cpu"], "--tiny"),
        (["--only", "train-lama*"], "no case matches train-lama*"),
    ],
)
def test_wrong_usage_of_the_suite_says_what_is_right(tmp_path, capsys, arguments, says):
    assert run.main(["--out", str(tmp_path), *arguments]) == 64
    assert says in capsys.readouterr().err


def test_the_suite_without_a_gpu_or_torch_says_so(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert run.main(["--out", str(tmp_path)]) == 4
    assert "PyTorch is not installed" in capsys.readouterr().err


def test_cases_are_listed_and_a_plan_names_what_has_rows_and_what_has_no_time(tmp_path, capsys):
    assert run.main(["--list", "--only", "train-llama-1b-s2048*"]) == 0
    listed = capsys.readouterr().out
    assert "train-llama-1b-s2048-b1-bf16-adamw-flash\n" in listed and "mixtral" not in listed
    Store(tmp_path).append(row("launch"))
    assert run.main(["--dry-run", "--out", str(tmp_path), "--budget", "20"]) == 0
    lines = {line.split()[-1]: line for line in capsys.readouterr().out.splitlines()}
    assert "has rows" in lines["launch"] and "run" in lines["context"] and "no time" in lines["attention-more"]
    times = [float(line.split()[0]) for line in lines.values() if " run " in line]
    assert times == sorted(times) and times[-1] <= 20


SMI = {
    "driver_version,power.limit,clocks.max.sm,"
    "clocks.max.mem,ecc.mode.current,mig.mode.current": "580.1, 700.00, 1980, 2619, Enabled, [N/A]",
    "memory.used": "523",
}


def test_the_drivers_words_are_read_and_what_it_does_not_tell_is_left_out(monkeypatch):
    def answer(*command):
        query = command[2].partition("=")[2]
        return SMI.get(query, "") if command[0] == "nvidia-smi" else ""

    monkeypatch.setattr(nvidia, "_run", answer)
    assert nvidia.state() == {
        "driver": "580.1",
        "power_limit_w": "700.00",
        "sm_clock_max_mhz": "1980",
        "memory_clock_max_mhz": "2619",
        "ecc": "Enabled",
    }
    assert nvidia.used_bytes() == 523 * 2**20


def test_an_old_driver_that_refuses_a_query_is_asked_field_by_field(monkeypatch):
    answers = {"driver_version": "470.1", "clocks.max.sm": "1410"}
    monkeypatch.setattr(
        nvidia, "_run", lambda *c: answers.get(c[2].partition("=")[2], 'Field "x" is not a valid field to query.')
    )
    assert nvidia.state() == {"driver": "470.1", "sm_clock_max_mhz": "1410"}
    monkeypatch.setattr(nvidia, "_run", lambda *c: "")
    assert nvidia.state() == {} and nvidia.used_bytes() is None


@pytest.mark.parametrize(
    ("listed", "bytes_"),
    [
        ("77, 100\n{own}, 900", 900 * 2**20),
        ("77, 100", 100 * 2**20),
        ("77, 100\n78, 3", None),
        ("{own}, [N/A]", None),
        ("", None),
        ("nonsense", None),
    ],
)
def test_our_own_process_is_found_among_those_that_the_driver_lists(monkeypatch, listed, bytes_):
    monkeypatch.setattr(nvidia.os, "getpid", lambda: 4711)
    monkeypatch.setattr(nvidia, "_nvml_processes", list)
    monkeypatch.setattr(nvidia, "_run", lambda *c: listed.format(own=4711))
    assert nvidia.process_bytes() == bytes_


def test_lines_of_json_survive_what_yaml_would_read_otherwise(tmp_path):
    made = row("a")
    made["config"] |= {"power": "on", "driver": "580.10", "number": 1e-7}
    path = tmp_path / "rows.yaml"
    merge(path, [json.loads(json.dumps(made))])
    assert yaml.safe_load(path.read_text())[0] == made
