"""Names that mean many accelerators: a kind ("gpu"), a maker ("amd"), a generation ("blackwell")."""

from tonnage.catalogue import toml_files
from tonnage.catalogue.accelerators import KINDS, accelerator, accelerator_names
from tonnage.kernel.errors import UnknownName, shown
from tonnage.kernel.message import Message, listed
from tonnage.kernel.registry import nearest

MAX_LISTED = 8  # accelerators that an error lists
FAMILIES = {
    "generation": "no accelerator is called {name}; {family} is a generation of them: take one of {alike}{more}.",
    "vendor": "no accelerator is called {name}; {family} makes several: take one of {alike}{more}.",
}


def family_error(name: str) -> UnknownName | None:
    """The error that lists accelerators, where a name means a kind of them, a maker or a generation; else None."""
    key = toml_files.key(name)
    if key in KINDS:
        members = [known for known in accelerator_names() if accelerator(known).kind == key]
        return UnknownName(
            Message(
                "{name} is a kind of accelerator, not a name: take one of {alike}{more}, or local, which is "
                "this machine.",
                name=shown(name),
                **_members(members),
            )
        )
    for field, template in FAMILIES.items():
        families = _families(field)
        family = next((family for family in families if toml_files.key(family) == key), "")
        if not family and len(key) > 3:
            family = next(iter(nearest(name, [family for family in families if len(family) > 3])), "")
        if family:
            members = sorted(families[family], key=lambda member: accelerator(member).kind != "gpu")
            return UnknownName(Message(template, name=shown(name), family=family, **_members(members)))
    return None


def is_family(name: str) -> bool:
    """Whether a name is a maker's or a generation's, to the letter."""
    key = toml_files.key(name)
    return any(toml_files.key(family) == key for field in FAMILIES for family in _families(field))


def _families(field: str) -> dict[str, list[str]]:
    """Maker or generation -> its accelerators."""
    families: dict[str, list[str]] = {}
    for name in accelerator_names():
        families.setdefault(getattr(accelerator(name), field), []).append(name)
    families.pop("any", None)
    return families


def _members(names: list[str]) -> dict[str, str]:
    more = Message(" and {count} more", count=len(names) - MAX_LISTED) if len(names) > MAX_LISTED else ""
    return {"alike": listed(names[:MAX_LISTED]), "more": more}
