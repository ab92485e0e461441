"""The build hook of the wheel, which hatchling runs for `pip install -e .` too: prepares what `kernel.prepared` reads,
and of a checkout compiles the source, so that no process has to where Python may not write bytecode.
"""

import compileall
import importlib.util
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


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


def _module(path: Path) -> Any:
    """The module of a file, without its package, which needs more than a build has."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
