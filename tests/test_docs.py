"""The documentation says what the code does."""

import pydoc
import re
import runpy
from importlib import import_module
from pathlib import Path

import pytest

import tonnage
from tonnage.cli import FIRST_WORDS, STATUSES, VERBS, main, spelled
from tonnage.cli.common.parser import Parser
from tonnage.documents.document import builtins
from tonnage.estimate.load.options import LoadOptions
from tonnage.estimate.money.bill import BillOptions
from tonnage.estimate.options.run_options import RunOptions
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.serving.options import ServingOptions
from tonnage.question.option import options_of
from tonnage.question.subjects.money import MONEY, OF_TRAINING, SERVED
from tonnage.question.subjects.serving import OF_LOAD
from tonnage.search.serving.options import ServingPlanOptions
from tonnage.validation import read, validate

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
ALL_COMMANDS = (ROOT / "docs" / "commands" / "README.md").read_text()
WRITTEN = runpy.run_path(str(ROOT / "scripts" / "write_docs.py"))
COMMANDS = list(
    dict.fromkeys(command for path in WRITTEN["PAGES"] for command in WRITTEN["commands"](path.read_text()))
)


def commands_with_output(text):
    """The commands of a page whose output it shows."""
    blocks = re.findall(r"(?<=```console\n).*?(?=```)", text, flags=re.S)
    parts = [part.splitlines() for block in blocks for part in re.split(r"(?m)^(?=\$ )", block) if part]
    return [prompt[2:] for prompt, *output in parts if any(output) and prompt.startswith("$ tonnage")]


SHOWN = {command for path in WRITTEN["PAGES"] for command in commands_with_output(path.read_text())}


def test_the_page_of_formulas_is_generated_from_the_code():
    assert (ROOT / "docs" / "formulas.md").read_text() == WRITTEN["page"](), "run `make docs`"


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", WRITTEN["CHINESE"], WRITTEN["COVERAGE"]], ids=lambda path: path.name
)
def test_what_pages_count_is_there(path):
    assert WRITTEN["counted"](path) == path.read_text(), "run `make docs`"
    for words, _ in WRITTEN["counts_of"](path):
        assert len(re.findall(rf"\d+{re.escape(words)}", path.read_text())) == 1, words


def test_the_readme_says_how_exact_parameters_are_as_validate_does():
    document = builtins(validate(read([ROOT / "validation" / "params.yaml"])))
    (full,) = [entry for entry in document["summary"] if entry["completeness"] == "full" and entry["source"] == "all"]
    assert full["covered"] == full["rows"] and full["mean_abs"] < 5e-5
    assert f"| parameters of a model | {full['rows']} | exact | exact |" in README


@pytest.mark.parametrize("path", [ROOT / "README.md", WRITTEN["CHINESE"]], ids=lambda path: path.name)
def test_the_readmes_are_two_screens(path):
    """Two of 45 lines, pictures aside."""
    assert len(path.read_text().splitlines()) <= 90


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
    unsure = {4} if path.parent.name == "tools" else set()  # a tool's page shows what is not understood
    assert {status for _, status in statuses} <= {0, 2, 3} | unsure
    said = capsys.readouterr().err.splitlines()
    assert all(line.startswith(("note: read --", "note: the file has no place for")) for line in said)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_page_that_the_page_of_commands_links(verb):
    page = ROOT / "docs" / "commands" / f"{verb}.md"
    assert page.read_text().startswith(f"# tonnage {verb}\n")
    assert f"]({verb}.md)" in ALL_COMMANDS
    assert "(docs/commands/README.md)" in README


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
    parser.parse_args(spelled(words[0], words[1:]))
    if command not in SHOWN and not WRITTEN["is_marked"](command):
        assert main(words) in (0, 2, 3)
        assert not capsys.readouterr().err


FOR_NEWCOMERS = [
    path for path in WRITTEN["PAGES"] if path.parent.name in ("tonnage", "docs", "how_to", "tools", "explanation")
]
NAMED = {
    command: path.name
    for path in (*FOR_NEWCOMERS, ROOT / "README.md", WRITTEN["CHINESE"])
    for command in re.findall(r"`(tonnage [a-z][^`.]*)`", path.read_text())
}


@pytest.mark.parametrize("command", NAMED)
def test_a_command_named_in_a_sentence_is_one(command):
    words = WRITTEN["words"](command)
    assert words[0] in VERBS, NAMED[command]
    parser = Parser(prog=f"tonnage {words[0]}")
    import_module(f"tonnage.cli.{words[0]}").add_arguments(parser)
    if len(words) > 1:
        parser.parse_args(spelled(words[0], words[1:]))


def test_what_newcomers_are_told_to_try_first_fits():
    tried = re.findall(r"^  (tonnage (?:train|serve|rules) [^V\n].*)$", FIRST_WORDS, flags=re.M)
    assert len(tried) >= 2
    assert {command: main(WRITTEN["words"](command)) for command in tried} == dict.fromkeys(tried, 0)


def test_the_largest_run_of_the_documentation_fits():
    assert main(WRITTEN["words"](next(command for command in COMMANDS if "deepseek-v3" in command))) == 0


def python_blocks(path):
    return re.findall(r"(?<=```python\n).*?(?=```)", path.read_text(), flags=re.S)


READ_FIRST = ("README.md", "README.zh.md", "docs/index.md", "docs/tutorial.md")
PROGRAMS = {
    f"{path.relative_to(ROOT)}, {number}": program
    for path in (*(ROOT / name for name in READ_FIRST), *sorted((ROOT / "docs" / "how_to").glob("*.md")))
    for number, program in enumerate(python_blocks(path), 1)
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_programs_of_the_documentation_run(name):
    names: dict = {}
    exec(PROGRAMS[name], names)
    assert names["answer"].fits if "answer" in names else names["tonnage"] is tonnage


def test_the_readmes_and_the_how_tos_show_programs():
    assert {"README.md, 1", "README.zh.md, 1", "docs/tutorial.md, 1", "docs/how_to/check_in_ci.md, 1"} <= set(PROGRAMS)


def test_ci_runs_what_the_readme_names_for_testing_and_lint_and_types():
    """The targets of its block, of which the demo is a part of what `make dist` tries."""
    shown = re.findall(r"^\$ make ([a-z]+) ", README, flags=re.M)
    (run,) = re.findall(r"^make (.*)$", (ROOT / ".ci" / "run").read_text(), flags=re.M)
    assert set(run.split()) == {*shown, "lint", "types"} - {"demo"}
    assert "demo" in shown


def test_the_make_targets_of_the_readme_exist():
    targets = re.findall(r"^([a-z ]+):", (ROOT / "Makefile").read_text(), flags=re.M)
    known = {word for target in targets for word in target.split()}
    assert set(re.findall(r"(?:`|\$ )make ([a-z]+)", README)) <= known


@pytest.mark.parametrize("text", [ALL_COMMANDS, FIRST_WORDS], ids=["commands", "help"])
def test_the_statuses_are_said(text, capsys):
    said = text if text is ALL_COMMANDS else main(["--help"]) or capsys.readouterr().out
    for status, meaning in STATUSES.items():
        assert str(status) in said and meaning in said


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_a_verb_says_its_statuses(verb, capsys):
    main([verb, "--help-all"])
    said = capsys.readouterr().out
    assert STATUSES[64] in said
    assert (STATUSES[2] in said) == (verb in ("train", "serve", "plan", "compare", "max", "check"))


@pytest.mark.parametrize(
    "form", [TrainingOptions, RunOptions, BillOptions, ServingOptions, LoadOptions, ServingPlanOptions]
)
def test_options_are_described_with_unit_and_default_where_they_are_held(form):
    options = options_of(form)
    listed = re.findall(r"- (\w+) \[([^\]]+)\]: (.+)", form.__doc__)
    assert [(name, unit) for name, unit, _ in listed] == [(option.name, option.unit or "switch") for option in options]
    assert {name for name, _, _ in listed} == set(form.__struct_fields__) - {
        "reserve_bytes",
        *OF_LOAD,
    }  # an argument of its own
    for option, (name, _, said) in zip(options, listed, strict=True):
        assert said.partition(" (default: ")[2].removesuffix(")") == option.default, name


def test_the_help_of_train_leads_to_all_its_options():
    assert '`print(tonnage.options("train"))`' in tonnage.train.__doc__
    fields = [name for kind in (TrainingOptions, RunOptions, BillOptions) for name in kind.__struct_fields__]
    listed = {each.name for each in tonnage.options("train").listed}
    assert listed == {*fields}
    named = re.findall(r"(?m)^      (\w+)(?: \[[^]]+\])?: ", tonnage.train.__doc__)
    assert len(named) > 15 and {*named} <= listed
    assert "sequence_length [tokens]" in pydoc.render_doc(TrainingOptions)
    for kind in (TrainingOptions, RunOptions, BillOptions):  # each is an argument that train takes
        name = kind.__struct_fields__[0]
        with pytest.raises(tonnage.TonnageError, match=f"{name} takes"):
            tonnage.train("llama-3.1-8b", on="8xH100-SXM-80GB", **{name: []})


def test_the_help_of_serve_leads_to_all_its_options():
    assert '`print(tonnage.options("serve"))`' in tonnage.serve.__doc__
    fields = [name for kind in (ServingOptions, LoadOptions, BillOptions) for name in kind.__struct_fields__]
    listed = {each.name for each in tonnage.options("serve").listed}
    assert listed == {*fields} - {*OF_TRAINING, "reserve_bytes", *OF_LOAD}
    named = re.findall(r"(?m)^      (\w+)(?: \[[^]]+\])?: ", tonnage.serve.__doc__)
    assert len(named) > 15 and {*named} <= listed
    for kind in (ServingOptions, LoadOptions, BillOptions):
        name = kind.__struct_fields__[0]
        with pytest.raises(tonnage.TonnageError, match=f"{name} takes"):
            tonnage.serve("llama-3.1-8b", on="8xH100-SXM-80GB", **{name: []})
    assert {option.name for option in MONEY} - {option.name for option in SERVED} == {*OF_TRAINING}


def anchors_of(page):
    """What links may lead to inside a page, as GitHub names its headings."""
    headings = re.findall(r"(?m)^#+ (.*)$", re.sub(r"(?s)```.*?```", "", page.read_text()))
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def test_links_and_anchors_of_the_documents_lead_somewhere():
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"(?s)```.*?```", "", page.read_text())):
            target, _, anchor = link.partition("#")
            if "://" in target:
                continue
            there = page.parent / target if target else page
            assert there.exists(), f"{page}: {link}"
            assert not anchor or there.suffix != ".md" or anchor in anchors_of(there), f"{page}: {link}"


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
    examples = {"rtx-3070-ti-laptop.toml", "pelican.py", "heron.py", "osprey.py", "egret.py", "NAME.py"}
    named = set(re.findall(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|toml))(?::[\w.]+)?`", text))
    missing = [name for name in named if not any((root / name).exists() for root in roots)]
    assert {name.rpartition("/")[2] for name in missing} <= examples
