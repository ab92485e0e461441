"""Training runtimes that are not of this package: facts and a framework of one's own.

A plug-in has what a runtime of this package has: facts (tonnage.runtimes.TrainingRuntime) and, where PyTorch's own ways
do not hold, a subclass of Framework, which sees the step through RankView and StepView alone. It calls
`add_training_runtime`. To be found by the command line, its package names the module that does so as an entry point of
the group "tonnage.runtimes", which is imported when a runtime is asked for that this package
does not have:

    [project.entry-points."tonnage.runtimes"]
    mine = "my_package.tonnage_runtime"
"""

from tonnage.estimate.frameworks.base import FRAMEWORKS, Framework, HostStates, PlanRequest
from tonnage.estimate.step.points import Point
from tonnage.estimate.step.views import RankView, StepView
from tonnage.runtimes import TRAINING_RUNTIMES, TrainingRuntime

__all__ = [
    "Framework",
    "HostStates",
    "PlanRequest",
    "Point",
    "RankView",
    "StepView",
    "TrainingRuntime",
    "add_training_runtime",
    "remove_training_runtime",
]


def add_training_runtime(runtime: TrainingRuntime, framework: type[Framework] | None = None) -> None:
    """Make a runtime known by its name; `framework`: the one that its facts name, where this package has none of
    that name.
    """
    if framework is not None:
        if not runtime.framework:
            raise TypeError(f"runtime {runtime.name}: its facts must name its framework")
        FRAMEWORKS.add(runtime.framework, framework)
    TRAINING_RUNTIMES.add(runtime.name, runtime)


def remove_training_runtime(name: str) -> None:
    """Forget a runtime that was added, and its framework if no other runtime names it."""
    framework = TRAINING_RUNTIMES[name].framework
    TRAINING_RUNTIMES.remove(name)
    if framework in FRAMEWORKS and all(runtime.framework != framework for runtime in TRAINING_RUNTIMES.values()):
        FRAMEWORKS.remove(framework)
