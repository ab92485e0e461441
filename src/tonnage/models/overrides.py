"""Fields that the user sets in place of a config's own, in the section and under the name that the config uses."""

from collections.abc import Mapping
from typing import Any

from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message

_SECTIONS = ("text_config", "llm_config", "language_config", "thinker_config")
# One quantity under its names in configs; the first is ours.
_NAMES = (
    ("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
    ("hidden_size", "n_embd", "d_model"),
    ("num_attention_heads", "n_head", "num_heads", "n_heads"),
    ("intermediate_size", "n_inner", "ffn_dim", "d_ff"),
    ("vocab_size", "padded_vocab_size"),
    ("max_position_embeddings", "n_positions", "max_sequence_length", "max_seq_len", "seq_length", "n_ctx"),
    ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"),
    ("num_experts_per_tok", "num_experts_per_token", "moe_top_k", "top_k_experts", "moe_k", "moe_topk"),
    ("num_key_value_heads", "num_kv_heads"),
)
_LAYERS = _NAMES[0]
MAX_FIELD_NAME = 200  # characters of a field's name, its sections included


def apply(fields: Mapping[str, Any], overrides: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The fields with the overrides applied, and notes on lists with one entry per layer that were changed.

    A family named by its model_type replaces the config's own class.
    """
    changed, notes = dict(fields), []
    if "model_type" in overrides and "architectures" not in overrides:
        changed.pop("architectures", None)
    put_by: dict[tuple[str, ...], str] = {}
    for key, value in overrides.items():
        if not isinstance(key, str) or not key or len(key) > MAX_FIELD_NAME:
            raise InvalidInput("an override is named by a field of config.json. Got {key}.", key=shown(key))
        path = _path(changed, key)
        before_it = put_by.setdefault(tuple(path), key)
        if before_it != key:
            raise InvalidInput(
                "{before_it} and {key} are one field of this config. Give one of them.",
                before_it=before_it,
                key=key,
            )
        section = _copied(changed, path[:-1])
        before = section.get(path[-1])
        section[path[-1]] = value
        if path[-1] in _LAYERS and isinstance(before, int) and isinstance(value, int) and value != before:
            notes += _fit_layers(section, before, value, overrides)
    return changed, notes


def paths(fields: Mapping[str, Any], overrides: Mapping[str, Any]) -> list[str]:
    """The dotted path that `apply` sets for each of the overrides."""
    return [".".join(_path(fields, key)) for key in overrides]


def put(fields: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    """A copy of the fields with one of them replaced."""
    return apply(fields, {key: value})[0]


def get(fields: Mapping[str, Any], key: str) -> Any:
    """The value of a field, in any section and under any of its names; None where the config has none."""
    value: Any = fields
    for part in _path(fields, key):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _path(fields: Mapping[str, Any], key: str) -> list[str]:
    """The path of a field: as the user wrote it (text_config.num_hidden_layers), else where the config has it, else at
    the top.
    """
    if "." in key:
        return key.split(".")
    aliases = next((names for names in _NAMES if key in names), (key,))
    for name in (key, *aliases):
        if fields.get(name) is not None:
            return [name]
        for section in _sections(fields):
            if _at(fields, section).get(name) is not None:
                return [*section, name]
    return [key]


def _sections(fields: Mapping[str, Any]) -> list[list[str]]:
    sections = [[name] for name in _SECTIONS if isinstance(fields.get(name), Mapping)]
    return sections + [
        [*outer, "text_config"] for outer in sections if isinstance(_at(fields, outer).get("text_config"), Mapping)
    ]


def _at(fields: Mapping[str, Any], path: list[str]) -> Mapping[str, Any]:
    for name in path:
        fields = fields[name]
    return fields


def _copied(fields: dict[str, Any], path: list[str]) -> dict[str, Any]:
    """The section at `path`, copied along the path so that the original stays unchanged."""
    for name in path:
        inner = fields.get(name)
        if inner is not None and not isinstance(inner, Mapping):
            raise InvalidInput(
                "{name} is no section of this config, so {path} cannot be set in it.",
                name=name,
                path=".".join(path),
            )
        fields[name] = dict(inner or {})
        fields = fields[name]
    return fields


def _fit_layers(section: dict[str, Any], before: int, after: int, overrides: Mapping[str, Any]) -> list[str]:
    """Cut or extend the lists that have one entry per layer."""
    notes: list[str] = []
    for key, value in list(section.items()):
        if (
            isinstance(value, list | str)
            and len(value) == before
            and key not in overrides
            and _is_per_layer(key, value)
        ):
            section[key] = value[:after] if after < before else _continued(value, after, key)
            done = "cut" if after < before else "continued"
            notes.append(
                Message(
                    "{key} was {done} from {before} to {after} entries, one for each layer.",
                    key=key,
                    done=done,
                    before=before,
                    after=after,
                )
            )
    return notes


def _is_per_layer(key: str, value: list[Any] | str) -> bool:
    if isinstance(value, str):
        return key.endswith("pattern")
    return not (key == "architectures" or key.endswith(("_token_id", "_tokens", "_ids", "_labels")))


def _continued(value: list[Any] | str, length: int, key: str) -> list[Any] | str:
    """The pattern of the entries, repeated to `length`; InvalidInput where they have no pattern."""
    size = len(value)
    period = next((p for p in range(1, size // 2 + 1) if all(value[i] == value[i % p] for i in range(size))), None)
    if period is None:
        raise InvalidInput(
            f"num_hidden_layers={length} needs {key} with {length} entries: its {size} repeat no pattern to go on with."
        )
    return (value[:period] * -(-length // period))[:length]
