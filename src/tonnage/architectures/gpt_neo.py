"""GPT-Neo: GPT-2 whose layers alternate between full attention and a window of 256 tokens, without biases on q, k and
v.

Structure and defaults: huggingface/transformers src/transformers/models/gpt_neo (v5.23).
"""

from typing import Any

from tonnage.architectures._classic import full_attention, plain_mlp, width
from tonnage.architectures._config import Config
from tonnage.architectures._model import Block, Model
from tonnage.architectures._parts import decoder, model, num_layers, pattern, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message


@architecture("GPTNeoForCausalLM", model_types=("gpt_neo",))
def gpt_neo(c: Config) -> Model:
    windows = {"global": None, "local": c.size("window_size", default=256)}
    layers = {kind: _layer(c, Message("{kind} layer", kind=kind), window) for kind, window in windows.items()}
    blocks, order = pattern(c, layers, _kinds(c), "attention_types")
    positions = c.size("max_position_embeddings", default=2048)
    tied = c.flag("tie_word_embeddings", default=True)
    branch = decoder(c, blocks, order, norm_kind="layer", tied=tied, positions=positions, names=("wte", "wpe", "ln_f"))
    return model(c, "gpt_neo", branch, tied=tied, context=positions)


def _layer(c: Config, name: str, window: int | None) -> Block:
    out = {"out_bias": True, "names": ("q_proj", "k_proj", "v_proj", "out_proj")}
    mixer = full_attention(c, name="attn.attention", window=window, **out)
    feed = plain_mlp(c, "intermediate_size", names=("c_fc", "c_proj"))
    return pre_norm(name, mixer, feed, width(c), "layer", names=("ln_1", "ln_2"))


def _kinds(c: Config) -> list[str]:
    """The kind of each layer: `attention_layers`, else `attention_types`, [[["global", "local"], 12]] by default."""
    layers = num_layers(c)
    listed_kinds = c.items("attention_layers", default=None, length=layers)
    if listed_kinds is not None:
        return [str(kind) for kind in listed_kinds]
    kinds = [
        kind
        for group in c.items("attention_types", default=[[["global", "local"], -(-layers // 2)]])
        for kind in _group(c, group)
    ]
    if len(kinds) != layers:
        raise InvalidInput(
            "{where}: attention_types must describe all {layers} layers. It describes {count}.",
            where=c.where,
            layers=layers,
            count=len(kinds),
        )
    return kinds


def _group(c: Config, group: Any) -> list[str]:
    if isinstance(group, list | tuple) and len(group) == 2:
        kinds, times = group
        if isinstance(kinds, list | tuple) and isinstance(times, int) and 0 <= times * len(kinds) <= num_layers(c):
            return [str(kind) for kind in kinds] * times
    raise InvalidInput(
        '{where}: attention_types must hold pairs such as [["global", "local"], 12]. Got {group}.',
        where=c.where,
        group=shown(group),
    )
