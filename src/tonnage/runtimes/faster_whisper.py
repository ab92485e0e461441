"""faster-whisper: Whisper in CTranslate2, one file after the other, or windows of a file in batches."""

from shlex import quote

from msgspec.structs import replace

from tonnage.runtimes import serving_runtime
from tonnage.runtimes.parts.serving import SERVING_RUNTIMES
from tonnage.runtimes.parts.start import Start


def launch(start: Start) -> str:
    start.note_nodes()
    size = start.name.rpartition("/")[2].removeprefix("whisper-")
    kind = "int8_float16" if start.plan.weights == "int8" else "float16"
    batch = start.plan.concurrency
    made = f"m = WhisperModel({size!r}, compute_type={kind!r})"
    names, call = "WhisperModel", "m.transcribe('audio.mp3')"
    if batch > 1:
        names = f"BatchedInferencePipeline, {names}"
        call = f"BatchedInferencePipeline(m).transcribe('audio.mp3', batch_size={batch})"
    code = f"from faster_whisper import {names}; {made}; print(*{call}[0], sep='\\n')"
    return f"python -c {quote(code)}"


SERVING_RUNTIMES.add(
    "faster-whisper",
    replace(
        serving_runtime("transformers"),
        name="faster-whisper",
        rollout="",
        version="faster-whisper 1.2",
        source="faster-whisper, faster_whisper/transcribe.py: beam_size 5, batch_size 8 of BatchedInferencePipeline",
        halves=True,  # Systran/faster-whisper-*: float16 files
        serves=("transcribe",),
        documents=1,
        batched_windows=16,  # faster-whisper, README.md: batched_model.transcribe("audio.mp3", batch_size=16)
        speech="faster-whisper",
        window_advance=30,
        speech_attention="",
        beams=5,
        beams_source="faster-whisper, faster_whisper/transcribe.py: beam_size 5",
        launch=launch,
        at_load={"int8": "int8_float16"},
        settings=(),
        drafts=(),
        kv_cache={},
        listed=40,
        aliases=("fasterwhisper",),
        is_fitted=False,
        older={},
    ),
)
