"""The process of one command: `python -m tonnage`, and the script `tonnage`."""

import gc
import sys

# Containers made before Python looks for circles among them; its own 700 has it look hundreds of times while modules
# are imported, a tenth of a short answer's time. Servers, which live long, keep Python's own.
MADE = 200_000
SERVERS = {"web", "mcp"}


def main() -> int:
    """Run the command of this process and return its exit status."""
    if SERVERS.isdisjoint(sys.argv):
        gc.set_threshold(MADE)
    from tonnage.cli import main as run

    status = run()
    gc.freeze()  # what is left goes with the process: Python need not look through it as it ends
    return status


if __name__ == "__main__":
    sys.exit(main())
