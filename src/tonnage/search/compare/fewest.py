"""The fewest accelerators that hold a model: parts of a machine, a machine, whole machines."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tonnage.search.compare.asking import Outcome
from tonnage.search.compare.places import MOST_NODES, Place
from tonnage.spec import Cluster

Ask = Callable[[Cluster, Mapping[str, Any]], Outcome]


def fewest(place: Place, said: Mapping[str, Any], ask: Ask, *, pipelines: bool) -> Outcome:
    """The answer for the fewest that hold it; where none do, the nearest to it. `pipelines`: machines split the layers of what one does not hold."""
    tried = []
    for size in place.counts():
        tried.append(ask(place.of(size), said))
        if tried[-1].holds:
            return tried[-1]
    if place.joins and any(outcome.answer for outcome in tried):
        tried += _on_nodes(place, said, ask, tried[-1], splits=pipelines and not any(_in_memory(each) for each in tried))  # fmt: skip
    return min(tried, key=_distance)


def _on_nodes(place: Place, said: Mapping[str, Any], ask: Ask, one: Outcome, *, splits: bool) -> Iterator[Outcome]:
    """Answers on more machines: doubled until they hold it, then halved between. The most that are tried come first: most often
    that is enough to know that none hold it."""
    stages = one.answer.question["pipeline_parallel_size"]["value"] if one.answer else 1
    free = not {"tensor_parallel_size", "pipeline_parallel_size"} & set(said)

    def at(nodes: int) -> Outcome:
        more = {"pipeline_parallel_size": nodes * stages} if splits and free else {}
        return ask(place.of(nodes * place.node_size), {**said, **more})

    most = at(MOST_NODES)
    yield most
    if most.answer is not None and not most.holds:
        return
    low, high = 1, 2
    while high < MOST_NODES:
        found = at(high)
        yield found
        if found.holds:
            break
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        found = at(middle)
        yield found
        low, high = (low, middle) if found.holds else (middle, high)


def _in_memory(outcome: Outcome) -> bool:
    return outcome.answer is not None and outcome.answer.fits is True


def _distance(outcome: Outcome) -> tuple[int, float, int]:
    """What holds it first, then what may, then what lacks least; of equals the fewest."""
    size = outcome.cluster.size
    if outcome.answer is None:
        return (3, 0, size)
    if outcome.holds:
        return (0, 0, size)
    over = outcome.answer.needed_bytes / outcome.answer.usable_bytes
    return (1, 0, size) if outcome.answer.status == 2 else (2, 0 if _in_memory(outcome) else over, size)
