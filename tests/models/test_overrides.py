"""Fields that the user gives instead of the config's."""

import pytest

from models.files import LLAMA
from tonnage.cli import main
from tonnage.kernel.errors import InvalidInput
from tonnage.models import overrides, read


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


@pytest.mark.parametrize(
    ("model", "given", "nearest"),
    [
        ("gpt2", {"hiden_size": 5}, "hidden_size"),
        ("llama-3.1-8b", {"moe_intermediate_size": 64}, "intermediate_size"),
        ("llama-3.1-8b", {"num_hidden_layer": 2}, "num_hidden_layers"),
        ("qwen2.5-vl-7b-instruct", {"vision_config.dept": 3}, "vision_config.depth"),
        ("mixtral-8x7b", {"moe_intermediate_size": 64}, "intermediate_size"),
    ],
)
def test_an_override_that_the_family_never_reads_is_refused_with_the_nearest_that_it_reads(model, given, nearest):
    (name,) = given
    with pytest.raises(
        InvalidInput, match=f"'{name}' is no field that the family .* nearest that it reads is '{nearest}'"
    ):
        read(model, overrides=given)


def test_options_that_a_family_does_not_read_are_wrong_usage(capsys):
    for option in ("--num-experts 8", "--moe-intermediate-size 64", "--head-dim 64", "--num-key-value-heads 2"):
        assert main(["models", "gpt2", *option.split()]) == 64
        assert option.split()[0].strip("-").replace("-", "_") in capsys.readouterr().err


def test_dimensions_that_their_family_does_not_read_are_refused():
    sizes = {key: LLAMA[key] for key in LLAMA if key != "architectures"}
    assert read(None, overrides=sizes).family == "llama"
    with pytest.raises(InvalidInput, match="'num_experts' is no field that the family llama reads"):
        read(None, overrides=sizes | {"num_experts": 4})
    with pytest.raises(InvalidInput, match="'num_experts_per_tok' is no field that the family generic reads"):
        read(
            None,
            overrides={
                "hidden_size": 64,
                "num_hidden_layers": 2,
                "num_attention_heads": 4,
                "vocab_size": 96,
                "num_experts_per_tok": 2,
            },
        )


def test_every_name_of_one_field_is_an_override_of_it():
    for name in ("hidden_size", "n_embd", "d_model"):
        assert read("gpt2", overrides={name: 1536}).hidden_size == 1536
    assert read("deepseek-v3", overrides={"num_experts": 8}).num_parameters() < 40e9
    assert read("falcon-40b", overrides={"num_key_value_heads": 16}).notes[-1].endswith("num_key_value_heads.")


def test_one_field_is_not_given_twice_under_two_names():
    with pytest.raises(InvalidInput, match="n_embd and hidden_size are one field"):
        read("gpt2", overrides={"n_embd": 1536, "hidden_size": 768})


def test_a_field_behind_an_alias_that_the_config_gives_is_refused_with_that_alias():
    with pytest.raises(InvalidInput, match="not read, because block_ff_dim comes before it"):
        read("lfm2-1.2b", overrides={"intermediate_size": 64})


def test_a_field_that_only_a_switch_makes_count_is_read_with_the_switch_alone():
    with pytest.raises(InvalidInput, match="'sliding_window' is no field"):
        read("qwen2.5-7b", overrides={"sliding_window": 64})
    assert read("qwen2.5-7b", overrides={"sliding_window": 64, "use_sliding_window": True, "max_window_layers": 0})


def test_a_section_that_is_taken_whole_may_be_changed_inside():
    changed = read("gpt2", overrides={"quantization_config.bits": 4})
    assert changed.quantization == {"bits": 4}


def test_the_family_that_is_given_stands_before_the_class_of_the_config():
    with pytest.raises(InvalidInput, match="lacks num_attention_heads"):
        read("gpt2", overrides={"model_type": "llama"})
    assert read("llama-3.1-8b", overrides={"model_type": "qwen3"}).family == "qwen3"


def test_an_override_of_none_takes_a_field_away():
    assert read("llama-3.1-8b", overrides={"num_key_value_heads": None}).num_parameters() > 8_030_261_248
