"""Headers of GGUF files: read as the gguf package writes them, and refused for what is wrong with them."""

import struct
from pathlib import Path

import gguf as package
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.files import GGUF_LLAMA, gguf_llama_tensors, write_gguf
from tonnage.kernel.errors import InvalidInput, TonnageError
from tonnage.models.formats import gguf
from tonnage.models.formats.gguf import FILE_TYPES, TYPES


def header_of(data: bytes, size: int | None = None) -> gguf.Header:
    return gguf.read_header(
        lambda start, length: data[start : start + length], len(data) if size is None else size, "x"
    )


def test_every_type_has_the_block_and_size_of_the_gguf_package():
    theirs = {number.value: (number.name, *package.GGML_QUANT_SIZES[number]) for number in package.GGMLQuantizationType}
    assert theirs == TYPES


def test_every_file_type_has_the_name_of_the_gguf_package():
    theirs = {kind.value: kind.name.replace("MOSTLY_", "").replace("ALL_", "") for kind in package.LlamaFileType}
    theirs.pop(package.LlamaFileType.GUESSED.value)
    assert theirs == FILE_TYPES


@pytest.mark.parametrize("endian", list(package.GGUFEndian))
def test_a_file_of_the_gguf_package_is_read_as_it_was_written(tmp_path: Path, endian: package.GGUFEndian):
    metadata = {
        **GGUF_LLAMA,
        "general.name": "Tiny",
        "llama.rope.freq_base": 1e4,
        "llama.flag": True,
        "llama.attention.head_count_kv": [2, 1],
        "words": ["a", "bc", ""],
        "lists": [[1, 2], [3]],
    }
    path = write_gguf(tmp_path / "x.gguf", metadata, gguf_llama_tensors(), tokens=512, endian=endian)
    found = header_of(path.read_bytes())
    assert found.version == 3
    assert found.big_endian == (endian is package.GGUFEndian.BIG)
    assert found.metadata["general.name"] == "Tiny"
    assert found.metadata["llama.attention.head_count_kv"] == [2, 1]
    assert found.metadata["llama.flag"] is True
    assert found.metadata["lists"] == [[1, 2], [3]]
    assert found.metadata["words"] == gguf.Counted(3)
    assert found.metadata["tokenizer.ggml.tokens"] == gguf.Counted(512)
    assert {tensor.name: tensor.shape for tensor in found.tensors} == {
        name: shape for name, (_, shape) in gguf_llama_tensors().items()
    }
    theirs = {tensor.name: int(tensor.n_bytes) for tensor in package.GGUFReader(path).tensors}
    assert {tensor.name: tensor.bytes for tensor in found.tensors} == theirs


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def made(
    keys: bytes = b"", key_count: int = 0, tensors: bytes = b"", tensor_count: int = 0, version: int = 3, data: int = 64
) -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", version, tensor_count, key_count) + keys + tensors
    return head + bytes(-len(head) % 32 + data)


def info(name: str = "t", shape: tuple[int, ...] = (4,), kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


def array(kind: int, count: int, items: bytes = b"") -> bytes:
    return text("k") + struct.pack("<IIQ", 9, kind, count) + items


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "does not begin with GGUF"),
        (b"GGUF", "does not begin with GGUF"),
        (b"GGML" + bytes(60), "does not begin with GGUF"),
        (made(version=4), "versions 1 to 3"),
        (made(version=0), "versions 1 to 3"),
        (made(key_count=2**40), "do not fit"),
        (made(tensor_count=2**63), "do not fit"),
        (made(text("k") + struct.pack("<I", 99), 1), "type 99"),
        (made(struct.pack("<Q", 2**60), 1), "too long"),
        (made(text("k") + struct.pack("<IQ", 8, 2**60), 1), "runs past"),
        (made(array(4, 2**60), 1), "claims"),
        (made(array(8, 2**60), 1), "claims"),
        (made(array(99, 1), 1), "type 99"),
        (made(array(8, 3, text("a")), 1, data=0), "runs past"),
        (made(array(9, 1, struct.pack("<IQ", 9, 1) * 9), 1), "nested too deep"),
        (made((text("k") + struct.pack("<II", 4, 1)) * 2, 2), "twice"),
        (made(tensors=info(kind=77), tensor_count=1), "ggml type 77"),
        (made(tensors=info(shape=(4,), kind=12), tensor_count=1), "Q4_K cannot have the shape"),
        (made(tensors=info(shape=(2**40, 2**40)), tensor_count=1), "cannot have the shape"),
        (made(tensors=text("t") + struct.pack("<I", 9), tensor_count=1), "9 dimensions"),
        (made(tensors=info(shape=(1000,)), tensor_count=1), "ends at byte"),
        (made(tensors=info(offset=2**63 - 32), tensor_count=1), "ends at byte"),
        (made(tensors=info(offset=8), tensor_count=1), "not aligned"),
        (made(tensors=info() + info("u"), tensor_count=2), "overlaps"),
        (made(tensors=info() + info(offset=32), tensor_count=2), "same name"),
        (made(text("general.alignment") + struct.pack("<II", 4, 33), 1), "power of two"),
        (made(text("general.alignment") + struct.pack("<II", 4, 0), 1), "power of two"),
    ],
)
def test_a_wrong_header_is_refused(data: bytes, says: str):
    with pytest.raises(InvalidInput, match=says):
        header_of(data)


def test_a_tensor_beyond_any_file_is_refused_where_nobody_knows_the_size():
    data = made(tensors=info(shape=(2**62,), kind=24), tensor_count=1)  # I8
    with pytest.raises(InvalidInput, match="no file is as large"):
        gguf.read_header(lambda start, length: data[start : start + length], None, "x")


def test_version_1_has_counts_of_32_bits():
    head = b"GGUF" + struct.pack("<III", 1, 1, 1) + struct.pack("<I", 1) + b"k" + struct.pack("<II", 4, 7)
    head += struct.pack("<I", 1) + b"t" + struct.pack("<IIIIQ", 2, 4, 3, 0, 0)
    found = header_of(head + bytes(-len(head) % 32 + 48))
    assert found.metadata == {"k": 7}
    assert found.tensors[0].shape == (3, 4)


def test_long_values_are_passed_over_and_reading_goes_on_in_growing_parts():
    keys = array(6, 300_000, bytes(1_200_000)) + text("s") + struct.pack("<IQ", 8, 500_000) + bytes(500_000)
    data = made(keys + text("end") + struct.pack("<II", 4, 5), 3, info(), 1)
    asked: list[tuple[int, int]] = []

    def read(start: int, length: int) -> bytes:
        asked.append((start, length))
        return data[start : start + length]

    found = gguf.read_header(read, len(data), "x")
    assert found.metadata == {"k": gguf.Counted(300_000), "s": gguf.Counted(500_000), "end": 5}
    assert len(asked) <= 4
    assert sum(length for _, length in asked) < len(data)


def test_texts_across_the_borders_of_the_parts_are_counted_right():
    words = b"".join(text("w" * (number % 50)) for number in range(40_000))
    data = made(array(8, 40_000, words) + text("end") + struct.pack("<II", 4, 5), 2)
    assert header_of(data).metadata == {"k": gguf.Counted(40_000), "end": 5}


@given(st.binary(max_size=120), st.booleans(), st.integers(0, 3))
def test_any_bytes_give_a_header_or_a_clear_error(data: bytes, magic: bool, counts: int):
    start = b"GGUF" + struct.pack("<IQQ", 3, counts, counts) if magic else b""
    try:
        header_of(start + data)
    except TonnageError as error:
        assert str(error).startswith("x")


@given(st.data())
def test_a_whole_file_with_some_bytes_changed_gives_a_header_or_a_clear_error(data: st.DataObject):
    keys = text("general.architecture") + struct.pack("<I", 8) + text("llama") + array(4, 3, bytes(12))
    whole = bytearray(made(keys, 2, info(shape=(4, 4)) + info("u", (4,), offset=64), 2, data=96))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        header_of(bytes(whole))
    except TonnageError as error:
        assert str(error).startswith("x")
