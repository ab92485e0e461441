"""`tonnage measure` and the suite of benchmarks/gpu where there is no GPU: on the host, and on a device that is made
up.
"""

import json
import runpy
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import tonnage.measure.device as devices
from gpu.cases import TrainingRow, cases
from gpu.loop import todo
from gpu.models import Decoder, loss_of
from gpu.shapes import SHAPES
from gpu.store import Store
from gpu.training import build
from rows.source import read
from schema_forms import form, validate
from tonnage.cli import main
from tonnage.kernel.errors import InvalidInput, MissingDatum
from tonnage.measure import attention
from tonnage.measure.device import Cuda, Figures, Host, is_out_of_memory, open_device
from tonnage.measure.environment import environment, key
from tonnage.measure.meter import Meter
from tonnage.measure.programs import Training, of_file
from tonnage.measure.rows import training_row
from tonnage.measure.run import Timing, measure
from tonnage.trace.programs import linear_relu
from tonnage.trace.record import huggingface
from tonnage.trace.record.user import record_file
from tonnage.trace.replay import replay

ROOT = Path(__file__).parents[2]
SUITE = ROOT / "benchmarks" / "gpu"
E5 = f"{linear_relu.__file__}:program"
SMALL = {"width": 64, "depth": 2}
MESSAGE = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB"


class Counters(Host):
    """A device whose counters rise by ten with every reading, the peaks by seventy over what they count."""

    def __init__(self) -> None:
        self.readings = self.resets = 0

    def figures(self) -> Figures:
        self.readings += 10
        return Figures(self.readings, 2 * self.readings, self.readings + 70, 2 * self.readings + 70)

    def reset_peaks(self) -> None:
        self.resets += 1

    def used_bytes(self) -> int:
        return 9999

    def process_bytes(self) -> int:
        return 8888


def measured(arguments=None, steps=2, timing=None, device=None):
    device = device or Counters()
    run, _ = of_file(E5, SMALL if arguments is None else arguments, steps, "cpu")
    return measure(device, run, timing), device


def written(folder: Path, text: str) -> str:
    (folder / "given.py").write_text(text)
    return f"{folder / 'given.py'}:program"


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_the_stages_that_are_measured_are_those_that_are_traced(steps):
    found, device = measured(steps=steps)
    traced = replay(record_file(E5, steps=steps, arguments=SMALL).events).stages
    assert [stage.name for stage in found.stages] == [stage.name for stage in traced]
    assert device.resets == len(found.stages) + 1  # each stage has its own peaks
    assert [stage.allocated for stage in found.stages] == [10 * (i + 1) for i in range(len(found.stages))]
    assert found.peak_reserved == found.stages[-1].reserved + 70


def test_tensors_are_counted_by_what_they_are_for():
    found, _ = measured()
    weights = 2 * (64 * 64 + 64) * 4
    # Adam's step counts are tensors of one number on the host, where this program runs too
    assert found.held == {
        "parameter": weights,
        "gradient": weights,
        "optimizer": 2 * weights + 4 * 4,
        "buffer": 32 * 64 * 4,
    }
    assert found.parameters == weights // 4 and (found.process_bytes, found.device_bytes) == (8888, 9999)


def test_steps_are_timed_as_often_as_asked_and_not_at_all_without():
    assert measured()[0].step_time is None
    found, _ = measured(timing=Timing(warmup=1, repeats=3))
    assert len(found.step_seconds) == 3 and min(found.step_seconds) <= found.step_time <= max(found.step_seconds)
    assert len(measured(timing=Timing(repeats=50, seconds=0))[0].step_seconds) == 1


def test_timed_steps_are_true_steps(tmp_path):
    text = (
        "import torch\ncalls = []\n"
        """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)
    def forward(self, x):
        print(float(self.inner.weight.detach().sum()))
        return self.inner(x)
def program():
    return Net(), torch.ones(2, 4), lambda y: y.sum(), lambda p: torch.optim.SGD(p, lr=1.0)
"""
    )
    seen: list[float] = []
    run, _ = of_file(written(tmp_path, text), {}, 2, "cpu")
    hook = torch.nn.modules.module.register_module_forward_pre_hook(
        lambda module, inputs: (
            seen.append(float(module.weight.detach().sum())) if isinstance(module, torch.nn.Linear) else None
        )
    )
    measure(Counters(), run, Timing(warmup=1, repeats=2))
    hook.remove()
    assert len(seen) == 5  # two by stage, one to warm up, two timed
    # each gradient is that of its own step: 2 a weight, 32 in all, so none was left from the step before
    assert [round(before - after) for before, after in pairwise(seen)] == [32] * 4


def test_memory_that_runs_out_is_reported_with_the_message_and_the_stages_until_then(tmp_path):
    text = f"""
import torch
class Net(torch.nn.Linear):
    steps = 0
    def forward(self, x):
        Net.steps += 1
        if Net.steps == 2:
            raise torch.cuda.OutOfMemoryError({MESSAGE!r})
        return super().forward(x)
def program():
    return Net(4, 4), torch.ones(2, 4), lambda y: y.sum(), torch.optim.SGD
"""
    run, _ = of_file(written(tmp_path, text), {}, 2, "cpu")
    found = measure(Counters(), run, Timing())
    assert found.failure == MESSAGE and not found.step_seconds
    assert [stage.name for stage in found.stages][-2:] == [
        "After optimizer step",
        "Out of memory after After optimizer step",
    ]
    made = training_row("x", {"name": "Net"}, {}, {"gpu": "H100"}, found, "a tool")
    (tmp_path / "rows.yaml").write_text(json.dumps([made]))
    (row,) = read([str(tmp_path / "rows.yaml")])
    assert row.measured.value == "OOM" and row.kind == "train_memory" and row.note == MESSAGE
    assert {each.metric for each in row.also} >= {"allocated [After forward]", "peak reserved [After optimizer step]"}


def test_what_counts_as_out_of_memory():
    assert is_out_of_memory(torch.cuda.OutOfMemoryError(MESSAGE))
    assert is_out_of_memory(RuntimeError("CUDA error: out of memory"))
    assert is_out_of_memory(RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"))
    assert not is_out_of_memory(RuntimeError("CUDA error: an illegal memory access was encountered"))
    assert not is_out_of_memory(ValueError("CUDA error: out of memory"))


def test_a_program_that_marks_its_stages_itself_is_measured_by_them(tmp_path):
    run, _ = of_file(written(tmp_path, "def program(mark):\n    mark('Built')\n    mark('Done')\n"), {}, 2, "cpu")
    found = measure(Counters(), run, Timing())
    assert [stage.name for stage in found.stages] == ["Built", "Done"] and found.step_time is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def program():\n    raise ValueError('my own mistake')\n", r"given\.py:2: ValueError: my own mistake"),
        ("def program(size):\n    pass\n", "needs size"),
        ("def program():\n    return 3\n", "must return a Program"),
        ("def other():\n    pass\n", "no callable"),
    ],
)
def test_what_is_wrong_with_a_program_is_said_in_a_sentence(tmp_path, text, says):
    run, _ = of_file(written(tmp_path, text), {}, 2, "cpu")
    with pytest.raises(ValueError, match=says):
        measure(Counters(), run)


class Driver:
    """torch.cuda as far as it is asked for."""

    def __init__(self, count: int = 1):
        self.count, self.done = count, []

    def is_available(self):
        return self.count > 0

    def device_count(self):
        return self.count

    def set_device(self, index):
        self.done.append(("set_device", index))

    def init(self):
        self.done.append(("init",))

    def synchronize(self, index):
        self.done.append(("synchronize", index))

    def memory_allocated(self, index):
        return 1

    def memory_reserved(self, index):
        return 2

    def max_memory_allocated(self, index):
        return 3

    def max_memory_reserved(self, index):
        return 4

    def mem_get_info(self, index):
        return 30, 100

    def Event(self, enable_timing):
        return SimpleNamespace(record=lambda: self.done.append(("record",)), elapsed_time=lambda other: 250.0)


def test_a_gpu_is_asked_through_pytorchs_own_counters(monkeypatch):
    driver = Driver(2)
    monkeypatch.setattr(devices, "_torch", lambda: SimpleNamespace(cuda=driver, __version__="2.11.0"))
    device = open_device("cuda:1")
    assert isinstance(device, Cuda) and driver.done == [("set_device", 1), ("init",)]
    assert device.figures() == (1, 2, 3, 4) and device.used_bytes() == 70
    driver.done.clear()
    assert device.seconds(lambda: driver.done.append(("call",))) == 0.25
    assert driver.done == [("record",), ("call",), ("record",), ("synchronize", 1)]
    with pytest.raises(InvalidInput, match="cuda:2 is not there: PyTorch sees cuda:0 to cuda:1"):
        open_device("cuda:2")
    for wrong in ("gpu", "cuda:", "cuda:x", "", "cuda:-1"):
        with pytest.raises(InvalidInput, match="device is cuda"):
            open_device(wrong)


def test_the_environment_of_a_gpu_names_device_driver_and_versions(monkeypatch):
    properties = SimpleNamespace(
        name="NVIDIA H100 80GB HBM3", total_memory=85_000_000_000, major=9, minor=0, multi_processor_count=132
    )
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: properties)
    monkeypatch.setattr("tonnage.measure.nvidia.state", lambda index: {"driver": "580.1"})
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch, "__version__", "2.11.0+cu130")
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    found = environment(SimpleNamespace(kind="cuda", index=0))
    assert (
        found
        | {
            "gpu": "NVIDIA H100 80GB HBM3",
            "driver": "580.1",
            "cuda": "13.0",
            "torch": "2.11.0+cu130",
            "capability": "9.0",
            "multiprocessors": 132,
            "allocator": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
        }
        == found
    )
    assert key(found) == "h100-80gb-hbm3-torch-2.11.0-cu13.0" and found["date"][:2] == "20"


LLAMA = [
    "llama-3.1-8b",
    *("--num-layers", "1", "--hidden-size", "32", "--intermediate-size", "64", "--vocab-size", "100"),
    *("--num-attention-heads", "4", "--num-key-value-heads", "2", "--head-dim", "8", "--seq", "16", "--repeats", "1"),
]


def test_without_a_gpu_measure_says_so_and_names_the_tracer(capsys):
    for arguments in (["llama-3.1-8b"], [E5]):
        assert main(["measure", *arguments]) == 4
        error = capsys.readouterr().err
        assert "sees no GPU" in error and "tonnage trace" in error and "--device cpu" in error


def test_without_torch_measure_says_what_to_install(capsys, monkeypatch):
    def missing():
        raise MissingDatum(devices.NO_TORCH)

    monkeypatch.setattr(devices, "_torch", missing)
    assert main(["measure", "llama-3.1-8b"]) == 4
    assert "pip install 'tonnage[trace]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [[E5, "--argument", "width=32", "--argument", "depth=2"], LLAMA], ids=["file", "model"]
)
def test_a_trial_on_the_host_is_a_document_and_says_that_it_is_no_gpu(capsys, arguments):
    assert main(["measure", *arguments, "--device", "cpu", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    validate(document, "MeasureDocument")
    assert not form("MeasureDocument").is_valid({**document, "surprise": 1})
    validate(document)
    row = document["row"]
    assert row["kind"] == "trial" and row["config"]["gpu"] == "cpu"
    assert {each["metric"] for each in row["also"]} >= {
        "allocated",
        "peak reserved",
        "tensors",
        "step time",
        "parameters",
    }
    assert main(["measure", *arguments, "--device", "cpu"]) == 0
    assert "stands for no GPU" in capsys.readouterr().out.splitlines()[0]


def test_the_same_question_has_the_same_id_and_another_one_has_another(capsys):
    def identity(*more: str) -> str:
        assert (
            main(["measure", E5, "--argument", "width=32", "--device", "cpu", "--repeats", "0", "--json", *more]) == 0
        )
        return json.loads(capsys.readouterr().out)["row"]["id"]

    first = identity()
    assert first == identity()
    found = {first, identity("--steps", "1"), identity("--attention", "math"), identity("--argument", "depth=3")}
    assert len(found) == 4


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([E5, "--seq", "32"], "--sequence-length is of a MODEL"),
        ([E5, "--argument", "width"], "NAME=VALUE"),
        ([E5, "--argument", "widht=3"], "Did you mean 'width'"),
        ([*LLAMA, "--argument", "a=3"], "is of a program"),
        ([*LLAMA, "--out", "rows.yaml"], "rows of GPUs"),
        ([*LLAMA, "--optimizer", "lion"], "adamw, adam"),
        ([*LLAMA, "--recompute", "some"], "none and full"),
        ([*LLAMA, "--precision", "fp8-te"], "bf16-mixed"),
        ([*LLAMA, "--attention", "flesh"], "Did you mean 'flash'"),
        ([*LLAMA, "--optimizer-implementation", "fuse"], "Did you mean 'fused'"),
        ([*LLAMA, "--steps", "0"], "steps must be at least 1"),
        ([*LLAMA, "--mbs", "0"], "at least 1"),
        ([*LLAMA, "--clip-grad-norm", "0"], "more than 0"),
        (["nothing.py:program"], "no such Python file"),
        ([str(SUITE / "run.py")], "FILE.py:callable"),
    ],
    ids=lambda value: " ".join(value[-2:]) if isinstance(value, list) else None,
)
def test_wrong_usage_names_the_value_and_what_is_right(capsys, arguments, says):
    assert main(["measure", *arguments, "--device", "cpu"]) == 64
    printed = capsys.readouterr()
    assert says in printed.err and "Traceback" not in printed.err and not printed.out


def test_a_file_that_rows_cannot_go_to_is_refused_before_anything_runs(tmp_path, capsys):
    (tmp_path / "rows.yaml").write_text("- 3")
    assert main(["measure", E5, "--out", str(tmp_path / "rows.yaml")]) == 64
    assert "rows.yaml" in capsys.readouterr().err


def test_a_snapshot_is_of_a_gpu(capsys, tmp_path):
    assert main(["measure", E5, "--device", "cpu", "--snapshot", str(tmp_path / "x.pickle")]) == 4
    assert "allocator" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["tiny", "tiny-qwen", "tiny-mixture"])
def test_a_decoder_has_the_parameters_of_its_shape_and_of_the_class_of_transformers(name):
    shape = SHAPES[name]
    with torch.device("meta"):
        ours = Decoder(shape)
        theirs = huggingface.build(shape.transformers_config(), "bf16")
    counts = [sum(each.numel() for each in model.parameters()) for model in (ours, theirs)]
    assert counts == [shape.parameters] * 2


def test_experts_give_the_same_looped_and_grouped_and_layers_the_same_recomputed():
    found = []
    for experts in ("loop", "grouped"):
        for recompute in (False, True):
            torch.manual_seed(0)
            model = Decoder(SHAPES["tiny-mixture"], "sdpa", experts, recompute)
            for each in model.parameters():
                torch.nn.init.normal_(each, 0, 0.02)
            tokens = torch.randint(0, 128, (2, 16))
            loss = loss_of(tokens)(model(tokens))
            loss.backward()
            found.append((float(loss.detach()), float(sum(each.grad.abs().sum() for each in model.parameters()))))
    assert all(each == pytest.approx(found[0], rel=1e-5) for each in found)


def test_recomputation_and_backends_show_in_the_trace_of_a_case():
    def peak(**how):
        case = TrainingRow(
            shape="tiny",
            training=Training(**{"sequence_length": 512, "precision": "bf16", "attention": "flash", **how}),
        )
        return _traced(case).peak_allocated_bytes

    assert peak(recompute="full") < peak() < peak(attention="math")


def _traced(case: TrainingRow):
    from tonnage.trace.profiles import profile
    from tonnage.trace.record.fake.environment import recording
    from tonnage.trace.record.train import train

    with recording("meta", profile("torch-2.11-h100")) as recorder:
        train(recorder, build(case, "meta"), 2)
    return replay(recorder.events)


def test_the_tracer_predicts_the_row_of_a_case_by_its_name():
    made = record_file(f"{SUITE / 'program.py'}:program", arguments={"case": "llama-160m-s1024-b1-bf16-adamw-flash"})
    first = replay(made.events).stages[0]
    weights = 2 * SHAPES["llama-160m"].parameters
    assert weights < first.allocated_bytes < 1.02 * weights  # blocks that the allocator does not split count whole
    with pytest.raises(InvalidInput, match="no training case is called 'llama'"):
        record_file(f"{SUITE / 'program.py'}:program", arguments={"case": "llama"})


def test_the_suite_runs_end_to_end_with_torch_alone_and_writes_rows_of_validation(tmp_path):
    code = (
        "import sys, runpy; sys.modules['msgspec'] = sys.modules['yaml'] = sys.modules['transformers'] = None; "
        f"sys.argv = ['run.py', '--device', 'cpu', '--tiny', '--out', {str(tmp_path)!r}, '--known', "
        f"{str(tmp_path)!r}]; "
        f"runpy.run_path({str(SUITE / 'run.py')!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    store = Store(tmp_path)
    assert store.failures() == [], done.stdout
    assert todo(cases(tiny=True), store.done(), [], "cpu-torch-" + torch.__version__.partition("+")[0]) == []
    (count,) = store.merge().values()
    assert count == len(store.rows()) == sum(len(case.items) for case in cases(tiny=True))
    rows = {row.id.partition("-train-")[2]: row for row in read([str(path) for path in tmp_path.glob("*.yaml")])}
    trained = rows["tiny-s16-b1-fp32-adamw"]
    stages = [each.metric for each in trained.also if each.metric.startswith("allocated [")]
    case = TrainingRow(shape="tiny", training=Training(sequence_length=16, precision="fp32"))
    assert stages == [f"allocated [{stage.name}]" for stage in _traced(case).stages]
    assert (trained.kind, trained.config["case"], trained.config["gpu"]) == ("trial", "tiny-s16-b1-fp32-adamw", "cpu")


def test_a_case_in_a_new_interpreter_writes_the_same_row(tmp_path):
    run = runpy.run_path(str(SUITE / "run.py"))
    assert run["main"](["--device", "cpu", "--tiny", "--fresh", "--only", "launch", "--out", str(tmp_path)]) == 0
    assert [row["id"].rpartition("-")[2] for row in Store(tmp_path).rows()] == ["launch"]


def test_a_meter_without_stages_says_that_memory_ran_out_at_the_start():
    meter = Meter(Counters())
    meter.failed()
    assert [stage.name for stage in meter.stages] == ["Out of memory after the start"]


def test_an_attention_that_this_pytorch_cannot_choose_is_an_error_that_names_it(monkeypatch):
    monkeypatch.setitem(attention.BACKENDS, "cudnn", "NOT_YET")
    with pytest.raises(InvalidInput, match="cannot choose cudnn"), attention.only("cudnn"):
        pass
