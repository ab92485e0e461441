"""Molmo and Molmo 2: CLIP's or SigLIP's layers but the last, two of them pooled by attention, a gated projector, Qwen.

Structure: allenai/Molmo-7B-D-0924 modeling_molmo.py, whose tower's sizes are in the code (VisionBackboneConfig);
transformers 5.24, models/molmo2. Both add 128 rows to the table alone.
"""

from msgspec.structs import replace

from tonnage.architectures._config import Config
from tonnage.architectures._model import Branch, Model
from tonnage.architectures._parts import norm
from tonnage.architectures._registry import MODEL_TYPES, architecture, find
from tonnage.architectures._towers import bidirectional, joined, linear, plain_mlp, stack, table, vision_layer
from tonnage.ops import Attention, Embedding, Op

ADDED = 128  # rows for tokens of images and points
CLIP = {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 23, "num_attention_heads": 16}
SIGLIP = {"hidden_size": 1152, "intermediate_size": 4304, "num_hidden_layers": 25, "num_attention_heads": 16}
CLIP_PATCHES, SIGLIP_PATCHES = 576, 729  # of 336 and of 378 pixels a side, 14 a patch
PIXELS = 14 * 14 * 3


@architecture("MolmoForCausalLM", model_types=("molmo",))
def molmo(c: Config) -> Model:
    """intermediate_size is that of gate and up together; two learned vectors stand for padding."""
    inner = c.size("intermediate_size") // 2
    fields = {**c.fields, "model_type": "qwen2", "intermediate_size": inner, "tie_word_embeddings": False}
    text = widened(find(MODEL_TYPES, "qwen2")(c.with_fields(fields)), ADDED)
    eye = Config(CLIP, c.where)
    width, h = eye.size("hidden_size"), text.hidden_size
    before = (
        linear("patch_embedding", PIXELS, width, bias=False),
        table("class_embedding and positional_embedding", CLIP_PATCHES + 2, width),
        norm("pre_ln", width, "layer"),
    )
    after = (*pooling(width, width), table("pad_embed", 2, 2 * width), *projector(width, inner, h))
    return joined(text, "molmo", tower(eye, "clip vision tower", before, after))


@architecture("Molmo2ForConditionalGeneration", model_types=("molmo2",))
def molmo2(c: Config) -> Model:
    section = c.section("text_config", required=False) or c
    text = find(MODEL_TYPES, "qwen3")(section.with_fields({**section.fields, "model_type": "qwen3"}))
    text = widened(text, section.size("additional_vocab_size", default=ADDED, smallest=0))
    eye = (c.section("vision_config", required=False) or c.absent_section("vision_config")).with_defaults(SIGLIP)
    part = c.section("adapter_config", required=False) or c.absent_section("adapter_config")
    width, h = eye.size("hidden_size"), text.hidden_size
    positions = eye.size("num_position_embeddings", default=SIGLIP_PATCHES)
    before = (linear("patch_embedding", PIXELS, width), table("positional_embedding", positions, width))
    after = (*pooling(width, width), *projector(width, part.size("intermediate_size", default=18_944), h))
    return joined(text, "molmo", tower(eye, "siglip vision tower", before, after))


def tower(c: Config, name: str, before: tuple[Op, ...], after: tuple[Op, ...]) -> Branch:
    width = c.size("hidden_size")
    layer = vision_layer(width, bidirectional(c), plain_mlp(width, c.size("intermediate_size")))
    return stack(name, width, [layer], [0] * c.depth("num_hidden_layers"), before, after)


def pooling(width: int, inner: int) -> tuple[Op, ...]:
    """Four patches of two layers are pooled to one by attention to their mean."""
    heads = 16
    return (
        Attention(
            name="image_pooling_2d",
            hidden_size=inner,
            heads=heads,
            kv_heads=heads,
            head_dim=inner // heads,
            memory_width=2 * width,
            bias=True,
            causal=False,
            out=False,
        ),
        linear("image_pooling_2d.mean", width, inner, bias=False),  # queries are of two layers too
        linear("image_pooling_2d.wo", inner, inner),
    )


def projector(width: int, inner: int, outputs: int) -> tuple[Op, ...]:
    return (
        linear("image_projector.w1", width, inner, bias=False),
        linear("image_projector.w3", width, inner, bias=False),
        linear("image_projector.w2", inner, outputs, bias=False),
    )


def widened(text: Model, rows: int) -> Model:
    """The language model whose table, not its head, has some more rows."""
    main = text.decoder
    before = tuple(
        replace(op, num_embeddings=op.num_embeddings + rows) if isinstance(op, Embedding) else op for op in main.before
    )
    changed = replace(main, before=before)
    return replace(text, branches=tuple(changed if branch is main else branch for branch in text.branches))
