"""Other tools beside us on the same questions, in one run: memory and time of training and of serving. Writes
docs/peers.md.

python benchmarks/peers.py               # asks them; the first time makes .venv-peers and installs them from PyPI
python benchmarks/peers.py --recorded    # their answers of the last time, ours of today; no network
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "scripts"))  # measured speeds as the fit of rates takes them

from peer_tables import live
from peer_tables.page import PAGE, page


def main(words: list[str], out: Path = PAGE) -> None:
    if words not in ([], ["--recorded"]):
        sys.exit(f"peers.py takes --recorded or nothing. Got {' '.join(words)}.")
    try:
        text = page(live.recorded() if words else live.ask())
    except live.NoPeer as problem:
        sys.exit(f"{problem}\nNothing was written. Without network: python benchmarks/peers.py --recorded")
    out.write_text(text, encoding="utf-8")
    print(f"written to {out}")


if __name__ == "__main__":
    main(sys.argv[1:])
