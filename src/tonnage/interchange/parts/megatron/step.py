"""What Megatron-LM's arguments say of a step: precision, recomputation, kernels and experts."""

from tonnage.interchange.parts.megatron.values import listed_words, size, switch
from tonnage.interchange.reading import Reading
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message

ATTENTION = {"flash": "flash", "fused": "flash", "auto": "flash", "unfused": "eager", "local": "eager"}
MODULES = ("core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts")
SCOPES = ("attn", "mamba", "mlp", "moe", "moe_router", "moe_preprocess")


def read_step(r: Reading, tensor: int) -> None:
    """Everything of one step that is no size of a parallel group, batch or state."""
    _precision(r)
    _recompute(r)
    _kernels(r, tensor)
    _experts(r)


def _precision(r: Reading) -> None:
    """The recipe: bf16, fp16 or fp32, products in 8 or 4 bits, and the width of gradients."""
    half = "fp16" if switch(r, "fp16") else "bf16" if switch(r, "bf16") else ""
    if half == "fp16" and switch(r, "bf16"):
        raise InvalidInput("{file} has both --fp16 and --bf16: leave one out.", file=r.source.name)
    narrow_main = switch(r, "use-precision-aware-optimizer") and r.text("main-grads-dtype", "fp32") == "bf16"
    narrow = switch(r, "grad-reduce-in-bf16") or narrow_main
    if half == "fp16" and not switch(r, "accumulate-allreduce-grads-in-fp32"):
        narrow = True
    gradients = "-16bit-gradients" if narrow and half else ""
    keys = [
        key
        for key in (
            "bf16",
            "fp16",
            "grad-reduce-in-bf16",
            "accumulate-allreduce-grads-in-fp32",
            "main-grads-dtype",
            "fp8-format",
            "fp8-recipe",
            "fp8-param-gather",
            "fp4-format",
            "fp4-recipe",
        )
        if r.has(key)
    ]
    low = _low_precision(r)
    if not half:
        r.assume("bf16", False, "precision", "without --bf16 and --fp16 all is fp32")
        r.question["precision"] = "fp32"
    r.put("precision", f"{low or half + '-mixed'}{gradients}" if half else "fp32", *keys)


def _low_precision(r: Reading) -> str:
    if r.has("fp4-format") and r.text("fp4-format") not in ("false", "none"):
        return "nvfp4-te"
    if not r.has("fp8-format") or r.text("fp8-format") in ("false", "none"):
        return ""
    recipe = r.text("fp8-recipe", "delayed")
    primary = "-primary" if switch(r, "fp8-param-gather") else ""
    if recipe == "mxfp8":
        return f"mxfp8-te{primary}"
    if recipe not in ("delayed", "tensorwise"):
        r.notes.append(Message("fp8-recipe {recipe} is estimated as scales of whole tensors (fp8-te).", recipe=recipe))
    return f"fp8-te{primary}"


def _recompute(r: Reading) -> None:
    granularity = r.text("recompute-granularity") if r.has("recompute-granularity") else ""
    if switch(r, "recompute-activations"):
        granularity = "selective"
    if switch(r, "checkpoint-activations"):
        granularity = "full"
    if granularity not in ("", "full", "selective", "none", "null"):
        raise r.wrong("recompute-granularity", "full or selective")
    keys = [key for key in ("recompute-granularity", "recompute-activations", "checkpoint-activations") if r.has(key)]
    r.put("recompute", granularity.replace("null", ""), *keys)
    modules = listed_words(r, "recompute-modules")
    if switch(r, "moe-layer-recompute"):
        modules = [*modules, "moe"]
        r.put("recompute", granularity or "selective", "moe-layer-recompute")
        granularity = granularity or "selective"
    r.ignore(["moe-layer-recompute"])
    if modules and granularity == "selective" and set(modules) <= set(MODULES):
        r.put("recompute_modules", ",".join(modules), "recompute-modules")
    elif modules and granularity == "selective":
        r.unsure("recompute-modules", Message("modules that are estimated: {names}", names=", ".join(MODULES)))
    r.ignore(["recompute-modules"], why="no recompute-granularity selective")
    if granularity == "full":
        _recomputed_layers(r)
    r.ignore(["recompute-method", "recompute-num-layers"], why="no recompute-granularity full")


def _recomputed_layers(r: Reading) -> None:
    """All layers, one at a time, are estimated: of another number the file is not understood."""
    method, count = r.text("recompute-method", "uniform"), size(r, "recompute-num-layers")
    layers = r.integer("num-layers") if r.has("num-layers") else 0
    stages = size(r, "pipeline-model-parallel-size") * r.question.get("virtual_pipeline_size", 1)
    every_layer = layers and count >= -(-layers // stages)
    if (method == "block" and every_layer) or (method == "uniform" and count == 1):
        r.put("recompute", "full", *(key for key in ("recompute-method", "recompute-num-layers") if r.has(key)))
        return
    for key in ("recompute-method", "recompute-num-layers"):
        r.unsure(key, "recompute full is estimated with every layer recomputed on its own")


def _kernels(r: Reading, tensor: int) -> None:
    """Kernels of attention and loss, dropout, CUDA graphs, and what is overlapped."""
    dropped = [r.number(key, 0.1) if r.has(key) else 0.1 for key in ("hidden-dropout", "attention-dropout")]
    for key in ("hidden-dropout", "attention-dropout"):
        r.assume(key, 0.1, "dropout")
        if r.has(key):
            r.put("dropout", None, key)
    r.question["dropout"] = any(dropped)
    if any(dropped) and not all(dropped):
        r.notes.append(Message("dropout of hidden states and of attention are estimated together, as both on."))
    kernel = ""
    if r.has("attention-backend"):
        kernel = r.choice("attention-backend", ATTENTION)
    elif r.text("transformer-impl", "transformer_engine") == "local":
        kernel = "flash" if switch(r, "use-flash-attn") else "eager"
    r.put("attention", kernel, *(k for k in ("attention-backend", "transformer-impl", "use-flash-attn") if r.has(k)))
    if kernel == "eager":
        r.needs_default("no-masked-softmax-fusion", why="softmax without its fused kernel is not estimated")
    r.ignore(["no-masked-softmax-fusion"], why="flash attention has no softmax of its own")
    if switch(r, "cross-entropy-loss-fusion"):
        fused = r.text("cross-entropy-fusion-impl", "native") == "te"
        keys = ("cross-entropy-loss-fusion", "cross-entropy-fusion-impl")
        why = "" if fused else "the native fusion holds what the loss without it holds"
        r.put("loss", "fused" if fused else "full", *(key for key in keys if r.has(key)), why=why)
    r.ignore(["cross-entropy-loss-fusion", "cross-entropy-fusion-impl"])
    if r.has("tp-comm-overlap"):
        overlaps = switch(r, "tp-comm-overlap") and tensor > 1
        r.put("tp_comm_overlap", True if overlaps else None, "tp-comm-overlap")
    _graphs(r)
    if switch(r, "fine-grained-activation-offloading"):
        r.put("offload_activations", "cpu", "fine-grained-activation-offloading")
        r.put("offload_modules", ",".join(listed_words(r, "offload-modules")), "offload-modules")
    r.ignore(["fine-grained-activation-offloading", "offload-modules"])


def _graphs(r: Reading) -> None:
    """CUDA graphs: of a whole step, or of modules."""
    implementation = r.text("cuda-graph-impl", "none").lower() if r.has("cuda-graph-impl") else "none"
    if switch(r, "enable-cuda-graph"):
        implementation = "local"
    if switch(r, "external-cuda-graph"):
        implementation = "transformer_engine"
    modules = [] if implementation == "none" else listed_words(r, "cuda-graph-modules")
    every = ("cuda-graph-impl", "cuda-graph-modules", "enable-cuda-graph", "external-cuda-graph")
    keys = tuple(key for key in every if r.has(key))
    if implementation == "none":
        r.ignore(keys)
    elif implementation == "full_iteration" or modules == ["full_iteration"]:
        r.put("cuda_graph", "full", *keys)
    elif modules and set(modules) <= set(SCOPES):
        r.put("cuda_graph", ",".join(modules), *keys)
    else:
        for key in keys:
            r.unsure(key, "graphs of a whole step or of named modules are estimated, not of whole layers")


def _experts(r: Reading) -> None:
    """Where tokens go between experts, and how many each takes."""
    mixed = r.has("num-experts")
    spread = size(r, "expert-model-parallel-size") > 1
    if switch(r, "moe-enable-deepep"):
        r.values["moe-token-dispatcher-type"] = "flex"
    if r.has("mtp-num-layers"):
        r.put("mtp_layers", r.integer("mtp-num-layers"), "mtp-num-layers")
    if mixed and spread and not r.has("moe-token-dispatcher-type"):
        r.values["moe-token-dispatcher-type"] = "allgather"
    if r.has("moe-token-dispatcher-type"):
        kind = r.text("moe-token-dispatcher-type")
        if kind not in ("allgather", "alltoall", "flex", "alltoall_seq"):
            raise r.wrong("moe-token-dispatcher-type", "allgather, alltoall or flex")
        if kind == "allgather" and spread:
            r.unsure("moe-token-dispatcher-type", "that every rank gathers the tokens of all is not estimated")
        else:
            strategy = kind.removesuffix("_seq") if (mixed or spread) and kind != "allgather" else None
            r.put("moe_token_dispatcher_type", strategy, "moe-token-dispatcher-type", "moe-enable-deepep")
    r.ignore(["moe-enable-deepep", "moe-flex-dispatcher-backend"])
    if r.has("moe-expert-capacity-factor"):
        factor = r.number("moe-expert-capacity-factor")
        keys = ("moe-expert-capacity-factor", "moe-pad-expert-input-to-capacity")
        r.put("expert_capacity_factor", factor if mixed and factor > 0 else None, *(key for key in keys if r.has(key)))
    r.ignore(["moe-pad-expert-input-to-capacity"])
    if r.has("overlap-moe-expert-parallel-comm"):
        overlaps = switch(r, "overlap-moe-expert-parallel-comm") and spread
        r.put("overlap_moe_expert_parallel_comm", True if overlaps else None, "overlap-moe-expert-parallel-comm")
    if mixed and not switch(r, "moe-grouped-gemm"):
        r.notes.append(Message("experts are estimated as grouped products, as --moe-grouped-gemm makes them."))
    r.ignore(["moe-grouped-gemm"], why="experts are estimated as grouped products")
