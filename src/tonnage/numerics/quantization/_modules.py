"""Sets of modules as quantisers write them: names and parts of names, globs, regular expressions after "re:".

Every tool names the same module in its own way: model.layers.3.mlp.gate, language_model.model.layers.3.mlp.gate,
backbone.layers.3.mixer. So both a pattern and a module are read as a layer's number and a name inside the layer.
"""

import re
from collections.abc import Iterable
from fnmatch import translate
from functools import cached_property, lru_cache

from msgspec import Struct

from tonnage.numerics.quantization._patterns import expression

MAX_NAME = 500  # characters of a name or a glob; a longer one is no module's


class Module(Struct, frozen=True):
    """`name` within layer number `layer`; None: outside of the layers, or by a name that no layer begins."""

    name: str
    layer: int | None = None

    @property
    def full(self) -> str:
        return self.name if self.layer is None else f"layers.{self.layer}.{self.name}"


_BEFORE = r"(?:(?:model|language_model|text_model|thinker|backbone|transformer|decoder)\.)*"
_PREFIX = re.compile(rf"^{_BEFORE}(?:(?:layers|h|blocks?)\.(\d{{1,6}})(?:\.|$))?")
_BEFORE_REGEX = ("", "model.", "language_model.model.", "model.language_model.")


class Modules:
    """The modules that match a list of patterns.

    A name means that module and all below it; a name that no layer begins (lm_head, mlp.gate) means every module that
    has it as parts of its name, or with `inside` every module whose name contains it (AutoAWQ). `by_layer`: layers of
    one kind can differ. `anywhere`: a regular expression may match from any place on (re.search), not from the start
    alone.
    """

    def __init__(self, patterns: Iterable[str], inside: bool = False, anywhere: bool = False):
        self._inside, self._anywhere = inside, anywhere
        self._names: dict[int, set[str]] = {}
        self._globs: dict[int | None, list[str]] = {}
        self._parts: set[str] = set()
        self._expressions: list[re.Pattern[str]] = []
        self.by_layer = False
        for pattern in dict.fromkeys(patterns):
            self._add(pattern)

    def __bool__(self) -> bool:
        return bool(self._names or self._globs or self._parts or self._expressions)

    @property
    def searches(self) -> int:
        """Number of patterns that every module has to be compared with."""
        return len(self._expressions) + len(self._globs.get(None, ()))

    def _add(self, pattern: str) -> None:
        if pattern.startswith("re:"):
            self._expressions.append(expression(pattern[3:]))
            self.by_layer = self.by_layer or _has_digits(pattern)
            return
        if len(pattern) >= MAX_NAME:
            return
        prefix = _PREFIX.match(pattern)
        rest = pattern[prefix.end() :] if prefix else pattern
        layer = int(prefix[1]) if prefix and prefix[1] else None
        if layer is None and not _is_glob(rest):
            self._parts.add(rest)
            return
        self.by_layer = self.by_layer or layer is not None or _has_digits(rest)
        if layer is None or _is_glob(rest) or not rest:
            self._globs.setdefault(layer, []).append(rest or "*")
        else:
            self._names.setdefault(layer, set()).add(rest)

    def has(self, modules: Iterable[Module]) -> bool:
        """Whether the patterns match a module by any of its names."""
        return any(self._has(module) for module in modules)

    def _has(self, module: Module) -> bool:
        name, full = module.name, module.full
        if module.layer is not None:
            names = self._names.get(module.layer)
            if names and not names.isdisjoint(_above(name)):
                return True
            if module.layer in self._compiled and self._compiled[module.layer].match(name):
                return True
        if None in self._compiled and self._compiled[None].match(full):
            return True
        return self._has_part(full) or any(self._matches(pattern, full) for pattern in self._expressions)

    def _has_part(self, full: str) -> bool:
        if self._inside:
            return any(part in f"model.{full}" for part in self._parts)
        return not self._parts.isdisjoint(_runs(full))

    def _matches(self, pattern: re.Pattern[str], full: str) -> bool:
        search = pattern.search if self._anywhere else pattern.match
        return any(search(before + full) for before in _BEFORE_REGEX)

    @cached_property
    def _compiled(self) -> dict[int | None, re.Pattern[str]]:
        return {layer: re.compile("|".join(map(_glob, globs))) for layer, globs in self._globs.items()}


def _is_glob(text: str) -> bool:
    return "*" in text or "?" in text


def _has_digits(text: str) -> bool:
    return r"\d" in text or any(letter.isdigit() for letter in text)


@lru_cache(maxsize=8192)
def _above(name: str) -> tuple[str, ...]:
    """The name and those of all modules that contain it."""
    parts = name.split(".")
    return tuple(".".join(parts[:end]) for end in range(len(parts), 0, -1))


@lru_cache(maxsize=8192)
def _runs(full: str) -> tuple[str, ...]:
    """All runs of parts of a name: of a.b.c a, a.b, a.b.c, b, b.c and c."""
    parts = full.split(".")
    return tuple(".".join(parts[i:j]) for i in range(len(parts)) for j in range(i + 1, len(parts) + 1))


def _glob(pattern: str) -> str:
    """A regular expression for a glob and all modules below it; "*.mlp" also matches an mlp at the top."""
    forms = [pattern, f"{pattern}.*", *([pattern[2:]] if pattern.startswith("*.") else [])]
    return "|".join(map(translate, forms))
