"""The programs of the training cases for the tracer: what a row measured, predicted.

    tonnage trace benchmarks/gpu/program.py:program --profile torch-2.11-h100 ...

with the row's `config.case` as the argument `case`.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from gpu.cases import training_case
from gpu.training import build
from tonnage.kernel.errors import InvalidInput
from tonnage.trace.program import Program


def program(case: str, device: str = "cuda") -> Program:
    """The program of a case, on fake tensors where it is traced."""
    try:
        return build(training_case(case), device)
    except KeyError:
        raise InvalidInput(
            f"no training case is called {case!r}: `python benchmarks/gpu/run.py --list` names them."
        ) from None
