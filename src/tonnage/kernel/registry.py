"""A dictionary that refuses duplicates and suggests names."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

from tonnage.kernel.errors import UnknownName, shown
from tonnage.kernel.message import Message, joined, listed, option_name

if TYPE_CHECKING:
    from difflib import SequenceMatcher

T = TypeVar("T")
LONGEST = 200  # characters of a name that are compared
MAX_SUGGESTIONS = 5  # suggestions; more than anyone compares
# Likeness as difflib's ratio has it: shared characters of both. Random words share half of a catalogue's names'
# letters, so
# from LIKE on a name must also begin alike and share a run of a third of them, unless it is VERY_LIKE, or too SHORT to
# tell.
LIKE, VERY_LIKE, PREFIX, SHORT = 0.5, 0.75, 0.7, 3


class Registry(Mapping[str, T], Generic[T]):
    """Things of one kind by name. Adding a second thing of the same name is a programming error."""

    def __init__(self, kind: str):
        self.kind = kind
        self._items: dict[str, T] = {}

    def add(self, name: str, item: T) -> T:
        if name in self._items:
            raise ValueError(Message("{kind} {name!r} is already registered", kind=self.kind, name=name))
        self._items[name] = item
        return item

    def remove(self, name: str) -> None:
        """Forget one, such as a plug-in's."""
        del self._items[name]

    def __getitem__(self, name: str) -> T:
        try:
            return self._items[name]
        except KeyError:
            raise unknown(self.kind, name, self._items) from None

    def __contains__(self, name: object) -> bool:
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


def unknown(
    kind: str,
    name: str,
    known: Iterable[str],
    aliases: Iterable[str] = (),
    *,
    examples: Iterable[str] = (),
    command: str = "",
    more: str = "",
) -> UnknownName:
    """The error for a name that is not among the known ones and their aliases, with the nearest of them.

    Where none is near and they are too many to list: `examples` of them, and the `command` that lists all. `more`: a
    sentence behind the names where all are listed.
    """
    others = list(aliases)
    names = [*known, *others]
    near = nearest(name, names)
    if near:
        hint: str = Message("Did you mean {near}?", near=listed(map(repr, near)))
    elif len(names) <= 40:
        hint = Message("Known: {names}.", names=listed(map(_as_typed, sorted(names))))
        hint = joined(" ", (hint, more)) if more else hint
    elif command:
        count = len(names) - len(others)
        hint = Message(
            "Examples: {examples}; `{command}` lists all {count}.",
            examples=listed(examples),
            command=command,
            count=count,
        )
    else:
        own = len(names) - len(others)
        hint = (
            Message("{own} names and {count} aliases are known.", own=own, count=len(others))
            if others
            else Message("{own} names are known.", own=own)
        )
    error = UnknownName(
        Message(
            "no {kind} is called {name}. {hint}",
            kind=option_name(kind) if "_" in kind else kind,
            name=shown(name),
            hint=hint,
        )
    )
    error.nearest = tuple(near)
    return error


def _as_typed(name: str) -> str:
    """In quotes where it has blanks, so that it is seen where a name of a list ends."""
    return repr(name) if " " in name else name


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The known names that `name` may stand for, best first, at most MOST of them.

    Letters and digits alone are compared; of names that differ by their owner alone, one is shown.
    """
    from difflib import SequenceMatcher

    wanted = letters_of(name[:LONGEST])
    matcher = SequenceMatcher(None, "", wanted, autojunk=False)
    plain = ((letters_of(candidate), candidate) for candidate in known)
    scored = [
        (score, letters, candidate) for letters, candidate in plain if (score := _likeness(matcher, wanted, letters))
    ]
    chosen: dict[str, str] = {}
    for _, _, candidate in sorted(scored, key=lambda found: found[:2], reverse=True):
        chosen.setdefault(letters_of(candidate.rpartition("/")[2]), candidate)
    return list(chosen.values())[:MAX_SUGGESTIONS]


def _likeness(matcher: "SequenceMatcher[str]", wanted: str, plain: str) -> float:
    """How much a plain text, the second of the matcher, and a name's letters have in common, from 0 (nothing that
    anyone would mean) to 1.
    """
    matcher.set_seq1(plain)
    if not wanted or not plain or matcher.real_quick_ratio() < LIKE:
        return 0
    if len(wanted) > SHORT and plain.startswith(wanted):
        return PREFIX + (1 - PREFIX) * matcher.ratio()
    if matcher.quick_ratio() < LIKE:
        return 0
    ratio = matcher.ratio()
    if ratio >= VERY_LIKE:
        return ratio
    if len(wanted) <= SHORT:
        return ratio if ratio >= LIKE and len(plain) <= len(wanted) + 1 else 0
    run = max(SHORT, -(-len(wanted) // SHORT))
    begins_alike = plain[0] == wanted[0] and matcher.find_longest_match().size >= run
    return ratio if ratio >= LIKE and begins_alike else 0


def letters_of(name: str) -> str:
    """Letters and digits alone, in lower case: what a name is however it is written."""
    return "".join(filter(str.isalnum, name.lower()))
