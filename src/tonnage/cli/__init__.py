"""The command line. A verb is a module with HELP, add_arguments and run; only the verb that is called is imported."""

import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from types import ModuleType
from typing import TYPE_CHECKING

from msgspec import UNSET

from tonnage.cli.common.outputs import check_outputs
from tonnage.cli.common.parser import FLAG, Parser, language_of_error, split_language
from tonnage.cli.common.parser import HELP as LANG_HELP
from tonnage.cli.common.print import Unwritable, forgive_encodings, in_error, write
from tonnage.kernel.errors import TonnageError
from tonnage.kernel.message import Message, listed
from tonnage.language import say, say_as, speaking, worded
from tonnage.spelling.translation import Translation

if TYPE_CHECKING:
    from tonnage.cli.common.problem_table import Wrong

VERBS = {
    "train": "does this training run fit, and where does its memory go?",
    "serve": "does this model serve these requests, and how many would fit?",
    "max": "the largest context, users, layers, model, sequence, micro-batch or LoRA rank that fits",
    "plan": "the best plans and machines for a training run, for users, or for a pool of unlike machines",
    "compare": "one table of machines, precisions, contexts and prices: does it fit, how fast, at what price?",
    "check": "does what another tool's file or command asks for fit? DeepSpeed, Axolotl, vLLM, Slurm and others",
    "export": "the config or command of another tool that starts what train or serve answers",
    "reconcile": "the estimate beside what a run says: logs, metrics, results of benchmarks",
    "calibrate": "own runs, kept to correct the estimates of this site",
    "diagnose": "why a run ran out of memory, from its log, and what frees it in its own tool's flags",
    "sweep": "every combination of a file's models, machines and options, as a Parquet dataset",
    "trace": "what PyTorch would allocate, without a GPU",
    "measure": "what does this training program take on the GPU of this machine?",
    "rules": "the rules of thumb, each worked, with its source, its erratum and the exact figure",
    "explain": "a formula, a symbol, a source or a rule of thumb",
    "models": "the catalogue of models; one model in detail",
    "accelerators": "the catalogue of accelerators and nodes; one in detail",
    "prices": "what machines cost, by the hour or bought, each with its source and age",
    "web": "the page and the HTTP API, on this machine",
    "validate": "predictions against published measurements, row by row",
    "mcp": "a server of the Model Context Protocol: the answers as tools for assistants",
}
FIRST_WORDS = """\
tonnage: does a large language model fit a machine, where does the memory go, what would make it fit - and why.

Try first:
  tonnage train llama-3.1-8b --on 8xH100-SXM-80GB
  tonnage serve qwen3-32b --on rtx-4090 --weights awq --context 2k
  tonnage rules A6

Verbs:
{verbs}

`tonnage VERB --help` lists the usual options, `--help-all` every one with its unit and default. MODEL is a name from
`tonnage models`, a Hugging Face or ModelScope id or URL, a folder, a config.json, a .safetensors or a .gguf file.

Exit status:
{statuses}
"""
CANNOT_WRITE, INTERRUPTED = 74, 130  # sysexits.h: EX_IOERR; a shell's 128 + SIGINT
STATUSES = {
    0: "it fits; verbs without a verdict: done",
    2: "tight: what is usable lies inside the error band of the estimate",
    3: (
        "it does not fit; serve: or a target is missed, or the queue grows without end; train: or the deadline or "
        "the budget is missed"
    ),
    4: "unknown: a number that the answer needs is not published",
    64: "wrong usage or bad input",
    CANNOT_WRITE: "the answer cannot be written: the disk is full, or standard output is closed",
    INTERRUPTED: "interrupted",
}
DONE = {0: "done"}
FITS = {0: "it fits"}
# What a status means in one verb, where that is less than in all of them.
MEANINGS = {
    "train": FITS | {3: "it does not fit, or the deadline or the budget is missed"},
    "serve": FITS | {3: "it does not fit, a target is missed, or the queue grows without end"},
    "max": FITS | {3: "it does not fit"},
    "check": FITS
    | {4: "not everything of the file was understood, or a number that the answer needs is not published"},
    "diagnose": {0: "the cause was found", 4: "the log does not say that memory ran out"},
    "trace": FITS | {3: "it does not fit"},
    "measure": {0: "it ran", 3: "memory ran out"},
}
NO_VERDICT = frozenset(
    {"rules", "explain", "models", "accelerators", "prices", "validate", "export", "reconcile", "calibrate"}
)
LEFT_OUT = "left out {flags}: no part of what is estimated"
UNQUOTED = ("train", "serve", "plan", "max")  # verbs of which names with blanks are understood without quotes
SERVERS = frozenset({"web", "mcp"})  # run until they are ended
NEVER_TIGHT = frozenset({"trace", "measure"})  # it runs, or memory runs out
NEVER_FITS = frozenset({"sweep", "diagnose"})  # they have no verdict of their own


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    forgive_encodings()
    try:
        language, words = split_language(words)
        with speaking(language):
            return _answered(words)
    except TonnageError as error:  # of the language itself
        with speaking(language_of_error(words)):
            return _report(error, words)


def _answered(words: list[str]) -> int:
    try:
        return _run(words)
    except TonnageError as error:
        return _report(error, words)
    except Unwritable as error:
        print(in_error(error), file=sys.stderr)
        return CANNOT_WRITE
    except KeyboardInterrupt:
        print(say("interrupted"), file=sys.stderr)
        return INTERRUPTED


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        write(
            say(FIRST_WORDS).format(
                verbs="\n".join(f"  {verb:<14} {say(about)}" for verb, about in VERBS.items()), statuses=statuses()
            )
        )
        return 0
    if words[0] in ("-V", "--version"):
        from tonnage.kernel.version import __version__

        write(f"tonnage {__version__}\n")
        return 0
    if words[0] == "--print-completion":
        from tonnage.cli.common.completion import script

        write(script(words[1] if len(words) > 1 else "", VERBS) + "\n")
        return 0
    return _run_verb(words[0], words[1:])


def _run_verb(verb: str, rest: list[str]) -> int:
    if verb not in VERBS:
        from tonnage.kernel.registry import unknown

        raise unknown("verb", verb, VERBS)
    rest = spelled(verb, rest)
    module, parser = face(verb, rest)
    try:
        parsed = parser.parse_args(rest)
    except SystemExit as leave:  # --help
        return int(leave.code or 0)
    check_outputs(verb, parsed)
    parsed.words = (verb, *rest)  # of reports, which say what asks them again
    status = int(module.run(parsed))
    for note in read_as(parser.translation):
        print(say("note: {what}", what=worded(note)), file=sys.stderr)
    return status


def read_as(translation: Translation | None) -> list[str]:
    """What is said of options of other tools that were read as ours, and of those that were left out."""
    if translation is None:
        return []
    notes: list[str] = []
    if translation.read:
        pairs = (Message("{theirs} as {ours}", theirs=theirs, ours=ours) for theirs, ours in translation.read)
        notes.append(Message("read {pairs}", pairs=listed(pairs)))
    if translation.left_out:
        flags = listed(translation.left_out)
        notes.append(Message(LEFT_OUT, flags=flags))
    return notes


def spelled(verb: str, rest: Sequence[str]) -> list[str]:
    """The words with what stands alone where the verb looks for it: `plan serve MODEL` is `plan --serve MODEL`."""
    module = import_module(f"tonnage.cli.{verb}")
    words = list(module.spelled(rest)) if hasattr(module, "spelled") else list(rest)
    if verb in UNQUOTED and any(not one.startswith("-") and not two.startswith("-") for one, two in pairwise(words)):
        from tonnage.cli.common.unquoted import quoted
        from tonnage.question.verbs import FORMS, form_of

        flags = {flag: option for kind in FORMS[verb] for flag, option in form_of(verb, kind).flags.items()}
        return quoted(words, flags, named=verb == "max")
    return words


def face(verb: str, rest: Sequence[str]) -> tuple[ModuleType, Parser]:
    """The module and the parser of a verb. What is asked may decide which options there are."""
    module = import_module(f"tonnage.cli.{verb}")
    if hasattr(module, "mode"):
        module = module.mode(rest) or module
    parser = Parser(
        prog=f"tonnage {verb}", description=worded(module.HELP), epilog=f"{say('exit status:')}\n{statuses(verb)}"
    )
    parser.flags_by_verb = flags_by_verb
    parser.add_argument(FLAG, metavar="LANGUAGE", help=LANG_HELP)
    module.add_arguments(parser)
    return module, parser


def flags_by_verb() -> dict[str, frozenset[str]]:
    """Verb -> its options, of the verbs that are on the command line alone."""
    from tonnage.question.verbs import FORMS

    return {verb: frozenset(face(verb, ())[1]._option_string_actions) for verb in VERBS if verb not in FORMS}


def statuses(verb: str = "") -> str:
    """The exit statuses, a line each: all of them, or those of one verb."""
    of_verdicts = (
        (2, 3, 4)
        if verb in NO_VERDICT | SERVERS
        else (2,)
        if verb in NEVER_TIGHT
        else (2, 3)
        if verb in NEVER_FITS
        else ()
    )
    meanings = STATUSES | MEANINGS.get(verb, DONE if of_verdicts and verb not in NEVER_TIGHT else {})
    return "\n".join(
        f"  {status:<5} {say(meaning)}" for status, meaning in meanings.items() if status not in of_verdicts
    )


def _report(error: TonnageError, words: list[str]) -> int:
    """The message without a traceback; with --json a document too, so that stdout always holds one."""
    status = 64 if words[0] in NO_VERDICT else error.exit_status
    message, shown = _messages(error, words)
    wrong = _gather_problems(words) if status == TonnageError.exit_status else None
    if wrong is not None:
        wrong = wrong.with_error(message, words[1:])
    if wrong is not None and len(wrong.problems) > 1:
        from tonnage.cli.common.problem_table import table_of

        print("\n".join(table_of(wrong)), file=sys.stderr)
    else:
        print(f"{say('error: ')}{shown}", file=sys.stderr)
        if wrong is not None and len(wrong.problems) == 1 and (command := wrong.suggestion):
            print(f"{say_as('label', 'try')}  {command}", file=sys.stderr)
    if any(word == "--json" or word.startswith("--json=") for word in words):
        from tonnage.cli.common.print import print_json
        from tonnage.documents.document import ErrorDocument

        try:
            document = ErrorDocument(error={"kind": type(error).__name__, "message": message})
            if wrong is not None and wrong.problems:
                document.errors, document.corrected = wrong.documents, wrong.suggestion or UNSET
            print_json(document)
        except Unwritable as unwritable:
            print(in_error(unwritable), file=sys.stderr)
            return CANNOT_WRITE
    return status


def _gather_problems(words: list[str]) -> "Wrong | None":
    """Everything that is wrong with a command, of verbs that have many options."""
    from tonnage.cli.common.problem_table import Wrong
    from tonnage.verbs.wrong.fields import GATHERED

    if not words or words[0] not in GATHERED or any(word.startswith("--config") for word in words):
        return None  # of another tool's file the first thing that is wrong stops the reading
    try:
        rest = spelled(words[0], words[1:])
        _, parser = face(words[0], rest)
        return Wrong.of(words[0], parser, parser.form, rest) if parser.form is not None else None
    except TonnageError:  # there is no such form of the verb: that is the error
        return None


def _messages(error: TonnageError, words: list[str]) -> tuple[str, str]:
    """What is wrong, in English and in the current language, with options as they are typed."""
    if words and words[0] in VERBS:
        from tonnage.cli.common.named import on_command_line

        try:
            rest = spelled(words[0], words[1:])
            return on_command_line(error, face(words[0], rest)[1], rest)
        except TonnageError:  # there is no such form of the verb: that is the error
            pass
    return str(error), worded(str(error))
