"""Training tools that run on a runtime of another name, with what each sets itself; and tools that are not estimated.

Formats of these tools (`tonnage.interchange.formats.trainers`) read the same facts, so that a config and a name get the
same defaults. Nothing here needs torch.
"""

from collections.abc import Mapping
from typing import Any

from tonnage.kernel.errors import InvalidInput, MissingDatum, TonnageError
from tonnage.kernel.message import Message, listed
from tonnage.runtimes.parts.base import OF_SHARDING
from tonnage.runtimes.parts.pretraining_tools import PRETRAINING_TOOLS
from tonnage.runtimes.parts.rl_tools import RL_TOOLS
from tonnage.runtimes.parts.tool import GROUPS, OF_FSDP1, PLAIN, UNDER_FSDP, UNDER_ZERO, Tool, find_tool

# peft/utils/constants.py: layers that get adapters where none are named; by words in a model's name.
TARGETS = (
    (("phi-3", "phi3", "phi-4"), "all-linear"),
    (("gpt2", "starcoderbase", "bigcode"), "c_attn"),
    (("falcon", "bloom", "neox", "pythia", "chatglm"), "query_key_value"),
    (("nemotron-h", "nemotron_h"), "q_proj,k_proj,v_proj,o_proj"),
    (("phi-",), "q_proj,v_proj,fc1,fc2"),
    (("",), "q_proj,v_proj"),
)

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
    video_pixels=256 * 256,  # the same: video_max_pixels
    video_frames=128,  # the same: video_maxlen, of video_fps 2.0
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
    rollout_ranks=1,
    rollout_source="TRL, trl/trainer/grpo_config.py: vllm_tensor_parallel_size 1",
    # swift/arguments/rlhf_args.py: beta of grpo; swift/arguments/base_args/template_args.py: padding_free False
    rollout_options=(("rollout_engine", "vllm"), ("beta", 0.04), ("sequence_packing", False)),
)
ACCELERATE = Tool(
    name="accelerate",
    title="Accelerate",
    version="1.15",
    source="accelerate, accelerate/commands/launch.py; accelerate/utils/dataclasses.py",
    aliases=("hfaccelerate", "huggingfaceaccelerate"),
    model_code="transformers",
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
TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        AXOLOTL,
        LLAMA_FACTORY,
        MS_SWIFT,
        *RL_TOOLS,
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
            differs=OF_FSDP1,
        ),
        *PRETRAINING_TOOLS,
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
    """The training tool of this name, however it is spelled; None where it is none."""
    return find_tool(TOOLS, name)


def names_version(version: str, wanted: str) -> bool:
    """Whether a version is meant by its whole text ("torchtitan 0.1.0") or by the beginning of its number ("0.1")."""
    return wanted == version or f"{version.rsplit(maxsplit=1)[-1]}.".startswith(f"{wanted}.")


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
