"""Means of a load, and passes of the requests that have them."""

from copy import copy
from typing import Protocol

from msgspec import Struct

from tonnage.formulas.load import (
    mean_context,
    mean_prompt_pairs,
    prompts_of_budget,
    requests_in_pool,
    tokens_computed_again,
)
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.formula import Number, is_any, maximum, minimum
from tonnage.kernel.message import option_name
from tonnage.spec import Load

# ---- What the load needs to know of a replica: how long one forward pass takes.


class PassTime(Protocol):
    """The clock of one replica, whatever its model, machine and engine."""

    def seconds(self, prompt_tokens: Number, prompt_keys: Number, requests: Number, keys: Number) -> Number:
        """Seconds of one forward pass of one replica: `prompt_tokens` tokens of prompts in it, with `prompt_keys`
        pairs of (token, key it attends) in all, and `requests` that decode one token each with `keys` tokens of
        context in all. All may be numpy arrays; monotone in each. Includes the engine's own time between passes.
        """
        ...


# ---- What no load can be.


def check_load(load: Load) -> None:
    """Refuse it, by the name of what is wrong."""
    for name in ("input_tokens", "output_tokens", "concurrency"):
        value = getattr(load, name)
        if value is not None and is_any(value < 1):
            raise InvalidInput("{name} must be at least 1. Got {value}.", name=option_name(name), value=value)
    if load.requests_per_second is not None:
        if load.concurrency is not None:
            raise InvalidInput(
                "concurrency and requests_per_second exclude each other: users who wait for answers, or arrivals."
            )
        if is_any(load.requests_per_second <= 0):
            raise InvalidInput(
                "requests_per_second must be more than 0. Got {requests_per_second}.",
                requests_per_second=load.requests_per_second,
            )
    if not 0 <= load.spread <= 1:
        raise InvalidInput("{@spread} must be between 0 and 1. Got {spread}.", spread=load.spread)
    if is_any(load.cached_tokens < 0) or is_any(load.cached_tokens >= load.input_tokens):
        raise InvalidInput(
            "{@cached_tokens} must be 0 or more, and fewer than {@input_tokens}, {input_tokens}. Got {cached_tokens}.",
            input_tokens=load.input_tokens,
            cached_tokens=load.cached_tokens,
        )
    if load.burstiness < 0:
        raise InvalidInput("{@burstiness} must not be negative. Got {burstiness}.", burstiness=load.burstiness)


# ---- What an engine does with the requests it has: who is in the next forward pass, and who waits.


class Policy(Struct, frozen=True, kw_only=True):
    """How an engine fills its forward passes.

    `poll_passes`: passes from one look at new requests to the next (SGLang's scheduler_recv_interval, which counts
    those that decode: after a pass with prompts it looks at once).
    `max_num_batched_tokens`: tokens of a pass. `pool_tokens`: tokens of cache that the replica holds, in blocks of
    `block_size`; None: enough.
    `chunked_prefill`: a prompt may be cut where the budget of a pass ends, else it waits for a pass that takes it
    whole.
    `mixed`: prompts share a pass with the requests that decode (vLLM V1; TensorRT-LLM); else prompts run alone, and
    decoding waits for them (vLLM V0, SGLang unless --enable-mixed-chunk). `reserves_answer`: a request is let in when
    its prompt and its whole answer fit (TensorRT-LLM's GUARANTEED_NO_EVICT); else when its prompt does, and where the
    cache runs out the last one let in is sent back and computed again. Numbers may be arrays for the closed form; a
    simulation is of one policy.
    """

    max_num_seqs: Number = 256
    max_num_batched_tokens: Number = 8192
    chunked_prefill: bool = True
    mixed: bool = True
    pool_tokens: Number | None = None
    block_size: Number = 16
    reserves_answer: bool = False
    poll_passes: Number = 1

    def __post_init__(self) -> None:
        for name in ("max_num_seqs", "max_num_batched_tokens", "block_size"):
            if is_any(getattr(self, name) < 1):
                raise InvalidInput(
                    "{name} must be at least 1. Got {value}.", name=option_name(name), value=getattr(self, name)
                )
        if self.mixed and self.chunked_prefill and is_any(self.max_num_batched_tokens < self.max_num_seqs):
            raise InvalidInput(
                "{@max_num_batched_tokens} must be at least {@max_num_seqs}, {max_num_seqs}: each of "
                "them decodes a token in a pass. Got {max_num_batched_tokens}.",
                max_num_seqs=self.max_num_seqs,
                max_num_batched_tokens=self.max_num_batched_tokens,
            )

    @property
    def blocks(self) -> float:
        """Blocks of the pool."""
        return float("inf") if self.pool_tokens is None else self.pool_tokens // self.block_size


def mean_lengths(load: Load) -> tuple[Number, Number]:
    """Tokens of a prompt and of an answer, of lengths that are uniform from (1 - spread) to 1; an answer has at
    least one token.
    """
    half = 1 - load.spread / 2
    return load.input_tokens * half, 1 + (load.output_tokens - 1) * half


class Shape:
    """Requests that are all like the mean one, where only a mean counts."""

    def __init__(self, pass_time: PassTime, policy: Policy, load: Load, tokens_each: Number = 1) -> None:
        self.pass_time, self.policy, self.load = pass_time, policy, load
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
