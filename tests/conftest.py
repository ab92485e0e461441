"""Being here puts this folder on the import path: tests import `oracles` and `architectures` (data and helpers)
by name. Hypothesis tries the same examples in every run, so that a run that fails says something of the change that it
tests; HYPOTHESIS_PROFILE=random tries others each time, and =soak (`make soak`) many more of every property that does
not say how many.
"""

import gc
import os
import sys

import pytest
from hypothesis import settings

# No deadlines: how long an example takes says only how busy the machine is.
settings.register_profile("tests", deadline=None, derandomize=True)
settings.register_profile("random", deadline=None)
settings.register_profile("soak", max_examples=10_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "tests"))
os.environ["TONNAGE_CHECK_TERMS"] = (
    "1"  # every Term is checked where it is made, in subprocesses too (tonnage.kernel.term)
)
os.environ["TONNAGE_LANG"] = "en"  # tests read English wherever they run
# Processes that tests start find what an earlier one compiled; without it each compiles all that it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")  # tests say the same on a machine with a GPU, and leave it alone


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Modules, tests and catalogues, a million objects, stay until the end: nobody looks through them again and again
    for garbage, which takes half a second each time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """What the tests of a file leave (modules, what is cached) stays until the end as well: `tonnage measure` collects
    garbage before it counts, which took seconds after a thousand tests.
    """
    try:
        return (yield)
    finally:
        if nextitem is None or nextitem.path != item.path:
            gc.collect()
            gc.freeze()


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config, log):
    from distribution import LongestFirst

    return LongestFirst(config, log)


@pytest.fixture
def without_jinja(monkeypatch):
    """As in an installation without the extra `report`."""
    from tonnage.render.report.page import environment

    environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
