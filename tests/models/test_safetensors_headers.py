"""Headers of safetensors files: read exactly, and refused for what is wrong with them."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from models.files import framed
from tonnage.kernel.errors import InvalidInput, TonnageError
from tonnage.models.formats import safetensors


def header_of(data: bytes, size: int | None = None) -> list:
    return safetensors.read_header(
        lambda start, length: data[start : start + length], len(data) if size is None else size, "x"
    )


def entry(dtype: str = "F32", shape: object = (2, 3), offsets: object = (0, 24)) -> dict:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def test_a_file_of_the_safetensors_package_is_read_as_it_was_written(tmp_path: Path):
    arrays = {"a.weight": np.zeros((3, 5), np.float32), "b": np.zeros((), np.int64), "c": np.zeros((0, 4), np.uint8)}
    save_file(arrays, tmp_path / "x.safetensors", metadata={"format": "np", "dtype": "odd", "shape": "odder"})
    found = {tensor.name: tensor for tensor in header_of((tmp_path / "x.safetensors").read_bytes())}
    assert {name: (tensor.shape, tensor.bytes) for name, tensor in found.items()} == {
        name: (array.shape, array.nbytes) for name, array in arrays.items()
    }
    assert found["a.weight"].dtype == "F32"
    assert found["a.weight"].elements == 15


def test_every_type_of_the_package_has_its_size():
    assert safetensors.BITS["F4"] == 4
    assert set(safetensors.BITS.values()) == {4, 6, 8, 16, 32, 64}
    for dtype, bits in safetensors.BITS.items():
        data = framed({"x": entry(dtype, [4, 4], [0, 2 * bits])}) + bytes(2 * bits)
        assert header_of(data)[0].bytes == 2 * bits


@pytest.mark.parametrize(
    ("header", "says"),
    [
        (b"not json", "does not begin with an object"),
        (b"[]", "does not begin with an object"),
        (b'{"a": }', "not JSON"),
        (b'{"\x80": {"dtype": "F32", "shape": [6], "data_offsets": [0, 24]}}', "not JSON"),
        (b'{"a": {"dtype": "\x80", "shape": "6"}}', "not JSON"),
        (b'{"a": 3}', "'a': Expected `object`"),
        ({"a": {"dtype": "F32", "shape": [1]}}, "lacks data_offsets"),
        ({"a": {"shape": [1], "data_offsets": [0, 4]}}, "type ''"),
        ({"a": entry("F33")}, "type 'F33'"),
        ({"a": entry("F32", [-2, 3])}, "below 0"),
        ({"a": entry("F32", [2**40, 2**40])}, "no file can hold"),
        ({"a": entry("F32", [2, 3], [0, 20])}, "does not take the 20 bytes"),
        ({"a": entry("F32", [2, 3], [24, 0])}, "does not take"),
        ({"a": entry("F32", [2, 3], [-24, 0])}, "does not take"),
        ({"a": entry(), "b": entry()}, "overlaps"),
        ({"a": entry("F32", [2, 3], [8, 32])}, "leaves a hole"),
        ({"a": entry("F32", "23")}, "Expected `array`"),
        ({"a": entry("F32", [1.5])}, "Expected `int`"),
        (b'{"a": ' + json.dumps(entry()).encode() + b', "a": ' + json.dumps(entry()).encode() + b"}", "key twice"),
        (
            b'{"a": {"dtype": "F32", "dtype": "F32", "shape": [6], "data_offsets": [0, 24], "data_offsets": [0, 24]}}',
            "key twice",
        ),
        (
            b'{"\\u0061": ' + json.dumps(entry()).encode() + b', "a": ' + json.dumps(entry()).encode() + b"}",
            "key twice",
        ),
        (b'{"a": {"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}", "nested too deep|not JSON"),
        (b"{" + b",".join(b'"%d":{}' % number for number in range(500_001)) + b"}", "more than 300,000"),
        (b'{"a": {"shape": [' + b"1," * 4_000_001 + b"1]}}", "more than 300,000"),
    ],
)
def test_a_wrong_header_is_refused(header: object, says: str):
    data = framed(header)
    with pytest.raises(InvalidInput, match=says):
        header_of(data + bytes(24))


@pytest.mark.parametrize(
    ("data", "size", "says"),
    [
        (b"", 0, "takes 8"),
        (b"1234567", 7, "takes 8"),
        ((10**12).to_bytes(8, "little"), None, "100 MB"),
        ((100_000_001).to_bytes(8, "little"), 2**40, "100 MB"),
        ((1000).to_bytes(8, "little") + b"{}", 10, "does not fit"),
        ((1).to_bytes(8, "little") + b"{", 9, "does not fit"),
        ((1000).to_bytes(8, "little") + b"{}", 2000, "ends inside"),
        (b"<html>" * 10, 60, "100 MB"),
    ],
)
def test_a_length_that_cannot_be_is_refused(data: bytes, size: int | None, says: str):
    with pytest.raises(InvalidInput, match=says):
        header_of(data, size)


def test_a_file_that_is_cut_off_or_goes_on_is_refused():
    whole = framed({"a": entry()}) + bytes(24)
    with pytest.raises(InvalidInput, match="cut off"):
        header_of(whole[:-1])
    with pytest.raises(InvalidInput, match="more than that"):
        header_of(whole + b"x")
    assert len(header_of(whole)) == 1


def test_a_name_that_speaks_of_offsets_is_no_duplicate():
    found = header_of(framed({'x"data_offsets"': entry(), "é": entry("F32", [0], [24, 24])}) + bytes(24))
    assert [tensor.name for tensor in found] == ['x"data_offsets"', "é"]


def test_a_header_longer_than_the_first_read_is_read_on():
    names = {f"layer.{number:05}.weight": entry("F32", [1], [4 * number, 4 * number + 4]) for number in range(3000)}
    data = framed(names) + bytes(12_000)
    asked: list[tuple[int, int]] = []

    def read(start: int, length: int) -> bytes:
        asked.append((start, length))
        return data[start : start + length]

    assert len(safetensors.read_header(read, len(data), "x")) == 3000
    assert asked == [(0, 65_536), (65_536, len(data) - 12_000 - 65_536)]


@pytest.mark.parametrize(
    ("index", "says"),
    [
        (b"{", "not JSON"),
        (b"[]", "weight_map"),
        (b'{"\x80": 1}', "not UTF-8"),
        (b"{}", "weight_map"),
        (b'{"weight_map": {}}', "weight_map"),
        (b'{"weight_map": {"a": 1}}', "weight_map"),
        (b'{"weight_map": {"a": "../../etc/passwd"}}', "plain relative path"),
        (b'{"weight_map": {"a": "/etc/passwd"}}', "plain relative path"),
        (b'{"weight_map": {"a": "C:\\\\x"}}', "plain relative path"),
    ],
)
def test_a_wrong_index_is_refused(index: bytes, says: str):
    with pytest.raises(InvalidInput, match=says):
        safetensors.parse_index(index, "index")


INTEGERS = st.integers(-5, 2**65) | st.integers(0, 40)
ENTRIES = st.fixed_dictionaries(
    {"dtype": st.sampled_from(["F32", "BF16", "F4", "U8", "X", ""]), "shape": st.lists(INTEGERS, max_size=4)},
    optional={"data_offsets": st.lists(INTEGERS, min_size=0, max_size=3), "more": st.text(max_size=3)},
)
HEADERS = st.dictionaries(st.text(max_size=6), ENTRIES | st.integers() | st.none(), max_size=4)


@given(st.binary(max_size=200) | HEADERS.map(framed), st.integers(0, 64))
def test_any_bytes_give_tensors_or_a_clear_error(data: bytes, more: int):
    try:
        for tensor in header_of(data + bytes(more)):
            assert tensor.bytes >= 0
    except TonnageError as error:
        assert str(error).startswith("x")
