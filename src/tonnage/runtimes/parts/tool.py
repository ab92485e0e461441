"""What a tool is by its name: what it runs on, and the own defaults of one that trains. Nothing here needs torch."""

from collections.abc import Mapping
from typing import Any, TypeVar

from msgspec import Struct

from tonnage.kernel.message import Message
from tonnage.kernel.registry import letters_of

PLAIN, UNDER_ZERO, UNDER_FSDP = "transformers", "deepspeed", "fsdp2"
ON_TRAINER = (PLAIN, "ddp", UNDER_ZERO, UNDER_FSDP)
# Options that ask a tool on the Trainer for FSDP: groups of ranks, which DeepSpeed under the Trainer has none of.
GROUPS = ("replicate_size", "tensor_parallel_size", "context_parallel_size", "expert_parallel_size")
OF_LEARNING = ("grpo", "dapo", "rloo", "ppo")
# Objectives that a format of `tonnage export` writes; one that is not here writes all.
WRITTEN_OBJECTIVES = {
    "verl": OF_LEARNING,
    "openrlhf": OF_LEARNING,
    "axolotl": ("sft", "dpo", "grpo"),
    "llama-factory": ("sft", "dpo"),
    "torchtitan": ("sft",),
    "megatron": ("sft",),
}

# What differs from FSDP2, as which tools on FSDP1 are estimated.
OF_FSDP1 = Message(
    "shards are those of FSDP2, and one unit is gathered ahead in both; FSDP1 frees memory across streams later, "
    "so that its peak is higher and not the same in each run: torchtitan measured 7 % less with FSDP2 "
    "(Llama-7B, 8 H100)"
)


class NamedTool(Struct, frozen=True, kw_only=True):
    """A tool that runs on a runtime or an engine of another name."""

    name: str
    #: How its authors write it.
    title: str
    source: str
    version: str = ""
    #: Other spellings, as letters and digits alone.
    aliases: tuple[str, ...] = ()
    #: What differs from what it is estimated as.
    differs: str = ""

    @property
    def shown(self) -> str:
        """Its name with its version."""
        return f"{self.title} {self.version}" if self.version else self.title


T = TypeVar("T", bound=NamedTool)


def find_tool(tools: Mapping[str, T], name: str | None) -> T | None:
    """The tool of this name among `tools`, however it is spelled; None where it is none."""
    if not name:
        return None
    if name in tools:
        return tools[name]
    letters = letters_of(name)
    return next((tool for tool in tools.values() if letters == letters_of(tool.name) or letters in tool.aliases), None)


class Tool(NamedTool, frozen=True, kw_only=True):
    """A training tool by its name, what it runs on, and its own defaults where nobody says the option."""

    #: The runtime that it runs on; "": the Trainer of transformers, under DDP, DeepSpeed or FSDP.
    runtime: str = ""
    #: Whose layers it runs; "": those of the runtime.
    model_code: str = ""
    #: Tokens of a sequence; 0: no default of its own.
    sequence_length: int = 0
    #: Sequences of a micro-batch; 0: no default of its own.
    micro_batch_size: int = 0
    #: Sequences that all ranks together have in a step, which decide how often gradients accumulate; 0: none.
    step_sequences: int = 0
    #: Whether layers are compiled.
    compiles: bool = False
    #: Whether layers run again in backward; None: no default of its own.
    checkpoints: bool | None = None
    #: Whether every rank holds the whole model, as under DDP.
    replicates: bool = False
    #: Runtimes on which full fine-tuning has weights in bf16 without an fp32 copy.
    narrow_on: tuple[str, ...] = ()
    #: Whether norms, embedding and head of a quantised base stay in 16 bit.
    keeps_base_narrow: bool = False
    #: Whether full fine-tuning leaves vision towers and their projectors frozen.
    freezes_tower: bool = False
    #: Pixels to which it shrinks larger images before the model's own processor; 0: none.
    image_pixels: int = 0
    #: Pixels to which it shrinks larger frames of a video, and frames that it takes at most; 0: no limit of its own.
    video_pixels: int = 0
    video_frames: int = 0
    #: Rank of adapters; 0: no default of its own.
    lora_rank: int = 0
    #: Whether adapters have dropout.
    lora_dropout: bool = False
    #: Whether adapters stand beside what PEFT names for the model's family, not beside all linear layers.
    peft_targets: bool = False
    #: Whether the frozen weights beside adapters are loaded in fp32, where one accelerator holds them whole.
    wide_base: bool = False
    #: How QLoRA stores its base; "": no default of its own.
    qlora_base: str = ""
    #: Processes that read data; 0: no default of its own.
    data_loader_workers: int = 0
    #: Runtimes for which its launcher sets expandable segments.
    expands_on: tuple[str, ...] = ()
    #: The format of `tonnage export` that starts it; "": none.
    export: str = ""
    #: How it computes log-probabilities in reinforcement learning; "": no default of its own.
    rollout_loss: str = ""
    #: Ranks of an engine that generates; 0: no default of its own.
    rollout_ranks: int = 0
    #: Where that default stands.
    rollout_source: str = ""
    #: Its own values of options, where nobody says them, with an objective that generates.
    rollout_options: tuple[tuple[str, Any], ...] = ()
    #: Whether its engine has accelerators of its own by default, half of the machine here.
    generates_apart: bool = False
    #: Sizes of parallelism that its runtime has and it does not.
    lacks: tuple[str, ...] = ()
    #: Where its own sizes stand, and the runtime that is nearest where one that it lacks is asked for.
    lacks_source: str = ""
    lacks_nearest: str = ""
    #: What is known of it and what is not; it is refused.
    refusal: str = ""
    #: Runtimes that are nearest to a refused one.
    nearest: tuple[str, ...] = ()

    @property
    def runtimes(self) -> tuple[str, ...]:
        """The runtimes that it may run on."""
        return (self.runtime,) if self.runtime else () if self.refusal else ON_TRAINER

    def settings(self, runtime: str, method: str | None, *, is_quantised: bool, tensor: int | None) -> dict[str, Any]:
        """What it sets of how weights are kept on a runtime: option -> value."""
        found: dict[str, Any] = {}
        if self.model_code and runtime == UNDER_FSDP:
            found["model_code"] = self.model_code
            if tensor not in (None, 1):
                found["sequence_parallel"] = False  # transformers' plans shard matrices alone
        if self.compiles:
            found["compile"] = True
        if method in (None, "full") and runtime in self.narrow_on:
            found["precision"] = "bf16"
        if method == "qlora" and self.qlora_base:
            found["base_weights"] = self.qlora_base
        if method in ("lora", "dora") and self.wide_base and runtime in (PLAIN, "ddp") and not is_quantised:
            found["base_weights"] = "fp32"
        if self.keeps_base_narrow and is_quantised and runtime in (PLAIN, "ddp"):
            found["upcast_base"] = False
        if runtime in self.expands_on:
            found["expandable_segments"] = True
        return found

    def settings_of_rollouts(self, objective: str, *, apart: bool, awake: bool) -> dict[str, Any]:
        """What it sets of a step that generates: option -> value. `apart`: the engine has accelerators of its own;
        `awake`: its share of the memory is said, which it keeps while training runs.
        """
        found = dict(self.rollout_options)
        if self.rollout_loss:
            found["loss"] = self.rollout_loss
        left_out = {"async_steps"} if not apart else {"rollout_offload", "rollout_memory_share"}
        if awake:
            left_out |= {"rollout_memory_share"}
        if objective != "grpo":
            left_out |= {"beta"}
        return {name: value for name, value in found.items() if name not in left_out}
