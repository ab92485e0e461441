"""tonnage --print-completion SHELL: completion for the shell, made by shtab from the same parsers as the help."""

import argparse
from importlib import import_module

from tonnage.kernel.errors import InvalidInput

SHELLS = ("bash", "zsh", "tcsh")


def script(shell: str, verbs: dict[str, str]) -> str:
    """The completion script; InvalidInput with what to install where shtab is missing."""
    if shell not in SHELLS:
        raise InvalidInput("--print-completion takes {shells}. Got {shell!r}.", shells=", ".join(SHELLS), shell=shell)
    try:
        import shtab
    except ImportError:
        raise InvalidInput("completion is made by shtab, which is not installed: pip install shtab.") from None
    parser = argparse.ArgumentParser(prog="tonnage")
    commands = parser.add_subparsers()
    for verb, about in verbs.items():
        import_module(f"tonnage.cli.{verb}").add_arguments(commands.add_parser(verb, help=about))
    return str(shtab.complete(parser, shell))
