"""Values of options for random command lines: likely ones by the option's name, else by its unit."""

from functools import cache
from random import Random

from brute import catalogue
from tonnage.cli import face
from tonnage.estimate.load import options
from tonnage.estimate.options.plans import ATTENTION
from tonnage.estimate.plan import schedule
from tonnage.estimate.step import objective
from tonnage.runtimes.parts.base import METHODS

# An option that is refused alone, and what it comes with.
COMPANIONS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("lora_rank", "lora_targets", "lora_dropout"), ("--method", "lora")),
    "base_weights": ("--method", "qlora"),
    "trainable_layers": ("--method", "freeze"),
    **dict.fromkeys(
        (
            *("checkpoint_interval", "checkpoint_seconds", "accelerator_mtbf", "restart_seconds", "deadline"),
            *("failures", "checkpoint_tier", "spares", "elastic"),
        ),
        ("--tokens", "100B"),
    ),
    "repair_seconds": ("--tokens", "100B", "--spares", "2"),
    "epochs": ("--dataset-tokens", "1B"),
    "dataset_tokens": ("--epochs", "2"),
    **dict.fromkeys(("budget", "budget_accelerator_hours"), ("--price-per-accelerator-hour", "2")),
    **dict.fromkeys(("burstiness", "simulate"), ("--request-rate", "0.5")),
    "draft_tokens": ("--acceptance", "0.7"),
    "acceptance": ("--draft-tokens", "3"),
    "draft_model": ("--draft-tokens", "3"),
    "percentile": ("--tpot", "50ms"),
    "spread": ("--input-tokens", "512"),
    "cached_tokens": ("--input-tokens", "200k"),
    "cache_hit_rate": ("--input-tokens", "512"),
    **dict.fromkeys(
        ("layers_on_accelerator", "expert_layers_on_host"), ("--engine", "llama.cpp", "--weights", "q4_k_m")
    ),
    **dict.fromkeys(("gpu_experts", "host_method", "host_cores"), ("--engine", "ktransformers")),
    "gpu_prefill_tokens": ("--engine", "ktransformers", "--host-method", "FP8"),
    "weights_on_host": ("--engine", "vllm"),
    **dict.fromkeys(
        ("reduce_bucket_size", "allgather_bucket_size", "overlap_comm", "contiguous_gradients", "sub_group_size"),
        ("--runtime", "deepspeed"),
    ),
    **dict.fromkeys(
        (
            "stage3_prefetch_bucket_size",
            "stage3_max_live_parameters",
            "stage3_max_reuse_distance",
            "stage3_param_persistence_threshold",
            "zero_hpz_partition_size",
            "zero_quantized_weights",
            "zero_quantized_gradients",
            "stage3_gather_16bit_weights_on_model_save",
        ),
        ("--runtime", "deepspeed", "--zero-stage", "3"),
    ),
    **dict.fromkeys(
        (
            "virtual_pipeline_size",
            "first_stage_layers",
            "last_stage_layers",
            "pipeline_layout",
            "account_for_embedding_in_pipeline_split",
            "account_for_loss_in_pipeline_split",
        ),
        ("--runtime", "megatron", "--pipeline-parallel-size", "2"),
    ),
    **dict.fromkeys(
        (
            "tp_comm_overlap",
            "cuda_graph",
            "moe_token_dispatcher_type",
            "context_parallel_method",
            "recompute_modules",
            "mtp_layers",
            "offload_modules",
            "expert_capacity_factor",
        ),
        ("--runtime", "megatron"),
    ),
    **dict.fromkeys(("optimizer_offload_fraction", "host_update_bandwidth"), ("--offload-optimizer", "cpu")),
    "engine_memory_share": ("--objective", "grpo"),
    "teacher": ("--objective", "distillation"),
    "straggler_share": ("--straggler-slowdown", "1.3"),
    "float8_all_gather": ("--float8", "tensorwise"),
}
OUTPUT = frozenset(
    {"help", "lang", "json", "formulas", "html", "markdown", "plot", "advice", "verbose", "csv", "parquet"}
)  # cases have FORMS of these
# Options that ask the network or this machine, read files, name what a case has already, or run long.
LEFT_OUT = frozenset(
    {
        "model",
        "on",
        "what",
        "revision",
        "offline",
        "trace",
        "serve",
        "train",
        "for_my_machine",
        "inventory",
        "frontier",
        "points",
        "edge",
        "order",
        "exhaustive",
        "family",
        "num_requests",
        "leave",
        "join",
        "names",
        "help_all",
        "time_limit",
    }
)
PLACES = ("none", "cpu", "nvme")
BY_NAME: dict[str, tuple[str, ...]] = {
    "runtime": catalogue.RUNTIMES,
    "engine": catalogue.ENGINES,
    "precision": catalogue.RECIPES,
    "optimizer": catalogue.OPTIMIZER_NAMES,
    "weights": (*catalogue.WEIGHTS, "awq", "fp8", "int8"),
    "kv_cache": ("auto", "bf16", "fp8", "fp8_e5m2", "nvfp4", "int8", "int4"),
    "base_weights": ("nf4", "nf4-double", "fp4", "fp4-double", "int8"),
    "attention": tuple(ATTENTION),
    "method": METHODS,
    "objective": tuple(objective.OBJECTIVES),
    "pipeline_schedule": tuple(schedule.SCHEDULES),
    "percentile": tuple(options.PERCENTILES),
    "recompute": ("none", "selective", "selective-op", "full"),
    "loss": ("full", "chunked", "fused", "tiled"),
    "teacher": catalogue.kinds(),
    "draft_model": catalogue.kinds(),
    "offload_optimizer": PLACES,
    "offload_parameters": PLACES,
    "offload_activations": PLACES,
    "zero_stage": ("0", "1", "2", "3"),
    "price_kind": ("on-demand", "spot", "reserved"),
    "provider": ("AWS", "Lambda"),
    "grid": ("DE", "400"),
    "context_parallel_method": ("p2p", "a2a", "allgather"),
    "cuda_graph": ("none", "full", "attn,moe_router"),
    "optimizer_implementation": ("fused", "foreach", "for-loop"),
    "moe_token_dispatcher_type": ("alltoall", "flex"),
    "float8": ("none", "tensorwise", "rowwise"),
    "lora_targets": ("q_proj,v_proj", "all-linear"),
    "model_code": ("transformers", "torchtitan", "megatron"),
    "recompute_modules": ("core_attn", "mlp", "moe", "layernorm"),
    "runtime_version": ("core 0.14, TE 2.11",),
    "engine_version": ("0.6.4", "0.8.5"),
    "pipeline_layout": ("Et*3|(tt|)*29,m|L",),
    "vary": ("tp=1,2", "micro_batch_size=1,2", "recompute=none,full"),
    "stage3_max_live_parameters": ("1e9", "1e6"),
    "sort": ("cost", "price"),
    "micro_batch_size": ("1", "2", "4", "7"),
    "layers_on_accelerator": ("0", "1", "8", "200"),
    "expert_layers_on_host": ("0", "1", "8", "200"),
    "gpu_experts": ("0", "1", "8", "500"),
    "host_method": ("AMXINT4", "fp8", "q4_k_m", "none"),
    "draft_tokens": ("1", "3", "8"),
    "objective_of_search": ("time",),
    "first_stage_layers": ("1", "3", "7"),
    "last_stage_layers": ("1", "3", "7"),
    "trainable_layers": ("1", "2", "100"),
    "offload_modules": ("core_attn,moe_act",),
    "count": ("1", "4", "8"),
}
BY_UNIT: dict[str, tuple[str, ...]] = {
    "TOKENS": ("1", "7", "512", "4096", "4097", "32k", "131072", "1M", "2147483648"),
    "RANKS": ("1", "2", "3", "4", "8", "16"),
    "SEQUENCES": ("1", "2", "8", "64", "1000"),
    "MICRO-BATCHES": ("1", "2", "7", "64"),
    "CHUNKS": ("1", "2", "5", "10"),
    "LAYERS": ("1", "2", "5", "31", "100"),
    "HEADS": ("1", "2", "8", "32"),
    "EXPERTS": ("1", "2", "8", "64"),
    "BYTES": ("0", "1", "1GiB", "10GiB", "500GB"),
    "BYTES/S": ("1", "1MB/s", "20GB/s", "3TB/s"),
    "SHARE": ("0", "0.01", "0.5", "1"),
    "FACTOR": ("0.5", "1", "1.34", "4"),
    "VALUE": ("0", "0.01", "0.3", "0.7", "0.99", "1"),
    "REQUESTS": ("1", "3", "64", "1000", "1000000"),
    "REQUESTS/S": ("0.001", "0.5", "10", "1e6"),
    "REPLICAS": ("1", "2", "8"),
    "GROUPS": ("1", "2", "4", "8"),
    "RANK": ("1", "8", "64", "1024"),
    "ADAPTERS": ("1", "4", "100"),
    "ELEMENTS": ("1", "64", "1024", "5000", "1e8"),
    "TIME": ("0", "1e-9", "20ms", "1s", "1h", "30d"),
    "USD": ("0", "0.01", "3", "10000"),
    "EPOCHS": ("1", "3", "0.5"),
    "STEPS": ("1", "1000", "1e9"),
    "ACCELERATOR-HOURS": ("1", "1e6"),
    "CHECKPOINTS": ("0", "1", "100"),
    "WATTS": ("1", "10000"),
    "YEARS": ("0.1", "5"),
    "PROCESSES": ("0", "1", "64"),
    "NUMBER": ("0", "1", "12345"),
    "ACCELERATORS": ("1", "8", "64"),
    "PRECISION": catalogue.WEIGHTS,
}


class Choice:
    """An option of a verb, with the values that are drawn for it, () for a switch; and what it comes with, mostly."""

    def __init__(self, flag: str, values: tuple[str, ...], companions: tuple[str, ...] = ()) -> None:
        self.flag, self.values, self.companions = flag, values, companions

    def drawn(self, random: Random) -> tuple[str, ...]:
        beside = self.companions if random.random() < 0.9 else ()
        return (self.flag, random.choice(self.values), *beside) if self.values else (self.flag, *beside)


@cache
def choices_of(verb: str, head: tuple[str, ...] = ()) -> tuple[Choice, ...]:
    """The options of one form of a verb: all that the parser has, so that a new option is tried without a line here."""
    _module, parser = face(verb, head)
    found = []
    for action in parser._actions:
        if not action.option_strings or action.dest in OUTPUT | LEFT_OUT:
            continue
        if action.nargs == 0:
            found += [
                Choice(flag, (), COMPANIONS.get(action.dest, ()))
                for flag in action.option_strings
                if flag.startswith("--")
            ]
        else:
            values = BY_NAME.get(action.dest) or BY_UNIT.get(str(action.metavar), ("1", "2", "8"))
            found.append(Choice(action.option_strings[0], values, COMPANIONS.get(action.dest, ())))
    return tuple(found)


@cache
def flags_of(verb: str, head: tuple[str, ...] = ()) -> frozenset[str]:
    """The flags that this form of a verb knows."""
    return frozenset(face(verb, head)[1]._option_string_actions)


def random_options(verb: str, random: Random, *head: str, most: int = 5) -> tuple[str, ...]:
    """At most so many options, each with a value; a third of the time the options that decide most come first."""
    drawn: dict[str, tuple[str, ...]] = {}
    for choice in random.sample(choices_of(verb, head), min(random.randint(0, most), random.randint(0, most))):
        drawn[choice.flag] = choice.drawn(random)
    usual = [choice for choice in choices_of(verb, head) if choice.flag in USUAL]
    for choice in random.sample(usual, random.randint(0, min(3, len(usual)))):
        drawn[choice.flag] = choice.drawn(random)
    return tuple(word for words in drawn.values() for word in words)


USUAL = (
    "--runtime",
    "--engine",
    "--weights",
    "--kv-cache",
    "--context",
    "--users",
    "--concurrency",
    "--sequence-length",
    "--recompute",
    "--tensor-parallel-size",
    "--pipeline-parallel-size",
    "--method",
    "--optimizer",
    "--precision",
    "--offload-optimizer",
    "--input-tokens",
    "--output-tokens",
    "--request-rate",
    "--tokens",
)
