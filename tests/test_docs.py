"""The documentation says what the code does."""

import pydoc
import re
import runpy
from importlib import import_module
from pathlib import Path

import pytest

import tonnage
from tonnage.cli import FIRST_WORDS, STATUSES, VERBS, main
from tonnage.cli.common.parser import Parser
from tonnage.documents.document import builtins
from tonnage.estimate.load.options import LoadOptions
from tonnage.estimate.money.bill import BillOptions
from tonnage.estimate.options.run_options import RunOptions
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.serving.options import ServingOptions
from tonnage.question.option import options_of
from tonnage.question.subjects.money import MONEY, OF_TRAINING, SERVED
from tonnage.search.serving.options import ServingPlanOptions
from tonnage.validation import read, validate

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
WRITTEN = runpy.run_path(str(ROOT / "scripts" / "write_docs.py"))
COMMANDS = [command for path in WRITTEN["PAGES"] for command in WRITTEN["commands"](path.read_text())]


def commands_with_output(text):
    """The commands of a page whose output it shows."""
    blocks = re.findall(r"(?<=```console\n).*?(?=```)", text, flags=re.S)
    parts = [part.splitlines() for block in blocks for part in re.split(r"(?m)^(?=\$ )", block) if part]
    return [prompt[2:] for prompt, *output in parts if any(output) and prompt.startswith("$ tonnage")]


SHOWN = {command for path in WRITTEN["PAGES"] for command in commands_with_output(path.read_text())}


def test_the_page_of_formulas_is_generated_from_the_code():
    assert (ROOT / "docs" / "formulas.md").read_text() == WRITTEN["page"](), "run `make docs`"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_in_the_readme(verb):
    assert f"tonnage {verb}" in README


@pytest.mark.parametrize("path", [ROOT / "README.md", WRITTEN["CHINESE"]], ids=lambda path: path.name)
def test_the_readmes_count_what_there_is(path):
    text, language = path.read_text(), path.name.count("zh")
    assert WRITTEN["counted"](text) == text, "run `make docs`"
    for words in WRITTEN["COUNTED"]:
        assert len(re.findall(rf"\d+{re.escape(words[language])}", text)) == 1, words


def test_the_readme_counts_the_rows_that_validate_has():
    document = builtins(validate(read([ROOT / "validation" / "params.yaml"])))
    (full,) = [entry for entry in document["summary"] if entry["completeness"] == "full" and entry["source"] == "all"]
    assert full["covered"] == full["rows"] and full["mean_abs"] < 5e-5
    assert f"{full['covered']} of {full['rows']} rows" in README


@pytest.mark.parametrize(
    "page",
    [README, (ROOT / "pyproject.toml").read_text(), FIRST_WORDS, tonnage.__doc__],
    ids=["readme", "package", "help", "module"],
)
def test_no_first_sentence_claims_what_is_not_answered_yet(page):
    claim = page[: page.index("Every number") if "Every number" in page else 1500]
    assert not re.search(r"web page|\bMCP\b", claim)


@pytest.mark.parametrize("path", WRITTEN["PAGES"], ids=lambda path: path.stem)
def test_what_pages_show_is_what_the_commands_print(path, capsys, monkeypatch):
    text = path.read_text()
    statuses = []

    def run(words):
        statuses.append((words, main(words)))

    monkeypatch.setitem(WRITTEN["printed"].__globals__, "main", run)
    assert WRITTEN["refreshed"](text) == text, "run `make docs`"
    assert [words for words, _ in statuses] == [WRITTEN["words"](command) for command in commands_with_output(text)]
    assert {status for _, status in statuses} <= {0, 3}
    assert all(line.startswith("note: read --") for line in capsys.readouterr().err.splitlines())


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_page_that_the_readme_links(verb):
    page = ROOT / "docs" / "commands" / f"{verb}.md"
    assert page.read_text().startswith(f"# tonnage {verb}\n")
    assert f"docs/commands/{verb}.md" in README


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_documentation_works(command, capsys, monkeypatch):
    """Those that ask the Hub are only read; those whose output a page shows run above; others run without a network."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(ROOT)
    words = WRITTEN["words"](command)
    parser = Parser(prog=f"tonnage {words[0]}")
    module = import_module(f"tonnage.cli.{words[0]}")
    if hasattr(module, "mode"):  # what is asked decides which options there are
        module = module.mode(words[1:]) or module
    module.add_arguments(parser)
    parser.parse_args(words[1:])
    if command not in SHOWN and not any(WRITTEN[mark] in command for mark in ("ASKS", "NEEDS", "SERVES", "WRITES")):
        assert main(words) in (0, 3)
        assert not capsys.readouterr().err


def test_what_newcomers_are_told_to_try_first_fits():
    tried = re.findall(r"^  (tonnage (?:train|serve|rules) [^V\n].*)$", FIRST_WORDS, flags=re.M)
    assert len(tried) >= 2
    assert {command: main(WRITTEN["words"](command)) for command in tried} == dict.fromkeys(tried, 0)


def test_what_the_readme_says_fits_does_fit():
    assert main(WRITTEN["words"](next(command for command in COMMANDS if "deepseek-v3" in command))) == 0


def test_the_python_of_the_readme_runs():
    (example,) = re.findall(r"(?<=```python\n).*?(?=```)", README, flags=re.S)
    names: dict = {}
    exec(example, names)
    assert names["answer"].fits


def test_the_make_targets_of_the_readme_exist():
    targets = re.findall(r"^([a-z ]+):", (ROOT / "Makefile").read_text(), flags=re.M)
    known = {word for target in targets for word in target.split()}
    assert set(re.findall(r"(?:`|\$ )make ([a-z]+)", README)) <= known


@pytest.mark.parametrize("text", [README, FIRST_WORDS], ids=["readme", "help"])
def test_the_statuses_are_said(text, capsys):
    said = text if text is README else main(["--help"]) or capsys.readouterr().out
    for status, meaning in STATUSES.items():
        assert str(status) in said and meaning in said


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_a_verb_says_its_statuses(verb, capsys):
    main([verb, "--help-all"])
    said = capsys.readouterr().out
    assert STATUSES[64] in said
    assert (STATUSES[2] in said) == (verb in ("train", "serve", "plan", "compare", "max"))


@pytest.mark.parametrize(
    "form", [TrainingOptions, RunOptions, BillOptions, ServingOptions, LoadOptions, ServingPlanOptions]
)
def test_options_are_described_with_unit_and_default_where_they_are_held(form):
    options = options_of(form)
    listed = re.findall(r"- (\w+) \[([^\]]+)\]: (.+)", form.__doc__)
    assert [(name, unit) for name, unit, _ in listed] == [(option.name, option.unit or "switch") for option in options]
    assert {name for name, _, _ in listed} == set(form.__struct_fields__) - {"reserve_bytes"}  # an argument of its own
    for option, (name, _, said) in zip(options, listed, strict=True):
        assert said.partition(" (default: ")[2].removesuffix(")") == option.default, name


def test_the_help_of_train_leads_to_all_its_options():
    named = re.findall(r"help\(tonnage\.(\w+)\)", tonnage.train.__doc__)
    assert [getattr(tonnage, name) for name in named] == [TrainingOptions, RunOptions, BillOptions]
    for name, said in re.findall(r"help\(tonnage\.(\w+)\): [^:]+: (.+)", tonnage.train.__doc__):
        fields = getattr(tonnage, name).__struct_fields__
        assert all(word in fields for word in re.findall(r"\w+_\w+", said))
    assert "sequence_length [tokens]" in pydoc.render_doc(TrainingOptions)
    for kind in (TrainingOptions, RunOptions, BillOptions):  # each is an argument that train takes
        name = kind.__struct_fields__[0]
        with pytest.raises(tonnage.TonnageError, match=f"{name} takes"):
            tonnage.train("llama-3.1-8b", on="8xH100-SXM-80GB", **{name: []})


def test_the_help_of_serve_leads_to_all_its_options():
    named = re.findall(r"help\(tonnage\.(\w+)\)", tonnage.serve.__doc__)
    assert [getattr(tonnage, name) for name in named] == [ServingOptions, LoadOptions, BillOptions]
    for name, said in re.findall(r"help\(tonnage\.(\w+)\): [^:]+: (.+)", tonnage.serve.__doc__):
        fields = getattr(tonnage, name).__struct_fields__
        assert all(word in fields for word in re.findall(r"\w+_\w+", said))
    for kind in (ServingOptions, LoadOptions, BillOptions):
        name = kind.__struct_fields__[0]
        with pytest.raises(tonnage.TonnageError, match=f"{name} takes"):
            tonnage.serve("llama-3.1-8b", on="8xH100-SXM-80GB", **{name: []})
    assert {option.name for option in MONEY} - {option.name for option in SERVED} == {*OF_TRAINING}


def test_links_of_the_documents_lead_somewhere():
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert "://" in target or (page.parent / target).exists(), f"{page}: {target}"


DECISIONS = sorted((ROOT / "docs" / "decisions").glob("0*.md"))


def test_every_decision_has_a_number_of_its_own_and_a_status_of_a_known_form():
    for path in DECISIONS:
        text = path.read_text()
        assert re.match(rf"# *0*{int(path.name[:4])}[.:]? ", text), path.name
        for status in re.findall(r"(?m)^Status: (.*)$", text):  # without one it is accepted
            assert re.match(r"(accepted|superseded by \d{4})\b", status), path.name
    assert len({path.name[:4] for path in DECISIONS}) == len(DECISIONS)


def test_files_of_the_source_that_contributing_names_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    roots = (ROOT, ROOT / "src", ROOT / "src" / "tonnage", ROOT / "src" / "tonnage" / "architectures")
    examples = {"rtx-4060-8gb.toml", "pelican.py", "heron.py", "osprey.py", "NAME.py"}
    named = set(re.findall(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|toml))(?::[\w.]+)?`", text))
    missing = [name for name in named if not any((root / name).exists() for root in roots)]
    assert {name.rpartition("/")[2] for name in missing} <= examples
