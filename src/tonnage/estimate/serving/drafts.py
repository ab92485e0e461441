"""Speculative decoding: from what the user said to the fields of a plan, checked."""

from typing import Any

from tonnage.architectures import Model
from tonnage.estimate.inputs import Question
from tonnage.estimate.serving.draft_heads import head
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.serving.placement import (
    DRAFT,
    HEADS,
    LOOKUP,
    OWN_LAYERS,
    SUFFIX,
    WEIGHTLESS,
    draft_model,
    has_own_layers,
    way_to_draft,
)
from tonnage.estimate.serving.speculative import LEAST, acceptance, known_methods, most_published, usual_tokens
from tonnage.kernel.errors import InvalidPlan, NotApplicable, shown
from tonnage.kernel.message import Message, listed
from tonnage.kernel.registry import unknown
from tonnage.kernel.units import human
from tonnage.runtimes import ServingRuntime, serving_runtime, serving_runtimes

DFLASH = HEADS[-1]
MANY_DRAFTS = 16  # tokens drafted ahead, beyond every published run


def drafts(model: Model, o: ServingOptions, q: Question, engine: ServingRuntime) -> dict[str, Any]:
    """Fields of the plan's drafting: who drafts, how many tokens, how many of them are accepted."""
    if o.acceptance is not None and not 0 <= o.acceptance < 1:
        raise InvalidPlan(
            "{@acceptance} must be at least 0 and less than 1. Got {acceptance:g}.", acceptance=o.acceptance
        )
    if o.draft_tokens is None and not o.draft_model and not o.speculative:
        if o.acceptance is not None:
            raise NotApplicable(
                Message(
                    "{@acceptance} is of drafted tokens: add {@speculative}, {@draft_tokens} or {@draft_model}. Got "
                    "{acceptance:g} alone.",
                    acceptance=o.acceptance,
                ),
                "acceptance",
                ("speculative", "draft_tokens", "draft_model"),
            )
        return {}
    method = way_to_draft(model, o.speculative, o.draft_model)
    _check_method(model, o, method, engine)
    if o.speculative:
        q.put("speculative", method, "given")
        usual, why = usual_tokens(method), "the number that its documentation shows"
    else:
        usual, why = 1, "one token ahead"
    tokens = q.take("draft_tokens", o.draft_tokens, usual, "default", why)
    if tokens > MANY_DRAFTS and method != SUFFIX:
        q.warn(
            Message(
                "{@draft_tokens} {tokens}: published runs draft at most {most} tokens ahead. Each further one costs "
                "time in every pass, and is accepted only after all before it.",
                tokens=tokens,
                most=most_published(),
            ),
            first=True,
        )
    if method == SUFFIX and o.draft_tokens is None:
        q.warn(
            Message(
                "{@speculative} suffix drafts at most {tokens} tokens, and fewer where less of the text repeats: every "
                "pass is timed with all of them. Say the mean of your load: {--draft-tokens} 6.",
                tokens=tokens,
            )
        )
    elif method == DFLASH:
        q.warn(
            Message(
                "{@speculative} dflash projects each prompt to its keys and values: this part of TTFT is not counted."
            )
        )
    if o.draft_model is not None:
        q.put("draft_model", o.draft_model, "given")
    if method == DRAFT and o.draft_model:
        _check_size(model, o.draft_model, q)
    if not o.speculative and method == LOOKUP:
        q.warn(
            Message(
                "{model} has no layers of multi-token prediction and no {--draft-model} is named: drafts "
                "are taken to need no memory, as n-grams do.",
                model=model.name,
            )
        )
    settings = {"draft_tokens": tokens, "draft_model": o.draft_model or "", "speculative": method}
    if o.acceptance is not None:
        return settings | {"acceptance": q.put("acceptance", o.acceptance, "given")}
    found = acceptance(model, method, int(tokens), o.draft_model or "")
    why, is_own = found.why(method), found.level == "model"
    q.put("acceptance", round(found.value, 4), "catalogue" if is_own else "default", why)
    if not is_own and method == LOOKUP:
        q.warn(
            Message(
                "acceptance {value:.2f} is {why}; publications differ from {low:.2f} to {high:.2f}, and where no text "
                "repeats itself none is accepted: TPOT's band reaches that far. {--acceptance} says that of your load.",
                value=found.value,
                why=why,
                low=found.low,
                high=found.high,
            )
        )
    elif not is_own and found.low == found.high:
        q.warn(
            Message(
                "acceptance {value:.2f} is {why}; there is one publication. {--acceptance} says that of your load.",
                value=found.value,
                why=why,
            )
        )
    elif not is_own:
        q.warn(
            Message(
                "acceptance {value:.2f} is {why}; publications differ from {low:.2f} to {high:.2f}. {--acceptance} "
                "says that of your load.",
                value=found.value,
                why=why,
                low=found.low,
                high=found.high,
            )
        )
    return settings | {
        "acceptance": found.value,
        "acceptance_low": found.low if is_own or method != LOOKUP else LEAST,
        "acceptance_high": found.high,
    }


def _check_size(model: Model, name: str, q: Question) -> None:
    """A warning of a draft model whose passes read no less than those that it saves."""
    drafted, own = draft_model(name).num_active_parameters(), model.num_active_parameters()
    if drafted >= own:
        q.warn(
            Message(
                "{@draft_model} {draft} passes a token through {drafted}, {model} through {own}: a draft model saves "
                "time where it is much smaller.",
                draft=name,
                drafted=human(drafted, "parameters"),
                model=model.name,
                own=human(own, "parameters"),
            ),
            first=True,
        )


def _check_method(model: Model, o: ServingOptions, method: str, engine: ServingRuntime) -> None:
    """InvalidPlan for an unknown way to draft, one that the engine does not have, or one that lacks what it needs."""
    known = known_methods()
    if method not in known:
        raise unknown("speculative", method, known)
    if o.speculative and method not in engine.drafts:
        having = [name for name in serving_runtimes() if method in serving_runtime(name).drafts]
        raise InvalidPlan(
            "{@speculative}: {engine} does not draft with {method}. It has {own}; {method} is in {having}.",
            engine=engine.version,
            method=method,
            own=listed(engine.drafts) or "none",
            having=listed(having),
        )
    if method == DRAFT and not o.draft_model:
        raise InvalidPlan(
            Message("{@speculative} draft needs {@draft_model}, a smaller model with the same vocabulary. Got none.")
        )
    if method in (OWN_LAYERS, *WEIGHTLESS) and o.draft_model:
        raise InvalidPlan(
            "{@speculative} {method} has no draft model: leave out {@draft_model}, or say {@speculative} draft. Got "
            "{draft_model}.",
            method=method,
            draft_model=shown(o.draft_model),
        )
    if method == OWN_LAYERS and not has_own_layers(model):
        raise InvalidPlan(
            "{@speculative} mtp: {model} has no layers of multi-token prediction. Nearest: eagle3, ngram or draft.",
            model=model.name,
        )
    if method in HEADS:
        head(model, method, 1)
