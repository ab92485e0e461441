"""Tokens of one image by the rule of each family's own processor, and what the vision tower sees of it.

Sources: transformers 5.24, models/*/{image_processing,processing}_*.py, with whose functions tests/trace/
test_image_tokens.py compares these; settings that no config.json has are those of the released checkpoints'
preprocessor_config.json.
Phi-3.5-vision and Kimi-VL: the remote code of microsoft/Phi-3.5-vision-instruct and moonshotai/Kimi-VL-A3B-Instruct, as
vllm/model_executor/models/{phi3v,kimi_vl}.py read it.
"""

from collections.abc import Callable, Mapping
from math import ceil, floor, sqrt
from typing import Any

from tonnage.architectures import Model
from tonnage.kernel.message import Message
from tonnage.spec.media import Encoded

Rule = Callable[[Model, int, int], Encoded]


def section(model: Model, name: str) -> Mapping[str, Any]:
    """A section of the config, that of an Omni model's thinker too; empty where there is none."""
    outer = model.config.get("thinker_config")
    config = outer if isinstance(outer, Mapping) else model.config
    found = config.get(name)
    return found if isinstance(found, Mapping) else {}


def positive(values: Mapping[str, Any], name: str, default: int) -> int:
    """A field that is a whole number from 1 on, the first of several; else the default."""
    value = values.get(name, default)
    if isinstance(value, list | tuple) and value:
        value = value[0]
    return value if isinstance(value, int) and value > 0 else default


# ---- Images that keep their shape: patches of the resized image, some merged into one token.


def smart_resize(
    height: int, width: int, factor: int, least: int, most: int, frames: int = 1, padded: int = 0
) -> tuple[int, int]:
    """Sides that `factor` divides, with `least` to `most` pixels of all frames (smart_resize of Qwen2-VL, GLM-4.1V);
    `padded`: frames with those that fill the last patch.
    """
    high, wide = round(height / factor) * factor, round(width / factor) * factor
    padded = padded or frames
    if padded * high * wide > most:
        beta = sqrt(frames * height * width / most)
        high = max(factor, floor(height / beta / factor) * factor)
        wide = max(factor, floor(width / beta / factor) * factor)
    elif padded * high * wide < least:
        beta = sqrt(least / (frames * height * width))
        high, wide = ceil(height * beta / factor) * factor, ceil(width * beta / factor) * factor
    return high, wide


def merged_patches(patch: int, least: int, most: int, frames: int = 1) -> Rule:
    """The rule of towers that see the whole image at once; `least`, `most`: pixels after resizing."""

    def rule(model: Model, height: int, width: int) -> Encoded:
        vision = section(model, "vision_config")
        side, merge = positive(vision, "patch_size", patch), positive(vision, "spatial_merge_size", 2)
        factor = side * merge
        if frames > 1 and min(height, width) < factor:  # GLM-4.1V enlarges small images first
            scale = max(factor / height, factor / width)
            height, width = int(height * scale), int(width * scale)
        high, wide = smart_resize(height, width, factor, least, most, frames)
        patches = (high // side) * (wide // side)
        return Encoded(
            tokens=patches // merge**2,
            sequences=1,
            patches=patches,
            rows=patches // merge**2,
            why=_resized(wide, high, side, merge),
        )

    return rule


def _resized(wide: int, high: int, side: int, merge: int) -> Message:
    """Pixels of an image that was resized, the side of a patch, and patches on a side of what is merged to a token."""
    return Message(
        "resized to {wide}x{high}: patches of {side}, {merged} merged to a token",
        wide=wide,
        high=high,
        side=side,
        merged=merge**2,
    )


def pixtral(model: Model, height: int, width: int) -> Encoded:
    """A token ends each row; images larger than the longest edge shrink."""
    vision = section(model, "vision_config")
    side, longest = positive(vision, "patch_size", 16), positive(vision, "image_size", 1024)
    value = model.config.get("spatial_merge_size", 2 if model.family == "mistral3" else 1)
    merge = value if isinstance(value, int) and value > 0 else 1
    ratio = max(height / longest, width / longest)
    if ratio > 1:
        height, width = max(floor(height / ratio), 1), max(floor(width / ratio), 1)
    high, wide = ceil(height / (side * merge)), ceil(width / (side * merge))
    return Encoded(
        tokens=(wide + 1) * high,
        sequences=1,
        patches=high * wide * merge**2,
        rows=high * wide,
        why=Message("{high} rows of {wide} tokens, each with a token at its end", high=high, wide=wide),
    )


def kimi(limit: int, side_limit: int) -> Rule:
    """MoonViT: at most `limit` patches, `side_limit` on a side; padded to whole groups of merged patches."""

    def rule(model: Model, height: int, width: int) -> Encoded:
        vision = section(model, "vision_config")
        side, merge = positive(vision, "patch_size", 14), positive(vision, "merge_kernel_size", 2)
        patches = max(1, height // side) * max(1, width // side)
        scale = min(1.0, sqrt(limit / patches), side_limit * side / height, side_limit * side / width)
        high = min(max(1, int(height * scale)), side_limit * side)
        wide = min(max(1, int(width * scale)), side_limit * side)
        rows, columns = ceil(high / (side * merge)), ceil(wide / (side * merge))
        return Encoded(
            tokens=rows * columns,
            sequences=1,
            patches=rows * columns * merge**2,
            rows=rows * columns,
            why=_resized(wide, high, side, merge),
        )

    return rule


def gemma4(model: Model, height: int, width: int, most: int = 0) -> Encoded:
    """The largest image of this shape with at most `most` tokens, else `vision_soft_tokens_per_image`."""
    vision = section(model, "vision_config")
    side, pool = positive(vision, "patch_size", 16), positive(vision, "pooling_kernel_size", 3)
    most = most or positive(model.config, "vision_soft_tokens_per_image", 280)
    block = side * pool
    scale = sqrt(most * block**2 / (height * width))
    high, wide = floor(scale * height / block), floor(scale * width / block)
    if not high:
        high, wide = 1, min(width // height, most)
    elif not wide:
        high, wide = min(height // width, most), 1
    return Encoded(
        tokens=high * wide,
        sequences=1,
        patches=high * wide * pool**2,
        rows=high * wide,
        why=Message("{high} x {wide} groups of {pool} x {pool} patches", high=high, wide=wide, pool=pool),
    )


def gemma4_unified(model: Model, height: int, width: int) -> Encoded:
    """Gemma 4's grid, whose groups of patches are one patch each."""
    made = gemma4(model, height, width)
    return Encoded(tokens=made.tokens, sequences=1, patches=made.tokens, rows=made.tokens, why=made.why)


# ---- Images of one size.


def fixed(tokens_field: str, tokens: int, extra: int, side: int = 224, patch: int = 14) -> Rule:
    """As many tokens of every image, whatever its size; `extra`: patches beside those of the image (a class token)."""

    def rule(model: Model, height: int, width: int) -> Encoded:
        vision = section(model, "vision_config")
        patches = (positive(vision, "image_size", side) // positive(vision, "patch_size", patch)) ** 2
        count = positive(model.config, tokens_field, tokens or patches) if tokens_field else tokens or patches
        return Encoded(
            tokens=count,
            sequences=1,
            patches=patches + extra,
            rows=count,
            why=Message("every image is resized to {side}x{side}", side=positive(vision, "image_size", side)),
        )

    return rule


# ---- Images in tiles, each of which the tower sees by itself.


def tiled(tokens: int, tiles: int, patches: int, rows: int) -> Encoded:
    """An image of `tiles` tiles, each of which the tower sees by itself."""
    return Encoded(
        tokens=tokens,
        sequences=tiles,
        patches=patches,
        rows=tiles * rows,
        why=Message("{tiles} tiles of {patches} patches", tiles=tiles, patches=patches),
    )


def closest_grid(height: int, width: int, tile: int, most: int, least: int = 1) -> tuple[int, int]:
    """Columns and rows of `least` to `most` tiles whose shape is closest to the image's (InternVL, Phi-4): of equal
    ones the larger, if the image covers more than half of it.
    """
    sides = range(1, most + 1)
    sizes = [(wide, high) for wide in sides for high in sides if least <= wide * high <= most]
    sizes.sort(key=lambda size: size[0] * size[1])
    best, nearest = (1, 1), float("inf")
    for wide, high in sizes:
        difference = abs(width / height - wide / high)
        covers = width * height > 0.5 * tile * tile * wide * high
        if difference < nearest or (difference == nearest and covers):
            best, nearest = (wide, high), difference
    return best


def internvl(model: Model, height: int, width: int) -> Encoded:
    """At most `max_dynamic_patch` tiles, and a thumbnail where there is more than one; two tokens around them."""
    vision = section(model, "vision_config")
    tile, side = positive(vision, "image_size", 448), positive(vision, "patch_size", 14)
    ratio = model.config.get("downsample_ratio", 0.5)
    ratio = ratio if isinstance(ratio, int | float) and 0 < ratio <= 1 else 0.5
    patches = (tile // side) ** 2
    each = int(patches * ratio**2)
    wide, high = closest_grid(height, width, tile, positive(model.config, "max_dynamic_patch", 12))
    tiles = wide * high + (wide * high > 1)
    return tiled(2 + tiles * each, tiles, patches + 1, each)


def best_canvas(height: int, width: int, canvases: list[tuple[int, int]]) -> tuple[int, int]:
    """The canvas (height, width) that the image fills without being enlarged more than it must, or is shrunk least;
    of several the smallest (Llama 3.2 Vision, Llama 4).
    """
    scales = [min(wide / width, high / height) for high, wide in canvases]
    larger = [scale for scale in scales if scale >= 1]
    chosen = min(larger) if larger else max(scales)
    return min(
        (canvas for canvas, scale in zip(canvases, scales, strict=True) if scale == chosen),
        key=lambda canvas: canvas[0] * canvas[1],
    )


def llama4(model: Model, height: int, width: int) -> Encoded:
    """Up to 16 tiles and the whole image, with tokens between tiles, rows and the image."""
    vision = section(model, "vision_config")
    tile, side = positive(vision, "image_size", 336), positive(vision, "patch_size", 14)
    patches, most = (tile // side) ** 2, 16
    each = patches // 4  # pixel_shuffle_ratio 0.5
    canvases = [
        (high * tile, count // high * tile)
        for count in range(most, 0, -1)
        for high in range(1, count + 1)
        if count % high == 0
    ]
    high, wide = (edge // tile for edge in best_canvas(height, width, canvases))
    many = high * wide > 1
    tiles = high * wide + many if many else 1
    separators = high * (wide - 1) + high if many else 0
    return tiled(tiles * each + separators + 3, tiles, patches + 1, each)


def mllama(model: Model, height: int, width: int) -> Encoded:
    """One token in the prompt: the tiles are keys and values of the cross-attention layers."""
    vision = section(model, "vision_config")
    tile, side = positive(vision, "image_size", 560), positive(vision, "patch_size", 14)
    tiles, patches = positive(vision, "max_num_tiles", 4), (tile // side) ** 2 + 1
    return Encoded(
        tokens=1,
        sequences=1,
        patches=tiles * patches,
        rows=tiles * patches,
        why=Message(
            "the text attends to {count:,} patches in cross-attention layers, padded to {tiles} tiles",
            count=tiles * patches,
            tiles=tiles,
        ),
    )


PINPOINTS = [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]]


def _unpadded(height: int, width: int, rows: int, columns: int) -> tuple[int, int]:
    """Rows and columns of features that are left when the padding of an image's canvas is cut off (LLaVA-NeXT)."""
    if width / height > columns / rows:
        return rows - 2 * ((rows - int(round(height * (columns / width), 7))) // 2), columns
    return rows, columns - 2 * ((columns - int(round(width * (rows / height), 7))) // 2)


def best_resolution(height: int, width: int, canvases: list[list[int]]) -> tuple[int, int]:
    """The canvas that keeps the most pixels of the image, of several the one that wastes the fewest (LLaVA-NeXT)."""

    def worth(canvas: list[int]) -> tuple[int, int]:
        high, wide = canvas
        scale = min(wide / width, high / height)
        kept = min(int(width * scale) * int(height * scale), width * height)
        return kept, kept - high * wide

    high, wide = max(canvases, key=worth)
    return high, wide


def llava_next(side: int, patch: int, extra: int, most: int = 0) -> Rule:
    """The whole image, and its tiles without their padding, a token behind each row; `most`: tiles beyond which
    features are interpolated (LLaVA-OneVision's anyres_max_9).
    """

    def rule(model: Model, height: int, width: int) -> Encoded:
        vision = section(model, "vision_config")
        tile = positive(vision, "image_size", side)
        per_side = tile // positive(vision, "patch_size", patch)
        points = model.config.get("image_grid_pinpoints") or PINPOINTS
        high, wide = best_resolution(height, width, points)
        rows, columns = _unpadded(height, width, high // tile * per_side, wide // tile * per_side)
        if most:
            ratio = sqrt(rows * columns / (most * per_side**2))
            if ratio > 1.1:
                rows, columns = int(rows // ratio), int(columns // ratio)
        tiles = (high // tile) * (wide // tile) + 1
        return tiled(per_side**2 + rows * columns + rows, tiles, per_side**2 + extra, per_side**2)

    return rule


def phi3_vision(model: Model, height: int, width: int) -> Encoded:
    """Tiles of 336, 16 at most (num_crops of one image), padded to whole tiles; 144 tokens each."""
    tall = height > width
    long_side, short_side = (height, width) if tall else (width, height)
    ratio, scale = long_side / short_side, 1
    while scale * ceil(scale / ratio) <= 16:
        scale += 1
    columns = scale - 1
    rows = max(ceil(int(columns * 336 / ratio) / 336), 1)
    high = columns if tall else rows
    tiles = rows * columns + 1
    return tiled(tiles * 144 + 1 + (high + 1) * 12, tiles, 577, 144)


def phi4_multimodal(model: Model, height: int, width: int) -> Encoded:
    """Tiles of 448, 36 at most, and the whole image; what is padded makes no tokens."""
    tile, patch, most = 448, 14, 36
    wide, high = ceil(width / tile), ceil(height / tile)
    if wide * high > most:
        wide, high = closest_grid(height, width, tile, most)
    across, down = wide * tile / width, high * tile / height
    side = tile // patch
    rows, columns = high * side, wide * side
    if across < down:
        rows -= (high * tile - int(height * across)) // patch
    else:
        columns -= (wide * tile - int(width * down)) // patch
    rows, columns = ceil(rows / 2), ceil(columns / 2)
    tiles = wide * high + 1
    return tiled(256 + 1 + rows * columns + rows + 16, tiles, side**2, side**2 // 4)
