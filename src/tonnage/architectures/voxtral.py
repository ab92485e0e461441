"""Voxtral: Whisper's encoder, four frames merged to one, and a Llama (transformers 5.23, models/voxtral)."""

from tonnage.architectures._config import Config
from tonnage.architectures._model import Model
from tonnage.architectures._registry import architecture
from tonnage.architectures._towers import joined, language_model, projected, tower
from tonnage.architectures.llava import two_layers
from tonnage.architectures.towers_whisper import VOXTRAL


@architecture("VoxtralForConditionalGeneration", model_types=("voxtral",))
def voxtral(c: Config) -> Model:
    text, audio = language_model(c, "llama"), tower(c, "voxtral_encoder", "audio_config")
    inputs = c.section("audio_config").with_defaults(VOXTRAL).size("intermediate_size")
    return joined(
        text, "voxtral", projected(audio, *two_layers("multi_modal_projector", inputs, text.hidden_size, bias=False))
    )
