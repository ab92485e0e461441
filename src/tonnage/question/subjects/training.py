"""Of a training run: options of single runtimes, and all options together."""

from typing import Annotated

from tonnage.question.choices import runtimes
from tonnage.question.forms import size, word
from tonnage.question.option import described, option
from tonnage.question.subjects.training_method import Method


@described
class TrainingOptions(Method, frozen=True, kw_only=True):
    """What the user may say about a training run; None: not said, which is the default, and the answer's question
    says why.
    """

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
        option("scales of float8 products (fsdp2): none, tensorwise or rowwise", word, unit="kind", default="none"),
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
        option("Liger's kernels: norms, positions, feed-forward, loss in parts (transformers, ddp)", default="off"),
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
            "framework that trains the model",
            word,
            unit="name",
            default="fsdp2; transformers on one accelerator",
            choices=runtimes,
            lists_choices=True,
        ),
    ] = None
