"""Bounds of the rates that scripts/fit_serving.py fits, and which rates lie at one of them."""

import math
from collections.abc import Iterator

from tonnage.estimate.serving_time.rates import ServingRates

ENGINES = ("vllm", "sglang", "tensorrt-llm")
# (least, first guess, most): physical limits, not what a row would like
CORE = {
    "weights": (0.6, 0.85, 0.95),
    "cache": (0.6, 0.85, 0.92),
    "cast": (0.5e-6, 3e-6, 12e-6),
    "mixture": (2e-6, 10e-6, 80e-6),
    "fused_mixture": (1e-6, 10e-6, 80e-6),
    "latent_launches": (2, 15, 100),
    "recurrent_launches": (2, 15, 100),
    "other": (0.3e-6, 2.5e-6, 10e-6),
    "products": (0.5, 0.8, 1.3),
    "reuse": (20, 110, 600),
    "packed": (0.5, 0.85, 1.0),
    "expand": (1, 6, 12),
}
# Seconds of a scheduler, which passes that run meanwhile hide in all three, and which no row can tell: not fitted.
HOST_STEP = 3e-4
OF_ENGINE = {
    "request": (1e-7, 3e-6, 5e-5),
    "prompt": (3e-7, 30e-6, 2e-4),
    "arrive": (1e-3, 10e-3, 60e-3),
    "floors": (0.3, 1.0, 2.0),
}
# Engines with rows of their own kind: what differs from the three above. The rest is theirs, on average.
ALONE = {"prompt": (1e-7, 2e-6, 1e-4), "arrive": (1e-6, 5e-4, 5e-3)}
OTHERS = {
    "transformers": {
        "kernel": (3e-6, 20e-6, 50e-6),
        "quantised": (1e-6, 50e-6, 1e-3),
        "packed": (0.05, 0.5, 1.3),
        "caches": (0.05, 0.5, 1.0),
    },
    "llama.cpp": {
        "reads": (0.4, 0.9, 1.05),
        "packed": (0.4, 1.0, 2.0),
        "products": (0.1, 0.5, 1.5),
        "integers": (0.1, 0.6, 1.8),
        "unpacks": (0.5, 6, 60),
        "floors": (0.1, 0.7, 8.0),
        "mixtures": (0.05, 0.5, 2.0),
        **ALONE,
    },
    # rows of validation/recent alone: scripts/fit_serving.py --only mlx
    "mlx": {
        "reads": (0.4, 1.0, 1.15),
        "packed": (0.4, 1.0, 1.5),
        "products": (0.3, 1.0, 1.5),
        "caches": (0.1, 0.8, 1.1),
        "floors": (0.1, 1.0, 8.0),
        "mixtures": (0.05, 0.5, 2.0),
    },
    # rows of validation/recent alone, of one user's decoding: scripts/fit_serving.py --only exllamav2. No
    # row is of prompts: products stay as those of all engines, `prompt` and `arrive` as those of programs of one user.
    "exllamav2": {"packed": (0.4, 1.0, 1.5), "floors": (0.1, 1.0, 8.0)},
    # the same: scripts/fit_serving.py --only openvino
    "openvino": {
        "reads": (0.3, 0.8, 1.15),
        "packed": (0.4, 1.0, 2.0),
        "products": (0.1, 0.8, 1.5),
        "integers": (0.1, 0.8, 1.8),
        "floors": (0.1, 1.0, 8.0),
        "mixtures": (0.05, 0.5, 4.0),
        **ALONE,
    },
    "gpt-fast": {"reads": (0.5, 0.95, 1.1), "packed": (0.3, 0.9, 1.5), "floors": (0.1, 0.7, 3.0)},
    "neuron": {
        "reads": (0.2, 0.8, 1.05),
        "products": (0.1, 0.5, 1.5),
        "step": (1e-5, 1e-3, 2e-2),
        "floors": (0.1, 1.0, 10.0),
        **ALONE,
    },
}
# What versions before another, and kernels of one vendor's accelerators, have of their own; the rest is as the newest
# has it.
VERSIONS = {
    "vllm before 0.8": {"step": (1e-6, HOST_STEP, 5e-3)},
    "vllm before 0.14": {"step": (1e-6, HOST_STEP, 5e-3)},
    "llama.cpp before b4000": {"floors": OTHERS["llama.cpp"]["floors"]},
    "llama.cpp on Apple": {name: OTHERS["llama.cpp"][name] for name in ("packed", "products", "floors")},
    "llama.cpp on Intel": {name: OTHERS["llama.cpp"][name] for name in ("packed", "products")},
    "llama.cpp on AMD": {name: OTHERS["llama.cpp"][name] for name in ("packed", "integers")},
    "transformers before 4.48": {"kernel": OTHERS["transformers"]["kernel"]},
}
NEAR = 5e-3  # of a logarithm


def at_bounds(rates: ServingRates) -> list[str]:
    """The fitted rates that lie at a bound, so that rows alone would go further."""
    return [
        f"{name} ({'least' if value < (low * high) ** 0.5 else 'most'})"
        for name, value, (low, _, high) in _fitted(rates)
        if min(abs(math.log(value / low)), abs(math.log(value / high))) < NEAR
    ]


def count(rates: ServingRates) -> int:
    """How many rates are fitted."""
    return len(list(_fitted(rates)))


def _fitted(rates: ServingRates) -> Iterator[tuple[str, float, tuple[float, float, float]]]:
    """Name, value and bounds of each fitted rate."""
    for name, bounds in CORE.items():
        yield name, getattr(rates, name), bounds
    owners = {**dict.fromkeys(ENGINES, OF_ENGINE), **OTHERS, **VERSIONS}
    for engine, own in owners.items():
        for name, bounds in own.items():
            if engine in rates.engines:
                yield f"{engine} {name}", getattr(rates.engines[engine], name), bounds
