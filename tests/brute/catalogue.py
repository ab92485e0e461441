"""What the cases are made of: every model, machine, runtime, engine, precision and optimizer that the package ships."""

from functools import cache

from tonnage.catalogue import accelerator_names, model_names, node_names
from tonnage.numerics.optimizers import OPTIMIZERS
from tonnage.numerics.precisions import PRECISIONS, TRAINING_RECIPES
from tonnage.runtimes import serving_runtimes, training_runtimes

RUNTIMES, ENGINES = training_runtimes(), serving_runtimes()
RECIPES, WEIGHTS = tuple(TRAINING_RECIPES), tuple(PRECISIONS)
OPTIMIZER_NAMES = tuple(OPTIMIZERS)
# One model of each kind: dense, small, mixture, latent attention, windows, states, encoder alone, both sides, images,
# hybrids.
KINDS = (
    "llama-3.1-8b",
    "qwen3-0.6b",
    "mixtral-8x7b-v0.1",
    "deepseek-v3",
    "gemma-3-4b-pt",
    "mamba-2.8b-hf",
    "bert-base-uncased",
    "t5-large",
    "qwen2.5-vl-7b-instruct",
    "gpt-oss-20b",
    "jamba-v0.1",
    "qwen3-next-80b-a3b-instruct",
)
COUNTS = ("", "2x", "8x", "2x8x", "16x8x")  # accelerators, or nodes x accelerators
PAIR = ("8xH100-SXM-80GB", "rtx-4090")  # the two machines that every model is asked for


@cache
def models() -> tuple[str, ...]:
    """Every model of the catalogue."""
    return tuple(sorted(model_names()))


@cache
def kinds() -> tuple[str, ...]:
    """The models of KINDS that the catalogue has."""
    return tuple(name for name in KINDS if name in set(models()))


@cache
def machines() -> tuple[str, ...]:
    """Every accelerator, in turn by itself and several of it, and every node."""
    names = sorted(accelerator_names())
    return (*(f"{COUNTS[at % len(COUNTS)]}{name}" for at, name in enumerate(names)), *sorted(node_names()))
