"""Build the site of the documentation: copies docs/ to a folder, runs the commands whose output its pages show, writes
the pages that the code knows (options by verb, rules of thumb), and lets Zensical make HTML of all of it.

make site
python scripts/build_site.py --out FOLDER
"""

import argparse
import contextlib
import inspect
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import tonnage
from tonnage.cli import main as ask
from tonnage.kernel.units import human
from tonnage.question.form import Group
from tonnage.question.option import Option, names_in
from tonnage.question.verbs import FORMS, form_of
from write_docs import is_marked, words

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
OUT = ROOT / "build" / "site"
SOURCE = "https://github.com/tonnage/tonnage/blob/main/"
COLUMNS = "100"
MANY = 80  # names of one option, of which a page lists no more
VERBS_WITH_OPTIONS = ("train", "serve", "plan", "max", "compare", "rules", "prices")
SHOWN = re.compile(r"(```console\n)(.*?)(```\n)<!-- output(?:: (\d+))? -->", re.S)
LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)]*)?\))")
FENCE = re.compile(r"(```.*?```)", re.S)


def output(command: str) -> list[str]:
    """The lines that a command prints at 100 columns, without a network and without colours."""
    settings = {"HF_HUB_OFFLINE": "1", "COLUMNS": COLUMNS, "NO_COLOR": "1", "TONNAGE_LANG": "en"}
    before = dict(os.environ)
    os.environ.update(settings)
    try:
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.chdir(ROOT):
            status = ask(words(command))
    finally:
        os.environ.clear()
        os.environ.update(before)
    if status not in (0, 2, 3):
        raise SystemExit(f"{command} ends with status {status}")
    return out.getvalue().rstrip("\n").splitlines()


def with_output(text: str) -> str:
    """A page in which each console block before `<!-- output: N -->` shows the first N lines of what its commands
    print; without N all of them.
    """

    def shown(block: re.Match[str]) -> str:
        start, commands, end, most = block.groups()
        return start + "\n".join(_run(commands.splitlines(), int(most) if most else None)) + "\n" + end

    return SHOWN.sub(shown, text)


def _run(commands: Iterable[str], most: int | None) -> Iterator[str]:
    for command in commands:
        yield command
        if command.startswith("$ tonnage") and not is_marked(command):
            lines = output(command[2:])
            yield from lines[:most]
            if most is not None and len(lines) > most:
                yield "..."


def with_links(text: str, page: Path) -> str:
    """A page whose links to files outside docs/ lead to the repository."""

    def linked(link: re.Match[str]) -> str:
        start, target, end = link.groups()
        if "://" in target:
            return link.group()
        path = (page.parent / target).resolve()
        if path.is_relative_to(DOCS) and not path.is_dir():
            return link.group()
        return f"{start}{SOURCE}{path.relative_to(ROOT).as_posix()}{end}"

    return "".join(part if part.startswith("```") else LINK.sub(linked, part) for part in FENCE.split(text))


def options_page(verb: str) -> str:
    """Every option of a verb, by group: unit, default, choices."""
    forms = FORMS[verb]
    lines = [
        f"# Options of tonnage {verb}",
        "",
        f"Generated from the schema that all faces read. [tonnage {verb}](../commands/{verb}.md) explains them.",
        "",
    ]
    for kind in forms:
        form = form_of(verb, kind)
        if len(forms) > 1:
            lines += [f"## {' '.join(('tonnage', verb, *form.words))}", ""]
        for group in form.groups:
            lines += _group(group, "###" if len(forms) > 1 else "##")
    return "\n".join(lines)


def _group(group: Group, level: str) -> list[str]:
    rows = [_option(option) for option in group.options if "command line" in option.faces]
    head = ["| option | unit | default | choices | meaning |", "|---|---|---|---|---|"]
    return [f"{level} {group.title or 'what is asked'}", "", *head, *rows, ""]


def _option(option: Option) -> str:
    names = [option.name.upper()] if option.alone else [option.flag, *option.short]
    cells = (
        " ".join(f"`{name}`" for name in names),
        option.unit or ("switch" if option.read is None else "-"),
        option.default or "-",
        _choices(option),
        option.help or "-",
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _choices(option: Option) -> str:
    only, known = names_in(option.choices), names_in(option.known)
    listed = " ".join(f"`{name}`" for name in (only or known)[:MANY])
    if len(only or known) > MANY:
        listed += f" and {len(only or known) - MANY} more"
    return (listed + (" or another" if known and not only else "")) or "-"


def python_page() -> str:
    """Every public name of the package with its docstring: functions first, whole; then classes, in a sentence."""
    lines = [
        "# Python",
        "",
        "Generated from the docstrings, which `help(tonnage.train)` shows too.",
        "[What stays](deprecation.md) says what is public.",
        "",
    ]
    names = {name: getattr(tonnage, name) for name in tonnage.__all__}
    for name, function in names.items():
        if inspect.isfunction(function):
            call = f"```python\ntonnage.{name}{_arguments(function)}\n```"
            lines += [f"## {name}", "", call, "", "```text", inspect.getdoc(function) or "", "```", ""]
    lines += ["## Classes", "", "| class | what it is |", "|---|---|"]
    for name, kind in names.items():
        if inspect.isclass(kind):
            first = (inspect.getdoc(kind) or "").partition("\n\n")[0].replace("\n", " ").replace("|", "\\|")
            lines.append(f"| `tonnage.{name}` | {first} |")
    return "\n".join([*lines, ""])


def _arguments(function: Callable[..., Any]) -> inspect.Signature:
    """What a function takes, without types, which are long."""
    signature = inspect.signature(function)
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    return signature.replace(parameters=plain, return_annotation=inspect.Signature.empty)


def rules_page() -> str:
    """The page of the rules of thumb with all of them: result, what the document prints, and the errata."""
    rules = json.loads("\n".join(output("tonnage rules --json")))["rules"]
    rows, errata = [], []
    for rule in rules:
        erratum = f"[yes](#{rule['name'].lower()})" if rule["erratum"] else "-"
        cells = (rule["title"], f"`{rule['text']}`", human(rule["value"], rule["unit"]), rule["printed"], erratum)
        rows.append(f"| {rule['name']} | {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
        if rule["erratum"]:
            errata += [f"### {rule['name']}", "", f"Printed: {rule['printed']}.", "", rule["erratum"], ""]
    text = (DOCS / "explanation" / "rules.md").read_text(encoding="utf-8")
    head = ["| rule | what | formula | result | document prints | erratum |", "|---|---|---|---|---|---|"]
    return "\n".join([text, "## All rules", "", *head, *rows, "", "## Errata", "", *errata])


def stage(out: Path) -> None:
    """Write the site's sources to `out`/docs, and its settings beside them."""
    shutil.rmtree(out, ignore_errors=True)
    staged = out / "docs"
    shutil.copytree(DOCS, staged, ignore=shutil.ignore_patterns("zensical.toml"))
    shutil.copy(DOCS / "zensical.toml", out)
    (staged / "explanation" / "rules.md").write_text(rules_page(), encoding="utf-8")
    for page in sorted(staged.rglob("*.md")):
        text = with_output(page.read_text(encoding="utf-8"))
        page.write_text(with_links(text, DOCS / page.relative_to(staged)), encoding="utf-8")
    (staged / "python.md").write_text(python_page(), encoding="utf-8")
    (staged / "options").mkdir()
    for verb in VERBS_WITH_OPTIONS:
        (staged / "options" / f"{verb}.md").write_text(options_page(verb), encoding="utf-8")


def build(out: Path = OUT) -> Path:
    """Build the site below `out`, with every warning an error; the folder of its HTML."""
    stage(out)
    environment = {**os.environ, "NO_COLOR": "1"}
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    done = subprocess.run(command, cwd=out, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"zensical: {done.stdout}{done.stderr}")
    return out / "html"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT, help="the folder to write to")
    print(build(parser.parse_args().out) / "index.html")


if __name__ == "__main__":
    main()
