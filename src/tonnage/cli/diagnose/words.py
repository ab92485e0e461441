"""The words of `tonnage diagnose`: its own, and those of the run, which are options of train or serve."""

from collections.abc import Sequence

from tonnage.verbs.answered import DETAILS

STDIN, JSON = "-", "--json"
VALUED = ("--model", "--on", "--config", "--lang")  # options of ours that take the word behind them
SWITCHES = ("-v", "--verbose", "-h", "--help", "--help-all")


def spelled(words: Sequence[str]) -> list[str]:
    """The words with the options of the run, which are those of train or serve, behind `--`."""
    left, own, run = list(words), list[str](), list[str]()
    if "--" in left:
        return left
    log = list[str]()
    while left:
        word = left.pop(0)
        name = word.partition("=")[0]
        if word in VALUED and left:
            own += [word, left.pop(0)]
        elif word == JSON:
            own += [word, left.pop(0)] if left and left[0] in DETAILS else [word]
        elif name in (*VALUED, *SWITCHES, JSON):
            own.append(word)
        elif not log and (word == STDIN or not word.startswith("-")):
            log.append(word)
        else:
            run.append(word)
            if left and not left[0].startswith("--"):
                run.append(left.pop(0))
    return [*own, *log, "--", *run] if run else [*own, *log]
