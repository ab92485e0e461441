"""Write what Python says of options from their declarations: the types of src/tonnage/api/options.py and axes.py, and
the usual options in the docstrings of the functions.

python scripts/option_types.py
"""

import argparse
import re
from pathlib import Path
from textwrap import wrap
from typing import Any

from tonnage.api.listing import SUBJECTS, options, usual_lines
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
WIDTH = 112  # of a docstring's text
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
    described: set[str] = set()
    for name, (base, forms, about) in TYPES.items():
        text += f'\n\nclass {name}({base or "TypedDict"}, total=False):\n    """{about}"""\n\n'
        known = {*keys_of(*_forms(base)), *(OF_TRAINING if name == "ServeOptions" else ())}
        for key, kind in keys_of(*forms).items():
            if key not in known:
                text += f"    {key}: {kind}\n" + ("" if key in described else _docstring(_meaning(key, forms)))
                described.add(key)
    return text


def _meaning(name: str, forms: tuple[type[Options], ...]) -> str:
    """What an option is, with its unit and default."""
    option = next(option for form in forms for option in options_of(form) if option.name == name)
    unit = f" [{option.unit}]" if option.unit else ""
    return f"{option.meaning}{unit}; default: {option.default}" if option.default else option.meaning + unit


def _docstring(text: str) -> str:
    """A text as the docstring of a field."""
    lines = wrap(text, WIDTH - 2, break_long_words=False, break_on_hyphens=False)
    return "    " + '"""' + "\n    ".join(lines) + ('"""\n' if len(lines) == 1 else '\n    """\n')


def with_usual(source: str) -> str:
    """A module's source whose docstrings have the usual options of their functions, and how many there are."""
    for verb in SUBJECTS:
        heading = re.search(rf"\ndef {verb}\(.*?\n    Usual options[^\n]*:\n", source, re.DOTALL)
        if heading:
            rest = source[heading.end() :]
            after = rest.partition("\n    All ")[2].partition("\n")[2]
            usual = "".join(f"    {line}\n" for line in usual_lines(verb))
            last = f'    All {len(options(verb).listed)} options: `print(tonnage.options("{verb}"))`.\n'
            source = source[: heading.end()] + usual + last + after
    return source


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
    """Option -> its type. TypeError where two subjects have an option of two types."""
    found: dict[str, str] = {}
    for form in forms:
        types = types_of(form)
        for option in options_of(form):
            kind = annotation(types[option.name])
            if found.setdefault(option.name, kind) != kind:
                raise TypeError(f"{option.name} has two types: {found[option.name]} and {kind}")
    return found


def annotation(kind: Any) -> str:
    """A type as it is written."""
    return kind.__name__ if isinstance(kind, type) else str(kind)


def written() -> dict[Path, str]:
    """Each file, and what stands in it."""
    functions = {path: with_usual(path.read_text("utf-8")) for path in (API / "answers.py", API / "planning.py")}
    return {API / "options.py": options_module(), API / "axes.py": axes_module(), **functions}


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    for path, text in written().items():
        path.write_text(text, encoding="utf-8")
        print(f"written to {path}")
