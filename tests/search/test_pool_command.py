"""tonnage plan --inventory: files, words and statuses; what is wrong in a file is named with its place."""

import json
import sys
from pathlib import Path

import msgspec
import pytest

import tonnage
from schema_forms import validate
from tonnage.cli import main
from tonnage.kernel.errors import InvalidInput, MissingDatum, UnknownName
from tonnage.search.pool.highs import Effort, Program
from tonnage.search.pool.inventory import inventory_of, read_inventory
from tonnage.search.pool.parts import Pool

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "pool.yaml"
TOML = """
pool = "p"
[[nodes]]
name = "n"
accelerator = "H100-SXM-80GB"
count = 2
free_memory = "70GiB"
[[jobs]]
name = "j"
model = "llama-3.1-8b"
options = {context = "8k"}
"""
NODE = {"name": "n", "accelerator": "H100-SXM-80GB", "count": 2}
JOB = {"name": "j", "model": "llama-3.1-8b"}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "has no nodes"),
        ({"nodes": []}, "has no nodes"),
        ("text", "has no nodes"),
        ({"nodes": 5}, r"Expected `array`, got `int` - at `\$.nodes`"),
        ({"nodes": {"n": 1}}, r"Expected `array`, got `object` - at `\$.nodes`"),
        (
            {"nodes": [NODE | {"accelerator": "H1000"}]},
            r"nodes\[0\] \(n\).accelerator: no accelerator is called 'H1000'",
        ),
        ({"nodes": [NODE | {"count": -1}]}, r"nodes\[0\] \(n\).count must be from 1 to .* Got -1"),
        ({"nodes": [NODE | {"nodes": 0}]}, r"nodes\[0\] \(n\).nodes must be from 1"),
        ({"nodes": [NODE | {"cuont": 8}]}, r"nodes\[0\]: no field is called 'cuont'. Did you mean 'count'"),
        ({"nodes": [NODE | {"count": "eight"}]}, r"Expected `int`, got `str` - at `\$.nodes\[0\].count`"),
        ({"nodes": [NODE | {"free_memory": "90GiB"}]}, r"free_memory must be above 0 and at most the 79.10 GiB"),
        ({"nodes": [NODE | {"price": -1}]}, r"price must be from 0"),
        ({"nodes": [NODE | {"outside": 0}]}, r"outside must be above 0"),
        ({"nodes": [NODE, NODE]}, r"nodes\[1\]: two nodes are called 'n'"),
        ({"nodes": [NODE | {"name": "a b"}]}, r"name must be of letters"),
        (
            {"nodes": [NODE | {"held": [{"accelerators": 3}]}]},
            r"held\[0\].accelerators must be from 1 to the 2 accelerators",
        ),
        ({"nodes": [NODE | {"held": [{"accelerators": 1, "node": "m"}]}]}, r"held\[0\].node: no node is called 'm'"),
        ({"nodes": [NODE], "jobs": [JOB, JOB]}, r"jobs\[1\] \(j\)|two jobs are called 'j'"),
        ({"nodes": [NODE], "jobs": [JOB | {"replicas": 0}]}, r"jobs\[0\] \(j\).replicas must be from 1"),
        ({"nodes": [NODE], "jobs": [JOB | {"priority": 0}]}, r"priority must be above 0"),
        ({"nodes": [NODE], "jobs": [JOB | {"runs_on": ["m"]}]}, r"runs_on: no node is called 'm'"),
        ({"nodes": [NODE], "jobs": [JOB | {"runs_on": ["n", "n"]}]}, r"at most 1. Got 2"),
        ({"nodes": [NODE], "jobs": [JOB | {"kind": "train", "replicas": 2}]}, r"replicas is of serving"),
        ({"nodes": [NODE], "jobs": [JOB | {"kind": "tarin"}]}, r"jobs\[0\].kind"),
    ],
)
def test_what_is_wrong_in_an_inventory_is_named_with_its_place(fields, words):
    with pytest.raises(InvalidInput, match=words):
        inventory_of(fields)


def test_more_is_not_held_than_there_is():
    nodes = [NODE | {"held": [{"accelerators": 2, "job": "one"}, {"accelerators": 1, "job": "two"}]}]
    with pytest.raises(InvalidInput, match="n: held: two hold 1 accelerator"):
        Pool(inventory_of({"nodes": nodes}))
    with pytest.raises(InvalidInput, match="no accelerator of the pool is free"):
        Pool(inventory_of({"nodes": [NODE | {"held": [{"accelerators": 2}]}]}))


def test_the_same_pool_in_yaml_toml_and_json(tmp_path):
    fields = {"pool": "p", "nodes": [NODE | {"free_memory": "70GiB"}], "jobs": [JOB | {"options": {"context": "8k"}}]}
    (tmp_path / "p.json").write_text(json.dumps(fields))
    (tmp_path / "p.toml").write_text(TOML)
    (tmp_path / "p.yaml").write_bytes(msgspec.yaml.encode(fields))
    read = {read_inventory(path).pool for path in tmp_path.iterdir()}
    assert read == {"p"}
    first, *others = [msgspec.to_builtins(read_inventory(path)) for path in tmp_path.iterdir()]
    assert all(each == first for each in others)


@pytest.mark.parametrize(
    ("name", "text"), [("p.yaml", "nodes: [unclosed"), ("p.toml", "nodes ="), ("p.json", "{"), ("p.txt", "nodes: []")]
)
def test_a_file_that_is_none_is_refused(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInput):
        read_inventory(tmp_path / name)


def test_a_file_that_is_not_there_is_refused():
    with pytest.raises(InvalidInput, match="cannot read nowhere"):
        read_inventory("nowhere.yaml")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ([], 0),
        (["--leave", "h100,a100"], 3),
        (["--join", "h100-new"], 0),
        (["llama-3.1-405b", "--serve", "--users", "64", "--context", "8k"], 0),
        (["llama-3.1-8b", "--train", "--recompute", "full", "--runtime", "megatron"], 0),
        (["llama-3.1-8b", "--rate", "5000"], 3),
        (["--leave", "nobody"], 64),
        (["--join", "nobody"], 64),
        (["--context", "8k"], 64),
        (["llama-3.1-8b", "--serve", "--train"], 64),
        (["llama-3.1-8b", "--train", "--context", "8k"], 64),
        (["llama-3.1-8b", "--split", "pipelines"], 64),
        (["llama-3.1-8b", "--leave", "h100"], 64),
        (["llama-3.1-8b", "--stages", "33"], 64),
        (["llama-3.1-8b", "--time-limit", "0"], 64),
        (["llama-3.1-8b", "--gap", "2"], 64),
        (["--split", "pipeline"], 64),
        (["--offload"], 64),
    ],
)
def test_the_command_has_the_status_of_its_answer_and_a_document_of_the_schema(words, status, capsys):
    assert main(["plan", "--inventory", str(EXAMPLE), *words, "--json"]) == status
    document = json.loads(capsys.readouterr().out)
    validate(document, "PoolDocument", "ErrorDocument")
    assert ("error" in document) == (status == 64)
    if verdict := document.get("verdict"):
        assert verdict["optimal"] == ("proven optimal" in verdict["text"]) == (document["search"]["gap"] == 0)


def test_the_first_line_is_the_verdict_with_its_proof(capsys):
    assert (
        main(["plan", "--inventory", str(EXAMPLE), "llama-3.1-405b", "--serve", "--users", "64", "--context", "8k"])
        == 0
    )
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("24 of 40 accelerators of 2 types hold llama-3.1-405b: 3 stages") and first.endswith(
        "proven optimal (gap 0 %)"
    )


def test_forty_accelerators_of_three_types_are_placed_with_a_proven_gap():
    found = tonnage.place(EXAMPLE, "llama-3.1-405b", concurrency=64, context=8192)
    search = found.document.search
    assert found.document.pool.accelerators == 40 and len(found.document.pool.types) == 3
    assert search.gap == 0 and search.value == pytest.approx(search.bound) and search.programs >= 1


def test_without_the_solver_the_extra_is_named(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "highspy", None)
    program = Program()
    program.column(1.0)
    with pytest.raises(MissingDatum, match=r"pip install 'tonnage\[placement\]'"):
        program.solve(Effort())
    assert main(["plan", "--inventory", str(EXAMPLE)]) == 4
    assert "tonnage[placement]" in capsys.readouterr().err


def test_python_has_the_same_answer_as_the_command(capsys):
    main(["plan", "--inventory", str(EXAMPLE), "llama-3.1-405b", "--users", "64", "--context", "8k", "--json"])
    printed = json.loads(capsys.readouterr().out)
    made = tonnage.place(str(EXAMPLE), "llama-3.1-405b", concurrency=64, context=8192).to_dict()
    for document in (printed, made):
        document["search"].pop("seconds")
    assert printed == json.loads(json.dumps(made))


def test_python_refuses_what_the_command_refuses():
    with pytest.raises(UnknownName, match="kind of placement"):
        tonnage.place(EXAMPLE, "llama-3.1-8b", verb="serving")
    with pytest.raises(InvalidInput, match="leave out context"):
        tonnage.place(EXAMPLE, context=8192)


def test_a_program_whose_time_is_up_proves_nothing():
    effort = Effort(1e-9)
    program = Program()
    columns = [program.column(-1.0 - number % 7) for number in range(60)]
    program.row([(column, 1.0 + number % 5) for number, column in enumerate(columns)], high=37)
    solved = program.solve(effort)
    assert not solved.proven or solved.values is not None


@pytest.mark.parametrize(
    "asked", [{}, {"model": "llama-3.1-405b", "concurrency": 64, "context": 8192}], ids=["jobs", "pipeline"]
)
def test_a_search_whose_time_is_up_says_that_nothing_is_known(asked):
    with pytest.raises(MissingDatum, match="nothing was found within time_limit"):
        tonnage.place(EXAMPLE, time_limit=1e-6, **asked)
