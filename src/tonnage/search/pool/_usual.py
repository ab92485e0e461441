"""What every served model of a pool is asked with: requests as long as `tonnage plan --serve` takes them, and a
model that makes tokens.
"""

from msgspec.structs import replace

from tonnage.architectures import Model, needs_family
from tonnage.documents.question import Entry
from tonnage.estimate.inputs import Question
from tonnage.estimate.load.options import USUAL, USUAL_SOURCE, LoadOptions, lengths
from tonnage.estimate.serving.options import ServingOptions
from tonnage.kernel.errors import MissingDatum
from tonnage.search.pool.serving import check_load

NAMES = ("context", "input_tokens", "output_tokens")


def usual(
    model: Model, options: ServingOptions, load: LoadOptions
) -> tuple[ServingOptions, LoadOptions, dict[str, Entry]]:
    """Both with the lengths that nobody said, and these as a question has them."""
    check_load(load)
    if model.family == "tensors":
        raise needs_family(model, "a placement")
    if not any(branch.kind == "decoder" for branch in model.branches):
        raise MissingDatum(
            "{model} makes no tokens: there are no times of an answer, and no placement of it.", model=model.name
        )
    question = Question()
    nothing = all(each is None for each in (load.input_tokens, load.output_tokens, options.context))
    if nothing and (model.context or 2 * USUAL) >= 2 * USUAL:
        load = replace(load, input_tokens=USUAL, output_tokens=USUAL)
    said = lengths(model, options, load)
    if said.context is not None:
        options = replace(options, context=said.context)
    if options.context is not None:
        question.put("context", options.context, "default" if said.context else "given", said.why)
    for name in ("input_tokens", "output_tokens"):
        if (value := getattr(said, name)) is not None:
            is_said = getattr(load, name) is not None and not nothing
            question.put(name, value, "given" if is_said else "default", "" if is_said else USUAL_SOURCE)
    if said.input_tokens is not None:
        load = replace(load, input_tokens=said.input_tokens, output_tokens=said.output_tokens)
    return options, load, question.entries
