"""What plans of training and of serving share: fields that stand in groups by subject, and that each have a name of
their own.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Self

from msgspec import Struct
from msgspec.structs import astuple, replace


class StatedLinks(Struct, frozen=True, kw_only=True):
    """Bandwidths that the user states in place of the catalogue's."""

    #: Bytes a second that all accelerators of a node together send to other nodes.
    inter_node_bandwidth: float | None = None
    #: Bytes a second that one accelerator sends to others of its node.
    intra_node_bandwidth: float | None = None


class Plan(Struct, frozen=True, kw_only=True):
    """A plan, whose fields stand in it or in groups by subject. Options, rows and documents are flat: there each field
    has its own name alone, which no other field of the plan has.
    """

    @classmethod
    def of_fields(cls, **fields: Any) -> Self:
        """A plan of these fields by their own names; whole groups are taken, too."""
        own, grouped = _by_group(cls, fields)
        return cls(**own, **{name: _groups(cls)[name](**values) for name, values in grouped.items()})

    @classmethod
    def field_names(cls) -> tuple[str, ...]:
        """The names of all fields, those in groups too."""
        return tuple(_places(cls))

    @classmethod
    def nested(cls, fields: Mapping[str, Any]) -> dict[str, Any]:
        """A flat mapping of fields as the tree that msgspec converts into a plan."""
        own, grouped = _by_group(cls, fields)
        return own | grouped

    def field(self, name: str) -> Any:
        """The value of a field, which may stand in a group."""
        group = _places(type(self))[name]
        return getattr(getattr(self, group) if group else self, name)

    def differences(self, other: Self) -> dict[str, Any]:
        """The fields, those in groups too, whose values differ from those of another plan. Both are of numbers."""
        found: dict[str, Any] = {}
        for name in self.__struct_fields__:
            value, before = getattr(self, name), getattr(other, name)
            if value is before or value == before:
                continue
            if name in _groups(type(self)):
                fields = {field: getattr(value, field) for field in value.__struct_fields__}
                found |= {field: own for field, own in fields.items() if own != getattr(before, field)}
            else:
                found[name] = value
        return found

    def with_fields(self, **fields: Any) -> Self:
        """The plan with these fields, which may stand in groups, changed."""
        own, grouped = _by_group(type(self), fields)
        return replace(
            self, **own, **{name: replace(getattr(self, name), **values) for name, values in grouped.items()}
        )

    @property
    def is_of_numbers(self) -> bool:
        """Whether no field is an array."""
        groups = _groups(type(self))
        parts = (self, *(getattr(self, name) for name in groups))
        return not any(hasattr(value, "ndim") for part in parts for value in astuple(part))


@cache
def _groups(form: type[Plan]) -> Mapping[str, type[Struct]]:
    """The groups of a plan: each is a Struct with a default."""
    defaults = zip(reversed(form.__struct_fields__), reversed(form.__struct_defaults__), strict=False)
    return {name: type(default) for name, default in defaults if isinstance(default, Struct)}


@cache
def _places(form: type[Plan]) -> Mapping[str, str]:
    """By the name of each field the group that it stands in; "" in the plan itself."""
    groups = _groups(form)
    return {
        name: group
        for place in form.__struct_fields__
        for name, group in (
            ((each, place) for each in groups[place].__struct_fields__) if place in groups else ((place, ""),)
        )
    }


def _by_group(form: type[Plan], fields: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Fields that stand in the plan itself, with whole groups, and those of each group."""
    places = _places(form)
    own: dict[str, Any] = {}
    grouped: dict[str, dict[str, Any]] = {}
    for name, value in fields.items():
        if group := places.get(name, ""):
            grouped.setdefault(group, {})[name] = value
        else:
            own[name] = value  # the constructor refuses a name that the plan does not have
    return own, grouped
