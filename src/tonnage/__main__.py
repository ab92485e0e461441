"""The process of one command: `python -m tonnage`, and the script `tonnage`."""

import gc
import sys

# Containers made before Python first looks for circles among them; its own 700 has it look 300 times while modules
# are imported, a tenth of a short answer's time.
MADE = 200_000


def main() -> int:
    """Run the command of this process and return its exit status."""
    gc.set_threshold(MADE)
    from tonnage.cli import main as run

    status = run()
    gc.freeze()  # what is left goes with the process: Python need not look through it as it ends
    return status


if __name__ == "__main__":
    sys.exit(main())
