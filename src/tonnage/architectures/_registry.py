"""The registry of architectures. An architecture turns a config.json into a Model; it contains no formula."""

from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from tonnage.architectures._config import Config
from tonnage.architectures._model import Branch, Model
from tonnage.kernel.registry import Registry

T = TypeVar("T")
Architecture = Callable[[Config], Model]
Tower = Callable[[Config], Branch]
ARCHITECTURES: Registry[Architecture] = Registry("architecture")
MODEL_TYPES: Registry[Architecture] = Registry("model type")
TOWERS: Registry[Tower] = Registry("vision or audio tower")
HERE = Path(__file__).parent


def architecture(*names: str, model_types: Iterable[str] = ()) -> Callable[[Architecture], Architecture]:
    """Register the decorated function under the class names and model types that config.json uses."""

    def declare(build: Architecture) -> Architecture:
        for name in names:
            ARCHITECTURES.add(name, build)
        for model_type in model_types:
            MODEL_TYPES.add(model_type, build)
        return build

    return declare


def tower(*model_types: str) -> Callable[[Tower], Tower]:
    """Register a vision or audio tower under the model types of vision_config and audio_config."""

    def declare(build: Tower) -> Tower:
        for model_type in model_types:
            TOWERS.add(model_type, build)
        return build

    return declare


def families() -> list[str]:
    """The family modules, by file name."""
    return sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))


def load_all() -> None:
    """Import every family: for listings and for suggestions."""
    for family in families():
        import_module(f"tonnage.architectures.{family}")


def find(registry: Registry[T], name: str, everywhere: bool = True) -> T:
    """The entry of `registry`; imports only the family files that mention the name, since most commands need one of
    forty.

    `everywhere`: if none mentions it, import all of them before giving up.
    """
    if name not in registry:
        quoted = f'"{name}"'
        for path in sorted(HERE.glob("[!_]*.py")):
            if quoted in path.read_text(encoding="utf-8"):
                import_module(f"tonnage.architectures.{path.stem}")
                if name in registry:
                    break
        else:
            if everywhere:
                load_all()
    return registry[name]
