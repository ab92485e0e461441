"""A polynomial goes through formulas as a number does, and says where it still is the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonnage.formulas.memory import saved_bytes
from tonnage.kernel.formula import maximum, minimum
from tonnage.kernel.polynomial import NotPolynomial, Polynomial, value_of

NUMBERS = st.integers(-1000, 1000)
STEPS = st.lists(st.tuples(st.sampled_from("+-*/xms"), st.integers(-9, 9).filter(bool)), max_size=8)


def _computed(x, steps):
    """The same steps for a number and a polynomial."""
    value = x
    for step, by in steps:
        match step:
            case "+":
                value = by + value
            case "-":
                value = by - value
            case "*":
                value = value * by
            case "/":
                value = value / by
            case "x":
                value = value + x * x * by
            case "m":
                value = maximum(value, by * x)
            case "s":
                value = minimum(value, by) if value > by else value - by
    return value


@given(NUMBERS, NUMBERS, STEPS)
def test_what_comes_out_holds_wherever_all_that_was_asked_has_the_same_answer(at, other, steps):
    unknown = Polynomial.unknown(at)
    found = _computed(unknown, steps)
    coefficients = found.coefficients if isinstance(found, Polynomial) else (found,)
    assert value_of(coefficients, at) == pytest.approx(_computed(at, steps), rel=1e-9, abs=1e-6)
    assert all(condition.holds(at) for condition in unknown.asked)
    if all(condition.holds(other) for condition in unknown.asked):
        assert value_of(coefficients, other) == pytest.approx(_computed(other, steps), rel=1e-9, abs=1e-6)


def test_what_is_compared_is_noted_once_and_only_where_it_depends_on_the_unknown():
    x = Polynomial.unknown(3)
    assert x >= 3 and x >= 3 and x - x < 1 and not x < 3 and x != 4 and x
    assert (x == 5) is False
    assert len(x.asked) == 5


@pytest.mark.parametrize(
    "asked",
    [
        int,
        float,
        round,
        hash,
        str.format,
        lambda x: x / 2 % 2,
        lambda x: x // 2,
        lambda x: x % 0.5,
        lambda x: 1 / x,
        range,
        abs,
    ],
)
def test_what_is_no_polynomial_is_refused(asked):
    with pytest.raises((NotPolynomial, TypeError)):
        asked("{:,}", Polynomial.unknown(3)) if asked is str.format else asked(Polynomial.unknown(3))


def test_what_is_left_of_a_division_holds_for_all_that_leave_the_same():
    x = Polynomial.unknown(4096)
    assert (3 * x + 1) % 1024 == 1 and x % 1 == 0 and (x // 1 + 0).coefficients == (0, 1)
    (condition,) = x.asked
    assert [condition.holds(at) for at in (1024, 1536, 8192)] == [True, False, True]


def test_a_formula_takes_it_as_it_takes_a_number():
    sizes = {"x": 8192, "w": 2, "b": 4, "c": 2}
    grown = saved_bytes.evaluate(s=Polynomial.unknown(4096), **sizes)
    assert [value_of(grown.coefficients, s) for s in (512, 100_000)] == [
        saved_bytes.evaluate(s=s, **sizes) for s in (512, 100_000)
    ]
