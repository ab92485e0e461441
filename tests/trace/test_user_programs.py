"""Programs in users' files: what is recorded of good ones, and what is said of bad ones."""

import re
from pathlib import Path

import pytest

from tonnage.kernel.errors import InvalidInput, MissingDatum, TonnageError, UnknownName
from tonnage.trace.programs import linear_relu
from tonnage.trace.record.user import record_file
from tonnage.trace.replay import replay

E5 = f"{linear_relu.__file__}:program"
MIB = 2**20
NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(64, 64)

    def forward(self, x):
        x = self.inner(x)
        {inside}
        return x

def program():
    return Net(), torch.randn(8, 64), lambda y: {loss}, torch.optim.SGD
"""


def written(folder: Path, text: str, name: str = "program") -> str:
    file = folder / "given.py"
    file.write_text(text)
    return f"{file}:{name}"


def net(folder: Path, inside: str = "pass", loss: str = "y.sum()") -> str:
    return written(folder, NET.format(inside=inside, loss=loss))


def stages(recording):
    found = replay(recording.events).stages
    return [(f"{s.allocated_bytes / MIB:.2f}", f"{s.reserved_bytes / MIB:.2f}") for s in found]


@pytest.mark.parametrize("front_end", [None, "meta", "cuda"])
def test_rule_e5_is_predicted_to_the_last_figure(front_end):
    assert stages(record_file(E5, front_end, "torch-1.13-a100", steps=1)) == [
        ("48.30", "62.00"),
        ("49.80", "64.00"),
        ("49.92", "64.00"),
        ("97.97", "104.00"),
        ("194.06", "204.00"),
    ]


def test_the_program_of_e5_is_traced_at_other_sizes():
    made = record_file(E5, profile="torch-1.13-a100", steps=1, arguments={"width": 256, "depth": 3, "dtype": "float16"})
    first, *_, last = replay(made.events).stages
    weights = 3 * (256 * 256 * 2 + 256 * 2)
    assert first.allocated_bytes == weights + 2 * 32 * 256 * 2
    activations = 2 * 3 * 32 * 256 * 2  # of each Linear and of each ReLU, whose input the Linear's output is no more
    assert last.allocated_bytes == first.allocated_bytes + 3 * weights + activations // 2 + 2 * 32 * 256


def test_both_front_ends_see_the_same_events():
    meta, cuda = (record_file(E5, front_end) for front_end in ("meta", "cuda"))
    assert list(meta.events.sequence()) == list(cuda.events.sequence())


def test_a_program_that_marks_runs_itself_and_its_memory_is_sorted(tmp_path):
    text = """
import torch
def program(mark):
    model = torch.nn.Linear(512, 512, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    mark("Built")
    model(torch.randn(4, 512)).sum().backward()
    mark("Backward")
    optimizer.step()
    mark("Stepped")
    return model, optimizer
"""
    made = record_file(written(tmp_path, text), profile="torch-1.13-a100")
    assert [stage.name for stage in replay(made.events).stages] == ["Built", "Backward", "Stepped"]
    alive = [made.events.allocations[i] for i in made.events.live_at(len(made.events))]
    held = {each.category: each.bytes for each in alive if each.bytes == MIB}
    assert held == {"parameter": MIB, "gradient": MIB, "optimizer": MIB}


def test_what_a_program_prints_does_not_reach_standard_output(tmp_path, capsys):
    record_file(net(tmp_path, inside="print('hello')"), "meta")
    assert capsys.readouterr().out == ""


def test_a_compiled_model_is_traced_as_it_is_and_says_so(tmp_path):
    text = NET.format(inside="pass", loss="y.sum()").replace("return Net(),", "return torch.compile(Net()),")
    compiled, plain = record_file(written(tmp_path, text)), record_file(net(tmp_path))
    assert list(compiled.events.sequence()) == list(plain.events.sequence())
    assert "torch.compile" in compiled.notes[0]


@pytest.mark.parametrize(
    ("inside", "why"),
    [
        ("assert torch.cuda.is_available()", "it says itself what is on the GPU"),
        ("assert x.device.type == 'cu' + 'da'", "AssertionError"),
        ("torch.amp.GradScaler()", "it uses a GradScaler"),
    ],
)
def test_a_program_that_needs_a_gpu_is_traced_on_fake_cuda_tensors_and_says_why(tmp_path, inside, why):
    made = record_file(net(tmp_path, inside))
    assert made.front_end == "cuda"
    assert why in made.notes[0]


LOADER = """
import torch
from torch.utils.data import DataLoader, TensorDataset

def program(mark):
    data = TensorDataset(torch.randn(1024, 512), torch.randint(0, 8, (1024,)))
    model = torch.nn.Linear(512, 8){place}
    for x, y in DataLoader(data, batch_size=512, shuffle=True):
        loss = torch.nn.functional.cross_entropy(model(x{place}), y{place})
        print(f"{{loss:.3f}}")
    mark("Epoch")
    return data, model
"""


@pytest.mark.parametrize(("place", "front_end", "data"), [(".cuda()", "cuda", 0), ("", "meta", 1024 * 512 * 4)])
def test_a_data_set_is_on_the_device_unless_the_program_puts_only_batches_there(tmp_path, place, front_end, data):
    made = record_file(written(tmp_path, LOADER.format(place=place)))
    assert made.front_end == front_end
    alive = [made.events.allocations[i].bytes for i in made.events.live_at(made.events.marks[0].position)]
    assert sum(size for size in alive if size == 1024 * 512 * 4) == data
    assert 512 * 8 * 4 in alive


def test_a_program_whose_text_speaks_of_cuda_but_uses_none_is_traced_with_everything_on_the_device(tmp_path):
    text = "# no cuda\n" + NET.format(inside="pass", loss="(y - torch.zeros(8, 64)).sum()").replace(
        "y - ", "y - target + "
    )
    text = text.replace("def program():", "target = torch.zeros(8, 64)\ndef program():")
    made = record_file(written(tmp_path, text))
    assert made.front_end == "meta"
    assert "everything on the device" in made.notes[0]


def test_modules_beside_the_file_are_found_and_forgotten(tmp_path):
    (tmp_path / "neighbour_of_the_test.py").write_text("SIZE = 16")
    text = NET.format(inside="pass", loss="y.sum()") + "\nfrom neighbour_of_the_test import SIZE\n"
    record_file(written(tmp_path, text))
    with pytest.raises(ModuleNotFoundError):
        __import__("neighbour_of_the_test")


BAD = {
    "if x.mean() > 0: x = x + 1": (InvalidInput, r"module Net, .*given\.py:12: a tensor's value"),
    "raise KeyError('lost')": (InvalidInput, r"in module Net, at .*given\.py:12: KeyError: 'lost'"),
    "x = self.inner(x[:, :3])": (InvalidInput, r"in module inner, at .*given\.py:12: RuntimeError: .*reduction dim"),
    "x = x[torch.unique(x).numel():]": (InvalidInput, r"in module Net, at .*given\.py:12: .*depends on data"),
    "x.numpy()": (TonnageError, r"in module Net, at .*given\.py:12: "),
    "import sys; sys.exit(3)": (InvalidInput, r"given\.py:12: the program ended itself with status 3"),
    "torch.linalg.eig(x[:4, :4].long())": (TonnageError, r"in module Net, at .*given\.py:12: "),
}


@pytest.mark.parametrize("inside", BAD)
def test_what_goes_wrong_is_told_with_its_module_and_line(tmp_path, inside):
    kind, message = BAD[inside]
    with pytest.raises(kind, match=message) as caught:
        record_file(net(tmp_path, inside))
    assert "Traceback" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_operation_without_a_meta_kernel_is_named(tmp_path):
    text = NET.format(inside="x = torch.ops.given.twice(x)", loss="y.sum()")
    text += """
@torch.library.custom_op("given::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2
"""
    with pytest.raises(
        MissingDatum, match=r"in module Net, at .*given\.py:12: an operation that cannot run without data.*twice"
    ):
        record_file(written(tmp_path, text))


def test_a_real_tensor_that_the_host_cannot_hold_is_named(tmp_path):
    with pytest.raises(MissingDatum, match=r"given\.py:12: this machine's memory is not enough"):
        record_file(net(tmp_path, "torch.empty(2**50, device='cpu')"), "meta")


def test_a_tensors_number_may_be_logged_and_checked(tmp_path):
    made = record_file(net(tmp_path, "assert x.isfinite().all() and x.sum().item() == 0.0"))
    assert made.front_end == "meta"
    assert {each.answer for each in made.answers} == {"True", "0.0"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def program(: pass", r"given\.py:1: no Python"),
        ("import nowhere_to_be_found", r"given\.py:1: ModuleNotFoundError"),
        ("def program(size): pass", r"needs size"),
        ("def program(): return 3", r"must return a Program"),
        ("def program(): return {'model': 1}", r"must return model and inputs"),
        ("def program(): return 1, 2", r"model must be a torch\.nn\.Module\. Got int"),
        ("import torch\ndef program(): return torch.nn.ReLU(), torch.ones(3)", r"no parameters"),
    ],
)
def test_a_file_that_gives_no_program_is_refused(tmp_path, text, message):
    with pytest.raises(InvalidInput, match=message):
        record_file(written(tmp_path, text))


@pytest.mark.parametrize("loss", ["y", "y.sum().detach()", "3.0"])
def test_a_loss_must_be_one_number_of_the_parameters(tmp_path, loss):
    with pytest.raises(InvalidInput, match="loss must be a tensor of one number"):
        record_file(net(tmp_path, loss=loss))


def test_a_wrong_name_gets_the_nearest():
    with pytest.raises(UnknownName, match="program"):
        record_file(E5.replace(":program", ":progam"))
    with pytest.raises(UnknownName, match="'width'"):
        record_file(E5, arguments={"widht": 3})


@pytest.mark.parametrize("target", ["", "x.py", "x.py:", ":f", "nowhere.py:f", "README.md:f", "x.py:f(1)"])
def test_a_target_is_a_file_and_a_callable(target):
    with pytest.raises(InvalidInput, match=re.compile("FILE.py:callable|no such Python file")):
        record_file(target)


def test_the_front_end_meta_says_what_it_cannot_follow(tmp_path):
    with pytest.raises(InvalidInput, match=r"CUDA is available.*'cuda' can"):
        record_file(net(tmp_path, "torch.cuda.is_available()"), "meta")


def test_without_the_front_end_cuda_a_program_that_needs_it_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("tonnage.trace.record.user.guard.works", lambda: "only on Linux. This is plan9.")
    with pytest.raises(MissingDatum, match=r"asks whether CUDA is available.*plan9"):
        record_file(net(tmp_path, "torch.cuda.is_available()"))
