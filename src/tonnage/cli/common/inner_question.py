"""A question of `train` or `serve` inside another command's words: `export vllm serve MODEL --on h100 --out FILE`."""

from collections.abc import Container, Sequence
from typing import NamedTuple

VERBS = ("train", "serve")


class Words(NamedTuple):
    """The words of a command: its own options, the words before the verb of the question, and the question."""

    options: list[str]
    before: list[str]
    question: list[str]


def sort_words(words: Sequence[str], valued: Container[str], switches: Container[str]) -> Words | None:
    """The command's own options, wherever they stand, apart from the question. `valued`: options that take a word, also
    as `--out=FILE`; `switches`: those that take none. None where there is no verb, or `--` begins the question already.
    """
    at = next((at for at, word in enumerate(words) if word in VERBS), len(words))
    if at == len(words) or "--" in words:
        return None
    sorted_words = Words([], [], [words[at]])
    for rest, others in ((list(words[:at]), sorted_words.before), (list(words[at + 1 :]), sorted_words.question)):
        while rest:
            word = rest.pop(0)
            if word in valued and rest:
                sorted_words.options.extend((word, rest.pop(0)))
            elif word in switches or ("=" in word and word.partition("=")[0] in valued):
                sorted_words.options.append(word)
            else:
                others.append(word)
    return sorted_words
