"""A config.json is read strictly, whatever it holds."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.files import LLAMA
from tonnage.kernel.errors import InvalidInput, TonnageError
from tonnage.models.contents import Contents
from tonnage.models.formats import config_json
from tonnage.models.reconcile import assemble


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"[1]", "JSON object"),
        (b"null", "JSON object"),
        (b'"text"', "JSON object"),
        (b"\xff\xfe{}", "not UTF-8"),
        (b'{"a": 1, "a": 2}', "'a' twice"),
        (b'{"x": {"a": 1, "a": 2}}', "'a' twice"),
        (b'{"hidden_size": NaN}', "hidden_size must be a finite number"),
        (b'{"hidden_size": Infinity}', "hidden_size must be a finite number"),
        (b'{"rope": [1, -Infinity]}', "rope must be a finite number"),
        (b'{"x": 1e999}', "x must be a finite number"),
        (b'{"x": ' + b"9" * 5000 + b"}", "x must be a finite number"),
        (b'{"x": ' + b"[" * 100 + b"]" * 100 + b"}", "nested"),
        (b'{"x": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", "nested"),
        (b'{"x": [' + b"[]," * 200_000 + b"1]}", "more than 200,000 lists"),
        (b'{"x": "' + b"a" * 10_000_001 + b'"}', "larger than 10 MB"),
    ],
)
def test_what_is_no_config_is_refused(data: bytes, says: str):
    with pytest.raises(InvalidInput, match=says):
        config_json.parse(data, "config.json")


def test_a_byte_order_mark_is_no_fault():
    assert config_json.parse(b'\xef\xbb\xbf{"a": 1}', "config.json") == {"a": 1}


def test_the_infinite_step_that_state_spaces_write_is_kept():
    assert config_json.parse(b'{"time_step_limit": [0.0, Infinity]}', "config.json")["time_step_limit"][1] == float(
        "inf"
    )
    with pytest.raises(InvalidInput, match="time_step_limit"):
        config_json.parse(b'{"time_step_limit": [0.0, NaN]}', "config.json")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=12), inner, max_size=5),
    max_leaves=20,
)


@given(st.binary(max_size=300) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_give_fields_or_a_clear_error(data: bytes):
    try:
        fields = config_json.parse(data, "config.json")
    except TonnageError as error:
        assert str(error).startswith("config.json")
    else:
        assert isinstance(fields, dict)


@given(
    st.dictionaries(
        st.sampled_from([*LLAMA, "head_dim", "text_config", "quantization_config", "layer_types"]), JSON, max_size=6
    )
)
def test_a_llama_with_any_fields_is_a_model_or_a_clear_error(changes: dict):
    contents = Contents(name="x", source="x", where="config.json", fields=LLAMA | changes)
    try:
        assert assemble(contents, {}).num_parameters() > 0
    except TonnageError as error:
        assert str(error)
