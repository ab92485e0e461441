"""Does a large language model fit a machine, in training or serving, how fast, at what price, and why.

- train, serve: one question, one Answer; maximum: the largest context, batch, users, ... that fits
- plan_training, plan_serving, place: the best plans and machines; frontier: speed against throughput
- compare: a table of models, machines and options; train_many, serve_many: a table of questions
- check, export: other tools' files and commands in and out
- diagnose, reconcile: why a run ran out of memory; the estimate beside what its logs say
- for_my_machine: which models run here; list_models, list_accelerators, read, cluster, accelerator: the catalogue
- options: everything that a function takes by name; explain, rule: what a name means, a rule of thumb

An option that is not given has its default, which `answer.question` names with its reason. Figures are in base units:
bytes, seconds, FLOP, tokens/s, USD. Errors are TonnageError: InvalidInput, UnknownName, InvalidPlan, MissingDatum.

>>> import tonnage
>>> answer = tonnage.train("llama-3.1-8b", on="8xH100-SXM-80GB", sequence_length=8192, recompute="full")
>>> answer.fits
True
"""

from typing import TYPE_CHECKING, Any

from tonnage.kernel.message import Message

if TYPE_CHECKING:  # for type checkers: the names are imported when they are first used
    from tonnage.api.answer import Answer
    from tonnage.api.answers import (
        Frontier,
        Maximum,
        ModelsForMachine,
        for_my_machine,
        frontier,
        maximum,
        read,
        serve,
        train,
    )
    from tonnage.api.comparing import Comparison, compare
    from tonnage.api.following import SearchProgress
    from tonnage.api.interchange import check, export
    from tonnage.api.listing import options
    from tonnage.api.logs import Diagnosis, Reconciliation, diagnose, reconcile
    from tonnage.api.lookups import explain, list_accelerators, list_models, rule
    from tonnage.api.many import serve_many, train_many
    from tonnage.api.planning import Placed, ServingPlans, TrainingPlans, place, plan_serving, plan_training
    from tonnage.architectures import Model
    from tonnage.catalogue import accelerator, cluster
    from tonnage.kernel.errors import InvalidInput, InvalidPlan, MissingDatum, TonnageError, UnknownName
    from tonnage.kernel.term import Term
    from tonnage.question.subjects.load import LoadOptions
    from tonnage.question.subjects.money import BillOptions
    from tonnage.question.subjects.plan import SearchOptions, ServingPlanOptions
    from tonnage.question.subjects.run import RunOptions
    from tonnage.question.subjects.serving import ServingOptions
    from tonnage.question.subjects.training import TrainingOptions
    from tonnage.spec import Cluster

from tonnage.kernel.version import __version__ as __version__

_WHERE = {
    "Answer": "tonnage.api.answer",
    "BillOptions": "tonnage.question.subjects.money",
    "Cluster": "tonnage.spec",
    "Comparison": "tonnage.api.comparing",
    "Diagnosis": "tonnage.api.logs",
    "Frontier": "tonnage.api.answers",
    "InvalidInput": "tonnage.kernel.errors",
    "InvalidPlan": "tonnage.kernel.errors",
    "LoadOptions": "tonnage.question.subjects.load",
    "Maximum": "tonnage.api.answers",
    "MissingDatum": "tonnage.kernel.errors",
    "Model": "tonnage.architectures",
    "ModelsForMachine": "tonnage.api.answers",
    "Placed": "tonnage.api.planning",
    "Reconciliation": "tonnage.api.logs",
    "RunOptions": "tonnage.question.subjects.run",
    "SearchOptions": "tonnage.question.subjects.plan",
    "SearchProgress": "tonnage.api.following",
    "ServingOptions": "tonnage.question.subjects.serving",
    "ServingPlanOptions": "tonnage.question.subjects.plan",
    "ServingPlans": "tonnage.api.planning",
    "Term": "tonnage.kernel.term",
    "TonnageError": "tonnage.kernel.errors",
    "TrainingOptions": "tonnage.question.subjects.training",
    "TrainingPlans": "tonnage.api.planning",
    "UnknownName": "tonnage.kernel.errors",
    "accelerator": "tonnage.catalogue",
    "check": "tonnage.api.interchange",
    "cluster": "tonnage.catalogue",
    "compare": "tonnage.api.comparing",
    "diagnose": "tonnage.api.logs",
    "explain": "tonnage.api.lookups",
    "export": "tonnage.api.interchange",
    "for_my_machine": "tonnage.api.answers",
    "frontier": "tonnage.api.answers",
    "list_accelerators": "tonnage.api.lookups",
    "list_models": "tonnage.api.lookups",
    "maximum": "tonnage.api.answers",
    "options": "tonnage.api.listing",
    "place": "tonnage.api.planning",
    "plan_serving": "tonnage.api.planning",
    "plan_training": "tonnage.api.planning",
    "read": "tonnage.api.answers",
    "reconcile": "tonnage.api.logs",
    "rule": "tonnage.api.lookups",
    "serve": "tonnage.api.answers",
    "serve_many": "tonnage.api.many",
    "train": "tonnage.api.answers",
    "train_many": "tonnage.api.many",
}
__all__ = [
    "Answer",
    "BillOptions",
    "Cluster",
    "Comparison",
    "Diagnosis",
    "Frontier",
    "InvalidInput",
    "InvalidPlan",
    "LoadOptions",
    "Maximum",
    "MissingDatum",
    "Model",
    "ModelsForMachine",
    "Placed",
    "Reconciliation",
    "RunOptions",
    "SearchOptions",
    "SearchProgress",
    "ServingOptions",
    "ServingPlanOptions",
    "ServingPlans",
    "Term",
    "TonnageError",
    "TrainingOptions",
    "TrainingPlans",
    "UnknownName",
    "accelerator",
    "check",
    "cluster",
    "compare",
    "diagnose",
    "explain",
    "export",
    "for_my_machine",
    "frontier",
    "list_accelerators",
    "list_models",
    "maximum",
    "options",
    "place",
    "plan_serving",
    "plan_training",
    "read",
    "reconcile",
    "rule",
    "serve",
    "serve_many",
    "train",
    "train_many",
]


class _NoAttribute(AttributeError):
    """A name that there is not. The nearest is looked for when the error is shown: imports of submodules ask first
    whether the package has such a name.
    """

    def __str__(self) -> str:
        from tonnage.kernel.message import joined
        from tonnage.kernel.registry import nearest

        name = str(self.name)
        near = {"max": ["maximum"], "plan": ["plan_training", "plan_serving"]}.get(name) or nearest(name, __all__)
        if not near:
            return Message("module 'tonnage' has no attribute {name!r}", name=name)
        return Message(
            "module 'tonnage' has no attribute {name!r}. Did you mean {near}?",
            name=name,
            near=joined(" or ", map(repr, near)),
        )


if not TYPE_CHECKING:  # type checkers know the names, and that there are no others

    def __getattr__(name: str) -> Any:
        """Public names are imported when they are first used: `import tonnage` costs nothing."""
        if name not in _WHERE:
            raise _NoAttribute(name=name)
        from importlib import import_module

        found = globals()[name] = getattr(import_module(_WHERE[name]), name)
        return found


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
