"""The options of a training run, declared in tonnage.question."""

from tonnage.question.subjects.training import TrainingOptions

__all__ = ["TrainingOptions"]
