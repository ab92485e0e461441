"""Lets a build of PyTorch for CPUs run autograd on fake CUDA tensors. ctypes, no compiler; Linux, C++ ABI of PyTorch
2.9 to 2.13.

Two things are missing there. The registry of device guards has no entry for CUDA: a stand-in whose every method returns
0 is put there, and PyTorch's own `ensureCUDADeviceGuardSet`, which finds no device, replaces it by its no-op guard. And
the CUDA hooks report that CUDA is not built: the table of their methods is copied, and that method's answer changed;
its slot is found by trying each. Failures here are crashes, so it is tried in another process first.
"""

import ctypes
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import torch

_CUDA = 1  # c10::DeviceType::CUDA
_REGISTRY = "_ZN3c104impl26device_guard_impl_registryE"
_HOOKS = "_ZN2at6detail12getCUDAHooksEv"
_SLOTS = 96
_KEPT: list[Any] = []


class GuardFailed(RuntimeError):
    """The no-op guard could not be installed in this build."""


@cache
def works() -> str:
    """An empty text if fake CUDA tensors can run here, else the reason. Tried in another process, which may crash."""
    if torch.version.cuda is None and not sys.platform.startswith("linux"):
        return f"only on Linux. This is {sys.platform}."
    probe = (
        "import os, torch; from tonnage.trace.record.fake import guard; guard.install();"
        "torch.autograd.set_multithreading_enabled(False)\n"  # else threads of backward may end the process as a crash
        "from torch._subclasses.fake_tensor import FakeTensorMode\n"
        "with FakeTensorMode():\n x = torch.randn(4, 4, device='cuda', requires_grad=True); (x @ x).sum().backward()\n"
        "print('works', flush=True); os._exit(0)"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode == 0 and done.stdout.strip().endswith("works"):
        return ""
    last = (done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"])[-1]
    return f"PyTorch {torch.__version__} does not run fake CUDA tensors here: {last[:200]}"


def install() -> None:
    """Install guard and hooks, once. Raises GuardFailed."""
    if torch.cuda.is_available():
        return
    _install_guard()
    _install_hooks()


def _install_guard() -> None:
    registry = (ctypes.c_void_p * 20).in_dll(_library("libc10.so"), _REGISTRY)
    if not registry[_CUDA]:
        method = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(lambda _: 0)
        address = ctypes.cast(method, ctypes.c_void_p).value
        table = (ctypes.c_void_p * 64)(*([address] * 64))
        stand_in = (ctypes.c_void_p * 2)(ctypes.addressof(table), 0)
        for pinned in (method, table, stand_in):
            _keep(pinned)
        registry[_CUDA] = ctypes.addressof(stand_in)
        torch._C._ensureCUDADeviceGuardSet()
        if registry[_CUDA] in (None, ctypes.addressof(stand_in)):
            registry[_CUDA] = None
            raise GuardFailed("the no-op guard for CUDA was not installed")


def _install_hooks() -> None:
    if _is_cuda():
        return
    hooks = getattr(_library("libtorch_cpu.so"), _HOOKS)
    hooks.restype = ctypes.c_void_p
    pointer = ctypes.c_void_p.from_address(hooks())
    old = pointer.value
    if old is None:
        raise GuardFailed("the hooks of CUDA have no table of methods")
    source = (ctypes.c_void_p * (_SLOTS + 2)).from_address(old - 16)
    yes = ctypes.cast(ctypes.pythonapi.Py_IsInitialized, ctypes.c_void_p).value  # a C function that returns 1
    for slot in range(2, _SLOTS):
        if not source[slot]:
            break
        table = (ctypes.c_void_p * (_SLOTS + 2))(*[source[i] for i in range(_SLOTS + 2)])
        table[slot] = yes
        _keep(table)
        pointer.value = ctypes.addressof(table) + 16
        if _is_cuda():
            table[slot + 2] = yes  # the order is isBuilt, isAvailable, hasPrimaryContext
            return
        pointer.value = old
    raise GuardFailed("no method of CUDA's hooks says that CUDA is built")


def _is_cuda() -> bool:
    try:
        return bool(torch._C._accelerator_getAccelerator() == torch.device("cuda"))
    except RuntimeError:
        return False


def _library(name: str) -> ctypes.CDLL:
    return ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / name))


def _keep(held: Any) -> None:
    """Keep an object alive beyond the interpreter, whose shutdown calls into it."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(held))
    _KEPT.append(held)
