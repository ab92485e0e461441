"""OpenVINO GenAI on Intel's GPUs, as OpenVINO Model Server serves it: files that optimum-intel exports, keys and values
in 8 bits, and a cache that grows with the requests.

The plugin of the GPU turns activations into 8 bits where products of weights in 8 or 4 bits have many rows, and
multiplies those integers.
"""

from shlex import quote

from tonnage.kernel.message import Message
from tonnage.kernel.units import MIB
from tonnage.runtimes.parts.serving import SERVING_RUNTIMES, BatchLimit, Cells, ServingRuntime
from tonnage.runtimes.parts.start import Start, Words, settings
from tonnage.spec import Accelerator

TOKENS, REQUESTS = 256, 256  # openvino.genai, scheduler_config.hpp: max_num_batched_tokens, max_num_seqs
#: openvino, intel_gpu, paged_attention: block_size 16; a window keeps every token (Gemma 3, gpt-oss)
CELLS = Cells(multiple=16, windows=False, flash=True, host_table=False, by_layers=False)


def launch(start: Start) -> str:
    """model_server, src/cli_parser.cpp: a model of the Hub is exported by optimum-cli, then served."""
    plan = start.plan
    start.note_nodes()
    kind = (plan.weights or "fp16").lower().replace("_", "-")
    words = [
        "ovms --rest_port 8000",
        f"--source_model {quote(start.name)}",
        "--model_repository_path models",
        "--task text_generation",
        "--target_device GPU",
    ]
    words += _export(kind)
    words += settings(
        plan, {"max_num_batched_tokens": "--max_num_batched_tokens", "max_num_seqs": "--max_num_seqs"}, {}
    )
    words += [] if plan.kv_cache == "block-int8" else ["""--plugin_config '{"KV_CACHE_PRECISION": "f16"}'"""]
    words += ["--enable_prefix_caching true"] if plan.prefix_caching else []
    start.notes.append(
        Message(
            "The cache grows with the requests, here to {context} tokens of each; {flag} limits it to so many GB.",
            context=plan.context,
            flag="--cache_size",
        )
    )
    return " ".join(words)


def _export(kind: str) -> Words:
    """Words of the export: our names of formats are "ov-int4-sym-64g-r80", "ov-int8"; others are floats."""
    if not kind.startswith("ov-int"):
        return ["--weight-format fp16"]
    words, bits = kind.split("-"), kind[3:7]
    more = ["--sym"] if "sym" in words else []
    group = next((word[:-1] for word in words[2:] if word.endswith("g")), "-1" if "cw" in words else "")
    more += [f"--group-size {group}"] if group not in ("", "128") else []
    more += [f"--ratio 0.{word[1:]}" for word in words[2:] if word.startswith("r")]
    return [f"--weight-format {bits}"] + ([f"--extra_quantization_params {quote(' '.join(more))}"] if more else [])


def kernels_note(accelerator: Accelerator) -> str:
    """The runs of validation/recent/openvino.yaml that no rate is fitted to."""
    if accelerator.generation != "Arrow Lake-H":
        return ""
    return Message(
        "four published runs on a Core Ultra 9 285H (openvino, issue 36270, which reports them as a fault) took 1.6 to "
        "4.6 times as long for a token as estimated, and 4 to 10 times for a prompt."
    )


SERVING_RUNTIMES.add(
    "openvino",
    ServingRuntime(
        name="openvino",
        version="OpenVINO 2026.2",
        source=(
            "OpenVINO-GenAI, src/cpp/include/openvino/genai/scheduler_config.hpp; OpenVINO, src/plugins/intel_gpu: "
            "execution_config.cpp, paged_attention"
        ),
        memory_share=None,
        share_of="nothing",
        limits=(BatchLimit(tokens=TOKENS, requests=REQUESTS),),
        paging=None,
        cells=CELLS,
        process=747 * MIB,
        communicators=0,
        graphs=(0, 0),
        overhead_source=(
            "OpenVINO, docs/sphinx_setup/_static/benchmarks_files: largest resident sets on integrated GPUs "
            "(scripts/openvino_process.py)"
        ),
        logits_bytes=4,
        narrower_weights=("ov-int8", "ov-int4"),
        faster_weights=("ov-int4", "ov-int8"),
        launch=launch,
        kernels_note=kernels_note,
        listed=7,
        aliases=("openvinogenai",),
        kv_cache={"u8": "block-int8", "i8": "block-int8", "int8": "block-int8", "f16": "fp16", "fp16": "fp16"},
        kv_cache_source="OpenVINO-Model-Server, src/cli_parser.cpp: --kv_cache_precision",
        own_kv_cache="block-int8",
        formats=("bf16", "fp16", "fp32", "ov-int4", "ov-int8"),
        formats_source="optimum-intel, commands/export/openvino.py: --weight-format",
        exports=("fp16", "ov-"),
        weight_words={"int4": "ov-int4", "int8": "ov-int8"},
        vendors=("Intel",),
        integer_products=("int8",),
    ),
)
