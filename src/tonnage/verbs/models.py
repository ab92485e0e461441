"""`models`: the catalogue of models, and one model in detail."""

from typing import Any

from msgspec import structs

from tonnage import catalogue
from tonnage.documents.catalogue import BranchDocument, ModelDocument, ModelRow, ModelsDocument, PublishedDocument
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.question.form import Given
from tonnage.question.looked_up import no_model, read_model
from tonnage.verbs.answered import Answered

KV_TOKENS = 131_072


def describe(model: Any) -> tuple[ModelDocument, dict[str, Term]]:
    """The document about one model, and the Terms in it."""
    from tonnage.estimate.layers import layers as count
    from tonnage.estimate.serving.memory import serving_memory
    from tonnage.spec import ServingPlan

    terms = {
        "parameters": count.parameters(model),
        "active_parameters": count.active_parameters(model),
        "embedding_parameters": count.embedding_parameters(model),
        "non_embedding_parameters": count.non_embedding_parameters(model),
    }
    drafts = count.draft_parameters(model)
    if drafts.value:
        terms["draft_parameters"] = drafts
    if model.family != "tensors":
        context = min(model.context or KV_TOKENS, KV_TOKENS)
        rank = serving_memory(model, ServingPlan(context=context, engine="transformers")).fullest
        terms["kv_bytes_per_token"] = rank.kept_per_token.named("cache of one more token")
        terms["kv_bytes_per_request"] = rank.kept.named(
            Message("cache of one request of {context} tokens", context=context)
        )
    figures: dict[str, Any] = {name: term.document for name, term in terms.items()}
    document = ModelDocument(
        name=model.name,
        family=model.family,
        architecture=model.architecture,
        hidden_size=model.hidden_size,
        num_layers=model.num_layers,
        vocab_size=model.vocab_size,
        context=model.context,
        dtype=model.dtype,
        tied=model.tied,
        source=model.source,
        **figures,
        branches=[
            BranchDocument(name=branch.name, kind=branch.kind, layers=branch.num_layers) for branch in model.branches
        ],
        **_entry(model.name),
        warnings=list(model.notes),
    )
    return document, terms


def _entry(name: str) -> dict[str, Any]:
    """What the catalogue has beside the config: published counts and sources."""
    from tonnage.catalogue.models import find

    if find(name) is None:
        return {}
    entry = catalogue.model_file(name)
    return {
        "hub": entry.hub,
        "released": entry.released,
        "license": entry.license,
        "aliases": list(entry.aliases),
        "published": [PublishedDocument(**structs.asdict(figure)) for figure in entry.published],
        "sources": dict(entry.sources),
    }


def listed() -> ModelsDocument:
    """The catalogue of models."""
    from tonnage.architectures import build
    from tonnage.estimate.plan.rule import expert_counts

    rows: list[ModelRow] = []
    for name in catalogue.model_names():
        entry = catalogue.model_file(name)
        model = build(entry.config, name, entry.name)
        rows.append(
            ModelRow(
                name=name,
                hub=entry.hub,
                family=model.family,
                parameters=model.num_parameters(),
                active_parameters=model.num_active_parameters(),
                layers=model.num_layers,
                experts=max(expert_counts(model), default=0),
                context=model.context,
                released=entry.released,
            )
        )
    return ModelsDocument(models=rows)


def answer(arguments: Given) -> Answered:
    """One model in detail, or the catalogue where none is named."""
    return Answered(listed() if no_model(arguments) else describe(read_model(arguments))[0])
