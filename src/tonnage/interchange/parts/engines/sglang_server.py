"""A server of SGLang: what its options and variables mean."""

from collections.abc import Mapping
from typing import Any

from tonnage.interchange.parts.engines import sglang_options
from tonnage.interchange.parts.engines.engine_options import (
    LIMITED,
    MOVED,
    Options,
    check_even,
    count,
    json_fields,
    put_cache,
    put_count,
    put_dtype,
    put_no_prefixes,
    put_offload,
    put_overrides,
    put_quantization,
    size,
)
from tonnage.interchange.parts.engines.servers import Program, Size
from tonnage.interchange.parts.words import names
from tonnage.interchange.reading import Reading
from tonnage.interchange.source import Source
from tonnage.kernel.errors import InvalidInput

PROGRAM = Program(
    starts=(("-m", "sglang.launch_server"), ("sglang", "serve"), ("-m", "sglang.cli.main", "serve")),
    switches=sglang_options.SWITCHES,
    several=sglang_options.SEVERAL,
    short=sglang_options.SHORT,
    variables=("SGLANG_", "SGL_"),
)
# sglang/srt/arg_groups/fields/model.py: kv_cache_dtype
CACHES: Mapping[str, str | None] = {
    "auto": None,
    "bf16": "bf16",
    "bfloat16": "bf16",
    "fp8_e5m2": "fp8_e5m2",
    "fp8_e4m3": "fp8_e4m3",
    "mxfp8": "mxfp8",
    "nvfp4": "nvfp4",
    "fp4_e2m1": "",
    "fp4_mx_block16": "",
}
# sglang/srt/arg_groups/choices.py: QUANTIZATION_CHOICES. Those that say what a checkpoint is already, those that make
# something of one in 16 bits, and those of which neither is known.
OF_CHECKPOINT = names(
    "awq gptq gptq_marlin awq_marlin gguf modelopt modelopt_fp8 modelopt_fp4 modelopt_mixed petit_nvfp4 w8a8_int8 "
    "w8a8_fp8 moe_wna16 w4afp8 auto-round auto-round-int8 compressed-tensors modelslim quark marlin unquant qoq"
)
AT_LOAD = {"fp8": "fp8", "mxfp8": "mxfp8", "bitsandbytes": "nf4"}
UNKNOWN = "nvfp4_online mxfp4 mxfp_w4a8 quark_int4fp8_moe quark_mxfp4 mlx_q4 mlx_q8 humming experts_int8"
QUANTIZED: Mapping[str, str | None] = {
    **dict.fromkeys(OF_CHECKPOINT),
    **AT_LOAD,
    **dict.fromkeys(UNKNOWN.split(), ""),
}
CONFIG_KEYS = (
    "mem-fraction-static chunked-prefill-size max-running-requests tp-size dp-size ep-size context-length "
    "enable-dp-attention disable-radix-cache disable-cuda-graph"
)
ALL_RANKS = ("deepep", "mooncake", "nixl", "mori", "ascend_fuseep", "flashinfer")  # moe_hook.py: ep_size = tp_size


def config_values(tree: Mapping[str, Any], file: str) -> dict[str, Any]:
    """The options of a file of YAML, whose keys are those of the command."""
    return json_fields({str(key).replace("_", "-"): value for key, value in tree.items()}, sglang_options.JSON, file)


def values_of(words: Mapping[str, Any], source: Source) -> dict[str, Any]:
    """The options of a command, with those of the file that it names; those of the command are stronger."""
    options = json_fields(words, sglang_options.JSON, source.name)
    alone = options.pop("alone", [])
    return PROGRAM.completed(options, alone, "model-path", source, config_values)


def role_of(values: Mapping[str, Any]) -> str:
    """What part of the work a server does."""
    return str(values.get("disaggregation-mode", ""))


def read(r: Reading, more: Options | None = None) -> Size:
    """Say of every option what it means. `more`: those of another program that starts SGLang."""
    PROGRAM.rename(r)
    if r.has(KT_WEIGHTS):
        _host_experts(r)
    else:
        r.put("engine", "sglang")
    if r.has("model-path"):
        r.put("model", r.text("model-path"), "model-path")
    if r.has("context-length"):
        r.put("context", count(r, "context-length"), "context-length")
    _precisions(r)
    size_of_server = _parallel(r)
    _memory(r)
    _adapters(r)
    _drafts(r)
    put_overrides(r, "json-model-override-args")
    _role(r)
    r.ignore(sglang_options.VARIABLES_IGNORED)
    for key in (*r.under("SGLANG_"), *r.under("SGL_")):
        r.needs_default(key, "", "0", "false", "False", why="a variable that may change kernels or buffers")
    if more is not None:
        more.read(r)
    sglang_options.TABLE.read(r)
    r.assume("tp-size", 1, "tensor_parallel_size" if "tensor_parallel_size" not in r.question else "")
    r.assume("mem-fraction-static", "by the memory and the sizes of a pass")
    return size_of_server


def _precisions(r: Reading) -> None:
    put_quantization(r, QUANTIZED)
    put_dtype(r, halved="fp16")
    put_cache(r, CACHES)


def _parallel(r: Reading) -> Size:
    ranks, pipeline, data = count(r, "tp-size"), count(r, "pp-size"), count(r, "dp-size")
    nodes = count(r, "nnodes")
    groups = count(r, "attn-dp-size")
    shares_attention = r.has("enable-dp-attention") and r.flag("enable-dp-attention")
    if shares_attention and not r.has("attn-dp-size"):
        groups, data = data, 1
    keys = [key for key in ("tp-size", "pp-size", "dp-size", "attn-dp-size", "nnodes") if r.has(key)]
    if ranks % groups:
        raise InvalidInput(
            "{file}: {key} must divide the {ranks} ranks of tp-size. Got {groups}.",
            file=r.source.name,
            key="attn-dp-size" if r.has("attn-dp-size") else "dp-size",
            ranks=ranks,
            groups=groups,
        )
    attention = [key for key in ("dp-size", "attn-dp-size", "enable-dp-attention") if r.has(key)]
    if groups > 1:
        r.put("attention_data_parallel_size", groups, *attention)
        r.put("tensor_parallel_size", ranks // groups, *(["tp-size"] if r.has("tp-size") else []), *attention)
    elif r.has("tp-size"):
        r.put("tensor_parallel_size", ranks, "tp-size")
    if r.has("pp-size"):
        r.put("pipeline_parallel_size", pipeline, "pp-size")
    r.ignore(["enable-dp-attention"])
    _experts(r, ranks)
    accelerators = ranks * pipeline * data
    check_even(r, accelerators, nodes, "nnodes")
    return Size(accelerators=accelerators, nodes=nodes, copies=data, keys=tuple(keys))


def _experts(r: Reading, ranks: int) -> None:
    """How many ranks share the experts: all of them where they exchange by DeepEP and its like."""
    old = [key for key in ("enable-ep-moe", "enable-deepep-moe") if r.has(key) and r.flag(key)]
    exchange = "moe-a2a-backend"
    if old or (r.has(exchange) and r.text(exchange).lower() in ALL_RANKS):
        deciding = old or [exchange]
        if ranks > 1:
            r.put("expert_parallel_size", ranks, *deciding, *(["tp-size"] if r.has("tp-size") else []))
        r.ignore(["ep-size"], why="as many as tp-size with such an exchange")
        if deciding != ["enable-ep-moe"]:
            r.unsure(deciding[-1], "buffers and times of its exchange of experts are not those that are estimated")
    elif r.has("ep-size"):
        put_count(r, "ep-size", "expert_parallel_size")
    if count(r, "ep-num-redundant-experts", 0, 0):
        r.put("redundant_experts", count(r, "ep-num-redundant-experts", 0, 0), "ep-num-redundant-experts")
    r.ignore(["enable-ep-moe", "enable-deepep-moe", "ep-num-redundant-experts"])
    r.ignore(["enable-eplb"], why=MOVED)
    r.ignore(["limit-mm-data-per-request", "limit-mm-data-per-request."], why=LIMITED)


def _memory(r: Reading) -> None:
    put_offload(r)
    key = "disable-radix-cache"
    if r.has(key) and r.flag(key):
        put_no_prefixes(r, key)
    key = "disable-cuda-graph"
    if r.has(key):
        r.put("enforce_eager", r.flag(key), key)
    key = "chunked-prefill-size"
    if r.has(key):
        tokens = size(r, key)
        if tokens > 0:
            r.put("max_num_batched_tokens", tokens, key)
        elif tokens == -1:
            r.unsure(key, "a prompt in one pass: here prompts are split")
        else:
            raise r.wrong(key, "a number of tokens, or -1")


KT_WEIGHTS = "kt-weight-path"


def _host_experts(r: Reading) -> None:
    """Experts that kt-kernel multiplies in host memory: sglang/srt/layers/moe/kt_ep_wrapper.py."""
    r.put("engine", "ktransformers", KT_WEIGHTS)
    method = r.text("kt-method", "AMXINT4").upper()
    r.put("host_method", method, "kt-method" if r.has("kt-method") else KT_WEIGHTS)
    if method == "LLAMAFILE":
        r.unsure(KT_WEIGHTS, "the type of this GGUF file is not known: it is taken for Q4_K_M")
    for key, option in (
        ("kt-num-gpu-experts", "gpu_experts"),
        ("kt-gpu-prefill-token-threshold", "gpu_prefill_tokens"),
        ("kt-cpuinfer", "host_cores"),
    ):
        if r.has(key) and (r.get(key) or "0") not in ("0", 0):
            put_count(r, key, option)
    r.ignore(["kt-threadpool-count", "kt-num-gpu-experts", "kt-gpu-prefill-token-threshold"])


def _adapters(r: Reading) -> None:
    paths = r.get("lora-paths")
    loads = r.flag("enable-lora") if r.has("enable-lora") else bool(paths)
    if loads:
        deciding = [key for key in ("enable-lora", "max-loras-per-batch", "lora-paths") if r.has(key)]
        r.put("lora_adapters", count(r, "max-loras-per-batch", 8), *deciding)
        if r.has("max-loaded-loras") and count(r, "max-loaded-loras") > count(r, "max-loras-per-batch", 8):
            r.put("lora_on_host", count(r, "max-loaded-loras"), "max-loaded-loras")
        r.assume("max-loras-per-batch", 8)
        if r.has("max-lora-rank"):
            put_count(r, "max-lora-rank", "lora_rank")
        elif paths:
            r.unsure("lora-paths", "the rank is that of these adapters: max-lora-rank says it")
    r.ignore(["enable-lora", "max-loras-per-batch", "max-lora-rank", "max-loaded-loras"], why="no adapters are loaded")


OWN_LAYERS = ("nextn", "eagle")  # without a model of their own, the model's layers draft
STEPS = 3  # speculative_hook.py, of models with layers of their own


def _drafts(r: Reading) -> None:
    key, path = "speculative-algorithm", "speculative-draft-model-path"
    if not r.has(key):
        r.ignore([path, "speculative-num-steps", "speculative-num-draft-tokens", "speculative-eagle-topk"])
        return
    name, steps, checked = r.text(key).lower(), "speculative-num-steps", "speculative-num-draft-tokens"
    if name == "ngram":
        tokens = count(r, checked, 1) - 1 if r.has(checked) else 0
        if tokens < 1:
            r.unsure(key, "it says no number of tokens: speculative-num-draft-tokens does")
        else:
            r.put("draft_tokens", tokens, key, checked)
            r.put("speculative", "ngram", key)
        return
    if name not in ("standalone", "eagle", "eagle3", "nextn"):
        r.unsure(key, "a way to draft that is not estimated")
        return
    is_own = name == "nextn" or (r.has(path) and "nextn" in r.text(path).lower())
    if r.has(path) and not is_own:
        r.put("draft_model", r.text(path), path, key)
        if name != "standalone":
            r.put("speculative", name, key)
    elif name not in OWN_LAYERS:
        raise InvalidInput("{file}: {key} {name} needs {path}.", file=r.source.name, key=key, name=name, path=path)
    r.ignore([path, key], why="the model's own layers draft")
    if r.has(steps):
        put_count(r, steps, "draft_tokens")
    elif "draft_model" in r.question:
        r.unsure(key, "the number of tokens depends on the model: speculative-num-steps says it")
    else:
        r.assume(steps, STEPS, "draft_tokens")
    chain = count(r, steps, STEPS) + 1
    r.needs_default(checked, *([r.get(checked)] if count(r, checked, chain) == chain else []), why="a tree of drafts")


def _role(r: Reading) -> None:
    key = "disaggregation-mode"
    if r.has(key):
        role = r.choice(key, {"prefill": "prefill", "decode": "decode", "null": ""})
        if role:
            r.put("prefill_replicas", None, key)
        else:
            r.ignore([key])
