"""`compare` of answers of `train`."""

from tonnage.question.form import Given
from tonnage.verbs import compare
from tonnage.verbs.answered import DocumentedAnswer


def answer(arguments: Given) -> DocumentedAnswer:
    return compare.answer(arguments, "train")
