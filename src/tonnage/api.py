"""The Python face: the same questions and documents as the command line, with plain arguments."""

import os
from collections.abc import Mapping
from math import isfinite
from operator import index
from typing import Any

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.catalogue import cluster
from tonnage.errors import InvalidInput
from tonnage.estimate import answers
from tonnage.estimate.bill import BillOptions
from tonnage.estimate.plans import TrainingOptions
from tonnage.estimate.run_options import RunOptions
from tonnage.estimate.serving_answer import ServingOptions
from tonnage.models import read
from tonnage.registry import unknown
from tonnage.spec import Cluster

TAKES: dict[Any, str] = {int: "a whole number", bool: "True or False", str: "a name", float: "a finite number",
                         int | str: "a whole number, or a text such as auto or 15T",
                         float | str: "a finite number, or a text such as 100k"}  # fmt: skip


class Answer(answers.Answer, frozen=True, kw_only=True):
    """An answer with the text that the command line prints: `print(answer)`, or `answer.text(formulas=True)`."""

    def text(self, *, formulas: bool = False) -> str:
        """The lines of the command line, without colour; `formulas`: with the numbers put in, as --formulas."""
        from tonnage.render.text import answer_lines

        return "\n".join(
            answer_lines(self.summary(), self.memory, formulas=formulas, others=self.others if formulas else ())
        )

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Write its pictures, as --plot: a page of HTML that needs no network, or a .png or .svg. Needs the extra `plot`."""
        from tonnage.render.plot import write_plot

        write_plot(self, path)

    def __str__(self) -> str:
        return self.text()


def train(
    model: str | os.PathLike[str] | Model, on: str | Cluster, *, reserve_bytes: float = 0, **options: Any
) -> Answer:
    """Does this training run fit, and where does its memory go?

    `model`: a name, id, URL or path as `tonnage train` takes it, or a Model. `on`: "8xH100-SXM-80GB", or a Cluster.
    `reserve_bytes` [bytes]: memory of each accelerator to leave free. An option that is not given has its default, and
    `answer.question` says which and why:

    - sequence_length [tokens]: of each sequence
    - micro_batch_size [sequences]: of one forward pass of one replica
    - global_batch_size [sequences]: of one step of all replicas
    - num_microbatches [micro-batches]: of one replica in a step
    - tensor_parallel_size [ranks]: that share each matrix
    - sequence_parallel [switch]: cut norms and residuals over tensor ranks
    - pipeline_parallel_size [ranks]: pipeline stages
    - virtual_pipeline_size [chunks]: interleaved on each stage
    - pipeline_schedule [name]: gpipe, 1f1b, interleaved-1f1b, interleaved-zero-bubble, zbv or dualpipev, as the runtime has them
    - context_parallel_size [ranks]: that share a sequence
    - expert_parallel_size [ranks]: that share a layer's experts
    - expert_tensor_parallel_size [ranks]: that share an expert
    - data_parallel_size [ranks]: replicas that see different sequences
    - zero_stage [stage]: 0 shards nothing, 1 the optimizer, 2 and gradients, 3 and weights
    - recompute [policy]: none, selective, selective-op (torchtitan's) or full
    - attention [kernel]: flash, sdpa or eager
    - dropout [switch]: after attention and feed-forward layers, and inside attention
    - recompute_modules [names]: with recompute selective in megatron: core_attn, layernorm, mla_up_proj, mlp, moe, moe_act, shared_experts
    - context_parallel_method [name]: how megatron's ranks share a sequence: p2p, a2a or allgather
    - expert_capacity_factor [factor]: tokens an expert has room for, over the mean; megatron pads to it and drops the rest
    - expert_imbalance [factor]: tokens of the fullest expert rank over the mean (megatron, several expert ranks)
    - straggler_slowdown [factor]: how many times longer a slow node takes for a step (time alone); large jobs on a shared cluster were delayed 1.34 times on average (Wu2024)
    - straggler_share [share]: share of nodes that are slow: the more nodes, the likelier one of them is
    - cuda_graph [kind]: megatron: full where graphs replay a whole step, so that kernels do not wait for the host (time alone)
    - tp_comm_overlap [switch]: megatron: tensor ranks send while they compute (time alone)
    - overlap_moe_expert_parallel_comm [switch]: megatron: expert ranks send while they compute (time alone)
    - moe_token_dispatcher_type [name]: megatron: alltoall, or flex (DeepEP, HybridEP), which does not wait for sizes (time alone)
    - mtp_layers [layers]: of multi-token prediction that megatron trains (--mtp-num-layers), whatever num_nextn_predict_layers of the config says
    - runtime_version [text]: releases that the runtime runs, such as 'core 0.14, TE 2.11', or 0.1 of torchtitan
    - loss [kind]: full, chunked, fused, or tiled: that of TRL, the default with objectives dpo, grpo and distillation
    - precision [recipe]: such as bf16-mixed, bf16, fp32, fp8-te
    - optimizer [name]: such as adamw, adamw-8bit, muon
    - optimizer_implementation [kind]: of torch: fused, foreach (copies of all parameters in the step) or for-loop
    - objective [name]: what training is for: sft (or pre-training), dpo, grpo, ppo or distillation
    - teacher [model]: the model that distillation learns from
    - engine_memory_share [share]: part of the memory that an engine takes which generates on the same accelerators (grpo, ppo)
    - method [method]: what trains: full, lora, dora, qlora (LoRA on a 4-bit base) or freeze (the last layers)
    - lora_rank [rank]: rank of the adapters
    - lora_targets [names]: linear layers with adapters, such as q_proj,v_proj
    - lora_dropout [switch]: dropout before the adapters
    - base_weights [precision]: a base quantised by bitsandbytes: nf4, nf4-double, fp4, fp4-double or int8
    - trainable_layers [layers]: layers that train with method freeze, from the last
    - first_stage_layers [layers]: layers of the first pipeline stage
    - last_stage_layers [layers]: layers of the last pipeline stage
    - pipeline_layout [text]: megatron's --pipeline-model-parallel-layout, a stage between bars: E embedding, t layer, m prediction, L loss
    - account_for_embedding_in_pipeline_split [switch]: the embedding counts as a layer of the first stage (megatron)
    - account_for_loss_in_pipeline_split [switch]: the loss counts as a layer of the last stage (megatron)
    - model_code [name]: whose code the layers are: transformers, torchtitan, megatron, ... (the runtime's own)
    - offload_optimizer [place]: optimizer states, and gradients that are sharded: none, cpu or nvme (deepspeed, fsdp2, megatron)
    - offload_parameters [place]: shards of the weights: none, cpu or nvme (deepspeed with ZeRO 3, fsdp2)
    - offload_activations [place]: tensors kept for backward: none, cpu or nvme
    - optimizer_offload_fraction [share]: share of the optimizer states that is offloaded (megatron, deepspeed with ZeRO 3)
    - host_update_bandwidth [bytes/s]: that the processors of a node read and write while they update (with offload_optimizer, time alone): published runs got 2GB to 54GB
    - offload_modules [names]: modules of megatron whose inputs are offloaded, such as core_attn,moe_act
    - data_loader_workers [processes]: processes of each rank that load data
    - reduce_bucket_size [elements]: DeepSpeed: elements reduced at a time, or auto as the Trainer fills in
    - allgather_bucket_size [elements]: DeepSpeed: elements gathered at a time after a step; torch needs no memory for it
    - overlap_comm [switch]: DeepSpeed: reduce during backward; a second bucket in ZeRO 1 and 2
    - contiguous_gradients [switch]: DeepSpeed: gradients are copied to a bucket of full size
    - sub_group_size [elements]: DeepSpeed, ZeRO 3: parameters of a rank updated at a time
    - stage3_prefetch_bucket_size [elements]: DeepSpeed, ZeRO 3: elements fetched ahead at a time, or auto
    - stage3_max_live_parameters [elements]: DeepSpeed, ZeRO 3: parameters gathered at most
    - stage3_max_reuse_distance [elements]: DeepSpeed, ZeRO 3: parameters used again within so many are not released
    - stage3_param_persistence_threshold [elements]: DeepSpeed, ZeRO 3: smaller parameters stay whole, or auto
    - stage3_gather_16bit_weights_on_model_save [switch]: DeepSpeed, ZeRO 3: rank 0 gathers the weights to save them
    - zero_hpz_partition_size [ranks]: ZeRO++: ranks that share a second shard of the weights; 1: there is none
    - zero_quantized_weights [switch]: ZeRO++: weights are gathered in 8 bits
    - zero_quantized_nontrainable_weights [switch]: ZeRO++: weights that do not train are stored in 8 bits
    - zero_quantized_gradients [switch]: ZeRO++: gradients are reduced in 4 bits
    - compile [switch]: torch.compile of layers and loss (fsdp2 with torchtitan's code, torchtune)
    - float8 [kind]: scales of float8 products (fsdp2): none, tensorwise or rowwise
    - float8_all_gather [switch]: gather weights in float8 (with float8 tensorwise)
    - async_tensor_parallel [switch]: overlap of products and collectives in symmetric memory (fsdp2, compiled)
    - replicate_size [groups]: groups of ranks that shard on their own (HSDP)
    - optimizer_in_backward [switch]: the optimizer steps as gradients come (torchtune)
    - expandable_segments [switch]: PyTorch's allocator with expandable segments (fsdp2, transformers, ddp, unsloth)
    - liger [switch]: Liger's kernels: norms, positions, feed-forward, loss in parts (transformers, ddp)
    - packing [switch]: sequences packed into rows of sequence_length, each for itself (code of transformers, torchtune)
    - runtime [name]: fsdp2, megatron, transformers, ddp, deepspeed, nanotron, torchtune, unsloth or litgpt
    - tokens [tokens]: training tokens, such as 15T; or give epochs, or max_steps
    - epochs [epochs]: passes over the data set
    - dataset_tokens [tokens]: tokens of the data set
    - max_steps [steps]: optimizer steps
    - deadline [time]: 30d, 2w, or the last day, such as 2027-01-31: how many accelerators make it?
    - budget [USD]: money that may be spent, such as 100k: how many tokens does it buy?
    - budget_accelerator_hours [accelerator-hours]: accelerator-hours that may be spent
    - price_per_accelerator_hour [USD]: price of one accelerator for one hour
    - checkpoint_seconds [time]: time that training stands still for a checkpoint, such as 30s
    - checkpoint_interval [time]: training between two checkpoints, such as 30min
    - storage_bandwidth [bytes/s]: bytes a second that all accelerators together write, such as 20GB
    - storage_read_bandwidth [bytes/s]: bytes a second that all accelerators together read, such as 40GB
    - restart_seconds [time]: time from a failure until training goes on, such as 10min
    - accelerator_mtbf [time]: mean time between failures of one accelerator with its share of node and network, such as 5y
    - provider [name]: whose machines are rented, such as AWS
    - price_kind [kind]: on-demand, spot or reserved
    - region [name]: where they are rented
    - exchange_rate [per USD]: of offers in another currency, such as CNY=7.1
    - grid [name or g/kWh]: a country, or grams of CO2e per kWh: what the electricity emits
    - pue [factor]: power of the building for a watt of the machines
    - power_share [0 to 1]: of the machines' rated power that is drawn
    - keep_checkpoints [checkpoints]: checkpoints that lie on disk
    - text_bytes_per_token [bytes]: plain text that a token of the data set stands for
    - electricity_usd_per_kwh [USD]: price of a kilowatt-hour: with the two after it buying is compared with renting
    - network_share [share]: switches, cables and racks, as a share of the machines' price
    - staff_usd_per_month [USD]: pay of those who look after all the machines
    - used_share [0 to 1]: of the time that one's own machines are in use
    - machine_usd [USD]: price of one machine, of as many accelerators as a node
    - machine_watts [watts]: the most that one machine draws
    - depreciation_years [years]: over which one's own machines are written off
    - colocation_usd_per_kw_month [USD]: room in a data centre for a kilowatt and month; 0 in one's own building
    - edge [accelerator]: a device for sale to compare too, such as jetson-orin-nano-8gb: the same training on it alone

    Raises TonnageError: InvalidInput, UnknownName or InvalidPlan for what cannot be, MissingDatum for what nobody published.
    """
    of_run = {name: options.pop(name) for name in RunOptions.__struct_fields__ if name in options}
    of_bill = {name: options.pop(name) for name in BillOptions.__struct_fields__ if name in options}
    said, run, bill = _options(TrainingOptions, options), _options(RunOptions, of_run), _options(BillOptions, of_bill)
    return _with_text(
        answers.train(_model(model), _cluster(on), said, run, bill, reserve_bytes=_reserve(reserve_bytes))
    )


def serve(
    model: str | os.PathLike[str] | Model, on: str | Cluster, *, reserve_bytes: float = 0, **options: Any
) -> Answer:
    """Does this model serve these requests, and how many would fit?

    `model`, `on`, `reserve_bytes` and errors as for `train`. Options:

    - context [tokens]: of a request, prompt and answer
    - concurrency [requests]: held at the same time, by all replicas together
    - weights [precision]: how weights are stored, such as bf16, fp8, awq, nf4, q4_k
    - kv_cache [precision]: how keys and values are stored
    - tensor_parallel_size [ranks]: that share each matrix
    - pipeline_parallel_size [ranks]: pipeline stages
    - expert_parallel_size [ranks]: that share a layer's experts
    - max_num_batched_tokens [tokens]: of one forward pass
    - max_num_seqs [requests]: that the engine runs at once
    - gpu_memory_utilization [0 to 1]: part of the memory that the engine takes
    - enforce_eager [switch]: without captured graphs
    - engine [name]: vllm or transformers
    """
    said = _options(ServingOptions, options)
    return _with_text(answers.serve(_model(model), _cluster(on), said, reserve_bytes=_reserve(reserve_bytes)))


def _with_text(answer: answers.Answer) -> Answer:
    return Answer(**{name: getattr(answer, name) for name in answer.__struct_fields__})


def _model(model: Any) -> Model:
    if isinstance(model, Model):
        return model
    if isinstance(model, str | os.PathLike):
        return read(os.fspath(model))
    raise InvalidInput(f"model takes a name, a path or a Model. Got {_shown(model)}.")


def _cluster(on: Any) -> Cluster:
    if isinstance(on, Cluster):
        return on
    if isinstance(on, str):
        return cluster(on)
    raise InvalidInput(f"on takes a name such as 8xH100-SXM-80GB, or a Cluster. Got {_shown(on)}.")


def _reserve(size: Any) -> int:
    """Whole bytes; the estimate checks that they leave something."""
    if isinstance(size, bool) or not isinstance(size, int | float) or not 0 <= size < float("inf"):
        raise InvalidInput(f"reserve_bytes takes a finite number of bytes, at least 0. Got {_shown(size)}.")
    return round(size)


def _options(form: Any, options: Mapping[str, Any]) -> Any:
    for name in options:
        if name not in form.__struct_fields__:
            raise unknown("option", name, form.__struct_fields__)
    return form(**{name: _option(form, name, value) for name, value in options.items()})


def _option(form: type[Struct], name: str, value: Any) -> Any:
    """The value if its type is the option's; numpy's integers become Python's."""
    takes = next(kind for kind in TAKES if form.__annotations__[name] in (kind, kind | None))
    words = TAKES[takes]
    if takes == int | str:
        takes = str if isinstance(value, str) else int
    if takes == float | str:
        takes = str if isinstance(value, str) else float
    if value is None or (type(value) is takes and takes is not float):
        return value
    if takes is int and not isinstance(value, bool) and hasattr(value, "__index__"):
        return index(value)
    if takes is str and isinstance(value, str):
        return str(value)
    if takes is float and isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
        return float(value)
    raise InvalidInput(f"{name} takes {words}, or None for its default. Got {_shown(value)}.")


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"
