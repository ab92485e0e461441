"""Options of a training run: those of single runtimes, and all together."""

from typing import Annotated

from tonnage.question.choices import runtimes
from tonnage.question.forms import count, number, ranged, rate, size, timed, word
from tonnage.question.option import MEMORY, PARALLELISM, TRAINING, Usual, described, option
from tonnage.question.subjects.model import INTER_NODE, INTRA_NODE
from tonnage.question.subjects.rollout import RolloutOptions

# ---- Of a training run: what trains, the layers of pipeline stages, and what is offloaded.


class Method(RolloutOptions, frozen=True, kw_only=True):
    """Adapters, layers of stages and offloading: the third part of TrainingOptions."""

    method: Annotated[
        str | None,
        option(
            "what trains: full, lora, dora, qlora (LoRA on a 4-bit base), ia3 (vectors of peft) or freeze (the last "
            "layers)",
            word,
            unit="method",
            default="full",
            choices=("full", "lora", "dora", "qlora", "ia3", "freeze"),
            usual=Usual(TRAINING, "full, lora, dora, qlora, ia3, freeze", "METHOD"),
        ),
    ] = None
    lora_rank: Annotated[
        int | None,
        option(
            "rank of the adapters",
            size,
            unit="rank",
            default="16",
            usual=Usual(TRAINING, "rank of the adapters", "RANK"),
        ),
    ] = None
    lora_targets: Annotated[
        str | None,
        option("linear layers with adapters, such as q_proj,v_proj", word, unit="names", default="all-linear"),
    ] = None
    lora_dropout: Annotated[bool | None, option("dropout before the adapters", default="none")] = None
    base_weights: Annotated[
        str | None,
        option(
            "a base quantised by bitsandbytes: nf4, nf4-double, fp4, fp4-double or int8; or fp32, as it was loaded",
            word,
            unit="precision",
            default="nf4-double with qlora, else 16 bit",
            known=("nf4", "nf4-double", "fp4", "fp4-double", "int8", "fp32"),
        ),
    ] = None
    upcast_base: Annotated[
        bool | None,
        option(
            (
                "norms, embedding and head of a quantised base in fp32, as peft's prepare_model_for_kbit_training "
                "leaves them (transformers, ddp)"
            ),
            default="on",
        ),
    ] = None
    trainable_layers: Annotated[
        int | None, option("layers that train with method freeze, from the last", size, unit="layers", default="2")
    ] = None
    images: Annotated[
        int | None,
        option(
            "images of each sequence; their tokens are among those of --sequence-length, by the model's own rule; of "
            "each prompt with an objective that generates, on top of --prompt-length",
            size,
            unit="images",
            default="none",
        ),
    ] = None
    image_size: Annotated[
        str | None,
        option(
            "pixels of each image or of each frame of a video, width x height, such as 1920x1080",
            word,
            unit="WxH",
            default="1024x1024",
        ),
    ] = None
    video_seconds: Annotated[
        float | str | None,
        option(
            "video of each sequence, such as 60s, of frames of --image-size, instead of --images; its tokens as those "
            "of images",
            timed,
            short=("--video",),
            unit="time",
            default="none",
        ),
    ] = None
    video_fps: Annotated[
        float | None,
        option(
            "frames a second that the model sees of the video",
            number,
            unit="frames/s",
            default="the processor's: 2 of Qwen-VL and GLM-4V, 32 frames in all of others",
        ),
    ] = None
    vision_tower: Annotated[
        str | None,
        option(
            "whether the vision tower and its projector train or are frozen",
            word,
            default="trained with method full, frozen with others; frozen by LLaMA-Factory and ms-swift",
            choices=("trained", "frozen"),
        ),
    ] = None
    first_stage_layers: Annotated[
        int | None, option("layers of the first pipeline stage", size, unit="layers", default="as even as can be")
    ] = None
    last_stage_layers: Annotated[
        int | None, option("layers of the last pipeline stage", size, unit="layers", default="as even as can be")
    ] = None
    pipeline_layout: Annotated[
        str | None,
        option(
            (
                "megatron's --pipeline-model-parallel-layout, a stage between bars: E embedding, t layer, m "
                "prediction, L loss, as in 'Et*3|(tt|)*29,m|L'"
            ),
            word,
            unit="text",
            default="as even as can be",
        ),
    ] = None
    account_for_embedding_in_pipeline_split: Annotated[
        bool | None, option("the embedding counts as a layer of the first stage (megatron)", default="off")
    ] = None
    account_for_loss_in_pipeline_split: Annotated[
        bool | None, option("the loss counts as a layer of the last stage (megatron)", default="off")
    ] = None
    model_code: Annotated[
        str | None,
        option(
            "whose code the layers are: transformers, torchtitan, megatron, ... (the runtime's own)",
            word,
            unit="name",
            default="the runtime's own",
        ),
    ] = None
    offload_optimizer: Annotated[
        str | None,
        option(
            "optimizer states, and gradients that are sharded: none, cpu or nvme (deepspeed, fsdp2, megatron)",
            word,
            unit="place",
            default="none",
            usual=Usual(MEMORY, "none, cpu, nvme", "PLACE", place=1),
        ),
    ] = None
    offload_parameters: Annotated[
        str | None,
        option(
            "shards of the weights: none, cpu or nvme (deepspeed with ZeRO 3, fsdp2)",
            word,
            unit="place",
            default="none",
        ),
    ] = None
    offload_activations: Annotated[
        str | None, option("tensors kept for backward: none, cpu or nvme", word, unit="place", default="none")
    ] = None
    optimizer_offload_fraction: Annotated[
        float | None,
        option(
            "share of the optimizer states that is offloaded (megatron, deepspeed with ZeRO 3)",
            number,
            unit="share",
            default="1",
        ),
    ] = None
    host_update_bandwidth: Annotated[
        float | str | None,
        option(
            (
                "bytes a second that the processors of a node read and write while they update (with "
                "offload_optimizer, time alone): published runs got 2GB/s to 54GB/s"
            ),
            rate,
            unit="bytes/s",
        ),
    ] = None
    inter_node_bandwidth: Annotated[float | str | None, INTER_NODE] = None
    intra_node_bandwidth: Annotated[float | str | None, INTRA_NODE] = None
    offload_modules: Annotated[
        str | None,
        option(
            "modules of megatron whose inputs are offloaded, such as core_attn,moe_act",
            word,
            unit="names",
            default="all that it knows",
        ),
    ] = None
    data_loader_workers: Annotated[
        int | None,
        option(
            "processes of each rank that load data", ranged(count, "from 0 to 4,096"), unit="processes", default="0"
        ),
    ] = None


@described
class TrainingOptions(Method, frozen=True, kw_only=True):
    """Options of a training run; None is the default, which `answer.question` names with its reason."""

    reduce_bucket_size: Annotated[
        int | str | None,
        option(
            "DeepSpeed: elements reduced at a time, or auto as the Trainer fills in",
            word,
            unit="elements",
            default="500M",
        ),
    ] = None
    allgather_bucket_size: Annotated[
        int | str | None,
        option(
            "DeepSpeed: elements gathered at a time after a step; torch needs no memory for it",
            word,
            unit="elements",
            default="500M",
        ),
    ] = None
    overlap_comm: Annotated[
        bool | None,
        option("DeepSpeed: reduce during backward; a second bucket in ZeRO 1 and 2", default="in ZeRO 3 alone"),
    ] = None
    contiguous_gradients: Annotated[
        bool | None, option("DeepSpeed: gradients are copied to a bucket of full size", default="on")
    ] = None
    sub_group_size: Annotated[
        int | str | None,
        option("DeepSpeed, ZeRO 3: parameters of a rank updated at a time", word, unit="elements", default="1B"),
    ] = None
    stage3_prefetch_bucket_size: Annotated[
        int | str | None,
        option("DeepSpeed, ZeRO 3: elements fetched ahead at a time, or auto", word, unit="elements", default="50M"),
    ] = None
    stage3_max_live_parameters: Annotated[
        int | str | None, option("DeepSpeed, ZeRO 3: parameters gathered at most", word, unit="elements", default="1B")
    ] = None
    stage3_max_reuse_distance: Annotated[
        int | str | None,
        option(
            "DeepSpeed, ZeRO 3: parameters used again within so many are not released",
            word,
            unit="elements",
            default="1B",
        ),
    ] = None
    stage3_param_persistence_threshold: Annotated[
        int | str | None,
        option("DeepSpeed, ZeRO 3: smaller parameters stay whole, or auto", word, unit="elements", default="100k"),
    ] = None
    stage3_gather_16bit_weights_on_model_save: Annotated[
        bool | None, option("DeepSpeed, ZeRO 3: rank 0 gathers the weights to save them", default="off")
    ] = None
    zero_hpz_partition_size: Annotated[
        int | str | None,
        option(
            "ZeRO++: ranks that share a second shard of the weights; 1: there is none", word, unit="ranks", default="1"
        ),
    ] = None
    zero_quantized_weights: Annotated[bool | None, option("ZeRO++: weights are gathered in 8 bits", default="off")] = (
        None
    )
    zero_quantized_nontrainable_weights: Annotated[
        bool | None, option("ZeRO++: weights that do not train are stored in 8 bits", default="off")
    ] = None
    zero_quantized_gradients: Annotated[
        bool | None, option("ZeRO++: gradients are reduced in 4 bits", default="off")
    ] = None
    compile: Annotated[
        bool | None, option("torch.compile of layers and loss (fsdp2 with torchtitan's code, torchtune)", default="off")
    ] = None
    float8: Annotated[
        str | None,
        option(
            "scales of float8 products (fsdp2): none, tensorwise, rowwise, mxfp8 or nvfp4",
            word,
            unit="kind",
            default="none",
        ),
    ] = None
    float8_all_gather: Annotated[
        bool | None, option("gather weights in float8 (with float8 tensorwise)", default="off")
    ] = None
    async_tensor_parallel: Annotated[
        bool | None, option("overlap of products and collectives in symmetric memory (fsdp2, compiled)", default="off")
    ] = None
    replicate_size: Annotated[
        int | None,
        option("groups of ranks that shard on their own (HSDP)", size, short=("--hsdp",), unit="groups", default="1"),
    ] = None
    optimizer_in_backward: Annotated[
        bool | None, option("the optimizer steps as gradients come (torchtune)", default="off")
    ] = None
    expandable_segments: Annotated[
        bool | None,
        option(
            "PyTorch's allocator with expandable segments (fsdp2, transformers, ddp, unsloth)",
            default="as the runtime has it",
        ),
    ] = None
    liger: Annotated[
        bool | None,
        option(
            "Liger's kernels: norms, positions, feed-forward, loss in parts (transformers, ddp, deepspeed)",
            default="off",
        ),
    ] = None
    mean_packed_length: Annotated[
        float | None,
        option(
            "mean tokens, weighted by length, of the sequences that share a row and do not see each other: attention "
            "takes no longer (time alone)",
            count,
            unit="tokens",
            default="a row is one sequence",
        ),
    ] = None
    packing: Annotated[
        bool | None,
        option(
            "sequences packed into rows of sequence_length, each for itself (code of transformers, torchtune)",
            default="off",
        ),
    ] = None
    keep_outputs: Annotated[
        bool | None,
        option(
            (
                "the training loop holds the logits until the next step, as `outputs = model(...)` does in a plain "
                "loop; the Trainer does not (transformers, ddp)"
            ),
            default="off",
        ),
    ] = None
    runtime: Annotated[
        str | None,
        option(
            "framework that trains the model; a tool such as axolotl, trl or nemo leads to its own",
            word,
            unit="name",
            default="fsdp2; transformers on one accelerator",
            choices=runtimes,
            lists_choices=True,
            usual=Usual(PARALLELISM, "fsdp2, megatron, deepspeed, ...", "NAME", "fsdp2", place=-1),
        ),
    ] = None
