"""What is wrong with one value of a question, whichever face asked, and which names are near."""

from collections.abc import Iterable

from msgspec import Struct

from tonnage.kernel.errors import TonnageError, UnknownName
from tonnage.kernel.message import Message
from tonnage.kernel.registry import nearest
from tonnage.question.command_line import OWN
from tonnage.question.form import WHOLE, Form
from tonnage.question.option import Option, names_in

FEW = 4  # nearest names, and known values, that are shown
NO_MODEL, NO_ACCELERATOR = Message("no such model"), Message("no such accelerator")
NO_FILE = Message("no such file or folder")
NO_SUCH = "no such {kind}"


class WrongValue(Struct, frozen=True):
    """What is wrong with a value, which names are near, and which is right instead; `sure`: it alone is near."""

    problem: str
    nearest: tuple[str, ...] = ()
    right: str = ""
    sure: bool = False


def value_problem(option: Option, typed: str, text: str) -> WrongValue | None:
    try:
        if option.read is not None:
            option.read(text, typed)
    except TonnageError as error:
        return WrongValue(str(error))
    choices = names_in(option.choices or (option.known if option.name == "weights" else ()))
    if not choices or _takes(option.name, text, choices):
        return None
    if option.name == "weights":
        from tonnage.numerics.precisions import ALIASES
        from tonnage.numerics.quantization import FILE_TYPES

        choices = (*choices, *ALIASES, *FILE_TYPES)
    near = tuple(nearest(text, choices))
    others = tuple(name for name in choices if name not in near)[: FEW - len(near)]
    kind = Message(NO_SUCH, kind=option.unit or "value")
    return WrongValue(kind, (*near[:FEW], *others), near[0] if near else "", len(near) == 1)


def _takes(name: str, text: str, choices: Iterable[str]) -> bool:
    """Whether a name is one of the choices, or another name of one."""
    plain = text.strip().lower().replace("_", "-")
    if plain in {choice.lower().replace("_", "-") for choice in choices}:
        return True
    try:
        if name == "optimizer":
            from tonnage.numerics.optimizers import optimizer

            optimizer(text)
        elif name == "runtime":
            from tonnage.runtimes import training_runtime
            from tonnage.runtimes.parts.tools import tool_named

            if tool_named(text) is None:
                training_runtime(text)
        elif name == "engine":
            from tonnage.runtimes import serving_runtime

            serving_runtime(text)
        elif name == "weights":
            from tonnage.estimate.serving.weights.request import asked_for

            asked_for(text)
        else:
            return False
    except UnknownName:
        return False
    except TonnageError:  # what it says is of something else
        return True
    return True


def machine_problem(text: str) -> WrongValue | None:
    from tonnage.catalogue.clusters import cluster, nearest_clusters

    try:
        cluster(text)
    except TonnageError as error:
        near = nearest_clusters(text) if isinstance(error, UnknownName) else ()
        if not near:
            return WrongValue(str(error)) if error.exit_status == UnknownName.exit_status else None
        return WrongValue(NO_ACCELERATOR, near[:FEW], near[0], len(near) == 1)
    return None


def model_problem(text: str) -> WrongValue | None:
    """What is wrong with the name of a model. What has to be asked for, or read, is left to the answer."""
    from tonnage.catalogue import aliases, model_names
    from tonnage.models import kind, local
    from tonnage.models.names import MAX_NAME

    if len(text) > MAX_NAME:
        return WrongValue(Message("has more than {most:,} characters", most=MAX_NAME))
    try:
        missing = local.is_missing_path(text)
        if not missing and kind(text) != "unknown":
            return None
    except TonnageError:
        return None
    if missing or local.is_missing_file(text):
        files = local.near_files(text)
        return WrongValue(NO_FILE, tuple(files), files[0] if files else "", len(files) == 1)
    if set(text) & set("/\\:~"):
        return None
    near = tuple(nearest(text, [*model_names(), *aliases("models")]))
    return WrongValue(NO_MODEL, near[:FEW], near[0] if near else "", len(near) == 1)


def takes_several(form: Form, option: Option) -> bool:
    """Whether a text of an option holds several values, with commas between."""
    return form.takes_lists(option.name) or (option.name == "on" and form.verb == "plan")


def text_problem(form: Form, option: Option, typed: str, text: str) -> tuple[WrongValue, str] | None:
    """What is wrong with the text of an option, and the text that is right, "" where nothing is near."""
    parts = text.split(";" if option.name in WHOLE else ",") if takes_several(form, option) else [text]
    for part in (part.strip() for part in parts):
        if form.axes and part.lower() == OWN:
            continue
        if option.name == "model":
            wrong = model_problem(part)
        else:
            wrong = machine_problem(part) if option.name == "on" else value_problem(option, typed, part)
        if wrong is not None:
            return wrong, text.replace(part, wrong.right, 1) if wrong.right else ""
    return None
