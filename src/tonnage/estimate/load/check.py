"""What no load can be."""

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.formula import is_any
from tonnage.kernel.message import option_name
from tonnage.spec import Load


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
