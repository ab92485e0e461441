"""whisper.cpp: Whisper in ggml, on GPUs of all makers, Apple's chips and CPUs."""

from shlex import quote

from msgspec.structs import replace

from tonnage.runtimes import serving_runtime
from tonnage.runtimes.parts.serving import SERVING_RUNTIMES
from tonnage.runtimes.parts.start import Start


def launch(start: Start) -> str:
    start.note_nodes()
    size = start.name.rpartition("/")[2].removeprefix("whisper-")
    return f"whisper-cli -m {quote(f'ggml-{size}.bin')} -f audio.wav"


SERVING_RUNTIMES.add(
    "whisper.cpp",
    replace(
        serving_runtime("transformers"),
        name="whisper.cpp",
        rollout="",
        version="whisper.cpp 1.8",
        source="whisper.cpp, examples/cli/cli.cpp: beam size 5",
        halves=True,  # models/convert-pt-to-ggml.py: f16
        serves=("transcribe",),
        documents=1,
        speech="whisper.cpp",
        window_advance=30,
        speech_attention="fused",  # whisper.cpp, release 1.8.0: flash attention by default
        beams=5,
        beams_source="whisper.cpp, examples/cli/cli.cpp: beam_size 5",
        launch=launch,
        at_load={},
        settings=(),
        drafts=(),
        kv_cache={},
        listed=40,
        aliases=("whispercpp",),
        is_fitted=False,
        older={},
    ),
)
