"""PyTorch FSDP2 as torchtitan uses it: sharded fp32 weights are the master, gathered in the compute type unit by unit.

torchtitan's recipes take their loss in chunks (`--loss chunked`); a plain training loop on FSDP2 does not, which is the
default here.

What changed from version to version, in models/llama3 (infra/parallelize.py, model.py), components/loss.py,
models/attention.py:
- until 2024: the compiled model's loss is eager; table, norm and head are one unit; the first pipeline stage has none
  of the rest.
- 0.1 (2025): the loss is compiled with the model; on Blackwell cuDNN's attention comes first, and recomputation by
  operation drops it.
- 0.2 (October 2025; the change of units is of July): table, [norm, head] and every layer are units.
- 0.3 (2026): one matrix for queries, keys and values; grouped heads are not repeated; cuDNN's attention first
  everywhere, and kept.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from tonnage.ops import Kernels
from tonnage.runtimes.parts.base import PEFT_CODE, PEFT_METHODS, PLACES, TRAINING_RUNTIMES, State, TrainingRuntime
from tonnage.spec import AttentionKernel
from tonnage.tape import Titan

CUDNN_FIRST: Mapping[str, tuple[AttentionKernel, str]] = {
    "Blackwell": ("sdpa", "torchtitan, models/attention.py: cuDNN comes first from compute capability 10.0 on")
}
NEWEST = TrainingRuntime(
    name="fsdp2",
    version="torchtitan 0.3.0",
    source="torchtitan, torchtitan/config/configs.py: dtype float32, mixed_precision_param bfloat16, "
    "mixed_precision_reduce float32; torchtitan, torchtitan/components/loss.py: ChunkedLossWrapper; "
    "torchtitan, torchtitan/distributed/fsdp.py",
    weights=(State("sharded weights", "master", 2),),
    gradients=(State("sharded gradients", "gradient", 2),),
    optimizer_sharded_from=1,
    default_zero_stage=3,
    zero_stages=(2, 3),  # reshard_after_forward false or true
    kernels=Kernels(attention="sdpa", fused_norm=True, fused_activation=False, upcast_softmax=True),
    gradients_persist=False,
    framework="fsdp2",
    listed=1,
    # torchtitan 0.2: parallelism.expert_parallel_comm_backend; ring attention, or Ulysses under ms-swift
    options=("moe_token_dispatcher_type", "context_parallel_method"),
    code="torchtitan",
    flavours={PEFT_CODE: "eager"},
    makes_on_accelerator=True,
    takes_objectives=True,
    packs_completions=True,  # as veRL, NeMo RL and SkyRL do with it
    selective_op=True,
    launch_program="options of torchtitan's run_train.sh, beside its --module and --config.",
    trl_config="fsdp2",
    trl_words={"offload_optimizer": ("cpu",), "offload_parameters": ("cpu",)},
    attention_by_generation=CUDNN_FIRST,
    # CPUOffloadPolicy; saved_tensors_hooks of PyTorch work with any code
    offload_optimizer=PLACES[:2],
    offload_parameters=PLACES[:2],
    offload_activations=PLACES,
    offloads_together=True,
    gradients_offloaded_from=0,
    model_codes=("torchtitan", "transformers"),
    own=Titan(),
    loss="by framework",
    losses=("full", "chunked"),
    # verl 0.9.1, verl/workers/engine/fsdp/transformer_impl.py: prepare_model_outputs, without use_fused_kernels
    untiled_losses={"full": "gradient in logits", "full-entropy": "gradients beside logits"},
    logits_split=True,
    # ChunkedLossWrapper.Config.num_chunks, along the sequence; _chunk_local refuses lengths that they do not divide
    loss_chunks=8,
    shards_units=True,
    trains=PEFT_METHODS,
    replicates=True,
    compiles=True,
    float8=("none", "tensorwise", "rowwise", "mxfp8", "nvfp4"),
    split="ends weigh",
    splits_chunks=True,  # torchtitan, distributed/pipeline_parallel.py: every chunk is a stage of its own
    schedules=(
        "1f1b",
        "gpipe",
        "interleaved-1f1b",
        "interleaved-zero-bubble",
        "zbv",
        "dualpipev",
    ),  # torch.distributed.pipelining
    microbatch_rules={
        "1f1b": "one per stage",
        "interleaved-1f1b": "equal rounds",
        "interleaved-zero-bubble": "equal rounds",
        "dualpipev": "two per stage",
    },
)
V02 = replace(
    NEWEST,
    version="torchtitan 0.2.0",
    float8=("none", "tensorwise", "rowwise", "mxfp8"),
    kernels=replace(NEWEST.kernels, attention="flash"),
    losses=("full",),
    loss_chunks=0,
    own=Titan(
        fuses_projections=False, repeats_heads=True, keeps_cudnn=False, prefers_cudnn=False, decomposes_norm=False
    ),
)
V01 = replace(
    V02,
    version="torchtitan 0.1.0",
    float8=("none", "tensorwise", "rowwise"),
    root_unit=True,
    keeps_last=True,
    own=Titan(
        fuses_projections=False, repeats_heads=True, keeps_cudnn=False, prefers_cudnn=False, decomposes_norm=True
    ),
)
V2024 = replace(
    V01,
    version="torchtitan of 2024",
    split="rest later",
    own=Titan(
        fuses_projections=False,
        repeats_heads=True,
        keeps_cudnn=False,
        prefers_cudnn=False,
        decomposes_norm=True,
        compiles_loss=False,
    ),
)

TRAINING_RUNTIMES.add("fsdp2", replace(NEWEST, older={"0.2": V02, "0.1": V01, "2024": V2024}))
