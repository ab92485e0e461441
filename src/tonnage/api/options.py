"""Types of the options of the public functions. Written by scripts/option_types.py."""

from typing import TypedDict


class TrainOptions(TypedDict, total=False):
    """Options of `train`."""

    sequence_length: int | None
    """tokens of a sequence; 32k is 32768 [tokens]; default: the model's context, at most 4096"""
    micro_batch_size: int | None
    """sequences of one forward pass of one replica [sequences]; default: 1"""
    global_batch_size: int | None
    """sequences of one step of all replicas [sequences]"""
    num_microbatches: int | None
    """micro-batches of one replica in a step [micro-batches]; default: pipeline stages"""
    tensor_parallel_size: int | None
    """ranks that share each matrix [ranks]; default: 1"""
    sequence_parallel: bool | None
    """cut norms and residuals over tensor ranks; default: on with tensor parallelism"""
    pipeline_parallel_size: int | None
    """pipeline stages [ranks]; default: 1"""
    virtual_pipeline_size: int | None
    """interleaved chunks on each stage [chunks]; default: 1"""
    pipeline_schedule: str | None
    """gpipe, 1f1b, interleaved-1f1b, interleaved-zero-bubble, zb-h1, zb-h2, zbv, dualpipe or dualpipev, as the
    runtime has them [name]; default: 1f1b, interleaved with several chunks
    """
    context_parallel_size: int | None
    """ranks that share a sequence [ranks]; default: 1"""
    expert_parallel_size: int | None
    """ranks that share a layer's experts [ranks]; default: 1"""
    expert_tensor_parallel_size: int | None
    """ranks that share an expert [ranks]; default: tensor_parallel_size, or 1 with experts spread"""
    data_parallel_size: int | None
    """replicas that see different sequences [ranks]; default: the rest of the cluster"""
    zero_stage: int | None
    """what data-parallel ranks shard: 0 nothing, 1 optimizer, 2 and gradients, 3 and weights [stage]; default: the
    runtime's own
    """
    recompute: str | None
    """activations: none, selective (attention's core), selective-op (torchtitan's, by operation) or full are
    recomputed [policy]; default: none
    """
    attention: str | None
    """kernel: flash, sdpa (as PyTorch chooses), efficient (its memory-efficient kernel alone, with repeated keys and
    values) or eager [kernel]; default: the runtime's own
    """
    dropout: bool | None
    """dropout after attention and feed-forward layers, and inside attention; default: as the model's config says"""
    recompute_modules: str | None
    """with recompute selective in megatron: core_attn, layernorm, mla_up_proj, mlp, moe, moe_act, shared_experts
    [names]; default: core_attn
    """
    context_parallel_method: str | None
    """how context ranks share a sequence (megatron, fsdp2, deepspeed): p2p (ring), a2a (Ulysses) or allgather
    [name]; default: p2p; a2a with deepspeed
    """
    expert_capacity_factor: float | None
    """tokens an expert has room for, over the mean; megatron pads to it and drops the rest [factor]; default: no
    limit
    """
    expert_imbalance: float | None
    """tokens of the fullest expert rank over the mean (megatron, several expert ranks) [factor]; default: 1,
    balanced
    """
    straggler_slowdown: float | None
    """how many times longer a slow node takes for a step (time alone); large jobs on a shared cluster were delayed
    1.34 times on average (Wu2024) [factor]; default: none is slow
    """
    straggler_share: float | None
    """share of nodes that are slow: the more nodes, the likelier one of them is [share]; default: 1, one is in any
    case
    """
    product_share: float | None
    """share of the 16-bit peak that products of large matrices reach on your machine, where you measured it (time
    alone): power limits differ [share]; default: what published runs on its generation reach
    """
    calibrated: bool | None
    """correct time and memory by your own runs, which `tonnage calibrate` lists; default: off"""
    cuda_graph: str | None
    """megatron: full where graphs replay a whole step, so that kernels do not wait for the host, or modules that
    they replay, such as attn,moe_router (time alone) [kind]; default: none
    """
    tp_comm_overlap: bool | None
    """megatron: tensor ranks send while they compute (time alone); default: off"""
    overlap_moe_expert_parallel_comm: bool | None
    """megatron: expert ranks send while they compute (time alone); default: off"""
    moe_token_dispatcher_type: str | None
    """megatron, fsdp2: alltoall, or flex (DeepEP, HybridEP), which sends a token once to a node (time alone) [name];
    default: alltoall
    """
    mtp_layers: int | None
    """layers of multi-token prediction that megatron trains (--mtp-num-layers), whatever num_nextn_predict_layers of
    the config says [layers]; default: 0, as Megatron's own is unset
    """
    runtime_version: str | None
    """releases that the runtime runs, such as 'core 0.14, TE 2.11', or 0.1 of torchtitan [text]; default: the newest
    known
    """
    loss: str | None
    """full: all logits at once; chunked: parts of the sequence, one after the other (fsdp2); fused: Transformer
    Engine's (megatron); tiled: TRL's, the default with objectives dpo, grpo and distillation; full-entropy: of
    grpo and ppo, with the entropy of each token (fsdp2) [kind]; default: full
    """
    precision: str | None
    """training recipe, such as bf16-mixed, bf16, fp32, fp8-te [recipe]; default: bf16-mixed"""
    optimizer: str | None
    """adamw, adamw-8bit, sgd-momentum, adafactor, lion, muon, ... [name]; default: adamw"""
    optimizer_implementation: str | None
    """of torch: fused, foreach (copies of all parameters in the step) or for-loop [kind]; default: fused"""
    objective: str | None
    """what training is for: sft (or pre-training), dpo, online-dpo, grpo, dapo, rloo, ppo, distillation, gkd
    (distillation on what the student generates) or contrastive (embeddings) [name]; default: sft
    """
    negatives: int | None
    """hard negatives of a sample, beside a text and its match (objective contrastive) [sequences]; default: 0"""
    cached_embeddings: bool | None
    """GradCache: embeddings of the whole batch are made first, then each micro-batch runs again with gradients
    (objective contrastive); default: off
    """
    teacher: str | None
    """the model that distillation and gkd learn from [model]"""
    engine_memory_share: float | None
    """part of the memory that an engine takes which generates on the same accelerators (grpo, ppo, ...) [share];
    default: 0
    """
    prompts_per_step: int | None
    """prompts of one step of reinforcement learning; with their completions they are one or more global batches
    [prompts]; default: global batch / completions; without a batch about 1,024 completions
    """
    num_generations: int | None
    """completions of one prompt (grpo, rloo, dapo, ppo) [completions]; default: 8 with grpo and dapo, 2 with rloo
    and online-dpo, 1 with ppo and gkd
    """
    prompt_length: int | None
    """mean tokens of a prompt without images and video, with an objective that generates [tokens]; default: 512, at
    most half of the sequence
    """
    max_completion_length: int | None
    """tokens at which a completion is cut, with an objective that generates [tokens]; default: what the sequence
    leaves beside the prompt
    """
    mean_completion_length: int | None
    """mean tokens of a completion after the cut [tokens]; default: all completions have the maximum"""
    completion_spread: float | None
    """standard deviation of completion lengths before the cut, over their mean [factor]; default: 1, as if each
    token ended the completion with the same probability
    """
    rollout_engine: str | None
    """what generates the completions: vllm, sglang, or hf (the model's own generate) [engine]; default: vllm; hf
    with gkd
    """
    rollout_engine_version: str | None
    """release of the rollout engine, such as 0.11 [version]; default: the newest known"""
    rollout_accelerators: int | None
    """accelerators that generate and do not train, beside those of the machine [accelerators]; default: 0:
    generation runs on those that train
    """
    rollout_tensor_parallel_size: int | None
    """ranks that share each matrix of the rollout engine [ranks]; default: the tool's own, or the fewest whose cache
    runs enough requests
    """
    rollout_max_num_seqs: int | None
    """requests that a replica of the rollout engine runs at once, at most [requests]; default: the engine's own;
    with hf all completions, with gkd those of a micro-batch
    """
    rollout_memory_share: float | None
    """part of the memory that the rollout engine takes while it generates, where it sleeps while training runs
    [share]; default: 0.5, or what training leaves
    """
    rollout_offload: bool | None
    """training states go to the host while the engine generates (NeMo RL; param_offload of veRL); default: on where
    they do not fit beside the engine
    """
    async_steps: int | None
    """steps that rollouts may be older than the weights they train: generation and training overlap from 1 on
    [steps]; default: 0
    """
    rollout_turns: int | None
    """turns of a rollout that calls tools [turns]; default: 1"""
    tool_seconds: float | None
    """seconds that a tool takes between two turns [seconds]; default: 0"""
    ppo_epochs: int | None
    """how often a step trains on its rollouts (num_iterations of TRL's GRPO) [epochs]; default: 1"""
    lmbda: float | None
    """share of the micro-batches whose completions the student generates (gkd) [share]; default: 0.5"""
    beta: float | None
    """coefficient of the KL divergence: above 0 a reference model is held and run (grpo, dapo, rloo, ppo) [factor];
    default: 0 with grpo and dapo, 0.05 with rloo and ppo
    """
    sequence_packing: bool | None
    """completions are packed into micro-batches of sequence_length x micro_batch_size tokens, not padded; default:
    on with megatron
    """
    method: str | None
    """what trains: full, lora, dora, qlora (LoRA on a 4-bit base), ia3 (vectors of peft) or freeze (the last layers)
    [method]; default: full
    """
    lora_rank: int | None
    """rank of the adapters [rank]; default: 16"""
    lora_targets: str | None
    """linear layers with adapters, such as q_proj,v_proj [names]; default: all-linear"""
    lora_dropout: bool | None
    """dropout before the adapters; default: none"""
    base_weights: str | None
    """a base quantised by bitsandbytes: nf4, nf4-double, fp4, fp4-double or int8; or fp32, as it was loaded
    [precision]; default: nf4-double with qlora, else 16 bit
    """
    upcast_base: bool | None
    """norms, embedding and head of a quantised base in fp32, as peft's prepare_model_for_kbit_training leaves them
    (transformers, ddp); default: on
    """
    trainable_layers: int | None
    """layers that train with method freeze, from the last [layers]; default: 2"""
    images: int | None
    """images of each sequence; their tokens are among those of --sequence-length, by the model's own rule; of each
    prompt with an objective that generates, on top of --prompt-length [images]; default: none
    """
    image_size: str | None
    """pixels of each image or of each frame of a video, width x height, such as 1920x1080 [WxH]; default: 1024x1024"""
    video_seconds: float | str | None
    """video of each sequence, such as 60s, of frames of --image-size, instead of --images; its tokens as those of
    images [time]; default: none
    """
    video_fps: float | None
    """frames a second that the model sees of the video [frames/s]; default: the processor's: 2 of Qwen-VL and
    GLM-4V, 32 frames in all of others
    """
    vision_tower: str | None
    """whether the vision tower and its projector train or are frozen; default: trained with method full, frozen with
    others; frozen by LLaMA-Factory and ms-swift
    """
    first_stage_layers: int | None
    """layers of the first pipeline stage [layers]; default: as even as can be"""
    last_stage_layers: int | None
    """layers of the last pipeline stage [layers]; default: as even as can be"""
    pipeline_layout: str | None
    """megatron's --pipeline-model-parallel-layout, a stage between bars: E embedding, t layer, m prediction, L loss,
    as in 'Et*3|(tt|)*29,m|L' [text]; default: as even as can be
    """
    account_for_embedding_in_pipeline_split: bool | None
    """the embedding counts as a layer of the first stage (megatron); default: off"""
    account_for_loss_in_pipeline_split: bool | None
    """the loss counts as a layer of the last stage (megatron); default: off"""
    model_code: str | None
    """whose code the layers are: transformers, torchtitan, megatron, ... (the runtime's own) [name]; default: the
    runtime's own
    """
    offload_optimizer: str | None
    """optimizer states, and gradients that are sharded: none, cpu or nvme (deepspeed, fsdp2, megatron) [place];
    default: none
    """
    offload_parameters: str | None
    """shards of the weights: none, cpu or nvme (deepspeed with ZeRO 3, fsdp2) [place]; default: none"""
    offload_activations: str | None
    """tensors kept for backward: none, cpu or nvme [place]; default: none"""
    optimizer_offload_fraction: float | None
    """share of the optimizer states that is offloaded (megatron, deepspeed with ZeRO 3) [share]; default: 1"""
    host_update_bandwidth: float | str | None
    """bytes a second that the processors of a node read and write while they update (with offload_optimizer, time
    alone): published runs got 2GB/s to 54GB/s [bytes/s]
    """
    inter_node_bandwidth: float | str | None
    """what all accelerators of a node together send to other nodes, such as 3200Gbps or 400GB/s [bytes/s]; default:
    the catalogue's
    """
    intra_node_bandwidth: float | str | None
    """what one accelerator sends to others of its node in one direction, such as 450GB/s [bytes/s]; default: the
    catalogue's
    """
    offload_modules: str | None
    """modules of megatron whose inputs are offloaded, such as core_attn,moe_act [names]; default: all that it knows"""
    data_loader_workers: int | None
    """processes of each rank that load data [processes]; default: 0"""
    reduce_bucket_size: int | str | None
    """DeepSpeed: elements reduced at a time, or auto as the Trainer fills in [elements]; default: 500M"""
    allgather_bucket_size: int | str | None
    """DeepSpeed: elements gathered at a time after a step; torch needs no memory for it [elements]; default: 500M"""
    overlap_comm: bool | None
    """DeepSpeed: reduce during backward; a second bucket in ZeRO 1 and 2; default: in ZeRO 3 alone"""
    contiguous_gradients: bool | None
    """DeepSpeed: gradients are copied to a bucket of full size; default: on"""
    sub_group_size: int | str | None
    """DeepSpeed, ZeRO 3: parameters of a rank updated at a time [elements]; default: 1B"""
    stage3_prefetch_bucket_size: int | str | None
    """DeepSpeed, ZeRO 3: elements fetched ahead at a time, or auto [elements]; default: 50M"""
    stage3_max_live_parameters: int | str | None
    """DeepSpeed, ZeRO 3: parameters gathered at most [elements]; default: 1B"""
    stage3_max_reuse_distance: int | str | None
    """DeepSpeed, ZeRO 3: parameters used again within so many are not released [elements]; default: 1B"""
    stage3_param_persistence_threshold: int | str | None
    """DeepSpeed, ZeRO 3: smaller parameters stay whole, or auto [elements]; default: 100k"""
    stage3_gather_16bit_weights_on_model_save: bool | None
    """DeepSpeed, ZeRO 3: rank 0 gathers the weights to save them; default: off"""
    zero_hpz_partition_size: int | str | None
    """ZeRO++: ranks that share a second shard of the weights; 1: there is none [ranks]; default: 1"""
    zero_quantized_weights: bool | None
    """ZeRO++: weights are gathered in 8 bits; default: off"""
    zero_quantized_nontrainable_weights: bool | None
    """ZeRO++: weights that do not train are stored in 8 bits; default: off"""
    zero_quantized_gradients: bool | None
    """ZeRO++: gradients are reduced in 4 bits; default: off"""
    compile: bool | None
    """torch.compile of layers and loss (fsdp2 with torchtitan's code, torchtune); default: off"""
    float8: str | None
    """scales of float8 products (fsdp2): none, tensorwise, rowwise, mxfp8 or nvfp4 [kind]; default: none"""
    float8_all_gather: bool | None
    """gather weights in float8 (with float8 tensorwise); default: off"""
    async_tensor_parallel: bool | None
    """overlap of products and collectives in symmetric memory (fsdp2, compiled); default: off"""
    replicate_size: int | None
    """groups of ranks that shard on their own (HSDP) [groups]; default: 1"""
    optimizer_in_backward: bool | None
    """the optimizer steps as gradients come (torchtune); default: off"""
    expandable_segments: bool | None
    """PyTorch's allocator with expandable segments (fsdp2, transformers, ddp, unsloth); default: as the runtime has
    it
    """
    liger: bool | None
    """Liger's kernels: norms, positions, feed-forward, loss in parts (transformers, ddp, deepspeed); default: off"""
    mean_packed_length: float | None
    """mean tokens, weighted by length, of the sequences that share a row and do not see each other: attention takes
    no longer (time alone) [tokens]; default: a row is one sequence
    """
    packing: bool | None
    """sequences packed into rows of sequence_length, each for itself (code of transformers, torchtune); default: off"""
    keep_outputs: bool | None
    """the training loop holds the logits until the next step, as `outputs = model(...)` does in a plain loop; the
    Trainer does not (transformers, ddp); default: off
    """
    runtime: str | None
    """framework that trains the model; a tool such as axolotl, trl or nemo leads to its own: fsdp2, megatron,
    transformers, ddp, deepspeed, nanotron, torchtune, unsloth, litgpt, megatron-fsdp, zero-bubble, hai-llm
    [name]; default: fsdp2; transformers on one accelerator
    """
    tokens: int | str | None
    """training tokens, such as 15T; or give epochs, or max_steps [tokens]"""
    epochs: float | None
    """passes over the data set [epochs]"""
    dataset_tokens: int | str | None
    """tokens of the data set [tokens]"""
    max_steps: int | str | None
    """optimizer steps [steps]"""
    deadline: float | str | None
    """30d, 2w, or the last day, such as 2027-01-31: how many accelerators make it? [time]"""
    budget: float | str | None
    """money that may be spent, such as 100k: how many tokens does it buy? [USD]"""
    budget_accelerator_hours: float | str | None
    """accelerator-hours that may be spent [accelerator-hours]"""
    price_per_accelerator_hour: float | None
    """price of one accelerator for one hour [USD]"""
    checkpoint_seconds: float | str | None
    """time that training stands still for a checkpoint, such as 30s [time]; default: its bytes / storage_bandwidth"""
    checkpoint_interval: float | str | None
    """training between two checkpoints, such as 30min [time]; default: Daly's optimum"""
    storage_bandwidth: float | str | None
    """bytes a second that all accelerators together write, such as 20GB/s [bytes/s]; default: 122 MB/s an
    accelerator, as for Llama 3
    """
    storage_read_bandwidth: float | str | None
    """bytes a second that all accelerators together read, such as 40GB/s [bytes/s]; default: storage_bandwidth"""
    restart_seconds: float | str | None
    """time from a failure until training goes on, such as 10min [time]; default: 10 minutes and reading the
    checkpoint
    """
    accelerator_mtbf: float | str | None
    """mean time between failures of one accelerator with its share of node and network, such as 5y [time]; default:
    as --failures says: 5.8 years of an H100, 3.4 of an A100
    """
    failures: str | None
    """published rate of failures, such as llama-3 or rsc-1 [name]; default: of the accelerator's generation, else
    llama-3
    """
    checkpoint_tier: str | None
    """where the checkpoint lies that a restart reads first: remote storage, local drives, or host memory with a copy
    on a peer [name]; default: remote
    """
    spares: int | None
    """spare nodes, which are paid for; where none is left, training waits for the repair of one [nodes]; default:
    always one at hand, not paid for
    """
    repair_seconds: float | str | None
    """with spares: time until a failed node is back, such as 8h [time]; default: 1 day"""
    elastic: bool | None
    """with spares: without a spare node, go on with fewer data-parallel replicas instead of waiting"""
    provider: str | None
    """whose machines are rented, such as AWS [name]; default: the cheapest offer known"""
    price_kind: str | None
    """on-demand, spot or reserved [kind]; default: on-demand"""
    region: str | None
    """where they are rented [name]; default: any"""
    exchange_rate: str | None
    """of offers in another currency, such as CNY=7.1 [per USD]; default: such offers are left out"""
    grid: float | str | None
    """a country, or grams of CO2e per kWh: what the electricity emits [name or g/kWh]"""
    pue: float | None
    """power of the building for a watt of the machines [factor]; default: 1.54, as the mean of halls"""
    power_share: float | None
    """of the machines' rated power that is drawn [0 to 1]; default: 0.82"""
    keep_checkpoints: int | None
    """checkpoints that lie on disk [checkpoints]; default: 3"""
    text_bytes_per_token: float | None
    """plain text that a token of the data set stands for [bytes]; default: 4, as of English"""
    electricity_usd_per_kwh: float | None
    """price of a kilowatt-hour: with the two after it buying is compared with renting [USD]"""
    network_share: float | None
    """switches, cables and racks, as a share of the machines' price [share]"""
    staff_usd_per_month: float | None
    """pay of those who look after all the machines [USD]"""
    used_share: float | None
    """of the time that one's own machines are in use and draw power [0 to 1]; default: 1"""
    machine_usd: float | None
    """price of one machine, of as many accelerators as a node [USD]; default: the cheapest for sale in the catalogue"""
    machine_watts: float | None
    """the most that one machine draws [watts]; default: as the catalogue has the machine"""
    depreciation_years: float | None
    """years over which one's own machines are written off [years]; default: 5"""
    colocation_usd_per_kw_month: float | None
    """room in a data centre for a kilowatt and month; 0 in one's own building [USD]; default: 184, as in North
    America
    """
    edge: str | None
    """a device for sale to compare too, such as rtx-4090: the same training on it alone [accelerator]"""


class PlanTrainingOptions(TrainOptions, total=False):
    """Options of `plan_training`."""

    goal: str | None
    """fastest, cheapest or fewest (accelerators) [name]; default: fastest of one machine; of several cheapest, or
    fewest where no price is known
    """
    top: int | None
    """plans, or machines, that are shown [plans]; default: 5"""
    max_accelerators: int | None
    """of a machine that is named without a number [accelerators]; default: 4096"""
    pareto: bool | None
    """also the machines that no other beats in time, money and number; default: off"""
    exhaustive: bool | None
    """estimate every valid plan, also those that a bound shows to be worse: the same answer, slower; default: off"""


class MachineOptions(TypedDict, total=False):
    """Options of `for_my_machine`."""

    context: int | None
    """tokens of a request, prompt and answer; 32k is 32768 [tokens]; default: the model's own"""
    concurrency: int | None
    """requests held at the same time, by all replicas together [requests]; default: one a replica"""
    weights: str | None
    """how weights are stored: bf16, fp8, int8, awq, nf4, mxfp4, q4_k, ... [precision]; default: the checkpoint's own"""
    kv_cache: str | None
    """how keys and values are stored: auto, or what the engine has: fp8, fp8_e5m2, nvfp4; int8, int4, int2
    [precision]; default: as wide as activations
    """
    tensor_parallel_size: int | None
    pipeline_parallel_size: int | None
    expert_parallel_size: int | None
    max_num_batched_tokens: int | None
    """tokens of one forward pass [tokens]; default: the engine's own"""
    max_num_seqs: int | None
    """requests that the engine runs at once [requests]; default: the engine's own"""
    gpu_memory_utilization: float | None
    """part of the memory that the engine takes [0 to 1]; default: vllm's 0.92"""
    enforce_eager: bool | None
    """without CUDA graphs (vllm, sglang)"""
    calibrated: bool | None
    engine: str | None
    """engine that serves the model; a tool such as lm-studio or vllm-ascend leads to its own: vllm, sglang,
    tensorrt-llm, llama.cpp, ollama, mlx, transformers, exllamav2, exllamav3, gpt-fast, openvino, lmdeploy,
    neuron, tgi, dynamo, dynamo-sglang, dynamo-trtllm, jetstream, mlc, generic, ktransformers, tei,
    sentence-transformers, infinity, faster-whisper, openai-whisper, whisper.cpp [name]; default: vllm; llama.cpp
    for GGUF, on CPUs and Apple
    """
    engine_version: str | None
    """an earlier version of the engine, whose rules differ: 0.5.5 of sglang, b4000 of llama.cpp [version]; default:
    the newest
    """
    attention_data_parallel_size: int | None
    """groups of ranks that each keep the attention for their own requests and share the experts [groups]; default: 1"""
    redundant_experts: int | None
    """copies of a layer's most used experts, which ranks hold beside their own (EPLB) [experts]; default: 0"""
    layers_on_accelerator: int | None
    """layers, the head counted as one, that are on the accelerator (llama.cpp) [layers]; default: all"""
    expert_layers_on_host: int | None
    """layers whose experts stay in host memory (llama.cpp) [layers]; default: none"""
    gpu_experts: int | None
    """experts of each layer on the GPU; the others stay in host memory (ktransformers) [experts]; default: none"""
    host_method: str | None
    """how experts in host memory are stored (ktransformers): AMXINT4, AMXINT8, RAWINT4, FP8, BF16, ... or the type
    of a GGUF file [method]; default: the checkpoint's 4 bits, else AMXINT4
    """
    host_cores: int | None
    """cores that multiply experts in host memory (ktransformers) [cores]; default: as many as belong to the host's
    bandwidth
    """
    gpu_prefill_tokens: int | None
    """tokens from which a prompt's experts are loaded onto the GPU, layer by layer (ktransformers) [tokens];
    default: none are
    """
    host_memory: int | None
    """memory of each host [bytes]; default: the catalogue's, where it is known"""
    weights_on_host: int | None
    """weights of each rank that stay in host memory (vllm, sglang) [bytes]; default: none"""
    speculative: str | None
    """how tokens are drafted (speculative decoding): eagle3, eagle, mtp, medusa, p-eagle, dflash, ngram, suffix,
    draft [method]; default: none
    """
    draft_model: str | None
    """the model that drafts, or the checkpoint of the head that does (speculative decoding) [name]; default: the
    model's own prediction layers; the published head
    """
    draft_tokens: int | None
    """tokens guessed ahead in each step [tokens]; default: none; with --speculative as its documentation shows"""
    acceptance: float | None
    """probability that a guessed token is taken [0 to 1]; default: as published"""
    denoising_steps: int | None
    """passes that denoise one answer, of a diffusion language model [passes]; default: as many as its tokens"""
    block_length: int | None
    """tokens of an answer that are denoised together, of a diffusion language model [tokens]; default: the model's
    own
    """
    denoising_cache: str | None
    """what passes that denoise find cached: Fast-dLLM's prefix or dual, for LLaDA and Dream [name]; default: the
    engine's own
    """
    lora_adapters: int | None
    """adapters held at the same time [adapters]; default: none"""
    lora_rank: int | None
    lora_active: int | None
    """adapters that the running requests use at the same time [adapters]; default: all that are held"""
    lora_on_host: int | None
    """adapters in host memory, all asked for equally often, from which others come to the GPU [adapters]; default:
    those that are held on the GPU
    """
    kv_offload: str | None
    """where KV caches of prefixes are kept that leave the GPU, with --cache-hit-rate the time to load them: host,
    disk, store [place]; default: nowhere
    """
    kv_offload_size: int | None
    """bytes of it for each replica [bytes]; default: host: twice the KV cache of the GPUs; disk: the node's drives"""
    storage_read_bandwidth: float | str | None
    inter_node_bandwidth: float | str | None
    intra_node_bandwidth: float | str | None
    host_bandwidth: float | str | None
    """bytes a second of the host's memory, such as 89.6GB/s: the time of layers that stay there [bytes/s]"""


class ServeOptions(MachineOptions, total=False):
    """Options of `serve` and `frontier`."""

    input_tokens: int | None
    """tokens of a prompt [tokens]; default: 1024, at most 3/4 of the context"""
    output_tokens: int | None
    """tokens of an answer [tokens]; default: 1024, at most what the context leaves"""
    images: int | None
    image_size: str | None
    video_seconds: float | str | None
    video_fps: float | None
    documents: int | None
    """documents to embed, pairs to score or files of speech to write down, such as 10M: time and price of all
    [documents]
    """
    audio_seconds: float | str | None
    """sound of each request, such as 30s, whose tokens come on top of --input-tokens; of a speech model the length
    of a file [time]; default: none; 600 of a speech model
    """
    request_rate: float | None
    """requests that arrive by themselves at all replicas together, instead of --concurrency [requests/s]"""
    cached_tokens: int | None
    """of a prompt that the engine has already (prefix caching) [tokens]; default: 0"""
    cache_hit_rate: float | None
    """share of the tokens of prompts that the prefix cache has already, instead of --cached-tokens [0 to 1];
    default: 0
    """
    prefill_replicas: int | None
    """of the replicas, those that compute prompts alone, whose caches go to the others (disaggregated) [replicas];
    default: all do both
    """
    kv_transfer: str | None
    """what carries caches from prefill to decode replicas: nixl, mooncake, mori, ucx, mpi [name]; default: the
    engine's own: nixl of vllm and tensorrt-llm, mooncake of sglang
    """
    spread: float | None
    """lengths are uniform from (1 - spread) of --input-tokens and --output-tokens to these [0 to 1]; default: alike
    on average; 0: all alike, as of a benchmark whose users stay in step
    """
    burstiness: float | None
    """of arrivals, as of `vllm bench serve`: 1 is Poisson's, less comes in bursts, more comes evenly [factor];
    default: 1
    """
    trace: str | None
    """requests of a file, CSV or JSON lines: when each came, and how long it is; they are simulated [file]"""
    ttft: float | str | None
    """highest TTFT allowed (time to first token), such as 500ms [time]"""
    tpot: float | str | None
    """highest TPOT allowed (time per output token), such as 30ms [time]"""
    percentile: str | None
    """of the requests that must keep within --ttft and --tpot: mean, p50, p90 or p99 [name]; default: mean; others
    are simulated
    """
    simulate: bool | None
    """request by request, with percentiles; default: off"""
    num_requests: int | None
    """requests of the simulation [requests]; default: ten for each user, at least 100; 10,000 that arrive by
    themselves
    """
    seed: int | None
    """of the simulation's lengths and arrivals [number]; default: 0"""
    price_per_accelerator_hour: float | None
    provider: str | None
    price_kind: str | None
    region: str | None
    exchange_rate: str | None
    grid: float | str | None
    pue: float | None
    power_share: float | None
    electricity_usd_per_kwh: float | None
    network_share: float | None
    staff_usd_per_month: float | None
    used_share: float | None
    machine_usd: float | None
    machine_watts: float | None
    depreciation_years: float | None
    colocation_usd_per_kw_month: float | None


class PlanServingOptions(ServeOptions, total=False):
    """Options of `plan_serving`."""

    goal: str | None
    vary: str | None
    """engine, kv-cache, batch, disaggregation, or all: also search these [names]; default: none of them"""
    max_accelerators: int | None
    budget: float | str | None
    top: int | None
    pareto: bool | None


class AnyOptions(TrainOptions, total=False):
    """Options of `max` and `place`: those of `train` or of `serve`."""

    context: int | None
    concurrency: int | None
    weights: str | None
    kv_cache: str | None
    max_num_batched_tokens: int | None
    max_num_seqs: int | None
    gpu_memory_utilization: float | None
    enforce_eager: bool | None
    engine: str | None
    engine_version: str | None
    attention_data_parallel_size: int | None
    redundant_experts: int | None
    layers_on_accelerator: int | None
    expert_layers_on_host: int | None
    gpu_experts: int | None
    host_method: str | None
    host_cores: int | None
    gpu_prefill_tokens: int | None
    host_memory: int | None
    weights_on_host: int | None
    speculative: str | None
    draft_model: str | None
    draft_tokens: int | None
    acceptance: float | None
    denoising_steps: int | None
    block_length: int | None
    denoising_cache: str | None
    lora_adapters: int | None
    lora_active: int | None
    lora_on_host: int | None
    kv_offload: str | None
    kv_offload_size: int | None
    host_bandwidth: float | str | None
    input_tokens: int | None
    output_tokens: int | None
    documents: int | None
    audio_seconds: float | str | None
    request_rate: float | None
    cached_tokens: int | None
    cache_hit_rate: float | None
    prefill_replicas: int | None
    kv_transfer: str | None
    spread: float | None
    burstiness: float | None
    trace: str | None
    ttft: float | str | None
    tpot: float | str | None
    percentile: str | None
    simulate: bool | None
    num_requests: int | None
    seed: int | None
