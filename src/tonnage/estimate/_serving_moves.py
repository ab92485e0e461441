"""The next best moves of a replica that fits: changes of its plan that make a token, or all of them, faster, each estimated again."""

from collections.abc import Iterator
from math import ceil
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.errors import TonnageError
from tonnage.estimate._moves import Settled, move_of, ordered, paid
from tonnage.estimate._question import Question
from tonnage.estimate._serving_pace import pace_of
from tonnage.estimate.load_options import Asked, LoadOptions
from tonnage.estimate.serving import ServingMemory, serving_memory
from tonnage.estimate.serving_answer import serving_plan
from tonnage.estimate.serving_options import ServingOptions
from tonnage.estimate.serving_speed import Speed
from tonnage.spec import Cluster, ServingPlan

NUMERICS = ("weights", "kv_cache")
WORTH = 1.05  # times faster than now, a token or all of them
MOST = 4


class Case(Struct, frozen=True, kw_only=True, eq=False):
    """What was asked and found. `an_hour`: USD that all machines cost an hour, None where no price is known."""

    model: Model
    cluster: Cluster
    options: ServingOptions
    load: LoadOptions
    plan: ServingPlan
    made: ServingMemory
    usable: int
    wanted: Asked
    speed: Speed
    an_hour: float | None


def speed_moves(case: Case) -> list[dict[str, Any]]:
    """The moves with which a token, or all tokens together, come faster; those that change no numbers first."""
    found = [move for change in _changes(case) if (move := _estimated(case, change))]
    found.sort(key=lambda move: (move["changes"] == "numerics", move["tpot_seconds"]))
    return found[:MOST]


def _changes(case: Case) -> Iterator[dict[str, Any]]:
    plan, engine = case.plan, case.plan.engine
    t = int(plan.tensor_parallel_size)
    yield {"tensor_parallel_size": 2 * t}
    if t > 1:
        yield {"tensor_parallel_size": t // 2}
    if plan.enforce_eager:
        yield {"enforce_eager": False}
    for weights in ("fp8", "awq") if engine != "llama.cpp" else ("q8_0", "q4_k_m"):
        yield {"weights": weights}
    if engine in ("vllm", "sglang", "tensorrt-llm") and not (plan.kv_cache or "").startswith("fp8"):
        yield {"kv_cache": "fp8"}


def _estimated(case: Case, change: dict[str, Any]) -> dict[str, Any] | None:
    """None where it is no plan, does not fit, or makes nothing faster."""
    try:
        options = replace(case.options, **{"context": int(case.plan.context), **change})
        plan = serving_plan(case.model, case.cluster, options, Question())
        made = serving_memory(case.model, plan, case.cluster.accelerator)
        if made.memory.value > case.usable:
            return None
        pace = pace_of(case.model, case.cluster, options, plan, made, case.usable, case.load, case.wanted)
    except TonnageError:
        return None
    if pace is None:
        return None
    now, found = case.speed.times, pace.found
    rate, before = pace.answers, case.speed.tokens_per_second
    if now.tpot_seconds < WORTH * found.tpot_seconds and rate < WORTH * before:
        return None
    settled = Settled(
        ordered(change, ServingOptions),
        ceil(made.memory.value),
        pace=lambda: pace.everything,
        rent=lambda: case.an_hour,
    )
    kind: Any = "numerics" if any(name in NUMERICS for name in change) else "nothing"
    asked_about = paid(case.speed.all_tokens_per_second, lambda: case.an_hour)
    move = move_of(settled, kind, ceil(case.made.memory.value), case.usable, now=asked_about)
    return move | pace.figures
