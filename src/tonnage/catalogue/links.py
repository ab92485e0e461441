"""A link as the files of accelerators and nodes write it."""

from typing import Literal

from msgspec import Struct

from tonnage.catalogue import _checks
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.units import GB
from tonnage.spec import Link

Mesh = Literal["", "full", "cube"]


class LinkForm(Struct, forbid_unknown_fields=True):
    """`gb_per_s` is in one direction and per accelerator, all links of that kind together; `mesh`, `mesh_links`: see
    spec.Link.
    """

    name: str
    gb_per_s: float
    topology: str = ""
    joins: int = 0
    mesh: Mesh = ""
    mesh_links: int = 0


def check(form: LinkForm | None, where: str) -> None:
    """Check that a link's rate is plausible."""
    if form is not None:
        _checks.within(form.gb_per_s, "gb_per_s", f"{where}.gb_per_s")
        if form.joins < 0 or form.joins == 1:
            raise InvalidInput(
                "{where}.joins must be at least 2, or 0 for all of a node. Got {joins}.",
                where=where,
                joins=shown(form.joins),
            )
        if form.mesh_links < 0 or bool(form.mesh) != bool(form.mesh_links):
            raise InvalidInput(
                "{where}.mesh_links must be at least 1 where mesh is said, and 0 where it is not. Got {mesh_links}.",
                where=where,
                mesh_links=shown(form.mesh_links),
            )


def link(form: LinkForm | None) -> Link | None:
    """The link in bytes per second."""
    if form is None:
        return None
    return Link(
        name=form.name,
        bytes_per_second=form.gb_per_s * GB,
        topology=form.topology,
        joins=form.joins,
        mesh=form.mesh,
        mesh_links=form.mesh_links,
    )
