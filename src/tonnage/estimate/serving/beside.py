"""What an engine is told beside how a model is spread: drafting, KV caches beside the accelerators, LoRA adapters."""

from typing import Any

from tonnage.architectures import Model
from tonnage.estimate.inputs import Question
from tonnage.estimate.options.run_options import rate
from tonnage.estimate.serving.options import ServingOptions
from tonnage.kernel.errors import InvalidInput, InvalidPlan, NotApplicable
from tonnage.kernel.message import Message, listed, option_name
from tonnage.runtimes import ServingRuntime

RANK, RANK_SOURCE = 16, "vLLM's max_lora_rank"  # of adapters of which nobody says it


def settings_beside(model: Model, o: ServingOptions, q: Question, engine: ServingRuntime) -> dict[str, Any]:
    """Drafts and adapters."""
    settings: dict[str, Any] = {}
    if any(getattr(o, name) is not None for name in ("speculative", "draft_tokens", "draft_model", "acceptance")):
        from tonnage.estimate.serving.drafts import drafts

        settings = drafts(model, o, q, engine)
    if o.kv_offload is not None:
        settings |= _tier(o, q, engine)
    elif o.kv_offload_size is not None:
        raise NotApplicable(
            Message(
                "{@kv_offload_size} is that of {@kv_offload}, which is not said. Got {size}.", size=o.kv_offload_size
            ),
            "kv_offload_size",
            ("kv_offload",),
        )
    if o.lora_adapters is not None:
        settings |= _adapters(o, q, engine)
    for name in ("lora_rank", "lora_active", "lora_on_host"):
        if getattr(o, name) is not None and o.lora_adapters is None:
            raise NotApplicable(
                Message(
                    "{name} is that of {@lora_adapters}, which are not said. Got {value}.",
                    name=option_name(name),
                    value=getattr(o, name),
                ),
                name,
                ("lora_adapters",),
            )
    return settings


def _adapters(o: ServingOptions, q: Question, engine: ServingRuntime) -> dict[str, Any]:
    """LoRA adapters: slots on the GPU, those in use, and those in host memory."""
    ranks = engine.adapter_ranks
    if o.lora_rank is not None and ranks and o.lora_rank not in ranks:
        raise InvalidPlan(
            "{@lora_rank}: {version} allocates slots for one of {ranks} ({source}). Got {rank}. Nearest: {nearest}.",
            version=engine.version,
            ranks=listed(map(str, ranks)),
            source=engine.adapter_ranks_source,
            rank=o.lora_rank,
            nearest=next((rank for rank in ranks if rank >= o.lora_rank), ranks[-1]),
        )
    held = q.put("lora_adapters", o.lora_adapters, "given")
    settings = {"lora_adapters": held, "lora_rank": q.take("lora_rank", o.lora_rank, RANK, "default", RANK_SOURCE)}
    if o.lora_active is not None:
        if o.lora_active > held:
            raise InvalidInput(
                "{@lora_active} must be at most the {held} {@lora_adapters} that are held. Got {lora_active}.",
                held=held,
                lora_active=o.lora_active,
            )
        settings["lora_active"] = q.put("lora_active", o.lora_active, "given")
    if o.lora_on_host is not None:
        if o.lora_on_host < held:
            raise InvalidInput(
                "{@lora_on_host} must be at least the {held} {@lora_adapters} that are held. Got {lora_on_host}.",
                held=held,
                lora_on_host=o.lora_on_host,
            )
        settings["lora_on_host"] = q.put("lora_on_host", o.lora_on_host, "given")
    return settings


def _tier(o: ServingOptions, q: Question, engine: ServingRuntime) -> dict[str, Any]:
    """Where caches of prefixes are kept beside the accelerators."""
    if o.kv_offload not in engine.kv_tiers:
        raise InvalidPlan(
            "{@kv_offload}: {version} keeps KV caches in {places} ({source}). Got {got}.",
            version=engine.version,
            places=listed(engine.kv_tiers),
            source=engine.kv_tiers_source,
            got=o.kv_offload,
        )
    if o.kv_offload_size is not None and o.kv_offload_size < 1:
        raise InvalidInput("{@kv_offload_size} must be at least 1 byte. Got {size}.", size=o.kv_offload_size)
    return {
        "kv_offload": q.put("kv_offload", o.kv_offload, "given", engine.kv_tiers_source),
        "kv_offload_bytes": o.kv_offload_size,
        "kv_read_bandwidth": rate("storage_read_bandwidth", o.storage_read_bandwidth),
    }
