"""Lists of what the Python functions take: every option of a function with its type, unit, default and meaning."""

import re
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any, Literal

from msgspec import Struct

from tonnage.api.arguments import check_text, public
from tonnage.api.reports import Framed
from tonnage.kernel.registry import unknown
from tonnage.question.option import Option, Options, names_in, options_of, types_of
from tonnage.question.subjects.load import LoadOptions
from tonnage.question.subjects.money import OF_TRAINING, BillOptions
from tonnage.question.subjects.plan import SearchOptions, ServingPlanOptions
from tonnage.question.subjects.run import RunOptions
from tonnage.question.subjects.serving import ServingOptions
from tonnage.question.subjects.training import TrainingOptions
from tonnage.question.verbs import LOAD_TITLE, MONEY_TITLE

Verb = Literal["train", "serve", "plan_training", "plan_serving"]
GROUPS: Mapping[type[Options], str] = {
    SearchOptions: "search",
    ServingPlanOptions: "search",
    TrainingOptions: "training",
    RunOptions: "run",
    ServingOptions: "serving",
    LoadOptions: LOAD_TITLE,
    BillOptions: MONEY_TITLE,
}
SUBJECTS: Mapping[str, tuple[type[Options], ...]] = {
    "train": (TrainingOptions, RunOptions, BillOptions),
    "serve": (ServingOptions, LoadOptions, BillOptions),
    "plan_training": (SearchOptions, TrainingOptions, RunOptions, BillOptions),
    "plan_serving": (ServingPlanOptions, ServingOptions, LoadOptions, BillOptions),
}
# What most questions say: the docstrings of the functions have these, in this order.
USUAL: Mapping[str, tuple[str, ...]] = {
    "train": (
        *("sequence_length", "micro_batch_size", "global_batch_size", "method", "lora_rank", "precision", "optimizer"),
        *("tensor_parallel_size", "pipeline_parallel_size", "context_parallel_size", "expert_parallel_size"),
        *("zero_stage", "recompute", "offload_optimizer", "runtime", "tokens", "deadline", "budget"),
        *("provider", "price_per_accelerator_hour"),
    ),
    "serve": (
        *("context", "concurrency", "input_tokens", "output_tokens", "request_rate", "ttft", "tpot"),
        *("weights", "kv_cache", "engine", "tensor_parallel_size", "pipeline_parallel_size", "expert_parallel_size"),
        *("gpu_memory_utilization", "max_num_seqs", "speculative", "provider", "price_per_accelerator_hour"),
    ),
    "plan_training": (
        *("goal", "top", "max_accelerators", "pareto", "sequence_length", "global_batch_size", "method", "precision"),
        *("runtime", "tokens", "deadline", "budget", "provider", "price_per_accelerator_hour"),
    ),
    "plan_serving": (
        *("goal", "vary", "top", "max_accelerators", "pareto", "context", "concurrency", "input_tokens"),
        *("output_tokens", "request_rate", "ttft", "tpot", "budget", "weights", "engine", "provider"),
    ),
}
WIDTH = 116  # of lines, without the indent of a docstring


class ListedOption(Struct, frozen=True, kw_only=True):
    """An option of a Python function. `choices`: the names that it takes, or the best known of them."""

    name: str
    group: str
    type: str
    unit: str
    default: str
    choices: tuple[str, ...]
    meaning: str

    @property
    def text(self) -> str:
        """The option in one line, which may be long."""
        unit = f" [{self.unit}]" if self.unit else ""
        default = f" (default: {self.default})" if self.default else ""
        return f"{self.name}{unit}: {self.meaning}{default}"


class ListedOptions(Struct, Framed, frozen=True, kw_only=True):
    """The options of a function, `listed`, in the order of the help; as text, `rows()` or `frame()`."""

    verb: str
    listed: tuple[ListedOption, ...]

    def rows(self) -> list[dict[str, Any]]:
        """Return a dictionary for each option: name, group, type, unit, default, choices, meaning."""
        return [
            {name: getattr(each, name) for name in each.__struct_fields__} | {"choices": ", ".join(each.choices)}
            for each in self.listed
        ]

    def text(self) -> str:
        """Return the options group by group, each with its unit, meaning and default."""
        return "\n".join(_lines(self.listed))

    def _frame_rows(self, names: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        return self.rows()

    def _repr_html_(self) -> str:
        from tonnage.api.html_table import html_table

        return html_table(self.rows(), ("name", "type", "unit", "default", "meaning"))

    def __repr__(self) -> str:
        return f"<{len(self.listed)} options of {self.verb}: print() shows them>"

    def __str__(self) -> str:
        return self.text()


@public
def options(verb: Verb = "train") -> ListedOptions:
    """Return every option that a function takes by name: `print(tonnage.options("train"))`.

    verb: train, serve, plan_training or plan_serving; `frontier` takes those of serve, `maximum`, `place` and `compare`
        those of train or of serve, `for_my_machine` those of the group "serving"

    Each has `name`, `group`, `type`, `unit`, `default` in words, `choices` and `meaning`; also as `rows()`, `frame()`.
    Raises UnknownName for another verb.

    >>> tonnage.options("serve").listed[1].name
    'concurrency'
    """
    if check_text("verb", verb) not in SUBJECTS:
        raise unknown("function with options", verb, SUBJECTS)
    return ListedOptions(verb=verb, listed=tuple(_listed(verb)))


def usual_lines(verb: str, width: int = WIDTH) -> list[str]:
    """The usual options of a function, each with its unit, meaning and default, as its docstring has them."""
    by_name = {each.name: each for each in _listed(verb)}
    return [line for name in USUAL[verb] for line in _wrapped(by_name[name].text, "  ", width)]


def _listed(verb: str) -> Iterator[ListedOption]:
    known: set[str] = set()
    for form in SUBJECTS[verb]:
        types = types_of(form)
        for option in options_of(form):
            is_of_training = form is BillOptions and "serv" in verb and option.name in OF_TRAINING
            if option.name not in known and not is_of_training:
                known.add(option.name)
                yield _of(option, GROUPS[form], types[option.name])


def _of(option: Option, group: str, kind: Any) -> ListedOption:
    return ListedOption(
        name=option.name,
        group=group,
        type=str(kind if not isinstance(kind, type) else kind.__name__),
        unit=option.unit,
        default=_in_python(option.default) or ("off" if option.kind == "switch" else ""),
        choices=names_in(option.choices or option.known),
        meaning=_in_python(option.meaning),
    )


def _in_python(text: str) -> str:
    """A text in which other options are named as Python has them: request_rate for --request-rate."""
    known = {option.name for forms in SUBJECTS.values() for form in forms for option in options_of(form)}

    def named(flag: re.Match[str]) -> str:
        name = flag[1].replace("-", "_")
        return name if name in known else flag[0]

    return re.sub(r"--([a-z][a-z0-9-]*)", named, text)


def _lines(listed: Sequence[ListedOption]) -> Iterator[str]:
    group = ""
    for each in listed:
        if each.group != group:
            group = each.group
            yield f"{group}:"
        yield from _wrapped(each.text, "  ", WIDTH)


def _wrapped(text: str, indent: str, width: int) -> list[str]:
    return wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
