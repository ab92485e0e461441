"""JetStream with MaxText on TPUs: a decoding state of so many slots of one length, allocated whole; prompts are
prefilled one by one.
"""

from shlex import quote

from tonnage.runtimes.parts.serving import SERVING_RUNTIMES, BatchLimit, Cells, ServingRuntime
from tonnage.runtimes.parts.start import HUB, Start


def launch(start: Start) -> str:
    plan = start.plan
    per_device = plan.concurrency / plan.tensor_parallel_size
    words = [
        "python -m MaxText.maxengine_server MaxText/configs/base.yml",
        f"model_name={quote(HUB if start.place == HUB else start.model.name)}",
        f"max_target_length={plan.context}",
    ]
    words += [
        f"per_device_batch_size={per_device:g}",
        f"ici_tensor_parallelism={plan.tensor_parallel_size}",
        *start.words,
    ]
    start.notes.append(
        "MaxText has its own names of models, and reads a checkpoint that was converted for it: "
        f"load_parameters_path=PATH, made from {start.name}."
    )
    start.note_nodes()
    return " ".join(words)


SERVING_RUNTIMES.add(
    "jetstream",
    ServingRuntime(
        name="jetstream",
        version="JetStream with MaxText",
        source="MaxText, src/MaxText/maxengine.py: init_decode_state",
        memory_share=None,
        share_of="nothing",
        limits=(BatchLimit(tokens=0, requests=0, one_prompt=True),),
        paging=None,
        cells=Cells(multiple=1, windows=False, flash=True, host_table=False, by_layers=False),
        process=0,  # what libtpu holds nobody published
        communicators=0,
        graphs=(0, 0),
        launch=launch,
        listed=9,
        aliases=("maxtext",),
        at_load={"int8": "quantization=int8", "fp8-e4m3": "quantization=fp8"},  # MaxText, src/MaxText/configs/base.yml
        overhead_source="MaxText, src/MaxText/maxengine.py",
        logits_bytes=6,
        kv_cache_source="MaxText, src/MaxText/maxengine.py",
        formats=("bf16", "fp16", "fp32", "int8", "int4", "fp8"),
        formats_source="MaxText, src/MaxText/configs/base.yml: quantization",
    ),
)
