"""Write the types of the options of the Python functions, from their declarations: src/tonnage/api/options.py, axes.py.

python scripts/option_types.py
"""

import argparse
from pathlib import Path
from typing import Any

from tonnage.question.option import Options, options_of, types_of
from tonnage.question.subjects.load import LoadOptions
from tonnage.question.subjects.money import OF_TRAINING, BillOptions
from tonnage.question.subjects.plan import SearchOptions, ServingPlanOptions
from tonnage.question.subjects.run import RunOptions
from tonnage.question.subjects.serving import ServingOptions
from tonnage.question.subjects.training import TrainingOptions

API = Path(__file__).parents[1] / "src" / "tonnage" / "api"
HEAD = '"""{about} Written by scripts/option_types.py."""\n\n{imports}from typing import TypedDict\n'
RESERVE = "reserve_bytes"  # an argument of its own
TRAIN, SERVE = (TrainingOptions, RunOptions, BillOptions), (ServingOptions, LoadOptions, BillOptions)
# Name of the type -> the one whose options it has too, the subjects whose it adds, and what takes it.
TYPES: dict[str, tuple[str, tuple[type[Options], ...], str]] = {
    "TrainOptions": ("", TRAIN, "Options of `train`."),
    "PlanTrainingOptions": ("TrainOptions", (SearchOptions,), "Options of `plan_training`."),
    "MachineOptions": ("", (ServingOptions,), "Options of `for_my_machine`."),
    "ServeOptions": ("MachineOptions", (LoadOptions, BillOptions), "Options of `serve` and `frontier`."),
    "PlanServingOptions": ("ServeOptions", (ServingPlanOptions,), "Options of `plan_serving`."),
    "AnyOptions": ("TrainOptions", SERVE, "Options of `max` and `place`: those of `train` or of `serve`."),
}


def options_module() -> str:
    """The source of api/options.py."""
    text = HEAD.format(about="Types of the options of the public functions.", imports="")
    for name, (base, forms, about) in TYPES.items():
        text += f'\n\nclass {name}({base or "TypedDict"}, total=False):\n    """{about}"""\n\n'
        known = {*keys_of(*_forms(base)), *(OF_TRAINING if name == "ServeOptions" else ())}
        text += "".join(f"    {key}: {kind}\n" for key, kind in keys_of(*forms).items() if key not in known)
    return text


def _forms(name: str) -> tuple[type[Options], ...]:
    """The subjects whose options a type has."""
    if not name:
        return ()
    base, forms, _ = TYPES[name]
    return (*_forms(base), *forms)


def axes_module() -> str:
    """The source of api/axes.py."""
    text = HEAD.format(
        about="Types of the options of `compare`, each of which takes several values.",
        imports="from collections.abc import Sequence\n",
    )
    text += (
        '\n\nclass Axes(TypedDict, total=False):\n    """Options of `serve`, or with `train` those of `train`."""\n\n'
    )
    text += f"    {RESERVE}: float | Sequence[float]\n"
    for key, kind in keys_of(*TRAIN, *SERVE).items():
        text += f"    {key}: {kind.removesuffix(' | None')} | Sequence[{kind}] | None\n"
    return text


def keys_of(*forms: type[Options]) -> dict[str, str]:
    """Option, and each of its other names -> its type. TypeError where two subjects have an option of two types."""
    found: dict[str, str] = {}
    for form in forms:
        types = types_of(form)
        for option in options_of(form):
            kind = annotation(types[option.name])
            short = [flag.lstrip("-").replace("-", "_") for flag in option.short]
            for name in (option.name, *short):
                if found.setdefault(name, kind) != kind:
                    raise TypeError(f"{name} has two types: {found[name]} and {kind}")
    return found


def annotation(kind: Any) -> str:
    """A type as it is written."""
    return kind.__name__ if isinstance(kind, type) else str(kind)


def written() -> dict[Path, str]:
    """Each file, and what stands in it."""
    return {API / "options.py": options_module(), API / "axes.py": axes_module()}


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    for path, text in written().items():
        path.write_text(text, encoding="utf-8")
        print(f"written to {path}")
