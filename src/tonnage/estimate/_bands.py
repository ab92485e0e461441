"""Written by scripts/fit_bands.py from validation/train_memory.yaml: do not edit."""

from tonnage.estimate.bands import Table

TRAIN_MEMORY = Table(all=None, runtimes={}, vendors=(), methods=())
