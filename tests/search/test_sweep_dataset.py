"""The dataset of a sweep: what is whole, what is taken away, what is kept, and what is said while it grows."""

import json
import os
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from search._sweeps import digests, small
from tonnage.cli import main
from tonnage.kernel.errors import InvalidInput, MissingDatum
from tonnage.search.sweep import dataset, manifest
from tonnage.search.sweep.drive import sweep
from tonnage.search.sweep.keep import best
from tonnage.search.sweep.progress import Progress
from tonnage.search.sweep.spec import parse
from tonnage.search.sweep.summary import summarise
from tonnage.search.sweep.tasks import Tasks

pq = pytest.importorskip("pyarrow.parquet")
VARY = {"sequence_length": [256, 512], "micro_batch_size": [1, 2, 4, 512], "num_microbatches": {"from": 1, "to": 8}}


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """(spec, directory) of a sweep of four chunks."""
    spec, directory = (
        small(models=["gpt2"], on=["h100", "8xh100"], vary=VARY, chunk_plans=32),
        tmp_path_factory.mktemp("first") / "out",
    )
    sweep(spec, directory, workers=1)
    return spec, directory


@pytest.fixture
def made(first, tmp_path):
    """The same, to be harmed."""
    shutil.copytree(first[1], tmp_path / "out")
    return first[0], tmp_path / "out"


def _cut(path):
    path.write_bytes(path.read_bytes()[:-100])


def _empty(path):
    path.write_bytes(b"")


def _hole(path):
    """The length of a crash that lost the pages: zeros."""
    path.write_bytes(bytes(path.stat().st_size))


def _scratch(path):
    """A bit of a page, which no footer shows."""
    data = bytearray(path.read_bytes())
    data[len(data) // 4] ^= 1
    path.write_bytes(data)


def _other(path):
    """A part of some other sweep."""
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({b"tonnage": b'{"sweep": "another"}'}), path)


def _gone(path):
    path.unlink()


@pytest.mark.parametrize("harm", [_cut, _empty, _hole, _scratch, _other, _gone])
def test_a_part_that_is_not_whole_is_made_again_to_the_same_bytes(harm, made):
    spec, directory = made
    whole = digests(directory)
    harm(directory / "plans" / "part-000001.parquet")
    assert digests(directory) != whole
    done = sweep(spec, directory, workers=1, resume=True)
    assert digests(directory) == whole
    assert done.made == 1 and done.summary.missing == 0 and not done.summary.damaged


def test_files_that_a_dead_worker_left_half_written_are_taken_away(made):
    spec, directory = made
    (directory / "plans" / f".part-000001.parquet.1-ab{dataset.WRITING}").write_bytes(b"PAR1")
    assert sweep(spec, directory, workers=1, resume=True).made == 0
    assert len(os.listdir(directory / "plans")) == 4  # noqa: PTH208


def test_another_sweep_is_refused_in_the_same_directory(made):
    spec, directory = made
    other = small(models=["gpt2"], on=["h100"], vary=VARY, chunk_plans=32)
    with pytest.raises(InvalidInput, match=r"holds another sweep \(128 plans; this one has 64; clusters differs\)"):
        sweep(other, directory, workers=1, resume=True)
    with pytest.raises(InvalidInput, match="add --resume"):
        sweep(spec, directory, workers=1)


def test_an_estimator_that_has_changed_is_refused(made, monkeypatch):
    spec, directory = made
    monkeypatch.setattr(manifest, "estimator", lambda: "changed")
    with pytest.raises(InvalidInput, match="begun with another tonnage"):
        sweep(spec, directory, workers=1, resume=True)


def test_a_directory_with_other_things_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(InvalidInput, match="not empty and holds no sweep"):
        sweep(small(), tmp_path, workers=1)
    assert os.listdir(tmp_path) == ["thesis.tex"]  # noqa: PTH208


def test_a_manifest_that_is_none_is_said(made):
    spec, directory = made
    (directory / "manifest.json").write_text('{"sweep": 3')
    with pytest.raises(InvalidInput, match=r"manifest.json cannot be read"):
        sweep(spec, directory, workers=1, resume=True)


def test_two_drivers_do_not_share_a_directory(made):
    pytest.importorskip("fcntl")
    spec, directory = made
    with manifest.locked(directory), pytest.raises(InvalidInput, match="another process is at work"):
        sweep(spec, directory, workers=1, resume=True)


def test_columns_are_typed_and_words_are_words(made):
    _, directory = made
    table = pq.read_table(directory / "plans")
    types = {field.name: str(field.type) for field in table.schema}
    assert (
        types["plan"] == types["needed_bytes"] == "int64"
        and types["fits"] == "bool"
        and types["step_seconds"] == "double"
    )
    assert set(table["cluster"].to_pylist()) == {"h100", "8xh100"} and set(table["runtime"].to_pylist()) == {
        "transformers",
        "fsdp2",
    }
    facts = json.loads(pq.read_metadata(directory / "plans" / "part-000000.parquet").metadata[b"tonnage"])
    assert facts["considered"] == facts["valid"] == 32 and facts["fitting"] < 32


def test_what_fits_alone_can_be_kept_and_counts_stay_those_of_all(made, tmp_path):
    _, directory = made
    every = pq.read_table(directory / "plans").to_pylist()
    fitting = small(models=["gpt2"], on=["h100", "8xh100"], vary=VARY, chunk_plans=32, keep="fitting")
    done = sweep(fitting, tmp_path / "fitting", workers=1)
    kept = pq.read_table(tmp_path / "fitting" / "plans").to_pylist()
    assert kept == [row for row in every if row["fits"]] and 0 < len(kept) < len(every)
    assert done.summary.considered == len(every) and done.summary.fitting == done.summary.rows == len(kept)


def test_the_best_of_each_workload_are_found_over_all_parts(made, tmp_path):
    _, directory = made
    every = [row for row in pq.read_table(directory / "plans").to_pylist() if row["fits"]]
    groups = {}
    for row in every:
        groups.setdefault((row["model"], row["cluster"], row["sequence_length"]), []).append(row)
    expected = set()
    for rows in groups.values():
        rows.sort(key=lambda row: (-row["tokens_per_second"], row["needed_bytes"], row["plan"]))
        expected |= {row["plan"] for row in rows[:3]}
    spec = small(models=["gpt2"], on=["h100", "8xh100"], vary=VARY, chunk_plans=5, keep={"best": 3})
    done = sweep(spec, tmp_path / "best", workers=1)
    found = pq.read_table(tmp_path / "best" / "best.parquet")
    assert set(found["plan"].to_pylist()) == expected and found.num_rows == done.summary.best_rows == 12
    assert done.summary.rows < len(every)
    assert done.summary.best[0]["plan"] in expected
    assert len(done.summary.best) == len(groups)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2), st.integers(0, 1), st.sampled_from([1.0, 2.0, np.nan]), st.integers(1, 3), st.booleans()
        ),
        min_size=1,
    ),
    st.integers(1, 3),
)
def test_the_best_are_those_of_sorting(found, count):
    spec = small()
    names = ("model", "sequence_length", "tokens_per_second", "needed_bytes", "fits")
    rows = {name: np.array([row[i] for row in found]) for i, name in enumerate(names)}
    rows |= {"cluster": np.zeros(len(found)), "plan": np.arange(len(found))}
    expected = set()
    for key in {row[:2] for row in found}:
        group = [number for number, row in enumerate(found) if row[:2] == key and row[4]]
        group.sort(key=lambda number: (-np.nan_to_num(found[number][2]), found[number][3], number))
        expected |= set(group[:count])
    assert set(np.flatnonzero(best(spec, rows, count)).tolist()) == expected


def test_a_dataset_without_a_row_has_its_columns(tmp_path):
    spec = small(models=["gpt2"], on=["h100"], vary={"tensor_parallel_size": [2, 3]}, chunk_plans=32)
    done = sweep(spec, tmp_path / "out", workers=1)
    assert done.summary.rows == 0 and done.summary.considered == 2 and done.summary.best_rows == 0
    assert (
        pq.read_table(tmp_path / "out" / "plans").column_names
        == pq.read_table(tmp_path / "out" / "best.parquet").column_names
    )


NONE_FITS = {"models": ["mixtral-8x7b-v0.1"], "on": ["8xH100-SXM-80GB"], "options": {"runtime": "megatron"},
             "vary": {"sequence_length": [4096], "zero_stage": [0, 1]}}  # fmt: skip


@pytest.mark.parametrize("keep", ["fitting", {"best": 10}])
def test_a_chunk_of_which_no_row_is_kept_is_written_with_its_columns(keep, tmp_path):
    """Every plan of this sweep is valid and needs more memory than there is."""
    done = sweep(parse(NONE_FITS | {"keep": keep}), tmp_path / "out", workers=1)
    assert not done.failed and done.summary.considered == 2 and done.summary.rows == 0 and done.summary.valid == 2
    assert pq.read_table(tmp_path / "out" / "plans").num_rows == 0


def test_a_chunk_of_serving_of_which_no_row_is_kept_is_written_too(tmp_path):
    fields = {"kind": "serve", "models": ["llama-3.1-405b"], "on": ["h100"], "vary": {"context": [4096, 8192]}}
    for number, keep in enumerate(("all", "pareto", {"best": 1})):
        done = sweep(parse(fields | {"keep": keep}), tmp_path / str(number), workers=1)
        assert not done.failed and done.summary.rows == 0


def test_summaries_count_what_is_missing(made):
    spec, directory = made
    (directory / "plans" / "part-000002.parquet").unlink()
    found = summarise(directory, spec, Tasks(spec))
    assert found.missing == 1 and found.considered == 96


def test_pyarrow_is_named_with_its_extra_where_it_lacks(monkeypatch):
    dataset.arrow.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingDatum, match=r"tonnage\[cluster\]"):
        dataset.check_extra()


def test_ray_is_named_with_its_extra_where_it_lacks(monkeypatch):
    from tonnage.search.sweep import on_ray

    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(MissingDatum, match=r"--ray needs Ray: pip install 'tonnage\[cluster\]'"):
        on_ray.connected(None, None).__enter__()


def test_a_ray_that_does_not_answer_is_said_at_once(monkeypatch):
    from tonnage.search.sweep import on_ray

    monkeypatch.setitem(__import__("sys").modules, "ray", SimpleNamespace(is_initialized=lambda: False))
    with pytest.raises(InvalidInput, match=r"--ray 127\.0\.0\.1:1: nothing answers there"):
        on_ray.connected("127.0.0.1:1", None).__enter__()


# ---- progress ----


class Terminal:
    """Takes what is written; a terminal or none."""

    def __init__(self, tty):
        self.tty, self.text = tty, ""

    def isatty(self):
        return self.tty

    def write(self, text):
        self.text += text

    def flush(self):
        pass


def test_lines_without_a_terminal_have_share_rate_and_what_is_left():
    now = SimpleNamespace(time=0.0)
    stream = Terminal(tty=False)
    with Progress(1000, 200, stream, lambda: now.time) as shown:
        now.time = 2.0
        shown(100)
        now.time = 11.0
        shown(100)
        now.time = 20.0
        shown(600)
    assert stream.text.splitlines() == [
        "200 of 1,000 plans (20.0 %), were there",
        "400 of 1,000 plans (40.0 %), 18 plans/s, 33 s left",
        "1,000 of 1,000 plans (100.0 %), 40 plans/s",
    ]


def test_a_terminal_has_a_bar_that_goes_away():
    stream = Terminal(tty=True)
    with Progress(1000, 0, stream) as shown:
        shown(500)
        shown.bar.refresh()
    assert "500/1000" in stream.text and "plans/s" in stream.text
    assert stream.text.endswith("\x1b[2K")


def test_questions_of_serving_are_counted_as_questions():
    stream = Terminal(tty=False)
    with Progress(12, 0, stream, what="questions") as shown:
        shown(5)
    assert "5 of 12 questions (41.7 %)" in stream.text and "questions/s" in stream.text
    assert "plans" not in stream.text


def test_prices_of_answers_alone_are_called_so_and_one_process_is_one(tmp_path, capsys):
    text = (
        "kind: serve\nmodels: [gpt2]\non: [1xh100]\npoints: 2\noptions: {input_tokens: 100, output_tokens: 20, "
        "weights: bf16}\n"
    )
    (tmp_path / "some.yaml").write_text(text)
    assert main(["sweep", str(tmp_path / "some.yaml"), "--out", str(tmp_path / "out"), "--workers", "1"]) == 0
    said = capsys.readouterr()
    assert "USD/M answer tokens" in said.out and "on 1 process of this machine" in said.out
    assert "1 of 1 questions" in said.err and "plans" not in said.err
