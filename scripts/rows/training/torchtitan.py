"""torchtitan: the names of its recipes, and what train_configs/*.toml and config/job_config.py leave as default."""

import re

from rows.training.config import Config
from rows.training.reader import MICRO, PIPELINE, RECOMPUTE, Options, Reader, sizes_or_one
from tonnage.kernel.units import GIB

# distributed/pipelining_utils.py: since 2025 a micro-batch has pipeline_parallel_microbatch_size (1) sequences; before,
# a local batch was
# cut into as many micro-batches as there are pipeline ranks.
CUT_BY_STAGES_UNTIL = 2024
# Until which month a version's way of wrapping and compiling held (git history of models/llama3/infra/parallelize.py).
VERSIONS = ((202501, "2024"), (202507, "0.1"), (202512, "0.2"))
TORCH = ((6, "2024"), (8, "0.1"), (9, "0.2"))  # the second number of torch's version
STAGES_A_RANK = 2  # distributed/pipeline_parallel.py: of schedules that loop


def options(c: Config) -> Options:
    made = _pipeline(c)
    if _selective(c.text(*RECOMPUTE)):  # models/llama3/train_configs: selective_ac_option = "op"
        made["recompute"] = "selective-op"
    if not c.has("optimizer"):
        made["optimizer"] = "adamw"
    if "all-gather" in c.text("float8"):
        made["float8_all_gather"] = True
    if version := _version(f"{c.text('framework')} {c.text('torch')}"):
        made["runtime_version"] = version
    return made | {"precision": "bf16-mixed"}


def _version(text: str) -> str | None:
    """The version by its number, by the day that a row names, or by the torch that it ran on: torchtitan asks for
    that of the day.
    """
    number = re.search(r"torchtitan[ v=]*(0\.[1-9]\d*)", text)
    if number:
        return number[1]
    day = re.search(r"(20\d\d)-?(0[1-9]|1[0-2])", text)
    if day:
        return next((version for until, version in VERSIONS if int(day[1] + day[2]) <= until), None)
    torch = re.search(r"torch[ =]*2\.(\d+)", text)
    return next((version for until, version in TORCH if torch and int(torch[1]) <= until), None)


def _selective(text: str) -> bool:
    """The recipes' own mode is "selective", which holds where nothing is said."""
    return not text or bool(re.match(r"selective(?!.*\b(2|layer)\b)", text))


def _pipeline(c: Config) -> Options:
    stages, local = sizes_or_one(c, PIPELINE), c.size(*MICRO)
    if stages == 1:
        return {}
    looped = "interleaved" in c.text("pp_schedule", "pipeline_schedule")
    virtual = (
        sizes_or_one(c, ("vpp", "vp", "virtual_pipeline_size"))
        if c.has("vpp", "vp", "virtual_pipeline_size")
        else STAGES_A_RANK
    )
    made: Options = {"virtual_pipeline_size": virtual if looped else 1}
    if local is None:
        return made
    size = c.size("microbatch_size", "pipeline_parallel_microbatch_size")
    year = re.search(r"\b(20\d\d)(?=[-.)\s]|$)", c.text("framework"))
    if size is None:
        size = max(local // stages, 1) if year and int(year[1]) <= CUT_BY_STAGES_UNTIL else 1
    return made | {"micro_batch_size": size, "num_microbatches": max(local // size, 1), "global_batch_size": None}


READER = Reader(
    name="torchtitan",
    runtime="fsdp2",
    frameworks=r"torchtitan",
    sources=r"pytorch/torchtitan",
    figure="reserved",
    gigabyte=GIB,
    options=options,
)
