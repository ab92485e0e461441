"""Which verbs have an option, for errors about an option that another verb has."""

from collections.abc import Iterable
from functools import cache

from tonnage.kernel.errors import InvalidInput, UnknownName
from tonnage.kernel.message import AND, Message, joined, listed, option_name
from tonnage.question.form import CHOOSING, Form
from tonnage.question.verbs import FORMS, form_of, forms_of
from tonnage.spelling import instead_of, meant, no_option

FIRST_VERBS = ("train", "serve")  # plan, max and compare have the options of these two
FORM_WORDS = ("--train", "--serve")  # of a form of a verb that is written with one word more

SENTENCE = "{option} is an option of {verbs}, not of {verb}."


@cache
def _forms_by_option() -> dict[str, tuple[Form, ...]]:
    """Every name of an option, with underscores -> the forms of verbs that have it."""
    owners: dict[str, list[Form]] = {}
    for verb in FORMS:
        for form in forms_of(verb):
            for name in {_underscored(flag) for flag in form.flags}:
                owners.setdefault(name, []).append(form)
    return {name: tuple(forms) for name, forms in owners.items()}


def verbs_with_option(name: str, form: Form) -> tuple[str, ...]:
    """The verbs that have an option called so, which this form has not: other forms of the same verb first, then train
    and serve, else all.

    >>> from tonnage.question.verbs import form_of
    >>> verbs_with_option("zero", form_of("serve")), verbs_with_option("--ttft", form_of("compare", "train"))
    (('train',), ('compare --serve', 'serve'))
    """
    forms = _forms_by_option().get(_underscored(name), ())
    if form in forms:
        return ()
    same_verb = tuple(
        f"{other.verb} {other.words[0]}"
        for other in forms
        if other.verb == form.verb
        and other.words[:1] != form.words[:1]
        and other.words[:1]
        and other.words[0] in FORM_WORDS
    )
    others = tuple(dict.fromkeys(other.verb for other in forms if other.verb != form.verb))
    return (*same_verb, *(tuple(verb for verb in others if verb in FIRST_VERBS) or others))


def other_verb_sentence(name: str, form: Form) -> str:
    """The sentence that names the verbs which have an option that this form has not; "" where none has it, or where
    another tool of the form's own subject calls an option so.
    """
    if _underscored(name) in CHOOSING:
        return ""
    try:
        theirs = instead_of(f"--{_underscored(name).replace('_', '-')}", form.reads_as)
    except InvalidInput:
        return ""
    verbs = () if theirs else verbs_with_option(name, form)
    if not verbs:
        return ""
    return Message(
        SENTENCE,
        option=option_name(name),
        verbs=listed(verbs, AND),
        verb=" ".join((form.verb, *(word for word in form.words[:1] if word in FORM_WORDS))),
    )


def unknown_option(name: str, known: Iterable[str], verb: str) -> UnknownName:
    """The error for an argument of a Python function that is none of its options, which are those of train or serve."""
    sentence = other_verb_sentence(name, form_of(verb))
    if not sentence:
        return no_option(name, known)
    near = meant(name, known, alike=False)
    hints = [Message("Did you mean {near}?", near=joined(" or ", map(repr, near)))] if near else []
    return UnknownName(joined(" ", (sentence, *hints)))


def _underscored(name: str) -> str:
    return name.lstrip("-").replace("-", "_")
