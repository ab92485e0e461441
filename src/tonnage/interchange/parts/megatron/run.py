"""What Megatron-LM's arguments say of a run: sizes of parallel groups, batch, precision, optimizer, recomputation.

Keys are arguments without their dashes; files that write them otherwise rename them first.
"""

import re

from tonnage.interchange.parts.megatron import effects, names
from tonnage.interchange.parts.megatron.model import read_model
from tonnage.interchange.parts.megatron.step import read_step
from tonnage.interchange.parts.megatron.values import listed_words, needs, size, switch
from tonnage.interchange.parts.words import names as words
from tonnage.interchange.reading import Reading
from tonnage.kernel.errors import InvalidInput

# Older names of arguments, and those of releases before 0.17: old -> the name that is read here.
RENAMED = {
    "batch-size": "micro-batch-size",
    "model-parallel-size": "tensor-model-parallel-size",
    "warmup": "lr-warmup-fraction",
    "recompute-activations-granularity": "recompute-granularity",
    "checkpoint-num-layers": "recompute-num-layers",
    "activations-checkpoint-method": "recompute-method",
    "use-custom-fsdp": "use-megatron-fsdp",
    "cuda-graph-scope": "cuda-graph-modules",  # 0.18
    "hybrid-override-pattern": "hybrid-layer-pattern",  # 0.17
    "muon-use-nesterov": "muon-nesterov",  # 0.18
    "moe-deepep-num-sms": "moe-flex-dispatcher-num-sms",  # 0.19
    "moe-router-padding-for-fp8": "moe-router-padding-for-quantization",  # 0.16
    "use-rotary-position-embedding": "use-rotary-position-embeddings",
    "num-layers-in-first-pipeline-stage": "decoder-first-pipeline-num-layers",
    "num-layers-in-last-pipeline-stage": "decoder-last-pipeline-num-layers",
    "num-moe-experts": "num-experts",
    "virtual-pipeline-model-parallel-size": "num-virtual-stages-per-pipeline-rank",
}
# Arguments of releases before 0.17 that decide nothing.
OLDER = words(
    """
    no-async-tensor-model-parallel-allreduce async-tensor-model-parallel-allreduce enable-one-logger DDP-impl
    use-contiguous-buffers-in-local-ddp no-query-key-layer-scaling log-batch-size-to-tensorboard
    log-learning-rate-to-tensorboard delay-grad-reduce delay-param-gather no-delay-grad-reduce retro-project-dir
    """
)
SIZES = {
    "tensor-model-parallel-size": "tensor_parallel_size",
    "pipeline-model-parallel-size": "pipeline_parallel_size",
    "context-parallel-size": "context_parallel_size",
    "expert-model-parallel-size": "expert_parallel_size",
    "expert-tensor-parallel-size": "expert_tensor_parallel_size",
    "decoder-first-pipeline-num-layers": "first_stage_layers",
    "decoder-last-pipeline-num-layers": "last_stage_layers",
}
OPTIMIZERS = {
    "adam": "adamw",  # with decoupled weight decay, as Megatron's is
    "adamw": "adamw",
    "sgd": "sgd-momentum",
    "muon": "muon",
    "dist_muon": "muon",
    "lion": "lion",
    "soap": "soap",
}
# Releases in which Megatron's FSDP shards nothing unless told: from 0.18 on it shards all.
# --data-parallel-sharding-strategy -> ZeRO stage.
STRATEGIES = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}
NOT_SHARDED_BY_FSDP = ("0.14", "0.15", "0.16", "0.17")
METHODS = ("p2p", "a2a", "allgather")


def read_arguments(r: Reading) -> None:
    """Everything that is read of one run. The machines are counted before."""
    r.verb = "train"
    r.rename(RENAMED)
    r.put("runtime", "megatron")
    if r.asker.version and r.tool == "Megatron-LM":
        r.put("runtime_version", f"core {r.asker.version}")
    tensor = size(r, "tensor-model-parallel-size")
    read_model(r, tensor)
    _parallel(r, tensor)
    _batch(r)
    _states(r)
    read_step(r, tensor)
    _rest(r)


def _parallel(r: Reading, tensor: int) -> None:
    for key, option in SIZES.items():
        if r.has(key):
            r.put(option, size(r, key), key)
    if not r.has("expert-tensor-parallel-size") and size(r, "expert-model-parallel-size") > 1:
        r.assume("expert-tensor-parallel-size", tensor, "expert_tensor_parallel_size", "the tensor parallel size")
    if r.has("sequence-parallel"):
        r.put("sequence_parallel", switch(r, "sequence-parallel") if tensor > 1 else None, "sequence-parallel")
    elif tensor > 1:
        r.assume("sequence-parallel", False, "sequence_parallel")
    for key in ("account-for-embedding-in-pipeline-split", "account-for-loss-in-pipeline-split"):
        if r.has(key):
            r.put(key.replace("-", "_"), True if switch(r, key) else None, key)
    _chunks(r)
    if r.has("cp-comm-type"):
        kinds = listed_words(r, "cp-comm-type")
        if len(set(kinds)) == 1 and kinds[0] in METHODS:
            several = size(r, "context-parallel-size") > 1
            r.put("context_parallel_method", kinds[0] if several else None, "cp-comm-type")
        else:
            r.unsure("cp-comm-type", "one method for all layers is estimated: p2p, a2a or allgather")


def _chunks(r: Reading) -> None:
    """Chunks of layers on each pipeline stage, in the three ways that say it."""
    stages = size(r, "pipeline-model-parallel-size")
    if r.has("pipeline-model-parallel-layout"):
        layout = r.text("pipeline-model-parallel-layout")
        r.put("pipeline_layout", layout, "pipeline-model-parallel-layout")
        parts = _parts_of(layout)
        if parts > stages and parts % stages == 0:
            r.put("virtual_pipeline_size", parts // stages, "pipeline-model-parallel-layout")
    if r.has("num-virtual-stages-per-pipeline-rank"):
        key = "num-virtual-stages-per-pipeline-rank"
        r.put("virtual_pipeline_size", size(r, key), key)
    elif r.has("num-layers-per-virtual-pipeline-stage"):
        key = "num-layers-per-virtual-pipeline-stage"
        layers = r.integer("num-layers") if r.has("num-layers") else 0
        layers += sum(switch(r, f"account-for-{end}-in-pipeline-split") for end in ("embedding", "loss"))
        if not layers:
            r.unsure(key, "the number of layers is not in the file: say --num-virtual-stages-per-pipeline-rank")
        elif layers % (stages * size(r, key)):
            raise InvalidInput(
                "{file}: {layers} layers on {stages} pipeline stages are no multiple of {key} {each}.",
                file=r.source.name,
                layers=layers,
                stages=stages,
                key=r.original_name(key),
                each=r.integer(key),
            )
        else:
            r.put("virtual_pipeline_size", layers // (stages * size(r, key)), key, "num-layers")


def _parts_of(layout: str) -> int:
    """Stages of a layout such as Et*3|(tt|)*29,m|L: its bars, each as often as its bracket says."""
    text = re.sub(r"[\s,]", "", layout)
    for _ in range(20):
        opened = re.sub(r"\(([^()]{0,200})\)(?:\*(\d{1,3}))?", lambda m: m[1] * int(m[2] or 1), text)
        if opened == text or len(opened) > 20_000:
            break
        text = opened
    return text.strip("|").count("|") + 1


def _batch(r: Reading) -> None:
    if r.has("seq-length"):
        r.put("sequence_length", size(r, "seq-length"), "seq-length")
    elif r.has("decoder-seq-length"):
        r.put("sequence_length", size(r, "decoder-seq-length"), "decoder-seq-length")
    micro = size(r, "micro-batch-size")
    r.put("micro_batch_size", micro, "micro-batch-size")
    if r.has("global-batch-size"):
        total = size(r, "global-batch-size")
        r.put("global_batch_size", total, "global-batch-size")
        _check_batch(r, micro, total)
    elif _is_known(r):
        replicas = _replicas(r)
        r.assume(
            "global-batch-size", micro * replicas, "global_batch_size", "micro-batch-size x data-parallel replicas"
        )
    batch = r.question.get("global_batch_size")
    if r.has("train-iters"):
        r.put("max_steps", r.integer("train-iters") if r.integer("train-iters") > 0 else None, "train-iters")
    elif r.has("train-samples"):
        samples = r.number("train-samples")
        r.put("max_steps", int(samples // batch) if batch and samples >= batch else None, "train-samples")
    r.assume("num-workers", 2, "data_loader_workers")
    if r.has("num-workers"):
        r.put("data_loader_workers", r.integer("num-workers"), "num-workers")


def _is_known(r: Reading) -> bool:
    """Whether the machines are said, by the file or whoever asks."""
    return bool(r.asker.on or r.question.get("on") or r.machines.accelerator)


def _replicas(r: Reading) -> int:
    """Data-parallel ranks; InvalidInput where the other sizes do not divide the accelerators."""
    ranks = r.num_accelerators
    sizes = {
        key: size(r, key)
        for key in ("tensor-model-parallel-size", "pipeline-model-parallel-size", "context-parallel-size")
    }
    product = 1
    for value in sizes.values():
        product *= value
    if ranks % product:
        raise InvalidInput(
            "{file}: tensor x pipeline x context parallel size, {product}, must divide the {ranks} accelerators of "
            "{on}.",
            file=r.source.name,
            product=product,
            ranks=ranks,
            on=r.on,
        )
    return ranks // product


def _check_batch(r: Reading, micro: int, total: int) -> None:
    if not _is_known(r) or r.has("rampup-batch-size") or switch(r, "decrease-batch-size-if-needed"):
        return
    replicas = _replicas(r)
    if total % (micro * replicas):
        raise InvalidInput(
            "{file}: {key} must be a multiple of micro-batch-size {micro} x {replicas} data-parallel replicas. Got "
            "{total}.",
            file=r.source.name,
            key=r.original_name("global-batch-size"),
            micro=micro,
            replicas=replicas,
            total=total,
        )


def _states(r: Reading) -> None:
    """The optimizer, what shards its states, and where they lie."""
    if r.has("use-distributed-optimizer"):
        r.put("zero_stage", int(switch(r, "use-distributed-optimizer")), "use-distributed-optimizer")
    elif not switch(r, "use-megatron-fsdp"):
        r.assume("use-distributed-optimizer", False, "zero_stage")
        r.question["zero_stage"] = 0
    _fsdp(r)
    if r.has("optimizer"):
        name = r.text("optimizer").lower()
        if name in OPTIMIZERS:
            r.put("optimizer", OPTIMIZERS[name], "optimizer")
        else:
            r.unsure("optimizer", "its states are not estimated")
    _precision_aware(r)
    if r.has("optimizer-cpu-offload"):
        offloads = switch(r, "optimizer-cpu-offload")
        r.put("offload_optimizer", "cpu" if offloads else None, "optimizer-cpu-offload")
        if offloads and r.has("optimizer-offload-fraction"):
            r.put("optimizer_offload_fraction", r.number("optimizer-offload-fraction"), "optimizer-offload-fraction")
    r.ignore(["optimizer-offload-fraction"])


def _fsdp(r: Reading) -> None:
    if not switch(r, "use-megatron-fsdp"):
        r.ignore(["use-megatron-fsdp", "data-parallel-sharding-strategy"])
        return
    before = r.version.startswith(NOT_SHARDED_BY_FSDP) and r.tool == "Megatron-LM"
    strategy = r.text("data-parallel-sharding-strategy", "no_shard" if before else "optim_grads_params")
    keys = [key for key in ("use-megatron-fsdp", "data-parallel-sharding-strategy") if r.has(key)]
    r.put("zero_stage", STRATEGIES.get(strategy, 3), *keys)
    if STRATEGIES.get(strategy, 3) >= 2:
        r.put("runtime", "megatron-fsdp", *keys)


def _precision_aware(r: Reading) -> None:
    """Moments in bf16, where both are; other types of main parameters and moments are not estimated."""
    keys = ("main-params-dtype", "exp-avg-dtype", "exp-avg-sq-dtype")
    if not switch(r, "use-precision-aware-optimizer"):
        r.ignore(["use-precision-aware-optimizer", *keys])
        return
    types = [r.text(key, "fp32").removeprefix("torch.").replace("bfloat16", "bf16") for key in keys]
    if types == ["fp32", "bf16", "bf16"] and r.question.get("optimizer", "adamw") == "adamw":
        r.put("optimizer", "adamw-bf16", *(key for key in keys if r.has(key)))
        r.put("optimizer", "adamw-bf16", "use-precision-aware-optimizer")
    elif types == ["fp32", "fp32", "fp32"]:
        r.ignore(["use-precision-aware-optimizer", *keys])
    else:
        for key in ("use-precision-aware-optimizer", *keys):
            r.unsure(key, "of these types only moments that are both bf16 are estimated")


def _rest(r: Reading) -> None:
    """All other arguments: those that decide nothing, and those that are not estimated."""
    overlapped = ("overlap-grad-reduce", "overlap-param-gather")
    r.ignore(overlapped, why="times are those of runs that overlap")
    r.ignore([*names.IGNORED, *OLDER, "yaml-cfg"])
    r.ignore(names.TUNING, why="tuning: its effect is smaller than the error band")
    if switch(r, "perform-rl-step"):
        r.unsure(
            "perform-rl-step", "reinforcement learning in Megatron-LM is not estimated: the training step alone is"
        )
    r.ignore(["rampup-batch-size"], why="the steps behind the ramp are estimated")
    r.ignore(["perform-rl-step", *names.REINFORCEMENT, *effects.DETAILS])
    for why, entries in effects.NOT_ESTIMATED.items():
        for key, harmless in entries.items():
            needs(r, key, harmless, why)
    r.ignore([key for key, value in r.values.items() if value is None and key in effects.KNOWN])
