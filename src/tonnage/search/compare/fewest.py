"""The fewest accelerators that hold a model: parts of a machine, a machine, whole machines."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tonnage.search.compare.asking import Outcome
from tonnage.search.compare.places import Place
from tonnage.spec import Cluster

MOST_SERVING, MOST_TRAINING = 16, 64  # machines that are tried: who needs more says how many
Ask = Callable[[Cluster, Mapping[str, Any]], Outcome]


def fewest(place: Place, said: Mapping[str, Any], ask: Ask, *, serving: bool) -> Outcome:
    """The answer for the fewest that hold it; where none do, the nearest to it. Training takes what more machines are given; of a served
    model that none holds alone, each machine takes a part of the layers."""
    tried = []
    for size in place.counts():
        tried.append(ask(place.of(size), said))
        if tried[-1].holds:
            return tried[-1]
    if place.joins and any(outcome.answer for outcome in tried):
        stages = tried[-1].answer.question["pipeline_parallel_size"]["value"] if tried[-1].answer else 1
        free = not {"tensor_parallel_size", "pipeline_parallel_size"} & set(said) and not any(map(_in_memory, tried))
        tried += _on_nodes(place, said, ask, stages=stages if free else 0) if serving else _on_more(place, said, ask)
    return min(tried, key=_distance)


def _on_nodes(place: Place, said: Mapping[str, Any], ask: Ask, *, stages: int) -> Iterator[Outcome]:
    """Replicas on more machines; where that does not hold the model, `stages` of a pipeline on each, 0 for none."""

    def at(nodes: int) -> Outcome:
        cluster = place.of(nodes * place.node_size)
        plain = ask(cluster, said)
        if plain.holds or not stages:
            return plain
        return min(plain, ask(cluster, {**said, "pipeline_parallel_size": nodes * stages}), key=_distance)

    yield from _doubled(at, MOST_SERVING)


def _on_more(place: Place, said: Mapping[str, Any], ask: Ask) -> Iterator[Outcome]:
    """Training on more machines. The most that are tried come first: most often that is enough to know that none hold it."""

    def at(nodes: int) -> Outcome:
        return ask(place.of(nodes * place.node_size), said)

    most = at(MOST_TRAINING)
    yield most
    if most.answer is None or most.holds:
        yield from _doubled(at, MOST_TRAINING // 2)


def _doubled(at: Callable[[int], Outcome], most: int) -> Iterator[Outcome]:
    """Numbers of machines, doubled until they hold it, then halved between."""
    low, high = 1, 2
    while high <= most:
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
