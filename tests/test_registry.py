"""Registries refuse duplicates and suggest names."""

import pytest

from tonnage.errors import UnknownName
from tonnage.registry import Registry


def test_a_name_is_registered_once():
    things: Registry[int] = Registry("thing")
    things.add("one", 1)
    with pytest.raises(ValueError, match="'one' is already registered"):
        things.add("one", 2)


def test_an_unknown_name_is_answered_with_the_nearest_ones():
    things: Registry[int] = Registry("optimizer")
    for name in ("adamw", "adamw-8bit", "sgd-momentum"):
        things.add(name, 0)
    with pytest.raises(UnknownName, match=r"no optimizer is called 'adam'\. Did you mean 'adamw', 'adamw-8bit'"):
        things["adam"]
    with pytest.raises(UnknownName, match="Known: adamw, adamw-8bit, sgd-momentum"):
        things["zzzzzz"]
