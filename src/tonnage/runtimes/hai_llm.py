"""HAI-LLM, on which DeepSeek trains and which is not released: DualPipe, experts over nodes, ZeRO-1."""

from msgspec.structs import replace

from tonnage.runtimes import training_runtime
from tonnage.runtimes.parts.base import TRAINING_RUNTIMES

TRAINING_RUNTIMES.add(
    "hai-llm",
    replace(
        training_runtime("megatron"),
        name="hai-llm",
        version="HAI-LLM of DeepSeek-V3",
        source="DeepSeek2024V3, sec. 3.2: DualPipe, 16 stages, 64 ranks of experts, ZeRO-1; DualPipe, "
        "dualpipe/dualpipe.py, on layers estimated as those of megatron-core 0.19",
        schedules=("dualpipe",),
        microbatch_rules={"dualpipe": "even, two per stage"},
        tensor_parallel=False,
        context_parallel=False,
        sequence_parallel=False,
        listed=12,
        export="",
        launch_program="",
        launch_words={},
        offload_optimizer=("none",),
        offload_activations=("none",),
        takes_objectives=False,
        packs_completions=False,
        trains=("full",),
    ),
)
