"""MLX: `mlx_lm.server`, `mlx_lm.generate` and `mlx_lm.chat`, read as questions to the engine mlx."""

from typing import Any

from tonnage.interchange.formats import FORMATS, Format
from tonnage.interchange.parts.engines.engine_options import NO_OPTION, Options, count, names, put_count
from tonnage.interchange.parts.engines.servers import Program, Server, Size, commands_of, program_score, read_servers
from tonnage.interchange.reading import Reading
from tonnage.interchange.source import Source

STARTS = ("server", "generate", "chat", "cache_prompt")
PROGRAM = Program(
    starts=(
        *((f"mlx_lm.{name}",) for name in STARTS),
        *(("mlx_lm", name) for name in STARTS),
        *(("-m", f"mlx_lm.{name}") for name in STARTS),
        *(("-m", "mlx_lm", name) for name in STARTS),
    ),
    switches=names("trust-remote-code use-default-chat-template ignore-chat-template pipeline verbose"),
    variables=("MLX_",),
    short={"p": "prompt", "m": "max-tokens"},
)
IGNORED = names("""
    host port allowed-origins trust-remote-code log-level chat-template use-default-chat-template ignore-chat-template
    temp top-p top-k min-p min-tokens-to-keep xtc-probability xtc-threshold max-tokens chat-template-args
    chat-template-config prompt system-prompt prefill-response seed verbose eos-token extra-eos-token
    add-eos-token prompt-cache-file cache-dir prompt-cache-size prompt-cache-bytes image
""")
TABLE = Options(
    ignored=IGNORED,
    harmless={
        "kv-group-size": (("64",), "the cache is in 16 bits here"),
        "quantized-kv-start": (("0", "5000"), "the cache is in 16 bits here"),
        "decode-concurrency": (("32",), "requests at the same time are those of --users here"),
        "prompt-concurrency": (("8",), "requests at the same time are those of --users here"),
    },
    unsure={
        "kv-bits": "the cache is in 16 bits here",
        "adapter-path": "the rank is that of the file",
        "max-kv-size": NO_OPTION,
        "pipeline": "several Macs that share a model are not timed",
        "quantize-activations": NO_OPTION,
    },
)
ENGINE = "engine"


def recognises(source: Source) -> int:
    return 0 if source.tree else program_score(source, PROGRAM)


def values(source: Source) -> dict[str, Any]:
    command = next((command for _, command in commands_of(source, PROGRAM)), None)
    if command is None:
        return {}
    options = PROGRAM.values(command)
    alone = options.pop("alone", [])
    return {**options, **{f"word {number}": word for number, word in enumerate(alone, 1)}}


def read(r: Reading) -> None:
    r.verb = "serve"
    read_servers(r, [Server(values=r.values, read=_read)])


def _read(r: Reading) -> Size:
    PROGRAM.rename(r)
    if r.has("model"):
        r.put("model", r.text("model"), "model")
    if r.has("draft-model"):
        r.put("draft_model", r.text("draft-model"), "draft-model")
        put_count(r, "num-draft-tokens", "draft_tokens")
        r.assume("num-draft-tokens", 3, "draft_tokens")
    r.ignore(["num-draft-tokens"])
    if r.has("decode-concurrency"):
        count(r, "decode-concurrency")
    for key in r.under("MLX_"):
        r.needs_default(key, "", "0", why="a variable that may change kernels or buffers")
    TABLE.read(r)
    put_count(r, "prefill-step-size", "max_num_batched_tokens")
    r.values[ENGINE] = "mlx"
    r.put(ENGINE, "mlx", ENGINE)
    return Size(accelerators=0)


FORMATS.add(
    "mlx",
    Format(
        name="mlx",
        tool="mlx-lm",
        version="0.32.2",
        source="mlx-lm, mlx_lm/server.py, mlx_lm/generate.py",
        recognises=recognises,
        values=values,
        read=read,
        known=lambda: TABLE.known | names("model draft-model num-draft-tokens prefill-step-size"),
        verbs=("serve",),
    ),
)
