"""What stands alone in `tonnage compare A B`: models, which are one list, and machines, which are --on."""

from collections.abc import Sequence

from tonnage.cli.common.unquoted import positional_places
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message
from tonnage.question.subjects.model import ON

WRITTEN = (".csv", ".html", ".md", ".parquet")  # files that an option without a value writes, or that has lost its own
TRUTH = frozenset({"true", "false", "on", "off", "yes", "no", "own"})
VERBS = ("serve", "train")


def with_lists(words: Sequence[str]) -> list[str]:
    """The words with the models in one, and machines that stand alone behind --on."""
    from tonnage.question.verbs import form_of

    verb = "train" if "--train" in words else "serve"
    alone = list(positional_places(words, form_of("compare", verb).flags))
    if alone and words[alone[0]] in VERBS and (len(alone) > 1 or f"--{words[alone[0]]}" not in words):
        first = alone[0]
        return with_lists([*words[:first], f"--{words[first]}", *words[first + 1 :]])
    names = [words[at] for at in alone]
    if not names or (len(names) == 1 and not _is_machine(names[0])) or not all(map(_is_name, names[1:])):
        return list(words)
    machines = [name for name in names if _is_machine(name) and not _is_model(name)]
    models = [name for name in names if name not in machines]
    if not models:
        raise InvalidInput(
            Message(
                "compare needs a model beside the machines: write tonnage compare MODEL {--on} {machines}.",
                machines=",".join(machines),
            )
        )
    rest = [word for at, word in enumerate(words) if at not in alone]
    if machines and ON.flag in rest[:-1]:  # `--on l4 t4`: the first of them stands behind the option
        at = rest.index(ON.flag)
        machines, rest = [rest[at + 1], *machines], [*rest[:at], *rest[at + 2 :]]
    on = [ON.flag, ",".join(machines)] if machines else []
    return [",".join(models), *on, *rest]


def _is_machine(name: str) -> bool:
    from tonnage.catalogue.clusters import names_cluster

    return all(names_cluster(part.strip()) for part in name.split(","))


def _is_name(name: str) -> bool:
    """Whether a further word may be a name, not the value of a switch that takes none."""
    words = {part.strip().lower() for part in name.split(",")}
    return not words <= TRUTH and "=" not in name and not name.lower().endswith(WRITTEN)


def _is_model(name: str) -> bool:
    from tonnage.catalogue.models import find

    return any(find(part.strip()) for part in name.split(","))
