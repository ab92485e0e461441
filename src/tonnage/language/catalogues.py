"""The catalogues of a language: gettext's .mo files beside this one, read when a text is first asked for."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from gettext import GNUTranslations
from pathlib import Path

HERE = Path(__file__).parent
# Which catalogue's word counts where two have the same text: what the program says itself comes first.
DOMAINS = ("words", "help", "messages", "report", "page", "page_more")

BETWEEN = "\x04"  # a context and its text, in a .mo


class _Catalogue(GNUTranslations):
    """Its texts can be walked through, which gettext has no method for."""

    _catalog: dict[str | tuple[str, int], str]

    def pairs(self) -> Iterator[tuple[str, str]]:
        for key, text in self._catalog.items():
            if isinstance(key, str) and key:
                yield key, text


def path(language: str, domain: str) -> Path:
    return HERE / language / "LC_MESSAGES" / f"{domain}.mo"


@cache
def texts(language: str) -> Mapping[str, str]:
    """Every English text that has one in `language`."""
    return _merged(language, DOMAINS)


def of_the_page(language: str) -> dict[str, str]:
    """The same; of two translations the page's own."""
    every = _merged(language, sorted(DOMAINS, key=lambda domain: not domain.startswith("page")))
    return {text: into for text, into in every.items() if BETWEEN not in text}


def _merged(language: str, domains: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for domain in reversed(domains):
        found |= _read(language, domain)
    return found


def _read(language: str, domain: str) -> dict[str, str]:
    file = path(language, domain)
    if not file.is_file():
        return {}
    with file.open("rb") as opened:
        return dict(_Catalogue(opened).pairs())
