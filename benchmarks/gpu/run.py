"""Everything that a GPU can tell in a few minutes, in one command:

    python benchmarks/gpu/run.py --out validation/gpu --budget 520

Runs cases until the time is up, the most telling and cheapest first, each in its own process. A row is written as soon
as it is measured; what has a row for this device and these versions is not measured again. Needs torch (2.x, built for
CUDA), nothing else.
"""

import argparse
import fnmatch
import json
import os
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path

BEGUN = time.monotonic()
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE.parent), str(ROOT / "src")]

from gpu import harness  # noqa: E402
from gpu.cases import Case, cases  # noqa: E402
from gpu.loop import run, todo  # noqa: E402
from gpu.store import Store  # noqa: E402
from tonnage.kernel.errors import InvalidInput, MissingDatum, TonnageError  # noqa: E402
from tonnage.measure.environment import key  # noqa: E402

BUDGET = 540.0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    made.add_argument(
        "--out", type=Path, default=ROOT / "validation" / "gpu", help="folder of the rows (default: validation/gpu)"
    )
    made.add_argument(
        "--known", type=Path, action="append", help="folder whose rows are not measured again (default: validation/gpu)"
    )
    made.add_argument("--budget", type=float, default=BUDGET, help="seconds for everything (default: 540)")
    made.add_argument(
        "--only", metavar="PATTERN", action="append", help="cases whose names match, such as 'train-llama-1b*'"
    )
    made.add_argument("--device", default="cuda", help="cuda, cuda:1, or cpu with --tiny (default: cuda)")
    made.add_argument("--tiny", action="store_true", help="a few small cases, to try the suite out")
    made.add_argument("--fresh", action="store_true", help="a new interpreter for each case instead of a fork")
    made.add_argument("--list", action="store_true", help="name the cases and end")
    made.add_argument(
        "--dry-run", action="store_true", help="name what would run in the budget, with the time it is reckoned to take"
    )
    made.add_argument(
        "--yaml", action="store_true", help="merge the rows of the folder into YAML files for validation/, and end"
    )
    made.add_argument("--work", help=argparse.SUPPRESS)
    made.add_argument("--probe", action="store_true", help=argparse.SUPPRESS)
    return made


def main(arguments: list[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    try:
        return _main(given)
    except TonnageError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_status


def _main(given: argparse.Namespace) -> int:
    if given.probe:
        harness.write_probe(given.device, given.out / "device.json")
        return 0
    if given.budget != given.budget or given.budget <= 0:
        raise InvalidInput(f"--budget must be more than 0 seconds. Got {given.budget:g}.")
    if given.device == "cpu" and not given.tiny:
        raise InvalidInput(
            "--device cpu tries the suite out, and takes --tiny with it: a CPU's figures stand for no GPU."
        )
    chosen = _chosen(cases(given.tiny), given.only)
    if given.work:
        return _work(given, chosen)
    if given.list:
        _print_list(chosen)
        return 0
    store = Store(given.out, given.known or [ROOT / "validation" / "gpu"])
    if given.yaml:
        for name, count in store.merge().items():
            print(f"{given.out / name}: {count} rows")
        return 0
    if given.dry_run:
        _print_plan(chosen, store, given.budget)
        return 0
    return _measure(given, chosen, store)


def _measure(given: argparse.Namespace, chosen: list[Case], store: Store) -> int:
    given.fresh = given.fresh or not _import_torch()
    try:
        environment = harness.probe(given.device, given.out, given.fresh)
    except MissingDatum:
        if given.fresh:
            raise
        environment = harness.probe(given.device, given.out, fresh=True)
        given.fresh = True  # a GPU that forks do not see
    device = key(environment)
    left = todo(
        chosen, store.done(), (each["id"] for each in store.failures() if each["status"] != "unsupported"), device
    )
    print(f"{device}: {len(left)} of {len(chosen)} cases to do, {given.budget:.0f} s")

    def start(case: Case, items: tuple[str, ...], seconds: float) -> harness.Outcome:
        return harness.start(
            harness.Job(
                case=case,
                items=items,
                folder=given.out,
                device=given.device,
                environment=environment,
                seconds=seconds,
                tiny=given.tiny,
            ),
            given.fresh,
        )

    done = run(
        left,
        given.budget,
        lambda: time.monotonic() - BEGUN,
        start,
        lambda case, outcome: store.failed(f"{device}-{case.name}", outcome.status, outcome.message),
        lambda line: print(line, flush=True),
    )
    (given.out / harness.LOG).unlink(missing_ok=True)
    print(
        f"{len(store.rows())} rows in {given.out}; {len(done.done)} cases done, {len(done.failed)} failed, "
        f"{len(done.skipped)} without time"
    )
    for name, outcome in done.failed.items():
        print(f"  {name}: {outcome.status}: {(outcome.message.splitlines() or [''])[-1][:200]}")
    return 0


def _work(given: argparse.Namespace, chosen: list[Case]) -> int:
    """Inside the process of one case."""
    asked = json.loads(os.environ["TONNAGE_JOB"])
    (case,) = (each for each in chosen if each.name == given.work)
    harness.work(
        harness.Job(
            case=case,
            items=tuple(asked["items"]),
            folder=given.out,
            device=given.device,
            seconds=asked["seconds"],
            environment=asked["environment"],
        )
    )
    return 0


def _import_torch() -> bool:
    """Imports once, before forks, what every case needs. Whether forks will do: a GPU that is in use here is lost to
    them.
    """
    try:
        import torch
    except ImportError:
        from tonnage.measure.device import NO_TORCH

        raise MissingDatum(NO_TORCH) from None
    with suppress(ImportError):  # half of a small case's time: torch imports it with the first optimizer
        import torch._dynamo
    for module in ("training", "rates", "kernels", "constants"):
        import_module(f"gpu.{module}")
    return not torch.cuda.is_initialized()


def _chosen(known: list[Case], patterns: list[str] | None) -> list[Case]:
    found = [case for case in known if not patterns or any(fnmatch.fnmatch(case.name, pattern) for pattern in patterns)]
    if not found:
        raise InvalidInput(f"no case matches {' or '.join(patterns or ())}: --list names them.")
    return found


def _print_list(chosen: list[Case]) -> None:
    for case in chosen:
        print(f"{case.priority}  {case.seconds:6.1f} s  {len(case.items):4} rows  {case.name}")
    print(
        f"{len(chosen)} cases, {sum(len(case.items) for case in chosen)} rows, "
        f"{sum(case.seconds for case in chosen):.0f} s on an H100"
    )


def _print_plan(chosen: list[Case], store: Store, budget: float) -> None:
    """Without a device: a row of any device counts as done."""
    done = store.done()
    spent = 0.0
    for case in chosen:
        if all(any(known.endswith(f"-{item}") for known in done) for item in case.items):
            print(f"      has rows  {case.name}")
        elif spent + case.seconds <= budget:
            spent += case.seconds
            print(f"{spent:8.1f} s  run   {case.name}")
        else:
            print(f"       no time  {case.name}")


if __name__ == "__main__":
    sys.exit(main())
