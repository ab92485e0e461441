"""Measures answers in this process; run by the Python of any checkout of tonnage, so it imports what that checkout has.

    python -P probe.py features                    what the checkout can do
    python -P probe.py answers TIMES               CPU seconds of one answer, by question: the least of so many
    python -P probe.py loop VERB SECONDS           answers of train or serve in a loop, without suggestions
    python -P probe.py mean QUESTION TIMES         CPU seconds of an answer of a mix, on average
    python -P probe.py many ROWS                   rows a second of tonnage.train_many
    python -P probe.py search BENCHMARKS SIZE      plans a second, by the checkout's own search_training.py
    python -P probe.py first                       seconds until a search of the whole catalogue tells of a plan
    python -P probe.py profile QUESTION TIMES BENCHMARKS    where the time of a question goes
    python -P probe.py command WORD...             where the time of a command of tonnage goes

Prints one JSON object.
"""

import contextlib
import cProfile
import importlib
import importlib.util
import inspect
import io
import json
import pstats
import sys
import time
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import tonnage

FOLDER = Path(__file__).parents[1]
Call = Callable[[int], Any]


def features() -> dict[str, object]:
    """What this checkout has, and where its source lies."""
    from tonnage.estimate.answer.form import Answer

    return {
        "source": tonnage.__file__,
        "summary": hasattr(Answer, "summary_document"),
        "many": hasattr(tonnage, "train_many"),
        "first": hears_of_plans(),
        "web": importlib.util.find_spec("litestar") is not None,
        "torch": importlib.util.find_spec("torch") is not None,
    }


def hears_of_plans() -> bool:
    """Whether a search of plans tells of what it found before its end."""
    return "tell" in inspect.signature(tonnage.plan_training).parameters


# ---- One answer. Each call asks another question, as people and programs do: the number makes it differ.


def questions() -> dict[str, Call]:
    """By name: a call that answers and encodes as HTTP and `--json` do."""
    from tonnage.catalogue import cluster
    from tonnage.documents.document import encode
    from tonnage.estimate.answer.serving import serve
    from tonnage.estimate.answer.training import train
    from tonnage.estimate.load.options import LoadOptions
    from tonnage.estimate.plan.training_options import TrainingOptions
    from tonnage.estimate.serving.options import ServingOptions

    def short(answer: Any) -> Any:
        """The summary, or where there is none the document without its trees."""
        document = answer.summary_document if hasattr(answer, "summary_document") else answer.summary()
        return encode(document)

    def full(answer: Any) -> Any:
        return encode(answer.document)

    def trained(name: str, on: str, shown: Callable[[Any], Any], advise: bool, **options: Any) -> Call:
        model, machine = tonnage.read(name, offline=True), cluster(on)
        return lambda at: shown(
            train(model, machine, TrainingOptions(sequence_length=4096 + 64 * at, **options), advise=advise, **chosen)
        )

    def served(name: str, on: str, shown: Callable[[Any], Any], advise: bool) -> Call:
        model, machine, options = tonnage.read(name, offline=True), cluster(on), ServingOptions(concurrency=16)
        return lambda at: shown(
            serve(model, machine, options, LoadOptions(input_tokens=1024 + 8 * at, output_tokens=256), advise=advise)
        )

    # As the faces ask, where a checkout chooses what was not given.
    chosen: dict[str, Any] = {"choose": True} if "choose" in signature(train).parameters else {}
    small, machine = "llama-3.1-8b", "8xH100-SXM-80GB"

    def as_web(shown: Callable[[Any], Any], *, advise: bool = True) -> Call:
        """The mix of benchmarks/web.py, of which half does not fit."""
        names = ("llama-3.1-8b", "qwen3-8b", "mistral-7b", "llama-3.1-70b", "qwen3-32b", "mixtral-8x7b")
        calls = [trained(name, machine, shown, advise=advise, micro_batch_size=1) for name in names]
        return lambda at: calls[at % len(calls)](at)

    deep = trained(
        "deepseek-v3",
        "32x8xH100-SXM-80GB",
        full,
        advise=False,
        pipeline_parallel_size=16,
        expert_parallel_size=16,
    )
    return {
        "train_summary": trained(small, machine, short, advise=False),
        "serve_summary": served(small, "1xH100-SXM-80GB", short, advise=False),
        "train_advised": trained(small, machine, short, advise=True),
        "misfit_advised": trained("llama-3.1-70b", machine, short, advise=True),
        "serve_advised": served(small, "1xH100-SXM-80GB", short, advise=True),
        "train_full": trained(small, machine, full, advise=False),
        "serve_full": served(small, "1xH100-SXM-80GB", full, advise=False),
        "web_full": as_web(full),
        "web_summary": as_web(short),
        "web_plain": as_web(short, advise=False),
        "page_redraw": deep,
    }


def answers(times: int) -> dict[str, dict[str, float]]:
    """CPU seconds and seconds of an answer, the least of so many after two that fill caches; and its bytes."""
    found = {}
    for name, call in questions().items():
        if name.startswith(("web", "page")):
            continue
        call(1000), call(1001)
        least, clock = float("inf"), float("inf")
        for at in range(times):
            start, began = time.process_time(), time.perf_counter()
            said = call(at)
            least, clock = min(least, time.process_time() - start), min(clock, time.perf_counter() - began)
        found[name] = {"cpu": least, "wall": clock, "bytes": len(said)}
    return found


def loop(verb: str, seconds: float) -> dict[str, dict[str, float]]:
    """The least CPU seconds of one answer, and answers a second of CPU time, by detail of the document."""
    asked, found = questions(), {}
    calls = {detail: asked[f"{verb}_{detail}"] for detail in ("summary", "full")}
    if verb == "train":
        calls["figures"] = figures()
    for detail, call in calls.items():
        call(0)
        least, count, begun = float("inf"), 0, time.process_time()
        while count < 3 or time.process_time() - begun < seconds:
            start = time.process_time()
            call(count % 1000)
            least = min(least, time.process_time() - start)
            count += 1
        found[detail] = {"seconds": least, "answers per second": count / (time.process_time() - begun)}
    return found


def mean(name: str, times: int) -> dict[str, float]:
    """CPU seconds of an answer on average, after some that fill caches."""
    call = questions()[name]
    for at in range(6):
        call(2000 + at)
    start = time.process_time()
    for at in range(times):
        call(at)
    return {"cpu": (time.process_time() - start) / times}


def figures() -> Call:
    """Bytes and seconds of a step alone: no question as understood, no trees, no cost, no document."""
    from msgspec.structs import replace

    from tonnage.catalogue import cluster
    from tonnage.estimate.inputs import Question
    from tonnage.estimate.memory import training_memory
    from tonnage.estimate.options.plans import training_plan
    from tonnage.estimate.plan.training_options import TrainingOptions
    from tonnage.estimate.step_time.time import Timing

    model, machine = tonnage.read("llama-3.1-8b", offline=True), cluster("8xH100-SXM-80GB")
    plan = training_plan(model, machine, TrainingOptions(), Question())

    def call(at: int) -> object:
        other = replace(plan, sequence_length=4096 + 64 * at)
        made = training_memory(model, other, machine)
        return made.needed, Timing(model, other, machine, made.fullest.stage.step).seconds

    return call


def many(rows: int) -> dict[str, float]:
    """Rows a second, by CPU time and by the clock: two models, and sequence lengths and micro-batches that differ."""
    table = {
        "model": ["llama-3.1-8b", "qwen3-8b"] * (rows // 2),
        "sequence_length": [1024 + 8 * (at // 2) for at in range(rows // 2 * 2)],
        "micro_batch_size": [1 + at % 3 for at in range(rows // 2 * 2)],
    }
    ask: Any = tonnage.train_many
    ask({name: values[:20] for name, values in table.items()}, on="8xH100-SXM-80GB")
    start, began = time.process_time(), time.perf_counter()
    found = ask(table, on="8xH100-SXM-80GB")
    cpu, wall = time.process_time() - start, time.perf_counter() - began
    assert not any(found["error"])
    return {"cpu": len(table["model"]) / cpu, "wall": len(table["model"]) / wall}


# ---- Searches.


def searches(benchmarks: str, size: str) -> dict[str, tuple[Callable[[], Any], Callable[[Any], int]]]:
    """By name a search, and what counts its valid plans, by the benchmark of this checkout."""
    sys.path.insert(0, benchmarks)
    import search_training
    from sizes import FULL, SMALL

    case, given = search_training.CASES[0], {} if size == "full" else {"recompute": "full"}
    space = search_training.space_of(*case, FULL if size == "full" else SMALL, **given)
    usable = space.largest.accelerator.memory.usable_bytes

    def one(bounded: bool) -> Callable[[], Any]:
        return lambda: search_training.search(space, usable, most=1, bounded=bounded)

    return {
        name: (one(name == "search_bounded"), search_training.valid) for name in ("search_unpruned", "search_bounded")
    }


def searched(benchmarks: str, size: str) -> dict[str, dict[str, float]]:
    """Valid plans a second of each search, by CPU time and by the clock."""
    made = {}
    for name, (call, valid) in searches(benchmarks, size).items():
        start, began = time.process_time(), time.perf_counter()
        found = call()
        cpu, wall = time.process_time() - start, time.perf_counter() - began
        made[name] = {"cpu": valid(found) / cpu, "wall": valid(found) / wall, "plans": valid(found)}
    return made


def first() -> dict[str, float]:
    """Seconds from the question to the first plan that a search over the whole catalogue tells of."""

    class Enough(BaseException):
        """The first plan is there."""

    start, began = time.process_time(), time.perf_counter()
    heard: dict[str, float] = {}

    def tell(progress: Any) -> None:
        if progress.best is not None:
            heard.update(cpu=time.process_time() - start, wall=time.perf_counter() - began)
            raise Enough

    with contextlib.suppress(Enough):
        tonnage.plan_training("llama-3.1-8b", tell=tell)  # type: ignore[call-arg]
    return heard


# ---- Profiles.


def profiled(name: str, times: int, benchmarks: str) -> list[str]:
    """Where the time of so many different questions goes."""
    if name.startswith("search"):
        size = "small" if times == 1 else "full"
        search, _ = searches(benchmarks, size)[name]
        call: Call = lambda _: search()  # noqa: E731
        times = 1
    elif name == "first":
        call, times = lambda _: first(), 1
    elif name.startswith("trace"):
        call, times = traced(name), 1
    else:
        call = questions()[name]
        call(1000)
    profile = cProfile.Profile(time.process_time)
    profile.enable()
    for at in range(times):
        call(at)
    profile.disable()
    return top(pstats.Stats(profile))


def commanded(words: list[str]) -> list[str]:
    """Where the time of a whole command goes, from the imports of its face on."""
    profile = cProfile.Profile(time.process_time)
    with contextlib.redirect_stdout(io.StringIO()):
        profile.enable()
        from tonnage.cli import main as run

        run(words)
        profile.disable()
    return top(pstats.Stats(profile))


def traced(name: str) -> Call:
    sys.path.insert(0, str(FOLDER))
    trace: Any = importlib.import_module("trace")
    importlib.import_module("torch")
    _ = importlib.import_module("transformers").AutoModelForCausalLM  # what is imported is no part of a trace
    trace.TIMES = 1
    wanted = {"trace_8b": ("llama-3.1-8b", False), "trace_405b": ("llama-3.1-405b", True)}[name]
    (case,) = [case for case in trace.CASES if (case.model, case.folded) == wanted]
    return lambda _: trace.run(case)


def top(stats: pstats.Stats) -> list[str]:
    """Two to five lines: own time by package and by module, functions with most time of their own, and with most
    time below them.
    """
    own = {where: times[2] for where, times in stats.stats.items()}  # type: ignore[attr-defined]
    whole = sum(own.values())
    packages: dict[str, float] = {}
    modules: dict[str, float] = {}
    for (file, _, function), seconds in own.items():
        place = module(file, function)
        modules[place] = modules.get(place, 0) + seconds
        package = "/".join(place.split("/")[:2]) if "/" in place else place
        packages[package] = packages.get(package, 0) + seconds
    functions = {f"{module(file, name)}: {shortened(name)}": seconds for (file, _, name), seconds in own.items()}
    below = {
        f"{module(file, function)}: {function}": times[3]
        for (file, _, function), times in stats.stats.items()  # type: ignore[attr-defined]
        if "/tonnage/" in file and times[3] < 0.8 * whole
    }
    return [
        f"own time by package: {shares(packages, whole, 7)}",
        f"by module: {shares(modules, whole, 7)}",
        f"by function: {shares(functions, whole, 6)}",
        f"with what they call: {shares(below, whole, 6)}",
    ]


def shares(seconds: dict[str, float], whole: float, count: int) -> str:
    """The largest, each with its share."""
    largest = sorted(seconds.items(), key=lambda each: -each[1])[:count]
    return ", ".join(f"{name} {100 * value / whole:.0f} %" for name, value in largest)


def shortened(function: str) -> str:
    """The name of a function; of a built-in one what stands between the brackets."""
    return function.strip("<>").removeprefix("built-in method ").partition(" at 0x")[0]


def module(file: str, function: str) -> str:
    """A file of tonnage by its place in the package, others by what they belong to."""
    if "/tonnage/" in file:
        return file.rpartition("/tonnage/")[2]
    if file == "~":
        return "numpy/built-in" if "numpy" in function else "Python/built-in"
    if "site-packages/" in file:
        return file.rpartition("site-packages/")[2].partition("/")[0]
    if "importlib" in file:
        return "Python/imports"
    library = file.rpartition(f"python{sys.version_info.major}.{sys.version_info.minor}/")[2]
    return f"Python/{library.partition('/')[0].removesuffix('.py')}"


def main(words: list[str]) -> object:
    match words:
        case ["features"]:
            return features()
        case ["answers", times]:
            return answers(int(times))
        case ["loop", verb, seconds]:
            return loop(verb, float(seconds))
        case ["mean", name, times]:
            return mean(name, int(times))
        case ["many", rows]:
            return many(int(rows))
        case ["search", benchmarks, size]:
            return searched(benchmarks, size)
        case ["first"]:
            return first()
        case ["profile", name, times, benchmarks]:
            return profiled(name, int(times), benchmarks)
        case ["command", *command]:
            return commanded(command)
    raise SystemExit(__doc__)


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])))
