"""What links reach of their datasheets: links.toml, made by scripts/fit_links.py."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from tonnage.spec import Link


class LinkKind(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Links of one generation, by how their names begin.

    `share`: of the datasheet's bytes a second, that collectives reach in large messages; `direct`: that one copy to one
    place reaches;
    `in_network`: that an all-reduce reaches which the switch sums, 0 where no switch does. `step`: seconds from one
    rank to the next.
    `gap`: seconds that each further rank of a collective costs, however little is sent.
    """

    share: float
    direct: float
    step: float
    in_network: float = 0.0
    gap: float = 0.0
    is_measured: bool = True


class Links(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that collectives are fitted with.

    `start`: seconds of a collective that sends nothing; `peer`: seconds for each rank that an all-to-all writes to;
    `pipelining`: share of a latency that each chunk pays again; `copy`: a rank's copies of its own part, as a multiple
    of its links' bytes a second; `local`: of its memory's bytes a second, that a copy inside of it reaches. `kinds`: by
    the beginning of a link's name. `inside` and `outside`: of what nobody measured.
    """

    start: float
    peer: float
    pipelining: float
    copy: float
    local: float
    kinds: Mapping[str, LinkKind]
    inside: LinkKind
    outside: LinkKind

    def of(self, link: Link, *, inside: bool) -> LinkKind:
        """The kind of a link: the longest beginning that fits its name."""
        fitting = [name for name in self.kinds if _begins(link.name, name)]
        if fitting:
            return self.kinds[max(fitting, key=len)]
        return self.inside if inside else self.outside


def _begins(name: str, with_: str) -> bool:
    """NVLink 1 does not begin NVLink 12."""
    return name == with_ or name.startswith(with_ + " ")


@cache
def links() -> Links:
    """The constants that ship."""
    return msgspec.toml.decode(Path(__file__).with_name("links.toml").read_bytes(), type=Links)
