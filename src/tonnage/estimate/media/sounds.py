"""Tokens of the sounds of a request by the rule of each family's own processor, and what the audio tower sees of them.

Sources: transformers 5.24, models/{qwen2_audio,qwen2_5_omni,qwen3_omni_moe,qwen3_asr,voxtral,voxtral_realtime,gemma3n,
gemma4,phi4_multimodal,glmasr,audioflamingo3,granite_speech}: processors, feature extractors and audio towers; Ultravox:
vllm-project/vllm vllm/model_executor/models/ultravox.py; Kimi-Audio: arXiv 2504.18425, sec. 2 (12.5 tokens a second).
All sample at 16 kHz and make a frame every 10 ms.
"""

from collections.abc import Callable, Mapping
from math import ceil

from tonnage.architectures import Model
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message
from tonnage.spec.media import Encoded

SoundRule = Callable[[Model, float], Encoded]
RATE, HOP = 16_000, 160  # samples a second, and of a frame
WINDOW = 1500  # positions of Whisper's encoder: 30 seconds


def _frames(seconds: float) -> int:
    return max(ceil(round(seconds * RATE) / HOP), 1)


def _within(seconds: float, most: int, family: str) -> None:
    if seconds > most:
        raise InvalidInput(
            "{@audio_seconds}: the processor of {family} cuts sounds at {most} seconds. Got {seconds:g}.",
            family=family,
            most=most,
            seconds=seconds,
        )


def _halved_twice(frames: int) -> int:
    return ((frames - 1) // 2 + 1 - 2) // 2 + 1


def qwen2_audio(model: Model, seconds: float) -> Encoded:
    """Whisper's encoder sees 30 seconds, padded; two of its positions are averaged to one token."""
    _within(seconds, 30, "Qwen2-Audio")
    return Encoded(
        tokens=max(_halved_twice(_frames(seconds)), 1),
        sequences=1,
        patches=WINDOW,
        rows=WINDOW // 2,
        why="a frame every 10 ms, four frames to a token",
    )


def qwen2_5_omni(model: Model, seconds: float) -> Encoded:
    """Positions attend within two seconds."""
    _within(seconds, 300, "Qwen2.5-Omni")
    frames = _frames(seconds)
    tokens = max(_halved_twice(frames), 1)
    return Encoded(
        tokens=tokens,
        sequences=ceil(frames / 200),
        patches=min(100, ceil(frames / 2)),
        rows=tokens,
        why="a frame every 10 ms, four frames to a token",
    )


def qwen3_omni(model: Model, seconds: float) -> Encoded:
    """Three convolutions of stride 2 on chunks of a second: 13 tokens a second."""
    frames = _frames(seconds)
    rest = (frames % 100 - 1) // 2 + 1
    tokens = max(((rest - 1) // 2 + 1 - 1) // 2 + 1 + frames // 100 * 13, 1)
    return Encoded(
        tokens=tokens,
        sequences=ceil(tokens / 104),
        patches=min(104, tokens),
        rows=tokens,
        why="13 tokens a second",
    )


def voxtral(model: Model, seconds: float) -> Encoded:
    """Padded to whole windows of 30 seconds, of which each is 375 tokens."""
    windows = ceil(seconds / 30)
    return Encoded(
        tokens=windows * 375,
        sequences=windows,
        patches=WINDOW,
        rows=windows * 375,
        why=Message("{windows} windows of 30 seconds, 375 tokens each", windows=windows),
    )


def gemma3n(model: Model, seconds: float) -> Encoded:
    """188 tokens, whatever the length."""
    _within(seconds, 30, "Gemma 3n")
    return Encoded(tokens=188, sequences=1, patches=188, rows=188, why="padded to 30 seconds")


def gemma4(model: Model, seconds: float) -> Encoded:
    """25 tokens a second, 750 at most."""
    _within(seconds, 30, "Gemma 4")
    frames = (round(seconds * RATE) + HOP - (2 * HOP + 1)) // HOP + 1
    for _ in range(2):
        frames = (frames - 1) // 2 + 1
    tokens = min(max(frames, 1), 750)
    return Encoded(tokens=tokens, sequences=1, patches=tokens, rows=tokens, why="25 tokens a second")


def gemma4_unified(model: Model, seconds: float) -> Encoded:
    """640 samples to a token, 750 tokens at most; no tower."""
    _within(seconds, 30, "Gemma 4")
    tokens = min(max(ceil(round(seconds * RATE) / 640), 1), 750)
    return Encoded(tokens=tokens, sequences=1, patches=tokens, rows=tokens, why="25 tokens a second")


def phi4_multimodal(model: Model, seconds: float) -> Encoded:
    """Eight frames to a token."""
    frames = max((round(seconds * RATE) - 400) // HOP + 1, 1)
    tokens = ceil(frames / 8)
    return Encoded(
        tokens=tokens, sequences=1, patches=tokens, rows=tokens, why="a frame every 10 ms, eight frames to a token"
    )


def _windows(seconds: float) -> list[int]:
    """Frames of each window of 30 seconds."""
    frames, whole = _frames(seconds), 2 * WINDOW
    return [min(whole, frames - first) for first in range(0, frames, whole)]


def audio_flamingo(model: Model, seconds: float) -> Encoded:
    """Windows of 30 seconds, padded; two positions are averaged to one token."""
    _within(seconds, 600, "Audio Flamingo 3")
    windows = _windows(seconds)
    return Encoded(
        tokens=sum(max(_halved_twice(frames), 1) for frames in windows),
        sequences=len(windows),
        patches=WINDOW,
        rows=len(windows) * WINDOW // 2,
        why="a frame every 10 ms, four frames to a token",
    )


def glm_asr(model: Model, seconds: float) -> Encoded:
    """Windows of 30 seconds, padded; four positions are merged to one token."""
    windows = _windows(seconds)
    return Encoded(
        tokens=max(((sum(windows) - 1) // 2 + 1 - 4) // 4 + 1, 1),
        sequences=len(windows),
        patches=WINDOW,
        rows=len(windows) * WINDOW // 4,
        why="a frame every 10 ms, eight frames to a token",
    )


def ultravox(model: Model, seconds: float) -> Encoded:
    """Windows of 30 seconds; eight positions are stacked to one token."""
    windows = _windows(seconds)
    stacked = 2 * int(model.config.get("stack_factor") or 8)
    tokens = sum(ceil(frames / stacked) for frames in windows)
    return Encoded(
        tokens=tokens,
        sequences=len(windows),
        patches=ceil(windows[0] / 2),
        rows=tokens,
        why=Message("a frame every 10 ms, {frames} frames to a token", frames=stacked),
    )


def voxtral_realtime(model: Model, seconds: float) -> Encoded:
    """Eight frames to a token, to whose embedding their sound is added."""
    frames = _frames(seconds)
    tokens = ceil(frames / 8)
    return Encoded(
        tokens=tokens,
        sequences=1,
        patches=ceil(frames / 2),
        rows=tokens,
        why="a frame every 10 ms, eight frames to a token",
    )


def kimi_audio(model: Model, seconds: float) -> Encoded:
    """Windows of 30 seconds, padded; four positions are stacked to one token, to whose embedding they are added."""
    windows = _windows(seconds)
    tokens = ceil(sum(windows) / 8)
    return Encoded(
        tokens=tokens,
        sequences=len(windows),
        patches=WINDOW,
        rows=tokens,
        why="a frame every 10 ms, eight frames to a token",
    )


def granite_speech(model: Model, seconds: float) -> Encoded:
    """Two frames to a position, which see their block of 200; three queries to 15 positions."""
    positions = (round(seconds * RATE) // HOP + 1) // 2
    tokens = max(ceil(positions / 15), 1) * 3
    return Encoded(
        tokens=tokens,
        sequences=max(ceil(positions / 200), 1),
        patches=min(max(positions, 1), 200),
        rows=tokens,
        why="a frame every 10 ms, 30 frames to three tokens",
    )


#: By the class that a checkpoint names.
SOUND_RULES: Mapping[str, SoundRule] = {
    "Qwen2AudioForConditionalGeneration": qwen2_audio,
    "Qwen2_5OmniModel": qwen2_5_omni,
    "Qwen2_5OmniForConditionalGeneration": qwen2_5_omni,
    "Qwen2_5OmniThinkerForConditionalGeneration": qwen2_5_omni,
    "Qwen3OmniMoeForConditionalGeneration": qwen3_omni,
    "Qwen3OmniMoeThinkerForConditionalGeneration": qwen3_omni,
    "Qwen3ASRForConditionalGeneration": qwen3_omni,
    "VoxtralForConditionalGeneration": voxtral,
    "VoxtralRealtimeForConditionalGeneration": voxtral_realtime,
    "AudioFlamingo3ForConditionalGeneration": audio_flamingo,
    "GlmAsrForConditionalGeneration": glm_asr,
    "GraniteSpeechForConditionalGeneration": granite_speech,
    "UltravoxModel": ultravox,
    "MoonshotKimiaForCausalLM": kimi_audio,
    "Gemma3nForConditionalGeneration": gemma3n,
    "Gemma4ForConditionalGeneration": gemma4,
    "Gemma4UnifiedForConditionalGeneration": gemma4_unified,
    "Phi4MultimodalForCausalLM": phi4_multimodal,
    "Phi4MMForCausalLM": phi4_multimodal,
}
