"""The verbs that answer a question, the forms of each, and which form a question has."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import AND, listed, option_name
from tonnage.question.command_line import text_of
from tonnage.question.form import ALONE, UNGROUPED, Form, Group, not_taken, without
from tonnage.question.forms import as_written
from tonnage.question.option import MODEL_AND_MACHINE, Option, Usual, options_of
from tonnage.question.subjects.model import DIMENSIONS, DIMENSIONS_TITLE, MODEL, READING, READING_TITLE

MONEY_TITLE, MONEY_OF_TRAINING = "money and power", "money, power and disks"
LOAD_TITLE = "load and service level"
# Of serve, what a search for plans does not take: it estimates, and simulates nothing.
SIMULATED = frozenset({"trace", "percentile", "simulate", "num_requests", "seed"})
VARY = Option(
    "vary",
    "an option of training to try besides, such as precision=bf16-mixed,fp8-te, optimizer=adamw,muon, "
    "offload_optimizer=none,cpu or sequence_length=4k,32k; can be given again",
    as_written,
    repeated=True,
    metavar="OPTION=VALUE,VALUE",
)


def model_groups() -> tuple[Group, ...]:
    """Options of the model: which one, and its dimensions."""
    return Group(ALONE, (MODEL,)), Group(READING_TITLE, READING), Group(DIMENSIONS_TITLE, DIMENSIONS)


def _training(title: str = "training", run: str = "run") -> tuple[Group, ...]:
    from tonnage.question.subjects.money import MONEY
    from tonnage.question.subjects.run import RunOptions
    from tonnage.question.subjects.training import TrainingOptions

    return (
        Group(title, options_of(TrainingOptions)),
        Group(run, options_of(RunOptions)),
        Group(MONEY_OF_TRAINING, MONEY),
    )


def _serving() -> tuple[Group, ...]:
    from tonnage.question.subjects.load import LoadOptions
    from tonnage.question.subjects.money import SERVED
    from tonnage.question.subjects.serving import ServingOptions

    serving, load = options_of(ServingOptions), options_of(LoadOptions)
    return Group("serving", serving), Group(LOAD_TITLE, load), Group(MONEY_TITLE, SERVED)


def _machine() -> Group:
    from tonnage.question.subjects.model import MACHINE

    return Group("machine", MACHINE)


def _advice() -> Group:
    from tonnage.question.subjects.model import ADVICE, AS_IS

    return Group("advice", (AS_IS, ADVICE))


def _train() -> Form:
    groups = (*model_groups(), _machine(), *_training(), _advice())
    return Form("train", groups, example="tonnage train llama-3.1-8b --on 8xh100 --tokens 100B")


def _serve() -> Form:
    from tonnage.question.subjects.frontier import FRONTIER

    many = Group("many configurations, many models", FRONTIER)
    groups = (*model_groups(), _machine(), *_serving(), many, _advice())
    return Form("serve", groups, example="tonnage serve qwen3-32b --on 2xh100 --users 32 --input-tokens 2k")


def _plan_train() -> Form:
    from tonnage.question.subjects.model import RESERVE, TO_TRAIN_ON
    from tonnage.question.subjects.plan import SearchOptions

    groups = (
        Group(UNGROUPED, (Option("train", "a training run (the default)", negatable=False),)),
        *model_groups(),
        Group("machines", (TO_TRAIN_ON, RESERVE)),
        Group("search", options_of(SearchOptions)),
        Group("search: more options", (VARY,)),
        *_training("training: what is given is not varied", "the whole run"),
    )
    example = "tonnage plan llama-3.1-70b --on h100,h200 --tokens 1T --deadline 30d"
    return Form("plan", groups, ("--train",), "train", _LISTS_OF_PLAN, searched=_SEARCHED, example=example)


def _plan_serve() -> Form:
    from tonnage.question.subjects.load import LoadOptions
    from tonnage.question.subjects.model import RESERVE, TO_SERVE_ON
    from tonnage.question.subjects.money import SERVED
    from tonnage.question.subjects.plan import ServingPlanOptions
    from tonnage.question.subjects.serving import ServingOptions

    fixed = "what is not varied: each of these is searched where it is not given, or is as for `tonnage serve`"
    groups = (
        Group(UNGROUPED, (Option("serve", "search plans that serve users", negatable=False),)),
        *model_groups(),
        Group("search", (TO_SERVE_ON, RESERVE, *options_of(ServingPlanOptions))),
        Group(LOAD_TITLE, without(options_of(LoadOptions), SIMULATED)),
        Group(fixed, options_of(ServingOptions)),
        Group(MONEY_TITLE, SERVED),
    )
    example = "tonnage plan qwen3-32b --users 64 --input-tokens 2k --ttft 1s --tpot 40ms"
    return Form("plan", groups, ("--serve",), "serve", lists=_LISTS_OF_PLAN, searched=_SEARCHED, example=example)


def _plan_pool() -> Form:
    from tonnage.question.subjects.load import LoadOptions
    from tonnage.question.subjects.plan import POOL
    from tonnage.question.subjects.serving import ServingOptions
    from tonnage.question.subjects.training import TrainingOptions

    names_taken = {name for option in (*POOL, *DIMENSIONS) for name in (option.name, option.flag, *option.short)}
    groups = (
        *model_groups(),
        Group("pool", POOL),
        Group("serving, and training where it has the same", not_taken(options_of(ServingOptions), names_taken)),
        Group(LOAD_TITLE, not_taken(options_of(LoadOptions), names_taken)),
        Group("training", not_taken(options_of(TrainingOptions), names_taken)),
    )
    return Form("plan", groups, ("--inventory=pool",), lists=_LISTS_OF_PLAN)


_LISTS_OF_PLAN = frozenset({"on", "weights", "kv_cache", "engine"})
_SEARCHED = frozenset(
    {
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "context_parallel_size",
        "expert_parallel_size",
        "zero_stage",
        "recompute",
        "micro_batch_size",
        "max_num_seqs",
    }
)


def _max(verb: str) -> Form:
    from tonnage.question.subjects.maximum import WHATS, WHOSE

    able = tuple(dict.fromkeys(what.name for what in WHATS if what.verb == verb))
    usual = Usual(MODEL_AND_MACHINE, listed(able), "WHAT")
    what = Option("what", "", as_written, choices=able, alone=True, metavar="WHAT", usual=usual)
    own = _serving() if verb == "serve" else _training()
    groups = (Group(ALONE, (what,)), Group("whose", WHOSE), *model_groups(), _machine(), *own)
    first = next(what.name for what in WHATS if what.verb == verb)
    example = f"tonnage max {'users' if verb == 'serve' else 'sequence'} llama-3.1-8b --on h100"
    return Form("max", groups, (first, f"--{verb}"), verb, required=("what",), example=example)


def _compare(verb: str) -> Form:
    from tonnage.question.subjects.comparison import TABLE

    which = (
        Option("serve", "compare served models (default)", negatable=False),
        Option("train", "compare training runs", negatable=False),
    )
    own = _serving() if verb == "serve" else _training()
    groups = (*model_groups(), Group(UNGROUPED, which, exclusive=True), _machine(), *own, Group("table", TABLE))
    example = f"tonnage compare {'--train ' if verb == 'train' else ''}llama-3.1-8b,qwen3-8b --on h100,l40s"
    return Form("compare", groups, (f"--{verb}",), verb, axes=True, example=example)


def _rules() -> Form:
    from tonnage.question.subjects import rules

    numbers = Group("numbers that rules and exact figures follow", rules.NUMBERS)
    return Form("rules", (Group(ALONE, (rules.NAMES,)), Group(UNGROUPED, rules.CHOSEN), numbers))


def _explain() -> Form:
    from tonnage.question.subjects.rules import NAME

    return Form("explain", (Group(ALONE, (NAME,)),))


def _accelerators() -> Form:
    from tonnage.question.subjects.prices import ACCELERATOR

    return Form("accelerators", (Group(ALONE, (ACCELERATOR,)),))


def _prices() -> Form:
    from tonnage.question.subjects.prices import PRICED, PRICES

    return Form("prices", (Group(ALONE, (PRICED,)), Group("which prices, and how they are shown", PRICES)))


def _api_prices() -> Form:
    from tonnage.question.subjects.prices import API_PRICES, BY_TOKEN, HOSTED

    shown = Group("which requests, and how they are shown", API_PRICES)
    return Form("prices", (Group(ALONE, (HOSTED,)), Group(UNGROUPED, (BY_TOKEN,)), shown), ("--api",))


# Verb -> its forms by what is asked for; the first is what a question has that does not say.
FORMS: Mapping[str, Mapping[str, Callable[[], Form]]] = {
    "train": {"": _train},
    "serve": {"": _serve},
    "plan": {"train": _plan_train, "serve": _plan_serve, "inventory": _plan_pool},
    "max": {"serve": lambda: _max("serve"), "train": lambda: _max("train")},
    "compare": {"serve": lambda: _compare("serve"), "train": lambda: _compare("train")},
    "rules": {"": _rules},
    "explain": {"": _explain},
    "models": {"": lambda: Form("models", model_groups())},
    "accelerators": {"": _accelerators},
    "prices": {"": _prices, "api": _api_prices},
}


@cache
def form_of(verb: str, kind: str = "") -> Form:
    """A form of a verb; without `kind` its first."""
    forms = FORMS[verb]
    return forms[kind or next(iter(forms))]()


def forms_of(verb: str) -> tuple[Form, ...]:
    """Every form of a verb."""
    return tuple(form_of(verb, kind) for kind in FORMS[verb])


def kind_of(verb: str, question: Mapping[str, Any]) -> str:
    """Which form of the verb a question of names and values has."""
    if verb == "max":
        from tonnage.question.subjects.maximum import what_of

        mode: Any = next((name for name in ("serve", "train") if question.get(name) is True), None)
        return what_of(text_of("what", question["what"]), mode).verb
    kinds = [kind for kind in FORMS[verb] if question.get(kind) not in (None, False)]
    if verb == "plan" and not kinds:
        return kind_of_plan(name for name, value in question.items() if value is not None)
    return kinds[-1] if kinds else next(iter(FORMS[verb]))


def kind_of_plan(names: Iterable[str]) -> str:
    """What a search is for where nobody says: `serve` where an option of serving is given that training has not.
    `names`: of options, by any of their names, as they are typed or as a question has them.
    """
    said = {name.lstrip("-").replace("-", "_"): name for name in names}
    of_serving, of_training = _names_of(form_of("plan", "serve")), _names_of(form_of("plan", "train"))
    serving, training = said.keys() & (of_serving - of_training), said.keys() & (of_training - of_serving)
    if serving and training:
        raise InvalidInput(
            "{serving} is of serving, {training} of training: a search is for one of them, serve or train.",
            serving=listed((option_name(said[name]) for name in sorted(serving)), AND),
            training=listed((option_name(said[name]) for name in sorted(training)), AND),
        )
    return "serve" if serving else "train"


@cache
def _names_of(form: Form) -> frozenset[str]:
    """Every name that an option of the form has, with underscores."""
    flags = (flag.lstrip("-").replace("-", "_") for flag in form.flags)
    return frozenset((*form.options, *flags))
