"""What a replica does under a load: the steady state in closed form, and a simulation of the same engine request by
request.

    policy = Policy(max_num_seqs=256, max_num_batched_tokens=8192, pool_tokens=400_000)
    load = Load(input_tokens=1024, output_tokens=1024, concurrency=64, spread=0.2)
    steady(pass_time, policy, load, rounds=10).ttft
    simulate(pass_time, policy, requests_of(load)).ttft.p99

Requests of a file: `tonnage.estimate.load.requests.read_requests`.
"""

from typing import TYPE_CHECKING, Any

from tonnage.estimate.load.shape import PassTime as PassTime
from tonnage.estimate.load.shape import Policy as Policy
from tonnage.estimate.load.shape import Shape as Shape
from tonnage.estimate.load.shape import mean_lengths as mean_lengths
from tonnage.estimate.load.steady import Steady as Steady
from tonnage.estimate.load.steady import steady as steady

if TYPE_CHECKING:
    from tonnage.estimate.load.requests import Requests as Requests
    from tonnage.estimate.load.requests import requests_of as requests_of
    from tonnage.estimate.load.simulate import simulate as simulate
    from tonnage.estimate.load.simulated import Quantiles as Quantiles
    from tonnage.estimate.load.simulated import Simulated as Simulated

# Names of the simulation, imported when they are first used: most answers need the closed form alone.
_WHERE = {
    "Quantiles": "simulated",
    "Requests": "requests",
    "Simulated": "simulated",
    "requests_of": "requests",
    "simulate": "simulate",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    # `simulate` is a module of this package too, which its import puts here: the function takes its place.
    found = globals()[name] = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    return found
