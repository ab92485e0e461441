"""MiniCPM-V 2.6, 4 and 4.5: SigLIP, learned queries that gather a slice into 64 tokens, and Qwen2, Llama or Qwen3.

Structure: openbmb/MiniCPM-V-2_6 modeling_minicpmv.py and resampler.py; vllm-project/vllm
vllm/model_executor/models/minicpmv.py, which reads all versions.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._model import Model
from tonnage.architectures._parts import norm
from tonnage.architectures._registry import MODEL_TYPES, architecture, find
from tonnage.architectures._towers import joined, linear, projected, table, tower
from tonnage.kernel.errors import MissingDatum
from tonnage.kernel.message import listed
from tonnage.ops import Attention, Op

TEXT = {"2.6": "qwen2", "4.0": "llama", "4.5": "qwen3"}


@architecture("MiniCPMV", model_types=("minicpmv",))
def minicpm_v(c: Config) -> Model:
    version = str(c.raw("version"))
    if version not in TEXT:
        raise MissingDatum(
            "{where}: version {version} of MiniCPM-V is not described. Known: {known}.",
            where=c.where,
            version=version,
            known=listed(TEXT),
        )
    fields = {name: value for name, value in c.fields.items() if name not in ("architectures", "vision_config")}
    text = find(MODEL_TYPES, TEXT[version])(c.with_fields({**fields, "model_type": TEXT[version]}))
    section = c.section("vision_config")
    eye = {**section.fields, "model_type": "siglip_vision_model", "vision_use_head": False}
    vision = tower(c.with_fields({"vision_config": eye}), "siglip_vision_model")
    return joined(text, "minicpm_v", projected(vision, *resampler(c, vision.hidden_size, text.hidden_size)))


def resampler(c: Config, inputs: int, width: int) -> tuple[Op, ...]:
    heads = width // 128
    return (
        table("resampler.query", c.size("query_num", default=64), width),
        linear("resampler.kv_proj", inputs, width, bias=False),
        Attention(
            name="resampler.attn",
            hidden_size=width,
            heads=heads,
            kv_heads=heads,
            head_dim=width // heads,
            bias=True,
            causal=False,
            fused="in_proj",
            names=("q", "k", "v", "out_proj"),
        ),
        norm("resampler.ln_q", width, "layer"),
        norm("resampler.ln_kv", width, "layer"),
        norm("resampler.ln_post", width, "layer"),
        linear("resampler.proj", width, width, bias=False),
    )
