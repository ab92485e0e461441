"""POST /v1/timeline: the step of a training run as boxes, for a picture of its pipeline: made of the same answer,
asked for by the same question.
"""

from collections.abc import Mapping
from typing import Any

from tonnage.documents.timeline import TimelineBox, TimelineDocument
from tonnage.estimate.plan.pipeline_orders import played
from tonnage.kernel import reach
from tonnage.kernel.errors import MissingDatum
from tonnage.verbs.ask import Reply, training

TIMELINE = "timeline"


def drawn(question: Mapping[str, Any], within: reach.Reach = reach.Reach()) -> Reply:
    """A TimelineDocument. Its status is the answer's."""
    answer, words = training(question, within)
    step = answer.pieces
    if step is None:
        raise MissingDatum("the time of this step is not known, so that it cannot be drawn.")
    seconds = float(answer.step_time.value)
    boxes, fewer = played(step)
    document = TimelineDocument(
        schedule=step.schedule,
        stages=step.directions * len(step.stages),
        chunks=step.chunks,
        num_microbatches=step.directions * step.num_microbatches,
        shown=step.directions * step.num_microbatches - boxes.skipped,
        step_seconds=seconds,
        played_seconds=boxes.seconds,
        cut=boxes.cut,
        gap=None if fewer else boxes.gap,
        boxes=[
            TimelineBox(
                stage=box.stage,
                kind=box.kind,
                start=box.start,
                seconds=box.seconds,
                microbatch=box.microbatch,
                chunk=box.chunk,
            )
            for box in boxes.boxes
        ],
    )
    return Reply(document, int(answer.status), words)
