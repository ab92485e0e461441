"""The fewest accelerators that hold a model: parts of a machine, a machine, whole machines."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tonnage.search.compare.asking import Outcome
from tonnage.search.compare.places import MachineOption
from tonnage.spec import Cluster

MOST_SERVING, MOST_TRAINING = 16, 64  # machines that are tried: who needs more says how many
Ask = Callable[[Cluster, Mapping[str, Any]], Outcome]


def fewest(place: MachineOption, options: Mapping[str, Any], ask: Ask, *, serving: bool) -> Outcome:
    """The answer for the fewest that hold it; where none do, the nearest to it. Training takes what more machines
    are given; of a served model that none holds alone, each machine takes a part of the layers.
    """
    tried: list[Outcome] = []
    least = 0.0
    for size in place.counts():
        if size < least and size < place.node_size:
            continue
        tried.append(ask(place.of(size), options))
        if tried[-1].holds:
            return tried[-1]
        least = least or (_least(tried[-1]) if serving else 0)
    if place.joins and any(outcome.answer for outcome in tried):
        tried += (
            _serving_on_more(place, options, ask, tried, least) if serving else _training_on_more(place, options, ask)
        )
    return min(tried, key=_distance)


def _serving_on_more(
    place: MachineOption, options: Mapping[str, Any], ask: Ask, tried: list[Outcome], least: float
) -> Iterator[Outcome]:
    """Replicas on more machines; where that does not hold the model, the stages of a pipeline on each, unless the
    user has said how it is cut.
    """
    stages = tried[-1].answer.question["pipeline_parallel_size"].value if tried[-1].answer else 0
    if {"tensor_parallel_size", "pipeline_parallel_size"} & set(options) or any(map(_in_memory, tried)):
        stages = 0

    def at(nodes: int) -> Outcome | None:
        cluster, outcomes = place.of(nodes * place.node_size), []
        if cluster.size < least:
            return None
        if not stages or least <= place.node_size:
            outcomes = [ask(cluster, options)]
        if stages and not any(outcome.holds for outcome in outcomes):
            outcomes.append(ask(cluster, {**options, "pipeline_parallel_size": nodes * stages}))
        return min(outcomes, key=_distance)

    yield from _doubled(at, MOST_SERVING)


def _training_on_more(place: MachineOption, options: Mapping[str, Any], ask: Ask) -> Iterator[Outcome]:
    """Training on more machines. The most that are tried come first: most often that is enough to know that none
    hold it.
    """

    def at(nodes: int) -> Outcome:
        return ask(place.of(nodes * place.node_size), options)

    most = at(MOST_TRAINING)
    yield most
    if most.answer is None or most.holds:
        yield from _doubled(at, MOST_TRAINING // 2)


def _doubled(at: Callable[[int], Outcome | None], most: int) -> Iterator[Outcome]:
    """Numbers of machines, doubled until they hold it, then halved between. None of `at`: it is known that they do
    not.
    """
    low, high = 1, 2
    while high <= most:
        if (outcome := at(high)) is not None:
            yield outcome
            if outcome.holds:
                break
        low, high = high, high * 2
    while high <= most and high - low > 1:
        middle = (low + high) // 2
        if (outcome := at(middle)) is not None:
            yield outcome
        low, high = (low, middle) if outcome is not None and outcome.holds else (middle, high)


def _least(outcome: Outcome) -> float:
    """Accelerators that the weights alone fill, however they are cut: fewer are not asked."""
    answer = outcome.answer
    if answer is None:
        return 0
    weights = sum(child.value for child in answer.memory.children if child.name == "weights")
    entry = answer.question.get("replicas")
    replicas = entry.value if entry else 1
    return float(weights / answer.usable_bytes * outcome.cluster.size / replicas)


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
