"""Reconciles config and tensors: where they disagree, the tensors win, and a note states both figures."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from tonnage.architectures import Model, TensorSummary, build
from tonnage.kernel.errors import InvalidInput, MissingDatum, TonnageError
from tonnage.kernel.message import Message, listed
from tonnage.models import overrides as fields_of
from tonnage.models.contents import Contents
from tonnage.ops import Head

if TYPE_CHECKING:  # imported when there are tensors: a name of the catalogue needs none of it
    from tonnage.models.tensors import Facts, Item


def assemble(contents: Contents, overrides: Mapping[str, Any]) -> Model:
    """The Model of the contents, with the user's own fields in place of the config's."""
    if not overrides:
        return _with_origin(_read(contents), contents)
    fields, notes = fields_of.apply(contents.fields or {}, overrides)
    try:
        before = _read(contents)
    except TonnageError:  # the overrides may give what the config lacks
        return _with_origin(_completed(contents, fields, notes, overrides), contents)
    if before.family == "tensors":
        completed = _completed(contents, fields, notes, overrides)
        if completed.family == "tensors":
            raise InvalidInput(
                "{where}: its layers are known from its tensors alone, so {overrides} cannot be changed.",
                where=contents.where,
                overrides=listed(overrides),
            )
        return _with_origin(completed, contents)
    fields, notes = fields_of.apply(before.config, overrides)
    return _with_origin(_overridden(before, fields, notes, overrides, contents), contents)


def _completed(contents: Contents, fields: dict[str, Any], notes: list[str], overrides: Mapping[str, Any]) -> Model:
    """The model that takes missing fields from the user; the family must use each of them."""
    model = _read(replace(contents, fields=fields, notes=[*contents.notes, *notes]))
    if model.family != "tensors":
        build(fields, contents.name, contents.where, fields_of.paths(contents.fields or {}, overrides))
    return model


def _with_origin(model: Model, contents: Contents) -> Model:
    return replace(model, source=contents.source, place=contents.place)


def _overridden(
    before: Model, fields: dict[str, Any], notes: list[str], overrides: Mapping[str, Any], contents: Contents
) -> Model:
    """The changed model; it keeps the stored tensors only while it has as many parameters."""
    changed = build(fields, contents.name, contents.where, fields_of.paths(before.config, overrides))
    all_notes = (
        *before.notes,
        Message("Given instead of what the config says: {overrides}.", overrides=listed(sorted(overrides))),
        *notes,
    )
    if before.tensors is None:
        return replace(changed, notes=all_notes)
    if all(branch.kind != "draft" for branch in before.branches):  # named in the config, and not stored
        changed = replace(changed, branches=tuple(branch for branch in changed.branches if branch.kind != "draft"))
    if changed.num_parameters(True) == before.num_parameters(True):
        return replace(changed, notes=all_notes, tensors=before.tensors)
    return replace(
        changed, notes=(*all_notes, "The stored tensors are of the unchanged model, so they are left aside.")
    )


def _read(contents: Contents) -> Model:
    if contents.fields is None:
        return _of_tensors(contents, "there is no config.json")
    try:
        model = build(contents.fields, contents.name, contents.where)
    except TonnageError as error:
        # A GGUF file's fields are our translation: where no family takes them, the tensors still tell the weights.
        if contents.tensors is None or not (isinstance(error, MissingDatum) or contents.form == "gguf"):
            raise
        return _of_tensors(contents, str(error).split(". ")[0])
    if contents.tensors is None:
        return replace(model, notes=(*model.notes, *contents.notes))
    return _reconciled(model, contents)


def _of_tensors(contents: Contents, why: str) -> Model:
    from tonnage.models.bare import model_of_tensors

    return model_of_tensors(contents, contents.fields or {}, why)


def _reconciled(model: Model, contents: Contents) -> Model:
    from tonnage.models.tensors import describe, observe, packed_bits, summarize

    items = describe(contents.tensors or [], packed_bits(model.config))
    facts = observe(items)
    disagreement = _far_apart(model, items, facts)
    if disagreement and contents.form == "gguf":  # our translation of its metadata is at fault
        return _of_tensors(contents, disagreement)
    if disagreement:
        raise InvalidInput(
            "{where}: {apart}, so they are of two models. Give the config that belongs to the files, "
            "or say what differs ({@num_hidden_layers} and so on).",
            where=contents.where,
            apart=disagreement,
        )
    model, notes = _corrected(model, facts, contents)
    summary = summarize(items, contents.form, contents.files, facts.model_layers or None)
    model, more = _drafts(model, summary)
    notes += more + _heads(model, facts) + _totals(model, summary, facts)
    model, more = _dtype(model, summary)
    return replace(model, tensors=summary, notes=(*model.notes, *contents.notes, *notes, *more))


def _far_apart(model: Model, items: "Sequence[Item]", facts: "Facts") -> str:
    """A text with both counts, where no reading of the tensors brings them within a factor of two; else empty.

    Heads, windows and rotary sizes show in no tensor's shape: between models that far apart they would be a mix of
    both.
    """
    from tonnage.models.tensors import bounds

    counted, stored = model.num_parameters(), _expected(model, facts)
    kinds = {branch.kind for branch in model.branches}
    aside = sum(item.parameters for item in items if item.part in ("vision", "audio") and item.part not in kinds)
    fewest, most = bounds(items)
    if stored + most < counted / 2 or stored - aside - fewest > 2 * counted:
        return Message(
            "the config gives {counted:,} parameters and the tensors hold {stored:,}", counted=counted, stored=stored
        )
    return ""


def _corrected(model: Model, facts: "Facts", contents: Contents) -> tuple[Model, list[str]]:
    """Replace fields of the config that the tensors contradict, where that brings the count closer to the stored
    one.
    """
    notes: list[str] = []
    for key, value, text in _contradictions(model, facts, contents.fields or {}):
        try:
            other = build(fields_of.put(model.config, key, value), contents.name, contents.where)
        except TonnageError:
            other = model
        believed = _distance(other, facts) < _distance(model, facts)
        model = other if believed else model
        notes.append(Message("{text} The tensors are believed.", text=text) if believed else text)
    return model, notes


def _contradictions(model: Model, facts: "Facts", fields: Mapping[str, Any]) -> list[tuple[str, Any, str]]:
    """(field, value of the tensors, what disagrees)."""
    contradictions: list[tuple[str, Any, str]] = []
    layers = fields_of.get(fields, "num_hidden_layers")
    stored = facts.model_layers
    if stored and isinstance(layers, int) and stored != layers and not fields.get("is_encoder_decoder"):
        contradictions.append(
            (
                "num_hidden_layers",
                stored,
                Message("The config says {layers} layers, the tensors have {stored}.", layers=layers, stored=stored),
            )
        )
    width = fields_of.get(fields, "hidden_size")
    if facts.width and isinstance(width, int) and facts.width != width:
        contradictions.append(
            (
                "hidden_size",
                facts.width,
                Message(
                    "The config says {@hidden_size} {width}, the tensors have {width2}.",
                    width=width,
                    width2=facts.width,
                ),
            )
        )
    rows = fields_of.get(fields, "vocab_size")
    if facts.rows and isinstance(rows, int) and facts.rows != rows:
        contradictions.append(
            (
                "vocab_size",
                facts.rows,
                Message(
                    "The config says {@vocab_size} {rows}, the embedding has {rows2} rows.", rows=rows, rows2=facts.rows
                ),
            )
        )
    if facts.rows and not facts.head and not model.tied and _has_head(model):
        contradictions.append(
            ("tie_word_embeddings", True, "The config does not tie the head to the embedding, and no head is stored.")
        )
    return contradictions


def _has_head(model: Model) -> bool:
    return any(isinstance(op, Head) for op in model.decoder.after)


def _distance(model: Model, facts: "Facts") -> int:
    """Difference of the family's count from the stored one, without drafts and a second copy of a tied head."""
    return abs(model.num_parameters() - _expected(model, facts))


def _expected(model: Model, facts: "Facts") -> int:
    """The stored parameters that transformers would load into this model."""
    drafts = facts.drafts_behind(model.num_layers)
    return facts.parameters - drafts - (facts.head_parameters if model.tied and facts.head else 0)


def _drafts(model: Model, summary: TensorSummary) -> tuple[Model, list[str]]:
    """The model without multi-token-prediction layers that the config names and no file stores."""
    counted = model.num_parameters(True) - model.num_parameters()
    stored = summary.parameters_by_part.get("draft", 0)
    if counted and not stored:
        branches = tuple(branch for branch in model.branches if branch.kind != "draft")
        return replace(model, branches=branches), [
            "The config names multi-token-prediction layers, and none are stored; they are left out."
        ]
    if counted != stored:
        return model, [
            (
                Message(
                    "The multi-token-prediction layers hold {stored:,} parameters, and the family {family} "
                    "counts {counted:,}.",
                    stored=stored,
                    family=model.family,
                    counted=counted,
                )
            )
        ]
    return model, []


def _heads(model: Model, facts: "Facts") -> list[str]:
    if model.tied and facts.head and facts.head_parameters:
        return [
            (
                Message(
                    "The head is tied to the embedding and stored all the same: {head_parameters:,} "
                    "parameters that loading drops.",
                    head_parameters=facts.head_parameters,
                )
            )
        ]
    return []


def _totals(model: Model, summary: TensorSummary, facts: "Facts") -> list[str]:
    counted, stored = model.num_parameters(), _expected(model, facts)
    if counted == stored:
        return []
    towers = ", ".join(
        f"{part}: {count:,}"
        for part, count in sorted(summary.parameters_by_part.items())
        if part in ("vision", "audio")
    )
    of_it = Message(" (of it {towers})", towers=towers) if towers else ""
    return [
        (
            Message(
                "The files hold {stored:,} parameters{of_it}, and the family {family} counts {counted:,}: "
                "{stored2:+,}.",
                stored=stored,
                of_it=of_it,
                family=model.family,
                counted=counted,
                stored2=stored - counted,
            )
        )
    ]


def _dtype(model: Model, summary: TensorSummary) -> tuple[Model, list[str]]:
    """The model with the plain float type that most parameters are stored in."""
    from tonnage.models.bare import dominant_float

    by_type = summary.parameters_by_dtype
    stored = max(by_type, key=by_type.__getitem__, default="")
    dtype = dominant_float(summary)
    if dtype is None:
        odd = model.quantization is None and stored and summary.format == "safetensors"
        return model, [
            Message("Most weights are stored as {stored}, and the config names no quantization.", stored=stored)
        ] if odd else []
    if model.quantization is not None or model.dtype == dtype:
        return model, []
    notes: list[str] = (
        [Message("The config says dtype {dtype}, most weights are stored as {found}.", dtype=model.dtype, found=dtype)]
        if model.dtype
        else []
    )
    return replace(model, dtype=dtype), notes
