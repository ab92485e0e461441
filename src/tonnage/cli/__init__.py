"""The command line. A verb is a module with HELP, add_arguments and run; only the verb that is called is imported."""

import sys
from importlib import import_module

from tonnage.cli._options import Parser
from tonnage.errors import TonnageError

VERBS = {
    "train": "does this training run fit, and where does its memory go?",
    "serve": "does this model serve these requests, and how many would fit?",
    "measure": "what does this training program take on the GPU of this machine?",
    "rules": "the rules of thumb, each worked, with its source, its erratum and the exact figure",
    "explain": "a formula, a symbol or a source",
    "models": "the catalogue of models; one model in detail",
    "accelerators": "the catalogue of accelerators and nodes; one in detail",
    "validate": "predictions against published measurements, row by row",
}
FIRST_WORDS = """tonnage: does a large language model fit, how fast, how long, how many, how much - and why.

Try first:
  tonnage train llama-3.1-8b --on 8xH100-SXM-80GB
  tonnage serve qwen3-32b --on rtx-4090 --weights awq --context 8k
  tonnage rules A6

Verbs:
{verbs}

`tonnage VERB --help` lists every option with its unit and default. MODEL is a name from `tonnage models`, a Hugging Face or
ModelScope id or URL, a folder, a config.json, a .safetensors or a .gguf file. Status: 0 fits, 2 tight, 3 does not fit, 4 not
enough is known, 64 wrong usage or bad input.
"""
NO_VERDICT = frozenset({"rules", "explain", "models", "accelerators", "validate"})


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    if not given or given[0] in ("-h", "--help", "help"):
        print(FIRST_WORDS.format(verbs="\n".join(f"  {verb:<14} {about}" for verb, about in VERBS.items())), end="")
        return 0
    if given[0] in ("-V", "--version"):
        from tonnage import __version__

        print(f"tonnage {__version__}")
        return 0
    try:
        if given[0] == "--print-completion":
            from tonnage.cli._completion import script

            print(script(given[1] if len(given) > 1 else "", VERBS))
            return 0
        return _run(given[0], given[1:])
    except TonnageError as error:
        return _report(error, given)
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _run(verb: str, rest: list[str]) -> int:
    if verb not in VERBS:
        from tonnage.registry import unknown

        raise unknown("verb", verb, VERBS)
    module = import_module(f"tonnage.cli.{verb}")
    parser = Parser(prog=f"tonnage {verb}", description=module.HELP)
    module.add_arguments(parser)
    try:
        parsed = parser.parse_args(rest)
    except SystemExit as leave:  # --help
        return int(leave.code or 0)
    status = module.run(parsed)
    sys.stdout.flush()
    return status


def _report(error: TonnageError, given: list[str]) -> int:
    """The message without a traceback; with --json a document too, so that stdout always holds one."""
    status = 64 if given[0] in NO_VERDICT else error.exit_status
    if "--json" in given:
        from tonnage.cli._print import print_json
        from tonnage.document import SCHEMA

        print_json({"schema": SCHEMA, "error": {"kind": type(error).__name__, "message": str(error)}})
    print(f"error: {error}", file=sys.stderr)
    return status
