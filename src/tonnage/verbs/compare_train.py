"""`compare` of answers of `train`."""

from tonnage.question.given import Given
from tonnage.verbs import compare
from tonnage.verbs.answered import VerbAnswer


def answer(arguments: Given) -> VerbAnswer:
    return compare.answer(arguments, "train")
