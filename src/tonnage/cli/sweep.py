"""tonnage sweep: every combination of a file's models, machines and options, into a Parquet dataset."""

import argparse
import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tonnage.cli.common.parser import add
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message, listed
from tonnage.language import say
from tonnage.question.form import Given, required, values
from tonnage.question.forms import ranged, whole, word
from tonnage.question.option import Option

if TYPE_CHECKING:
    from tonnage.documents.sweep import SweepDocument

HELP = "every combination of the models, machines and options of a file, estimated into a Parquet dataset"
OPTIONS = (
    Option(
        "out",
        "directory of the dataset: new, or that of the same sweep with --resume; with --ray all nodes must reach it",
        word,
        unit="directory",
    ),
    Option(
        "workers",
        "processes at the same time; on a Ray cluster that is joined: the most processors to use",
        ranged(whole, "from 1 to 10,000"),
        unit="processes",
        default="processors of this machine; with --ray those of the cluster",
    ),
    Option("resume", "continue the dataset in --out", default="--out must be new"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("spec", nargs="?", metavar="SPEC", help="a YAML file: what is swept (docs/commands/sweep.md)")
    add(parser, OPTIONS, "sweep")
    parser.add_argument(
        "--ray",
        nargs="?",
        const="",
        metavar="ADDRESS",
        help=(
            "run on Ray: join the cluster at ADDRESS (HOST:PORT, or auto), or start one here (default: processes "
            "of this machine)"
        ),
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document (schema tonnage/2)")


def run(arguments: Given) -> int:
    from pathlib import Path

    from tonnage.cli import INTERRUPTED
    from tonnage.cli.common.print import Unwritable, print_json, print_lines

    options = values(arguments, OPTIONS)
    if arguments.spec is None:
        raise InvalidInput(
            "SPEC is needed: a YAML file that says what is swept, as in `tonnage sweep SPEC.yaml --out DIR`."
        )
    out, workers = Path(required(options, OPTIONS[0])), options.get("workers")
    if workers is not None and not 1 <= workers <= 10_000:
        raise InvalidInput("--workers must be from 1 to 10,000. Got {workers:,}.", workers=workers)

    from tonnage.search.sweep.dataset import Unwritable as FullDisk
    from tonnage.search.sweep.drive import sweep
    from tonnage.search.sweep.spec import read

    spec = read(Path(arguments.spec))
    try:
        with _end_politely():
            done = sweep(spec, out, workers=workers, ray=arguments.ray, resume=bool(options.get("resume")))
    except KeyboardInterrupt:
        again = "--resume" if arguments.ray is None else f"--resume --ray {arguments.ray}".rstrip()
        on = f"tonnage sweep {arguments.spec} --out {out} {again}"  # a command, the same in every language
        print(say("interrupted: what is done is in {out}. To go on: {on}", out=out, on=on), file=sys.stderr)
        return INTERRUPTED
    except FullDisk as error:
        raise Unwritable(str(error.strerror or error)) from None
    document = _document(spec, str(out), workers, arguments.ray, done)
    if arguments.json:
        print_json(document)
    else:
        from tonnage.documents.document import builtins
        from tonnage.render.sweep import sweep_lines

        print_lines(sweep_lines(builtins(document)))
    return 4 if done.failed else 0


@contextlib.contextmanager
def _end_politely() -> Iterator[None]:
    """What a scheduler sends before it kills is taken as Ctrl-C is."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _document(spec: Any, out: str, workers: int | None, ray: str | None, done: Any) -> "SweepDocument":
    from tonnage.documents.sweep import FailedRow, LeftOutRow, SweepDocument
    from tonnage.kernel.units import counted
    from tonnage.search.sweep.drive import processors
    from tonnage.search.sweep.tasks import Tasks

    tasks, summary = Tasks(spec), done.summary
    where = (
        Message("Ray at {ray}", ray=ray)
        if ray
        else "Ray on this machine"
        if ray is not None
        else Message("{workers} of this machine", workers=counted(workers or processors(), "processes"))
    )
    warnings: list[str] = (
        [Message("no such cluster is known: {left_out}.", left_out=listed(spec.left_out))] if spec.left_out else []
    )
    warnings += [
        Message(
            "{name} does not apply to {plans:,} of the {valid:,} that are valid: they were estimated without it.",
            name=name,
            plans=plans,
            valid=summary.valid,
        )
        for name, plans in sorted(summary.without.items())
    ]
    return SweepDocument(
        kind=spec.kind,
        directory=out,
        sweep=spec.digest(),
        plans=tasks.plans,
        chunks=tasks.count,
        chunks_before=done.lay,
        chunks_made=done.made,
        failed=[FailedRow(chunk=number, why=why) for number, why in sorted(done.failed.items())],
        considered=summary.considered,
        valid=summary.valid,
        fitting=summary.fitting,
        rows=summary.rows,
        bytes=summary.size,
        left_out=[
            LeftOutRow(constraint=name, plans=plans)
            for name, plans in sorted(summary.removed.items(), key=lambda reason_count: -reason_count[1])
            if plans
        ],
        seconds=done.seconds,
        plans_per_second=done.plans_made / done.seconds,
        workers=where,
        best_rows=summary.best_rows,
        best=summary.best,
        warnings=warnings,
    )
