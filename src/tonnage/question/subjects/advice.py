"""Of the suggestions of an answer."""

from tonnage.question.option import Option

ADVICE = Option(
    "advice",
    "the next best moves: other plans are estimated for them, which takes most of the time of an answer",
    default="on",
)
