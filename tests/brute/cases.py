"""Command lines of the brute force. A family is a function from a number to one command line: cases are made when they
are run, and a number names one.

To add a verb: write a function that draws its words from a `Random`, and put it into RANDOM_VERBS.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from random import Random

from brute import catalogue
from brute.values import flags_of, random_options

Words = tuple[str, ...]
FORMS: tuple[Words, ...] = (
    ("--json",),
    ("--json", "--no-advice"),
    (),
    ("--no-advice",),
    ("--formulas",),
    ("--formulas", "--no-advice"),
    ("-v",),
    ("--markdown",),
    ("--html", "report.html"),
)
CHEAP, CHEAPLY = (
    ("--json", "--no-advice"),
    0.6,
)  # the form of most cases of a grid, which shows every number: suggestions cost ten times as much
TRAINING_OFFLOADS: tuple[Words, ...] = (
    (),
    ("--offload-optimizer", "cpu"),
    ("--offload-optimizer", "nvme"),
    ("--offload-activations", "cpu"),
    ("--offload-optimizer", "cpu", "--offload-parameters", "cpu"),
    ("--offload-optimizer", "nvme", "--offload-parameters", "nvme", "--zero-stage", "3"),
)
SERVING_OFFLOADS: tuple[Words, ...] = ((), ("--weights-on-host", "1GiB"), ("--layers-on-accelerator", "8"))


def machine_cases() -> tuple[Sequence[Words], ...]:
    """Every machine x runtimes and engines x offloads."""
    train = [("train", "--runtime", name, *offload) for name in catalogue.RUNTIMES for offload in TRAINING_OFFLOADS]
    serve = [("serve", "--engine", name, *offload) for name in catalogue.ENGINES for offload in SERVING_OFFLOADS]
    return ([("--on", name) for name in catalogue.machines()], train + serve)


def model_cases() -> tuple[Sequence[Words], ...]:
    """Every model x two machines x every runtime and engine."""
    train = [("train", "--runtime", name) for name in catalogue.RUNTIMES]
    serve = [("serve", "--engine", name) for name in catalogue.ENGINES]
    models = [("--model", name) for name in catalogue.models()]
    return (models, [("--on", name) for name in catalogue.PAIR], train + serve)


def optimizer_cases() -> tuple[Sequence[Words], ...]:
    """Training recipes x optimizers x runtimes."""
    recipes, optimizers, runtimes = catalogue.RECIPES, catalogue.OPTIMIZER_NAMES, catalogue.RUNTIMES
    return (
        [("train", "--precision", name) for name in recipes],
        [("--optimizer", name) for name in optimizers],
        [("--runtime", name) for name in runtimes],
    )


def weight_cases() -> tuple[Sequence[Words], ...]:
    """Precisions of served weights x engines x kinds of models."""
    return (
        [("serve", "--weights", name) for name in catalogue.WEIGHTS],
        [("--engine", name) for name in catalogue.ENGINES],
        [("--model", name) for name in catalogue.kinds()],
    )


GRIDS: dict[str, Callable[[], tuple[Sequence[Words], ...]]] = {
    "machines": machine_cases,
    "models": model_cases,
    "optimizers": optimizer_cases,
    "weights": weight_cases,
}
RANDOM = 6_000  # random command lines of one whole run


@cache
def axes_of(family: str) -> tuple[Sequence[Words], ...]:
    """The axes of a grid."""
    return GRIDS[family]()


def sizes() -> dict[str, int]:
    """How many cases each family has."""
    found = {}
    for family in GRIDS:
        found[family] = 1
        for axis in axes_of(family):
            found[family] *= len(axis)
    return {**found, "random": RANDOM}


def command(family: str, number: int, seed: str) -> Words:
    """The command line of one case. What a grid leaves open (the model, the form of the output) is drawn from the
    seed.
    """
    random = Random(f"{seed}:{family}:{number}")
    if family == "random":
        return random_command(random)
    words: list[str] = []
    for axis in axes_of(family):
        number, at = divmod(number, len(axis))
        words += axis[at]
    model = taken(words, "--model") or random.choice(catalogue.kinds())
    if "--on" not in words:
        words += ["--on", random.choice(catalogue.PAIR)]
    verb = next(word for word in words if word in ("train", "serve"))
    words.remove(verb)
    form = CHEAP if random.random() < CHEAPLY else form_of((verb,), random)
    return (verb, model, *words, *form)


def taken(words: list[str], flag: str) -> str:
    """The value of an option, which is taken out of the words; "" without it."""
    if flag not in words:
        return ""
    at = words.index(flag)
    value = words[at + 1]
    del words[at : at + 2]
    return value


def some_model(random: Random) -> str:
    """Any model of the catalogue; every third time one of the kinds."""
    return random.choice(catalogue.kinds() if random.random() < 1 / 3 else catalogue.models())


def some_machine(random: Random) -> str:
    """Any machine; every third time the pair that all models are asked for."""
    return random.choice(catalogue.PAIR if random.random() < 1 / 3 else catalogue.machines())


def _train(random: Random) -> Words:
    return ("train", some_model(random), "--on", some_machine(random), *random_options("train", random))


def _serve(random: Random) -> Words:
    return ("serve", some_model(random), "--on", some_machine(random), *random_options("serve", random))


def _api(random: Random) -> Words:
    return ("api", *random.choice([_train, _serve])(random))


def _compare(random: Random) -> Words:
    verb = random.choice(["train", "serve"])
    machines = ",".join(some_machine(random) for _ in range(random.randint(1, 3)))
    return (
        "compare",
        f"--{verb}",
        some_model(random),
        "--on",
        machines,
        *random_options("compare", random, f"--{verb}"),
    )


def _max(random: Random) -> Words:
    from tonnage.question.subjects.maximum import WHATS

    what = random.choice([each for each in WHATS if each.name != "model"])
    head = (what.name, f"--{what.verb}")
    return ("max", *head, some_model(random), "--on", some_machine(random), *random_options("max", random, *head))


def _plan(random: Random) -> Words:
    """On few accelerators: a search over many takes minutes, and has tests of its own."""
    verb = random.choice(["train", "serve"])
    machine = random.choice(["2xH100-SXM-80GB", "4xA100-SXM-80GB", "rtx-4090", "2x2xH200", "4xMI300X"])
    load = ("--global-batch-size", "16") if verb == "train" else ("--users", random.choice(["1", "16", "200"]))
    return (
        "plan",
        f"--{verb}",
        random.choice(catalogue.kinds()),
        "--on",
        machine,
        *load,
        *random_options("plan", random, f"--{verb}", most=3),
    )


def _rules(random: Random) -> Words:
    return ("rules", "--model", some_model(random))


def _about(random: Random) -> Words:
    return random.choice([("models", some_model(random)), ("accelerators", some_machine(random).split("x")[-1])])


RANDOM_VERBS: dict[str, tuple[float, Callable[[Random], Words]]] = {  # share of the random cases, and what draws one
    "train": (0.35, _train),
    "serve": (0.35, _serve),
    "api": (0.03, _api),
    "compare": (0.09, _compare),
    "max": (0.1, _max),
    "plan": (0.003, _plan),
    "rules": (0.02, _rules),
    "about": (0.04, _about),
}


def random_command(random: Random) -> Words:
    """One command line of any verb, with any form of the output that the verb has."""
    shares = [share for share, _draw in RANDOM_VERBS.values()]
    (_share, draw) = random.choices(list(RANDOM_VERBS.values()), shares)[0]
    words = draw(random)
    if words[0] == "api":
        return words
    return (*words, *form_of(words, random))


def form_of(words: Words, random: Random) -> Words:
    """A form of the output that the verb has; every fiftieth time any form."""
    known = flags_of(words[0], tuple(word for word in words[1:3] if word in ("--train", "--serve")))
    forms = [form for form in FORMS if known.issuperset(word for word in form if word.startswith("-"))]
    return random.choice(FORMS if random.random() < 0.02 else forms)


def eased(words: Words, error: str) -> Words | None:
    """A refused command line without the first option that the error names, so that the rest is tried too; None
    where it names none.
    """
    for at, word in enumerate(words):
        if (
            word.startswith("--")
            and word in re.findall(r"--[a-z0-9-]+", error)
            and word not in ("--on", "--train", "--serve", "--json", "--model")
        ):
            following = words[at + 1 : at + 2]
            return words[:at] + words[at + (1 if not following or following[0].startswith("--") else 2) :]
    return None


def numbers(family: str, part: int, parts: int) -> Iterator[int]:
    """The case numbers of one part of a family: every `parts`-th, from `part`."""
    return iter(range(part, sizes()[family], parts))
