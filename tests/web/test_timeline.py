"""A step as boxes: the document that the page draws a pipeline from."""

import json

import pytest

from schema_forms import validate
from tonnage.documents.document import encode
from tonnage.kernel.errors import InvalidPlan, MissingDatum
from tonnage.web.timeline import drawn

LARGE = {
    "model": "llama-3.1-70b",
    "on": "8x8xH100-SXM-80GB",
    "tensor_parallel_size": 8,
    "pipeline_parallel_size": 4,
    "global_batch_size": 128,
}


def timeline(**more):
    asked = drawn(LARGE | more)
    document = json.loads(encode(asked.document))
    validate(document, "TimelineDocument")
    return document, asked


@pytest.mark.parametrize(
    ("more", "schedule", "shown", "gap"),
    [
        ({}, "1f1b", 12, True),
        ({"virtual_pipeline_size": 2}, "interleaved-1f1b", 12, True),
        ({"pipeline_schedule": "gpipe"}, "gpipe", 8, False),
        ({"pipeline_schedule": "zbv"}, "zbv", 12, True),
        ({"pipeline_schedule": "dualpipev"}, "dualpipev", 12, True),
        (
            {"pipeline_schedule": "interleaved-zero-bubble", "virtual_pipeline_size": 2},
            "interleaved-zero-bubble",
            12,
            True,
        ),
    ],
)
def test_a_step_is_played_out_in_the_order_of_its_schedule(more, schedule, shown, gap):
    document, asked = timeline(**more)
    assert (document["schedule"], document["stages"], document["num_microbatches"], document["shown"]) == (
        schedule,
        4,
        64,
        shown,
    )
    assert (document["gap"] is not None) == gap
    assert {box["stage"] for box in document["boxes"]} == {0, 1, 2, 3}
    assert asked.words[0] == "train"
    if gap:
        assert document["played_seconds"] == pytest.approx(document["step_seconds"], rel=0.05)


def test_the_status_is_that_of_the_answer():
    assert timeline(micro_batch_size=8, as_is=True)[1].status == 3


def test_a_step_of_unknown_time_is_not_drawn():
    with pytest.raises(MissingDatum):
        drawn({"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB", "objective": "dpo"})


def test_a_plan_that_cannot_be_is_refused_as_by_the_command_line():
    with pytest.raises(InvalidPlan, match="pipeline_schedule"):
        drawn(LARGE | {"pipeline_schedule": "zbv", "virtual_pipeline_size": 3})
