"""On how many ranks and nodes the experts of a token lie, where a router chooses among all of them or among groups."""

from collections.abc import Mapping
from math import gcd
from typing import Any, NamedTuple

from tonnage.kernel.formula import Number, maximum


class Routing(NamedTuple):
    """How a router chooses: `chosen` of `experts`, which are dealt out in order; of `groups` of them only the
    `allowed` best are open to a token.

    Sources: DeepSeek2024V3, sec. 2.1.2: a token goes to at most four of eight nodes; Megatron-core,
    megatron/core/transformer/moe/moe_utils.py: group_limited_topk, by --moe-router-num-groups and
    --moe-router-group-topk.
    """

    experts: int
    chosen: int
    groups: int = 1
    allowed: int = 1
    #: Benchmarks deal experts out in turn: the first token gets the first `chosen`, the next one those that follow
    #: (NVIDIA-NeMo/Automodel, nemo_automodel/components/moe/layers.py: FakeBalancedGate; AMD-AGI/Primus,
    #: primus/backends/megatron/core/transformer/moe/router.py: moe_router_force_load_balancing).
    in_turn: bool = False

    def places(self, places: Number) -> Number:
        """Ranks, or nodes, of so many that the experts of a token lie on, on average: each place that is not left out
        by all of them. The experts are all different, so none is drawn twice.

        >>> round(Routing(8, 2).places(8), 9), round(Routing(256, 8).places(1), 9)
        (2.0, 1.0)
        >>> round(Routing(256, 8, groups=8, allowed=4).places(8), 2)
        3.63
        >>> Routing(128, 8, in_turn=True).places(8), Routing(256, 8, in_turn=True).places(64)
        (1.0, 2.0)
        """
        if self.in_turn:
            return self._in_turn(places)
        of_place = maximum(self.groups / places, 1)  # groups that a place has, whole or a part of one
        held = self.experts / maximum(places, self.groups)  # experts of the place that one of them opens
        pool = self.experts * self.allowed / self.groups
        shares = [_share(self.groups, of_place, self.allowed, opened) for opened in range(self.allowed + 1)]
        missed = sum(share * _missed(pool, opened * held, self.chosen) for opened, share in enumerate(shares))
        return places * (1 - missed / sum(shares))

    def _in_turn(self, places: Number) -> Number:
        """The mean over tokens, whose first experts are multiples of what both numbers share: one place, and one more
        for each of the bounds between places that lies between its experts. For one number of places.
        """
        held = self.experts / places
        aligned = gcd(int(held), gcd(self.chosen, self.experts))
        return min(1 + (self.chosen - aligned) / held, places)


def routing_of(config: Mapping[str, Any], experts: int, chosen: int, *, in_turn: bool = False) -> Routing:
    """What the config of a model says: `n_group` and `topk_group` of DeepSeek and those that took it over. `in_turn`: a
    benchmark's gate gives experts out whatever the config says.
    """
    if in_turn:
        return Routing(experts, chosen, in_turn=True)
    groups, allowed = (_count(config.get(name)) for name in ("n_group", "topk_group"))
    if groups <= 1 or experts % groups or not 0 < allowed <= groups or experts * allowed / groups < chosen:
        return Routing(experts, chosen)
    return Routing(experts, chosen, groups, allowed)


def _missed(pool: Number, held: Number, chosen: int) -> Number:
    """The share of tokens none of whose experts, `chosen` of `pool` without regard to where they lie, are `held`."""
    share: Number = 1.0
    for drawn in range(chosen):
        share = share * maximum(pool - held - drawn, 0) / (pool - drawn)
    return share


def _share(groups: int, of_place: Number, allowed: int, opened: int) -> Number:
    """The share of tokens to which `opened` groups of a place are open, in proportion to others'."""
    share: Number = 1.0
    for number in range(opened):
        share = share * maximum(of_place - number, 0) / (number + 1)
    for number in range(allowed - opened):
        share = share * maximum(groups - of_place - number, 0) / (number + 1)
    return share


def _count(value: object) -> int:
    """A number of groups; one where a config has none, or something else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 1
