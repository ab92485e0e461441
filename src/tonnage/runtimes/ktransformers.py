"""KTransformers: SGLang whose routed experts are multiplied by the processor, from host memory, but for as many of each
layer as the GPU holds.

By version: kt-kernel inside SGLang (from 0.5 on), and its own server before, which read GGUF files.
"""

from collections.abc import Mapping
from shlex import quote

from msgspec.structs import replace

from tonnage.kernel.message import Message
from tonnage.runtimes import serving_runtime
from tonnage.runtimes.parts.host_experts import HostExperts, HostMethod
from tonnage.runtimes.parts.serving import SERVING_RUNTIMES, BatchLimit
from tonnage.runtimes.parts.start import Start

# sglang-kt 0.6.1 is a fork of the 0.5 releases of early 2026
ENGINE = serving_runtime("sglang", "0.5.9")
KT_WEIGHTS, NUMA_NODES, CORES = "KT-WEIGHTS", "NUMA-NODES", "CORES"  # stand in a command for what is not known here

# Fitted by scripts/fit_host_experts.py to the rows of validation/recent/ktransformers.yaml that are not left out.
# FLOP/s of a core by kernels: llamafile's, of AMX in 8 bits, of kt-kernel for formats that the GPU has too. Shares of
# the host's bandwidth and of the host link. Seconds of a layer, in SGLang and in its own server.
LLAMAFILE, AMX, NATIVE = 54e9, 152e9, 128e9
BANDWIDTH_SHARE = 0.605
LAYER_SECONDS, OLD_LAYER_SECONDS = 0.138e-3, 0.405e-3
HOST_SHARE, LINK_SHARE, OLD_LINK_SHARE = 0.104, 0.95, 0.637
BANDS: Mapping[str, tuple[float, float]] = {"ttft_seconds": (0.48, 2.28), "tpot_seconds": (0.59, 1.32)}
CHANNELS = 8 * 8 * 4800e6  # bytes a second of the eight channels of DDR5-4800 of a Xeon Gold 6454S, of 32 cores

METHODS = {
    # kt-kernel/scripts/convert_cpu_weights.py: a scale for each output row
    "AMXINT4": HostMethod(weights="int4-channel", core_flops=AMX, needs="AMX"),
    "AMXINT8": HostMethod(weights="int8", core_flops=AMX, needs="AMX"),
    "RAWINT4": HostMethod(
        weights="int4-32g", core_flops=NATIVE, needs="AVX512 or AVX2", is_native=True, taken_for=("int4",)
    ),
    "GPTQ_INT4": HostMethod(
        weights="gptq-4bit-128g", core_flops=NATIVE, needs="AVX512 or AVX2", is_native=True, taken_for=("gptq-4bit",)
    ),
    "MXFP4": HostMethod(
        weights="mxfp4", core_flops=NATIVE, needs="AVX512 or AVX2", is_native=True, taken_for=("mxfp4",)
    ),
    "FP8": HostMethod(weights="fp8-block", core_flops=NATIVE, needs="AVX512 or AVX2", is_native=True),
    "FP8_PERCHANNEL": HostMethod(weights="fp8-channel", core_flops=NATIVE, needs="AVX512", is_native=True),
    "BF16": HostMethod(weights="bf16", core_flops=NATIVE, needs="AMX, AVX512 or AVX2", is_native=True),
    "LLAMAFILE": HostMethod(weights="", core_flops=LLAMAFILE, needs="AVX512 or AVX2"),
}


def launch(start: Start) -> str:
    """SGLang's command with what kt-kernel reads: kvcache-ai/ktransformers, kt-kernel/README.md."""
    host = start.plan.host
    name = host.host_method if host.host_method in METHODS else "LLAMAFILE"
    path = start.name if METHODS[name].is_native else _weights_path(start)
    start.notes.append(
        Message(
            "{nodes} is the number of NUMA nodes, as lscpu says it. The processor needs {needs}.",
            nodes=NUMA_NODES,
            needs=METHODS[name].needs,
        )
    )
    words = [
        ENGINE.launch(start) if ENGINE.launch else "",
        "--disable-shared-experts-fusion",
        f"--kt-method {name}",
        f"--kt-weight-path {quote(path)}",
        f"--kt-cpuinfer {host.host_cores or CORES}",
        f"--kt-threadpool-count {NUMA_NODES}",
        f"--kt-num-gpu-experts {host.gpu_experts}",
        "--kt-max-deferred-experts-per-token 0",
    ]
    words += [f"--kt-gpu-prefill-token-threshold {host.gpu_prefill_tokens}"] if host.gpu_prefill_tokens else []
    return " ".join(words)


def launch_chat(start: Start) -> str:
    """Its own program until 0.4: doc/en/DeepseekR1_V3_tutorial.md."""
    return (
        f"python ktransformers/local_chat.py --model_path {quote(start.place)} --gguf_path {_weights_path(start)} "
        f"--cpu_infer {start.plan.host.host_cores or CORES}"
    )


def _weights_path(start: Start) -> str:
    """What stands for the folder of experts that are stored otherwise than the checkpoint, with a note on it."""
    method = start.plan.host.host_method
    start.notes.append(
        Message(
            "{path} is the folder that kt-kernel/scripts/convert_cpu_weights.py writes from the checkpoint.",
            path=KT_WEIGHTS,
        )
        if method in METHODS
        else Message("{path} is the folder of a GGUF file of type {method}.", path=KT_WEIGHTS, method=method.upper())
    )
    return KT_WEIGHTS


HELD = HostExperts(
    methods=METHODS,
    # SGLang, sglang/srt/arg_groups/fields/exec_.py: kt_method AMXINT4
    default="AMXINT4",
    of_files="LLAMAFILE",
    file_type="q4_k_m",
    bandwidth_share=BANDWIDTH_SHARE,
    layer_seconds=LAYER_SECONDS,
    host_share=HOST_SHARE,
    link_share=LINK_SHARE,
    bytes_per_core=CHANNELS / 32,
    bands=BANDS,
    source="SGLang, sglang/srt/layers/moe/kt_ep_wrapper.py: KTEPWrapperMethod",
)
NEWEST = replace(
    ENGINE,
    name="ktransformers",
    rollout="",
    passes_in=ENGINE.name,
    version="KTransformers 0.5.1",
    source="KTransformers, kt-kernel/README.md; SGLang, sglang/srt/layers/moe/kt_ep_wrapper.py",
    host_experts=HELD,
    launch=launch,
    listed=12,
    aliases=("kt", "ktkernel"),
    settings=("gpu_experts", "host_method", "host_cores", "gpu_prefill_tokens"),
    serves=("generate",),
    drafts=(),
    transfers=(),
    router=None,
    kv_tiers=(),
    faster_weights=(),
    vendors=("NVIDIA",),
    backends={"cpu": ()},
    backends_source="KTransformers, doc/en/support/supported-models-and-precision.md",
    older={},
)
# Until 0.4.4 a layer's experts were written into the buffer, copied, and repacked in turn: kt_ep_wrapper.py,
# SharedFullContext.load of December 2025; since then write(e+1), copy(e) and postprocess(e-1) run at the same time.
IN_TURN = replace(
    NEWEST,
    version="KTransformers 0.4",
    host_experts=replace(HELD, link_share=OLD_LINK_SHARE, overlaps_loading=False),
)
# One request at a time, prompts in chunks of 8192 tokens, a cache of the whole context; weights beside the experts from
# the same GGUF file (doc/en/DeepseekR1_V3_tutorial.md, ktransformers/local_chat.py: chunk_prefill_size).
OLDER = replace(
    NEWEST,
    version="KTransformers 0.2",
    source="KTransformers, doc/en/DeepseekR1_V3_tutorial.md",
    host_experts=replace(
        HELD,
        methods={name: METHODS[name] for name in ("LLAMAFILE", "AMXINT8")},
        default="LLAMAFILE",
        layer_seconds=OLD_LAYER_SECONDS,
        host_share=0.0,
        link_share=0.0,
    ),
    share_of="nothing",
    reserve=None,
    pools=None,
    limits=(BatchLimit(tokens=8192, requests=1),),
    launch=launch_chat,
    gguf=True,
    loads_files=True,
    copies_in_server="",
    prefix_caching="",
)
SERVING_RUNTIMES.add("ktransformers", replace(NEWEST, older={"0.4": IN_TURN, "0.2": OLDER}))
