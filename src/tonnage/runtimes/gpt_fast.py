"""gpt-fast: PyTorch alone, compiled, with a cache that is allocated whole for a batch of one length."""

from shlex import quote

from tonnage.kernel.units import GIB
from tonnage.runtimes.parts.serving import SERVING_RUNTIMES, BatchLimit, Cells, ServingRuntime
from tonnage.runtimes.parts.start import Start


def launch(start: Start) -> str:
    plan = start.plan
    start.note_nodes()
    ranks = plan.tensor_parallel_size
    run = f"torchrun --standalone --nproc_per_node={ranks} generate.py" if ranks > 1 else "python generate.py"
    suffix = {"int8": "_int8", "int4": "_int4.g32"}.get(plan.weights or "", "")
    path = f"checkpoints/{start.name}/model{suffix}.pth"
    words = [run, "--compile", f"--checkpoint_path {quote(path)}"]
    words += (
        [f"--draft_checkpoint_path {quote(f'checkpoints/{start.draft}/model.pth')}"]
        if plan.drafting.draft_model
        else []
    )
    words += [f"--speculate_k {plan.drafting.draft_tokens}"] if plan.drafting.draft_tokens else []
    return " ".join(words)


SERVING_RUNTIMES.add(
    "gpt-fast",
    ServingRuntime(
        name="gpt-fast",
        version="gpt-fast",
        source="gpt-fast, model.py: Transformer.setup_caches, KVCache",
        memory_share=None,
        share_of="nothing",
        limits=(BatchLimit(tokens=0, requests=0),),  # the whole prompts of all requests at once
        paging=None,
        cells=Cells(multiple=8, windows=False, flash=True, host_table=False, by_layers=False),
        process=round(0.51 * GIB),
        communicators=round((1.53 - 0.51) * GIB),
        graphs=(0, 0),
        launch=launch,
        listed=7,
        settings=("draft_tokens", "speculative"),
        drafts=("draft",),
        loads_files=True,
        overhead_source=(
            "llm-d-planner, accuracy/results/v0.19.0/results_raw.csv: init_cuda_memory_gib on H100s with one "
            "rank and with two"
        ),
        logits_bytes=6,
        kv_cache_source="gpt-fast, model.py: KVCache",
        formats=("bf16", "fp16", "int8", "int4"),
        formats_source="gpt-fast, quantize.py",
    ),
)
