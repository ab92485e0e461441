"""A server of vLLM: what its options and variables mean."""

from collections.abc import Mapping
from typing import Any

from tonnage.interchange.parts.engines import vllm_options
from tonnage.interchange.parts.engines.engine_options import (
    LIMITED,
    MOVED,
    NO_OPTION,
    Options,
    check_even,
    count,
    facts_of,
    json_fields,
    no_object,
    put_cache,
    put_count,
    put_dtype,
    put_no_prefixes,
    put_offload,
    put_overrides,
    put_quantization,
    put_weights,
    size,
)
from tonnage.interchange.parts.engines.servers import DECODE, PREFILL, Program, Size
from tonnage.interchange.parts.words import names
from tonnage.interchange.reading import Reading
from tonnage.interchange.source import Source
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message

PROGRAM = Program(
    starts=(
        ("vllm", "serve"),
        ("-m", "vllm.entrypoints.openai.api_server"),
        ("-m", "vllm.entrypoints.api_server"),
        ("-m", "vllm.entrypoints.cli.main", "serve"),
    ),
    images=("vllm/vllm-openai", "vllm/vllm-openai-rocm", "rocm/vllm", "public.ecr.aws/deep-learning-containers/vllm"),
    switches=vllm_options.SWITCHES,
    several=vllm_options.SEVERAL,
    short=vllm_options.SHORT,
    variables=("VLLM_",),
)
# vllm/config/cache.py: CacheDType. Those that depend on the size of a head, or on a scheme of vLLM alone, are "".
CACHES: Mapping[str, str | None] = {
    "auto": None,
    "float16": "fp16",
    "bfloat16": "bf16",
    "fp8": "fp8",
    "fp8_e4m3": "fp8_e4m3",
    "fp8_e5m2": "fp8_e5m2",
    "fp8_inc": "fp8_e4m3",
    "nvfp4": "nvfp4",
    **dict.fromkeys(("fp8_ds_mla", "nvfp4_ds_mla", "nvfp4_4over6", "turboquant_k8v4", "turboquant_4bit_nc"), ""),
    **dict.fromkeys(("turboquant_k3v4_nc", "turboquant_3bit_nc", "octave_k3v4", "octave_k3v3"), ""),
    **dict.fromkeys(("octave_k3v3_compact", "ultraquant_4bit", "int4_per_token_head", "int8_per_token_head"), ""),
    **dict.fromkeys(("fp8_per_token_head",), ""),
}
# vllm/model_executor/layers/quantization/__init__.py: those that say what a checkpoint is already, those that make
# something of one in 16 bits, and those of which neither is known.
OF_CHECKPOINT = names(
    "awq auto_awq awq_marlin gptq auto_gptq gptq_marlin gptq_marlin_24 gptq_bitblas compressed-tensors modelopt "
    "modelopt_fp4 modelopt_mxfp8 modelopt_mixed nvfp4 fbgemm_fp8 fp_quant quark marlin deepseek_v4_fp8 gguf hqq aqlm "
    "squeezellm gpt_oss_mxfp4 moe_wna16 auto-round petit_nvfp4"
)
AT_LOAD = {
    "fp8": "fp8",
    "fp8_per_tensor": "fp8",
    "fp8_per_block": "fp8-block",
    "fp8_per_channel": "fp8-channel",
    "mxfp8": "mxfp8",
    "mxfp4": "mxfp4",
    "bitsandbytes": "nf4",
}
UNKNOWN = (
    "humming experts_int8 torchao inc online int8_per_channel_weight_only nvfp4_per_token tpu_int8 ipex deepspeedfp"
)
QUANTIZED: Mapping[str, str | None] = {
    "none": None,
    **dict.fromkeys(OF_CHECKPOINT),
    **AT_LOAD,
    **dict.fromkeys(UNKNOWN.split(), ""),
}
CONFIG_KEYS = (
    "gpu-memory-utilization max-model-len max-num-seqs max-num-batched-tokens enforce-eager enable-expert-parallel "
    "compilation-config speculative-config enable-prefix-caching enable-chunked-prefill tensor-parallel-size "
    "pipeline-parallel-size data-parallel-size kv-cache-memory-bytes"
)


def config_values(tree: Mapping[str, Any], file: str) -> dict[str, Any]:
    """The options of a file of YAML, whose keys are those of the command."""
    plain = {str(key).replace("_", "-"): value for key, value in tree.items()}
    return json_fields(plain, vllm_options.JSON, file)


def values_of(words: Mapping[str, Any], source: Source) -> dict[str, Any]:
    """The options of a command, with those of the file that it names; those of the command are stronger."""
    arguments = dict(words)
    alone = arguments.pop("alone", [])
    options: dict[str, Any] = {}
    for key, value in arguments.items():
        head, dot, tail = key.partition(".")
        head = vllm_options.SECTIONS.get(head, head) if dot or head != "O" else head
        options[f"{head}{dot}{tail}"] = value
    options = {_level(key): value if _level(key) == key else key[1:] for key, value in options.items()}
    options = json_fields(options, vllm_options.JSON, source.name)
    return PROGRAM.completed(options, alone, "model", source, config_values)


def _level(key: str) -> str:
    """`-O3` is the option O with the value 3."""
    return "O" if len(key) == 2 and key[0] == "O" and key[1].isdecimal() else key


def role_of(values: Mapping[str, Any]) -> str:
    """What part of the work a server does."""
    return {"kv_producer": PREFILL, "kv_consumer": DECODE}.get(str(values.get("kv-transfer-config.kv_role")), "")


def read(r: Reading, more: Options | None = None) -> Size:
    """Say of every option what it means. `more`: those of another program that starts vLLM."""
    PROGRAM.rename(r)
    r.put("engine", "vllm")
    if r.has("model"):
        r.put("model", r.text("model"), "model")
    r.ignore(["config"], why="its keys are read")
    _context(r)
    _precisions(r)
    size_of_server = _parallel(r)
    _memory(r)
    _adapters(r)
    _drafts(r)
    _compilation(r)
    put_overrides(r, "hf-overrides")
    r.ignore(["rope-theta", "rope-scaling", "rope-scaling."], why="positions take no memory")
    r.ignore(["limit-mm-per-prompt", "limit-mm-per-prompt."], why=LIMITED)
    _variables(r)
    _transfer(r)
    if more is not None:
        more.read(r)
    vllm_options.TABLE.read(r)
    r.assume("tensor-parallel-size", 1, "tensor_parallel_size")
    r.assume("gpu-memory-utilization", "0.92" if not r.question.get("engine_version") else "its release's own")
    return size_of_server


def _context(r: Reading) -> None:
    key = "max-model-len"
    if not r.has(key):
        return
    if r.is_auto(key) or str(r.get(key)) == "-1":
        r.unsure(key, "the longest context that fits; here it is the model's own")
        return
    tokens = size(r, key)
    if tokens < 1:
        raise r.wrong(key, "a number of tokens, or auto")
    r.put("context", tokens, key)


def _precisions(r: Reading) -> None:
    put_quantization(r, QUANTIZED)
    for name, weights in (("load-in-4bit", "nf4"), ("load-in-8bit", "bnb-int8")):
        if r.has(name) and r.flag(name):
            put_weights(r, name, weights)
    put_dtype(r)
    put_cache(r, CACHES)
    r.ignore(["calculate-kv-scales"])


def _parallel(r: Reading) -> Size:
    tensor = put_count(r, "tensor-parallel-size", "tensor_parallel_size") or 1
    pipeline = put_count(r, "pipeline-parallel-size", "pipeline_parallel_size") or 1
    data, local, nodes = count(r, "data-parallel-size"), count(r, "data-parallel-size-local"), count(r, "nnodes")
    sequence = count(r, "prefill-context-parallel-size")
    if r.has("data-parallel-size-local") and data > local and nodes == 1:
        nodes = -(-data // local)
    expert = r.has("enable-expert-parallel") and r.flag("enable-expert-parallel")
    facts = facts_of(r) if data > 1 or expert else None
    mixture = facts.is_mixture if facts is not None else expert
    shares = mixture and data > 1
    keys = [key for key in ("tensor-parallel-size", "pipeline-parallel-size") if r.has(key)]
    if r.has("data-parallel-size"):
        keys.append("data-parallel-size")
        if shares:
            r.put("attention_data_parallel_size", data, "data-parallel-size")
    r.ignore(["data-parallel-size-local"])
    if r.has("nnodes"):
        keys.append("nnodes")
    if expert and mixture and tensor * data > 1:
        shared = [key for key in ("tensor-parallel-size", "data-parallel-size") if r.has(key)]
        r.put("expert_parallel_size", tensor * data, "enable-expert-parallel", *shared)
    else:
        r.ignore(["enable-expert-parallel"], why="the model has no experts" if expert and not mixture else "")
    _redundant(r)
    accelerators = tensor * pipeline * data * sequence
    check_even(r, accelerators, nodes, "nnodes" if r.has("nnodes") else "data-parallel-size-local")
    return Size(accelerators=accelerators, nodes=nodes, copies=1 if shares else data, keys=tuple(keys))


def _redundant(r: Reading) -> None:
    for key in r.under("eplb-config."):
        if key.endswith(".num_redundant_experts") and (copies := count(r, key, 0, 0)):
            r.put("redundant_experts", copies, key)
        else:
            r.ignore([key])
    r.ignore(["eplb-config"])
    r.ignore(["enable-eplb"], why=MOVED)


def _memory(r: Reading) -> None:
    put_offload(r)
    _tier(r)
    key = "enable-prefix-caching"
    if r.has(key) and not r.flag(key):
        put_no_prefixes(r, key)
    key = "enforce-eager"
    if r.has(key):
        r.put("enforce_eager", r.flag(key), key)


def _tier(r: Reading) -> None:
    """vllm/config/cache.py, kv_offloading_size: GiB of host memory on all ranks of a server."""
    key = "kv-offloading-size"
    if r.has(key):
        gigabytes = r.number(key)
        if gigabytes < 0:
            raise r.wrong(key, "GiB of all ranks from 0 on")
        if gigabytes:
            r.put("kv_offload", "host", key)
            r.put("kv_offload_size", f"{gigabytes:g}GiB", key)
        r.ignore([key])


def _adapters(r: Reading) -> None:
    if r.has("enable-lora") and r.flag("enable-lora"):
        r.put("lora_adapters", count(r, "max-loras"), "enable-lora", *(["max-loras"] if r.has("max-loras") else []))
        r.put("lora_rank", count(r, "max-lora-rank", 16), *(["max-lora-rank"] if r.has("max-lora-rank") else []))
        if r.has("max-cpu-loras") and count(r, "max-cpu-loras") > count(r, "max-loras"):
            r.put("lora_on_host", count(r, "max-cpu-loras"), "max-cpu-loras")
        r.assume("max-loras", 1)
        r.assume("max-lora-rank", 16)
    r.ignore(["enable-lora", "max-loras", "max-lora-rank", "max-cpu-loras"], why="no adapters are loaded")


# vllm/config/speculative.py: fields that change neither memory nor time
DRAFT_FIELDS = ("revision", "code_revision", "draft_tensor_parallel_size", "tensor_parallel_size")
HEADS = ("eagle3", "eagle", "medusa")
UNPUBLISHED = ("dflash", "suffix")  # of which the catalogue has no acceptance
LOOKUP = ("prompt_lookup_max", "prompt_lookup_min")


def _drafts(r: Reading) -> None:
    section = "speculative-config"
    if r.has(section):
        raise no_object(r, section)
    r.ignore([section])
    keys = r.under(f"{section}.")
    if not keys:
        return
    fields = {key.rpartition(".")[2]: key for key in keys}
    method = r.text(fields["method"]).lower() if "method" in fields else ""
    if method in ("[ngram]", "ngram", "ngram_gpu") or r.get(f"{section}.model") == "[ngram]":
        r.put("speculative", "ngram", fields["method"] if method else fields["model"])
        r.ignore([f"{section}.{name}" for name in ("method", "model", *LOOKUP)], why="n-grams need no memory")
    elif method in UNPUBLISHED:
        r.unsure(
            fields["method"], "no published acceptance of it is in the catalogue: `tonnage serve` takes --acceptance"
        )
        r.ignore([f"{section}.{name}" for name in ("model", "num_speculative_tokens")], why="no drafts are counted")
        fields.pop("num_speculative_tokens", None)
    elif method in HEADS or (method in ("", "draft_model") and "model" in fields):
        parallel = f"{section}.parallel_drafting"
        if method in HEADS:
            at_once = method == "eagle3" and r.has(parallel) and r.flag(parallel)
            keys_of = [parallel] if at_once else []
            r.put("speculative", "p-eagle" if at_once else method, fields["method"], *keys_of)
        r.ignore([f"{section}.method"])
        if "model" in fields:
            r.put("draft_model", r.text(fields["model"]), fields["model"])
    elif method.endswith("mtp"):
        r.ignore([f"{section}.method", f"{section}.model"], why="the model's own layers draft")
    elif method:
        r.unsure(fields["method"], "a way to draft that is not estimated")
    if "num_speculative_tokens" in fields:
        put_count(r, fields["num_speculative_tokens"], "draft_tokens")
    elif method.endswith("mtp"):
        r.assume(f"{section}.num_speculative_tokens", 1, "draft_tokens")
    elif "draft_model" in r.question:
        raise InvalidInput(
            "{file}: {section} needs num_speculative_tokens, such as 3.", file=r.source.name, section=section
        )
    r.ignore([f"{section}.{name}" for name in (*DRAFT_FIELDS, *LOOKUP)])
    for key in keys:
        r.needs_default(key, why=NO_OPTION)


# vllm/config/compilation.py
COMPILATION_IGNORED = "cache_dir debug_dump_path compile_cache_save_format cudagraph_num_of_warmups local_cache_dir"


def _compilation(r: Reading) -> None:
    """Levels below the usual one, and graphs that are not captured."""
    section = "compilation-config"
    if r.has(section):
        r.needs_default(
            section, *([r.get(section)] if str(r.get(section)) == "3" else []), why="it changes what is compiled"
        )
    r.ignore([section])
    modes = [key for key in (f"{section}.mode", f"{section}.level") if r.has(key)]
    key = f"{section}.cudagraph_mode"
    if r.has(key) and r.text(key).lower() == "none":
        r.put("enforce_eager", True, key, *modes)
        r.ignore(modes)
    elif r.has(key):
        usual = r.text(key).lower() in ("full_and_piecewise", "full_decode_only")
        r.needs_default(key, *([r.get(key)] if usual else []), why="graphs are counted as of full_and_piecewise")
    for mode in modes:
        usual = r.text(mode).lower() in ("3", "vllm_compile")
        r.needs_default(mode, *([r.get(mode)] if usual else []), why="it changes what is compiled")
    r.ignore(f"{section}.{name}" for name in COMPILATION_IGNORED.split())
    for key in r.under(f"{section}."):
        r.needs_default(key, why="kernels and graphs are those of the engine's own settings here")
    level = "optimization-level"
    if r.has(level) and str(r.get(level)) == "0":
        r.put("enforce_eager", True, level)


def _variables(r: Reading) -> None:
    for key, (values, why) in vllm_options.VARIABLES_HARMLESS.items():
        if key in r.values:
            same = r.text(key).lower() in values
            r.needs_default(key, *([r.values[key]] if same else []), why=why)
    r.ignore(vllm_options.VARIABLES_IGNORED)
    for key in r.under("VLLM_"):
        r.needs_default(key, "", "0", why=Message("a variable that may change kernels or buffers"))


def _transfer(r: Reading) -> None:
    """Caches that are handed to other servers, or kept elsewhere."""
    section = "kv-transfer-config"
    if r.has(section):
        raise no_object(r, section)
    r.ignore([section])
    role = role_of(r.values)
    for key in r.under(f"{section}."):
        if r.is_explained(key):
            continue
        if key.endswith(".kv_role") and role:
            r.put("prefill_replicas", None, key)
        elif key.endswith(".kv_connector") and not role:
            r.unsure(key, "a cache that is kept elsewhere, or handed on, is not estimated for a server alone")
        else:
            r.ignore([key])
