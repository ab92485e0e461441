"""Which language a command is answered in: --lang, before the verb or after it, else TONNAGE_LANG, else the locale;
English by default.
"""

import os
from collections.abc import Mapping, Sequence

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message, joined, listed
from tonnage.language import LANGUAGES

FLAG = "--lang"
VARIABLE = "TONNAGE_LANG"
LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")  # the first that is set decides, as in POSIX
HELP = Message(
    "language of what is shown: {languages} (default: as {variable} or the locale says); --json is English",
    languages=listed(LANGUAGES),
    variable=VARIABLE,
)


def spoken(words: Sequence[str], environment: Mapping[str, str] = os.environ) -> tuple[str, list[str]]:
    """The language, and the words without the option.

    >>> spoken(["--lang", "zh", "train", "llama-3.1-8b"])
    ('zh', ['train', 'llama-3.1-8b'])
    """
    rest: list[str] = []
    chosen: str | None = None
    left = iter(words)
    for word in left:
        if word == "--":
            rest += [word, *left]
        elif word == FLAG or word.startswith(f"{FLAG}="):
            chosen = word.partition("=")[2] or next(left, "") if word != f"{FLAG}=" else ""
            if not chosen:
                raise InvalidInput(
                    "{flag} takes a language: {languages}.", flag=FLAG, languages=joined(" or ", LANGUAGES)
                )
        else:
            rest.append(word)
    return chosen or environment.get(VARIABLE) or _of_locale(environment), rest


def otherwise(words: Sequence[str] = (), environment: Mapping[str, str] = os.environ) -> str:
    """The language in which one is refused that there is not, or that nobody says: that of another --lang, else of
    the environment.
    """
    values = [value for word, value in zip(words, [*words[1:], ""], strict=True) if word == FLAG]
    values += [word.partition("=")[2] for word in words if word.startswith(f"{FLAG}=")]
    known = [language for language in (*values, environment.get(VARIABLE)) if language in LANGUAGES]
    return known[0] if known else _of_locale(environment)


def _of_locale(environment: Mapping[str, str]) -> str:
    locale = next((environment[name] for name in LOCALE if environment.get(name)), "")
    return next((language for language in LANGUAGES if locale.lower().startswith(language)), LANGUAGES[0])
