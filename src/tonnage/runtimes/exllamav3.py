"""ExLlamaV3: EXL3 files, and what it has of ExLlamaV2. TabbyAPI serves it."""

from msgspec.structs import replace

from tonnage.runtimes import serving_runtime
from tonnage.runtimes.exllamav2 import CELLS, tabby
from tonnage.runtimes.parts.serving import SERVING_RUNTIMES
from tonnage.runtimes.parts.start import Start

ROWS = 144  # exllamav3/modules/quant/exl3.py: AUTO_RECONSTRUCT_THRESHOLD
COLUMNS = 32768  # exllamav3/modules/quant/exl3.py: MAX_RECONSTRUCT_SLICE_N
BITS = range(2, 9)  # exllamav3/cache/quant.py: CacheLayer_quant


def launch(start: Start) -> str:
    """TabbyAPI's command; bits of keys and of values are the same here."""
    kind = start.plan.kv_cache or ""
    bits = kind.removeprefix("exl-q")
    return tabby(start, "exllamav3", f"{bits},{bits}" if bits != kind else None)


SERVING_RUNTIMES.add(
    "exllamav3",
    replace(
        serving_runtime("exllamav2"),
        name="exllamav3",
        version="ExLlamaV3 1.4",
        source=(
            "ExLlamaV3, exllamav3/model/model_ls.py; ExLlamaV3, exllamav3/cache/quant.py: get_kv; ExLlamaV3, "
            "exllamav3/modules/quant/exl3.py: reconstruct_hgemm"
        ),
        cells=replace(CELLS, unpacked_columns=COLUMNS, unpacked_weights=0, rotary=False),
        narrower_weights=("exl3-6.0", "exl3-4.0", "exl3-3.0"),
        faster_weights=("exl3-4.0",),
        narrow_cache="q8",
        launch=launch,
        aliases=("exllama3", "exl3"),
        prefix_caching="ExLlamaV3, exllamav3/generator/pagetable.py: pages of equal tokens are shared",
        kv_cache={"fp16": "fp16", **{f"q{bits}": f"exl-q{bits}" for bits in BITS}},
        kv_cache_source="ExLlamaV3, exllamav3/cache/quant.py: CacheLayer_quant, 2 to 8 bits",
        formats=("bf16", "fp16", "exl3"),
        formats_source="ExLlamaV3, exllamav3/modules/linear.py",
        vendors=("NVIDIA",),
        stored_rows={"NVIDIA": ROWS},
        check_cache=None,
        is_fitted=False,
        unmeasured=("ttft_seconds", "tpot_seconds"),
    ),
)
