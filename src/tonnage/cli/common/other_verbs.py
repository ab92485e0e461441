"""The verbs that have an option which the verb at hand has not, also those that are on the command line alone."""

from collections.abc import Callable, Mapping

from tonnage.kernel.message import AND, Message, listed, option_name
from tonnage.question import owners
from tonnage.question.form import Form

Flags = Callable[[], Mapping[str, frozenset[str]]]  # verb -> its options, of the verbs that no other face has


def no_flags() -> Mapping[str, frozenset[str]]:
    """No verbs: of a parser that stands alone."""
    return {}


def other_verb_sentence(flag: str, form: Form, flags_by_verb: Flags) -> str:
    """The sentence that names the verbs which have an option that this form has not; "" where none has it."""
    sentence = owners.other_verb_sentence(flag, form)
    if sentence:
        return sentence
    verbs = [verb for verb, flags in flags_by_verb().items() if flag in flags and verb != form.verb]
    if not verbs:
        return ""
    return Message(owners.SENTENCE, option=option_name(flag), verbs=listed(verbs, AND), verb=form.verb)
