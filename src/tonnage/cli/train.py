"""tonnage train: memory of a training run."""

import argparse
from typing import Any

from tonnage.cli import _options as o
from tonnage.cli._bill_options import BILL_OPTIONS
from tonnage.cli._options import Option, count, length, number, ranged, size, whole, word
from tonnage.cli._run_options import RUN_OPTIONS, rate

HELP = "does this training run fit, where does its memory go, and how long does it take?"
OPTIONS = (
    Option("sequence_length", "tokens of a sequence; 32k is 32768", length, ("--seq",), "tokens", "the model's context, at most 4096"),
    Option("micro_batch_size", "sequences of one forward pass of one replica", size, ("--mbs",), "sequences", "1"),
    Option("global_batch_size", "sequences of one step of all replicas", size, ("--gbs",), "sequences"),
    Option("num_microbatches", "micro-batches of one replica in a step", size, unit="micro-batches", default="pipeline stages"),
    Option("tensor_parallel_size", "ranks that share each matrix", size, ("--tp",), "ranks", "1"),
    Option("sequence_parallel", "cut norms and residuals over tensor ranks", default="on with tensor parallelism"),
    Option("pipeline_parallel_size", "pipeline stages", size, ("--pp",), "ranks", "1"),
    Option("virtual_pipeline_size", "interleaved chunks on each stage", size, ("--vpp",), "chunks", "1"),
    Option("pipeline_schedule", "gpipe, 1f1b, interleaved-1f1b, interleaved-zero-bubble, zbv or dualpipev, as the runtime has them", word, unit="name", default="1f1b, interleaved with several chunks"),
    Option("context_parallel_size", "ranks that share a sequence", size, ("--cp",), "ranks", "1"),
    Option("expert_parallel_size", "ranks that share a layer's experts", size, ("--ep",), "ranks", "1"),
    Option("expert_tensor_parallel_size", "ranks that share an expert", size, ("--etp",), "ranks", "tensor_parallel_size, or 1 with experts spread"),
    Option("data_parallel_size", "replicas that see different sequences", size, ("--dp",), "ranks", "the rest of the cluster"),
    Option("zero_stage", "what data-parallel ranks shard: 0 nothing, 1 optimizer, 2 and gradients, 3 and weights", ranged(whole, "from 0 to 3"), ("--zero",), "stage", "the runtime's own"),
    Option("recompute", "activations: none, selective (attention's core), selective-op (torchtitan's, by operation) or full are recomputed", word, unit="policy", default="none"),
    Option("attention", "kernel: flash, sdpa (as PyTorch chooses), efficient (its memory-efficient kernel alone, with repeated keys and values) or eager", word, unit="kernel", default="the runtime's own"),
    Option("dropout", "dropout after attention and feed-forward layers, and inside attention", default="as the model's config says"),
    Option("recompute_modules", "with recompute selective in megatron: core_attn, layernorm, mla_up_proj, mlp, moe, moe_act, shared_experts", word, unit="names", default="core_attn"),
    Option("context_parallel_method", "how megatron's ranks share a sequence: p2p, a2a or allgather", word, unit="name", default="p2p"),
    Option("expert_capacity_factor", "tokens an expert has room for, over the mean; megatron pads to it and drops the rest", number, unit="factor", default="no limit"),
    Option("expert_imbalance", "tokens of the fullest expert rank over the mean (megatron, several expert ranks)", number, unit="factor", default="1, balanced"),
    Option("straggler_slowdown", "how many times longer a slow node takes for a step (time alone); large jobs on a shared cluster were delayed 1.34 times on average (Wu2024)", number, unit="factor", default="none is slow"),
    Option("straggler_share", "share of nodes that are slow: the more nodes, the likelier one of them is", number, unit="share", default="1, one is in any case"),
    Option("product_share", "share of the 16-bit peak that products of large matrices reach on your machine, where you measured it (time alone): power limits differ", number, unit="share", default="what published runs on its generation reach"),
    Option("cuda_graph", "megatron: full where graphs replay a whole step, so that kernels do not wait for the host, or modules that they replay, such as attn,moe_router (time alone)", word, unit="kind", default="none"),
    Option("tp_comm_overlap", "megatron: tensor ranks send while they compute (time alone)", default="off"),
    Option("overlap_moe_expert_parallel_comm", "megatron: expert ranks send while they compute (time alone)", default="off"),
    Option("moe_token_dispatcher_type", "megatron: alltoall, or flex (DeepEP, HybridEP), which does not wait for sizes (time alone)", word, unit="name", default="alltoall"),
    Option("mtp_layers", "layers of multi-token prediction that megatron trains (--mtp-num-layers), whatever num_nextn_predict_layers of the config says", ranged(count, "from 0 to 1,099,511,627,776"), unit="layers", default="0, as Megatron's own is unset"),
    Option("runtime_version", "releases that the runtime runs, such as 'core 0.14, TE 2.11', or 0.1 of torchtitan", word, unit="text", default="the newest known"),
    Option("loss", "full: all logits at once; chunked: parts of the sequence, one after the other (fsdp2); fused: Transformer Engine's (megatron); tiled: TRL's, the default with objectives dpo, grpo and distillation", word, unit="kind", default="full"),
    Option("precision", "training recipe, such as bf16-mixed, bf16, fp32, fp8-te", word, unit="recipe", default="bf16-mixed"),
    Option("optimizer", "adamw, adamw-8bit, sgd-momentum, adafactor, lion, muon, ...", word, unit="name", default="adamw"),
    Option("optimizer_implementation", "of torch: fused, foreach (copies of all parameters in the step) or for-loop", word, unit="kind", default="fused"),
    Option("objective", "what training is for: sft (or pre-training), dpo, grpo, ppo or distillation", word, unit="name", default="sft"),
    Option("teacher", "the model that distillation learns from", word, unit="model"),
    Option("engine_memory_share", "part of the memory that an engine takes which generates on the same accelerators (grpo, ppo)", number, unit="share", default="0"),
    Option("method", "what trains: full, lora, dora, qlora (LoRA on a 4-bit base) or freeze (the last layers)", word, unit="method", default="full"),
    Option("lora_rank", "rank of the adapters", size, unit="rank", default="16"),
    Option("lora_targets", "linear layers with adapters, such as q_proj,v_proj", word, unit="names", default="all-linear"),
    Option("lora_dropout", "dropout before the adapters", default="none"),
    Option("base_weights", "a base quantised by bitsandbytes: nf4, nf4-double, fp4, fp4-double or int8", word, unit="precision", default="nf4-double with qlora, else 16 bit"),
    Option("upcast_base", "norms, embedding and head of a quantised base in fp32, as peft's prepare_model_for_kbit_training leaves them (transformers, ddp)", default="on"),
    Option("trainable_layers", "layers that train with method freeze, from the last", size, unit="layers", default="2"),
    Option("first_stage_layers", "layers of the first pipeline stage", size, unit="layers", default="as even as can be"),
    Option("last_stage_layers", "layers of the last pipeline stage", size, unit="layers", default="as even as can be"),
    Option("pipeline_layout", "megatron's --pipeline-model-parallel-layout, a stage between bars: E embedding, t layer, m prediction, L loss, as in 'Et*3|(tt|)*29,m|L'", word, unit="text", default="as even as can be"),
    Option("account_for_embedding_in_pipeline_split", "the embedding counts as a layer of the first stage (megatron)", default="off"),
    Option("account_for_loss_in_pipeline_split", "the loss counts as a layer of the last stage (megatron)", default="off"),
    Option("model_code", "whose code the layers are: transformers, torchtitan, megatron, ... (the runtime's own)", word, unit="name", default="the runtime's own"),
    Option("offload_optimizer", "optimizer states, and gradients that are sharded: none, cpu or nvme (deepspeed, fsdp2, megatron)", word, unit="place", default="none"),
    Option("offload_parameters", "shards of the weights: none, cpu or nvme (deepspeed with ZeRO 3, fsdp2)", word, unit="place", default="none"),
    Option("offload_activations", "tensors kept for backward: none, cpu or nvme", word, unit="place", default="none"),
    Option("optimizer_offload_fraction", "share of the optimizer states that is offloaded (megatron, deepspeed with ZeRO 3)", number, unit="share", default="1"),
    Option("host_update_bandwidth", "bytes a second that the processors of a node read and write while they update (with offload_optimizer, time alone): published runs got 2GB/s to 54GB/s", rate, unit="bytes/s"),
    Option("offload_modules", "modules of megatron whose inputs are offloaded, such as core_attn,moe_act", word, unit="names", default="all that it knows"),
    Option("data_loader_workers", "processes of each rank that load data", ranged(count, "from 0 to 4,096"), unit="processes", default="0"),
    Option("reduce_bucket_size", "DeepSpeed: elements reduced at a time, or auto as the Trainer fills in", word, unit="elements", default="500M"),
    Option("allgather_bucket_size", "DeepSpeed: elements gathered at a time after a step; torch needs no memory for it", word, unit="elements", default="500M"),
    Option("overlap_comm", "DeepSpeed: reduce during backward; a second bucket in ZeRO 1 and 2", default="in ZeRO 3 alone"),
    Option("contiguous_gradients", "DeepSpeed: gradients are copied to a bucket of full size", default="on"),
    Option("sub_group_size", "DeepSpeed, ZeRO 3: parameters of a rank updated at a time", word, unit="elements", default="1B"),
    Option("stage3_prefetch_bucket_size", "DeepSpeed, ZeRO 3: elements fetched ahead at a time, or auto", word, unit="elements", default="50M"),
    Option("stage3_max_live_parameters", "DeepSpeed, ZeRO 3: parameters gathered at most", word, unit="elements", default="1B"),
    Option("stage3_max_reuse_distance", "DeepSpeed, ZeRO 3: parameters used again within so many are not released", word, unit="elements", default="1B"),
    Option("stage3_param_persistence_threshold", "DeepSpeed, ZeRO 3: smaller parameters stay whole, or auto", word, unit="elements", default="100k"),
    Option("stage3_gather_16bit_weights_on_model_save", "DeepSpeed, ZeRO 3: rank 0 gathers the weights to save them", default="off"),
    Option("zero_hpz_partition_size", "ZeRO++: ranks that share a second shard of the weights; 1: there is none", word, unit="ranks", default="1"),
    Option("zero_quantized_weights", "ZeRO++: weights are gathered in 8 bits", default="off"),
    Option("zero_quantized_nontrainable_weights", "ZeRO++: weights that do not train are stored in 8 bits", default="off"),
    Option("zero_quantized_gradients", "ZeRO++: gradients are reduced in 4 bits", default="off"),
    Option("compile", "torch.compile of layers and loss (fsdp2 with torchtitan's code, torchtune)", default="off"),
    Option("float8", "scales of float8 products (fsdp2): none, tensorwise or rowwise", word, unit="kind", default="none"),
    Option("float8_all_gather", "gather weights in float8 (with float8 tensorwise)", default="off"),
    Option("async_tensor_parallel", "overlap of products and collectives in symmetric memory (fsdp2, compiled)", default="off"),
    Option("replicate_size", "groups of ranks that shard on their own (HSDP)", size, ("--hsdp",), "groups", "1"),
    Option("optimizer_in_backward", "the optimizer steps as gradients come (torchtune)", default="off"),
    Option("expandable_segments", "PyTorch's allocator with expandable segments (fsdp2, transformers, ddp, unsloth)", default="as the runtime has it"),
    Option("liger", "Liger's kernels: norms, positions, feed-forward, loss in parts (transformers, ddp)", default="off"),
    Option("packing", "sequences packed into rows of sequence_length, each for itself (code of transformers, torchtune)", default="off"),
    Option("keep_outputs", "the training loop holds the logits until the next step, as `outputs = model(...)` does in a plain loop; the Trainer does not (transformers, ddp)", default="off"),
    Option("runtime", "fsdp2, megatron, transformers, ddp, deepspeed, nanotron, torchtune, unsloth or litgpt", word, unit="name", default="fsdp2; transformers on one accelerator"),
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    o.add_model(parser)
    o.add(parser, o.COMMON, "machine")
    o.add(parser, OPTIONS, "training")
    o.add(parser, RUN_OPTIONS, "run")
    o.add(parser, BILL_OPTIONS, "money, power and disks")
    o.add(parser, o.ADVICE, "advice")
    o.add_output(parser, reports=True).add_argument(
        "--plot",
        metavar="FILE",
        help="pictures of memory, the step and money besides: FILE.html (a page that needs no network), .png or .svg",
    )


def run(arguments: argparse.Namespace) -> int:
    from tonnage.cli._print import plotted, print_answer, ready_to_plot
    from tonnage.cli._report import prints_report, reported

    made = answer(arguments)
    ready_to_plot(arguments.plot)  # after what is wrong with the question
    if not prints_report(arguments, made):
        print_answer(made, as_json=arguments.json, formulas=arguments.formulas)
    return reported(arguments, made, plotted(made, arguments.plot))


def answer(arguments: argparse.Namespace) -> Any:
    """The answer itself, of which documents and pictures are made."""
    from tonnage.estimate.answer.answers import train
    from tonnage.estimate.money.bill import BillOptions
    from tonnage.estimate.options.run_options import RunOptions
    from tonnage.estimate.plan.training_options import TrainingOptions

    options = TrainingOptions(**o.values(arguments, OPTIONS))
    run = RunOptions(**o.values(arguments, RUN_OPTIONS))
    money = BillOptions(**o.values(arguments, BILL_OPTIONS))
    model, machine, reserve = o.model_and_machine(arguments)
    advise = o.values(arguments, o.ADVICE).get("advice", True)
    return train(model, machine, options, run, money, reserve_bytes=reserve, advise=advise)
