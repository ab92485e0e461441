"""Requests one by one through an engine: what each waits, and what all get."""

from tonnage.errors import InvalidInput
from tonnage.estimate.load._engine import Engine
from tonnage.estimate.load._pass import PassTime
from tonnage.estimate.load._policy import Policy
from tonnage.estimate.load._requests import Requests
from tonnage.estimate.load._simulated import Simulated, simulated


def simulate(pass_time: PassTime, policy: Policy, requests: Requests) -> Simulated:
    """Continuous batching of these requests on one replica; first come, first served."""
    if not len(requests):
        raise InvalidInput("requests must be at least one. Got none.")
    return simulated(Engine(pass_time, policy, requests).run())
