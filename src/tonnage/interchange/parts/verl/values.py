"""Values of veRL's keys, and the sections that they stand in."""

from tonnage.interchange.reading import Reading

ARM = "actor_rollout_ref."
ACTOR, MODEL, REF, ROLLOUT = f"{ARM}actor.", f"{ARM}model.", f"{ARM}ref.", f"{ARM}rollout."
FSDP, MEGATRON = f"{ACTOR}fsdp_config.", f"{ACTOR}megatron."
TRANSFORMER = f"{MEGATRON}override_transformer_config."
LARGEST = 10**7


def size(r: Reading, key: str, default: int = 0) -> int:
    """A size of at least 1; the default where it is not said."""
    if not r.has(key):
        return default
    value = r.integer(key)
    if not 0 < value <= LARGEST:
        raise r.wrong(key, "a whole number above 0")
    return value


def on(r: Reading, key: str, default: bool = False) -> bool:
    return r.flag(key, default) if r.has(key) else default


def size_or_0(r: Reading, key: str) -> int:
    return r.integer(key) if r.has(key) else 0
