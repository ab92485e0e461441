"""Our own reader of pickles: plain data as Python reads it, and nothing else."""

import os
import pickle
import pickletools
from collections import OrderedDict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tonnage.kernel.errors import InvalidInput
from tonnage.trace.foreign import machine
from tonnage.trace.foreign.unpickle import loads

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**300), 2**300),
    st.floats(allow_nan=False),
    st.text(max_size=300),
    st.binary(max_size=300),
)
DATA = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=6),
        st.dictionaries(st.text(max_size=8), inner, max_size=6),
        st.sets(st.text(max_size=4), max_size=4),
        st.tuples(SCALARS, SCALARS),
    ),
    max_leaves=30,
)


@given(DATA, st.sampled_from([1, 3, 4, 5]))
def test_plain_data_comes_back_as_python_reads_it(value, protocol):
    data = pickle.dumps(value, protocol)
    if protocol < 4 and any(op.name in ("GLOBAL", "REDUCE") for op, _, _ in pickletools.genops(data)):
        return  # sets, and bytes before protocol 3, are made by calls there
    assert loads(data, "f") == value


@given(
    st.dictionaries(
        st.text(max_size=8), st.one_of(st.integers(), st.floats(allow_nan=False), st.text(), st.booleans()), max_size=8
    )
)
def test_protocol_0_is_read_too(value):
    assert loads(pickle.dumps(value, 0), "f") == value


def test_an_object_that_stands_in_two_places_is_read_as_one():
    frame = {"name": "f"}
    first, second = loads(pickle.dumps([frame, frame]), "f")
    assert first is second


def test_ordered_dicts_and_sets_of_old_protocols_are_containers():
    assert loads(pickle.dumps(OrderedDict(a=1, b=[2])), "f") == {"a": 1, "b": [2]}


RAN: list[str] = []


class Evil:
    def __reduce__(self):
        return RAN.append, ("evil",)


class Shell:
    def __reduce__(self):
        return os.system, ("exit 1",)


class State:
    def __init__(self):
        self.x = 1


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize(
    ("value", "name"),
    [(Evil(), "getattr"), (Shell(), "system"), (State(), "State|_reconstructor"), (print, "print"), (int, "int|long")],
)
def test_what_a_file_wants_to_run_is_named_and_not_run(value, name, protocol):
    with pytest.raises(
        InvalidInput, match=rf"^snap.pickle wants to run \S*({name}): it carries code.*Nothing of it was run"
    ):
        loads(pickle.dumps({"segments": [value]}, protocol), "snap.pickle")
    assert RAN == []


@pytest.mark.parametrize(
    "data",
    [
        b"(ios\nsystem\n.",  # INST
        b"\x80\x04N}b.",  # BUILD
        b"\x80\x04NN\x81.",  # NEWOBJ
        b"Pname\n.",  # PERSID
        b"\x80\x02\x82\x01.",  # EXT1
        b"\x80\x05\x97.",  # NEXT_BUFFER
        b"ccollections\nOrderedDict\n(N\x85R.",  # an allowed container with arguments
        b"ccollections\nOrderedDict\n(o.",
    ],
)
def test_every_opcode_that_makes_objects_is_refused(data):
    with pytest.raises(InvalidInput, match=r"Nothing of it was run|do not fit"):
        loads(data, "f")


def test_a_name_is_printed_without_what_a_terminal_would_obey():
    with pytest.raises(InvalidInput) as caught:
        loads(b"cos\x1b[31m\nsystem\n.", "f")
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "ends in the middle"),
        (b"\x80\x04]", "ends in the middle"),
        (b"\x80\x04\x8e" + b"\xff" * 8 + b".", "ends in the middle"),  # BINBYTES8 of 2**64 bytes
        (b"\x80\x05\x96" + b"\xff" * 8 + b".", "ends in the middle"),  # BYTEARRAY8
        (b"\x80\x04\x95" + b"\xff" * 8 + b".", "ends in the middle"),  # FRAME
        (b"\x80\x04X\xff\xff\xff\xffabc.", "ends in the middle"),
        (b"\x80\x02j\xff\xff\xff\xff.", "never stored"),
        (b"h\x05.", "never stored"),
        (b"\x80\x04e.", "ends in the middle"),
        (b"Na.", "ends in the middle"),
        (b"NNa.", "do not fit"),
        (b"}NNs.", "keys must be texts"),
        (b"}(K\x01K\x02u.", "keys must be texts"),
        (b"}(\x8c\x01au.", "do not fit"),
        (b"I" + b"9" * 5000 + b"\n.", "do not fit"),
        (b"\x8b\xff\xff\xff\x7f" + b"\x01" * 20 + b".", "ends in the middle"),
        (b"\x8c\x02\xff\xfe.", "do not fit"),
        (b"(" * 2000 + b".", "inside each other"),
        (b"N" + b"\x85" * 10_000 + b".", "tuples inside tuples"),
        (b"\xff.", "opcode 0xff"),
        (b"Sabc\n.", "do not fit"),
        (b"F" + b"x\n.", "do not fit"),
    ],
)
def test_broken_and_hostile_pickles_are_refused_with_a_reason(data, reason):
    with pytest.raises(InvalidInput, match=reason):
        loads(data, "f")


def test_a_number_far_away_takes_no_memory_of_its_own():
    assert loads(b"\x80\x02Nr\xff\xff\xff\xff.", "f") is None  # pickle.load makes a table of 2**32 places


def test_containers_are_counted(monkeypatch):
    monkeypatch.setattr(machine, "MAX_CONTAINERS", 100)
    assert loads(b"]" * 100 + b".", "f") == []
    for opcode in (b"]", b"}", b"\x8f", b"(t", b"(l", b"(d"):
        with pytest.raises(InvalidInput, match="more than 100 containers"):
            loads(opcode * 101 + b".", "f")


def test_lists_that_hold_themselves_and_lists_doubled_again_and_again_cost_no_more_than_their_bytes():
    doubled = b"\x80\x04]\x94" + b"".join(b"]\x94(h" + bytes([i]) + b"h" + bytes([i]) + b"e" for i in range(200)) + b"."
    assert len(loads(doubled, "f")) == 2
    held = loads(b"\x80\x04]\x94h\x00a.", "f")
    assert held[0] is held


WHOLE = pickle.dumps(
    {"segments": [{"address": 1, "blocks": [], "pool": (0, 0)}], "device_traces": [[{"action": "alloc", "f": 1.5}]] * 2}
)


@given(st.integers(0, len(WHOLE) - 1))
def test_every_truncation_is_refused(end):
    with pytest.raises(InvalidInput):
        loads(WHOLE[:end], "f")


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_changed_byte_gives_data_or_a_clear_error(changes):
    data = bytearray(WHOLE)
    for at, byte in changes:
        data[at] = byte
    try:
        loads(bytes(data), "f")
    except InvalidInput as error:
        assert str(error).startswith("f ") or str(error).startswith("f:")


@given(st.binary(max_size=200))
def test_any_bytes_give_data_or_a_clear_error(data):
    try:
        loads(data, "f")
    except InvalidInput as error:
        assert str(error)[:1] == "f"


OPCODES = [opcode.code.encode("latin-1") for opcode in pickletools.opcodes]


@given(
    st.lists(
        st.one_of(st.sampled_from(OPCODES), st.sampled_from([b"\x00", b"\x01", b"a\n", b"0\n", b"\x04\x00\x00\x00"])),
        max_size=60,
    )
)
def test_any_opcodes_give_data_or_a_clear_error(parts):
    try:
        loads(b"".join(parts) + b".", "f")
    except InvalidInput as error:
        assert str(error)[:1] == "f"
