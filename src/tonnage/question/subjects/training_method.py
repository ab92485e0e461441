"""Of a training run: what trains, the layers of pipeline stages, and what is offloaded."""

from typing import Annotated

from tonnage.question.forms import count, number, ranged, rate, size, word
from tonnage.question.option import option
from tonnage.question.subjects.training_numerics import Numerics


class Method(Numerics, frozen=True, kw_only=True):
    """Adapters, layers of stages and offloading: the third part of TrainingOptions."""

    method: Annotated[
        str | None,
        option(
            "what trains: full, lora, dora, qlora (LoRA on a 4-bit base) or freeze (the last layers)",
            word,
            unit="method",
            default="full",
            choices=("full", "lora", "dora", "qlora", "freeze"),
        ),
    ] = None
    lora_rank: Annotated[int | None, option("rank of the adapters", size, unit="rank", default="16")] = None
    lora_targets: Annotated[
        str | None,
        option("linear layers with adapters, such as q_proj,v_proj", word, unit="names", default="all-linear"),
    ] = None
    lora_dropout: Annotated[bool | None, option("dropout before the adapters", default="none")] = None
    base_weights: Annotated[
        str | None,
        option(
            "a base quantised by bitsandbytes: nf4, nf4-double, fp4, fp4-double or int8",
            word,
            unit="precision",
            default="nf4-double with qlora, else 16 bit",
            known=("nf4", "nf4-double", "fp4", "fp4-double", "int8"),
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
