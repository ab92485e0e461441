"""Write what the documentation takes from the code: docs/formulas.md, and in README.md and docs/commands/*.md the
tables of options and what the commands print.

make docs
"""

import contextlib
import io
import json
import os
import re
import shlex
from collections.abc import Callable, Iterator, Sized
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from _sweep_cost import cost_lines, measured_lines
from tonnage import rules as rules_of_thumb
from tonnage.architectures import families
from tonnage.catalogue import accelerator_names, model_names, node_names
from tonnage.cli import STATUSES, main
from tonnage.cli.explain import load_formulas
from tonnage.cli.forms.static import OPTIONS as STATIC_OPTIONS
from tonnage.interchange.formats import formats
from tonnage.kernel.formula import FORMULAS
from tonnage.kernel.glossary import SYMBOLS
from tonnage.kernel.references import references
from tonnage.language import say, speaking
from tonnage.numerics.optimizers import OPTIMIZERS
from tonnage.numerics.precisions import PRECISIONS, TRAINING_RECIPES
from tonnage.numerics.quantization import FILE_TYPES
from tonnage.question.option import Option, options_of
from tonnage.question.subjects import comparison, frontier, maximum, model, money, plan, prices, rules
from tonnage.question.subjects.load import LoadOptions
from tonnage.question.subjects.maximum import WHATS
from tonnage.question.subjects.model import DIMENSIONS
from tonnage.question.subjects.plan import SearchOptions, ServingPlanOptions
from tonnage.question.subjects.run import RunOptions
from tonnage.question.subjects.serving import ServingOptions
from tonnage.question.subjects.training import TrainingOptions
from tonnage.runtimes import serving_runtimes, training_runtimes
from tonnage.runtimes.parts.engine_tools import ENGINE_TOOLS

os.environ["TONNAGE_LANG"] = "en"  # the pages are English wherever they are written
ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "formulas.md"
ACCURACY_PAGE = ROOT / "docs" / "accuracy.md"
PAGES = (
    ROOT / "README.md",
    *(ROOT / "docs" / f"{name}.md" for name in ("index", "tutorial", "accuracy", "coverage", "static_page", "sweeps")),
    ROOT / "docs" / "decisions" / "README.md",
    *(
        page
        for folder in ("how_to", "how_to/tools", "explanation", "commands")
        for page in sorted((ROOT / "docs" / folder).glob("*.md"))
    ),
)
CHINESE = ROOT / "README.zh.md"
# Rows of docs/accuracy.md that README and the first page of the site show, with their Chinese.
ACCURACY = {
    "parameters of a model": "模型参数量",
    "memory of training, every setting published": "训练显存（设置全部公布）",
    "memory of training, some settings not published": "训练显存（部分设置未公布）",
    "memory of serving": "推理显存",
    "time of a training step, dense model": "训练单步时间，稠密模型",
    "time of a training step, mixture of experts": "训练单步时间，混合专家模型",
    "TPOT, benchmarks of InferenceX and NVIDIA": "TPOT，InferenceX 与 NVIDIA 的基准测试",
    "TTFT, benchmarks of InferenceX and NVIDIA": "TTFT，InferenceX 与 NVIDIA 的基准测试",
}
HEADS = {
    "en": "| figure | rows | median error | nine in ten within |",
    "zh": "| 指标 | 实测数 | 误差中位数 | 九成在此以内 |",
}


def _rules() -> Sized:
    rules_of_thumb.load()
    return rules_of_thumb.RULES


# What docs/coverage.md counts: the words behind each number, which are behind a number of nothing else.
COUNTED: tuple[tuple[str, Callable[[], Sized]], ...] = (
    (" in the catalogue", model_names),
    (" files of families", families),
    (" accelerators and", accelerator_names),
    (" nodes (NVIDIA", node_names),
    (" precision recipes", lambda: TRAINING_RECIPES),
    (" optimizers", lambda: OPTIMIZERS),
    (" runtimes:", training_runtimes),
    (" engines by version", serving_runtimes),
    (" formats and", lambda: PRECISIONS),
    (" GGUF mixtures", lambda: FILE_TYPES),
    (" rules of thumb", _rules),
)
# What the readmes count, in English and in Chinese.
COUNTED_FIRST: tuple[tuple[str, str, Callable[[], Sized]], ...] = (
    (" in the catalogue", " 个之一", model_names),
    (" accelerators,", " 种加速卡", accelerator_names),
    (" nodes,", " 种节点", node_names),
    (" training runtimes", " 种训练框架", training_runtimes),
    (" serving engines", " 种推理引擎", serving_runtimes),
    (" rules of thumb", " 条经验法则", _rules),
)
COVERAGE = ROOT / "docs" / "coverage.md"
ASKS = "# asks the "  # the Hub, or the network: after a command that no test runs
WRITES = "# writes a dataset"  # and reads a file that the reader writes
SERVES = "# serves until"  # it is ended
NEEDS = "# needs "  # PyTorch or a GPU: commands that are only read
TAKES = "# takes minutes"
MARKS = (ASKS, WRITES, SERVES, NEEDS, TAKES)  # comments after commands that neither tests nor pages run
TABLES: dict[str, tuple[Option, ...]] = {
    "train": options_of(TrainingOptions),
    "serve": options_of(ServingOptions),
    "model": DIMENSIONS,
    "machine": model.MACHINE,
    "run": options_of(RunOptions),
    "plan": options_of(SearchOptions),
    "machines": (model.TO_TRAIN_ON, model.RESERVE),
    "forms.plan_serving": (model.TO_SERVE_ON, model.RESERVE, *options_of(ServingPlanOptions)),
    "money": money.MONEY,
    "load": options_of(LoadOptions),
    "many": frontier.FRONTIER,
    "pool": plan.POOL,
    "rules": rules.NUMBERS,
    "prices": prices.PRICES,
    "forms.prices_api": prices.API_PRICES,
    "max": maximum.WHOSE,
    "static": STATIC_OPTIONS,
    "table": comparison.TABLE,
}


def page() -> str:
    """The whole page of formulas, in markdown."""
    load_formulas()
    lines = [
        "# Formulas",
        "",
        "Generated by `make docs` from the code that runs. `tonnage explain NAME` shows one of them.",
        "",
    ]
    by_file: dict[str, list[str]] = {}
    for name, formula in FORMULAS.items():
        subject = formula.evaluate.__module__.rpartition(".")[2]
        assumes = f" Assumes: {formula.assumes}." if formula.assumes else ""
        row = f"| `{name}` | `{formula.text}` | {formula.unit or '-'} | {formula.summary}{assumes} | {formula.source} |"
        by_file.setdefault(subject, []).append(row.replace("\n", " "))
    for subject in sorted(by_file):
        lines += [
            f"## {subject}",
            "",
            "| name | text | unit | meaning | source |",
            "|---|---|---|---|---|",
            *by_file[subject],
            "",
        ]
    lines += ["## Letters", "", "| letter | name | unit | meaning |", "|---|---|---|---|"]
    lines += [
        f"| `{symbol.letter}` | {symbol.name} | {symbol.unit or '-'} | {symbol.meaning} |"
        for symbol in SYMBOLS.values()
    ]
    lines += ["", "## Sources", "", "| key | source |", "|---|---|"]
    lines += [f"| {key} | {reference.citation} |" for key, reference in references().items()]
    return "\n".join(lines) + "\n"


def counts_of(path: Path) -> tuple[tuple[str, Callable[[], Sized]], ...]:
    """What a page counts: the words behind each number, and what is counted."""
    if path == COVERAGE:
        return COUNTED
    return tuple((chinese if path == CHINESE else english, entries) for english, chinese, entries in COUNTED_FIRST)


def counted(path: Path) -> str:
    """A page that counts, with the numbers of models, optimizers, runtimes, ... that there are now."""
    text = path.read_text(encoding="utf-8")
    for behind, entries in counts_of(path):
        text = re.sub(rf"\d+(?={re.escape(behind)})", str(len(entries())), text)
    return text


def refreshed(text: str, language: str = "en") -> str:
    """A page with its tables and the output of its commands as they are now."""
    os.environ["TONNAGE_LANG"] = language
    try:
        with speaking(language), in_folder_of(text):
            return _refreshed(text)
    finally:
        os.environ["TONNAGE_LANG"] = "en"


def files_of(text: str) -> dict[str, str]:
    """The files that a page shows, by the titles of its blocks: ```yaml title="train.yml"."""
    return dict(re.findall(r'(?ms)^```\w+ title="([\w.-]+)"\n(.*?)^```$', text))


@contextlib.contextmanager
def in_folder_of(text: str) -> Iterator[None]:
    """The folder in which the commands of a page run: one with the files that it shows; without any, the checkout."""
    files = files_of(text)
    with TemporaryDirectory() as folder, contextlib.chdir(folder if files else ROOT):
        for name, block in files.items():
            Path(name).write_text(block, encoding="utf-8")
        yield


def _refreshed(text: str) -> str:
    text = re.sub(r"(<!-- (\w+) (\w+) -->\n).*?(<!-- end -->)", _table, text, flags=re.S)
    return re.sub(r"(?<=```console\n).*?(?=```)", lambda block: _block(block.group()), text, flags=re.S)


def commands(text: str) -> list[str]:
    """The commands of a page that begin with `tonnage`: of console blocks, without the prompt, and of a CI's steps."""
    blocks = re.findall(r"(?<=```console\n).*?(?=```)", text, flags=re.S)
    shown = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ tonnage")]
    return shown + re.findall(r"^ *- run: (tonnage .*)$", text, flags=re.M)


def words(command: str) -> list[str]:
    """The words after `tonnage`; what follows a # is a comment."""
    return shlex.split(command, comments=True)[1:]


def is_marked(command: str) -> bool:
    """Whether a command has a comment that says why tests and pages do not run it."""
    return any(mark in command for mark in MARKS)


def printed(command: str) -> list[str]:
    """The lines that a command prints, without a network."""
    os.environ["HF_HUB_OFFLINE"], os.environ["COLUMNS"] = "1", "100"
    with contextlib.redirect_stdout(io.StringIO()) as out:
        main(words(command))
    return out.getvalue().splitlines()


def _block(block: str) -> str:
    """The commands of a block; those with output get it anew, abridged where they were."""
    made: list[str] = []
    for part in re.split(r"(?m)^(?=\$ )", block):
        prompt, *shown = part.splitlines() or [""]
        made += [
            prompt,
            *(_abridged(printed(prompt[2:]), shown) if any(shown) and prompt.startswith("$ tonnage") else shown),
        ]
    return "\n".join(made).lstrip("\n") + "\n"


def _abridged(lines: list[str], shown: list[str]) -> list[str]:
    """As many lines from the start as were shown, and after a line "..." all from the one that began the rest; all
    without "...".
    """
    if "..." not in shown:
        return lines
    cut = shown.index("...")
    rest = shown[cut + 1 :]
    if not rest:
        return [*lines[:cut], "..."]
    begins, figure = rest[0].split()[:2], rest[0].split()[1:]
    later = list(enumerate(lines))[cut:]
    same_name = [number for number, line in later if line.split()[:2] == begins]
    start = (same_name or [number for number, line in later if figure and line.split()[1:] == figure])[0]
    return [*lines[:cut], "...", *lines[start:]]


def _table(mark: re.Match[str]) -> str:
    start, kind, name, end = mark.groups()
    if (kind, name) == ("accuracy", "all"):  # of scripts/accuracy.py
        return mark.group()
    if kind == "sweep":
        lines = measured_lines() if name == "measured" else cost_lines()
    else:
        tables: dict[str, Callable[[], list[str]]] = {
            "options": lambda: _options(name),
            "statuses": _statuses,
            "formats": _formats,
            "tools": _engine_tools,
            "calibration": _calibration,
            "quantities": _quantities,
            "decisions": _decisions,
            "accuracy": _accuracy,
        }
        lines = tables[kind]()
    return "\n".join([start.rstrip("\n"), *lines, end])


def _options(name: str) -> list[str]:
    """The options of a verb, or those that verbs share."""
    options: tuple[Option, ...] = TABLES.get(name) or import_module(f"tonnage.cli.{name}").OPTIONS
    rows = [
        (
            f"| {' '.join(f'`{flag}`' for flag in (option.flag, *option.short))} | {option.unit or 'switch'} | "
            f"{option.meaning} | {option.default or '-'} |"
        )
        for option in options
    ]
    return ["| option | unit | meaning | default |", "|---|---|---|---|", *rows]


def _decisions() -> list[str]:
    """The decisions in docs/decisions, with the status that each says behind its title."""
    rows = []
    for path in sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md")):
        text = path.read_text(encoding="utf-8")
        title = re.sub(r"^# *\d+[.:]? *", "", text.partition("\n")[0])
        status = re.search(r"^Status: (.*)$", text, re.MULTILINE)
        rows.append(f"| {path.name[:4]} | [{title}]({path.name}) | {status[1] if status else 'accepted'} |")
    return ["| number | decision | status |", "|---|---|---|", *rows]


def _accuracy() -> list[str]:
    """The rows of docs/accuracy.md that a first page shows."""
    language = os.environ["TONNAGE_LANG"]
    cells = [line.strip("| ").split(" | ") for line in ACCURACY_PAGE.read_text(encoding="utf-8").splitlines()]
    figures = {name: found[:3] for name, *found in cells if name in ACCURACY}
    if language == "zh":
        figures = {ACCURACY[name]: [each.replace("exact", "完全相等") for each in figures[name]] for name in ACCURACY}
    rows = (f"| {name} | {' | '.join(found)} |" for name, found in figures.items())
    return [HEADS[language], "|---|---:|---:|---:|", *rows]


def _quantities() -> list[str]:
    """What `max` looks for."""
    rows = [
        (
            f"| `{what.name}` | {what.verb} | {what.about} | {what.unit} | "
            f"{', '.join(f'`{name}`' for name in what.also) or '-'} |"
        )
        for what in WHATS
    ]
    return ["| WHAT | of | meaning | unit | also |", "|---|---|---|---|---|", *rows]


def _formats() -> list[str]:
    """What `check` reads and `export` writes."""
    rows = [
        f"| `{form.name}` | {form.tool} | {form.version or '-'} | {', '.join(form.verbs)} | "
        f"{'yes' if form.write is not None else '-'} |"
        for form in formats()
    ]
    return ["| format | tool | newest release read | verbs | written by export |", "|---|---|---|---|---|", *rows]


def _engine_tools() -> list[str]:
    """The tools that `--engine` takes by the name of an engine that they run."""
    rows = []
    for tool in ENGINE_TOOLS.values():
        machines = ", ".join((*tool.vendors, *tool.kinds)) or "-"
        own = ", ".join(f"`{name}` {value}" for name, value in tool.defaults.items()) or "-"
        runs = ", ".join(dict.fromkeys((*tool.engines, *tool.of_formats.values())))
        command = "its own" if tool.launch is not None else "the engine's"
        cells = (f"`{tool.name}`", tool.title, runs, machines, own, command, tool.differs or "-")
        rows.append(f"| {' | '.join(cells)} |")
    head = "| name | tool | runs on, usual first | machines of | its own defaults | command | what differs |"
    return [head, "|---|---|---|---|---|---|---|", *rows]


def _calibration() -> list[str]:
    """What corrections by half of a publication's rows bring to the other half (scripts/fit_site.py)."""
    lines = json.loads((ROOT / "validation" / "calibration.json").read_text(encoding="utf-8"))
    names = {"step_time": "step time", "training_memory": "memory of training", "request_time": "time of a request"}
    rows = [
        f"| {names.get(line['quantity'], line['quantity'].upper())} | {_without_place(line['site'])} | "
        f"{line['rows']} | {100 * line['before']:.1f} % | {100 * line['after']:.1f} % | {100 * line['used']:.0f} % |"
        for line in lines
    ]
    return ["| quantity | publication | rows | before | after | used |", "|---|---|---:|---:|---:|---:|", *rows]


def _without_place(publication: str) -> str:
    """Its name without the file, the commit and the day."""
    return re.split(r" \(| docs/| data/", publication, maxsplit=1)[0]


def _statuses() -> list[str]:
    return [
        say("| status | meaning |"),
        "|---|---|",
        *(f"| {status} | {say(meaning)} |" for status, meaning in STATUSES.items()),
    ]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    for path in (ROOT / "README.md", CHINESE, COVERAGE):
        path.write_text(counted(path), encoding="utf-8")
    for path in PAGES:
        path.write_text(refreshed(path.read_text(encoding="utf-8")), encoding="utf-8")
    CHINESE.write_text(refreshed(CHINESE.read_text(encoding="utf-8"), "zh"), encoding="utf-8")
