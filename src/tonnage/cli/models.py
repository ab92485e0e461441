"""tonnage models: the catalogue of models, and one model in detail."""

import argparse
from typing import Any

from msgspec import structs

from tonnage import catalogue
from tonnage.cli.common.parser import add_form, add_output
from tonnage.cli.common.print import print_json, print_lines
from tonnage.documents.catalogue import BranchDocument, ModelDocument, ModelRow, ModelsDocument, PublishedDocument
from tonnage.documents.document import builtins
from tonnage.kernel.message import Message
from tonnage.kernel.term import Term
from tonnage.kernel.units import human
from tonnage.language import quantities, say, worded
from tonnage.language.columns import left
from tonnage.question.given import Given
from tonnage.question.looked_up import no_model, read_model
from tonnage.question.verbs import form_of

HELP = "the catalogue of models; one model in detail: its parameters part by part, its cache, its sources"
KV_TOKENS = 131_072


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_form(parser, form_of("models"))
    add_output(parser)


def run(arguments: Given) -> int:
    if no_model(arguments):
        return _list(arguments.json)
    model = read_model(arguments)
    document, terms = describe(model)
    if arguments.json:
        print_json(document)
    else:
        print_lines(_lines(builtins(document), terms, arguments.formulas))
    return 0


def _list(as_json: bool) -> int:
    from tonnage.architectures import build
    from tonnage.estimate.plan.checks import expert_counts

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
    if as_json:
        print_json(ModelsDocument(models=rows))
        return 0
    from tonnage.render.text import table_lines

    cells = [
        (
            row.name,
            human(row.parameters, "parameters").removesuffix(" parameters"),
            human(row.active_parameters, "parameters").removesuffix(" parameters"),
            str(row.layers),
            str(row.context or "-"),
            row.family,
            row.hub,
        )
        for row in rows
    ]
    print_lines(
        [
            quantities.counted(len(rows), "models"),
            "",
            *table_lines(cells, ("name", "parameters", "active", "layers", "context", "family", "hub")),
        ]
    )
    return 0


def describe(model: Any) -> tuple[ModelDocument, dict[str, Term]]:
    """The document about one model, and the Terms in it."""
    from tonnage.estimate.layers import parameters as count
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
        "published": [PublishedDocument(**structs.asdict(each)) for each in entry.published],
        "sources": dict(entry.sources),
    }


def _lines(document: dict[str, Any], terms: dict[str, Any], formulas: bool) -> list[str]:
    from tonnage.render.text import tree_lines

    lines = [f"{document['name']}{say(': ')}{quantities.human(terms['parameters'].value, 'parameters')}"]
    for key in (
        "architecture",
        "family",
        "hub",
        "source",
        "released",
        "license",
        "hidden_size",
        "num_layers",
        "vocab_size",
        "context",
        "dtype",
    ):
        if document.get(key) not in (None, ""):
            lines.append(f"  {left(say(key), 14)} {worded(str(document[key])) if key == 'source' else document[key]}")
    for term in terms.values():
        lines += ["", *tree_lines(term, depth=99 if formulas else 1, formulas=formulas)]
    for published in document.get("published", []):
        lines.append(
            say(
                "published: {parameters} ({counts}), {source}, {as_of}",
                parameters=published["parameters"],
                counts=worded(published["counts"]),
                source=published["source"],
                as_of=published["as_of"],
            )
        )
    lines += [say("note: {what}", what=worded(warning)) for warning in document["warnings"]]
    return lines
