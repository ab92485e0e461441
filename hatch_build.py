"""The hooks of the build, which hatchling runs for `pip install -e .` too: prepares what `kernel.prepared` reads, and
of a checkout compiles the source, so that no process has to where Python may not write bytecode; and gives the package
index a README whose links lead to the repository.
"""

import compileall
import importlib.util
import re
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

FILES = "https://github.com/tonnage/tonnage/blob/main/"
PICTURES = "https://raw.githubusercontent.com/tonnage/tonnage/main/"


class Prepare(BuildHookInterface):
    """Packs in the checkout, which git ignores; in a wheel packs that do not look at the times of files."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        package = Path(self.root) / "src" / "tonnage"
        prepared = _module(package / "kernel" / "prepared.py")
        if version == "editable":
            prepared.prepare(str(package), str(package / "prepared"))
            compileall.compile_dir(package, quiet=2)
            return
        for pack in prepared.prepare(str(package), mkdtemp(), installed=True):
            build_data["force_include"][pack] = f"tonnage/prepared/{Path(pack).name}"


class Readme(MetadataHookInterface):
    """README.md as the package's description."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": with_addresses(text)}


def with_addresses(text: str) -> str:
    """A README with the addresses of the repository instead of paths inside it."""
    pictured = re.sub(r"(!\[[^]]*\]\()(?![a-z]+:|#)", rf"\1{PICTURES}", text)
    return re.sub(r"(?<!!)(\[[^]]*\]\()(?![a-z]+:|#)", rf"\1{FILES}", pictured)


def _module(path: Path) -> Any:
    """The module of a file, without its package, which needs more than a build has."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
