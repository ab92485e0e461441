"""fitcheck-llm (scripts/measure.py): one step of peft on transformers after a warm-up step, without autocast. Its
loop holds the model's outputs through backward; before attention `sdpa` it repeats shared keys and values, and
enables the memory-efficient kernel alone.
"""

from rows.training.config import Config
from rows.training.reader import Options, Reader


def options(c: Config) -> Options:
    made: Options = {"keep_outputs": True, "optimizer_implementation": "foreach"}  # torch.optim.AdamW's own
    if c.text("attn_implementation") == "sdpa":
        made["attention"] = "efficient"
    return made


READER = Reader(
    name="fitcheck-llm",
    runtime="transformers",
    frameworks=r"fitcheck",
    sources=r"anassbzdd/fitcheck",
    figure="allocated",
    plain_16_bit="true",
    is_harness=True,
    options=options,
)
