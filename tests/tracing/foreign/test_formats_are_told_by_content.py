"""Which format a file has, whatever its name; what is none of them; limits."""

import gzip
import json
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tonnage.kernel.errors import InvalidInput
from tonnage.trace.foreign import files, read
from tonnage.trace.foreign.formats import from_json
from tracing.foreign.files import BASE, MIB, Trace, snapshot

SMALL = snapshot(Trace().alloc(BASE, MIB))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "none of the files that are known"),
        (b"hello", "none of the files that are known"),
        (b"\x7fELF", "none of the files that are known"),
        (b"{", "is no JSON"),
        (b"{}", "JSON without traceEvents"),
        (b'{"weights": 1, "a\\u001b[31m": 2}', "it has 'weights'"),
        (b"[" * 100_000, "is no JSON"),
        (b"[{}]", "no memory snapshot|segments"),
        (b'["a"]', "no memory timeline"),
        (b"\x1f\x8bbroken", "no whole gzip file"),
        (gzip.compress(b"{}", mtime=0)[:-3], "no whole gzip file"),
        (gzip.compress(b"SQLite format 3\x00", mtime=0), "unpack it first"),
        (b"SQLite format 3\x00" + b"x" * 100, "no whole SQLite database"),
        (b"\xff\xfe{\x00}\x00", "none of the files"),
    ],
)
def test_what_is_none_of_the_formats_is_refused(tmp_path, content, reason):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=reason) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_what_is_not_there_is_said(tmp_path):
    with pytest.raises(InvalidInput, match="No such file"):
        read(tmp_path / "nothing")
    with pytest.raises(InvalidInput, match="is a folder, not a regular file"):
        read(tmp_path)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_names_do_not_matter(tmp_path, pack):
    for content in (pickle.dumps(SMALL), json.dumps(SMALL).encode(), b"\xef\xbb\xbf \n" + json.dumps(SMALL).encode()):
        path = tmp_path / "trace.sqlite"
        path.write_bytes(pack(content))
        assert read(path).allocated_peak == MIB


def test_files_that_are_too_large_are_refused_packed_or_not(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_PIECE", 1000)
    path = tmp_path / "x"
    for content in (b"{" + b" " * 10_000, gzip.compress(b"{" + b" " * 10_000)):
        path.write_bytes(content)
        with pytest.raises(InvalidInput, match=r"holds more than 5,000 B|holds more than 4\.88 KiB"):
            files.content(path, 5_000)


JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**64 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=5),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from(
                [
                    "traceEvents",
                    "segments",
                    "device_traces",
                    "memoryProfilePerAllocator",
                    "args",
                    "name",
                    "ph",
                    "ts",
                    "action",
                    "size",
                    "addr",
                    "blocks",
                    "address",
                    "total_size",
                    "frames",
                    "Bytes",
                    "profileSummary",
                    "external_annotations",
                ]
            ),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=25,
)
ACTION = st.fixed_dictionaries(
    {
        "action": st.sampled_from(
            ["alloc", "free_completed", "free_requested", "segment_alloc", "segment_free", "oom", "snapshot", "odd"]
        )
    },
    optional={
        "size": st.integers(0, 2**40),
        "addr": st.integers(0, 9),
        "frames": JSON,
        "category": JSON,
        "stream": st.integers(-(2**63), 2**63 - 1),
    },
)


def _gives_memory_or_a_clear_error(data: object) -> None:
    try:
        found = from_json(json.dumps(data).encode(), "f", None)
    except InvalidInput as error:
        assert str(error).startswith("f")
    else:
        assert found.allocated_peak is None or found.allocated_peak >= 0
        json.dumps(found.to_dict())


@given(JSON)
def test_any_json_gives_memory_or_a_clear_error(data):
    _gives_memory_or_a_clear_error(data)


@given(st.lists(ACTION, max_size=12), JSON)
def test_any_actions_give_memory_or_a_clear_error(actions, rest):
    _gives_memory_or_a_clear_error(
        {"device_traces": [actions], "external_annotations": rest, "allocator_settings": rest}
    )


@settings(max_examples=50)
@given(
    st.lists(
        st.fixed_dictionaries({"name": st.just("[memory]"), "args": JSON}, optional={"ph": JSON, "ts": JSON}),
        max_size=4,
    )
)
def test_any_trace_gives_memory_or_a_clear_error(events):
    _gives_memory_or_a_clear_error({"traceEvents": events})
