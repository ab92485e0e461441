"""Names that an option takes, read off the registries that have them."""

from collections.abc import Iterable


def optimizers() -> Iterable[str]:
    from tonnage.numerics.optimizers import OPTIMIZERS

    return OPTIMIZERS


def precisions() -> Iterable[str]:
    from tonnage.numerics.precisions import PRECISIONS

    return PRECISIONS


def training_recipes() -> Iterable[str]:
    from tonnage.numerics.precisions import TRAINING_RECIPES

    return TRAINING_RECIPES


def runtimes() -> Iterable[str]:
    from tonnage.runtimes import training_runtimes

    return training_runtimes()


def engines() -> Iterable[str]:
    from tonnage.runtimes import serving_runtimes

    return serving_runtimes()
