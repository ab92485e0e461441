"""Models of Hugging Face transformers, built without weights from their configs."""

from collections.abc import Mapping
from typing import Any

import torch

from tonnage.kernel.errors import InvalidInput, MissingDatum
from tonnage.trace.program import Program

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


def build(
    config: Mapping[str, Any],
    dtype: str = "bf16",
    attention: str | None = None,
    num_layers: int | None = None,
    experts: str | None = None,
) -> Any:
    """The model of a config.json, on the recording's device. Raises MissingDatum for a class that transformers does not
    have.

    `attention`, `experts`: implementations as transformers names them; None: its default, sdpa and grouped_mm where the
    model supports them.
    """
    import transformers
    from transformers.initialization import no_init_weights

    configured = configuration(config, num_layers)
    if attention is not None:
        configured._attn_implementation = attention
    if experts is not None:
        configured._experts_implementation = experts
    for name in config.get("architectures") or ():
        model_class = getattr(transformers, name, None)
        if model_class is not None:
            break
    else:
        model_class = None
    before = torch.get_default_dtype()
    torch.set_default_dtype(DTYPES[dtype])
    try:
        with no_init_weights():
            model = (
                model_class(configured)
                if model_class is not None
                else transformers.AutoModelForCausalLM.from_config(configured)
            )
        model.tie_weights()  # is part of what no_init_weights leaves out
        return model
    except ValueError as error:
        raise MissingDatum(
            "transformers {version} builds no model of it: {error}",
            version=transformers.__version__,
            error=str(error)[:200],
        ) from None
    finally:
        torch.set_default_dtype(before)


def configuration(config: Mapping[str, Any], num_layers: int | None = None) -> Any:
    """The config object of a config.json, optionally with another number of layers."""
    import transformers

    kind = config.get("model_type")
    if not isinstance(kind, str):
        raise InvalidInput("model_type: the config names none, so transformers cannot build it.")
    fields = {
        key: value
        for key, value in config.items()
        if key not in ("model_type", "quantization_config", "transformers_version")
    }
    if num_layers is not None:
        fields = with_layers(fields, num_layers)
    try:
        return transformers.AutoConfig.for_model(kind, **fields)
    except ValueError:
        raise MissingDatum(
            "transformers {version} has no model_type {kind!r}.", version=transformers.__version__, kind=kind
        ) from None


def with_layers(fields: Mapping[str, Any], count: int) -> dict[str, Any]:
    """The same config with `count` layers; lists with an entry a layer are cut."""
    cut = dict(fields)
    if isinstance(cut.get("text_config"), Mapping):
        cut["text_config"] = dict(cut["text_config"])  # the caller's copy stays unchanged
    for holder in (cut, cut.get("text_config")):
        if not isinstance(holder, dict):
            continue
        for key in ("num_hidden_layers", "n_layer", "num_layers", "n_layers"):
            if key in holder:
                before, holder[key] = holder[key], count
                for name, value in holder.items():
                    if isinstance(value, list) and len(value) == before and before > 1:
                        holder[name] = value[:count]
    return cut


def training_program(
    model: Any,
    *,
    sequence_length: int,
    micro_batch_size: int,
    optimizer: Any,
    recompute: str = "none",
    num_microbatches: int = 1,
    clip_grad_norm: float | None = None,
    autocast: str | None = None,
    device: str = "cuda",
) -> Program:
    """A training step on tokens with labels, as a trainer runs it: the output is freed before backward."""
    if recompute not in ("none", "full"):
        raise InvalidInput(
            "{@recompute}: what transformers traces is none or full. Got {recompute!r}.", recompute=recompute
        )
    model.train()
    model.config.use_cache = False
    if recompute == "full":
        newest = getattr(model, "activation_checkpointing_enable", None)  # transformers 5.20 renamed it
        (newest or model.gradient_checkpointing_enable)({"use_reentrant": False})
    vocabulary = min(model.get_input_embeddings().num_embeddings, 1000)
    tokens = torch.randint(0, vocabulary, (micro_batch_size, sequence_length), device=device)
    return Program(
        model=model,
        inputs={"input_ids": tokens, "labels": tokens},
        optimizer=optimizer,
        keeps_output=False,
        num_microbatches=num_microbatches,
        clip_grad_norm=clip_grad_norm,
        autocast=autocast,
    )
