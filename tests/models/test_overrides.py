"""Fields that the user gives instead of the config's."""

import pytest

from tonnage.errors import InvalidInput
from tonnage.models import overrides


def test_a_field_is_replaced_where_the_config_keeps_it():
    fields = {"text_config": {"num_hidden_layers": 8, "hidden_size": 64}, "model_type": "x"}
    made, _ = overrides.apply(fields, {"num_hidden_layers": 4})
    assert made["text_config"]["num_hidden_layers"] == 4
    assert "num_hidden_layers" not in made
    assert fields["text_config"]["num_hidden_layers"] == 8


def test_a_field_is_replaced_under_the_name_that_the_config_uses():
    assert overrides.apply({"n_layer": 12}, {"num_hidden_layers": 6})[0] == {"n_layer": 6}
    assert overrides.get({"n_layer": 12}, "num_hidden_layers") == 12


def test_a_dotted_name_reaches_into_a_section():
    made, _ = overrides.apply({"vision_config": {"depth": 2}}, {"vision_config.depth": 3, "rope.theta": 1.0})
    assert made == {"vision_config": {"depth": 3}, "rope": {"theta": 1.0}}
    with pytest.raises(InvalidInput, match="no section"):
        overrides.apply({"x": 3}, {"x.y": 1})


def test_lists_with_one_entry_for_each_layer_are_cut_with_the_layers():
    fields = {
        "num_hidden_layers": 6,
        "layer_types": list("aabaab"),
        "eos_token_id": [1, 2, 3, 4, 5, 6],
        "architectures": ["X"],
    }
    made, notes = overrides.apply(fields, {"num_hidden_layers": 4})
    assert made["layer_types"] == list("aaba")
    assert made["eos_token_id"] == [1, 2, 3, 4, 5, 6]
    assert notes == ["layer_types was cut from 6 to 4 entries, one for each layer."]


def test_a_pattern_string_is_cut_too():
    made, _ = overrides.apply({"num_hidden_layers": 4, "hybrid_override_pattern": "M-M*"}, {"num_hidden_layers": 2})
    assert made["hybrid_override_pattern"] == "M-"


def test_a_repeating_list_goes_on_with_more_layers_and_another_is_refused():
    made, notes = overrides.apply({"num_hidden_layers": 6, "layer_types": list("aabaab")}, {"num_hidden_layers": 8})
    assert made["layer_types"] == list("aabaabaa")
    assert "continued" in notes[0]
    with pytest.raises(InvalidInput, match="layer_types with 8 entries"):
        overrides.apply({"num_hidden_layers": 4, "layer_types": list("abca")}, {"num_hidden_layers": 8})


def test_a_list_that_the_user_gives_stays_as_given():
    made, notes = overrides.apply(
        {"num_hidden_layers": 3, "layer_types": list("abc")}, {"num_hidden_layers": 2, "layer_types": ["b", "c"]}
    )
    assert made["layer_types"] == ["b", "c"]
    assert notes == []


def test_a_name_that_is_no_field_is_refused():
    with pytest.raises(InvalidInput, match="named by a field"):
        overrides.apply({}, {"": 1})
