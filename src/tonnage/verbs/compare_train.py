"""`compare` of answers of `train`."""

from tonnage.question.given import Given
from tonnage.verbs import compare
from tonnage.verbs.answered import Found


def answer(arguments: Given) -> Found:
    return compare.answer(arguments, "train")
