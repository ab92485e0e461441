"""Files that users name, whatever they are and hold: each verb refuses what it cannot read at once, with the file
and what is wrong with it.
"""

import gzip
import json
import os
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tonnage
from tonnage.catalogue import toml_files
from tonnage.cli import main
from tonnage.estimate.load.requests import read_requests
from tonnage.kernel.errors import InvalidInput
from tonnage.search.pool.inventory import MOST_NODES, read_inventory
from tonnage.user_files import csv_text, json_text, open_regular, read_bytes, toml_text, yaml_text

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "pool.yaml"
LLAMA = ["llama-3.1-8b", "--on", "h100"]

# Each verb that reads a file: its words, the file in their place, and the ending that the file must have.
VERBS = {
    "trace of serve": (["serve", *LLAMA, "--trace", "FILE"], ".csv"),
    "inventory of plan": (["plan", "--inventory", "FILE"], ".yaml"),
    "inventory in TOML": (["plan", "--inventory", "FILE"], ".toml"),
    "inventory in JSON": (["plan", "--inventory", "FILE"], ".json"),
    "rows of validate": (["validate", "FILE"], ".yaml"),
    "spec of sweep": (["sweep", "FILE", "--out", "OUT"], ".yaml"),
    "config of a model": (["train", "FILE", "--on", "h100"], ".json"),
    "TOML of a model": (["train", "FILE", "--on", "h100"], ".toml"),
    "safetensors": (["train", "FILE", "--on", "h100"], ".safetensors"),
    "GGUF": (["serve", "FILE", "--on", "h100"], ".gguf"),
    "snapshot": (["trace", "FILE"], ".pickle"),
    "prices": (["prices", "refresh", "--from", "FILE", "--cloud", "aws"], ".csv"),
}


def words(verb: str, path: Path, out: Path) -> list[str]:
    return [{"FILE": str(path), "OUT": str(out)}.get(word, word) for word in VERBS[verb][0]]


@pytest.fixture(autouse=True)
def config(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def refused(verb: str, path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What is said of it; the status is that of bad input, and nothing is waited for."""
    found: list[int] = []
    asked = threading.Thread(target=lambda: found.append(main(words(verb, path, tmp_path / "out"))), daemon=True)
    asked.start()
    asked.join(60)
    assert found, f"{verb}: it waits"
    said = capsys.readouterr().err
    assert found == [64] and "Traceback" not in said and said.strip(), (found, said)
    return said


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
@pytest.mark.parametrize("verb", VERBS)
def test_a_pipe_is_refused_at_once(verb, tmp_path, capsys):
    path = tmp_path / f"pipe{VERBS[verb][1]}"
    os.mkfifo(path)
    refused(verb, path, tmp_path, capsys)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no devices here")
@pytest.mark.parametrize("verb", VERBS)
def test_a_device_without_end_is_refused_at_once_also_behind_a_link(verb, tmp_path, capsys):
    path = tmp_path / f"zero{VERBS[verb][1]}"
    path.symlink_to("/dev/zero")
    refused(verb, path, tmp_path, capsys)


@pytest.mark.parametrize("verb", VERBS)
def test_folders_circles_and_files_that_are_not_there_are_refused(verb, tmp_path, capsys):
    ending = VERBS[verb][1]
    (tmp_path / f"folder{ending}").mkdir()
    (tmp_path / f"circle{ending}").symlink_to(tmp_path / f"circle{ending}")
    for name in ("folder", "circle", "nothing", "a" * 300):
        refused(verb, tmp_path / f"{name}{ending}", tmp_path, capsys)


@pytest.mark.parametrize("verb", VERBS)
def test_a_file_of_a_terabyte_is_refused_unread(verb, tmp_path, capsys):
    path = tmp_path / f"large{VERBS[verb][1]}"
    with path.open("wb") as file:
        file.truncate(2**40)
    refused(verb, path, tmp_path, capsys)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0",
        b"\xff\xfe\0\0",
        b"9" * 5000,
        b"{" * 100_000,
        b"[" * 100_000,
        b"- " * 100_000,
        b"a" + b".a" * 20_000 + b" = 1",
        b"x: !!bool y",
        b"\n" * 100_000,
        b'{"arrival_seconds": ' + b"9" * 5000 + b', "input_tokens": 1, "output_tokens": 1}',
    ],
    ids=range(11),
)
def test_odd_bytes_are_refused_at_once(verb, content, tmp_path, capsys):
    path = tmp_path / f"odd{VERBS[verb][1]}"
    path.write_bytes(content)
    refused(verb, path, tmp_path, capsys)


def test_a_file_that_may_not_be_read_is_refused(tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = tmp_path / "x"
    path.write_text("x")
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(InvalidInput, match=r"cannot read .*x: Permission denied"):
        read_bytes(path, 10)


def test_a_pipe_that_takes_the_place_of_a_file_is_refused_too(tmp_path, monkeypatch):
    """The kind is that of the open descriptor: what the path was before says nothing."""
    path = tmp_path / "x"
    os.mkfifo(path)
    here = Path(__file__).stat()
    monkeypatch.setattr(Path, "stat", lambda _: here)
    with pytest.raises(InvalidInput, match="pipe, not a regular file"), open_regular(path):
        pass


def test_a_file_that_grows_while_it_is_read_is_bounded(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_bytes(b"x" * 100)
    monkeypatch.setattr("tonnage.user_files.file_size", lambda _: 1)
    with pytest.raises(InvalidInput, match="is larger than"):
        read_bytes(path, 50)
    assert read_bytes(path, 100) == b"x" * 100


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc here")
def test_files_of_proc_that_state_no_size_are_read_within_the_bound():
    assert b"Name" in read_bytes(Path("/proc/self/status"), 100_000)
    with pytest.raises(InvalidInput, match="is larger than"):
        read_bytes(Path("/proc/self/status"), 10)
    with pytest.raises(InvalidInput):
        read_bytes(Path("/proc/self/mem"), 10)


# ---- YAML ----

DEFAULTS = "a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: {<<: [*a, {z: 9, x: 7}]}\n"


def test_yaml_means_what_it_always_meant():
    text = (
        "n: ~\nt: yes\ni: 1_000\no: 010\nh: 0xff\nf: 1.5e+3\nq: '1'\ninf: -.inf\ndate: 2024-05-01\ntime: "
        "1:30\nlist: [1, a, null]\n"
    )
    assert yaml_text.parse(text, "x") == {
        "n": None,
        "t": True,
        "i": 1000,
        "o": 8,
        "h": 255,
        "f": 1500.0,
        "q": "1",
        "inf": float("-inf"),
        "date": "2024-05-01",
        "time": "1:30",
        "list": [1, "a", None],
    }
    assert yaml_text.parse(DEFAULTS, "x") == {
        "a": {"x": 1, "y": 2},
        "b": {"x": 1, "y": 3},
        "c": {"x": 1, "y": 2, "z": 9},
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("!!bool x", "YAML tags are not read: leave out '!!bool'"),
        ("a: !!int ''", "leave out '!!int'"),
        ("- !!timestamp x", "row 1: YAML tags"),
        ("!!set {a}", "YAML tags"),
        ("!!binary x", "YAML tags"),
        ("! x", "YAML tags"),
        ("!!python/name:os.system x", "YAML tags"),
        ("%TAG ! x\n---\n!a b", "YAML tags|not YAML"),
        ("a: 1\na: 2", "'a' is there twice"),
        ("{1: a, 1: b}", "1 is there twice"),
        ("{<<: {}, <<: {}}", "'<<' is there twice"),
        ("<<: 3", "<< takes a mapping"),
        ("? [1]\n: 2", "a key of a mapping must be a text or a number"),
        ("*a", "no anchor is called 'a'|not YAML"),
        ("a: &a [*a]", "'a' refers to itself"),
        ("a\n---\nb", "several YAML documents"),
        ("[" * 40 + "]" * 40, "nested more than 32 deep"),
        ("- a\n- " + "[" * 2000, "row 1: it is nested more than 32 deep"),
        ("\x01", "not YAML"),
        (
            "a: &a {"
            + ",".join(f"k{i}: 1" for i in range(1000))
            + "}\nb: &b {<<: ["
            + ",".join(["*a"] * 1000)
            + "]}\nc: {<<: ["
            + ",".join(["*b"] * 1000)
            + "]}",
            "more than 1,000,000 values",
        ),
    ],
    ids=range(20),
)
def test_yaml_that_is_no_plain_data_is_refused(text, says):
    with pytest.raises(InvalidInput, match=says):
        yaml_text.parse(text, "x")


@given(st.text(alphabet="ab01:-[]{}&*!<>|?,.'\"# \n~%@`_eE+", max_size=60) | st.text(max_size=40))
def test_any_text_is_plain_data_in_yaml_toml_and_json_or_a_clear_error(text):
    for parse in (
        yaml_text.parse,
        toml_text.parse,
        lambda text, where: json_text.parse(text.encode("utf-8", "replace"), where),
    ):
        try:
            found = parse(text, "the file")
        except InvalidInput as error:
            assert str(error).startswith("the file")
            continue
        waiting = [found]
        while waiting:
            value = waiting.pop()
            assert type(value) in (dict, list, str, int, float, bool, type(None))
            waiting.extend(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())


def test_a_number_that_no_float_holds_is_infinite_and_refused_where_it_is_read():
    assert yaml_text.parse("-" + "9" * 5000, "x") == float("-inf")
    with pytest.raises(InvalidInput, match="x: a must be a finite number"):
        json_text.parse(b'{"a": ' + b"9" * 5000 + b"}", "x")


# ---- TOML, CSV ----


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a" + ".a" * 20_000 + " = 1", "a key of more than 16 parts"),
        ("[a" + ". 'a' " * 20_000 + "]", "a key of more than 16 parts"),
        ("x = {a" + " ." * 1 + "a" + ".a" * 5_000 + " = 1}", "a key of more than 16 parts"),
        ("a = 2024-01-01", "a is a date or a time"),
        ("a = 0x" + "f" * 20, "out of range"),
        ("a = " + "9" * 5000, "not TOML"),
        ("a = " + "[" * 100_000, "nested"),
        ("a = " + "[" * 40 + "]" * 40, "nested more than 32"),
        ("a = 1\na = 2", "not TOML"),
    ],
    ids=range(9),
)
def test_toml_that_would_take_long_or_is_no_plain_data_is_refused(text, says):
    with pytest.raises(InvalidInput, match=says):
        toml_text.parse(text, "x")


def test_every_file_of_the_catalogue_is_within_the_bounds():
    for path in toml_files.HERE.rglob("*.toml"):
        assert toml_text.load(path)


def test_a_column_that_is_there_twice_is_refused():
    for header in ("a,b,a", "a, A ,b"):
        with pytest.raises(InvalidInput, match="two columns are called 'a'"):
            csv_text.Rows(f"{header}\n1,2,3\n", "x")
    with pytest.raises(InvalidInput, match="at most 1,000 columns"):
        csv_text.Rows(",".join(f"c{number}" for number in range(1001)), "x")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            '{"arrival_seconds": 1, "input_tokens": ' + "9" * 5000 + ', "output_tokens": 1}',
            "line 1: input_tokens must be a finite number",
        ),
        (
            '{"arrival_seconds": 1, "arrival_seconds": 2, "input_tokens": 1, "output_tokens": 1}',
            "'arrival_seconds' twice",
        ),
        ('{"arrival_seconds": NaN, "input_tokens": 1, "output_tokens": 1}', "arrival_seconds must be a finite number"),
        (
            '{"arrival_seconds": 1, "input_tokens": 1e300, "output_tokens": 1}',
            "line 1: input_tokens must be a whole number",
        ),
        (
            "arrival_seconds,input_tokens,output_tokens\n1," + "9" * 5000 + ",1\n",
            "line 2: input_tokens must be a whole number",
        ),
        (
            "arrival_seconds,input_tokens,output_tokens\n" + "9" * 5000 + ",1,1\n",
            "line 2: arrival_seconds must be seconds",
        ),
        ("arrival_seconds,input_tokens,output_tokens,input_tokens\n1,1,1,1\n", "two columns are called 'input_tokens'"),
    ],
    ids=range(7),
)
def test_requests_of_absurd_sizes_are_refused_with_line_and_field(tmp_path, text, says):
    path = tmp_path / "trace.txt"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=says):
        read_requests(path)


def test_a_trace_of_more_lines_than_are_read_is_refused_before_any_is_parsed(tmp_path, monkeypatch):
    path = tmp_path / "trace.csv"
    path.write_text("no header\n" * 11)
    monkeypatch.setattr("tonnage.estimate.load.requests.MOST_REQUESTS", 10)
    with pytest.raises(InvalidInput, match="more than 10 lines"):
        read_requests(path)


# ---- inventories ----


def test_an_inventory_of_more_nodes_than_are_placed_is_refused_before_any_is_looked_at(tmp_path):
    path = tmp_path / "pool.json"
    path.write_text(json.dumps({"nodes": [{"nonsense": 1}] * (MOST_NODES + 1)}))
    with pytest.raises(InvalidInput, match=r"at most 10,000 nodes. Got 10,001"):
        read_inventory(path)
    groups = [{"name": f"g{number}", "accelerator": "H100-SXM-80GB", "nodes": MOST_NODES} for number in range(1000)]
    path.write_text(json.dumps({"nodes": groups}))
    with pytest.raises(InvalidInput, match=r"at most 10,000 nodes. Got 10,000,000"):
        read_inventory(path)


@pytest.mark.parametrize("ending", ["yaml", "json", "toml"])
def test_an_inventory_says_the_same_in_every_form(tmp_path, ending):
    path = tmp_path / f"pool.{ending}"
    text = {
        "yaml": "nodes:\n- {name: a, accelerator: H100-SXM-80GB, count: 8}\n",
        "json": '{"nodes": [{"name": "a", "accelerator": "H100-SXM-80GB", "count": 8}]}',
        "toml": '[[nodes]]\nname = "a"\naccelerator = "H100-SXM-80GB"\ncount = 8\n',
    }[ending]
    path.write_text(text)
    assert read_inventory(path).nodes[0].count == 8


def test_what_is_wrong_with_an_inventory_is_said_before_the_solver_is_asked_for(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "highspy", None)
    path = tmp_path / "pool.yaml"
    for text, says in (
        ("!!bool x", "YAML tags"),
        ("nodes: []", "has no nodes"),
        ("nodes: [{name: a, accelerator: H100}]\njobs: [{name: j, model: nothing-like-it}]", "nothing-like-it"),
    ):
        path.write_text(text)
        assert main(["plan", "--inventory", str(path)]) == 64
        assert says in capsys.readouterr().err
    assert main(["plan", "--inventory", str(EXAMPLE)]) == 4
    assert "tonnage[placement]" in capsys.readouterr().err


def test_what_is_wrong_with_a_question_is_said_before_an_extra_is_asked_for(tmp_path, capsys, monkeypatch):
    for name in ("pyarrow", "plotly"):
        monkeypatch.setitem(sys.modules, name, None)
    for asked in (
        ["train", "no-such-model-xyz", "--on", "h100", "--plot", "x.html"],
        ["serve", "no-such-model-xyz", "--on", "h100", "--plot", "x.html"],
        ["compare", "--nonsense", "no-such-model-xyz", "--on", "h100", "--parquet", str(tmp_path / "x.parquet")],
    ):
        assert main(asked) == 64
        assert "no-such-model-xyz" in capsys.readouterr().err


# ---- the command line ----


@pytest.mark.parametrize(
    "words",
    [
        ["train", *LLAMA, "--micro-batch-size", "9" * 5000],
        ["train", *LLAMA, "--sequence-length", "9" * 5000 + "k"],
        ["serve", *LLAMA, "--users", "9" * 5000],
        ["serve", *LLAMA, "--context", "1e400"],
        ["serve", *LLAMA, "--request-rate", "9" * 5000],
        ["train", "llama-3.1-8b", "--on", "9" * 5000 + "xh100"],
        ["plan", "llama-3.1-8b", "--on", "h100", "--vary", "sequence_length=" + "9" * 5000],
        ["max", "context", *LLAMA, "--users", "9" * 5000],
        ["train", *LLAMA, "--reserve", "9" * 5000 + "GB"],
        ["train", *LLAMA, "--host-update-bandwidth", "9" * 5000 + "GB/s"],
    ],
    ids=range(10),
)
def test_numbers_of_thousands_of_digits_are_refused(words, capsys):
    assert main(words) == 64
    assert "Traceback" not in capsys.readouterr().err


def test_python_refuses_them_too():
    with pytest.raises(InvalidInput):
        tonnage.serve("llama-3.1-8b", on="h100", concurrency=10**5000)


def test_a_packed_file_that_unfolds_without_end_is_refused(tmp_path, monkeypatch):
    from tonnage.trace.foreign import files

    path = tmp_path / "x.json.gz"
    path.write_bytes(gzip.compress(bytes(10**6)))
    with pytest.raises(InvalidInput, match="holds more than"):
        files.content(path, 10**5)
