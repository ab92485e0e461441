"""Speculative decoding: passes that check several guessed tokens of each request, and the passes of who guesses
them.
"""

from tonnage.architectures import Model
from tonnage.estimate.serving.memory import draft_plan
from tonnage.estimate.serving.placement import drafting
from tonnage.estimate.serving_time.forward_pass import PassTime, Spent
from tonnage.estimate.serving_time.rates import ServingRates
from tonnage.estimate.serving_time.work import kv_bytes, stage_works
from tonnage.formulas import passes as f
from tonnage.kernel.formula import Number
from tonnage.spec import Cluster, ServingPlan


class Drafted:
    """Passes of a replica that drafts `tokens` ahead: `checks` takes them all in one pass, and `guesses` is run
    before it for each (None: guessing costs nothing, as n-grams do).
    """

    def __init__(self, checks: PassTime, guesses: PassTime | None, tokens: int):
        self.checks, self.guesses, self.tokens = checks, guesses, tokens
        self.plan, self.engine, self.knows_prompts = checks.plan, checks.engine, checks.knows_prompts
        self.works, self.bandwidth, self.is_measured = checks.works, checks.bandwidth, checks.is_measured
        self.tokens_each: Number = f.tokens_per_pass.evaluate(n_draft=tokens, p_take=checks.plan.drafting.acceptance)

    def seconds(self, prompt_tokens: Number, prompt_keys: Number, requests: Number, keys: Number) -> Number:
        """See PassTime."""
        return self.spent(prompt_tokens, prompt_keys, requests, keys).seconds

    def spent(self, prompt_tokens: Number, prompt_keys: Number, requests: Number, keys: Number) -> Spent:
        """Prompts pass who guesses as well, once; each guessed token is a pass of its own."""
        made = self.checks.spent(prompt_tokens, prompt_keys, requests, keys)
        if self.guesses is None:
            return made
        first = self.guesses.spent(prompt_tokens, prompt_keys, requests, keys)
        others = self.guesses.spent(0, 0, requests, keys)
        both = Spent._make(a + b + (self.tokens - 1) * c for a, b, c in zip(made, first, others, strict=True))
        return both._replace(engine=made.engine)  # who guesses does so inside of the same step


def drafted(
    made: PassTime, model: Model, plan: ServingPlan, cluster: Cluster, rates: ServingRates
) -> "PassTime | Drafted":
    """The passes of a plan, with those of its draft model or of the model's own layers of multi-token prediction."""
    if not plan.drafting.draft_tokens:
        return made
    small = drafting(plan.drafting.draft_model)
    if small is not None:
        own = draft_plan(plan)
        works = stage_works(small, own, tuple(cluster.accelerator.dense_flops), kv_bytes(own))
        guesses: PassTime | None = PassTime(works, own, cluster, small.hidden_size, rates)
    elif any(branch.kind == "draft" for branch in model.branches):
        own = draft_plan(plan)
        works = stage_works(model, own, tuple(cluster.accelerator.dense_flops), kv_bytes(own), kind="draft")
        guesses = PassTime(works, own, cluster, model.hidden_size, rates)
    else:
        guesses = None
    return Drafted(made, guesses, plan.drafting.draft_tokens)
