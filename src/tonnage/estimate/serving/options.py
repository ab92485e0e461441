"""The options of a served model, declared in tonnage.question."""

from tonnage.question.subjects.serving import ServingOptions

__all__ = ["ServingOptions"]
