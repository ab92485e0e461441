"""Runs in the environment of aiconfigurator alone: questions come in as JSON, answers go out as JSON after a line of
their own.
"""

import contextlib
import copy
import json
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, Final

import yaml

# It reads some 500 files again for each answer: kept, an answer costs a tenth of a second. Nothing else of it is
# changed.
READ: Final[Callable] = yaml.load
FILES: Final[dict[str, Any]] = {}
os.environ["HF_HUB_OFFLINE"] = "1"  # its own configs are all that is asked of


def load(stream: Any, Loader: Any = yaml.SafeLoader) -> Any:
    name = getattr(stream, "name", None)
    if not isinstance(name, str):
        return READ(stream, Loader)
    if name not in FILES:
        FILES[name] = READ(stream, Loader)
    return copy.deepcopy(FILES[name])


yaml.load = yaml.safe_load = load

from aiconfigurator.cli.api import cli_estimate  # noqa: E402 - after the files are kept


def answer(asked: dict) -> dict:
    """Milliseconds of the first token and of one more, and which of its modes said so; or why it cannot.

    Measured kernels first, then those that it fills in; where it has none for the cache's type that was run, with the
    type that it takes itself.
    """
    problem = ""
    for given in (asked, {**asked, "kvcache_quant_mode": None}):
        for mode in ("SILICON", "HYBRID"):
            try:
                found = cli_estimate(mode="agg", database_mode=mode, **given)
            except Exception as error:  # noqa: BLE001 - it raises what it likes
                problem = problem or str(error)
            else:
                return {"ttft": found.ttft, "tpot": found.tpot, "mode": mode}
    return {"problem": problem.splitlines()[0][:120]}


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    found, taken = {}, []
    with contextlib.redirect_stdout(sys.stderr):
        for name, asked in json.load(sys.stdin).items():
            start = time.perf_counter()
            found[name] = answer(asked)
            taken.append(time.perf_counter() - start)
    print("\nANSWERS")
    json.dump({"answers": found, "milliseconds": 1000 * sorted(taken)[len(taken) // 2]}, sys.stdout)
