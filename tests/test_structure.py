"""The house, as a test: imports run one way, files and functions stay short, the core stays light."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path
from string import Formatter

import house
import tonnage
from every_row import every_row

PACKAGE = Path(tonnage.__file__).parent
# A module imports only from its own layer or from layers to the left; those in one group see each other.
LAYERS = (
    ("version", "message", "encoding", "prepared", "part_names"),
    ("units", "errors"),
    ("reach",),
    ("registry", "user_files"),
    ("language",),
    ("glossary", "polynomial"),
    ("formula",),
    ("formulas",),
    ("term", "frames"),
    ("references",),
    ("spec",),
    ("document_term",),
    ("document",),
    ("precisions", "optimizers", "quantization"),
    ("tape",),
    ("ops",),
    ("architectures",),
    ("catalogue",),
    ("models",),
    ("runtimes",),
    ("question", "spelling"),
    ("estimate",),
    ("search",),
    ("trace", "measure"),
    ("rules", "validation"),
    ("calibration",),
    ("render",),
    ("verbs",),
    ("interchange",),
    ("cli",),
    ("api", "web", "mcp_server", "__main__"),
)
SPLIT = ("kernel", "numerics")  # rooms whose modules are on several levels
DEPTH = {name: depth for depth, group in enumerate(LAYERS) for name in group}
# Rooms of estimate/: each imports from itself and from those before it.
ROOMS = (
    "inputs",
    "identity",
    "media",
    "hardware",
    "site",
    "plan",
    "layers",
    "step",
    "bands",
    "frameworks",
    "options",
    "memory",
    "growth",
    "host",
    "step_time",
    "plan_columns",
    "serving",
    "load",
    "serving_time",
    "post_training",
    "money",
    "run",
    "advice",
    "answer",
)
SOURCES = sorted(PACKAGE.rglob("*.py"))
HEAVY = (
    "torch",
    "transformers",
    "huggingface_hub",
    "rich",
    "numpy",
    "yaml",
    "urllib.request",
    "asyncio",
    "plotly",
    "kaleido",
)


def _layer(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    if parts[0] in SPLIT and len(parts) > 1:
        return parts[1]
    if parts[0] == "documents":
        return "document_term" if parts[1:2] == ("term",) else "document"
    group = parts[0].partition("_")[0]
    return group if group == "api" else parts[0]


def _imported(path: Path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tonnage":
            parts = node.module.split(".")[1:]
            for alias in node.names:
                yield PACKAGE.joinpath(*parts, alias.name), node.lineno


@every_row("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)), at_least=700)
def test_imports_run_one_way(path):
    layer = _layer(path)
    if layer == "__init__":
        return
    for module, line in _imported(path):
        name = _layer(module)
        if name in DEPTH:
            assert DEPTH[name] <= DEPTH[layer], f"{layer} imports {name} ({path}:{line})"


def test_rooms_of_the_estimate_build_on_each_other():
    place = {name: number for number, name in enumerate(ROOMS)}
    for path in SOURCES:
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts[0] != "estimate":
            continue
        for imported, line in _imported(path):
            other = imported.relative_to(PACKAGE).parts[1:2]
            if imported.relative_to(PACKAGE).parts[0] != "estimate":
                continue
            assert place[other[0]] <= place[parts[1]], f"{parts[1]} imports {other[0]} ({path}:{line})"


def test_no_module_imports_itself_through_others():
    """Imports count wherever they stand: at the top, in functions, under TYPE_CHECKING."""
    assert house.circles() == [], "move what both need below both, or name what is needed in a Protocol"


def test_what_is_private_stays_in_its_package():
    """A `_module` is imported in its own package alone, a `_name` in its own module alone."""
    found = house.private_imports()
    assert [f"{item.path}:{item.line} imports {item.module} {item.name}" for item in found] == []


def test_folders_hold_at_most_20_files():
    """Tables of facts aside (a file for each family, runtime, subject of formulas)."""
    crowded = {folder: count for count, folder in house.folder_sizes() if count > 20}
    assert crowded == {}


def test_every_module_has_a_layer():
    assert {_layer(path) for path in SOURCES} - set(DEPTH) == {"__init__"}


# The formatter gives each argument of a long call its line, so a file is long before it is hard to read. How many
# statements a function may have is the linter's to say (PLR0915).
MAX_LINES = 550
TABLES = ("numerics/precisions.py", "api/options.py")  # the second is written by scripts/option_types.py


def test_files_stay_under_550_lines():
    long = {str(path): count for path in SOURCES if (count := len(path.read_text().splitlines())) > MAX_LINES}
    assert [path for path in long if not path.endswith(TABLES)] == []


# Tables by runtime that scripts write, and names of FLOP conventions, which are called as those who count so.
NAMED_IN_TABLES = (
    "estimate/bands/measured.py",
    "estimate/post_training/measured.py",
    "estimate/step_time/counted.py",
)
# Searches list what is tried where nobody names a runtime.
TRIED = ("search/training/choices.py", "search/serving/space.py")


def _deciding(path: Path, names: set[str]):
    """Where the name of a runtime or an engine is compared, or chooses from a table."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Compare | ast.MatchValue):
            parts = list(ast.walk(node))
        elif isinstance(node, ast.Dict):
            parts = node.keys
        elif isinstance(node, ast.Tuple | ast.List | ast.Set):
            parts = node.elts
        else:
            continue
        if any(isinstance(part, ast.Constant) and part.value in names for part in parts):
            yield f"{path.relative_to(PACKAGE)}:{node.lineno}"


def test_no_name_of_a_runtime_decides_in_an_estimate_or_a_search():
    """Facts are fields of the runtime, behaviour is a method of its framework: its own file alone may know its name."""
    from tonnage.runtimes import model_codes, serving_runtimes, training_runtime, training_runtimes

    names = {*training_runtimes(), *serving_runtimes(), *model_codes()}
    own = {f"estimate/frameworks/{training_runtime(name).framework}.py" for name in training_runtimes()}
    rooms = [path for path in SOURCES if _layer(path) in ("estimate", "search")]
    paths = [path for path in rooms if str(path.relative_to(PACKAGE)) not in {*own, *NAMED_IN_TABLES, *TRIED}]
    assert [place for path in paths for place in _deciding(path, names)] == []


def _modules_after(code: str) -> set[str]:
    probe = f"import sys\n{code}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", probe], check=True, capture_output=True, text=True)
    return set(done.stdout.splitlines()[-1].split())


def test_importing_tonnage_imports_nothing_slow():
    assert not _modules_after("import tonnage") & {*HEAVY, "msgspec"}


def test_an_answer_on_the_catalogue_needs_no_heavy_module():
    code = "import tonnage; assert tonnage.train('llama-3.1-8b', on='8xH100-SXM-80GB').needed_bytes"
    assert not _modules_after(code) & set(HEAVY)


def test_no_user_can_cause_an_assertion_in_the_faces():
    for path in SOURCES:
        if _layer(path) in ("cli", "models", "catalogue"):
            assert not [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Assert)], path


def test_the_package_ships_its_types_and_its_data():
    """Whatever lies in src/tonnage is in the wheel; these files are not code, and are needed."""
    project = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["packages"] == ["src/tonnage"]
    assert wheel["exclude"] == ["src/tonnage/prepared"]  # the hook makes the wheel's own: tests/test_prepared.py
    for name in ("py.typed", "tonnage.schema.json", "kernel/references.toml", "spelling/flags.toml"):
        assert (PACKAGE / name).is_file(), name
    assert "Typing :: Typed" in project["project"]["classifiers"]


def test_no_text_is_looked_up_by_its_words():
    """Values of a text are its data, in named places: what puts texts into words, or names options in them, has no
    regular expression that could take a finished one apart.
    """
    from tonnage.language.catalogues import texts

    places = {place for text in texts("zh") for _, place, _, _ in Formatter().parse(text) if place is not None}
    assert len(places) > 1000
    assert {place for place in places if not place or place.isdigit()} == set()
    for name in ("language/__init__.py", "language/catalogues.py", "language/wording.py", "cli/common/named.py"):
        imported = {
            alias.name
            for node in ast.walk(ast.parse((PACKAGE / name).read_text()))
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        assert "re" not in imported, name
