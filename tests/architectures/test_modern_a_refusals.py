"""A field of the wrong type or size is refused with a message that names it, or it decides nothing."""

from architectures.modern_a_configs import CONFIGS, Fields
from architectures.modern_a_more import MORE
from every_row import every_row
from tonnage.architectures import build
from tonnage.kernel.errors import TonnageError

WRONG = ["x", -1, 0, [], {}, 1.5, True, None, [None], ["x"], 10**9, [1, 2], {"a": 1}]


@every_row("name", [*CONFIGS, *MORE])
def test_no_field_can_break_the_reader(name: str):
    fields: Fields = {**CONFIGS, **MORE}[name]
    for field in fields.keys() - {"architectures", "model_type"}:
        for wrong in WRONG:
            _build(fields | {field: wrong}, field)


def _build(fields: Fields, field: str) -> None:
    try:
        assert build(fields, "wrong").num_parameters() > 0
    except TonnageError as error:
        assert str(error), field
