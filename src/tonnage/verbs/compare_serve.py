"""`compare` of answers of `serve`."""

from tonnage.question.given import Given
from tonnage.verbs import compare
from tonnage.verbs.answered import VerbAnswer


def answer(arguments: Given) -> VerbAnswer:
    return compare.answer(arguments, "serve")
