"""What Python looks up: the catalogues, names of formulas and words, and the rules of thumb."""

import os
from typing import TYPE_CHECKING, TypedDict

from tonnage.api.arguments import check_text, model_of, public
from tonnage.architectures import Model
from tonnage.documents.catalogue import ModelRow
from tonnage.documents.explain import FormulaDocument, SourceDocument, SymbolDocument, WordDocument
from tonnage.documents.validation import RuleDocument
from tonnage.kernel.errors import InvalidInput
from tonnage.spec import Accelerator
from tonnage.spelling import no_option

if TYPE_CHECKING:
    from typing import Unpack


class RuleNumbers(TypedDict, total=False):
    """Numbers that rules of thumb are worked with, instead of those of the documents' own examples."""

    num_hidden_layers: int
    sequence_length: int
    micro_batch_size: int
    tokens: float
    num_accelerators: int
    utilization: float


@public
def list_models() -> list[ModelRow]:
    """Return the models of the catalogue: name, hub id, family, parameters, layers, context [tokens], release date.

    `tonnage.read(name)` has one in detail.

    >>> "llama-3.1-8b" in [model.name for model in tonnage.list_models()]
    True
    """
    from tonnage.verbs.models import listed

    return listed().models


@public
def list_accelerators() -> list[Accelerator]:
    """Return the accelerators of the catalogue: name, memory [bytes], dense_flops [FLOP/s], links [bytes/s], sources.

    >>> {accelerator.kind for accelerator in tonnage.list_accelerators()} >= {"gpu", "tpu"}
    True
    """
    from tonnage.verbs.accelerators import listed

    return listed().accelerators


@public
def explain(name: str) -> FormulaDocument | SymbolDocument | WordDocument | SourceDocument:
    """Return what a name means: a formula, a symbol of the formulas, a word of the answers, an option or a source.

    name: such as token_cache_bytes, N, goodput, power_share or Kwon2023; of a rule of thumb see `rule`

    The document's `kind` says which: a formula has `text`, `unit`, `meaning`, `symbols`, `source` and `references`; a
    symbol or word its `meaning` and `unit`; a source its title, authors and address. Raises UnknownName, with the
    nearest names.

    >>> tonnage.explain("token_cache_bytes").kind
    'formula'
    """
    from tonnage.verbs.explain import explain as explained
    from tonnage.verbs.explain import load_formulas

    load_formulas()
    return explained(check_text("name", name))


@public
def rule(
    name: str, model: str | os.PathLike[str] | Model | None = None, **numbers: "Unpack[RuleNumbers]"
) -> RuleDocument:
    """Return one rule of thumb, worked: what it gives, its source, its erratum, and the exact figure beside it.

    name: such as A6 or b4; `tonnage rules` lists them
    model: worked on this model instead of the document's own example
    sequence_length [tokens], micro_batch_size [sequences], num_hidden_layers, tokens, num_accelerators, utilization
        [share]: worked with these numbers

    `value` in `unit`; `exact`, a Term of a document, is what tonnage computes; `erratum` is None where the rule is
    right. Raises UnknownName, with the nearest names.

    >>> tonnage.rule("A6").unit
    'bytes'
    """
    from tonnage.question.subjects.rules import NUMBERS
    from tonnage.verbs import rules

    known = [option.name for option in NUMBERS]
    for number, value in numbers.items():
        if number not in known:
            raise no_option(number, ("model", *known))
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise InvalidInput("{name} takes a number above 0. Got {value}.", name=number, value=repr(value))
    if rules.is_part(check_text("name", name)):
        raise InvalidInput("a rule is named by its document and number, such as {name}1.", name=name.upper())
    found = rules.worked(rules.chosen([name]), None, dict(numbers))
    case = found[0]
    return case.rule.document(case.model if model is None else model_of(model), case.given)
