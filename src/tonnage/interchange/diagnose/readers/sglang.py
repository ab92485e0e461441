"""SGLang, whose GB are 2^30 bytes. Sources: sglang 0.5.23 (srt/model_executor/pool_configurator.py,
srt/model_executor/runner_backend_utils, srt/mem_cache/allocation.py, srt/managers); 0.1 to 0.4 for older wordings.
"""

from tonnage.interchange.diagnose.numbers import NUMBER
from tonnage.interchange.diagnose.patterns import FILLS, FOLLOWS, SAYS_CAUSE, fact, failure

_N = NUMBER
SGLANG = "sglang"

FAILURES = (
    failure(
        SGLANG,
        "Not enough memory. Please try to increase --mem-fraction-static",
        rf"--mem-fraction-static(?:.{{0,40}}mem_fraction_static=(?P<mem_fraction_static>{_N}))?",
        phase="cache allocation",
        cause="kv cache",
        strength=SAYS_CAUSE,
        mem_fraction_static="share",
    ),
    failure(
        SGLANG,
        "leaves no room for the full KV pool",
        rf"within the available (?P<available_kv>{_N}) GiB",
        phase="cache allocation",
        cause="kv cache",
        strength=SAYS_CAUSE,
        available_kv="gib",
    ),
    failure(
        SGLANG,
        "Capture cuda graph failed",
        phase="graph capture",
        cause="cuda graphs",
        strength=FILLS,
    ),
    failure(
        SGLANG,
        "ecode out of memory. Try to lower your batch size",
        phase="serving",
        cause="kv cache",
        strength=SAYS_CAUSE,
    ),
    failure(
        SGLANG,
        "refill out of memory. Try to lower your batch size",
        phase="serving",
        cause="kv cache",
        strength=SAYS_CAUSE,
    ),
    failure(
        SGLANG,
        "Out of memory even after retracting all other requests",
        phase="serving",
        cause="context too long",
        strength=SAYS_CAUSE,
    ),
    failure(
        SGLANG,
        "runs out of memory. Please set a smaller number for `--max-running-requests`",
        phase="serving",
        cause="kv cache",
        strength=SAYS_CAUSE,
    ),
    failure(SGLANG, "alloc_req_slots runs out of memory", phase="serving", cause="kv cache", strength=SAYS_CAUSE),
    failure(
        SGLANG,
        "The memory capacity is unbalanced",
        r"unbalanced.{0,300}",
        phase="loading weights",
        cause="another process",
        strength=SAYS_CAUSE,
    ),
    failure(
        SGLANG,
        "KV pool holds",
        r"KV pool holds (?P<kv_tokens>\d+) tokens, fewer than --context-length (?P<max_model_len>\d+)",
        phase="cache allocation",
        cause="context too long",
        strength=FOLLOWS,
        kv_tokens="tokens",
        max_model_len="tokens",
    ),
    failure(
        SGLANG,
        "set --mem-fraction-static to a smaller value",
        phase="graph capture",
        cause="cuda graphs",
        strength=FILLS,
    ),
)

FACTS = (
    fact(
        SGLANG,
        "Load weight begin",
        rf"Load weight begin\. avail mem=(?P<free_before_weights>{_N}) GB",
        free_before_weights="gib",
    ),
    fact(
        SGLANG,
        "Load weight end",
        rf"Load weight end\..{{0,300}}avail mem=(?P<free_after_weights>{_N}) GB(?:, mem usage=(?P<weights>{_N}) GB)?",
        free_after_weights="gib",
        weights="gib",
    ),
    fact(
        SGLANG,
        "KV Cache is allocated",
        rf"(?:#tokens: (?P<kv_tokens>\d+), )?K size: (?P<k_cache>{_N}) GB, V size: (?P<v_cache>{_N}) GB",
        kv_tokens="tokens",
        k_cache="gib",
        v_cache="gib",
    ),
    fact(
        SGLANG,
        "KV size:",
        rf"#tokens: (?P<kv_tokens>\d+), KV size: (?P<kv_cache>{_N}) GB",
        kv_tokens="tokens",
        kv_cache="gib",
    ),
    fact(  # a pool for sliding windows and one for whole contexts
        SGLANG,
        "SWAKVPool mem usage",
        rf"SWAKVPool mem usage: (?P<window_cache>{_N}) GB, swa size: (?P<window_tokens>\d+), full size: "
        r"(?P<full_tokens>\d+)",
        window_cache="gib",
        window_tokens="tokens",
        full_tokens="tokens",
    ),
    fact(
        SGLANG,
        "is allocated. max_mamba_cache_size",
        rf"conv_state size: (?P<conv_state>{_N}) ?GB, ssm_state size: (?P<ssm_state>{_N}) ?GB",
        conv_state="gib",
        ssm_state="gib",
    ),
    fact(
        SGLANG,
        "Memory pool end",
        rf"Memory pool end\..{{0,40}}avail mem=(?P<free_after_cache>{_N}) GB",
        free_after_cache="gib",
    ),
    fact(
        SGLANG,
        "max_total_num_tokens=",
        r"max_total_num_tokens=(?P<kv_tokens>\d+).{0,200}max_running_requests=(?P<requests>\d+)(?:.{0,60}context_len="
        r"(?P<max_model_len>\d+))?",
        kv_tokens="tokens",
        requests="requests",
        max_model_len="tokens",
    ),
    fact(SGLANG, "mem usage=", rf"[Gg]raph end\..{{0,80}}mem usage=(?P<cuda_graphs>{_N}) GB", cuda_graphs="gib"),
    fact(SGLANG, "Try to allocate", r"Try to allocate (?P<wanted_tokens>\d+) tokens", wanted_tokens="tokens"),
    fact(SGLANG, "available tokens", r"[Aa]vail?able tokens: (?P<free_tokens>\d+)", free_tokens="tokens"),
)
