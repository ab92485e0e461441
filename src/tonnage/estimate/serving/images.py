"""Numbers of an image that stand behind one token of it, as a vision tower takes them in."""

from collections.abc import Mapping

from tonnage.architectures import Model

COLOURS = 3


def image_numbers(model: Model) -> int:
    """Pixels a token, in all colours; 0 where the config does not say how many an image token stands for."""
    vision = model.config.get("vision_config")
    if not isinstance(vision, Mapping):
        return 0
    tokens, size = model.config.get("mm_tokens_per_image"), vision.get("image_size")
    if isinstance(tokens, int) and isinstance(size, int) and tokens > 0:
        return COLOURS * size * size // tokens
    patch = vision.get("patch_size")
    merge = vision.get("spatial_merge_size") or vision.get("merge_kernel_size")
    side = merge[0] if isinstance(merge, list | tuple) and merge else merge
    frames = vision.get("temporal_patch_size", 1)
    if all(isinstance(each, int) for each in (patch, side, frames)):
        return COLOURS * patch * patch * side * side * frames  # type: ignore[operator]
    return 0
