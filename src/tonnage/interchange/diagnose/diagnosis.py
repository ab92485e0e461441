"""The answer of `diagnose`: what a log says, and what to change."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct

from tonnage.documents.advice import ORDER
from tonnage.documents.interchange.diagnose import (
    Cause,
    DiagnosisDocument,
    EvidenceDocument,
    FixDocument,
    NumberDocument,
)
from tonnage.documents.question import Entry
from tonnage.interchange.check import Understood, marked
from tonnage.interchange.diagnose.failure import Failure, failure_of
from tonnage.interchange.diagnose.fixes.estimated import NOT_ESTIMATED, estimate_of, fixes_by_estimate, logits_of
from tonnage.interchange.diagnose.fixes.rules import OF_LOG, fixes_by_rule, leads
from tonnage.interchange.diagnose.log import Log
from tonnage.interchange.diagnose.patterns import FAILED
from tonnage.interchange.diagnose.run_command import command_of_run
from tonnage.interchange.diagnose.sentences import cause_sentence, logits_sentence
from tonnage.interchange.diagnose.tools import SERVE, TRAIN
from tonnage.interchange.reading import Asker
from tonnage.kernel.errors import MissingDatum, TonnageError
from tonnage.kernel.message import Message
from tonnage.question.subjects.model import DIMENSIONS

if TYPE_CHECKING:
    from tonnage.estimate.answer.form import Answer

LONGEST = 400  # characters of a line of evidence


class Run(Struct, frozen=True, kw_only=True):
    """What whoever asks says of the run beside its log.

    asker: model and machine; `understood`: what was read of a config or command
    options: further options of ours, of a verb
    """

    asker: Asker = Asker()
    options: Callable[[str], Mapping[str, Any]] | None = None
    understood: Understood | None = None


UNKNOWN_RUN = Run()


def diagnosed(log: Log, run: Run = UNKNOWN_RUN) -> DiagnosisDocument:
    """Why the run of a log ran out of memory. MissingDatum where the log does not say that it did."""
    failure = failure_of(log)
    if failure is None:
        raise MissingDatum(NOT_FOUND, file=log.name)
    warnings = [] if failure.is_certain else [UNCERTAIN]
    estimated = _estimated_run(log, failure, run, warnings)
    answer, understood = estimated.answer, estimated.understood
    cause, text = failure.cause, cause_sentence(failure)
    if answer is not None and (sizes := _logits(failure, answer)) is not None:
        cause, text = "logits", logits_sentence(failure, *sizes)
    return DiagnosisDocument(
        question=_entries(log, estimated),
        tool=failure.tool.name,
        tool_name=failure.tool.shown,
        phase=failure.phase,
        cause=cause,
        text=text,
        ranks=list(failure.ranks),
        numbers=[NumberDocument(name=n.name, value=n.value, unit=n.unit, line=n.line) for n in failure.numbers],
        evidence=_evidence(failure),
        fixes=_fixes(failure, cause, answer, warnings),
        estimate=estimate_of(answer) if answer is not None else None,
        read=understood.document if understood is not None else UNSET,
        warnings=warnings,
    )


NOT_FOUND = (
    "{file} does not say that memory ran out. Looked for: what PyTorch's allocators, cuBLAS and NCCL say, start-up "
    "errors of vLLM, SGLang, TensorRT-LLM, llama.cpp and Ollama, the kernel's OOM killer, exit code 137, and /dev/shm."
)


def _evidence(failure: Failure) -> list[EvidenceDocument]:
    return [
        EvidenceDocument(
            line=hit.line.number,
            text=hit.line.text.strip()[:LONGEST],
            failed=hit.pattern.strength >= FAILED or hit.index == failure.hit.index,
            rank=hit.line.rank,
        )
        for hit in failure.evidence
    ]


def _entries(log: Log, estimated: "_EstimatedRun") -> dict[str, Entry]:
    """The log, and the options of the run: all of them where it was estimated."""
    question = {"log": Entry(value=log.name, origin="given")}
    if estimated.answer is not None:
        return {**question, **estimated.answer.question}
    if estimated.understood is not None:
        for name, value in estimated.understood.question.items():
            question[name] = Entry(value=value, origin="file", keys=tuple(estimated.understood.origins.get(name, ())))
    return question | {name: Entry(value=value, origin="given") for name, value in estimated.options.items()}


class _EstimatedRun(Struct, frozen=True, kw_only=True):
    """The run as a question of ours, as far as it is known, and its answer."""

    verb: str
    options: Mapping[str, Any]
    understood: Understood | None
    answer: "Answer | None"


def _estimated_run(log: Log, failure: Failure, run: Run, warnings: list[str]) -> _EstimatedRun:
    """What the log or whoever asks says of the run, and its estimate where that is enough."""
    understood = run.understood
    if understood is None and run.options is None:
        command = command_of_run(log, run.asker)
        understood = command.understood
        if understood is None and command.problem:
            warnings.append(Message(NOT_ESTIMATED_RUN, why=command.problem))
    verb = failure.tool.verb or (SERVE if failure.phase == "serving" else TRAIN)
    verb = understood.verb if understood is not None else verb
    options = {name: value for name, value in (("model", run.asker.model), ("on", run.asker.on)) if value}
    if understood is not None and "on" in options:
        options["on"] = understood.question["on"]  # an accelerator alone has got the command's number of them
    options |= run.options(verb) if run.options is not None else {}
    question = {**(understood.question if understood is not None else {}), **options}
    if failure.tool.runs and verb == failure.tool.verb:
        question.setdefault("engine" if verb == SERVE else "runtime", failure.tool.runs)
    answer = None
    has_model = question.get("model") or any(question.get(option.name) for option in DIMENSIONS)
    if has_model and question.get("on"):
        try:
            answer = _answered(verb, question)
            if understood is not None:
                answer = marked(answer, understood, set(options))
        except TonnageError as error:
            if understood is None or understood is run.understood or options.keys() - {"model", "on"}:
                raise
            warnings.append(Message(NOT_ESTIMATED_RUN, why=str(error)))
    return _EstimatedRun(verb=verb, options=options, understood=understood, answer=answer)


NOT_ESTIMATED_RUN = "the command in the log is not estimated: {why}"
UNCERTAIN = (
    "the log shows a process that was killed, not by whom: `dmesg -T | grep -i oom` says whether the kernel did it for "
    "want of memory."
)


def _answered(verb: str, question: Mapping[str, Any]) -> "Answer":
    from tonnage.question.read import in_fields, read

    parsed = read(verb, {**question, "as_is": True})
    with in_fields(parsed):
        answer: Answer = import_module(f"tonnage.verbs.{verb}").answer(parsed.given)
    return answer


def _fixes(failure: Failure, cause: Cause, answer: "Answer | None", warnings: list[str]) -> list[FixDocument]:
    by_rule = fixes_by_rule(failure)
    if answer is None or cause in NOT_ESTIMATED:
        return by_rule
    estimated = fixes_by_estimate(answer, failure.tool.name)
    if not estimated and answer.fits:
        warnings.append(
            "by the estimate this run fits: the log is of other options, or of memory that is not estimated (other "
            "processes, fragmentation, longer inputs)."
        )
    if not estimated:
        return by_rule
    # The engine's share has a direction of its own, an allocator's setting frees what no estimate has, and what an
    # engine says of itself is exact.
    has_share = any("gpu_memory_utilization" in (fix.change or {}) for fix in estimated)
    usable = float(answer.usable_bytes)
    leading = [
        fix for fix in by_rule[:1] if cause == "fragmentation" or (leads(fix, failure, usable) and not has_share)
    ]
    exact = [fix for fix in by_rule if fix.why == OF_LOG]
    if exact:
        estimated = [fix for fix in estimated if (fix.change or {}).keys() != {"context"}]
    return [*leading, *sorted([*estimated, *exact], key=lambda fix: ORDER.index(fix.changes))]


def _logits(failure: Failure, answer: "Answer") -> tuple[int, int, int] | None:
    """Tokens, entries of the vocabulary and bytes an entry, where the logits have what could not be allocated."""
    tried = failure.values.get("tried")
    if not tried or answer.verb != "train" or failure.cause in NOT_ESTIMATED or failure.cause == "fragmentation":
        return None
    question = {name: entry.value for name, entry in answer.question.items()}
    vocabulary = _vocabulary(question)
    sizes = logits_of(tried, vocabulary, question) if vocabulary else None
    return (sizes[0], vocabulary, sizes[1]) if sizes else None


def _vocabulary(question: Mapping[str, Any]) -> int:
    """Entries of the model's vocabulary."""
    from tonnage.question.looked_up import model_and_machine
    from tonnage.question.read import read

    try:
        parsed = read(TRAIN, {"model": question["model"], "on": question["on"]})
        return int(model_and_machine(parsed.given)[0].vocab_size)
    except (KeyError, TonnageError):
        return 0
