"""Rows of kind `train_speed` for those who study errors and fit rates: what a row asks, and seconds that it measured."""

from tonnage.validation._speed import Asked, asked, measured_seconds
from tonnage.validation._speed._predict import predict_step_seconds

__all__ = ["Asked", "asked", "measured_seconds", "predict_step_seconds"]
