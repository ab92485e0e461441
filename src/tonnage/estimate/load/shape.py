"""Means of a load, and passes of the requests that have them."""

from copy import copy

from tonnage.estimate.load.passes import PassTime
from tonnage.estimate.load.policy import Policy
from tonnage.formulas.load import (
    mean_context,
    mean_prompt_pairs,
    prompts_of_budget,
    requests_in_pool,
    tokens_computed_again,
)
from tonnage.kernel.formula import Number, maximum, minimum
from tonnage.spec import Load


def mean_lengths(load: Load) -> tuple[Number, Number]:
    """Tokens of a prompt and of an answer, of lengths that are uniform from (1 - spread) to 1; an answer has at
    least one token.
    """
    half = 1 - load.spread / 2
    return load.input_tokens * half, 1 + (load.output_tokens - 1) * half


class Shape:
    """Requests that are all like the mean one, where only a mean counts."""

    def __init__(self, pass_time: PassTime, policy: Policy, load: Load, tokens_each: Number = 1) -> None:
        self.pass_time, self.policy = pass_time, policy
        self.cv2 = load.spread**2 / 12 / (1 - load.spread / 2) ** 2  # of a uniform length
        # `answer`: tokens that the cache holds at the end; `output`: passes that make them, the prompt's own among them
        self.input, self.answer = mean_lengths(load)
        self.output = 1 + (self.answer - 1) / tokens_each
        self.prompt = maximum(self.input - load.cached_tokens, 1)
        self.pairs = mean_prompt_pairs.evaluate(s=self.input, s_hit=self.input - self.prompt, cv2=self.cv2)
        self.context = mean_context.evaluate(s=self.input, O=self.answer, cv2=self.cv2)
        self.budget = policy.max_num_batched_tokens
        self.places, self.fits = policy.max_num_seqs, True
        if policy.pool_tokens is not None:
            # a longer one holds more, and for longer
            held = self.input + self.answer * (1 + self.cv2) if policy.reserves_answer else self.context
            pool = requests_in_pool.evaluate(D_pool=policy.pool_tokens, s=held, B=policy.block_size)
            # where all are alike what is left over holds nobody; else half of one is left over on average
            pool_requests = pool // 1 if load.spread == 0 and policy.reserves_answer else pool - 0.5
            self.places = maximum(minimum(pool_requests, policy.max_num_seqs), 1)
            self.fits = policy.pool_tokens >= load.input_tokens + load.output_tokens

    def under_pressure(self, users: Number) -> "Shape":
        """The same with what is computed again where more want to run than the cache holds, and nothing is reserved
        for answers.
        """
        policy = self.policy
        if policy.pool_tokens is None or policy.reserves_answer:
            return self
        full = (users >= self.places) & (self.places < policy.max_num_seqs)
        more = where(full, tokens_computed_again.evaluate(O=self.answer), 0)
        shape = copy(self)
        shape.prompt, shape.pairs = self.prompt + more, self.pairs + more * self.context / 2
        return shape

    def prompts_at_most(self, running: Number) -> Number:
        """Prompts that a pass takes beside those that decode; less than 1 where a prompt takes several passes."""
        prompts = prompts_of_budget.evaluate(T=self.budget, R=running if self.policy.mixed else 0, s=self.prompt)
        return prompts if self.policy.chunked_prefill else maximum(prompts // 1, 1)

    def decode(self, running: Number) -> Number:
        """Seconds of a pass in which `running` requests decode."""
        return self.pass_time.seconds(0, 0, running, running * self.context)

    def prompts(self, prompts: Number, running: Number) -> Number:
        """Seconds of a pass that has so many prompts, beside those that decode where they share passes."""
        decoding = running if self.policy.mixed else 0 * running
        return self.pass_time.seconds(prompts * self.prompt, prompts * self.pairs, decoding, decoding * self.context)

    def first_token(self, prompts: Number, running: Number) -> Number:
        """Seconds until `prompts` are computed that came together: full passes, and one with what is left over."""
        most = self.prompts_at_most(running)
        full = (prompts / most + 1e-9) // 1
        rest = maximum(prompts - full * most, 0)  # in prompts: a pass may have room for millions of them
        return full * self.prompts(most, running) + where(rest > 1e-6 * prompts, self.prompts(rest, running), 0)


def where(truth: Number, then: Number, otherwise: Number) -> Number:
    """`then` where something is true, else `otherwise`, element by element."""
    if not hasattr(truth, "shape") or not truth.shape:
        return then if truth else otherwise
    import numpy as np

    return np.where(truth, then, otherwise)


def between(least: Number, value: Number, most: Number) -> Number:
    return minimum(maximum(value, least), most)
