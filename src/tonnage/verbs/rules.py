"""`rules`: the rules of thumb of the source documents."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tonnage.documents.validation import RulesDocument
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.registry import unknown
from tonnage.question.form import Given, values
from tonnage.question.subjects.rules import NUMBERS
from tonnage.verbs.answered import Answered

# Words of the documents and of the people who look for them.
SAME_WORDS = {
    "keys and values": "kv cache",
    "accelerator": "gpu",
    "quantis": "quantiz",
    "16 bit": "fp16 bf16",
    "compute": "flops",
}


class Case(NamedTuple):
    """A rule and what it is worked on."""

    rule: Any
    model: Any
    given: Mapping[str, Any]


def worked(rules_asked: list[Any], about: str | Mapping[str, Any] | None, inputs: dict[str, Any]) -> list[Case]:
    """Layers that are given are those of the model that was named, or of the model of a rule's own example. `about`
    may be the content of a config.json.
    """
    from tonnage.models import read

    layers = inputs.pop("num_hidden_layers", None)
    changes = {} if layers is None else {"num_hidden_layers": layers}
    if about is not None:
        model = read(about, overrides=changes)
        return [Case(rule, model, inputs) for rule in rules_asked]
    models: dict[str, Any] = {}
    for name in {rule.example.name_of_model for rule in rules_asked} if changes else ():
        models[name] = read(name, overrides=changes)
    return [Case(rule, models.get(rule.example.name_of_model), inputs) for rule in rules_asked]


def is_rule(name: str) -> bool:
    """Whether a rule is called so, in whatever case."""
    from tonnage import rules

    rules.load()
    return _name(name) in rules.RULES


def chosen(names: list[str]) -> list[Any]:
    """The rules of these names and parts, each once, in the order in which they were asked for; all without names."""
    from tonnage import rules

    rules.load()
    rules_by_name: dict[str, Any] = {} if names else dict(rules.RULES)
    for name in names:
        if is_part(name):
            rules_by_name |= {key: rule for key, rule in rules.RULES.items() if key.startswith(name.upper())}
        elif len(name) == 1:
            raise unknown("part of the rules", name, rules.DOCUMENTS.upper())
        else:
            if _name(name) not in rules.RULES:
                raise unknown("rule", name, rules.RULES)
            rules_by_name[_name(name)] = rules.RULES[_name(name)]
    return list(rules_by_name.values())


def is_part(name: str) -> bool:
    from tonnage import rules

    return len(name) == 1 and name.lower() in rules.DOCUMENTS


def _name(text: str) -> str:
    """ "a6" and "b1B" are A6 and B1b."""
    return text[:1].upper() + text[1:].lower()


def alike(rules_asked: list[Any], words: str) -> list[Any]:
    """The rules whose texts have all of these words, else any of them."""
    wanted = words.lower().replace("-", " ").split()
    if not wanted:
        raise InvalidInput("{--like} needs words to look for. Got {words}.", words=shown(words))
    texts = {rule.name: _text(rule) for rule in rules_asked}
    for needed in (all, any):
        matching = [rule for rule in rules_asked if needed(word in texts[rule.name] for word in wanted)]
        if matching:
            return matching
    raise InvalidInput("no rule speaks of {words}. `tonnage rules` lists them all.", words=shown(words))


def _text(rule: Any) -> str:
    """All that a rule says, with the words that people use for the same things."""
    worked = rule.worked()
    formula = worked.value.formula
    parts = (
        rule.name,
        rule.title,
        rule.printed,
        rule.erratum or "",
        rule.note,
        worked.value.name,
        *worked.values,
        formula.name,
        formula.summary,
        formula.assumes,
        formula.source,
    )
    text = " ".join(parts).lower().replace("-", " ")
    return " ".join([text, *(same for word, same in SAME_WORDS.items() if word in text)])


def asked(arguments: Given) -> list[Case]:
    """The rules that are asked for, each with what it is worked on."""
    names = names_of(arguments)
    rules_asked = chosen(names)
    if arguments.like is not None:
        rules_asked = alike(rules_asked, arguments.like)
    return worked(rules_asked, arguments.model, dict(values(arguments, NUMBERS)))


def names_of(arguments: Given) -> list[str]:
    """The names of rules and parts, which commas may part."""
    return [name.strip() for text in arguments.names for name in text.strip(", ").split(",")]


def document(cases: Iterable[Case]) -> RulesDocument:
    return RulesDocument(rules=[case.rule.document(case.model, case.given) for case in cases])


def answer(arguments: Given) -> Answered:
    """The rules of thumb, each worked on what it is asked of."""
    return Answered(document(asked(arguments)))
