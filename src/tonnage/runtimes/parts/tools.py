"""Training tools that run on a runtime of another name, with what each sets itself; and tools that are not estimated.

Formats of these tools (`tonnage.interchange.formats.trainers`) read the same facts, so that a config and a name get the
same defaults. Nothing here needs torch.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from tonnage.kernel.errors import InvalidInput, MissingDatum, TonnageError
from tonnage.kernel.message import Message, listed
from tonnage.kernel.registry import letters_of
from tonnage.runtimes.parts.base import OF_SHARDING
from tonnage.runtimes.parts.pretraining_tools import PRETRAINING_TOOLS

PLAIN, UNDER_ZERO, UNDER_FSDP = "transformers", "deepspeed", "fsdp2"
ON_TRAINER = (PLAIN, "ddp", UNDER_ZERO, UNDER_FSDP)
# Options that ask a tool on the Trainer for FSDP: groups of ranks, which DeepSpeed under the Trainer has none of.
GROUPS = ("replicate_size", "tensor_parallel_size", "context_parallel_size", "expert_parallel_size")

# peft/utils/constants.py: layers that get adapters where none are named; by words in a model's name.
TARGETS = (
    (("phi-3", "phi3", "phi-4"), "all-linear"),
    (("gpt2", "starcoderbase", "bigcode"), "c_attn"),
    (("falcon", "bloom", "neox", "pythia", "chatglm"), "query_key_value"),
    (("nemotron-h", "nemotron_h"), "q_proj,k_proj,v_proj,o_proj"),
    (("phi-",), "q_proj,v_proj,fc1,fc2"),
    (("",), "q_proj,v_proj"),
)


class Tool(Struct, frozen=True, kw_only=True):
    """A tool by its name, what it runs on, and its own defaults where nobody says the option."""

    name: str
    #: How its authors write it.
    title: str
    source: str
    version: str = ""
    #: Other spellings, as letters and digits alone.
    aliases: tuple[str, ...] = ()
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
    #: Runtimes on which full fine-tuning has weights in bf16 without an fp32 copy.
    narrow_on: tuple[str, ...] = ()
    #: Whether norms, embedding and head of a quantised base stay in 16 bit.
    keeps_base_narrow: bool = False
    #: Whether full fine-tuning leaves vision towers and their projectors frozen.
    freezes_tower: bool = False
    #: Pixels to which it shrinks larger images before the model's own processor; 0: none.
    image_pixels: int = 0
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
    #: What differs from the runtime that it is estimated as.
    differs: str = ""
    #: What is known of it and what is not; it is refused.
    refusal: str = ""
    #: Runtimes that are nearest to a refused one.
    nearest: tuple[str, ...] = ()

    @property
    def runtimes(self) -> tuple[str, ...]:
        """The runtimes that it may run on."""
        return (self.runtime,) if self.runtime else () if self.refusal else ON_TRAINER

    @property
    def shown(self) -> str:
        """Its name with its version."""
        return f"{self.title} {self.version}" if self.version else self.title

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


AXOLOTL = Tool(
    name="axolotl",
    title="axolotl",
    version="0.21",
    source="axolotl 0.21.0, axolotl/utils/schemas/*.py, axolotl/utils/config/__init__.py, axolotl/loaders/model.py",
    model_code="transformers",
    sequence_length=512,
    micro_batch_size=1,
    checkpoints=False,
    narrow_on=(PLAIN, "ddp", UNDER_FSDP, "unsloth"),
    keeps_base_narrow=True,
    export="axolotl",
)
LLAMA_FACTORY = Tool(
    name="llama-factory",
    title="LLaMA-Factory",
    export="llama-factory",
    version="0.9.5",
    source="LLaMA-Factory 0.9.5, hparams/*.py, model/adapter.py, launcher.py",
    aliases=("llamafactorycli", "lmf"),
    model_code="transformers",
    sequence_length=2048,
    micro_batch_size=8,
    checkpoints=True,
    keeps_base_narrow=True,
    freezes_tower=True,  # hparams/finetuning_args.py: freeze_vision_tower, freeze_multi_modal_projector
    image_pixels=768 * 768,  # hparams/model_args.py: image_max_pixels
    lora_rank=8,
    expands_on=("ddp",),
)
MS_SWIFT = Tool(
    name="ms-swift",
    title="ms-swift",
    version="4.6",
    source="ms-swift 4.6.0, swift/arguments/*.py, swift/trainers/arguments.py, swift/config/*.json",
    aliases=("swift", "modelscopeswift"),
    model_code="transformers",
    micro_batch_size=1,
    step_sequences=16,
    checkpoints=True,
    narrow_on=(PLAIN, "ddp"),
    keeps_base_narrow=True,
    freezes_tower=True,  # swift/arguments/tuner_args.py: freeze_vit, freeze_aligner
    lora_rank=8,
    lora_dropout=True,
    data_loader_workers=1,
)
TRL = Tool(
    name="trl",
    title="TRL",
    version="1.16",
    source="TRL, trl/trainer/base_config.py; TRL, trl/trainer/model_config.py; TRL, trl/trainer/sft_config.py",
    model_code="transformers",
    sequence_length=1024,
    micro_batch_size=8,
    checkpoints=True,
    lora_rank=16,
    lora_dropout=True,
    peft_targets=True,
    wide_base=True,
    qlora_base="nf4",
    rollout_ranks=1,
    rollout_source="TRL, trl/trainer/grpo_config.py: vllm_tensor_parallel_size 1",
)
ACCELERATE = Tool(
    name="accelerate",
    title="Accelerate",
    version="1.15",
    source="accelerate, accelerate/commands/launch.py; accelerate/utils/dataclasses.py",
    aliases=("hfaccelerate", "huggingfaceaccelerate"),
    model_code="transformers",
)
_FSDP1 = Message(
    "shards are those of FSDP2, and one unit is gathered ahead in both; FSDP1 frees memory across streams later, "
    "so that its peak is higher and not the same in each run: torchtitan measured 7 % less with FSDP2 "
    "(Llama-7B, 8 H100)"
)
_MAXTEXT = Message(
    "XLA plans what lives at the same time when it compiles, which is not known here: weights, gradients and moments "
    "are its shards in fp32, and what layers keep is that of compiled layers. Remat policy full is {--recompute} full, "
    "minimal is none"
)
_MINDSPEED = Message(
    "it patches Megatron-LM for Ascend, and is estimated as Megatron-core: what its fused operators keep, and what "
    "torch_npu holds beside tensors, nobody published"
)
_NEMO_RL = Message("it is estimated on its DTensor policy, its default; its Megatron policy is {--runtime} megatron")
TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        AXOLOTL,
        LLAMA_FACTORY,
        MS_SWIFT,
        TRL,
        ACCELERATE,
        Tool(
            name="torchtitan",
            title="torchtitan",
            export="torchtitan",
            source="torchtitan, torchtitan/distributed/fsdp.py: fully_shard",
            runtime=UNDER_FSDP,
        ),
        Tool(
            name="fsdp1",
            title="FSDP1",
            source="PyTorch, torch/distributed/fsdp/_limiter_utils.py: two all-gathers in flight; torchtitan, "
            "docs/fsdp.md: 7% lower peak memory than FSDP1, of Llama-7B on 8 H100",
            aliases=("fsdp", "fullyshardeddataparallel", "torchfsdp", "pytorchfsdp"),
            runtime=UNDER_FSDP,
            model_code="transformers",
            differs=_FSDP1,
        ),
        *(Tool(**fields) for fields in PRETRAINING_TOOLS),
        Tool(
            name="megatron-lm",
            title="Megatron-LM",
            export="megatron",
            source="Megatron-LM, megatron/training/arguments.py",
            aliases=("megatroncore", "mcore"),
            runtime="megatron",
        ),
        Tool(
            name="megatron-bridge",
            title="Megatron-Bridge",
            version="0.6",
            source="megatron-bridge 0.6.2, megatron/bridge/training/config.py",
            runtime="megatron",
        ),
        Tool(
            name="nemo",
            title="NeMo",
            source="NeMo 2, whose recipes run on Megatron-core; megatron-bridge 0.6.2",
            aliases=("nemo2", "nvidianemo"),
            runtime="megatron",
        ),
        Tool(
            name="nemo-automodel",
            title="NeMo Automodel",
            version="0.7",
            source="nemo-automodel 0.7, nemo_automodel/recipes",
            aliases=("automodel",),
            runtime=UNDER_FSDP,
            model_code="transformers",
        ),
        Tool(
            name="verl",
            title="veRL",
            export="verl",
            version="0.9.1",
            source="verl 0.9.1, verl/trainer/config: actor.strategy fsdp",
            runtime=UNDER_FSDP,
            model_code="transformers",
            rollout_loss="full",  # verl/trainer/config/model/hf_model.yaml: use_fused_kernels False
            rollout_ranks=2,
            rollout_source="veRL, verl/trainer/config/rollout/rollout.yaml: tensor_model_parallel_size 2",
        ),
        Tool(
            name="nemo-rl",
            title="NeMo-RL",
            source="NeMo-RL, examples/configs/grpo_math_1B.yaml: policy.dtensor_cfg.enabled true",
            runtime=UNDER_FSDP,
            model_code="transformers",
            rollout_ranks=1,
            rollout_source="NeMo-RL, examples/configs/grpo_math_1B.yaml: vllm_cfg.tensor_parallel_size 1",
            differs=_NEMO_RL,
        ),
        Tool(
            name="openrlhf",
            title="OpenRLHF",
            export="openrlhf",
            version="0.11.2",
            source="openrlhf 0.11.2, openrlhf/cli: ds.zero-stage 2",
            runtime=UNDER_ZERO,
            rollout_loss="full",  # openrlhf/models/actor.py: logits in fp32
            rollout_ranks=1,
            rollout_source="OpenRLHF, openrlhf/cli/train_ppo_ray.py: vllm.tensor_parallel_size 1",
        ),
        Tool(
            name="maxtext",
            title="MaxText",
            source="MaxText, src/maxtext/configs/base.yml: weight_dtype float32, grad_dtype float32, dtype bfloat16, "
            "remat_policy full, max_target_length 2048, per_device_batch_size 12",
            runtime=UNDER_FSDP,
            compiles=True,
            checkpoints=True,
            sequence_length=2048,
            micro_batch_size=12,
            differs=_MAXTEXT,
        ),
        Tool(
            name="mindspeed",
            title="MindSpeed",
            source="MindSpeed 2.0.0_core_r0.8.0, README: import mindspeed.megatron_adaptor",
            aliases=("mindspeedllm",),
            runtime="megatron",
            differs=_MINDSPEED,
        ),
    )
}


def peft_targets(model: str) -> str:
    """Where PEFT puts adapters in a model of this name."""
    return next(targets for words, targets in TARGETS if any(word in model.lower() for word in words))


def tool_named(name: str | None) -> Tool | None:
    """The tool of this name, however it is spelled; None where it is none."""
    if not name:
        return None
    if name in TOOLS:
        return TOOLS[name]
    letters = letters_of(name)
    return next((tool for tool in TOOLS.values() if letters == letters_of(tool.name) or letters in tool.aliases), None)


def runtime_needed(tool: Tool) -> TonnageError:
    """The error where the runtime itself must be named; of a tool that is not estimated, what is known of it."""
    if tool.refusal:
        return MissingDatum(
            "{tool} is not estimated. {refusal}. The nearest {@runtime}: {nearest}.",
            tool=tool.title,
            refusal=tool.refusal,
            nearest=listed(tool.nearest),
        )
    return InvalidInput(
        "{tool} runs on another runtime: here {@runtime} is that one, {runtimes}.",
        tool=tool.title,
        runtimes=listed(tool.runtimes, "or"),
    )


def runtime_of(tool: Tool, options: Any) -> str:
    """The runtime of a run with these options. On the Trainer: FSDP for groups of ranks, DeepSpeed for a ZeRO stage,
    states on the host, or one of its settings, else the Trainer alone.
    """
    if tool.runtime:
        return tool.runtime
    if any(getattr(options, name) is not None for name in OF_SHARDING):
        return UNDER_ZERO
    if any((getattr(options, name) or 1) > 1 for name in GROUPS):
        return UNDER_FSDP
    moved = (options.offload_optimizer, options.offload_parameters)
    if (options.zero_stage or 0) > 0 or any(place not in (None, "none") for place in moved):
        return UNDER_ZERO
    return PLAIN
