"""What torchtitan's keys of numbers, ranks and batches mean, and the defaults behind them."""

from typing import Any

from tonnage.interchange.parts.recipes import torchtitan_keys as keys
from tonnage.interchange.parts.recipes.torchtitan_registry import Recipe
from tonnage.interchange.reading import FROM_ONE, Reading
from tonnage.kernel.errors import InvalidInput, UnknownName
from tonnage.kernel.message import Message

DTYPES = {"bfloat16": "bf16", "float32": "fp32"}


class Defaults:
    """Values of keys: those of the command, else of the config, else torchtitan's own, noted as assumed."""

    def __init__(self, r: Reading, recipe: Recipe | None, config: str):
        self.r, self.recipe = r, recipe
        self.of_config = recipe.sets if recipe is not None else {}
        self.why = Message("config {config} of torchtitan {version}", config=config, version=r.version)

    def put(self, key: str, option: str, value: Any = None) -> None:
        """The option that a key decides; `value`: what its own one means there."""
        if self.r.has(key):
            self.r.put(option, value, key)
        else:
            is_of_config = key in self.of_config
            shown = self.of_config.get(key, keys.DEFAULTS.get(key))
            if is_of_config or value is not None:
                self.r.assume(key, shown, option if value is not None else "", self.why if is_of_config else "")
            if option and value is not None:
                self.r.question[option] = value

    def raw(self, key: str) -> Any:
        if not self.r.has(key):
            return self.of_config.get(key, keys.DEFAULTS.get(key))
        return self.r.get(key)

    def integer(self, key: str) -> int:
        return self.r.integer(key, self.raw(key))

    def flag(self, key: str) -> bool:
        return self.r.flag(key, bool(self.raw(key)))


def read_numerics(r: Reading, own: Defaults) -> None:
    stored = r.choice("training.dtype", DTYPES, "fp32")
    computed = r.choice("training.mixed_precision_param", DTYPES, "bf16")
    recipe = "bf16" if stored == "bf16" else "bf16-mixed" if computed == "bf16" else "fp32"
    r.put("precision", recipe, "training.dtype", "training.mixed_precision_param")
    own.put("training.dtype", "precision", recipe)
    if own.flag("training.enable_cpu_offload"):
        r.put("offload_parameters", "cpu", "training.enable_cpu_offload")
        r.put("offload_optimizer", "cpu", "training.enable_cpu_offload")
    r.ignore(["training.enable_cpu_offload"])
    for key in ("dataloader.num_workers", "training.dataloader.num_workers"):
        if r.has(key):
            r.put("data_loader_workers", r.integer(key), key)


def read_sizes(r: Reading, own: Defaults) -> None:
    section = "parallelism."
    table = {
        "tensor_parallel_degree": "tensor_parallel_size",
        "pipeline_parallel_degree": "pipeline_parallel_size",
        "context_parallel_degree": "context_parallel_size",
        "expert_parallel_degree": "expert_parallel_size",
        "data_parallel_replicate_degree": "replicate_size",
    }
    sizes = {}
    for name, option in table.items():
        size = sizes[option] = own.integer(section + name)
        if size < 1:
            raise r.wrong(section + name, FROM_ONE)
        own.put(section + name, option, size if size > 1 else None)
    shards = own.integer(f"{section}data_parallel_shard_degree")
    r.put("replicate_size", None, f"{section}data_parallel_shard_degree")
    product = shards
    for option in ("tensor_parallel_size", "pipeline_parallel_size", "context_parallel_size", "replicate_size"):
        product *= sizes[option]
    if shards > 0 and product != r.num_accelerators:
        raise InvalidInput(
            "{file}: shards {shards} x replicas {replicas} x TP {tensor} x CP {context} x PP {pipeline} are {product} "
            "ranks, of {count} accelerators.",
            file=r.source.name,
            shards=shards,
            replicas=sizes["replicate_size"],
            tensor=sizes["tensor_parallel_size"],
            context=sizes["context_parallel_size"],
            pipeline=sizes["pipeline_parallel_size"],
            product=product,
            count=r.num_accelerators,
        )
    if shards == 1 and sizes["replicate_size"] > 1:
        r.unsure(f"{section}data_parallel_replicate_degree", "DDP of torchtitan is not estimated: HSDP is")
    policy = f"{section}fsdp_reshard_after_forward"
    r.put("zero_stage", r.choice(policy, {"default": None, "always": 3, "never": 2}), policy)
    sequence = f"{section}enable_sequence_parallel"
    if r.has(sequence):
        r.put("sequence_parallel", None if r.flag(sequence) else False, sequence)
    cut = f"{section}expert_tensor_parallel_degree"
    if r.has(cut):
        r.put("expert_tensor_parallel_size", r.integer(cut) if sizes["expert_parallel_size"] > 1 else None, cut)
    backend = f"{section}expert_parallel_comm_backend"
    kinds = {"standard": None, "deepep": "flex", "hybridep": "flex"}
    r.put("moe_token_dispatcher_type", r.choice(backend, kinds), backend)


def read_batch(r: Reading, own: Defaults) -> None:
    own.put("training.seq_len", "sequence_length", own.integer("training.seq_len"))
    local = own.integer("training.local_batch_size")
    if local < 1:
        raise r.wrong("training.local_batch_size", FROM_ONE)
    stages = int(r.question.get("pipeline_parallel_size", 1))
    size_key = "parallelism.pipeline_parallel_microbatch_size"
    micro = local
    if stages > 1:
        micro = r.integer(size_key, 1)
        if micro < 1 or local % micro:
            raise r.wrong(size_key, Message("a divisor of local_batch_size {local}", local=local))
        r.put("micro_batch_size", micro, size_key)
    r.ignore([size_key])
    own.put("training.local_batch_size", "micro_batch_size", micro)
    count = local // micro
    total = r.integer("training.global_batch_size", -1)
    if total > 0:
        replicas = r.num_accelerators
        for option in ("tensor_parallel_size", "pipeline_parallel_size", "context_parallel_size"):
            replicas //= int(r.question.get(option, 1)) or 1
        at_once = local * max(replicas, 1)
        if total % at_once:
            raise r.wrong(
                "training.global_batch_size",
                Message(
                    "a multiple of local_batch_size {local} x {replicas} data-parallel ranks",
                    local=local,
                    replicas=replicas,
                ),
            )
        count *= total // at_once
    r.put("num_microbatches", count, "training.global_batch_size", "training.local_batch_size")
    if r.has("training.steps"):
        steps = r.integer("training.steps")
        r.put("max_steps", steps if steps > 0 else None, "training.steps")
    _schedule(r, own, stages)


def _schedule(r: Reading, own: Defaults, stages: int) -> None:
    key, layers = "parallelism.pipeline_parallel_schedule", "parallelism.pipeline_parallel_layers_per_stage"
    if stages == 1:
        r.ignore([key, layers], why="there is one stage")
        return
    from tonnage.estimate.plan.schedule import schedule_named

    name = str(own.raw(key))
    try:
        schedule = schedule_named(name)
    except UnknownName:
        raise r.wrong(key, "a schedule such as 1F1B, GPipe, Interleaved1F1B or ZBVZeroBubble") from None
    own.put(key, "pipeline_schedule", schedule.name)
    if not r.has(layers):
        return
    model = r.asker.model or str(r.question.get("model", ""))
    if not model:
        r.unsure(layers, "how many stages these are is not known without the model")
        return
    from tonnage.models import read as read_model

    layers_per_stage = r.positive(layers)
    chunks, rest = divmod(-(-(read_model(model, offline=True).num_layers + 2) // layers_per_stage), stages)
    if rest or not chunks:
        raise r.wrong(layers, Message("such that {stages} ranks have equally many stages", stages=stages))
    r.put("virtual_pipeline_size", chunks if chunks > 1 else None, layers)
