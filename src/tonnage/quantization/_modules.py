"""Sets of modules as quantisers write them: names and parts of names, globs, regular expressions after "re:".

Every tool names the same module in its own way: model.layers.3.mlp.gate, language_model.model.layers.3.mlp.gate,
backbone.layers.3.mixer. So both a pattern and a module are read as a layer's number and a name inside the layer.
"""

import re
from collections.abc import Iterable
from fnmatch import translate
from functools import lru_cache

from msgspec import Struct

LONGEST = 500  # characters of a pattern; longer ones are no names


class Module(Struct, frozen=True):
    """`name` within layer number `layer`; None: outside of the layers, or by a name that no layer begins."""

    name: str
    layer: int | None = None

    @property
    def full(self) -> str:
        return self.name if self.layer is None else f"layers.{self.layer}.{self.name}"


_BEFORE = r"(?:(?:model|language_model|text_model|thinker|backbone|transformer|decoder)\.)*"
_PREFIX = re.compile(rf"^{_BEFORE}(?:(?:layers|h|blocks?)\.(\d+)(?:\.|$))?")
_BEFORE_REGEX = ("", "model.", "language_model.model.", "model.language_model.")


class Modules:
    """The modules that a list of patterns means.

    A name means that module and all below it; a name that no layer begins (lm_head, mlp.gate) means every module that
    has it as parts of its name, or with `inside` every module whose name contains it (AutoAWQ).
    """

    def __init__(self, patterns: Iterable[str], inside: bool = False):
        self._inside = inside
        self._names: dict[int, set[str]] = {}
        self._globs: dict[int, list[str]] = {}
        self._parts: list[str] = []
        self._anywhere: list[str] = []
        self._expressions: list[re.Pattern[str]] = []
        for pattern in patterns:
            if len(pattern) < LONGEST:
                self._add(pattern)
        self._frozen = {layer: tuple(globs) for layer, globs in self._globs.items()}

    def __bool__(self) -> bool:
        return bool(self._names or self._globs or self._parts or self._anywhere or self._expressions)

    @property
    def by_layer(self) -> bool:
        """Whether layers of one kind can differ."""
        open_ended = any(any(c.isdigit() for c in text) for text in self._anywhere)
        return bool(self._names or self._globs or open_ended or any(r"\d" in e.pattern or any(c.isdigit() for c in e.pattern) for e in self._expressions))  # fmt: skip

    def _add(self, pattern: str) -> None:
        if pattern.startswith("re:"):
            try:
                self._expressions.append(re.compile(pattern[3:]))
            except re.error:
                return
            return
        found = _PREFIX.match(pattern)
        rest = pattern[found.end() :] if found else pattern
        if found is None or found[1] is None:
            (self._anywhere if "*" in rest or "?" in rest else self._parts).append(rest)
        elif "*" in rest or not rest:
            self._globs.setdefault(int(found[1]), []).append(rest or "*")
        else:
            self._names.setdefault(int(found[1]), set()).add(rest)

    def has(self, modules: Iterable[Module]) -> bool:
        """Whether a module is meant by any of its names."""
        return any(self._has(module) for module in modules)

    def _has(self, module: Module) -> bool:
        name, layer = module.name, module.layer
        if layer is not None:
            names = self._names.get(layer)
            if names and any(above in names for above in _above(name)):
                return True
            if layer in self._frozen and _any_glob(self._frozen[layer], name):
                return True
        full = module.full
        if self._inside:
            found = any(part in f"model.{full}" for part in self._parts)
        else:
            found = any(f".{part}." in f".{full}." for part in self._parts)
        return found or self._open(full)

    def _open(self, full: str) -> bool:
        if self._anywhere and _any_glob(tuple(self._anywhere), full):
            return True
        return any(e.match(before + full) for e in self._expressions for before in _BEFORE_REGEX)


@lru_cache(maxsize=8192)
def _above(name: str) -> tuple[str, ...]:
    """The name and those of the modules that hold it."""
    parts = name.split(".")
    return tuple(".".join(parts[:end]) for end in range(len(parts), 0, -1))


@lru_cache(maxsize=65536)
def _any_glob(patterns: tuple[str, ...], name: str) -> bool:
    return any(_glob(pattern).match(name) is not None for pattern in patterns)


@lru_cache(maxsize=1024)
def _glob(pattern: str) -> re.Pattern[str]:
    """A glob for a module, with all below it; "*.mlp" also means an mlp that nothing holds."""
    forms = [pattern, f"{pattern}.*", *([pattern[2:]] if pattern.startswith("*.") else [])]
    return re.compile("|".join(translate(form) for form in forms))
