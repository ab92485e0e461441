"""tonnage: does a large language model fit a machine, where does its memory go, what would make it fit, and why.

>>> import tonnage
>>> answer = tonnage.train("llama-3.1-8b", on="8xH100-SXM-80GB", sequence_length=8192, recompute="full")
>>> answer.fits
True
"""

from typing import TYPE_CHECKING, Any

from tonnage.kernel.message import Message

if TYPE_CHECKING:  # for type checkers: the names are imported when they are first used
    from tonnage.api.answers import Answer, for_my_machine, frontier, maximum, read, serve, train
    from tonnage.api.answers import max as max
    from tonnage.api.comparing import Comparison, compare
    from tonnage.api.following import SearchProgress
    from tonnage.api.many import serve_many, train_many
    from tonnage.api.planning import place, plan_serving, plan_training
    from tonnage.architectures import Model
    from tonnage.catalogue import accelerator, cluster
    from tonnage.kernel.errors import TonnageError
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
    "Answer": "tonnage.api.answers",
    "BillOptions": "tonnage.question.subjects.money",
    "Cluster": "tonnage.spec",
    "Comparison": "tonnage.api.comparing",
    "LoadOptions": "tonnage.question.subjects.load",
    "Model": "tonnage.architectures",
    "RunOptions": "tonnage.question.subjects.run",
    "SearchOptions": "tonnage.question.subjects.plan",
    "SearchProgress": "tonnage.api.following",
    "ServingOptions": "tonnage.question.subjects.serving",
    "ServingPlanOptions": "tonnage.question.subjects.plan",
    "Term": "tonnage.kernel.term",
    "TonnageError": "tonnage.kernel.errors",
    "TrainingOptions": "tonnage.question.subjects.training",
    "accelerator": "tonnage.catalogue",
    "cluster": "tonnage.catalogue",
    "compare": "tonnage.api.comparing",
    "for_my_machine": "tonnage.api.answers",
    "frontier": "tonnage.api.answers",
    "max": "tonnage.api.answers",
    "maximum": "tonnage.api.answers",
    "place": "tonnage.api.planning",
    "plan_serving": "tonnage.api.planning",
    "plan_training": "tonnage.api.planning",
    "read": "tonnage.api.answers",
    "serve": "tonnage.api.answers",
    "serve_many": "tonnage.api.many",
    "train": "tonnage.api.answers",
    "train_many": "tonnage.api.many",
}
# Without `max`, which `from tonnage import *` would put in the place of Python's own.
__all__ = [
    "Answer",
    "BillOptions",
    "Cluster",
    "Comparison",
    "LoadOptions",
    "Model",
    "RunOptions",
    "SearchOptions",
    "SearchProgress",
    "ServingOptions",
    "ServingPlanOptions",
    "Term",
    "TonnageError",
    "TrainingOptions",
    "accelerator",
    "cluster",
    "compare",
    "for_my_machine",
    "frontier",
    "maximum",
    "place",
    "plan_serving",
    "plan_training",
    "read",
    "serve",
    "serve_many",
    "train",
    "train_many",
]


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used: `import tonnage` costs nothing."""
    if name not in _WHERE:
        raise AttributeError(Message("module 'tonnage' has no attribute {name!r}", name=name))
    from importlib import import_module

    found = globals()[name] = getattr(import_module(_WHERE[name]), name)
    return found


def __dir__() -> list[str]:
    return [*globals(), *_WHERE]
