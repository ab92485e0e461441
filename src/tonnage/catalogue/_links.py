"""A link as the files of accelerators and nodes write it."""

from msgspec import Struct

from tonnage.catalogue import _checks
from tonnage.errors import InvalidInput, shown
from tonnage.spec import Link
from tonnage.units import GB


class LinkForm(Struct, forbid_unknown_fields=True):
    """`gb_per_s` is in one direction and per accelerator, all links of that kind together."""

    name: str
    gb_per_s: float
    topology: str = ""
    joins: int = 0


def check(form: LinkForm | None, where: str) -> None:
    """A link's rate must be a believable number."""
    if form is not None:
        _checks.within(form.gb_per_s, "gb_per_s", f"{where}.gb_per_s")
        if form.joins < 0 or form.joins == 1:
            raise InvalidInput(f"{where}.joins must be at least 2, or 0 for all of a node. Got {shown(form.joins)}.")


def link(form: LinkForm | None) -> Link | None:
    """The link in bytes per second."""
    if form is None:
        return None
    return Link(name=form.name, bytes_per_second=form.gb_per_s * GB, topology=form.topology, joins=form.joins)
