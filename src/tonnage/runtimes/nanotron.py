"""nanotron: 16-bit weights, one fp32 gradient of every parameter that is never sharded, fp32 master and moments sharded
by ZeRO-1.

A pipeline stage takes layers until it has more than its part of the products, the head being one (models/base.py,
build_model).
"""

from tonnage.ops import Kernels
from tonnage.runtimes.parts.base import NEVER, TRAINING_RUNTIMES, State, TrainingRuntime
from tonnage.tape import Nanotron

TRAINING_RUNTIMES.add(
    "nanotron",
    TrainingRuntime(
        name="nanotron",
        version="nanotron 0.5",
        source="nanotron, src/nanotron/optim/gradient_accumulator.py: one contiguous fp32 buffer; nanotron, "
        "src/nanotron/optim/zero.py; "
        "nanotron, src/nanotron/parallel/tensor_parallel/functional.py: tp_recompute_allgather; nanotron, "
        "src/nanotron/models/base.py",
        weights=(State("weights", "compute", NEVER),),
        gradients=(State("main gradients", "gradient", NEVER),),
        masters=(State("master weights", "master", 1),),
        optimizer_sharded_from=1,
        default_zero_stage=0,
        zero_stages=(0, 1),
        kernels=Kernels(attention="flash", fused_norm=True, fused_activation=False, upcast_softmax=True),
        gradients_persist=True,
        framework="nanotron",
        listed=6,
        code="nanotron",
        makes_on_accelerator=True,
        model_codes=("nanotron",),
        own=Nanotron(),
        logits_split=True,
        split="cost",
        schedules=("1f1b", "gpipe"),  # pp_engine: 1f1b, afab
        microbatch_rules={"1f1b": "stages less one"},
        expert_parallel=False,
    ),
)
