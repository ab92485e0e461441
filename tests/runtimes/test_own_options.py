"""Options that only some runtimes have: every other runtime refuses them, so that none is lost in silence."""

import re
from typing import get_args, get_type_hints

import tonnage
from every_row import every_row
from tonnage.kernel.errors import InvalidInput, InvalidPlan
from tonnage.runtimes import training_runtime, training_runtimes

KINDS = get_type_hints(tonnage.TrainingOptions)
VALUES = {bool: True, int: 2, float: 1.5, str: "full"}
OF_SOME = {name for runtime in training_runtimes() for name in training_runtime(runtime).options}
LACKING = [
    (runtime, name)
    for runtime in training_runtimes()
    for name in sorted(OF_SOME - {*training_runtime(runtime).options})
]


@every_row("runtime, name", LACKING, ids=": ".join, at_least=200)
def test_a_runtime_refuses_the_options_of_others(runtime, name):
    kind = next(kind for kind in get_args(KINDS[name]) if kind in VALUES)
    with_name = re.compile(name.replace("_", "[-_]"))
    try:
        tonnage.train("llama-3.1-8b", on="h100", runtime=runtime, **{name: VALUES[kind]})
    except (InvalidInput, InvalidPlan) as refused:
        assert with_name.search(str(refused)), str(refused)
    else:
        raise AssertionError(f"{runtime} takes {name}, which is not in `options` of its facts")
