"""Measures the source: how far one question travels, and where walls between packages leak.

    python scripts/house.py                 # every figure with its goal (make house)
    python scripts/house.py --circles       # the modules of each import circle
    python scripts/house.py --no-walk       # without running a question, in a second

Run it from anywhere; it reads `src/tonnage` of its own checkout.
"""

import argparse
import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "tonnage"
# One estimate: nothing is searched for suggestions or for what was not given.
QUESTION = (
    *("train", "llama-3.1-8b", "--on", "8xH100-SXM-80GB", "--micro-batch-size", "4"),
    *("--no-advice", "--as-is", "--json"),
)
MAX_LINE = 120
TABLES_OF_FACTS = ("architectures", "runtimes", "formulas")  # one file for each of them
FRAMEWORKS = ("fsdp2", "megatron", "deepspeed", "ddp", "transformers", "nanotron", "torchtune", "unsloth", "litgpt")


class Figure(NamedTuple):
    """One measured figure and the value to reach."""

    name: str
    value: int
    goal: int
    option: str = ""  # lists what the figure counts


class Import(NamedTuple):
    """One name that a module imports from this package, wherever the statement stands."""

    importer: str
    module: str
    name: str  # empty for `import tonnage.x`
    line: int
    path: Path


# -- sources -------------------------------------------------------------------------------------------------------


@cache
def sources() -> dict[str, Path]:
    """Module name to file, for every module of the package."""
    return {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package_of(module: str) -> str:
    """The package in which a module lies; of a package, itself."""
    return module if sources()[module].name == "__init__.py" else module.rpartition(".")[0]


def imports_of(module: str) -> Iterator[Import]:
    """Imports of this package's modules: at the top, inside functions and under TYPE_CHECKING alike."""
    path = sources()[module]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                above = package_of(module).split(".")
                source = ".".join([*above[: len(above) - node.level + 1], *filter(None, [node.module])])
            if source.split(".")[0] == PACKAGE.name:
                for alias in node.names:
                    yield Import(module, source, alias.name, node.lineno, path)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == PACKAGE.name:
                    yield Import(module, alias.name, "", node.lineno, path)


@cache
def import_graph() -> dict[str, set[str]]:
    """Each module with those it imports; `from package import name` counts as `package` unless name is a module."""
    graph: dict[str, set[str]] = {}
    for module in sources():
        targets = set()
        for item in imports_of(module):
            submodule = f"{item.module}.{item.name}"
            targets.add(submodule if submodule in sources() else item.module)
        graph[module] = {target for target in targets if target in sources() and target != module}
    return graph


# -- figures -------------------------------------------------------------------------------------------------------


def circles() -> list[list[str]]:
    """Groups of modules that import each other, directly or through others, the largest first (Tarjan's algorithm)."""
    graph = import_graph()
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(module: str) -> None:
        index[module] = lowest[module] = len(index)
        stack.append(module)
        for target in sorted(graph[module]):
            if target not in index:
                visit(target)
                lowest[module] = min(lowest[module], lowest[target])
            elif target in stack:
                lowest[module] = min(lowest[module], index[target])
        if lowest[module] == index[module]:
            start = stack.index(module)
            group = stack[start:]
            del stack[start:]
            if len(group) > 1:
                groups.append(sorted(group))

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 10_000))
    for module in graph:
        if module not in index:
            visit(module)
    sys.setrecursionlimit(limit)
    return sorted(groups, key=lambda group: (-len(group), group))


def private_imports() -> list[Import]:
    """Imports of another package's `_module`, and of a `_name` of another module."""
    return [item for module in sources() for item in imports_of(module) if _is_private(item)]


def _is_private(item: Import) -> bool:
    here = package_of(item.importer).split(".")
    parts = [*item.module.split("."), *filter(None, [item.name])]
    private = [depth for depth, part in enumerate(parts) if part.startswith("_") and not part.startswith("__")]
    return any(here[:depth] != parts[:depth] for depth in private)


def lines() -> int:
    return sum(len(path.read_text().splitlines()) for path in sources().values())


def long_lines() -> list[str]:
    """`file:line` of each line of more than MAX_LINE characters."""
    return _lines_where(lambda line: len(line) > MAX_LINE)


def format_skips() -> list[str]:
    """`file:line` of each line that the formatter is told to leave alone."""
    return _lines_where(lambda line: "fmt: skip" in line)


def framework_comparisons() -> list[str]:
    """`file:line` in estimate/, outside estimate/frameworks/, where code compares the name of a framework."""
    name = rf"(==|!=|\bin)\s*[({{\[]?\s*\"({'|'.join(FRAMEWORKS)})\""
    found = _lines_where(lambda line: re.search(name, line) is not None)
    return [where for where in found if "/estimate/" in where and "/frameworks/" not in where]


def _lines_where(matches: Callable[[str], bool]) -> list[str]:
    found = []
    for path in sources().values():
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if matches(line):
                found.append(f"{path.relative_to(ROOT)}:{number}")
    return found


def folder_sizes() -> list[tuple[int, str]]:
    """Python files directly in each folder that is no table of facts, the fullest folder first."""
    counts: dict[Path, int] = {}
    for path in sources().values():
        if path.parent.name not in TABLES_OF_FACTS:
            counts[path.parent] = counts.get(path.parent, 0) + 1
    return sorted(((count, str(folder.relative_to(ROOT))) for folder, count in counts.items()), reverse=True)


# -- one question --------------------------------------------------------------------------------------------------

# Runs in a process of its own, so that every module is imported for this question alone.
WALK = """
import json, os, sys

ROOT = os.path.realpath(sys.argv.pop(1)) + os.sep
files, crossings, last, names = set(), 0, "", {}


def record(frame, event, argument):
    global crossings, last
    if event != "call" or not frame.f_code.co_flags & 1:  # functions only: module and class bodies run on import
        return
    file = frame.f_code.co_filename
    if file not in names:
        path = os.path.realpath(file)
        names[file] = path[len(ROOT):] if path.startswith(ROOT) else ""
    name = names[file]
    if name:
        files.add(name)
        crossings += name != last
        last = name


from tonnage.cli import main

answer = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
sys.setprofile(record)
try:
    main(sys.argv[1:])
except SystemExit:
    pass
sys.setprofile(None)
sys.stdout.flush()
os.dup2(answer, 1)
modules = [name for name in sys.modules if name.split(".")[0] == "tonnage"]
print(json.dumps({"files": sorted(files), "crossings": crossings, "modules": len(modules)}))
"""


@cache
def walk() -> dict:
    """Files that QUESTION enters, the number of calls from one file into another, and of modules imported."""
    command = [sys.executable, "-c", WALK, str(PACKAGE), *QUESTION]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode:
        sys.exit(f"the question failed: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout.splitlines()[-1])


# -- report --------------------------------------------------------------------------------------------------------


def figures(with_walk: bool = True) -> list[Figure]:
    """Every figure with the value to reach; the first three run a question, which takes seconds."""
    walked = []
    if with_walk:
        question = walk()
        walked = [
            Figure(f"files entered by `{QUESTION[0]}`", len(question["files"]), 60, "files"),
            Figure("calls that cross from file to file", question["crossings"], 3000),
            Figure("modules imported", question["modules"], 120),
        ]
    groups = circles()
    fullest, folder = folder_sizes()[0]
    loose = sum(path.parent == PACKAGE for path in sources().values())
    return [
        *walked,
        Figure("import circles", len(groups), 0, "circles"),
        Figure("modules in the largest circle", len(groups[0]) if groups else 0, 0, "circles"),
        Figure("private imports", len(private_imports()), 0, "private"),
        Figure("comparisons of framework names in estimate/", len(framework_comparisons()), 0, "frameworks"),
        Figure(f"files in the fullest folder ({folder})", fullest, 20, "folders"),
        Figure("loose modules at the top", loose, 3),
        Figure(f"lines over {MAX_LINE} characters", len(long_lines()), 0, "lines"),
        Figure("`fmt: skip`", len(format_skips()), 100, "skips"),
        Figure("lines of Python", lines(), 85_000),
    ]


def _circle_texts() -> list[str]:
    return [f"{len(group)}: {' '.join(group)}" for group in circles()]


def _private_texts() -> list[str]:
    return [
        f"{item.path.relative_to(ROOT)}:{item.line}: {item.module} {item.name}".rstrip() for item in private_imports()
    ]


LISTS: dict[str, tuple[str, Callable[[], list[str]]]] = {
    "files": ("files that the question enters", lambda: walk()["files"]),
    "circles": ("modules of each import circle", _circle_texts),
    "private": ("imports of another package's private module, or of another module's private name", _private_texts),
    "frameworks": ("comparisons of framework names in estimate/", framework_comparisons),
    "folders": ("folders by number of files", lambda: [f"{count} {folder}" for count, folder in folder_sizes()]),
    "lines": (f"lines over {MAX_LINE} characters", long_lines),
    "skips": ("lines with `fmt: skip`", format_skips),
}


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Figures of the source, each with the value to reach.")
    for option, (what, _) in LISTS.items():
        parser.add_argument(f"--{option}", action="store_true", help=f"list the {what} instead")
    parser.add_argument("--no-walk", action="store_true", help="run no question")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    given = parser.parse_args(words)
    wanted = [option for option in LISTS if getattr(given, option)]
    if wanted:
        for option in wanted:
            print("\n".join(LISTS[option][1]()))
        return
    rows = figures(with_walk=not given.no_walk)
    if given.json:
        print(json.dumps([{"name": row.name, "value": row.value, "goal": row.goal} for row in rows], indent=1))
        return
    for row in rows:
        hint = f"  --{row.option}" if row.option and row.value > row.goal else ""
        print(f"{row.name:55} {row.value:>8,}   at most {row.goal:>6,}{hint}")


if __name__ == "__main__":
    main()
