"""The figures of each line, of one checkout or of two in turn: what else the machine does hits both."""

import importlib.util
import json
import shutil
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from speed_lines.checkouts import DROPPED, ROOT, Checkout, NotMeasured, run, without
from speed_lines.goals import COMMANDS, FSDP2, LINES, PARTS, PLANS, SMALL_PLANS

Figure = dict[str, Any]  # cpu and wall in the unit of the line, or what is missing; a note
Figures = dict[str, Figure]
Sides = Mapping[str, Checkout]  # "before" and "after", or the latter alone


class Sizes(NamedTuple):
    """How often, how long and how large everything is measured."""

    rounds: int = 12  # of whole processes
    times: int = 40  # answers of each question in a process
    processes: int = 3  # that answer them
    rows: int = 4000  # of a table
    seconds: float = 6  # of each run of wrk
    search: str = "full"
    plans: Mapping[str, tuple[str, ...]] = PLANS
    redraws: int = 12
    profiled: int = 30  # answers in a profile
    loop: float = 1.5  # seconds that another tool answers


FULL = Sizes()
SMALL = Sizes(
    rounds=1,
    times=2,
    processes=1,
    rows=20,
    seconds=1,
    search="small",
    plans=SMALL_PLANS,
    redraws=1,
    profiled=1,
    loop=0.01,
)
NO_SUMMARY = "no summary document in this checkout"
WITHOUT_TREES = "no summary in this checkout: the document without its trees"


def least(one: Figure | None, other: Figure) -> Figure:
    """The least of both, of each figure."""
    if one is None:
        return other
    return {**other, **{name: min(one[name], other[name]) for name in ("cpu", "wall")}}


def most(one: Figure | None, other: Figure) -> Figure:
    """The most of both, of each figure: of rates."""
    if one is None:
        return other
    return {**other, **{name: max(one[name], other[name]) for name in ("cpu", "wall")}}


def processes(sides: Sides, sizes: Sizes) -> dict[str, Figures]:
    """Whole commands over a bare start, the least of several rounds of each."""
    bare: Figure | None = None
    spent: dict[str, Figures] = {side: {} for side in sides}
    python = sides["after"].python
    for _ in range(sizes.rounds):
        start = run((python, "-c", "import numpy, msgspec"))
        bare = least(bare, {"cpu": start.cpu, "wall": start.wall})
        for key, words in COMMANDS.items():
            for side, checkout in sides.items():
                found = checkout.command(*words)
                spent[side][key] = least(spent[side].get(key), {"cpu": found.cpu, "wall": found.wall})
    assert bare is not None
    return {
        side: {
            key: {
                "cpu": one["cpu"] / bare["cpu"],
                "wall": one["wall"] / bare["wall"],
                "note": f"{one['cpu']:.3f} s of CPU, bare start {bare['cpu']:.3f} s",
            }
            for key, one in found.items()
        }
        for side, found in spent.items()
    }


def answers(sides: Sides, sizes: Sizes) -> dict[str, Figures]:
    """One answer in-process, the least of several processes."""
    spent: dict[str, Figures] = {side: {} for side in sides}
    for _ in range(sizes.processes):
        for side, checkout in sides.items():
            for key, found in checkout.probe("answers", str(sizes.times)).items():
                figure = {"cpu": 1000 * found["cpu"], "wall": 1000 * found["wall"]}
                note = f"{found['bytes'] / 1000:.1f} kB"
                if not key.endswith("full") and not checkout.features["summary"]:
                    note += f", {WITHOUT_TREES}"
                spent[side][key] = least(spent[side].get(key), {**figure, "note": note})
    for side, checkout in sides.items():
        if not checkout.features["many"]:
            spent[side]["many"] = {"missing": "no train_many in this checkout"}
            continue
        for _ in range(sizes.processes):
            spent[side]["many"] = most(spent[side].get("many"), checkout.probe("many", str(sizes.rows)))
    return spent


def http(sides: Sides, sizes: Sizes) -> dict[str, Figures]:
    """Distinct questions over HTTP by wrk, and plans that are saved meanwhile.

    Rates are those that two cores reach: answers a second of CPU time of all the server's processes, twice; the clock's
    rate stands beside it.
    """
    import web  # here, as under the tests a package of that name comes first

    if shutil.which("wrk") is None:
        raise NotMeasured("wrk is not installed: scripts/debian_packages.sh does it")
    found: dict[str, Figures] = {side: {} for side in sides}
    with without(DROPPED):
        for side, checkout in sides.items():
            if not checkout.features["web"]:
                raise NotMeasured(f"litestar is not installed in {side}")
            with web.serving(python=checkout.python) as server:
                for key, latency, path, more in (
                    ("http_full", "http_p99", "/v1/train", ""),
                    ("http_summary", "http_p99_summary", "/v1/train?detail=summary", ""),
                    ("http_plain", "http_p99_plain", "/v1/train?detail=summary", ',"advice":false'),
                ):
                    if path.endswith("summary") and not checkout.features["summary"]:
                        found[side] |= {key: {"missing": NO_SUMMARY}, latency: {"missing": NO_SUMMARY}}
                        continue
                    found[side] |= _asked(server, key, latency, path, more, sizes)
                    if question := LINES[key].question:
                        alone = checkout.probe("mean", question, str(sizes.times))
                        found[side][key]["note"] += f"; {1000 * alone['cpu']:.1f} ms of CPU in-process"
            found[side]["http_saved"] = _saved(checkout, sizes)
    return found


def _asked(server: Any, key: str, latency: str, path: str, more: str, sizes: Sizes) -> Figures:
    import web

    server.load(distinct=True, connections=8, seconds=sizes.seconds / 2, path=path, more=more)
    start = server.cpu_seconds()
    full = server.load(distinct=True, connections=16, seconds=sizes.seconds, path=path, more=more)
    cpu = server.cpu_seconds() - start
    rows = {
        str(row["name"]).partition(": ")[2]: row["value"]
        for row in web.measured(server, distinct=True, seconds=sizes.seconds, small=True, path=path, more=more)
    }
    answered = full.rate * max(round(sizes.seconds), 1)
    p99, held = 1000 * float(rows["p99 at 80% load"]), float(rows["rate that was held"])
    return {
        key: {
            "cpu": web.WORKERS * answered / cpu if cpu else full.rate,
            "wall": full.rate,
            "note": f"{1000 * cpu / answered if answered else 0:.1f} ms of CPU an answer; {full.failed} failed",
        },
        latency: {"cpu": p99, "wall": p99, "note": f"at {held:.0f} answers/s"},
    }


def _saved(checkout: Checkout, sizes: Sizes) -> Figure:
    import web

    rows = {
        str(row["name"]).rpartition(": ")[2]: float(row["value"])  # type: ignore[arg-type]
        for row in web.saved_under_load(sizes.seconds, python=checkout.python)
    }
    p99 = 1000 * rows["p99"]
    return {"cpu": p99, "wall": p99, "note": f"{rows['saves']:.0f} saves, {rows['refused']:.0f} refused"}


def plan(sides: Sides, sizes: Sizes) -> dict[str, Figures]:
    """Whole commands of `plan`, and the time until the first plan is told."""
    found: dict[str, Figures] = {side: {} for side in sides}
    for key, words in sizes.plans.items():
        for side, checkout in sides.items():
            spent = checkout.command(*words)
            document = json.loads(spent.printed)
            note = f"{document['considered']:,} plans considered"
            found[side][key] = {"cpu": spent.cpu, "wall": spent.wall, "note": note}
    for side, checkout in sides.items():
        if checkout.features["first"]:
            found[side]["plan_first"] = checkout.probe("first")
        else:
            whole = found[side]["plan_catalogue"]
            note = "it tells of no plan before the end: the time of the whole command"
            found[side]["plan_first"] = {"cpu": whole["cpu"], "wall": whole["wall"], "note": note}
    return found


def search(sides: Sides, sizes: Sizes) -> dict[str, Figures]:
    """Plans a second, by the benchmark of each checkout."""
    return {
        side: {
            key: {"cpu": one["cpu"], "wall": one["wall"], "note": f"{one['plans']:,} valid plans of llama-3.1-70b"}
            for key, one in checkout.probe("search", str(checkout.root / "benchmarks"), sizes.search).items()
        }
        for side, checkout in sides.items()
    }


def trace(sides: Sides, sizes: Sizes) -> dict[str, Figures]:
    """Traces in processes of their own, the least of two."""
    found: dict[str, Figures] = {side: {} for side in sides}
    file = str(ROOT / "benchmarks" / "trace.py")
    for side, checkout in sides.items():
        if not checkout.features["torch"]:
            raise NotMeasured(f"torch is not installed in {side}")
    for key, number in (("trace_8b", 0), ("trace_405b", 5)):
        for _ in range(2):
            for side, checkout in sides.items():
                spent = run((checkout.python, "-P", "-W", "ignore", file, "--case", str(number)), folder=checkout.root)
                said = json.loads(spent.printed.splitlines()[-1])
                figure = {"cpu": said["CPU s"], "wall": said["s"], "note": f"{said['GB']:.2f} GB resident"}
                found[side][key] = least(found[side].get(key), figure)
    for side, checkout in sides.items():
        imports = run((checkout.python, "-c", "import torch, transformers, torch.distributed.fsdp, tonnage.cli"))
        spent = checkout.command(*FSDP2)
        found[side]["trace_fsdp2"] = {
            "cpu": spent.cpu - imports.cpu,
            "wall": spent.wall - imports.wall,
            "note": f"imports {imports.cpu:.1f} s of CPU",
        }
    return found


def page(sides: Sides, sizes: Sizes) -> dict[str, Figures]:
    """Redraws in Chromium."""
    if importlib.util.find_spec("playwright") is None:
        raise NotMeasured("playwright is not installed")
    import page as redraws

    if not shutil.which(redraws.CHROMIUM[0]):
        raise NotMeasured("Chromium is not installed: scripts/debian_packages.sh does it")
    found: dict[str, Figures] = {}
    with without(DROPPED):
        for side, checkout in sides.items():
            rows = {
                str(row["name"]).rpartition(": ")[2]: 1000 * float(row["value"])  # type: ignore[arg-type]
                for row in redraws.measured(sizes.redraws, redraws.LARGE, python=checkout.python)
            }
            found[side] = {
                key: {
                    "cpu": rows[f"{what}, 95th percentile"],
                    "wall": rows[f"{what}, 95th percentile"],
                    "note": (
                        f"median {rows[f'{what}, 50th percentile']:.0f} ms of {sizes.redraws} redraws, "
                        f"{rows[redraws.SERVER]:.0f} ms of the server's CPU each with suggestions"
                    ),
                }
                for key, what in (("page_redraw", "redraw"), ("page_settled", "redraw with the next best moves"))
            }
    return found


MEASURES: dict[str, Callable[[Sides, Sizes], dict[str, Figures]]] = {
    "processes": processes,
    "answers": answers,
    "http": http,
    "plan": plan,
    "search": search,
    "trace": trace,
    "page": page,
}


def measured(part: str, sides: Sides, sizes: Sizes) -> dict[str, Any]:
    """The figures of a part by side and line, and the profiles of lines whose goal is missed."""
    try:
        found = MEASURES[part](sides, sizes)
    except NotMeasured as problem:
        found = {side: {line.key: {"missing": str(problem)} for line in PARTS[part]} for side in sides}
    return {**found, "profiles": _profiles(found["after"], sides["after"], sizes)}


def _profiles(figures: Figures, checkout: Checkout, sizes: Sizes) -> dict[str, list[str]]:
    """Of each line that misses its goal where its time goes."""
    profiles: dict[str, list[str]] = {}
    profiled: dict[str, str] = {}  # question to the line that has its profile
    for key, figure in figures.items():
        line = LINES[key]
        if key == "plan_first" and not checkout.features["first"]:
            continue  # the profile of the whole command is all that there is to say
        if "missing" in figure or line.goal is None or line.short_of(value_of(key, figure)) <= 1:
            continue
        try:
            if line.command:
                profiles[key] = checkout.probe("command", *sizes.plans.get(key, line.command))
            elif line.question in profiled:
                profiles[key] = [f"the same answers as those of: {profiled[line.question]}"]
            elif line.question:
                profiled[line.question] = line.what
                benchmarks = str(checkout.root / "benchmarks")
                profiles[key] = checkout.probe("profile", line.question, str(sizes.profiled), benchmarks)
        except NotMeasured as problem:
            profiles[key] = [f"no profile: {problem}"]
    return profiles


def value_of(key: str, figure: Figure) -> float:
    """What is held against the goal: CPU time, or of latencies the clock."""
    return float(figure["wall" if LINES[key].by_clock else "cpu"])
