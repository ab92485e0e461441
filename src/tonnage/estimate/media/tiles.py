"""Tokens of one image by further processors that cut it in tiles: Idefics, SmolVLM, Cohere's, LFM2-VL, Molmo,
MiniCPM-V, DeepSeek-VL2.

Sources: transformers 5.24, models/{idefics2,idefics3,smolvlm,aya_vision,got_ocr2,cohere2_vision,lfm2_vl}:
image_processing_*.py and processing_*.py, and the released checkpoints' preprocessor_config.json. The processors of
allenai/Molmo-7B-D-0924, openbmb/MiniCPM-V-2_6 and deepseek-ai/DeepSeek-VL2, as vllm/model_executor/models/{molmo,
minicpmv,deepseek_vl2}.py read them.
"""

from math import ceil, log

from tonnage.architectures import Model
from tonnage.estimate.media.images import (
    best_canvas,
    best_resolution,
    closest_grid,
    positive,
    section,
    smart_resize,
    tiled,
)
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


def molmo(model: Model, height: int, width: int) -> Encoded:
    """Up to 12 windows of 224 pixels with margins of 56, and the whole image; four patches to a token, one behind each
    row, two around either.
    """
    margin, window = 2 * 56, 224
    inner_height, inner_width = max(height - margin, 1), max(width - margin, 1)
    canvases = [(high * window, wide * window) for high in range(1, 13) for wide in range(1, 13) if high * wide <= 12]
    high, wide = (side // window for side in best_canvas(inner_height, inner_width, canvases))
    rows, columns = 8 * high + 4, 8 * wide + 4
    return tiled(2 + 12 * 13 + 2 + rows * (columns + 1), high * wide + 1, 24 * 24 + 1, 12 * 12)


def minicpm_v(model: Model, height: int, width: int) -> Encoded:
    """The whole image and up to nine slices of the area of 448 pixels squared, 64 tokens each between two marks; three
    tokens number the image, a new line ends a row of slices but the last.
    """
    queries, area = positive(model.config, "query_num", 64), 448 * 448
    wanted = min(ceil(height * width / area), 9)
    patches = area // 14**2
    if wanted <= 1:
        return tiled(queries + 2 + 3, 1, patches, patches)
    counts = [count for count in (wanted - 1, wanted, wanted + 1) if 1 < count <= 9]
    grids = [(wide, count // wide) for count in counts for wide in range(1, count + 1) if count % wide == 0]
    wide, high = min(grids, key=lambda grid: abs(log(width / height) - log(grid[0] / grid[1])))
    slices = wide * high
    return tiled((slices + 1) * (queries + 2) + 3 + high - 1, slices + 1, patches, patches)


def deepseek_vl2(model: Model, height: int, width: int) -> Encoded:
    """Up to nine tiles of 384 that keep most of the image, and the whole image; four patches to a token, one behind
    each row, one between the two.
    """
    tile, side = 384, 14
    canvases = [[high * tile, wide * tile] for high in range(1, 10) for wide in range(1, 10) if high * wide <= 9]
    high, wide = (length // tile for length in best_resolution(height, width, canvases))
    whole, cut = side * (side + 1), high * side * (wide * side + 1)
    return tiled(whole + 1 + cut, high * wide + 1, 27 * 27, side**2)
