"""Whisper: an audio encoder over 30 seconds of sound and a text decoder that attends to it.

Structure: transformers 5.23, models/whisper.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._model import Block, Branch, Model
from tonnage.architectures._parts import decoder, norm
from tonnage.architectures._registry import architecture
from tonnage.architectures._towers import plain_mlp
from tonnage.architectures.towers_whisper import WHISPER, whisper_attention
from tonnage.architectures.towers_whisper import whisper as encoder
from tonnage.kernel.errors import InvalidInput

DECODER = {
    **WHISPER,
    "vocab_size": 51_865,
    "decoder_layers": 4,
    "decoder_attention_heads": 6,
    "decoder_ffn_dim": 1536,
    "max_target_positions": 448,
}


@architecture("WhisperForConditionalGeneration", model_types=("whisper",))
def whisper(c: Config) -> Model:
    """The head is the table; cross-attention keeps the encoder's 1500 keys and values for the whole request."""
    c = c.with_defaults(DECODER)
    text = text_decoder(c)
    context = c.size("max_target_positions")
    return Model(
        name="",
        family="whisper",
        architecture="",
        hidden_size=text.hidden_size,
        vocab_size=c.size("vocab_size"),
        context=context,
        branches=(text, encoder(c)),
        tied=c.flag("tie_word_embeddings", default=True),
    )


def text_decoder(c: Config) -> Branch:
    width, heads = c.size("d_model"), c.size("decoder_attention_heads")
    if width % heads:
        raise InvalidInput(
            "{where}: decoder_attention_heads ({heads}) must divide d_model ({width}).",
            where=c.where,
            heads=heads,
            width=width,
        )
    layer = Block(
        "decoder layer",
        (
            norm("self_attn_layer_norm", width, "layer"),
            *whisper_attention(c, "self_attn", width, heads, causal=True),
            norm("encoder_attn_layer_norm", width, "layer"),
            *whisper_attention(c, "encoder_attn", width, heads, memory_tokens=c.size("max_source_positions")),
            norm("final_layer_norm", width, "layer"),
            plain_mlp(width, c.size("decoder_ffn_dim")),
        ),
    )
    layers = [0] * c.depth("decoder_layers")
    return decoder(
        c,
        [layer],
        layers,
        norm_kind="layer",
        tied=c.flag("tie_word_embeddings", default=True),
        positions=c.size("max_target_positions"),
        hidden_size=width,
    )
