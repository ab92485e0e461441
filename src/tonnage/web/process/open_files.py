"""How many files a process of the server may have open: each connection is one."""

import sys

from msgspec.structs import replace

from tonnage.web.settings import Limits

OTHERS = 200  # open files of a worker besides its connections: lines to processes, data bases, modules that are read


def with_room_for_connections(limits: Limits) -> Limits:
    """The limits, after as many open files are allowed as the connections need; with fewer connections where the system
    allows fewer files.

    Without room for one more the system refuses connections to everybody alike, and no connection can be given up for a
    new one.
    """
    if sys.platform == "win32":
        return limits
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = limits.connections + OTHERS
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return limits
    return replace(limits, connections=max(soft - OTHERS, soft // 2))
