"""Requests one by one through an engine: what each waits, and what all get."""

from tonnage.estimate.load.engine import Engine
from tonnage.estimate.load.requests import Requests
from tonnage.estimate.load.shape import PassTime, Policy
from tonnage.estimate.load.simulated import Simulated, simulated
from tonnage.kernel.errors import InvalidInput


def simulate(pass_time: PassTime, policy: Policy, requests: Requests) -> Simulated:
    """Continuous batching of these requests on one replica; first come, first served."""
    if not len(requests):
        raise InvalidInput("requests must be at least one. Got none.")
    return simulated(Engine(pass_time, policy, requests).run())
