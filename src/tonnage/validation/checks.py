"""Whether a row asks and measures what tonnage has: errors name the field, the value and the nearest that is known."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message
from tonnage.kernel.registry import nearest
from tonnage.validation.quantities import QUANTITIES, VERBS

# Inputs of rows of documents and of speech, beside those of a load: documents in a request, seconds of sound, sequences
# that a decoder of speech keeps for each window.
ENCODED = ("documents_per_request", "audio_seconds", "beams")


def check_measured(verb: str, name: str, unit: str, where: str) -> None:
    """InvalidInput for a quantity or a unit that this verb does not have."""
    known = [name for name, quantity in QUANTITIES.items() if quantity.verb == verb]
    if name not in known:
        raise _unknown(f"{where}.quantity", name, known, verb)
    units = QUANTITIES[name].units
    if unit not in units:
        raise _unknown(f"{where}.unit", unit, list(units), name)


def check_question(verb: str, question: Mapping[str, Any], where: str) -> None:
    """InvalidInput for a verb, or an input of a question, that does not exist."""
    if verb not in VERBS:
        raise _unknown(Message("{where}: verb", where=where), verb, VERBS, "a row")
    known = inputs_of(verb)
    for name in question:
        if name not in known:
            raise _unknown(Message("{where}: question", where=where), str(name), known, verb)


@cache
def inputs_of(verb: str) -> tuple[str, ...]:
    """Names of the inputs that a question of this verb takes."""
    if verb == "train":
        from tonnage.estimate.plan.training_options import TrainingOptions
        from tonnage.question.subjects.money import BillOptions
        from tonnage.question.subjects.run import RunOptions

        of_run = (*RunOptions.__struct_fields__, *BillOptions.__struct_fields__)
        return ("model", "on", *TrainingOptions.__struct_fields__, *of_run, "unchecked")
    if verb == "serve":
        from tonnage.spec import Load, ServingPlan

        fields = [name for name in ServingPlan.field_names() if name not in ("media", "denoising")]
        contents: tuple[str, ...] = ("images", "image_size", "video_seconds", "video_fps", "audio_seconds")
        contents += ("denoising_steps", "block_length", "denoising_cache")
        return tuple(dict.fromkeys(("model", "on", *fields, *contents, *Load.__struct_fields__, "rounds", *ENCODED)))
    if verb == "models":
        return ("model",)
    return ("on", "collective", "payload_bytes", "algorithm", "link", "between_nodes", "ways")


def _unknown(where: str, name: str, known: Iterable[str], of: str) -> InvalidInput:
    near = nearest(name, known) if name else []
    hint = (
        Message("Did you mean {near!r}?", near=near[0])
        if near
        else f"Known: {', '.join(name_known or 'none' for name_known in known)}."
    )
    return InvalidInput("{where} {name} is not known for {of}. {hint}", where=where, name=shown(name), of=of, hint=hint)
