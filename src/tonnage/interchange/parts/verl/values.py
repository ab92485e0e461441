"""Values of veRL's keys, and the sections that they stand in."""

from tonnage.interchange.reading import Reading

ARM = "actor_rollout_ref."
ACTOR, MODEL, REF, ROLLOUT = f"{ARM}actor.", f"{ARM}model.", f"{ARM}ref.", f"{ARM}rollout."
FSDP, MEGATRON = f"{ACTOR}fsdp_config.", f"{ACTOR}megatron."
TRANSFORMER = f"{MEGATRON}override_transformer_config."


def size(r: Reading, key: str, default: int = 0) -> int:
    """A size of at least 1; the default where it is not said."""
    return r.size(key, default)


def on(r: Reading, key: str, default: bool = False) -> bool:
    return r.flag(key, default) if r.has(key) else default


def size_or_0(r: Reading, key: str) -> int:
    return r.integer(key) if r.has(key) else 0
