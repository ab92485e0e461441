"""Serving plans a second: (replica configuration, users of a replica, replicas), each with memory, times, throughput
and cost.
"""

import time
import tracemalloc
from collections.abc import Callable

import tonnage
from sizes import FULL, Sizes
from tonnage.estimate.load.options import LoadOptions
from tonnage.estimate.serving.options import ServingOptions
from tonnage.search.serving import ServingPlanOptions, ServingPlans, plan_serving
from tonnage.search.serving.machines import named

Note = Callable[[str, float, str], None]
LOAD = LoadOptions(input_tokens=2000, output_tokens=400, ttft=1.0, tpot=0.025)


def goodput(name: str, on: str, most: int) -> ServingPlans:
    """Every number of users from 1 to 1,024 of every number of replicas, without bounds."""
    wanted = ServingPlanOptions(goal="goodput", max_accelerators=most)
    return plan_serving(tonnage.read(name), named(on), wanted, load=LOAD, prunes=False)


def for_users(name: str) -> ServingPlans:
    """The cheapest of the whole catalogue for 64 users."""
    return plan_serving(tonnage.read(name), None, ServingPlanOptions(), ServingOptions(concurrency=64), LOAD)


def searches(note: Note, sizes: Sizes) -> None:
    speed, *memory = sizes.accelerators
    cases = (("llama-3.1-8b", "h100"), ("llama-3.1-70b", "h100,h200"), ("deepseek-v3", "h200"))
    for name, on in cases[: sizes.cases]:
        goodput(name, on, min(8, speed))
        taken, found = _timed(lambda: goodput(name, on, speed), sizes)  # noqa: B023
        plans = found.search.tally.considered
        note(f"serving plans of {name} on {on}, {plans} of them, one core", plans / taken, "plans/s")
    taken, found = _timed(lambda: for_users("llama-3.1-70b"), sizes)
    note("plan --serve llama-3.1-70b for 64 users, whole catalogue, in-process", taken, "s")
    for most in memory:
        held, plans = _peak(most)
        note(f"memory of a search of {plans} serving plans", held / 2**20, "MiB")


def _timed(call: Callable[[], ServingPlans], sizes: Sizes) -> tuple[float, ServingPlans]:
    """Seconds of the processor, the least of three."""
    least = float("inf")
    for _ in range(min(3, sizes.repeats)):
        start = time.process_time()
        found = call()
        least = min(least, time.process_time() - start)
    return least, found


def _peak(most: int) -> tuple[int, int]:
    tracemalloc.start()
    found = goodput("llama-3.1-8b", "h100", most)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return held, found.search.tally.considered


if __name__ == "__main__":
    searches(lambda name, value, unit: print(f"{name:<76} {value:12.4g} {unit}"), FULL)
