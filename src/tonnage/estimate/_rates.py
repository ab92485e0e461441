"""Measured shares of peaks: what a fit over many rows gave (scripts/fit_rates.py)."""

from collections.abc import Mapping

from msgspec import Struct


class Generation(Struct, frozen=True, kw_only=True):
    """Ceilings of one generation of accelerators, as shares of the datasheet's peaks."""

    matrix: Mapping[str, float] = {}
    attention: float = 0.5
    attention_backward: float = 0.8
    experts: float = 0.8
    memory: float = 0.85

    def share(self, precision: str) -> float:
        return self.matrix.get(precision, 0.75)


class Rates(Struct, frozen=True, kw_only=True):
    """All that the time of a step is fitted with."""

    generations: Mapping[str, Generation] = {}
    launch: float = 4e-6
    half_inner: float = 100.0
    half_side: float = 60.0
    cast: float = 0.5
    scan: float = 0.1
    inside: float = 0.8
    outside: float = 0.8
    latency_inside: float = 10e-6
    latency_outside: float = 20e-6
    hidden: float = 0.8  # of what can run beside compute, this share is hidden
    step_overhead: float = 10e-3
    optimizer_bytes: float = 34
    host: float = 6e-6
    routed_operations: float = 60
    alltoall_operations: float = 2.0
    newer_experts: float = 1.3

    def of(self, generation: str) -> Generation:
        return self.generations.get(generation) or self.generations.get("") or Generation()
