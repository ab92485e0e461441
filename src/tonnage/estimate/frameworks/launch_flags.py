"""Options of a training command."""

from collections.abc import Mapping

from tonnage.spec import TrainingPlan


def size_flags(plan: TrainingPlan, names: Mapping[str, str]) -> list[str]:
    """An option for each size above 1, by its name there."""
    return [f"{flag} {value}" for name, flag in names.items() if (value := getattr(plan, name)) > 1]
