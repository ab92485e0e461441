"""The query of a path: parameters that a route does not have are refused, as fields of a question are:
`?histroy=true` would delete half of what is meant.
"""

from typing import Any

from litestar import Request

from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import listed
from tonnage.kernel.registry import nearest

ANY = None  # of a route whose query is its reader's: an address of the page


def check_query(request: Request[Any, Any, Any]) -> None:
    """InvalidInput where a parameter is none of the route's `query`, or is given twice."""
    allowed = request.route_handler.opt.get("query", ())
    if allowed is ANY or request.method == "OPTIONS":
        return
    seen: set[str] = set()
    for name, _ in request.query_params.multi_items():
        if name not in allowed:
            raise _no_parameter(name, allowed)
        if name in seen:
            raise InvalidInput("{name} is given twice.", name=name)
        seen.add(name)


def _no_parameter(name: str, allowed: tuple[str, ...]) -> InvalidInput:
    near = nearest(name, allowed)
    if near:
        return InvalidInput("{name} is no parameter here. Did you mean {near!r}?", name=shown(name), near=near[0])
    if allowed:
        return InvalidInput("{name} is no parameter here: {allowed}.", name=shown(name), allowed=listed(allowed))
    return InvalidInput("{name} is no parameter here.", name=shown(name))
