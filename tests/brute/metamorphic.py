"""Pairs of questions whose answers must be in an order: more work never needs less memory, more bandwidth never takes
longer.

A property is a function of a question that yields faults. Where an order does not hold, the mechanism is named in
`test_metamorphic.py`.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from msgspec.structs import replace

import tonnage
from brute.check import run_case
from tonnage.catalogue import cluster
from tonnage.estimate.answer import answers
from tonnage.estimate.answer.answers import Answer
from tonnage.estimate.load.options import LoadOptions
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.serving.options import ServingOptions
from tonnage.kernel.errors import TonnageError
from tonnage.models import read
from tonnage.question.subjects.maximum import what_of
from tonnage.spec import Cluster, Link

Options = Mapping[str, Any]
ROOM = 1e-9  # of floats that are added in another order


@cache
def model_of(name: str) -> Any:
    return read(name, offline=True)


def train(name: str, machine: Cluster, options: Options) -> Answer | None:
    """The answer; None for what is refused, or not known."""
    try:
        return answers.train(model_of(name), machine, TrainingOptions(**options), advise=False)
    except TonnageError:
        return None


def serve(name: str, machine: Cluster, options: Options) -> Answer | None:
    """The answer; None for what is refused, or not known."""
    load = {key: value for key, value in options.items() if key in LoadOptions.__struct_fields__}
    own = {key: value for key, value in options.items() if key not in load}
    try:
        return answers.serve(model_of(name), machine, ServingOptions(**own), LoadOptions(**load), advise=False)
    except TonnageError:
        return None


def needs(answer: Answer) -> float:
    """Bytes of the fullest accelerator."""
    return float(answer.memory.value)


def times(answer: Answer) -> dict[str, float]:
    """Every time of an answer that hardware decides.

    Where several users share a replica, the wait for a first token is in the time of the whole request alone: users
    whose answers end sooner are back sooner with the next prompt, so that prompts meet more often.
    """
    if answer.step_time is not None:
        return {"step_time": float(answer.step_time.value)}
    first, next_ = answer.serving.ttft_seconds, answer.serving.tpot_seconds
    if not first or not next_:  # a load that no replica bears has no time
        return {}
    tokens = answer.question["output_tokens"].value
    found = {"tpot_seconds": float(next_.value), "a request": float(first.value + (tokens - 1) * next_.value)}
    if answer.question["concurrency"].value == 1:
        found["ttft_seconds"] = float(first.value)
    return found


def wider(machine: Cluster, part: str) -> Cluster | None:
    """The cluster with twice the bandwidth of one part; None where it has none, or none is known."""
    accelerator, node = machine.accelerator, machine.node
    if part == "memory":
        rate = accelerator.memory.bytes_per_second
        if rate is None:
            return None
        return replace(
            machine, accelerator=replace(accelerator, memory=replace(accelerator.memory, bytes_per_second=2 * rate))
        )
    if part in ("scale_up", "host_link"):
        link = getattr(accelerator, part)
        return None if link is None else replace(machine, accelerator=replace(accelerator, **{part: _twice(link)}))
    link = None if node is None else getattr(node, part)
    return None if link is None or node is None else replace(machine, node=replace(node, **{part: _twice(link)}))


def _twice(link: Link) -> Link:
    return replace(link, bytes_per_second=2 * link.bytes_per_second)


PARTS = ("memory", "scale_up", "host_link", "inside", "outside")
Ask = Callable[[str, Cluster, Options], Answer | None]


def more_needs_no_less(ask: Ask, name: str, on: str, options: Options, field: str, more: Any) -> Iterator[str]:
    """One number of the question is raised: the memory that is needed must not fall."""
    less, then = ask(name, cluster(on), options), ask(name, cluster(on), {**options, field: more})
    if less and then and needs(then) < needs(less) * (1 - ROOM):
        yield (
            f"{name} on {on}, {dict(options)}: {field}={more} needs {needs(then):,.0f} bytes, less than "
            f"{needs(less):,.0f}"
        )


def more_bandwidth_is_no_slower(ask: Ask, name: str, on: str, options: Options, part: str) -> Iterator[str]:
    """One bandwidth is doubled: no time must rise."""
    machine = cluster(on)
    changed = wider(machine, part)
    if changed is None:
        return
    slow, fast = ask(name, machine, options), ask(name, changed, options)
    if slow is None or fast is None:
        return
    after = times(fast)
    for what, seconds in times(slow).items():
        if what in after and after[what] > seconds * (1 + ROOM):
            yield (
                f"{name} on {on}, {dict(options)}: with twice the bandwidth of {part}, {what} is {after[what]} s "
                f"instead of {seconds} s"
            )


def quantised_needs_no_more(name: str, on: str, options: Options, weights: str) -> Iterator[str]:
    """Weights of fewer bits: the memory that is needed must not rise above that of 16 bits, cut over as many
    accelerators.
    """
    narrow = serve(name, cluster(on), {**options, "weights": weights})
    if narrow is None:
        return
    ranks = narrow.question["tensor_parallel_size"].value  # formats of blocks allow fewer: blocks are not cut
    wide = serve(name, cluster(on), {**options, "tensor_parallel_size": ranks, "weights": "bf16"})
    if wide and needs(narrow) > needs(wide) * (1 + ROOM):
        yield (
            f"{name} on {on}, {dict(options)}: {weights} needs {needs(narrow):,.0f} bytes, more than "
            f"{needs(wide):,.0f} in bf16"
        )


def maximum_holds(what: str, verb: str, name: str, on: str, options: Options) -> Iterator[str]:
    """What `max` answers fits when it is asked again, and the next value that it names does not."""
    try:
        found = tonnage.maximum(what, model_of(name), on=on, verb=verb, advise=False, **options).to_dict()
    except TonnageError:
        return
    option = what_of(what, verb).option
    for place, holds in (("at", True), ("beyond", False)):
        outcome = found[place]
        if outcome is None or outcome["refused"]:
            continue
        if place == "beyond" and found["limit"]["by"] != "memory":
            continue  # beyond what the model takes, `serve` answers for the longest context of the model
        chosen = {**options, **found["options"], option: outcome["value"]}
        answer = (train if verb == "train" else serve)(name, cluster(on), chosen)
        fits = None if answer is None else answer.fits
        if answer is None or answer.needed_bytes != outcome["needed_bytes"] or (holds and not fits):
            yield (
                f"max {what} {name} on {on}, {dict(options)}: {place} {outcome}, asked again {fits}, "
                f"{answer and answer.needed_bytes}"
            )
        if not holds and fits is True:
            yield f"max {what} {name} on {on}, {dict(options)}: {outcome['value']} fits too"


def plans_are_the_same_asked_again(words: tuple[str, ...]) -> Iterator[str]:
    """Each plan of a training run, and the best of serving, names the command that asks for it: its answer has the
    same figures.
    """
    made = run_case((*words, "--json"))
    document = made.document
    if made.status in (4, 64) and document.get("error", {}).get("kind") in ("InvalidPlan", "MissingDatum"):
        # the model is not served so: an encoder, or one with fewer positions than the default request has tokens
        return
    if not document or "plans" not in document:
        yield f"tonnage {shlex.join(words)} has no document of plans"
        return
    if "--train" in words:
        asked = [(plan["text"], plan) for plan in document["plans"][:3]]
    else:
        asked = [(document["command"], plan) for plan in document["plans"][:1] if document["command"]]
    for text, plan in asked:
        again = run_case((*shlex.split(text)[1:], "--json", "--no-advice")).document
        figures = figures_of(again) if again and "verdict" in again else {}
        for key, value in figures.items():
            if plan[key] is not None and abs(plan[key] - value) > 1e-6 * abs(value):
                yield f"tonnage {shlex.join(words)}: {text} has {key} {value}, the plan {plan[key]}"
        if not figures:
            yield f"tonnage {shlex.join(words)}: {text} is no answer"


def figures_of(document: Mapping[str, Any]) -> dict[str, float]:
    """The figures of an answer that its plan states too, by the plan's names. Latencies of a plan are of its fullest
    replica, those of
    `serve` of the mean one: tests/search/test_plan_serving.py compares them."""
    found = {"needed_bytes": document["verdict"]["needed_bytes"]}
    if document.get("step_time"):
        found["step_seconds"] = document["step_time"]["value"]
    if "tokens_per_second" in document.get("serving", {}):
        found["tokens_per_second"] = document["serving"]["tokens_per_second"]["value"]
    return found
