"""tonnage reconcile: the estimate beside what a run says."""

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime

from tonnage.cli.common.inner_question import VERBS, sort_words
from tonnage.cli.export import question_words
from tonnage.kernel.errors import InvalidInput
from tonnage.question.form import Given

HELP = "the estimate beside what a run says: logs, metrics, benchmarks and memory snapshots, figure by figure"
CONFIG, ROW, KEEP, JSON = "--config", "--row", "--keep", "--json"


def spelled(words: Sequence[str]) -> list[str]:
    """The words of the question behind `--`: they are read as those of its verb."""
    left = list(words)
    at = next((at for at, word in enumerate(left) if word in VERBS), len(left))
    if 0 < at < len(left) and left[at - 1] == "--":  # as people write it: reconcile LOG -- train ...
        left.pop(at - 1)
    parts = sort_words(left, (CONFIG, ROW), (KEEP, JSON))
    return [*parts.options, *parts.before, "--", *parts.question] if parts else left


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "logs",
        nargs="+",
        metavar="LOG",
        help="files; behind them train or serve with MODEL, --on and options of the run",
    )
    parser.add_argument(CONFIG, metavar="FILE", help="another tool's file or job, which says what was run")
    parser.add_argument(ROW, metavar="FILE.yaml", help="write the run as a row besides, which `tonnage validate` reads")
    parser.add_argument(
        KEEP, action="store_true", help="keep the run among your own, which `--calibrated` of train and serve uses"
    )
    parser.add_argument(JSON, action="store_true", help="print one JSON document (schema tonnage/2)")


def run(arguments: Given) -> int:
    from tonnage.cli.common.print import print_json, print_lines
    from tonnage.documents.document import builtins
    from tonnage.interchange.reconcile import file_measurements, reconcile
    from tonnage.render.reconciled import reconciled_lines

    at = next((at for at, word in enumerate(arguments.logs) if word in VERBS), len(arguments.logs))
    logs, words = arguments.logs[:at], arguments.logs[at:]
    if not logs:
        raise InvalidInput("LOG is needed: a file that says what was measured, before train or serve.")
    verb, question = _asked(arguments.config, words)
    sources = [file_measurements(path) for path in logs]
    document = reconcile(sources, verb, question, f"{datetime.now(UTC):%Y-%m-%d}")
    if arguments.row:
        _save(arguments.row, document.rows)
    if arguments.keep:
        from tonnage.calibration.kept import add

        add(builtins(document.rows))
    if arguments.json:
        print_json(document)
    else:
        print_lines(reconciled_lines(builtins(document)))
    return 0


def _asked(config: str | None, words: Sequence[str]) -> tuple[str, dict[str, object]]:
    """The verb and the question: of a config, of words, or of both, where the words are stronger."""
    from tonnage.interchange.check import understood
    from tonnage.interchange.reading import Asker
    from tonnage.interchange.source import file_source

    if not words and not config:
        raise InvalidInput(
            "say what was run: behind the logs `train MODEL --on CLUSTER ...` or `serve MODEL --on CLUSTER ...`, or "
            "--config FILE."
        )
    typed = question_words(words[0], words[1:]) if words else {}
    if not config:
        return words[0], typed
    asker = Asker(model=str(typed.get("model") or ""), on=str(typed.get("on") or ""))
    found = understood(file_source(config), asker)
    if words and words[0] != found.verb:
        raise InvalidInput("{file} is a question to {verb}. Got {other}.", file=config, verb=found.verb, other=words[0])
    return found.verb, {**found.question, **typed, "on": found.question["on"]}


def _save(path: str, rows: Sequence[object]) -> None:
    import yaml

    from tonnage.cli.export import save
    from tonnage.documents.document import builtins

    save(path, yaml.safe_dump(builtins(rows), sort_keys=False, allow_unicode=True), "--row")
