"""Rows of kind `infer_speed` for those who study errors and fit rates: what a row asks, and times that it measured."""

from tonnage.validation._serving_speed import Asked, Cell, asked, measured_quantities
from tonnage.validation._serving_speed._figures import Figure, figure_of

__all__ = ["Asked", "Cell", "Figure", "asked", "figure_of", "measured_quantities"]
