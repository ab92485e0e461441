"""The module that a program is currently in, from hooks on all modules' forwards."""

from collections.abc import Callable
from typing import Any

from torch import nn
from torch.nn.modules import module as hooks


class ModulePath:
    """`current`: the dotted name of the innermost module whose forward runs; empty outside of any named one."""

    def __init__(self) -> None:
        self.current = ""
        self._names: dict[int, str] = {}
        self._stack: list[str] = []
        self._running: list[nn.Module] = []

    @property
    def depth(self) -> int:
        """Number of nested forwards that are running."""
        return len(self._stack)

    @property
    def running(self) -> nn.Module | None:
        """The innermost module whose forward runs."""
        return self._running[-1] if self._running else None

    def name(self, model: nn.Module) -> None:
        """Learn the names of a model's modules."""
        for name, module in model.named_modules():
            self._names.setdefault(id(module), name or type(module).__name__)

    def name_of(self, module: nn.Module) -> str:
        return self._names.get(id(module), type(module).__name__)

    def watch(self) -> Callable[[], None]:
        """Follow all forwards until the returned function is called."""
        before = hooks.register_module_forward_pre_hook(self._enter)
        after = hooks.register_module_forward_hook(self._leave, always_call=True)

        def undo() -> None:
            before.remove()
            after.remove()

        return undo

    def _enter(self, module: nn.Module, _: Any) -> None:
        self._stack.append(self.current)
        self._running.append(module)
        self.current = self.name_of(module)

    def _leave(self, module: nn.Module, _: Any, __: Any) -> None:
        self.current = self._stack.pop() if self._stack else ""
        if self._running:
            self._running.pop()
