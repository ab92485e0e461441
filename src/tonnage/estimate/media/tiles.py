"""Tokens of one image by further processors that cut it in tiles: Idefics, SmolVLM, Cohere's, LFM2-VL.

Sources: transformers 5.24, models/{idefics2,idefics3,smolvlm,aya_vision,got_ocr2,cohere2_vision,lfm2_vl}:
image_processing_*.py and processing_*.py, and the released checkpoints' preprocessor_config.json.
"""

from math import ceil

from tonnage.architectures import Model
from tonnage.estimate.media.images import best_canvas, closest_grid, positive, section, smart_resize, tiled
from tonnage.spec.media import Encoded


def idefics3(model: Model, height: int, width: int) -> Encoded:
    """The longest side becomes four tiles, both ways; tiles and the whole image, each with a mark before it, a new line
    after each row and before the whole image.
    """
    vision = section(model, "vision_config")
    tile, patch = positive(vision, "image_size", 364), positive(vision, "patch_size", 14)
    patches = (tile // patch) ** 2
    each = patches // positive(model.config, "scale_factor", 2) ** 2
    longest, shortest = max(height, width), min(height, width)
    rows = max(ceil(int(4 * tile * shortest / longest) / tile), 1)
    tiles = 4 * rows + 1
    lines = (rows if width >= height else 4) + 1
    return tiled(tiles * (each + 2) + lines + 1, tiles, patches, each)


def idefics2(model: Model, height: int, width: int) -> Encoded:
    """Four quarters and the whole image, each 64 tokens; sides from 378 to 980, whole patches."""
    vision = section(model, "vision_config")
    patch, ratio = positive(vision, "patch_size", 14), min(980 / max(height, width), 1.0)
    high, wide = max(int(height * ratio), 378), max(int(width * ratio), 378)
    patches = ceil(high / patch) * ceil(wide / patch)
    return tiled(5 * 64 + 6, 2, patches, 5 * 64 // 2)  # the quarters together are as large as the whole


def aya_vision(model: Model, height: int, width: int) -> Encoded:
    """At most 12 tiles, and the whole image where there is more than one; a mark before each, two tokens around."""
    vision = section(model, "vision_config")
    tile, patch = positive(vision, "image_size", 364), positive(vision, "patch_size", 14)
    patches = (tile // patch) ** 2
    each = patches // positive(model.config, "downsample_factor", 2) ** 2
    wide, high = closest_grid(height, width, tile, 12)
    tiles = wide * high + (wide * high > 1)
    return tiled(tiles * (each + 1) + 2, tiles, patches, each)


def cohere2_vision(model: Model, height: int, width: int) -> Encoded:
    """At most 12 tiles of 512 that enlarge the image least, and the whole image; a line break after each."""
    vision = section(model, "vision_config")
    tile, patch = positive(vision, "image_size", 512), positive(vision, "patch_size", 16)
    patches = (tile // patch) ** 2
    each = patches // positive(model.config, "downsample_factor", 2) ** 2
    canvases = [(high * tile, wide * tile) for wide in range(1, 13) for high in range(1, 13) if wide * high <= 12]
    high, wide = best_canvas(height, width, canvases)
    count = (high // tile) * (wide // tile)
    tiles = count + (count > 1)
    return tiled(tiles * (each + 1) + 2, tiles, patches, each)


def lfm2_vl(model: Model, height: int, width: int) -> Encoded:
    """64 to 256 tokens; an image of more than twice that is cut in two to ten tiles of 512, beside the whole image."""
    patch, merge, tile = 16, positive(model.config, "downsample_factor", 2), 512
    factor = patch * merge
    least, most = (count * factor**2 for count in (64, 256))
    high, wide = smart_resize(height, width, factor, least, most)
    whole = (high // factor) * (wide // factor)
    sides = [max(round(side / factor) * factor, patch) for side in (height, width)]
    if sides[0] * sides[1] <= 2 * most:
        return tiled(whole + 2, 1, whole * merge**2, whole)
    each = (tile // factor) ** 2
    columns, rows = closest_grid(height, width, tile, 10, least=2)
    count = columns * rows
    return tiled(count * (each + 1) + 1 + whole + 2, count + 1, (tile // patch) ** 2, each)
