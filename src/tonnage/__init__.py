"""tonnage: does a large language model fit a machine, where does its memory go, what would make it fit, and why.

>>> import tonnage
>>> answer = tonnage.train("llama-3.1-8b", on="8xH100-SXM-80GB", sequence_length=8192, recompute="full")
>>> answer.fits
True
"""

from typing import Any

__version__ = "0.1.0"
_WHERE = {
    "Answer": "tonnage.api", "BillOptions": "tonnage.estimate.money.bill", "Cluster": "tonnage.spec", "Model": "tonnage.architectures",
    "LoadOptions": "tonnage.estimate.load.options", "RunOptions": "tonnage.estimate.options.run_options", "ServingPlanOptions": "tonnage.search.serving.options", "ServingOptions": "tonnage.estimate.serving.options", "Term": "tonnage.kernel.term", "TrainingOptions": "tonnage.estimate.plan.training_options", "TonnageError": "tonnage.kernel.errors", "accelerator": "tonnage.catalogue", "cluster": "tonnage.catalogue", "read": "tonnage.api",
    "Comparison": "tonnage.api_compare", "SearchOptions": "tonnage.search.training.options", "compare": "tonnage.api_compare", "for_my_machine": "tonnage.api",
    "frontier": "tonnage.api", "maximum": "tonnage.api", "place": "tonnage.api_plan", "plan_serving": "tonnage.api_plan", "plan_training": "tonnage.api_plan", "serve": "tonnage.api", "train": "tonnage.api",
}  # fmt: skip
__all__ = sorted(_WHERE)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used: `import tonnage` costs nothing."""
    if name not in _WHERE:
        raise AttributeError(f"module 'tonnage' has no attribute {name!r}")
    from importlib import import_module

    found = globals()[name] = getattr(import_module(_WHERE[name]), name)
    return found


def __dir__() -> list[str]:
    return [*globals(), *_WHERE]
