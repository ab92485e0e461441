"""The house, as a test: imports run one way, files and functions stay short, the core stays light."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tonnage

PACKAGE = Path(tonnage.__file__).parent
# A module imports only from its own layer or from layers to the left; those in one group see each other.
LAYERS = (
    ("units", "errors"), ("reach",), ("registry", "user_files"), ("language",), ("glossary",), ("formula",), ("formulas",), ("breakdown", "breakdown_check", "frames"), ("references",), ("spec",), ("document_term",), ("document",),
    ("precisions", "optimizers", "quantization"), ("tape",), ("ops",), ("architectures",), ("catalogue",), ("models",), ("runtimes",), ("question", "spelling"),
    ("estimate",), ("search",), ("trace", "measure"), ("rules", "validation"), ("render",), ("api",), ("cli",), ("ask",), ("web", "mcp_server", "__main__"),
)  # fmt: skip
DEPTH = {name: depth for depth, group in enumerate(LAYERS) for name in group}
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
    name = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    group = name.partition("_")[0]
    return group if group in ("api", "document") and name != "document_term" else name


def _imported(path: Path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "tonnage":
            parts = node.module.split(".")
            for name in [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]:
                yield name, node.lineno


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_run_one_way(path):
    layer = _layer(path)
    if layer == "__init__":
        return
    for module, line in _imported(path):
        name = _layer(PACKAGE / module)
        if name in DEPTH:
            assert DEPTH[name] <= DEPTH[layer], f"{layer} imports {name} ({path}:{line})"


def test_every_module_has_a_layer():
    assert {_layer(path) for path in SOURCES} - set(DEPTH) == {"__init__"}


def test_files_stay_under_400_lines():
    assert {str(path): count for path in SOURCES if (count := len(path.read_text().splitlines())) > 400} == {}


def test_functions_stay_under_60_lines():
    long = {}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and (lines := node.end_lineno - node.lineno) > 60:
                long[f"{path}:{node.name}"] = lines
    assert long == {}


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
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"] == {"packages": ["src/tonnage"]}
    for name in ("py.typed", "tonnage.schema.json", "references.toml", "spelling/flags.toml"):
        assert (PACKAGE / name).is_file(), name
    assert "Typing :: Typed" in project["project"]["classifiers"]
