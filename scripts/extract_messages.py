"""Collects every English text that Python makes and a face shows, and keeps the catalogues of its Chinese up to date.

    python scripts/extract_messages.py            # writes messages.po and help.po, keeps what is translated
    python scripts/extract_messages.py --check    # says what is missing or gone, status 1 if anything is

The estimators know nothing of languages: they make English, a text with values as a Message. What is collected are
the templates of Messages and texts that stand whole in the code, in the catalogue's files and in flags.toml; an
f-string has no template, and is no text that a face can put into another language.
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Catalog
from msgspec import convert

import write_locale
from tonnage.kernel.units import _SCALES
from tonnage.question.verbs import FORMS, forms_of

ROOT = Path(__file__).parent.parent
CODE = ROOT / "src" / "tonnage"
CATALOGUES = CODE / "language" / "zh" / "LC_MESSAGES"
# What only developers see, what a face says in words of its own, and what is copied to a shell.
LEFT_OUT = (
    "render",
    "language",
    "mcp_server",
    "report",
    "kernel/references.py",
    "kernel/term.py",
    "cli/common/completion.py",
    "estimate/site/tables.py",
    "search/training/launch/trl.py",
    "question/option.py",
    "documents/schema.py",
    # what other tools write in their logs, and their flags
    "interchange/diagnose/readers",
    "interchange/diagnose/phases.py",
    "interchange/diagnose/tools.py",
    "interchange/diagnose/run_command.py",
    "interchange/diagnose/fixes/flags.py",
    "interchange/logs",
    # what is written for other tools, which is in English in every language
    "interchange/parts/jobs",
    "interchange/parts/engines/dynamo_writing.py",
    "interchange/parts/engines/writing.py",
    "interchange/parts/openrlhf/write.py",
    "interchange/parts/verl/write.py",
    "formulas/__init__.py",
    "catalogue/skypilot",
    # of OpenAPI, whose language is English, of data bases, and headers
    "web/schema/openapi.py",
    "web/schema/jobs_and_saved.py",
    "web/schema/operations.py",
    "web/schema/options.py",
    "web/schema/documents.py",
    "web/jobs/documents.py",
    "web/jobs/routes.py",
    "web/store/documents.py",
    "web/store/routes.py",
    "web/jobs/board.py",
    "web/store/tables.py",
    "web/store/migrations.py",
    "web/store/backup.py",
    "web/store/figures.py",
    "web/listings.py",
    "web/questions.py",
    "web/timeline.py",
    "web/metrics.py",
    "web/app.py",
    "web/static/page.py",
    "web/static/browser.py",
    "web/palette.py",
    "web/process/run.py",
    # why a published row is not compared, which its readers follow to the row
    *(f"validation/{name}.py" for name in ("collectives", "quantities", "serving", "training")),
    # a program that asks what PyTorch can do, and what PyTorch says itself
    "trace/record/fake/guard.py",
    "trace/allocator/_message.py",
)
UNIT = re.compile(r"[a-z][a-z -]+")  # of an option, that is a word
# Texts of the command line.
HELP = (
    "cli/",
    "verbs/",
    "spelling/",
    "question/form.py",
    "question/forms.py",
    "question/verbs.py",
    "question/subjects/model.py",
)
WITH_ERRORS = ("render/", "web/")  # of these, what is left out has errors that a person reads
SOURCES = frozenset({"source", "sources", "as_of", "version", "url", "prog", "metavar", "dest", "action"})
SAID = frozenset({"say", "sentence", "_", "formatted", "add_parser"})  # texts of the program, which words.po has
# Errors that take the values of their message's template as keywords.
ERRORS = frozenset({"InvalidInput", "InvalidPlan", "Lost", "MissingDatum", "Unreachable", "UnknownName"})
INSIDE = frozenset(
    {
        "TypeError",
        "KeyError",
        "AssertionError",
        "NotImplementedError",
        "RuntimeError",
        "compile",
        "re.compile",
        "re.sub",
        "warn_explicit",
    }
)
# What other tools' names and commands are written with, several in one text.
NAME_LISTS = frozenset({"names", "_names", "_starts", "words_in"})
# The first argument of these is the name of a term; the second of the last ones is a unit.
NAMING = re.compile(
    r"(^|\.)(of|sum|max|product|ratio|by|named|by_rule|term|copies|_unit|_narrow|_swap)$|^[a-z_]*(term|copies)$"
)
# A place in a source document, which has no name: as the page says it, and whole.
OF_DOCUMENT = re.compile(r"(Document[A-E], ([a-z][^;\"]+))")
FACTS = frozenset({"note", "what", "counts", "topology"})  # of the catalogue
# What no call shows to be said: words that are put together, and names of one word that pass through a variable.
VALUES = frozenset({"none", "full", "auto"})  # of options: they are written as they are in every language
PUT_TOGETHER = (
    "{block}s",
    "for parameters",
    "for pairs of tokens",
    "at experts",
    "for a tile of tokens",
    # of argparse, as the command line's parser reads them
    "argument {argument_name}: {message}",
    "expected one argument",
    "expected at least one argument",
    "ignored explicit argument {value!r}",
    "not allowed with argument {value}",
    "invalid choice: {value!r} (choose from {choices})",
    "one of the arguments {value} is required",
    "the following arguments are required: {value}",
    "loss",
    "embedding",
    "load",
    "attention",
    "backward",
    "biases",
    "matrices",
    "GEMMs",
    "scheduler",
    "prefill",
    "fixed",
    "engine",
    "gate",
    "memory",
    "compute",
    "communication",
    "machine",
    "workload",
    "numerics",
    "usual",
    "Initial",
    "After forward",
    "After loss",
    "After backward",
    "After optimizer step",
    "as measured",
    "today's defaults",
    # programs of the recordings in trace/data
    "tonnage/trace/programs/linear_relu.py:program, as measured",
    "tonnage/trace/programs/linear_relu.py:program, today's defaults",
    "tonnage/trace/programs/linear_relu.py:program, today's defaults on Hopper",
    "tonnage/trace/programs/linear_relu.py:program, in 16 bits",
    "optimal parameters for the same compute",
    "optimal tokens for the same compute",
    "decoder layers",
    "encoder layers",
    "No such file or directory",
    "Permission denied",
    "Is a directory",
    "Not a directory",
    "language",
    "Address already in use",
    "Cannot assign requested address",
    "decoder",
    "encoder",
    "tower",
    "draft",
)
# Functions that write what is copied to a shell; the others are of runtimes/parts/engine_tools.py.
COPIED = frozenset({"launch", "_aphrodite", "_ik_llama", "_koboldcpp", "_llamafile", "_lm_studio", "_omlx", "_webui"})
STORED = frozenset(
    {"Saved", "norm_saved", "inner_saved", "Core", "TokenCache", "StateCache", "Exchange", "Scale"}
)  # named by their first
COUNTING = frozenset({"counted", "human"})
# `Formula, page 3`, `vLLM, vllm/config.py: x`: a citation is not translated.
CITATION = re.compile(
    r"[\w)]/[\w.-]+\.(py|cpp|cu|cuh|h|hpp|md|csv|rst|json|ts|go|yaml|txt|html)\b|https?://|^[A-Z][\w.-]+ "
    r"?[\w.-]*, [\w./-]+/[\w./-]+|^[A-Z]\w*\d{4}\w*[,;]|^[\w-]+, \w+\.py"
)
COMMAND = re.compile(
    r"^(-|srun |torchrun |python |vllm |export |cat |FROM |SELECT |PARAMETER |ADAPTER |transformers "
    r"serve|#)|[=|]\{|\\[dwsb]|\(\?|^aliases = |^bold \w+$|^<\w+ "
)
PROSE = re.compile(r"^-.* [a-z]+ [a-z]+( [a-z]+)*[.: ]")
NAMES = re.compile(r"(?=(.*_){3})(\w+ ){9,}\w+")  # a table of names, with blanks between
PLACE = re.compile(r"\{\w+[^{}]*\}")
WORD = re.compile(r"[A-Za-z][a-z]")

Found = dict[str, set[str]]  # template -> files that make it


def alternatives(node: ast.AST) -> list[str]:
    """The whole texts that an expression may be."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.IfExp):
        return list(dict.fromkeys([*alternatives(node.body), *alternatives(node.orelse)]))
    return []


def is_said(text: str) -> bool:
    """Whether a text has words that can be translated: more than a name, a command or a citation."""
    bare = text.strip()
    return (
        " " in bare
        and len(WORD.findall(bare)) > 0
        and sum(letter.isalpha() for letter in bare) > 3
        and (not COMMAND.search(bare) or bool(PROSE.search(bare)))
        and (not CITATION.search(bare) or bool(re.match(r"[a-z]+ [a-z]", bare)))
        and not NAMES.fullmatch(bare)
        and bool(re.search(r"(^|[^\w.\-/])[a-z]{2,}($|[^\w/=\-(])", bare))
    )


class Reader(ast.NodeVisitor):
    """What one file says. `said` gets whole sentences and names; programming errors, docstrings and citations are
    passed over.
    """

    def __init__(self) -> None:
        self.said: list[str] = []

    def keep(self, text: str, *, alone: bool = False) -> None:
        """`alone`: one word is enough, because of where it stands."""
        for line in [text] if "\n" not in text.strip() else text.split("\n"):
            if is_said(line) or (
                alone and line not in VALUES and WORD.search(line) and re.fullmatch(r"[a-zA-Z][\w,' /.-]*", line)
            ):
                self.said.append(line.strip().replace("\t", " "))

    def template(self, text: str) -> None:
        """A template with named places: said where anything but signs is between them."""
        if re.search("[A-Za-z]{2}", PLACE.sub("", text)):
            self.said.append(text.strip())

    def generic_visit(self, node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            self.visit(child)

    def text(self, node: ast.AST, *, alone: bool = False) -> None:
        """A text that is said where it stands; in what is none, the texts within are looked for."""
        found = alternatives(node)
        for each in found:
            self.keep(each, alone=alone)
        if not found:
            self.visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self.keep(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                self.visit(part.value)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self.generic_visit(node)

    def visit_arguments(self, node: ast.arguments) -> None:
        for default in [*node.defaults, *node.kw_defaults]:
            if default is not None:
                self.visit(default)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        if "FIRST_WORDS" not in names:  # which is said as a whole
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name in COPIED:
            return
        for decorator in node.decorator_list:
            if (
                isinstance(decorator, ast.Call)
                and isinstance(decorator.func, ast.Name)
                and decorator.func.id == "formula"
            ):
                self.formula(node, decorator)
            else:
                self.visit(decorator)
        self.visit(node.args)
        for part in node.body:
            self.visit(part)

    def formula(self, node: ast.FunctionDef, decorator: ast.Call) -> None:
        summary = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
        self.said.append(summary)
        for keyword in decorator.keywords:
            if keyword.arg in ("assumes", "unit"):
                self.text(keyword.value, alone=True)

    def visit_Call(self, node: ast.Call) -> None:
        called = ast.unparse(node.func)
        if called == "Message" or (called in ERRORS and node.keywords):
            for template in alternatives(node.args[0]):
                self.template(template)
            for keyword in node.keywords:
                self.visit(keyword.value)
            return
        if called in INSIDE or called in SAID or called in ("Option", "option", "Group"):  # options say it: declared()
            return
        is_split = isinstance(node.func, ast.Attribute) and node.func.attr == "split"
        if called in NAME_LISTS or (is_split and isinstance(node.func.value, ast.Constant)):
            return
        if NAMING.search(called) and node.args and alternatives(node.args[0]):
            self.text(node.args[0], alone=True)
        if called.endswith((".product", ".ratio")) and len(node.args) > 1 and alternatives(node.args[1]):
            self.text(node.args[1], alone=True)
        if called in COUNTING and len(node.args) > 1:
            self.text(node.args[1], alone=True)
            if called == "counted" or not set(alternatives(node.args[1])) & {*_SCALES, "USD"}:
                self.said += [f"{{n}} {text}" for text in alternatives(node.args[1])]
        if called.endswith(("q.take", "q.put")):
            for part in node.args[4:]:  # why
                self.text(part, alone=True)
        if called in ("Symbol", "rule") and len(node.args) > 2:
            self.text(node.args[1 if called == "rule" else 2], alone=True)
        if called in STORED and node.args:
            self.text(node.args[0], alone=True)
        if called.endswith(("unknown", "Registry")) and node.args and alternatives(node.args[0]):
            self.text(node.args[0], alone=True)
        self.visit(node.func)
        for part in node.args:
            self.visit(part)
        for keyword in node.keywords:
            if keyword.arg in SOURCES and not _has_message(keyword.value):
                continue
            if keyword.arg in (
                "unit",
                "name",
                "why",
                "note",
                "help",
                "default",
                "erratum",
                "procedure",
            ) and alternatives(keyword.value):
                self.text(keyword.value, alone=keyword.arg in ("unit", "procedure"))
            else:
                self.visit(keyword.value)


def _has_message(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Call) and ast.unparse(part.func) == "Message" for part in ast.walk(node))


class HelpReader(Reader):
    """What the command line says of itself: help, units and defaults of options, verbs, statuses, and its errors;
    not what it prints.
    """

    def visit_Call(self, node: ast.Call) -> None:
        called = ast.unparse(node.func)
        if called in ("Option", "option"):
            for keyword in node.keywords:
                if keyword.arg in ("help", "unit", "default") and alternatives(keyword.value):
                    self.text(keyword.value, alone=keyword.arg == "unit")
            for part in node.args:
                self.visit(part)
            return
        if called in ("write", "print", "print_lines", "table", *SAID):
            return
        super().visit_Call(node)


class RaisedReader(ast.NodeVisitor):
    """Errors alone, of code whose other texts are in a language of their own: what stands behind `raise`, or is
    named NEEDS_... for it.
    """

    def __init__(self) -> None:
        self.said: list[str] = []

    def visit(self, node: ast.AST) -> None:
        needs = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).startswith("NEEDS_")
        if needs or isinstance(node, ast.Raise):
            reader = Reader()
            reader.visit(node)
            self.said += reader.said
        else:
            self.generic_visit(node)


def is_left_out(path: str) -> bool:
    return any(path == each or path.startswith(f"{each}/") for each in LEFT_OUT)


def read(path: Path) -> list[str]:
    if is_left_out(path.relative_to(CODE).as_posix()):
        errors = RaisedReader()
        errors.visit(ast.parse(path.read_text(encoding="utf-8")))
        return errors.said
    reader = HelpReader() if path.relative_to(CODE).as_posix().startswith(HELP) else Reader()
    reader.visit(ast.parse(path.read_text(encoding="utf-8")))
    return reader.said


def flags() -> list[str]:
    """What is said of options of other tools."""
    import tomllib

    tools = tomllib.loads((CODE / "spelling" / "flags.toml").read_text(encoding="utf-8"))["tool"]
    from tonnage.spelling import NOTHING, Tool, instead

    texts = [NOTHING]
    for tool in (convert(each, Tool) for each in tools):
        tables = (tool.differs, tool.reads, tool.values, tool.model)
        texts += [instead(tool, theirs) for table in tables for theirs in table]
    return [
        f"{{flag}} of {{names}} {text}" if text[0].islower() else text for text in texts
    ]  # as tonnage.spelling does


def declared() -> Iterator[tuple[str, str]]:
    """What the options of questions say of themselves, and the titles of their groups; and where they are declared."""
    words = {each.id for each in write_locale.read(CATALOGUES / "words.po")}
    for verb in FORMS:
        for form in forms_of(verb):
            for group in form.groups:
                shown = [each.usual for each in group.options if each.usual]
                brief = (text for each in shown for text in (each.help, each.default or ""))
                texts = (group.title, *brief, *(text for each in group.options for text in (each.help, each.default)))
                units = (each.unit for each in group.options if UNIT.fullmatch(each.unit) or is_said(each.unit))
                said = [*filter(is_said, texts), *units]
                yield from ((text, "question/subjects") for text in said if text not in words)
    for path in (CODE / "question").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "ranged" and alternatives(node.args[1]):
                yield from ((text, "question") for text in alternatives(node.args[1]))


def facts() -> Iterator[tuple[str, str]]:
    """What the catalogue says in words, and where."""
    import tomllib

    for path in sorted((CODE / "catalogue").glob("*/*.toml")):
        where = path.relative_to(CODE).as_posix()
        yield from (
            (text, f"{where.rpartition('/')[0]}/*.toml") for text in _said(tomllib.loads(path.read_text("utf-8")))
        )


def _said(part: object, name: str = "") -> Iterator[str]:
    if isinstance(part, dict):
        for key, value in part.items():
            # each fact of a table of reasons has its own name, and an offer's has none beside
            yield from _said(value, "why" if "why" in (key, name) else key)
    elif isinstance(part, list):
        for value in part:
            yield from _said(value, name)
    elif isinstance(part, str) and name == "why":
        if is_said(part):
            yield part
    elif isinstance(part, str) and name in FACTS and (name == "counts" or is_said(part)):
        yield part


def paths(*, everything: bool = False) -> Iterator[tuple[str, Path]]:
    for path in sorted(CODE.rglob("*.py")):
        name = path.relative_to(CODE).as_posix()
        if everything or name.startswith(WITH_ERRORS) or not is_left_out(name):
            yield name, path


def extracted() -> dict[str, Found]:
    """Templates by catalogue and then by text, with the files that make them."""
    found: dict[str, Found] = {"messages": {}, "help": {}}
    for name, path in paths():
        domain = "help" if name.startswith(HELP) else "messages"
        for text in read(path):
            if text:
                found[domain].setdefault(text, set()).add(name)
    for text, where in declared():
        found["help"].setdefault(text, set()).add(where)
    for text, where in facts():
        found["messages"].setdefault(text, set()).add(where)
    for name, path in paths(everything=True):
        for each in OF_DOCUMENT.findall(path.read_text(encoding="utf-8")):
            for text in each:
                found["messages"].setdefault(text, set()).add(name)
    for text in PUT_TOGETHER:
        found["messages"].setdefault(text, set()).add("several places")
    for text in flags():
        found["help"].setdefault(text, set()).add("spelling/flags.toml")
    for text in found["messages"]:
        found["help"].pop(text, None)  # one Chinese for one English
    for each in write_locale.read(CATALOGUES / "words.po"):
        if each.id and each.id.startswith("{n} "):
            found["messages"].pop(each.id, None)
    return found


def write(domain: str, found: Found) -> tuple[int, int]:
    """Bring one catalogue up to date: how many texts are new, and how many are gone and were taken out."""
    path = CATALOGUES / f"{domain}.po"
    before = write_locale.read(path) if path.is_file() else Catalog(locale="zh", domain=domain)
    after = Catalog(locale="zh", domain=domain)
    known = {each.id: each.string for each in before if each.id}
    for text in found:
        after.add(text, known.get(text, ""))
    path.write_bytes(write_locale.laid_out(after))
    return len(found.keys() - known.keys()), len(known.keys() - found.keys())


def differences() -> list[str]:
    """What the code says and the catalogues have not, and the reverse."""
    lines = []
    for domain, found in extracted().items():
        path = CATALOGUES / f"{domain}.po"
        known = {each.id for each in write_locale.read(path) if each.id} if path.is_file() else set()
        lines += [f"{domain}: new in {', '.join(sorted(found[text]))}: {text}" for text in sorted(found.keys() - known)]
        lines += [f"{domain}: gone: {text}" for text in sorted(known - found.keys())]
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        lines = differences()
        print("\n".join(lines))
        return 1 if lines else 0
    for domain, found in extracted().items():
        new, gone = write(domain, found)
        print(f"{domain}: {len(found)} texts, {new} new, {gone} gone")
    return 0


if __name__ == "__main__":
    sys.exit(main())
