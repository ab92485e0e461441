"""`diagnose` and `reconcile` of Python: what a run's log says, beside what is estimated of it."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

from msgspec import Struct

from tonnage.api.arguments import check_text, public
from tonnage.api.interchange import source_of
from tonnage.api.options import AnyOptions
from tonnage.api.reports import Framed
from tonnage.documents.document import builtins
from tonnage.documents.interchange.diagnose import (
    Cause,
    DiagnosisDocument,
    EstimateDocument,
    EvidenceDocument,
    FixDocument,
    NumberDocument,
    Phase,
)
from tonnage.documents.interchange.reconcile import ReconciledFigure, ReconcileDocument
from tonnage.interchange.diagnose.diagnosis import diagnosed
from tonnage.interchange.diagnose.log import Log, decoded, file_log, is_message
from tonnage.interchange.json_questions import VERBS
from tonnage.interchange.log_questions import PASTED, reconciled, run_of
from tonnage.interchange.reconcile import Measurements, file_measurements, text_measurements
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import OR, listed

Logged = str | os.PathLike[str]


class Diagnosis(Struct, frozen=True, kw_only=True, eq=False):
    """Why a run ran out of memory. `document`: what `diagnose --json` prints."""

    document: DiagnosisDocument

    @property
    def tool(self) -> str:
        """Whose log it is, such as "vllm"."""
        return self.document.tool

    @property
    def phase(self) -> Phase:
        """In which phase memory ran out, such as "backward" or "cache allocation"."""
        return self.document.phase

    @property
    def cause(self) -> Cause:
        """What took the memory, such as "activations" or "kv cache"."""
        return self.document.cause

    @property
    def ranks(self) -> list[str]:
        """Ranks of which the log says that memory ran out; none where it does not say."""
        return self.document.ranks

    @property
    def evidence(self) -> list[EvidenceDocument]:
        """Lines of the log that say so: line (from 1 on), text, rank."""
        return self.document.evidence

    @property
    def numbers(self) -> list[NumberDocument]:
        """Numbers of the log: name, value, unit (bytes, tokens, ...), line."""
        return self.document.numbers

    @property
    def fixes(self) -> list[FixDocument]:
        """What to change, what changes least first: `text`, and where the run is known `needed_bytes` and
        `freed_bytes` [bytes], `seconds` [s].
        """
        return self.document.fixes

    @property
    def estimate(self) -> EstimateDocument | None:
        """What the run needs by the estimate [bytes]; None where the run is not known."""
        return self.document.estimate

    @property
    def warnings(self) -> list[str]:
        """What else there is to know of the diagnosis."""
        return self.document.warnings

    def text(self, *, verbose: bool = False) -> str:
        """Return the lines that the command line prints, without colour: at most 24; with `verbose` all (-v)."""
        from tonnage.render.brief.layout import plain_text
        from tonnage.render.interchange.diagnosed import diagnosis_text

        return plain_text(lambda width: diagnosis_text(self.document, width, verbose=verbose))

    def to_dict(self) -> dict[str, Any]:
        """Return the document as JSON data."""
        data: dict[str, Any] = builtins(self.document)
        return data

    def __repr__(self) -> str:
        return f"<Diagnosis {self.tool}: {self.cause} in {self.phase}, {len(self.fixes)} fixes>"

    def __str__(self) -> str:
        return self.text()


class Reconciliation(Framed, Struct, frozen=True, kw_only=True, eq=False):
    """An estimate beside what a run says. `document`: what `reconcile --json` prints."""

    document: ReconcileDocument

    @property
    def figures(self) -> list[ReconciledFigure]:
        """What was measured and what is predicted, in `unit`: quantity, measured, predicted, relative_error (positive:
        predicted too high), band, inside.
        """
        return self.document.figures

    @property
    def question(self) -> dict[str, Any]:
        """The inputs that were given."""
        return self.document.question

    def rows(self) -> list[dict[str, Any]]:
        """Return every figure as a dictionary, for a data frame."""
        rows: list[dict[str, Any]] = builtins(self.document.figures)
        return rows

    def _frame_rows(self, names: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        if names:
            raise InvalidInput("a reconciliation has one table. Got {names}.", names=shown(list(names)))
        hidden = ("notes", "band")
        return [{name: value for name, value in row.items() if name not in hidden} for row in self.rows()]

    def text(self) -> str:
        """Return the lines that the command line prints, without colour."""
        from tonnage.render.reconciled import reconciled_lines

        return "\n".join(reconciled_lines(self.to_dict()))

    def to_dict(self) -> dict[str, Any]:
        """Return the document as JSON data."""
        data: dict[str, Any] = builtins(self.document)
        return data

    def __repr__(self) -> str:
        return f"<Reconciliation {self.document.verb}: {len(self.figures)} figures>"

    def __str__(self) -> str:
        return self.text()


@public
def diagnose(
    log: Logged,
    model: str = "",
    on: str = "",
    *,
    config: str | os.PathLike[str] | Sequence[str] | None = None,
    **options: Unpack[AnyOptions],
) -> Diagnosis:
    """Return why a run ran out of memory: the phase, the cause, and fixes in its own tool's flags.

    log: a path ("train.log"), or the text of a log (with a line break); at most 64 MiB
    model, on: of the run, where the log does not say them: fixes have numbers then
    config: what started the run, as `tonnage.check` takes it: a path, a text, a command
    options: of the run, as `tonnage.train` or `tonnage.serve` takes them; they need model and on, or a config

    Returns a Diagnosis: `phase`, `cause`, `evidence` (lines of the log), `numbers` [bytes, tokens, ...], `fixes`, each
    with `needed_bytes` and `freed_bytes` [bytes] and `seconds` [s] of a step or a token where the run is known.
    Raises TonnageError: MissingDatum where the log does not say that memory ran out, InvalidInput for a file that is no
    text or a run that is impossible.

    >>> tonnage.diagnose("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\\n").cause
    'unknown'
    """
    question = _question(model, on, options)
    found = diagnosed(_log(log), run_of(question, None if config is None else source_of(config)))
    return Diagnosis(document=found)


@public
def reconcile(
    logs: Logged | Sequence[Logged],
    verb: Literal["train", "serve", ""] = "",
    model: str = "",
    on: str = "",
    *,
    config: str | os.PathLike[str] | Sequence[str] | None = None,
    **options: Unpack[AnyOptions],
) -> Reconciliation:
    """Return the estimate of a run beside what its logs say, figure by figure.

    logs: a path or a text (with a line break), or several of one run: logs, metrics, results of benchmarks, memory
        snapshots of PyTorch (only as a path; nothing in them is run); at most 50 MB each
    verb, model, on, options: the run, as `tonnage.train` and `tonnage.serve` take it
    config: what started the run, as `tonnage.check` takes it; what is said beside it is stronger

    Returns a Reconciliation: `figures` has measured, predicted and relative_error (positive: predicted too high) of
    each quantity of docs/rows.md in its unit, and whether what was measured is `inside` the error band.
    Raises TonnageError: InvalidInput where no figure of the verb is found or the run is not said, else as the verb.

    >>> log = "Load weight end. type=LlamaForCausalLM, avail mem=63.48 GB, mem usage=15.11 GB.\\n"
    >>> tonnage.reconcile(log, "serve", "llama-3.1-8b", on="h100", engine="sglang").figures[0].quantity
    'weights'
    """
    if verb and verb not in VERBS:
        raise InvalidInput("{@verb} is {verbs}. Got {got}.", verbs=listed(VERBS, OR), got=shown(verb))
    question = _question(model, on, options)
    several: Sequence[Any] = logs if isinstance(logs, list | tuple) else [logs]
    if not several:
        raise InvalidInput("logs is a path, a text, or a list of them. Got {value}.", value=shown(logs))
    found = [_measurements(each) for each in several]
    return Reconciliation(
        document=reconciled(found, verb, question, None if config is None else source_of(config)),
    )


def _question(model: str, on: str, options: Mapping[str, Any]) -> dict[str, Any]:
    return {"model": check_text("model", model), "on": check_text("on", on), "options": dict(options)}


def _is_text(log: Any) -> bool:
    """Whether a log is given as its text. InvalidInput where it is neither that nor a path."""
    if not isinstance(log, str | os.PathLike):
        raise InvalidInput("a log is a path or a text. Got {value}.", value=shown(log))
    return isinstance(log, str) and "\n" in log


def _log(log: Logged) -> Log:
    if _is_text(log) or is_message(os.fspath(log)):
        return Log(decoded(str(log).encode("utf-8", "replace"), PASTED), PASTED)
    return file_log(os.fspath(log))


def _measurements(log: Logged) -> Measurements:
    return text_measurements(str(log), PASTED) if _is_text(log) else file_measurements(os.fspath(log))
