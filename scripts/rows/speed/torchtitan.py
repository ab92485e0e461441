"""torchtitan's benchmarks/*.md and docs."""

import re

from rows.speed.run import Run, Source
from rows.training.reader import RECOMPUTE

BY_LAYER = re.compile(r"selective (2|layer)|every \d")


def rules(run: Run) -> None:
    said = run.config.text(*RECOMPUTE)
    if not said:
        run.guess("recompute", "activation_checkpointing is not stated: torchtitan's default is taken")
    if BY_LAYER.search(said):
        run.imply("recompute", "every n-th layer is recomputed: selective stands for it")
        run.options["recompute"] = "selective"
    run.default("compile", False, "2024-04: before the recipes compiled")
    if not run.config.has("float8", "precision"):
        run.options["float8"] = None


SOURCE = Source(name="torchtitan", pattern=r"torchtitan", rules=rules, convention="torchtitan")
