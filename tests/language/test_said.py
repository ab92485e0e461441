"""What the command line shows to people goes through say(), worded() or a table that does so; and all of it has
its Chinese.
"""

import argparse
import ast
import re
from pathlib import Path

import pytest

import tonnage
from every_row import every_row
from tonnage.cli import FIRST_WORDS, STATUSES, VERBS, face
from tonnage.language.catalogues import texts

PACKAGE = Path(tonnage.__file__).parent
# Of render: files for other tools are English; a timeline is markup, whose texts test_plots_zh reads.
OTHER = ("timeline.py", "compare_files.py", "tone.py")
TEXTS = (PACKAGE / "render", PACKAGE / "render" / "plans")
FILES = [path for folder in TEXTS for path in sorted(folder.glob("*.py")) if path.name not in OTHER]
CLI = sorted((PACKAGE / "cli").rglob("*.py"))
PROSE = re.compile(r"[A-Za-z]{2,}[,:;]? [A-Za-z]{2,}")
WORD = re.compile(r"[A-Za-z]{3,}")
LETTERS = re.compile(r"[A-Za-z]{3,}|\b[a-z]{2}\b")
SAYING = frozenset(
    {
        "say",
        "sentence",
        "in_error",
        "Option",
        "InvalidInput",
        "MissingDatum",
        "Unreachable",
        "Unwritable",
        "unknown",
        "table_lines",
        "add_argument",
        "add_argument_group",
        "add",
        "human",
        "counted",
        "_cut",
        "import_module",
        "getattr",
        "named",
    }
)
# Functions that make English sentences of a document or an error: they are shown through worded().
ENGLISH = frozenset(
    {
        "about",
        "_document",
        "_option",
        "_text",
        "_nearest",
        "_no_value",
        "assignment",
        "_sentence",
        "error",
        "parse_args",
        "_later",
        "_none",
        "_warnings",
        "_one",
        "_costs",
        "_traced",
        "_recorded",
        "varied",
        "_typed",
        "_needed",
        "_read",
        "_axes",
        "_models",
        "add_arguments",
        "_quoted",
        "describe",
        "spoken",
        "unwritable",
    }
)
# Text that is the same in every language.
FREE = frozenset(
    {
        "dense_tflops.",
        "sparse_tflops.",
        " USD",
        "_tokens",
        "cost_per_million_",
        "tonnage sweep ",
        "tonnage ",
        " --out ",
        "--resume --ray ",
    }
)


def _said_later(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and (node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")) in SAYING
    )


def _shown(node: ast.AST, *, in_text: bool = False):
    """Literal texts of a function that no call looks up."""
    if isinstance(node, ast.Raise | ast.Compare) or _said_later(node):
        if isinstance(node, ast.Call):
            for part in [*node.args, *(each.value for each in node.keywords)]:
                if not isinstance(part, ast.Constant | ast.JoinedStr | ast.Tuple):
                    yield from _shown(part)
        return
    if isinstance(node, ast.Subscript):
        yield from _shown(node.value)
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if isinstance(node, ast.Assign) and any(
        isinstance(each, ast.Name) and each.id == "header" for each in node.targets
    ):
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if (LETTERS if in_text else PROSE).search(node.value):
            yield node.value
        return
    for child in ast.iter_child_nodes(node):
        yield from _shown(child, in_text=isinstance(node, ast.JoinedStr) and isinstance(child, ast.Constant))


def _functions(path: Path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef) and not (path in CLI and node.name in ENGLISH):
            yield node


@every_row("path", [*FILES, *CLI], ids=lambda path: f"{path.parent.name}/{path.name}", at_least=50)
def test_text_for_people_goes_through_say(path):
    bare = {text for function in _functions(path) for part in function.body for text in _shown(part)}
    assert bare - FREE == set()


def test_the_reader_of_the_code_finds_text_that_is_not_looked_up():
    bare = """def f(x):
    return f"needs {x} of it", say("needs {x}", x=x), "two words", x["needed_bytes"]"""
    (function,) = ast.parse(bare).body
    assert [text for part in function.body for text in _shown(part)] == ["needs ", " of it", "two words"]


def _literals(name: str):
    """Texts that are looked up by the letter."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == name
                and node.args
                and isinstance(node.args[0], ast.Constant)
            ):
                yield node.args[0].value


EXAMPLES = {"needs {size}"}  # of docstrings


def test_every_text_that_is_said_has_its_chinese():
    assert {text for text in _literals("say") if WORD.search(re.sub(r"\{\w+\}", "", text))} - set(
        texts("zh")
    ) - EXAMPLES == {"MFU {mfu} %"} - set(texts("zh"))


def test_every_word_of_a_table_of_the_renderers_has_its_chinese():
    """Constants whose values are said where they are used."""
    from tonnage.render import maximum, serving, sweep, text
    from tonnage.render.brief import bar, plan_training
    from tonnage.render.brief import maximum as brief_maximum
    from tonnage.render.brief import training as brief_training
    from tonnage.render.brief import words as brief_words
    from tonnage.render.compare import SAID
    from tonnage.render.plans import pool
    from tonnage.render.plans import serving as plan_serving

    words = {
        *text.TOGETHER.values(),
        text.SUM,
        *SAID.values(),
        *maximum.BINDS.values(),
        *(name for _, name in maximum.SPEEDS),
        *plan_serving.HEADER,
        *plan_training.BEST.values(),
        *(part.label for part in bar.PARTS),
        *brief_maximum.LIMITS.values(),
        *brief_training.METHODS.values(),
        *brief_words.WORKLOADS.values(),
        brief_words.BATCH,
        brief_words.SPEED,
        *(label for label, _ in pool.NAMES.values()),
        *(name for name, _, _ in serving.TIMES),
        *serving.NAMES.values(),
        *serving.WAYS,
        *(head for table in sweep.COLUMNS.values() for head in table.values()),
    }
    short = {"", "tp", "pp", "cp", "ep", "dp", "mbs", "recompute", "ttft"}
    assert words - set(texts("zh")) - short == set()


def test_every_heading_of_a_comparison_has_its_chinese():
    from tonnage.search.compare import columns

    every = [
        column
        for name in dir(columns)
        if isinstance(found := getattr(columns, name), tuple)
        for column in found
        if isinstance(column, columns.Column)
    ]
    said = {text for column in every for text in (column.short, column.about) if WORD.search(text)}
    assert said - set(texts("zh")) - {"MFU"} == set()


def test_the_first_page_of_help_has_its_chinese():
    assert {FIRST_WORDS, *VERBS.values(), *STATUSES.values()} - set(texts("zh")) == set()


FACES = [(verb, ()) for verb in VERBS] + [
    ("plan", ("--serve",)),
    ("plan", ("--inventory", "x")),
    ("max", ("context",)),
    ("max", ("sequence",)),
    ("compare", ("--train",)),
    ("prices", ("--api",)),
    ("prices", ("refresh",)),
]


@pytest.mark.parametrize(
    ("verb", "words"), FACES, ids=lambda value: value if isinstance(value, str) else " ".join(value) or "-"
)
def test_the_frame_of_a_verbs_help_has_its_chinese(verb, words):
    """Headings of groups, and options that stand in no table."""
    from tonnage.language import speaking, worded

    _, parser = face(verb, words)
    known = texts("zh")
    groups = {group.title for group in parser._action_groups if group.title and group._group_actions}
    assert groups - set(known) == set()
    with speaking("zh"):
        assert re.search(r"[\u4e00-\u9fff]", worded(parser.description))
    plain = {
        action.help
        for action in parser._actions
        if isinstance(action, argparse._StoreTrueAction | argparse._HelpAction)
    }
    assert {text for text in plain if text and " " in text} - set(known) == set()
