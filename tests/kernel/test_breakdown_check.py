"""A Term is checked where it is made: this runs under test, in tests' subprocesses, and in no production process."""

import os
import subprocess
import sys

import numpy as np
import pytest

from tonnage.formulas.engines import host_weights_bytes
from tonnage.formulas.memory import state_bytes
from tonnage.kernel.term import Term

ODD = [
    -1,
    -1e-6,
    float("nan"),
    float("inf"),
    *map(np.array, ([1.0, -1.0], [np.nan], [2.0, np.nan, 1.0], [1.0, np.inf])),
]


@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize("unit", ["bytes", "seconds", "tokens", "USD"])
def test_an_amount_that_is_negative_or_not_finite_is_refused_where_it_is_made(value, unit):
    with pytest.raises(AssertionError, match="Term 'it'"):
        Term("it", value, unit)


def test_a_leaf_says_what_it_was_made_of():
    with pytest.raises(AssertionError, match=r"state_bytes\(N=-3, w=2\)"):
        Term.of("weights", state_bytes, N=-3, w=2)


def test_a_difference_may_be_negative_and_so_may_what_it_is_part_of():
    less = Term.of("of them in host memory", host_weights_bytes, M=10, U=4)
    assert less.value == -4
    assert Term.sum("weights", Term.of("a", state_bytes, N=1, w=2), less).value == -2


def test_a_node_that_differs_from_its_children_is_refused():
    children = (Term("a", 1, "bytes"), Term("b", 2, "bytes"))
    with pytest.raises(AssertionError, match="not the sum of its children"):
        Term("both", 4, "bytes", "sum", children=children)
    with pytest.raises(AssertionError, match="not the max of its children"):
        Term("larger", 1, "bytes", "max", children=children)


@pytest.mark.parametrize(
    "values", [(6.0, 2.0), (np.array([6.0, 8.0]), np.array([2.0, 4.0])), (np.array([6.0, 8.0]), 2)]
)
@pytest.mark.parametrize(
    ("combine", "made"), [("sum", Term.sum), ("max", Term.max), ("product", None), ("ratio", None)]
)
def test_a_node_is_taken_to_the_last_digits_of_what_its_children_give(combine, made, values):
    children = tuple(Term(name, value, "bytes") for name, value in zip("ab", values, strict=True))
    whole = made("it", *children) if made else getattr(Term, combine)("it", "bytes", *children)
    assert Term("it", whole.value * (1 + 1e-12), "bytes", combine, children=children).combine == combine
    one_off = whole.value * np.array([1, 1 + 1e-6]) if np.ndim(whole.value) else whole.value * (1 + 1e-6)
    with pytest.raises(AssertionError, match=f"not the {combine} of its children"):
        Term("it", one_off, "bytes", combine, children=children)


def test_a_ratio_to_nothing_is_refused():
    for none in (0, np.array([1, 0])):
        with pytest.raises(AssertionError, match="not the ratio of its children, inf"):
            Term("it", 1.0, "bytes", "ratio", children=(Term("a", 1.0, "bytes"), Term("b", none, "bytes")))


@pytest.mark.parametrize(("said", "refused"), [("1", True), ("", False)])
def test_only_processes_that_ask_for_it_pay_for_the_check(said, refused):
    code = "from tonnage.kernel.term import Term; Term('it', -1, 'bytes')"
    environment = {**os.environ, "TONNAGE_CHECK_TERMS": said}
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, env=environment)
    assert ("AssertionError" in done.stderr) is refused
    assert (done.returncode != 0) is refused
