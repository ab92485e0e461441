"""Text Generation Inference. Sources: server/text_generation_server/models/flash_causal_lm.py and router/src/infer."""

from tonnage.interchange.diagnose.patterns import SAYS_CAUSE, failure

FAILURES = (
    failure(
        "tgi",
        "Not enough memory to handle",
        r"Not enough memory to handle (?P<prefill_tokens>\d+) prefill tokens",
        phase="profiling",
        cause="activations",
        strength=SAYS_CAUSE,
        prefill_tokens="tokens",
    ),
    failure(
        "tgi",
        "Not enough memory to run with",
        r"Not enough memory to run with `--max-total-tokens|Not enough memory to run with a prefill cache",
        phase="cache allocation",
        cause="kv cache",
        strength=SAYS_CAUSE,
    ),
)
