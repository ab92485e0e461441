"""What tests of searches share."""

import multiprocessing

import pytest


@pytest.fixture
def children():
    """Child processes that the test started and that still run: servers of other tests in this process are none."""
    before = multiprocessing.active_children()
    return lambda: [child for child in multiprocessing.active_children() if child not in before]
