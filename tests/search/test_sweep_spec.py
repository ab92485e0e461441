"""What a sweep's file may say, and what is said of one that cannot be."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from every_row import every_row
from tonnage.cli import main
from tonnage.kernel.errors import TonnageError
from tonnage.search.sweep.spec import Axis, Spec, parse, read
from tonnage.search.sweep.tasks import Tasks, digits

GOOD = {"models": ["gpt2"], "on": ["8xh100"], "vary": {"micro_batch_size": [1, 2]}}

BAD = [
    ({"modles": ["gpt2"]}, "no field of a sweep is called 'modles'. Did you mean 'models'?"),
    ({"kind": "trian"}, "no kind of sweep is called 'trian'. Did you mean 'train'?"),
    ({"models": ["gpt3-xxl-b"]}, "gpt3-xxl-b"),
    ({"models": ["gpt2", "llama-3.1-8b", "gpt2"]}, "models: 'gpt2' is there twice."),
    ({"models": []}, "models takes a list of names, or all. Got []."),
    ({"models": ["/nowhere/*.json"]}, "models: no file matches '/nowhere/*.json'."),
    ({"on": ["8xh1000"]}, "h1000"),
    ({"on": ["8xh100"], "accelerators": "all"}, "by `on`, or by `accelerators` and `counts`"),
    ({"on": ["8xh100"], "counts": [8]}, "counts are of accelerators"),
    ({"options": {"runtime": "megatorn"}}, "'megatorn'. Did you mean 'megatron'?"),
    ({"options": {"optimiser": "adamw"}}, "Did you mean 'optimizer"),
    ({"options": {"micro_batch_size": 4}}, "micro_batch_size is in both options and vary"),
    ({"vary": {"recompute": ["full", "fully"]}}, "no recompute is called 'fully'"),
    ({"vary": {"micro_batch_size": ["two"]}}, "vary: micro_batch_size takes a whole number. Got 'two'."),
    ({"vary": {"micro_batch_size": [0]}}, "micro_batch_size must be from 1 to"),
    ({"vary": {"micro_batch_size": [1, 1]}}, "vary: micro_batch_size has 1 twice."),
    ({"vary": {"micro_batch_size": []}}, "vary: micro_batch_size takes a list of values"),
    ({"vary": {"micro_batch_size": {"from": 1, "upto": 8}}}, "'upto'"),
    ({"vary": {"micro_batch_size": {"from": 8, "to": 1}}}, "to must be at least from. Got from 8, to 1."),
    (
        {"vary": {"micro_batch_size": {"from": 1, "to": 8, "step": 1, "times": 2}}},
        "a range is from, to and step, or from, to and times",
    ),
    ({"vary": {"micro_batch_size": {"from": 1, "to": 10**9}}}, "at most 100,000 values"),
    ({"vary": {"num_microbatches": [1], "global_batch_size": [8]}}, "say the same"),
    (
        {
            "vary": {
                "micro_batch_size": {"from": 1, "to": 99_999},
                "num_microbatches": {"from": 1, "to": 99_999},
                "sequence_length": {"from": 1, "to": 99_999},
                "tensor_parallel_size": {"from": 1, "to": 99_999},
            }
        },
        "at most 2^62 plans",
    ),
    ({"vary": {"teacher": ["gpt2"]}}, "teacher cannot be swept"),
    ({"options": {"recompute": None}}, "recompute has no value"),
    ({"keep": "some"}, "keep of a sweep of kind train must be all, fitting or {best: N}. Got 'some'."),
    ({"keep": {"best": 0}}, "best must be a whole number from 1"),
    ({"keep": "pareto"}, "keep of a sweep of kind train"),
    ({"money": {"provider": "AVS"}}, "AVS"),
    ({"money": {"price": 3}}, "no field of money is called 'price'"),
    ({"chunk_plans": 0}, "chunk_plans must be a whole number from 1 to 4,194,304. Got 0."),
    (
        {"kind": "serve", "vary": {"weights": ["fp8", "q4_k_m", "exl9", "fp99"]}},
        "no precision or GGUF file type is called 'exl9'",
    ),
    ({"kind": "serve", "options": {"weights": "fp99"}, "vary": {}}, "no precision or GGUF file type is called 'fp99'"),
    ({"kind": "serve", "options": {"kv_cache": "fp9"}, "vary": {}}, "no kv_cache is called 'fp9'"),
    ({"kind": "serve", "options": {"engine": "vlllm"}, "vary": {}}, "'vlllm'"),
    (
        {"kind": "serve", "vary": {"micro_batch_size": [1]}},
        "vary: micro_batch_size is an option of sweeps of kind train, not of kind serve",
    ),
]


@every_row(("changes", "said"), BAD, ids=lambda each: str(each)[:60], at_least=35)
def test_what_cannot_be_is_refused_with_field_value_and_nearest(changes, said):
    with pytest.raises(TonnageError) as caught:
        parse({**GOOD, **changes})
    assert said in str(caught.value)


def test_a_file_is_read_as_people_write_it(tmp_path):
    (tmp_path / "a.yaml").write_text(
        "models: [gpt2]\non: [h100, 2x8xh100]\noptions: {recompute: full}\n"
        "vary:\n  sequence_length: [512, 8k]\n  micro_batch_size: {from: 1, to: 16, times: 2}\n  "
        "num_microbatches: {from: 3, to: 9, step: 3}\n"
        "  optimizer: [adamw, sgd]\nkeep: {best: 3}\n"
    )
    spec = read(tmp_path / "a.yaml")
    assert spec.clusters == ("h100", "2x8xh100") and (spec.keep, spec.best) == ("best", 3)
    assert {axis.name: axis.values for axis in spec.axes} == {
        "sequence_length": (512, 8192),
        "micro_batch_size": (1, 2, 4, 8, 16),
        "num_microbatches": (3, 6, 9),
        "optimizer": ("adamw", "sgd"),
    }
    assert spec.options == {"recompute": "full"} and Tasks(spec).plans == 2 * 2 * 5 * 3 * 2
    (tmp_path / "b.yaml").write_text((tmp_path / "a.yaml").read_text().replace("recompute: full", "recompute: none"))
    assert read(tmp_path / "b.yaml").digest() != spec.digest() == read(tmp_path / "a.yaml").digest()


def test_the_whole_catalogue_is_a_sweep():
    spec = parse({"models": "all", "accelerators": "all", "counts": [8], "options": {"runtime": "fsdp2"}})
    assert len(spec.models) > 300 and len(spec.clusters) > 100
    assert Tasks(spec).plans == len(spec.models) * len(spec.clusters)


@pytest.mark.parametrize("text", ["", "- a", "a: [", "on: [h100]", "3"], ids=repr)
def test_a_file_that_is_none_is_status_64(text, tmp_path, capsys):
    (tmp_path / "a.yaml").write_text(text)
    assert main(["sweep", str(tmp_path / "a.yaml"), "--out", str(tmp_path / "out")]) == 64
    assert "a.yaml" in capsys.readouterr().err and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "words", [[], ["x.yaml"], ["x.yaml", "--out", "y", "--workers", "0"], ["nowhere.yaml", "--out", "y"]], ids=str
)
def test_a_command_that_lacks_something_is_status_64(words, capsys):
    assert main(["sweep", *words]) == 64
    assert capsys.readouterr().err.startswith("error: ")


@given(st.integers(1, 400), st.lists(st.integers(1, 4), max_size=3), st.lists(st.integers(1, 9), max_size=3))
def test_chunks_hold_every_plan_once_whatever_their_size(size, outer, inner):
    """Numbers of plans over all chunks are 0, 1, 2, ...; and a plan's digits are those of nested loops."""
    spec = Spec(
        kind="train",
        models=("a", "b"),
        clusters=("c",),
        options={},
        chunk_plans=size,
        outer=tuple(Axis(f"o{i}", tuple(range(n))) for i, n in enumerate(outer)),
        inner=tuple(Axis(f"i{i}", tuple(range(n))) for i, n in enumerate(inner)),
    )
    tasks = Tasks(spec)
    loops = product(range(2), range(1), *map(range, outer), *map(range, inner))
    seen = 0
    for number in range(tasks.count):
        held = 0
        for part in tasks.parts(number):
            assert tasks.numbers(part).tolist() == list(range(seen, seen + len(part)))
            sizes = [column.tolist() for column in tasks.sizes(part)]
            for row in range(len(part)):
                assert (*part.digits, *(column[row] for column in sizes)) == next(loops)
            seen, held = seen + len(part), held + len(part)
        assert held == tasks.plans_of(number) > 0
        assert held <= max(size, 1) or tasks.pieces == 1
    assert seen == tasks.plans and next(loops, None) is None
    with pytest.raises(IndexError):
        next(tasks.parts(tasks.count))


def test_digits_are_those_of_mixed_radix():
    assert [digits(number, (2, 3)) for number in range(6)] == list(product(range(2), range(3)))


def test_a_sweep_of_ten_thousand_million_plans_is_described_at_once():
    sizes = {
        name: {"from": 1, "to": 100}
        for name in ("micro_batch_size", "num_microbatches", "sequence_length", "tensor_parallel_size")
    }
    spec = parse({**GOOD, "vary": {**sizes, "data_parallel_size": {"from": 1, "to": 100}}})
    tasks = Tasks(spec)
    assert tasks.plans == 10**10 and tasks.count == -(-(10**10) // 65_536)
    (last,) = tasks.parts(tasks.count - 1)
    assert last.stop == 10**10


FILE = """\
kind: train
models: [gpt2, lama-9b]
on: [8xh1000]
options: {presicion: fp8, ttft: 1}
vary:
  micro_batch_sz: [1, 2]
keep: fiting
"""


def test_all_that_is_wrong_with_a_file_is_said_at_once_each_with_its_line(tmp_path):
    (tmp_path / "sweep.yaml").write_text(FILE)
    with pytest.raises(TonnageError) as error:
        read(tmp_path / "sweep.yaml")
    first, *lines = str(error.value).split("\n  ")
    assert first == f"{tmp_path / 'sweep.yaml'} has 6 mistakes:"
    assert [line.partition(":")[0] for line in lines] == ["line 3", "line 2", "line 4", "options", "line 6", "line 7"]
    assert "Did you mean 'precision'?" in lines[2] and "ttft is an option of sweeps of kind serve" in lines[3]


def test_one_mistake_is_said_with_its_line(tmp_path):
    (tmp_path / "sweep.yaml").write_text("kind: trian\nmodels: [gpt2]\non: [h100]\n")
    with pytest.raises(TonnageError, match="line 1: no kind of sweep is called 'trian'"):
        read(tmp_path / "sweep.yaml")


def test_a_single_name_is_shown_how_a_list_is_written(tmp_path):
    (tmp_path / "sweep.yaml").write_text("models: gpt2\non: [h100]\n")
    with pytest.raises(TonnageError, match=r"line 1: models takes a list of names: write models: \[gpt2\]"):
        read(tmp_path / "sweep.yaml")


def test_what_is_no_yaml_is_said_with_its_line_and_column(tmp_path):
    (tmp_path / "sweep.yaml").write_text("kind: train\nmodels: [gpt2\non: h100\n")
    with pytest.raises(TonnageError, match=r"is not YAML: line 3, column 3: .* that begins in line 2"):
        read(tmp_path / "sweep.yaml")
