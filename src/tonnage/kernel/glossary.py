"""One letter, one meaning: every formula argument is declared here and nowhere else."""

from msgspec import Struct


class Symbol(Struct, frozen=True):
    """A letter of the formulas: its long name everywhere else, its unit, its meaning."""

    letter: str
    name: str
    unit: str
    meaning: str


class Word(Struct, frozen=True):
    """A word of the answers that no letter stands for. `see`: formulas and rules that make its figure; `also`: other
    ways to write it.
    """

    name: str
    unit: str
    meaning: str
    source: str
    see: tuple[str, ...]
    also: tuple[str, ...] = ()


SYMBOLS: dict[str, Symbol] = {
    symbol.letter: symbol
    for symbol in (
        # sizes of a model
        Symbol("N", "num_parameters", "parameters", "parameters that a figure is about"),
        Symbol("Na", "num_active_parameters", "parameters", "parameters that one token passes through"),
        Symbol("L", "num_layers", "layers", "transformer layers, or the layers of one kind"),
        Symbol("h", "hidden_size", "elements", "width of the residual stream"),
        Symbol("a", "num_attention_heads", "heads", "query heads"),
        Symbol("k", "num_key_value_heads", "heads", "key/value heads, or the heads that a cache can be split over"),
        Symbol("dh", "head_dim", "elements", "width of one attention head"),
        Symbol("V", "vocab_size", "tokens", "rows of the token embedding"),
        Symbol("n_out", "out_features", "elements", "rows of a tensor: output features"),
        Symbol("n_in", "in_features", "elements", "columns of a tensor: input features"),
        Symbol("n_copies", "num_copies", "tensors", "equal tensors, such as the experts of a layer"),
        Symbol("x", "elements_per_token", "elements", "numbers kept or computed for each token"),
        Symbol("y", "flops_per_token", "FLOP", "arithmetic for each token, or for each token and key"),
        Symbol("r", "cache_window", "tokens", "tokens that a layer's cache keeps at most"),
        Symbol("j", "cache_stride", "tokens", "tokens that share one entry of a layer's cache; 1: each has its own"),
        # the batch
        Symbol("s", "sequence_length", "tokens", "tokens per sequence"),
        Symbol("b", "micro_batch_size", "sequences", "sequences per forward pass of one replica"),
        Symbol("m", "num_microbatches", "micro-batches", "micro-batches of one replica in one step"),
        Symbol("D", "num_tokens", "tokens", "training tokens"),
        Symbol("T", "num_batched_tokens", "tokens", "tokens in one forward pass of a serving engine"),
        Symbol("R", "num_requests", "requests", "requests held at the same time"),
        Symbol("Rx", "expert_rows", "rows", "copies of tokens that arrive at the experts of a rank"),
        Symbol("B", "block_size", "tokens", "tokens of one block of a paged cache"),
        Symbol(
            "n_batches", "batches_in_flight", "batches", "forward passes that an engine has begun and not yet settled"
        ),
        Symbol("n_slots", "slots_per_request", "slots", "recurrent states that an engine sets aside for each request"),
        Symbol("n_graph", "largest_graph", "requests", "the largest batch whose decoding is captured"),
        Symbol(
            "n_dp",
            "attention_groups",
            "groups",
            "groups of ranks that each keep the attention of the model for their own requests",
        ),
        Symbol("A", "num_adapters", "adapters", "adapters that an engine holds at the same time"),
        Symbol("rank", "adapter_rank", "", "rank of a low-rank adapter"),
        Symbol("g", "layers_per_group", "layers", "layers that share the blocks of a paged cache"),
        # how it is spread
        Symbol("t", "tensor_parallel_size", "ranks", "tensor-parallel ranks"),
        Symbol("p", "pipeline_parallel_size", "ranks", "pipeline stages"),
        Symbol("v", "virtual_pipeline_size", "chunks", "model chunks that a pipeline rank interleaves"),
        Symbol("i", "pipeline_rank", "", "pipeline stage, counted from 0"),
        Symbol("c", "context_parallel_size", "ranks", "context-parallel ranks"),
        Symbol("e", "expert_parallel_size", "ranks", "expert-parallel ranks"),
        Symbol("q", "expert_tensor_parallel_size", "ranks", "tensor-parallel ranks inside an expert"),
        Symbol("mu", "vocabulary_multiple", "tokens", "rows of the token table on one rank are a multiple of this"),
        Symbol("z", "num_shards", "ranks", "ranks over which ZeRO shards this state; 1: every rank keeps it"),
        Symbol("l", "layers_on_rank", "layers", "layers of one kind that a rank holds"),
        Symbol("xi", "element_limit", "elements", "elements that a setting allows at most"),
        Symbol("Nu", "parameters_at_work", "parameters", "parameters that the module at work needs"),
        Symbol("phi", "offloaded_share", "", "share of a state that lives in host memory"),
        Symbol("ranks", "ranks_per_node", "ranks", "ranks that share a node's host memory"),
        Symbol("d", "data_parallel_size", "ranks", "replicas that see different sequences"),
        Symbol("n", "num_accelerators", "accelerators", "accelerators that work together"),
        # a pass of a served model
        Symbol("E", "num_experts", "experts", "routed experts of a layer"),
        Symbol("k_top", "experts_per_token", "experts", "routed experts that one token passes through"),
        Symbol("K", "num_keys", "keys", "pairs of a token and a key that it attends to"),
        Symbol("n_draft", "draft_tokens", "tokens", "tokens guessed ahead in a pass"),
        Symbol("p_take", "acceptance", "", "probability that a guessed token is taken"),
        Symbol("sum_take", "accepted_positions", "", "sum over drafted tokens of the share of passes that accept each"),
        Symbol("L_tree", "tree_tokens", "tokens", "tokens of a pass that checks a tree of candidates"),
        Symbol("share_chain", "chain_share", "", "share of the drafts of a tree that a chain's acceptance is"),
        Symbol("tau_read", "memory_seconds", "seconds", "time that reading from memory needs"),
        Symbol("tau_math", "compute_seconds", "seconds", "time that arithmetic needs"),
        # a replica under load
        Symbol("X", "requests_per_second", "requests/s", "requests that come, or that are answered, in a second"),
        Symbol("X_max", "largest_rate", "requests/s", "requests a second that a replica can answer"),
        Symbol("O", "output_tokens", "tokens", "tokens of an answer"),
        Symbol("s_mean", "mean_context", "tokens", "tokens of context of a request that decodes, on average"),
        Symbol("s_hit", "cached_tokens", "tokens", "tokens of a prompt that the engine has already"),
        Symbol("share_hit", "cache_hit_rate", "", "share of the tokens of prompts that the prefix cache has already"),
        Symbol("D_pool", "pool_tokens", "tokens", "tokens of cache that a replica holds"),
        Symbol(
            "cv2", "squared_variation", "", "squared coefficient of variation of a length, or of the time of a service"
        ),
        Symbol(
            "scv", "burstiness", "", "squared coefficient of variation of the times between arrivals; 1 is Poisson's"
        ),
        Symbol("n_new", "prompts_per_pass", "prompts", "prompts that come with a forward pass"),
        Symbol("n_pre", "prompt_passes", "passes", "forward passes that the prompts in question take"),
        Symbol("n_rounds", "rounds", "requests", "requests that each user of a benchmark sends, one after the other"),
        Symbol("share_m", "prompt_pass_share", "", "share of the forward passes that have prompts"),
        Symbol("share_w", "waiting_share", "", "share of the requests that wait for a place"),
        Symbol("tau_d", "decode_seconds", "seconds", "time of a forward pass in which all requests decode"),
        Symbol("tau_m", "prompt_seconds", "seconds", "time of a forward pass that has prompts"),
        Symbol("n_prompts", "prompts_per_step", "prompts", "prompts of one step of reinforcement learning"),
        Symbol("G", "num_generations", "completions", "completions of one prompt"),
        Symbol("lmbda", "lmbda", "", "share of the micro-batches whose completions the student generates"),
        Symbol("n_turns", "rollout_turns", "turns", "turns of a rollout that calls tools"),
        Symbol("n_tensors", "num_tensors", "tensors", "tensors of a model, each expert's by itself"),
        Symbol(
            "kappa_loop",
            "loop_factor",
            "",
            "seconds of a phase of reinforcement learning over its kernels, at a peak of P_ref",
        ),
        Symbol("share_gap", "share_between_phases", "", "part of a step in which none of its phases runs"),
        Symbol("tau_away", "seconds_away", "seconds", "time from leaving a server until coming back to it"),
        Symbol("spread", "spread", "", "lengths are uniform from (1 - spread) of the longest to the longest"),
        Symbol("load", "offered_load", "", "share of the time in which a server is busy"),
        Symbol("tps", "tokens_per_second", "tokens/s", "tokens in a second"),
        Symbol(
            "z_free", "free_places", "", "places that are free on average, in standard deviations of the number taken"
        ),
        # storage and rates
        Symbol("w", "bytes_per_element", "bytes", "bytes of one stored number, its share of scales included"),
        Symbol("Q", "bits_per_weight", "bits", "bits of one stored weight"),
        Symbol("M", "bytes_in_question", "bytes", "an amount of memory that a rule starts from"),
        Symbol("U", "accelerator_memory", "bytes", "memory of one accelerator"),
        Symbol("P", "peak_flops_per_second", "FLOP/s", "dense peak of one accelerator"),
        Symbol("P_ref", "reference_peak", "FLOP/s", "dense peak of the accelerator on which a factor was measured"),
        Symbol("P_int", "peak_integer_rate", "FLOP/s", "dense peak of products in 8-bit integers"),
        Symbol("P_lanes", "peak_lane_rate", "FLOP/s", "peak in fp32 without tensor cores"),
        Symbol("n_scale", "scale_operations", "operations", "operations that scale a sum of 32 products of integers"),
        Symbol("n_reuse", "flop_per_operand", "FLOP", "products and sums that one operand serves in a tile"),
        Symbol("n_unpack", "unpack_operations", "operations", "operations that unpack a weight into a tile"),
        Symbol("n_weights", "weights_moved", "weights", "weights that are written out in 16 bits, or unpacked"),
        Symbol("n_pairs", "scores", "scores", "scores of attention, one of each query, key and head"),
        Symbol("u", "utilization", "", "share of the peak, or of the memory, that is used"),
        Symbol("C", "compute", "FLOP", "training compute"),
        Symbol("W", "bandwidth", "bytes/s", "bytes a second that a link or a disk moves"),
        Symbol(
            "W_out", "bandwidth_between_nodes", "bytes/s", "bytes a second that each accelerator sends to other nodes"
        ),
        Symbol("W_host", "host_memory_bandwidth", "bytes/s", "bytes a second that a program reads from host memory"),
        Symbol("nodes", "num_nodes", "nodes", "nodes that a group of ranks spans"),
        Symbol("W_copy", "copy_bandwidth", "bytes/s", "bytes a second that an accelerator copies in its own memory"),
        Symbol(
            "n_turn",
            "microbatches_per_round",
            "micro-batches",
            "micro-batches that pass one chunk of a pipeline stage before the next chunk",
        ),
        Symbol("n_pass", "passes", "passes", "times that a message goes round a ring"),
        Symbol("lat", "latency", "seconds", "time until the first byte of a message arrives"),
        Symbol("lat_base", "start", "seconds", "time that a collective takes to start, whatever is sent"),
        Symbol("n_inner", "steps_inside", "steps", "steps of a collective inside of nodes, one after the other"),
        Symbol("n_across", "steps_between", "steps", "steps of a collective between nodes, one after the other"),
        Symbol("lat_in", "step_inside", "seconds", "latency of one step inside of a node"),
        Symbol("lat_out", "step_between_nodes", "seconds", "latency of one step between nodes"),
        Symbol("lat_gap", "message_gap", "seconds", "time that one more message takes, however short it is"),
        Symbol("kappa", "pipelining", "", "share of a latency that each chunk of a long message pays again"),
        Symbol("tau_in", "seconds_inside", "seconds", "time that the links inside of a node need"),
        Symbol("tau_out", "seconds_between_nodes", "seconds", "time that the links between nodes need"),
        Symbol("tau", "duration", "seconds", "time available or taken"),
        Symbol("rho", "overhead_factor", "", "what a rule adds on top, as a factor"),
        # a whole run
        Symbol("S", "num_steps", "steps", "optimizer steps of a run"),
        Symbol("n_epochs", "epochs", "epochs", "times that a run sees its data set"),
        Symbol("D_set", "dataset_tokens", "tokens", "tokens of a data set"),
        Symbol("tau_step", "step_time", "seconds", "time of one step while nothing fails"),
        Symbol("tau_f", "forward_seconds", "seconds", "time of forward passes of one micro-batch"),
        Symbol(
            "tau_b",
            "input_gradient_seconds",
            "seconds",
            "time of backward passes of one micro-batch, where they are split of those for inputs",
        ),
        Symbol(
            "tau_w", "weight_gradient_seconds", "seconds", "time of backward passes for weights, of one micro-batch"
        ),
        Symbol("kappa", "straggler_slowdown", "", "how many times longer a slow node takes for a step"),
        Symbol("q_slow", "straggler_share", "", "share of nodes that are slow"),
        Symbol("f_site", "calibration", "", "measured over estimated, as own runs say"),
        Symbol("n_hours", "accelerator_hours", "accelerator-hours", "hours of one accelerator"),
        Symbol("eta", "goodput", "", "share of a run's time in which steps are made that last"),
        Symbol("F", "num_failures", "failures", "times that a run was interrupted and nobody meant it to be"),
        Symbol("MTBF", "mean_time_between_failures", "seconds", "time from one failure to the next, on average"),
        Symbol("delta", "checkpoint_seconds", "seconds", "time that training stands still for a checkpoint"),
        Symbol("tau_c", "checkpoint_interval", "seconds", "training between two checkpoints"),
        Symbol("tau_r", "restart_seconds", "seconds", "time from a failure until training goes on"),
        Symbol("share_lost", "checkpoint_loss_share", "", "share of the failures that lose the nearest checkpoint"),
        Symbol("share_node", "node_loss_share", "", "share of the failures after which a node must be repaired"),
        Symbol("tau_rep", "repair_seconds", "seconds", "time until a failed node is back"),
        Symbol("n_rep", "nodes_in_repair", "nodes", "nodes in repair, on average, while training never waits"),
        Symbol("n_spare", "spares", "nodes", "nodes that wait to replace failed ones"),
        Symbol("n_gone", "replicas_of_a_node", "replicas", "data-parallel replicas that stop with one node"),
        # scaling laws
        Symbol("E_inf", "irreducible_loss", "nats", "loss of a perfect model of the text"),
        Symbol("A_N", "model_loss_scale", "nats", "scale of the loss that more parameters remove"),
        Symbol("B_D", "data_loss_scale", "nats", "scale of the loss that more data removes"),
        Symbol("alpha", "model_loss_exponent", "", "exponent of the loss over parameters"),
        Symbol("beta", "data_loss_exponent", "", "exponent of the loss over tokens"),
        # money
        Symbol("USD_buy", "purchase_price", "USD", "price of buying the machine"),
        Symbol("USD_rent", "rent_per_second", "USD", "rent of the same machine for one second"),
        Symbol("USD_budget", "budget", "USD", "money that may be spent"),
        Symbol("USD_hour", "price_per_accelerator_hour", "USD", "price of one accelerator for one hour"),
        Symbol("USD_all", "cost_per_hour", "USD", "cost of all machines for one hour"),
        Symbol("USD_in", "input_price", "USD", "price of a million tokens of prompts of a hosted model"),
        Symbol(
            "USD_hit",
            "cached_input_price",
            "USD",
            "price of a million tokens of prompts that a hosted model has already",
        ),
        Symbol("USD_out", "output_price", "USD", "price of a million tokens of answers of a hosted model"),
        Symbol("n_req", "requests_per_day", "requests", "requests of a day"),
        Symbol("USD_req", "request_price", "USD", "price of one request to a hosted model"),
        Symbol("USD_kwh", "electricity_price", "USD", "price of a kilowatt-hour"),
        Symbol("USD_hour", "price_per_hour", "USD", "price of one rented machine for one hour"),
        Symbol("USD_run", "running_cost", "USD", "cost of one second of a machine that one owns"),
        Symbol("USD_kw", "colocation_price", "USD", "price of room for one kilowatt in a data centre for one month"),
        Symbol("USD_staff", "staff_cost", "USD", "pay of the people who look after the machines, for one month"),
        Symbol("amount", "amount_in_currency", "", "an amount of money in a currency"),
        Symbol("fx", "exchange_rate", "", "units of a currency that one US dollar buys"),
        Symbol("nodes", "num_machines", "machines", "machines that are rented or owned"),
        Symbol("n_node", "accelerators_per_machine", "accelerators", "accelerators of one machine"),
        Symbol("share_net", "network_share", "", "switches, cables and racks, as a share of the price of the machines"),
        Symbol("years", "depreciation_years", "years", "years over which a purchase is written off"),
        # power and disks
        Symbol("pw", "power", "watts", "electric power drawn"),
        Symbol("pue", "power_usage_effectiveness", "", "power drawn by the building for each watt of the machines"),
        Symbol("en", "energy", "joules", "electric energy"),
        Symbol("gco2", "carbon_intensity", "gCO2e", "emissions of a kilowatt-hour of a grid"),
        Symbol("drives", "num_drives", "drives", "drives that work together"),
        Symbol("cap", "drive_capacity", "bytes", "what one drive holds"),
    )
}
WORDS: dict[str, Word] = {
    word.name: word
    for word in (
        Word(
            "checkpoint",
            "bytes",
            "what a run needs to go on: weights as the optimizer updates them (fp32 in mixed precision) and "
            "the optimizer's states, of all "
            "that trains, with adapters not of the base; gradients, activations and copies in 16 bit are not "
            "in it; the sum of all ranks, "
            "however they are sharded",
            "DocumentD, section on training",
            ("state_bytes", "checkpoint_rule", "D7"),
        ),
        Word(
            "error_band",
            "",
            "factors between which eight in ten published measurements lie of what is needed; a verdict asks "
            "whether its high end fits, and "
            "is tight where what is usable lies inside",
            "docs/accuracy.md",
            (),
        ),
        Word(
            "MFU",
            "",
            (
                "FLOP of the model in a step, without what is run again, as a share of what the dense peak of "
                "all accelerators would do in its time"
            ),
            "Chowdhery2022, app. B",
            ("flops_utilization",),
            ("model FLOPs utilization",),
        ),
        Word(
            "HFU",
            "",
            (
                "FLOP that a step does, with what is run again, as a share of what the dense peak of all "
                "accelerators would do in its time"
            ),
            "Chowdhery2022, app. B",
            ("flops_utilization",),
            ("hardware FLOPs utilization",),
        ),
        Word(
            "TFLOPS",
            "10^12 FLOP/s",
            "FLOP of a step over its seconds and its accelerators, as published speeds have it: MFU times "
            "the dense peak, or HFU times it "
            "where what is run again counts; --formulas has the numbers of those who count otherwise",
            "Narayanan2021, sec. 5.1",
            ("flops_utilization", "gpt_training_flops"),
            ("TFLOPS per GPU", "TFLOPS per accelerator"),
        ),
        Word(
            "bubble",
            "seconds",
            (
                "what a stage of a pipeline waits in a step while the pipeline fills and drains; each schedule "
                "has its own formula"
            ),
            "Huang2019, sec. 2.3; Narayanan2021, sec. 2.2",
            (
                "bubble_seconds",
                "pipeline_wait_seconds",
                "gpipe_bubble_seconds",
                "zero_bubble_seconds",
                "zbv_bubble_seconds",
                "dualpipev_bubble_seconds",
            ),
            ("pipeline bubble",),
        ),
        Word(
            "ttft",
            "seconds",
            (
                "time to first token: from the arrival of a request until the first token of its output. It includes "
                "queueing and prefill. ttft_seconds is the mean under the load, ttft_seconds_alone that of one user "
                "on an idle replica, --ttft the highest that is allowed"
            ),
            "Agrawal2024, sec. 2.4",
            ("work_left_seconds",),
            ("ttft_seconds", "time to first token", "time to the first token", "ttft_seconds_alone"),
        ),
        Word(
            "tpot",
            "seconds",
            (
                "time per output token: the time of an output after its first token, divided by the tokens after "
                "the first. tpot_seconds is the mean under the load, tpot_seconds_alone that of one user on an idle "
                "replica, --tpot the highest that is allowed"
            ),
            "Agrawal2024, sec. 2.4",
            ("later_tokens_seconds", "user_tokens_per_second", "mean_pass_seconds"),
            ("tpot_seconds", "time per output token", "time of each later token", "tpot_seconds_alone"),
        ),
        Word(
            "itl",
            "seconds",
            (
                "inter-token latency: the time between two outputs of tokens to a user. With draft models one step "
                "gives several tokens at once, and it is longer than TPOT"
            ),
            "Agrawal2024, sec. 2.4",
            ("tokens_per_pass",),
            ("itl_seconds", "inter-token latency", "time between two tokens"),
        ),
        Word(
            "goodput_share",
            "share",
            (
                "requests of a simulation that keep within --ttft and --tpot, as a share of all; goodput of "
                "serving is as many requests a second"
            ),
            "Agrawal2024, sec. 2.4",
            (),
            ("goodput of requests", "requests within the limits"),
        ),
        Word(
            "frontier",
            "",
            (
                "configurations that no other one beats in both speed per user and throughput per GPU "
                "(the Pareto frontier): serve --frontier tries tensor sizes, precisions and numbers of users"
            ),
            "docs/commands/serve.md",
            (),
            ("serving frontier",),
        ),
        Word(
            "GEMMs",
            "seconds",
            (
                "matrix products with weights: each takes as long as its arithmetic or as reading its weights, "
                "whichever is longer"
            ),
            "docs/accuracy.md",
            (),
            ("products", "matrix products"),
        ),
        Word(
            "kernel launches",
            "seconds",
            ("launching kernels, and the short kernels between the GEMMs; CUDA graphs make it small in decode steps"),
            "docs/accuracy.md",
            (),
            ("kernels",),
        ),
        Word(
            "communication",
            "seconds",
            "all-reduces, all-to-alls and sends between the ranks that share matrices, experts or stages",
            "docs/accuracy.md",
            (),
            ("exchanges",),
        ),
        Word(
            "scheduler",
            "seconds",
            "work of the engine on the host between two steps: scheduling, sampling and preparing inputs",
            "docs/accuracy.md",
            (),
            ("engine overhead",),
        ),
        Word(
            "CUDA graphs",
            "bytes",
            (
                "memory of the engine's captured graphs, which replay decode steps without launching each kernel "
                "from the host; --enforce-eager turns them off"
            ),
            "vLLM, vllm/config/compilation.py: cudagraph_mode; SGLang, sglang/srt/server_args.py: --cuda-graph-max-bs",
            ("graph_reserve_bytes",),
            ("captured graphs",),
        ),
        Word(
            "NCCL buffers",
            "bytes",
            "buffers that NCCL (RCCL on AMD) keeps on each rank for its communicators",
            "docs/accuracy.md",
            (),
            ("communicators", "RCCL buffers"),
        ),
        Word(
            "usable_memory",
            "",
            (
                "where the memory that a verdict counts on starts from: the total that the runtime gives "
                "programs, else what the driver reports, else the memory as sold; less what the system and "
                "--reserve keep"
            ),
            "docs/catalogue.md",
            (),
            ("usable_bytes",),
        ),
    )
}
