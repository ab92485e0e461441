"""Speculative decoding: which way tokens are drafted, and how many of them are accepted, by what was published.

Of a model without measurements the facts of its family are taken, else of the method as a whole; the range says how
far publications differ.
"""

from collections.abc import Callable
from functools import lru_cache
from statistics import fmean, median
from typing import Literal

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.catalogue.acceptance import AcceptanceFact, method, methods
from tonnage.estimate.serving.placement import DRAFT, HEADS, LOOKUP, OWN_LAYERS, SUFFIX
from tonnage.formulas import passes as f
from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.message import Message

# Tokens of a pass that checks a tree, and of one that checks a chain, of one model with one head: SpecForge, issue 339
# (Qwen3-30B-A3B, one and four requests).
TREE_AND_CHAIN = ((2.20, 1.86), (2.27, 1.86))
LEAST, MOST = 0.01, 0.99  # of a probability that a range may reach
STEPS = 60  # of a bisection

Level = Literal["model", "family", "method"]


class Acceptance(Struct, frozen=True, kw_only=True):
    """The probability that a drafted token is accepted, and the range of what was published; `level`: of what."""

    value: float
    low: float
    high: float
    level: Level
    facts: tuple[AcceptanceFact, ...]

    def why(self, name: str) -> str:
        """Where it is from, in a sentence's part. `name`: of the method."""
        first = self.facts[0]
        if self.level == "model":
            return Message("published for this model: {source}; {task}", source=first.source, task=first.task)
        models = ", ".join(dict.fromkeys(fact.model for fact in self.facts if fact.model))
        if self.level == "family":
            return Message("assumed: published for {models}, of the same family", models=models)
        if name == LOOKUP:
            return Message("assumed: the lowest of all published with {method} ({models})", method=name, models=models)
        return Message("assumed: the median of all published with {method} ({models})", method=name, models=models)


def known_methods() -> tuple[str, ...]:
    """All methods, the most used first."""
    order = (*HEADS[:2], OWN_LAYERS, *HEADS[2:], LOOKUP, SUFFIX, DRAFT)
    return tuple(name for name in order if name in methods())


def usual_tokens(name: str) -> int:
    """Tokens drafted in each step where no number is given."""
    return method(name).tokens


def most_published() -> int:
    """The most tokens drafted ahead, as a chain, of which a publication says how many are accepted."""
    facts = [fact for name in methods() for fact in method(name).fact if not fact.tree]
    return max(max(len(fact.positions), *map(int, fact.lengths), 0) for fact in facts)


def published_head(model: Model, name: str) -> str:
    """The checkpoint of a head that was published for this model; "" where none is known."""
    own = _catalogued(model.name)
    return next((fact.head for fact in method(name).fact if fact.model == own and fact.head), "")


def acceptance(model: Model, name: str, tokens: int, draft: str = "") -> Acceptance:
    """What was published, nearest first: this model (with this draft model), its family, the method.

    MissingDatum where nothing was. `tokens`: drafted in each step.
    """
    return _acceptance(_catalogued(model.name), model.family, name, tokens, _catalogued(draft) if draft else "")


@lru_cache(maxsize=256)
def _acceptance(model: str, family: str, name: str, tokens: int, draft: str) -> Acceptance:
    facts = method(name).fact

    def of_model(fact: AcceptanceFact) -> bool:
        return fact.model == model and (name != DRAFT or fact.draft == draft)

    if name == LOOKUP:  # n-grams follow the text, not the model: nothing of a family says how often yours repeats
        own = tuple(fact for fact in facts if of_model(fact))
        return _joined(own, "model", tokens) if own else _joined(facts, "method", tokens, lowest=True)
    tests: tuple[tuple[Level, Callable[[AcceptanceFact], bool]], ...] = (
        ("model", of_model),
        ("family", lambda fact: bool(family) and fact.family == family),
        ("method", lambda fact: True),
    )
    for level, test in tests:
        near = tuple(fact for fact in facts if test(fact))
        chosen = tuple(fact for fact in near if not fact.tree) or near
        if chosen:
            return _joined(chosen, level, tokens)
    raise MissingDatum(
        "no published acceptance of {method} is in the catalogue. Say that of your load: {--acceptance} 0.6.",
        method=name,
    )


def _joined(facts: tuple[AcceptanceFact, ...], level: Level, tokens: int, *, lowest: bool = False) -> Acceptance:
    shares = [share(fact, tokens) for fact in facts]
    middle = min(shares) if lowest else median(shares) if level == "method" else fmean(shares)
    low, high = min(shares), max(shares)
    if level != "method":  # one publication says nothing of how far others would be from it
        spread = _spread(tokens)
        low, high = min(low, middle * (1 - spread)), max(high, middle * (1 + spread))
    return Acceptance(value=middle, low=max(low, LEAST), high=min(high, MOST), level=level, facts=facts)


@lru_cache(maxsize=64)
def _spread(tokens: int) -> float:
    """How far publications of the same model and method are from their mean at most, as a share of it."""
    found = []
    for name in methods():
        by_model: dict[tuple[str, str], list[float]] = {}
        for fact in method(name).fact:
            if fact.model and not fact.tree:
                by_model.setdefault((fact.model, fact.draft), []).append(share(fact, tokens))
        for shares in by_model.values():
            found += [max(abs(each / fmean(shares) - 1) for each in shares)] if len(shares) > 1 else []
    return max(found)


def share(fact: AcceptanceFact, tokens: int) -> float:
    """The probability of a drafted token with which a pass that drafts so many gives as many as were measured."""
    if fact.positions:
        counted = min(tokens, len(fact.positions))
        return _probability(float(f.tokens_by_positions.evaluate(sum_take=sum(fact.positions[:counted]))), counted)
    lengths = {int(number): length for number, length in fact.lengths.items()}
    drafted = min(lengths, key=lambda number: (abs(number - tokens), number))
    length = lengths[drafted]
    if fact.tree:
        length = float(f.tokens_of_chain.evaluate(L_tree=length, share_chain=CHAIN_SHARE))
    return _probability(length, drafted)


CHAIN_SHARE = median((chain - 1) / (tree - 1) for tree, chain in TREE_AND_CHAIN)


def _probability(length: float, tokens: int) -> float:
    """The inverse of `tokens_per_pass`, which grows with the probability."""
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        if f.tokens_per_pass.evaluate(n_draft=tokens, p_take=middle) < length:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _catalogued(name: str) -> str:
    """The catalogue's name of a model, else its own in the same form."""
    from tonnage.catalogue import toml_files

    path = toml_files.find("models", name)
    return path.stem if path is not None else toml_files.key(name).rpartition("/")[2]
