"""The helper of tables reports each row that fails, all of them in one failure, and refuses a table that lost its
rows.
"""

import pytest

from every_row import every_row


def failure_of(test, **fixtures):
    with pytest.raises(pytest.fail.Exception) as failed:
        test(**fixtures)
    return str(failed.value)


def test_every_row_that_fails_is_reported_and_those_after_it_are_checked():
    checked = []

    @every_row("number, square", [(1, 1), (2, 5), (3, 9), (4, 17)], at_least=4)
    def check(number, square):
        checked.append(number)
        assert number**2 == square

    message = failure_of(check)
    assert checked == [1, 2, 3, 4]
    assert message.startswith("2 of 4 rows fail:")
    assert "[2, 5] AssertionError" in message and "[4, 17] AssertionError" in message
    assert "[1, 1]" not in message and "[3, 9]" not in message
    assert "assert number**2 == square" in message  # the traceback shows the line


def test_an_exception_of_any_kind_and_a_skip_are_failures_of_their_row():
    @every_row("value", [0, "one", 2, 3])
    def check(value):
        if value == 2:
            pytest.skip("nothing to check")
        if value == 3:
            pytest.fail("said by the test")
        assert 1 / value

    message = failure_of(check)
    assert message.startswith("4 of 4 rows fail:")
    for row in (
        "[0] ZeroDivisionError",
        "[one] TypeError",
        "[2] Skipped: nothing to check",
        "[3] Failed: said by the test",
    ):
        assert row in message


def test_a_table_that_lost_its_rows_fails():
    @every_row("value", [1, 2], at_least=3)
    def short(value):
        pass

    @every_row("value", [])
    def empty(value):
        pass

    with pytest.raises(AssertionError, match="2 rows, but at least 3"):
        short()
    with pytest.raises(AssertionError, match="0 rows, but at least 1"):
        empty()


def test_rows_that_all_hold_are_a_passed_test():
    @every_row("value", [1, pytest.param(2, id="two")], ids=str)
    def check(value):
        assert value

    check()


@pytest.fixture
def offset():
    return 10


@every_row("number", range(3), at_least=3)
@every_row("other", (1, 2))
def test_tables_multiply_and_take_fixtures(number, other, offset):
    assert offset + number + other > 10


def test_of_tables_that_multiply_every_failing_pair_is_reported():
    @every_row("number", range(3))
    @every_row("other", (0, 1))
    def check(number, other):
        assert number != other

    message = failure_of(check)
    assert "[0] AssertionError" in message and "[1] AssertionError" in message and "2 of 3 rows" in message
