"""What the load needs to know of a replica: how long one forward pass takes."""

from typing import Protocol

from tonnage.kernel.formula import Number


class PassTime(Protocol):
    """The clock of one replica, whatever its model, machine and engine."""

    def seconds(self, prompt_tokens: Number, prompt_keys: Number, requests: Number, keys: Number) -> Number:
        """Seconds of one forward pass of one replica: `prompt_tokens` tokens of prompts in it, with `prompt_keys`
        pairs of (token, key it attends) in all, and `requests` that decode one token each with `keys` tokens of
        context in all. All may be numpy arrays; monotone in each. Includes the engine's own time between passes.
        """
        ...
