"""`plan --train`: the best plans of a training run."""

from typing import Any

from tonnage.kernel.errors import InvalidInput
from tonnage.question.form import Given, values
from tonnage.question.looked_up import read_model
from tonnage.question.option import options_of
from tonnage.question.subjects.model import RESERVE, TO_TRAIN_ON
from tonnage.question.subjects.money import MONEY, BillOptions
from tonnage.question.subjects.plan import SearchOptions
from tonnage.question.subjects.run import RunOptions
from tonnage.question.subjects.training import TrainingOptions
from tonnage.verbs.answered import DocumentedAnswer


def varied(pairs: list[str]) -> dict[str, tuple[Any, ...]]:
    """The values of --vary, read as the option of `train` reads them."""
    known = {option.name: option for option in options_of(TrainingOptions)}
    values_by_name: dict[str, tuple[Any, ...]] = {}
    for pair in pairs:
        name, equals, values = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not values.strip():
            raise InvalidInput(
                "{--vary} is written OPTION=VALUE,VALUE, such as precision=bf16-mixed,fp8-te. Got {pair!r}.",
                pair=pair[:80],
            )
        if name not in known:
            from tonnage.kernel.registry import unknown

            raise unknown("option to vary", name, known)
        if name in values_by_name:
            raise InvalidInput("{--vary} {name} is given twice: write all its values in one.", name=name)
        read = known[name].read
        texts = [text.strip() for text in values.split(",") if text.strip()]
        values_by_name[name] = tuple(
            _switch(text, name) if read is None else read(text, f"--vary {name}") for text in texts
        )
    return values_by_name


def _switch(text: str, name: str) -> bool:
    if text not in ("on", "off"):
        raise InvalidInput("{--vary} {name} takes on and off. Got {text!r}.", name=name, text=text)
    return text == "on"


def machines_named(text: str | None) -> tuple[str, ...]:
    """The names in a comma-separated list; none where the option is not given."""
    if text is None:
        return ()
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise InvalidInput("{--on} names machines, such as h100,8xa100. Got {text!r}.", text=text)
    return names


def answer(arguments: Given) -> DocumentedAnswer:
    """The plans, of which documents and texts are made."""
    from tonnage.search.training import document
    from tonnage.search.training.options import TrainingQuestion

    common = values(arguments, (TO_TRAIN_ON, RESERVE))
    question = TrainingQuestion(
        on=machines_named(common.get("on")),
        options=TrainingOptions(**values(arguments, options_of(TrainingOptions))),
        run=RunOptions(**values(arguments, options_of(RunOptions))),
        money=BillOptions(**values(arguments, MONEY)),
        search=SearchOptions(**values(arguments, options_of(SearchOptions))),
        vary=varied(arguments.vary),
        reserve_bytes=common.get("reserve", 0),
    )
    return document.answer(read_model(arguments), question)
