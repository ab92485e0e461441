"""OpenAI's own Whisper in PyTorch, one window after the other."""

from shlex import quote

from msgspec.structs import replace

from tonnage.runtimes import serving_runtime
from tonnage.runtimes.parts.serving import SERVING_RUNTIMES
from tonnage.runtimes.parts.start import Start


def launch(start: Start) -> str:
    start.note_nodes()
    size = start.name.rpartition("/")[2].removeprefix("whisper-")
    return f"whisper audio.mp3 --model {quote(size)} --beam_size 5"


SERVING_RUNTIMES.add(
    "openai-whisper",
    replace(
        serving_runtime("transformers"),
        name="openai-whisper",
        rollout="",
        version="openai-whisper 20250625",
        source="openai-whisper, whisper/transcribe.py: --beam_size 5",
        halves=True,  # whisper/decoding.py: fp16 True
        serves=("transcribe",),
        documents=1,
        speech="openai-whisper",
        window_advance=30,
        speech_attention="fused",  # whisper/model.py: scaled_dot_product_attention, since 20240927
        beams=5,
        beams_source="openai-whisper, whisper/transcribe.py: --beam_size 5 on the command line",
        launch=launch,
        at_load={},
        settings=(),
        drafts=(),
        kv_cache={},
        listed=40,
        aliases=("openaiwhisper",),
        is_fitted=False,
        older={},
    ),
)
