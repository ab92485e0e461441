"""One command in this process, counted; run by scripts/counts.py, which says how. It imports next to nothing itself."""

import os
import sys

packs, before, *words = sys.argv[1:]
answer = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

from tonnage.kernel import prepared  # noqa: E402 - after what is counted is set up

prepared.FOLDER = packs
if before:  # what is imported already is not counted as work of the question
    import gc

    for name in before.split(","):
        if not name.startswith("__"):
            __import__(name)
    from tonnage.cli import main

    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        global calls  # noqa: PLW0603
        calls += event == "call"

    gc.collect()
    gc.disable()
    blocks = sys.getallocatedblocks()
    sys.setprofile(count)
    main(words)
    sys.setprofile(None)
    found = {"calls": calls, "blocks": sys.getallocatedblocks() - blocks}
else:
    from tonnage.cli import main

    main(words)
    found = {"modules": sorted(sys.modules)}
os.write(answer, repr(found).encode())
