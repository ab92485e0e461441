"""Defaults of a tool that are filled in, and keys that are not understood for good."""

from tonnage.interchange.reading import Asker, Reading
from tonnage.interchange.source import text_source


def reading(**values):
    found = Reading(text_source("", "a.yaml"), values, Asker())
    found.tool, found.version = "Tool", "1.0"
    return found


def test_a_default_that_is_filled_in_is_read_like_a_value_and_shown_as_assumed():
    r = reading(batch=4)
    r.fill({"batch": 1, "shards": 3, "seed": 7})
    r.put("micro_batch_size", r.integer("batch"), "batch")
    r.put("zero_stage", r.integer("shards"), "shards")
    r.ignore(["seed"])
    r.forget_unused()
    found = {key.key: key for key in r.document().keys}
    assert set(found) == {"batch", "shards"}
    assert (found["batch"].status, found["shards"].status) == ("used", "assumed")
    assert found["shards"].why == "default of Tool 1.0"
    assert r.question == {"micro_batch_size": 4, "zero_stage": 3}
    assert r.origins == {"micro_batch_size": ("batch",), "zero_stage": ()}


def test_a_default_that_is_not_estimated_is_not_understood():
    r = reading()
    r.fill({"kernel": "fast"})
    r.unsure("kernel", "not estimated")
    r.forget_unused()
    assert [key.status for key in r.document().keys] == ["not understood"]


def test_what_is_not_understood_stays_so():
    r = reading(size=3)
    r.unsure("size", "not estimated")
    r.put("tensor_parallel_size", 3, "size")
    assert [key.status for key in r.document().keys] == ["not understood"]
    assert r.question == {"tensor_parallel_size": 3}
