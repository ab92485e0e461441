"""A recipe in Python, read as a text: what it assigns, and what it gives to calls. It is never run."""

import ast
from collections.abc import Iterator
from typing import Any

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import listed

MOST_NODES = 100_000
SIGN = "tensor_model_parallel_size"  # what every recipe sets
_TYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "float8_e4m3fn": "fp8"}


class Recipe:
    """What a recipe in Python says.

    assigned: dotted name without the variable in front -> value
    keywords: name of a keyword argument of a call -> value
    calls: dotted names of what is called, with the first argument that is a text; `functions`: names of functions
    """

    def __init__(self, text: str, name: str):
        self.assigned: dict[str, Any] = {}
        self.keywords: dict[str, Any] = {}
        self.calls: list[tuple[str, str]] = []
        self.functions: list[str] = []
        self._constants: dict[str, Any] = {}
        tree = parsed(text, name)
        _check_one(tree, name)
        for node in _ordered(tree):
            self._take(node)

    def _take(self, node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef):
            self.functions.append(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                self._assign(target, node.value)
        elif isinstance(node, ast.Call):
            name = dotted(node.func)
            first = self._value(node.args[0])[1] if node.args else None
            self.calls.append((name, first if isinstance(first, str) else ""))
            for keyword in node.keywords:
                is_known, value = self._value(keyword.value)
                if keyword.arg and is_known:
                    self.keywords.setdefault(keyword.arg, value)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        is_known, plain = self._value(value)
        if not is_known:
            return
        if isinstance(target, ast.Name):
            self._constants[target.id] = plain
        elif isinstance(target, ast.Attribute):
            self.assigned[dotted(target).partition(".")[2]] = plain

    def _value(self, node: ast.expr) -> tuple[bool, Any]:
        """Whether a value is written out, and what it is."""
        if isinstance(node, ast.Name) and node.id in self._constants:
            return True, self._constants[node.id]
        if isinstance(node, ast.Attribute) and node.attr in _TYPES:
            return True, _TYPES[node.attr]
        try:
            value = ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return False, None
        return isinstance(value, str | int | float | bool | list | tuple | None), (
            list(value) if isinstance(value, tuple) else value
        )


def parsed(text: str, name: str) -> ast.Module:
    """The tree of a text; InvalidInput where it is no Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InvalidInput("{name} is no Python: {error}.", name=name, error=type(error).__name__) from None
    return tree


def _check_one(tree: ast.Module, name: str) -> None:
    """InvalidInput where several functions of a file each set the same parallelism: which is meant is not said."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    several = [node.name for node in functions if _sets(node, SIGN)]
    if len(several) > 1:
        raise InvalidInput(
            "{name} has {count} recipes, such as {names}: put the one that runs into a file of its own.",
            name=name,
            count=len(several),
            names=listed(several[:3]),
        )


def _sets(function: ast.FunctionDef, name: str) -> bool:
    targets = [target for node in ast.walk(function) if isinstance(node, ast.Assign) for target in node.targets]
    return any(isinstance(target, ast.Attribute) and target.attr == name for target in targets)


def is_python(text: str, words: tuple[str, ...]) -> bool:
    """Whether a text is Python that names one of these words where it imports."""
    lines = (line.strip() for line in text.splitlines())
    return any(line.startswith(("import ", "from ")) and any(word in line for word in words) for line in lines)


def dotted(node: ast.expr) -> str:
    """The dotted name of an expression; "" where it is none."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        return ".".join([node.id, *reversed(parts)])
    return ".".join(["", *reversed(parts)]) if parts else ""


def _ordered(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes in the order of the text."""
    waiting: list[ast.AST] = list(reversed(tree.body))
    count = 0
    while waiting and count < MOST_NODES:
        node = waiting.pop()
        count += 1
        yield node
        waiting += reversed(list(ast.iter_child_nodes(node)))
