"""How fast tonnage answers, line by line of its goals: before and after a change, beside other tools in the same run.
Writes results_speed.json and docs/speed.md.

    make bench-speed
    python benchmarks/speed.py --before CHECKOUT      another checkout with its own .venv, in turn with this one
    python benchmarks/speed.py --only http page       these parts alone; the others stay as they were measured
    python benchmarks/speed.py --recorded             the page again, of what was measured the last time
    python benchmarks/speed.py --small --out FILE --page FILE    everything once, small: its values mean nothing

Another checkout: `git worktree add FOLDER COMMIT`, then `make .venv/test.done` in FOLDER; a line whose feature it does
not have says so. CPU time is what counts, as the machine may be busy. Other tools are installed from PyPI into
.venv-peers.
"""

import argparse
import json
import os
import platform
import re
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "scripts"))  # benchmarks/peer_tables imports from there

from speed_lines import tools
from speed_lines.checkouts import ROOT, Checkout
from speed_lines.goals import PARTS
from speed_lines.measure import FULL, SMALL, measured
from speed_lines.page import PAGE, RESULTS, page

NAMES = (*PARTS, "tools")


def machine() -> str:
    """The processor and its cores, in words."""
    try:
        found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.M)
    except OSError:
        found = None
    name = found[1] if found else platform.machine()
    return f"{os.cpu_count()} cores of {name}, Python {platform.python_version()}"


def recorded(path: Path = RESULTS) -> dict[str, Any]:
    """What was measured the last time."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"parts": {}}
    return found


def measure(names: list[str], before: Path | None, out: Path, *, small: bool) -> None:
    """Measure these parts, and write each when it is there."""
    sides = {"before": Checkout(before)} if before else {}
    sides["after"] = Checkout(ROOT)
    results, sizes = recorded(out), SMALL if small else FULL
    for name in names:
        start = time.perf_counter()
        found = tools.measured(sides["after"], sizes) if name == "tools" else measured(name, sides, sizes)
        commits = {side: checkout.commit for side, checkout in sides.items()}
        if name == "tools":
            commits.pop("before", None)
        about = {"measured": datetime.now(tz=UTC).date().isoformat(), "machine": machine(), "commits": commits}
        results["parts"][name] = {**about, **found}
        results["parts"] = {part: results["parts"][part] for part in NAMES if part in results["parts"]}
        out.write_text(json.dumps(rounded(results), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)


def rounded(value: Any) -> Any:
    """Four digits of each figure: the rest is noise."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="another checkout, with its own .venv")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=list(NAMES), help="these parts alone")
    parser.add_argument("--recorded", action="store_true", help="measure nothing: draw the page again")
    parser.add_argument("--small", action="store_true", help="once each, of small inputs; needs --out and --page")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the file of figures")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page")
    said = parser.parse_args()
    if said.small and (said.out == RESULTS or said.page == PAGE):
        parser.error("--small needs --out and --page: its values mean nothing")
    if not said.recorded:
        measure(said.only, said.before, said.out, small=said.small)
    said.page.write_text(page(recorded(said.out)), encoding="utf-8")
    print(f"written to {said.page}")


if __name__ == "__main__":
    main()
