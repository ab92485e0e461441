"""The oracle for parameter counts: the real class of transformers, built on the meta device from the same config."""

from functools import cache
from typing import Any


def count(fields: dict[str, Any]) -> int:
    """Parameters and persistent buffers of the class that `architectures` names, tied ones once; no weights are
    allocated.
    """
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    model_class = getattr(transformers, fields["architectures"][0])
    config = model_class.config_class.from_dict(
        {key: value for key, value in fields.items() if key != "quantization_config"}
    )
    config._attn_implementation = "eager"
    with torch.device("meta"):
        model = model_class(config)
    model.tie_weights()
    stored = {id(parameter): parameter.numel() for parameter in model.parameters()}
    for module in model.modules():
        for name, buffer in module._buffers.items():
            if buffer is not None and name not in module._non_persistent_buffers_set:
                stored[id(buffer)] = buffer.numel()
    return sum(stored.values())


@cache
def class_names() -> frozenset[str]:
    """All classes of the installed transformers; none of their modules is imported."""
    import transformers

    return frozenset(dir(transformers))


def known(fields: dict[str, Any]) -> bool:
    """Whether the installed transformers has the class."""
    return fields["architectures"][0] in class_names()
