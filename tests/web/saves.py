"""A process that saves plans in a loop and says of each when it was acknowledged: `python saves.py URL NAME
[NUMBER]`.
"""

import sys
from itertools import count

from tonnage.web.store.digest import Digest
from tonnage.web.store.opened import Opened


def main(url: str, name: str, number: str = "0") -> None:
    store = Opened(url, own=True).for_saving()
    found = store.history(name, limit=1)
    version = found[0].version if found else 0
    for done in count(1):
        version = store.save(name, "train", question(version + 1), digest(version + 1), version).version
        print(version, flush=True)
        if done == int(number):
            return


def question(version: int) -> str:
    """Long, so that it is written in several pieces."""
    return '{"model": "' + f"{version}-" * 3000 + '"}'


def digest(version: int) -> Digest:
    return Digest(
        tonnage="0",
        command=f"tonnage train {version}",
        status=0,
        answer="fits",
        needed_bytes=version,
        usable_bytes=2**40,
        usd=0.5,
        usd_of="an hour",
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
