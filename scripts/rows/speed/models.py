"""The model of a row: the catalogue's where it has the sizes that the row says, else the row's own dimensions."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from rows import hparams
from rows.params import usable
from rows.source import Row
from rows.speed.run import GPT, Run, Source
from tonnage.architectures import Model, build
from tonnage.kernel.errors import MissingDatum, TonnageError, shown

SIZES = (
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "intermediate_size",
    "vocab_size",
)


def model_of(run: Run, source: Source, references: Mapping[str, Row]) -> Model:
    """A TonnageError where the row names no model that is known, and does not describe it."""
    row = run.row.model
    name = str(row.get("ref") or row.get("name") or "")
    run.name = plain_name(name)
    found = catalogued(name) or catalogued(run.name)
    layers = run.config.size("layers", "num_layers") or row.get("layers")
    config = _described(run, source, references, layers)
    if config is None and run.name in source.dimensions and found is None:
        run.guess("model", f"dimensions of {source.name}'s {run.name}")
        config = dict(source.dimensions[run.name])
        if config.get("position_embeddings") == "learned":
            config["max_position_embeddings"] = run.config.length("seq_len") or 2048
    if found is not None and layers in (None, found.num_layers) and (config is None or same_sizes(found, config)):
        return found
    if config is not None:
        return build(config, name or run.row.id, f"row {run.row.id}")
    if found is not None and layers:
        return build({**found.config, "num_hidden_layers": layers}, f"{found.name}, {layers} layers", found.source)
    raise MissingDatum(f"no model is called {shown(name)}, and the row does not describe it")


def plain_name(text: str) -> str:
    """ "Qwen3_30B_a3B (tokendrop)" -> qwen3-30b-a3b; "DeepSeekV4 Flash" -> deepseek-v4-flash."""
    bare = text.partition(" (")[0].strip().lower().replace("_", "-").replace(" ", "-")
    return re.sub(r"(?<=seek)v(?=\d)", "-v", bare)


@cache
def catalogued(name: str) -> Model | None:
    """The catalogue's model of this name; a row says by itself how the weights of a quantised copy are stored."""
    from tonnage.models import kind, read

    try:
        return None if kind(name) == "derivative" else read(name, offline=True)
    except TonnageError:
        return None


def _described(run: Run, source: Source, references: Mapping[str, Row], layers: Any) -> dict[str, Any] | None:
    """The config that a row's hyper-parameters are, or those of the row that it refers to."""
    said, row = run.row.model.get("hparams"), run.row.model
    referred = references.get(str(row.get("ref", "")))
    if not usable(said) and referred is not None:
        said = referred.model.get("hparams")
    if not usable(said):
        return None
    sizes = dict(said)
    width = sizes.get("hidden")
    if type(width) is int and not isinstance(sizes.get("intermediate"), int):  # "4*hidden (GPT default)", or nothing
        sizes["intermediate"] = 4 * width
    if not {"vocab", "vocab_size"} & set(sizes) and source.vocabulary is not None:
        sizes["vocab"], why = source.vocabulary
        run.guess("vocab_size", f"vocabulary of {sizes['vocab']:,}: {why}")
    length = run.config.length("seq_len") or 2048
    if source.hparams is GPT:
        sizes = {**GPT, "context": length, **sizes}
    elif sizes.get("pos_emb") == "learned":
        sizes.setdefault("context", length)
    return hparams.config({**sizes, **({} if layers is None else {"layers": layers})}, run.row.source_name)


def same_sizes(model: Model, config: Mapping[str, Any]) -> bool:
    """Whether the catalogue's model has the sizes that a row says. An expert's width may stand where a dense one's
    does.
    """
    text = model.config.get("text_config")
    own = text if isinstance(text, Mapping) else model.config
    for name in SIZES:
        said, has = config.get(name), own.get(name)
        if said is None or has is None or (name == "intermediate_size" and "moe_intermediate_size" in own):
            continue
        if said != has:
            return False
    return True
